"""Theorems 1 to 8 of [NP] against every function and prior that comes up, in exact arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise, product
from math import isclose, log2, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.privacy import certified_levels
from gateway.privacy.channels import Machine, branching_bound, output_sequences
from gateway.privacy.guarantees import (
    Mechanism,
    composed_levels,
    estimation_error,
    estimation_error_bound,
    group_cells,
    hypothesis_test_bound,
    information_bound,
    maximal_leakage,
    maximal_leakage_bound,
    merged_levels,
    processed_levels,
    reading_leakage,
    zero_error_capacity_bound,
)
from gateway.privacy.hypothesis_tests import performance_bits
from gateway.privacy.information import (
    JointRange,
    leakage,
    maximin_information,
    symmetrised_leakage,
)
from gateway.privacy.intervals import cells

Table = list[list[int]]
"""The output for each value of hers (rows) and each of all others together (columns)."""

tables = st.integers(1, 5).flatmap(
    lambda others: st.lists(
        st.lists(st.integers(0, 4), min_size=others, max_size=others), min_size=1, max_size=5
    )
)
widths = st.lists(st.fractions(Fraction(1, 9), 5, max_denominator=9), min_size=1, max_size=6)


def definition_1(table: Table) -> Mechanism:
    """The mechanism of a table: the most outputs that her value reaches for any fixed value of the others."""
    return Mechanism.equal(Fraction(1), max(len(set(column)) for column in zip(*table, strict=True)))


# --- Theorem 1 ---------------------------------------------------------------------------------------


@settings(deadline=None)
@given(tables)
def test_with_all_others_fixed_every_measure_of_information_is_at_most_epsilon(table: Table) -> None:
    bound = information_bound(definition_1(table)) + 1e-12
    for column in zip(*table, strict=True):
        joint = JointRange.of_map(column)
        assert maximin_information(joint) <= symmetrised_leakage(joint) + 1e-12
        assert symmetrised_leakage(joint) <= leakage(joint.swapped) <= bound


@settings(deadline=None)
@given(tables)
def test_while_unrelated_others_vary_maximin_information_is_at_most_epsilon(table: Table) -> None:
    joint = JointRange.of_pairs((x, y) for x, row in enumerate(table) for y in row)
    assert maximin_information(joint) <= information_bound(definition_1(table)) + 1e-12


def test_while_others_vary_the_leakages_may_exceed_epsilon() -> None:
    """Nine of her ten values release 0, the tenth the others' value, 1..5: with others fixed, ε = 1."""
    table = [[0] * 5] * 9 + [[1, 2, 3, 4, 5]]
    assert information_bound(definition_1(table)) == 1
    joint = JointRange.of_pairs((x, y) for x, row in enumerate(table) for y in row)
    assert maximin_information(joint) == 1
    assert isclose(leakage(joint.swapped), log2(6))
    assert isclose(symmetrised_leakage(joint), log2(6))


def test_when_others_depend_on_her_nothing_is_promised() -> None:
    """A neighbour whose reading always equals hers is released: ε = 0 towards her, yet all is told."""
    table = [list(range(4))] * 4
    assert information_bound(definition_1(table)) == 0
    assert maximin_information(JointRange.of_pairs((x, table[x][x]) for x in range(4))) == 2


@settings(deadline=None)
@given(widths)
def test_unequal_cells_leak_more_about_a_reading_than_epsilon(sizes: list[Fraction]) -> None:
    """Theory A4: L(X;Y) = max_j log2(R/width_j) ≥ log2 k, with equality for equal cells only."""
    mechanism = Mechanism(tuple(sizes))
    edges = [sum(sizes[:j], Fraction(0)) for j in range(len(sizes) + 1)]
    assert reading_leakage(mechanism) == leakage(JointRange.of_preimages(cells(edges)))
    ratio = mechanism.span / min(sizes)
    assert (ratio == mechanism.levels) == (len(set(sizes)) == 1)
    assert ratio >= mechanism.levels


# --- Theorem 2 ---------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=6))
def test_uses_with_scheduled_levels_carry_at_most_their_bits(levels: list[int]) -> None:
    """A clock that counts slots, each with its own k_t: ∏ k_t sequences, so Σ log2 k_t / T bits per use."""
    slots, inputs = len(levels), np.arange(max(levels))
    following = np.repeat(np.arange(1, slots + 1)[:, np.newaxis] % slots, len(inputs), axis=1)
    machine = Machine(following, np.stack([inputs % k for k in levels]))
    assert output_sequences(machine, slots) == branching_bound(machine, slots) == prod(levels)
    assert isclose(zero_error_capacity_bound(levels), log2(prod(levels)) / slots)


