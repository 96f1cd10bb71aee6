"""Mistakes in the papers: each claim is first seen to fail, then the mended one to hold, by counting."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product
from math import asin, ceil, inf, isclose, log2, pi, sin, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.privacy import certified_levels, reach_of
from gateway.privacy.guarantees import Mechanism, estimation_error, estimation_error_bound, group_cells
from gateway.privacy.hypothesis_tests import (
    outputs_by_hypothesis,
    privacy_nats,
    undecidable_share,
    undecidable_share_under_square,
    undecided_bits,
)
from gateway.privacy.information import (
    JointRange,
    leakage,
    maximin_information,
    relative_disarray,
)
from gateway.privacy.intervals import Interval, cells, closed
from gateway.privacy.policies import (
    UniformPolicy,
    fewest_cells,
    k_anonymous_release,
    leakage_privacy,
    maximin_privacy,
    top_cell_radius,
)

HALF = Fraction(1, 2)

# --- E1: [NP] Theorem 8 --------------------------------------------------------------------------------


def outcomes(n: int, count: int, others: Fraction) -> int:
    """Count the outputs of the quantized sum of n readings in [0,1] as one varies and the others stay.

    The sum runs over a whole segment, so it meets every cell between those of its ends.
    """
    first, last = (min(count - 1, total * count // n) for total in (others, others + 1))
    return int(last - first + 1)


def most_outcomes(n: int, count: int) -> int:
    """Over all sums of the others: where an end of the segment passes a cut, and between those."""
    cuts = [Fraction(j * n, count) for j in range(count + 1)]
    passing = sorted({at for cut in cuts for at in (cut, cut - 1) if 0 <= at <= n - 1})
    return max(outcomes(n, count, at) for at in [*passing, *((a + b) / 2 for a, b in pairwise(passing))])


def test_e1_a_mean_of_two_hits_three_outputs_with_one_bit() -> None:
    assert group_cells(Fraction(1), HALF, 2, "paper") == 4
    assert outcomes(2, 4, Fraction(1, 10)) == 3
    assert group_cells(Fraction(1), HALF, 2) == 2
    assert most_outcomes(2, 2) == 2


def test_e1_the_papers_cells_break_definition_1_in_all_42_cases_and_certified_ones_in_none() -> None:
    cases = list(product(range(2, 9), (2, 3, 4, 5, 8, 16)))
    span = {n: Fraction(n) for n, _ in cases}
    papers = [most_outcomes(n, group_cells(span[n], Fraction(1), k, "paper")) for n, k in cases]
    ours = [most_outcomes(n, group_cells(span[n], Fraction(1), k)) for n, k in cases]
    assert len(cases) == 42
    assert [reached - k for reached, (_, k) in zip(papers, cases, strict=True)] == [1] * 42
    assert [reached - k for reached, (_, k) in zip(ours, cases, strict=True)] == [0] * 42
    assert all(certified_levels(n, 1, k) == group_cells(span[n], Fraction(1), k) for n, k in cases)


def test_e1_unequal_cells_reach_by_their_densest_window() -> None:
    """Ten cells over [0,100], five of them 1 wide: the mean width says 3 for S = 20; the cuts say 7."""
    cuts = np.array([40, 41, 42, 43, 44, 45, 70, 80, 90])
    sensitivity = 20
    by_width = ceil(Fraction(sensitivity * 10, 100)) + 1
    segments = [np.searchsorted(cuts, [at, at + sensitivity], side="right") for at in range(81)]
    counted = max(int(last - first + 1) for first, last in segments)
    assert counted > by_width
    assert reach_of(cuts, sensitivity) == counted == 7


# --- E2: [NP] Theorem 4 --------------------------------------------------------------------------------


def test_e2_without_the_absolute_value_odd_powers_have_no_bound() -> None:
    """Mid-points err symmetrically: E(X − X̂)^p = 0 for p = 1 and 3, below any positive bound."""
    mechanism = Mechanism.equal(Fraction(1), 2)
    for power in (1, 3):
        edges = [Fraction(0), HALF, Fraction(1)]
        signed = sum(
            ((high - middle) ** (power + 1) - (low - middle) ** (power + 1)) / (power + 1)
            for low, high in pairwise(edges)
            for middle in [(low + high) / 2]
        )
        assert signed == 0 < estimation_error_bound(mechanism, Fraction(1), power)
        assert estimation_error(mechanism, power) == estimation_error_bound(mechanism, Fraction(1), power)


def test_e2_the_joint_density_is_the_wrong_one() -> None:
    """X1 in [0,1] and X2 in [0,1/100], uniform: the joint density is 100 though X1's, given X2, is 1."""
    mechanism, joint_density = Mechanism.equal(Fraction(1), 2), 100
    conditional = estimation_error_bound(mechanism, Fraction(1))
    assert estimation_error(mechanism) == conditional
    assert joint_density * conditional > estimation_error(mechanism)
    assert joint_density * conditional / mechanism.levels > estimation_error(mechanism), (
        "the paper's form too"
    )
    with pytest.raises(ValueError, match="density"):
        estimation_error_bound(mechanism, Fraction(joint_density))