@pytest.mark.parametrize("levels", [[], [2, 0]])
def test_a_channel_without_a_use_or_a_level_is_refused(levels: list[int]) -> None:
    with pytest.raises(ValueError, match="at least one"):
        zero_error_capacity_bound(levels)


# --- Theorem 3 ---------------------------------------------------------------------------------------


@settings(deadline=None)
@given(tables)
def test_no_test_of_two_values_is_right_at_more_outputs_than_promised(table: Table) -> None:
    bound = hypothesis_test_bound(definition_1(table))
    for one, other in product(table, repeat=2):
        for says, says_other in zip(one, other, strict=True):
            assert performance_bits({says}, {says_other}) <= bound


@pytest.mark.parametrize(("levels", "bound"), [(1, 0), (2, 1), (16, 1)])
def test_a_test_decides_one_bit_at_most(levels: int, bound: float) -> None:
    assert hypothesis_test_bound(Mechanism.equal(Fraction(1), levels)) == bound


# --- Theorem 4 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("levels", [1, 2, 3, 16])
def test_equal_cells_and_a_uniform_prior_attain_the_error_bound_exactly(levels: int, power: int) -> None:
    mechanism = Mechanism.equal(Fraction(7, 3), levels)
    assert estimation_error_bound(mechanism, 1 / mechanism.span, power) == estimation_error(mechanism, power)


@settings(deadline=None)
@given(widths, st.integers(1, 5))
def test_unequal_cells_only_make_the_adversary_worse(sizes: list[Fraction], power: int) -> None:
    mechanism = Mechanism(tuple(sizes))
    assert estimation_error_bound(mechanism, 1 / mechanism.span, power) <= estimation_error(mechanism, power)


prior_pieces = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5)), min_size=1, max_size=8)


@settings(deadline=None)
@given(prior_pieces)
def test_any_preimages_and_priors_keep_the_squared_error_above_the_bound(
    pieces: list[tuple[int, int]],
) -> None:
    """Unit pieces of her range with an output and a density each; the best estimate is the posterior mean."""
    total = sum(density for _, density in pieces)
    error = Fraction(0)
    for output in {y for y, _ in pieces}:
        inside = [
            (Fraction(2 * i + 1, 2), Fraction(w, total)) for i, (y, w) in enumerate(pieces) if y == output
        ]
        mass = sum((weight for _, weight in inside), Fraction(0))
        mean = sum((middle * weight for middle, weight in inside), Fraction(0)) / mass
        error += sum(
            (weight * ((middle - mean) ** 2 + Fraction(1, 12)) for middle, weight in inside), Fraction(0)
        )
    mechanism = Mechanism.equal(Fraction(len(pieces)), len({y for y, _ in pieces}))
    least = Fraction(min(density for _, density in pieces), total)
    assert estimation_error_bound(mechanism, least) <= error


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=8))
def test_any_preimages_keep_the_absolute_error_above_the_bound(outputs: list[int]) -> None:
    """p = 1, a uniform prior: the best estimate of a set of pieces is a median; one lies on a half step."""
    n = len(outputs)

    def integral(piece: int, at: Fraction) -> Fraction:
        below, above = at - piece, piece + 1 - at
        return (below**2 + above**2) / 2 if min(below, above) >= 0 else abs(at - piece - Fraction(1, 2))

    candidates = [Fraction(i, 2) for i in range(2 * n + 1)]
    error = sum(
        min(sum(integral(i, at) for i, y in enumerate(outputs) if y == output) for at in candidates)
        for output in set(outputs)
    ) / Fraction(n)
    mechanism = Mechanism.equal(Fraction(n), len(set(outputs)))
    assert estimation_error_bound(mechanism, Fraction(1, n), 1) <= error


# --- Theorem 5 ---------------------------------------------------------------------------------------


@settings(deadline=None)
@given(tables, st.lists(st.integers(1, 9), min_size=5, max_size=5))
def test_maximal_leakage_is_at_most_epsilon_when_others_are_independent(
    table: Table, odds: list[int]
) -> None:
    prior = np.array(odds[: len(table[0])], np.float64) / sum(odds[: len(table[0])])
    conditional = np.array([[prior[np.array(row) == y].sum() for y in range(5)] for row in table])
    assert maximal_leakage(conditional) <= maximal_leakage_bound(definition_1(table)) + 1e-12


@settings(deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=12))
def test_a_function_has_the_maximal_leakage_of_its_outputs(outputs: list[int]) -> None:
    conditional = (np.array(outputs)[:, np.newaxis] == np.arange(7)).astype(np.float64)
    assert isclose(maximal_leakage(conditional), log2(len(set(outputs))))