@pytest.mark.parametrize("levels", [2, 3, 8])
def test_e2_keeping_one_cell_of_k_is_k_times_looser(levels: int) -> None:
    mechanism, power = Mechanism.equal(Fraction(6), levels), 2
    width, density = Fraction(6, levels), Fraction(1, 6)
    one_cell = 2 * density * (width / 2) ** (power + 1) / (power + 1)
    assert (
        one_cell * levels
        == estimation_error_bound(mechanism, density, power)
        == estimation_error(mechanism, power)
    )


# --- E3: [HT] Definition 3 -----------------------------------------------------------------------------

games = st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=14)


@settings(deadline=None)
@given(games)
def test_e3_every_policy_meets_definition_3(inputs: list[tuple[bool, int]]) -> None:
    """Δ is a part of ⟦Y⟧, so Priv ≥ 0 ≥ log ε for every ε ≤ 1, releasing everything included."""
    assert undecided_bits(*outputs_by_hypothesis(inputs)) >= 0
    everything = outputs_by_hypothesis((x >= 3, x) for x in range(6))
    assert undecided_bits(*everything) == 0


def test_e3_theorem_3s_policy_has_privacy_0_though_a_fifth_is_undecidable() -> None:
    """[0,100], threshold 50, band ±10: all that is ambiguous is one point, which has no measure."""
    point = [closed(50, 50)]
    below = [Interval(Fraction(0), Fraction(40))]
    above = [Interval(Fraction(60), Fraction(100), closed_low=False, closed_high=True)]
    assert privacy_nats(below + point, point + above) == 0
    assert undecidable_share(Fraction(0), Fraction(100), Fraction(50), Fraction(10)) == Fraction(1, 5)


def test_e3_a_band_without_both_hypotheses_hides_nothing() -> None:
    """[0,100], threshold 105, band ±10: the formula says 5 %; but a release of 105 tells that x < 105."""
    values = [Fraction(i, 10) for i in range(1_001)]
    released = [Fraction(105) if abs(x - 105) <= 10 else x for x in values]
    formula = Fraction(100 - 95, 100)
    given_p0, given_p1 = outputs_by_hypothesis((x >= 105, y) for x, y in zip(values, released, strict=True))
    assert formula == Fraction(5, 100)
    assert sum(y in given_p0 & given_p1 for y in released) == 0
    assert undecidable_share(Fraction(0), Fraction(100), Fraction(105), Fraction(10)) == 0


# --- E4: [HT] IV -----------------------------------------------------------------------------------------


def test_e4_the_integral_with_min_and_max_swapped_is_negative() -> None:
    """The body-mass example at band 10 kg, by strips: the printed second line has the wrong sign."""
    band, strips = Fraction(10), 500
    heights = [Fraction(250 * (2 * i + 1), 2 * strips) for i in range(strips)]
    thresholds = [Fraction(3, 1000) * x2**2 for x2 in heights]
    printed = sum(max(g - band, Fraction(0)) - min(g + band, Fraction(200)) for g in thresholds) / (
        200 * strips
    )
    counted = sum(sum(abs(x1 - g) <= band for x1 in range(201)) for g in thresholds) / (201 * strips)
    mended = float(undecidable_share_under_square(Fraction(3, 1000), Fraction(200), Fraction(250), band))
    assert printed < 0 < counted
    assert isclose(mended, counted, rel_tol=1e-2)
    assert isclose(mended, -float(printed), rel_tol=1e-4)


# --- E5, E6: [DP] III and IV ---------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1), (4, 1), (3, 3)])
def test_e5_unrelated_answers_have_privacy_infinity_not_0(shape: tuple[int, int]) -> None:
    """Whatever x is, all y remain possible: nothing leaks, and P = 1/0."""
    joint = JointRange(np.ones(shape, np.bool_))
    assert leakage(joint) == leakage(joint.swapped) == 0
    assert leakage_privacy(joint) == maximin_privacy(joint) == inf


def test_e6_the_problem_has_a_least_q_and_no_largest() -> None:
    """Heights, γ = 1/10: every q from 8 on is accurate, so argmax does not exist; privacy falls with q."""
    lower, upper, gamma = Fraction(100), Fraction(250), Fraction(1, 10)
    policies = [UniformPolicy(lower, upper, q) for q in range(1, 60)]
    accurate = [policy.cells for policy in policies if policy.worst_error <= 1 / gamma]
    assert accurate == list(range(accurate[0], 60)), "once accurate, accurate with more cells"
    assert fewest_cells(lower, upper, gamma) == accurate[0] == 8
    told = [maximin_information(JointRange.of_preimages(cells(policy.edges))) for policy in policies]
    assert told == [log2(policy.cells) for policy in policies], "log q, not q"
    assert told[0] == 0 != policies[0].cells