# --- Theorems 6 and 7, A2 --------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), min_size=6, max_size=6), min_size=1, max_size=4))
def test_levels_of_any_releases_multiply_at_most(releases: list[list[int]]) -> None:
    joint = len(set(zip(*releases, strict=True)))
    assert joint <= composed_levels(len(set(release)) for release in releases)


@settings(deadline=None)
@given(st.lists(st.sets(st.integers(1, 30), max_size=6), min_size=1, max_size=4))
def test_step_functions_of_one_number_merge_their_cuts(cuts: list[set[int]]) -> None:
    levels = [len(each) + 1 for each in cuts]
    joint = {tuple(sum(x >= cut for cut in each) for each in cuts) for x in range(32)}
    assert len(joint) == 1 + len(set().union(*cuts)) <= merged_levels(levels) <= composed_levels(levels)


def test_four_and_four_levels_cost_2_81_bits_instead_of_4() -> None:
    assert round(log2(merged_levels([4, 4])), 2) == 2.81
    assert log2(composed_levels([4, 4])) == 4


def test_releases_that_are_not_monotone_do_not_merge() -> None:
    """The high and the low bit of 0..3 have two levels each and tell four values apart, not three."""
    joint = {(x // 2, x % 2) for x in range(4)}
    assert merged_levels([2, 2]) < len(joint) == composed_levels([2, 2])


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=9), st.lists(st.integers(0, 3), min_size=6, max_size=6)
)
def test_processing_a_release_never_adds_levels(outputs: list[int], function: list[int]) -> None:
    processed = {function[y] for y in outputs}
    assert len(processed) <= processed_levels(len(set(outputs)), len(set(function)))


# --- Theorem 8 ---------------------------------------------------------------------------------------


def most_reached(span: Fraction, sensitivity: Fraction, count: int) -> int:
    """Slide a closed segment of length S over all of R: onto every place where a cell enters, and between."""
    width = span / count
    cuts = [j * width for j in range(count + 1)]
    critical = sorted(
        {at for cut in cuts for at in (cut, cut - sensitivity) if 0 <= at <= span - sensitivity}
    )
    critical = sorted({Fraction(0), span - sensitivity, *critical})
    between = [(a + b) / 2 for a, b in pairwise(critical)]

    def cell(at: Fraction) -> int:
        return min(count - 1, int(at // width))

    return max(cell(at + sensitivity) - cell(at) + 1 for at in [*critical, *between])


ratios = st.tuples(
    st.fractions(1, 6, max_denominator=7),
    st.fractions(Fraction(1, 7), 3, max_denominator=7),
    st.integers(1, 8),
)


@settings(max_examples=150, deadline=None)
@given(ratios)
def test_certified_cells_are_reached_k_at_most_and_no_more_cells_would_be(
    given_ratio: tuple[Fraction, Fraction, int],
) -> None:
    """For sums of reals, over all totals of the others; one cell more is reached too often."""
    ratio, sensitivity, k = given_ratio
    span = ratio * sensitivity
    count = group_cells(span, sensitivity, k)
    assert most_reached(span, sensitivity, count) <= k
    assert most_reached(span, sensitivity, count + 1) > k
    assert count == certified_levels(ratio.numerator, ratio.denominator, k)


def test_a_single_individual_has_k_cells_in_both_calibrations() -> None:
    assert group_cells(Fraction(5), Fraction(5), 4) == group_cells(Fraction(5), Fraction(5), 4, "paper") == 4


def test_the_papers_calibration_is_the_theorem_as_printed() -> None:
    assert group_cells(Fraction(8), Fraction(1), 4, "paper") == 32
    assert group_cells(Fraction(8), Fraction(1), 4) == 24
    assert group_cells(Fraction(5, 2), Fraction(1), 3, "paper") == 7


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Mechanism(()), "has outputs"),
        (lambda: Mechanism((Fraction(1), Fraction(-1))), "has outputs"),
        (lambda: Mechanism((Fraction(0),)), "has outputs"),
        (lambda: estimation_error_bound(Mechanism.equal(Fraction(2), 2), Fraction(1)), "the density"),
        (lambda: estimation_error_bound(Mechanism.equal(Fraction(2), 2), Fraction(1, 2), 0), "the power"),
        (lambda: group_cells(Fraction(1), Fraction(2), 2), "at most its span"),
        (lambda: group_cells(Fraction(1), Fraction(0), 2), "moves the answer"),
        (lambda: group_cells(Fraction(1), Fraction(1), 0), "at least one level"),
    ],
)
def test_what_makes_no_sense_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