# --- E7: [DP] Example IV.2 -----------------------------------------------------------------------------


def corner_radius(n: int, q: int) -> float:
    """The smallest ball around the top cell, Σ(250 − x_i) ≤ 150n/q, by ternary search on the diagonal.

    The cell is symmetric in its inputs and the ball is unique, so its centre lies on the diagonal.
    """
    leg = 150 * n / q
    corners = np.vstack([np.eye(n) * leg, np.zeros(n)])
    low, high = 0.0, leg
    for _ in range(200):
        one, other = low + (high - low) / 3, high - (high - low) / 3
        if np.linalg.norm(corners - one, axis=1).max() < np.linalg.norm(corners - other, axis=1).max():
            high = other
        else:
            low = one
    return float(np.linalg.norm(corners - low, axis=1).max())


def test_e7_the_radius_is_at_least_10_only_for_gamma_up_to_0_28() -> None:
    """Two heights: the paper says "larger than 22/75", where the radius is below 10 already."""

    def radius(gamma: Fraction) -> float:
        return corner_radius(2, fewest_cells(Fraction(100), Fraction(250), gamma))

    assert all(radius(Fraction(22, 75) + step) < 10 for step in (Fraction(0), Fraction(1, 1000), Fraction(1)))
    assert all(radius(Fraction(i, 100)) >= 10 for i in range(1, 29))
    assert radius(Fraction(28, 100) + Fraction(1, 10**6)) < 10


def test_e7_the_radius_depends_on_the_number_of_people() -> None:
    radii = [corner_radius(n, 21) for n in range(1, 22)]
    assert [round(r, 1) for r in radii[1:3]] == [10.1, 17.5]
    assert radii == sorted(radii)
    assert len(set(radii)) == 21
    assert [top_cell_radius(Fraction(150), n, 21) for n in range(1, 22)] == pytest.approx(radii)
    assert isclose(radii[0], 75 / 21)


# --- E8: [DP] Prop. V.1 --------------------------------------------------------------------------------


def test_e8_k_anonymity_has_disarray_minus_infinity_and_leakage_plus_infinity() -> None:
    """At every resolution d0 falls and L0 grows by the bits added, past the paper's 0 and h0 = 0."""
    found = []
    for exponent in range(1, 10):
        m = 1 << exponent
        tables = [
            k_anonymous_release([5, 6, 9], [Fraction(1, 3), Fraction(j, m), Fraction(2, 3)], 3)
            for j in range(m)
        ]
        joint = JointRange(JointRange.of_map(tables).possible, (Fraction(1, m),) * m)
        found.append((relative_disarray(joint), leakage(joint), maximin_information(joint)))
    assert found == [(-bits, bits, bits) for bits in range(1, 10)]
    points = JointRange.of_preimages([[closed(0, 0)], [Interval(Fraction(0), Fraction(1), closed_low=False)]])
    assert (relative_disarray(points), leakage(points)) == (-inf, inf)


# --- E9: [PPAN] example 3 ------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.fractions(0, 1), st.integers(1, 9)), min_size=1, max_size=8))
def test_e9_nothing_on_the_unit_interval_has_variance_1_3(atoms: list[tuple[Fraction, int]]) -> None:
    """E X² ≤ E X there, so the variance is at most m − m² ≤ 1/4; uniform it is 1/12."""
    total = sum(weight for _, weight in atoms)
    mean = sum(x * weight for x, weight in atoms) / total
    variance = sum((x - mean) ** 2 * weight for x, weight in atoms) / total
    assert variance <= mean - mean**2 <= Fraction(1, 4) < Fraction(13, 10)


def test_e9_uniform_margins_of_variance_1_3_and_covariance_0_95_exist() -> None:
    """On ±√3.9; a Gaussian copula of correlation 2·sin(πr/6) gives uniform margins the correlation r."""
    variance, covariance = 1.3, 0.95
    half = sqrt(3 * variance)
    third_moment_ends = [end**3 / 3 / (2 * half) for end in (half, -half)]
    assert isclose(third_moment_ends[0] - third_moment_ends[1], variance)
    assert Fraction(1) ** 3 / 3 - HALF**2 == Fraction(1, 12), "the unit interval's"
    latent = 2 * sin(pi * covariance / variance / 6)
    assert -1 < latent < 1
    assert isclose(6 / pi * asin(latent / 2) * variance, covariance)
    assert variance**2 - covariance**2 > 0, "a covariance matrix"
