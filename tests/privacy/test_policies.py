"""Optimal policies meet their accuracy with the fewest cells; k-anonymity promises nothing about a value."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from math import inf, isclose, log2, pi

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.privacy.information import (
    JointRange,
    leakage,
    maximin_information,
    relative_disarray,
    symmetrised_leakage,
)
from gateway.privacy.intervals import cells
from gateway.privacy.policies import (
    UniformPolicy,
    fewest_cells,
    k_anonymous_release,
    leakage_privacy,
    maximin_privacy,
    quality,
    top_cell_radius,
)
from gateway.privacy.regions import MeanOfTwo, Query, WeightedSquares

TWO = Fraction(2)
MEAN = MeanOfTwo(-TWO, TWO)
SQUARES = WeightedSquares(Fraction(1), Fraction(2), TWO)

spans = st.tuples(
    st.fractions(-9, 9, max_denominator=12), st.fractions(Fraction(1, 9), 9, max_denominator=12)
)
gammas = st.fractions(Fraction(1, 20), 20, max_denominator=20)


def test_the_mean_of_two_has_four_cells() -> None:
    """[DP] Example IV.1: on [−2,2] with γ = 2."""
    policy = UniformPolicy.of_quality(MEAN.lower, MEAN.upper, TWO)
    assert policy.cells == 4
    assert policy.outputs == tuple(Fraction(j, 2) for j in (-3, -1, 1, 3))
    assert quality(policy.worst_error) == 2


def test_the_weighted_squares_have_twelve_cells() -> None:
    """x1² + 2·x2² on [−2,2]² with γ = 2: [0,12], outputs i + 0.5."""
    policy = UniformPolicy.of_quality(SQUARES.lower, SQUARES.upper, TWO)
    assert SQUARES.lower == 0
    assert SQUARES.upper == policy.cells == 12
    assert policy.outputs == tuple(Fraction(2 * i + 1, 2) for i in range(12))


@pytest.mark.parametrize("gamma", [Fraction(7, 25), Fraction(22, 75), Fraction(1), Fraction(1, 10)])
def test_heights_have_75_gamma_cells(gamma: Fraction) -> None:
    assert fewest_cells(Fraction(100), Fraction(250), gamma) == -(-75 * gamma // 1)


@settings(deadline=None)
@given(spans, gammas)
def test_one_cell_fewer_cannot_cover_the_answers(span: tuple[Fraction, Fraction], gamma: Fraction) -> None:
    """q − 1 outputs are within 1/γ of a set of measure at most 2(q − 1)/γ, less than the whole range."""
    lower, width = span
    policy = UniformPolicy.of_quality(lower, lower + width, gamma)
    assert policy.worst_error <= 1 / gamma
    assert policy.cells == 1 or 2 * (policy.cells - 1) / gamma < width


@settings(max_examples=60, deadline=None)
@given(spans, gammas)
def test_every_answer_is_within_the_worst_error_and_some_attain_it(
    span: tuple[Fraction, Fraction], gamma: Fraction
) -> None:
    lower, width = span
    policy = UniformPolicy.of_quality(lower, lower + width, gamma)
    answers = [lower + width * Fraction(i, 60) for i in range(61)]
    assert all(abs(policy.release(answer) - answer) <= policy.worst_error for answer in answers)
    assert policy.release(lower) - lower == policy.upper - policy.release(policy.upper) == policy.worst_error
    assert [policy.cell(edge) for edge in policy.edges[:-1]] == list(range(policy.cells))


@settings(deadline=None)
@given(spans, st.integers(1, 9))
def test_a_policy_tells_the_logarithm_of_its_cells_and_no_more_of_its_query(
    span: tuple[Fraction, Fraction], count: int
) -> None:
    policy = UniformPolicy(span[0], span[0] + span[1], count)
    joint = JointRange.of_preimages(cells(policy.edges))
    assert maximin_information(joint) == symmetrised_leakage(joint) == log2(count)
    expected = inf if count == 1 else 1 / log2(count)
    assert leakage_privacy(joint) == maximin_privacy(joint) == expected


def test_exact_answers_have_no_bound_on_quality() -> None:
    assert quality(Fraction(0)) == inf


# --- regions of two inputs -------------------------------------------------------------------------------


def test_the_corners_of_the_mean_leak_most() -> None:
    """Its end cells are triangles of area 2 in a square of 16: three bits, though it tells two for sure."""
    policy = UniformPolicy.of_quality(MEAN.lower, MEAN.upper, TWO)
    joint = policy.joint_range(MEAN)
    assert [int(area) for area in joint.x_measure or ()] == [2, 6, 6, 2]
    assert (leakage(joint), maximin_information(joint)) == (3, 2)
    assert (leakage_privacy(joint), maximin_privacy(joint)) == (1 / 3, 1 / 2)


def test_the_inner_cells_of_the_squares_are_rings_of_one_area() -> None:
    policy = UniformPolicy.of_quality(SQUARES.lower, SQUARES.upper, TWO)
    areas = [float(area) for area in policy.joint_range(SQUARES).x_measure or ()]
    assert areas[:4] == pytest.approx([pi / 2**0.5] * 4)
    assert sum(areas) == pytest.approx(16)
    assert leakage(policy.joint_range(SQUARES)) == pytest.approx(log2(16 / min(areas)))
    assert min(areas) == areas[-1] < areas[4] < areas[3]


@pytest.mark.parametrize("query", [MEAN, SQUARES, WeightedSquares(Fraction(3), Fraction(1, 2), Fraction(1))])
def test_areas_are_those_of_a_fine_grid(query: Query) -> None:
    side = float(getattr(query, "half_side", TWO))
    middles = (np.arange(1_000) + 0.5) / 500 * side - side
    x1, x2 = np.meshgrid(middles, middles)
    policy = UniformPolicy(query.lower, query.upper, 7)
    counted = np.bincount(policy.regions(query, x1, x2).ravel(), minlength=7) / 1e6 * (2 * side) ** 2
    areas = [float(area) for area in policy.joint_range(query).x_measure or ()]
    assert counted == pytest.approx(areas, abs=5e-3 * side**2)


@pytest.mark.parametrize("query", [MEAN, SQUARES])
def test_boundaries_separate_the_regions(query: Query) -> None:
    """Just below and just above a boundary lie different cells; points of a boundary answer with its cut."""
    policy = UniformPolicy.of_quality(query.lower, query.upper, TWO)
    x1 = np.linspace(-2, 2, 401)
    for number, cut in enumerate(policy.edges[1:-1], start=1):
        for branch in query.boundary(cut, x1):
            at, x2 = x1[np.isfinite(branch)], branch[np.isfinite(branch)]
            assert len(at) > 0
            assert query.value(at, x2) == pytest.approx(np.full(len(at), float(cut)))
            inside = np.abs(x2) > 1e-3
            sides = [policy.regions(query, at[inside], x2[inside] * scale) for scale in (1 - 1e-6, 1 + 1e-6)]
            assert set(np.minimum(*sides).tolist()) <= {number - 1}
            assert set(np.maximum(*sides).tolist()) <= {number}


def test_exact_cells_and_the_picture_agree() -> None:
    policy = UniformPolicy.of_quality(SQUARES.lower, SQUARES.upper, TWO)
    eighths = [Fraction(i, 8) for i in range(-16, 17)]
    x1, x2 = np.meshgrid([float(x) for x in eighths], [float(x) for x in eighths])
    exact = [[policy.cell(x * x + 2 * y * y) for x in eighths] for y in eighths]
    assert policy.regions(SQUARES, x1, x2).tolist() == exact


@pytest.mark.parametrize(("individuals", "count"), [(1, 4), (2, 7), (3, 21), (4, 9)])
def test_the_radius_of_the_top_cell_is_that_of_its_smallest_ball(individuals: int, count: int) -> None:
    """Its corners lie on or in the ball around their centroid; from any other centre one lies further."""
    span = Fraction(150)
    leg = individuals * span / count
    corners = [[-leg * (i == j) for j in range(individuals)] for i in range(individuals)]
    points = np.array([*corners, [0] * individuals], np.float64)
    touching = points if individuals == 1 else points[:-1]
    centre, radius = touching.mean(axis=0), top_cell_radius(span, individuals, count)
    assert np.linalg.norm(touching - centre, axis=1) == pytest.approx(np.full(len(touching), radius))
    assert np.linalg.norm(points - centre, axis=1).max() <= radius * (1 + 1e-12)
    # mean over the touching corners of |v − z|² = r² + |z − centre|², so no other centre is as good
    for shift in np.eye(individuals):
        squared = ((touching - centre - shift) ** 2).sum(axis=1)
        assert squared.mean() == pytest.approx(radius**2 + 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fewest_cells(Fraction(1), Fraction(0), TWO), "a range"),
        (lambda: fewest_cells(Fraction(0), Fraction(1), Fraction(0)), "positive quality"),
        (lambda: UniformPolicy(Fraction(0), Fraction(1), 0), "at least one"),
        (lambda: UniformPolicy(Fraction(1), Fraction(1), 1), "over a range"),
        (lambda: UniformPolicy(Fraction(0), Fraction(1), 2).cell(TWO), "outside"),
        (lambda: top_cell_radius(Fraction(1), 5, 4), "at most"),
        (lambda: k_anonymous_release([1, 2], [1, 2], 3), "between 1"),
    ],
)
def test_what_makes_no_sense_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


# --- k-anonymity ---------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=20), st.integers(1, 5))
def test_the_release_is_k_anonymous(records: list[tuple[int, int]], k: int) -> None:
    """Every range is shared by k records or more, each record lies in its range, and no value is lost."""
    if k > len(records):
        return
    quasi, sensitive = [q for q, _ in records], [s for _, s in records]
    table = k_anonymous_release(quasi, sensitive, k)
    assert all(len(values) >= k and low <= high for low, high, values in table)
    assert all(one[1] <= other[0] for one, other in pairwise(table))
    assert sorted(s for *_, values in table for s in values) == sorted(sensitive)
    assert (table[0][0], table[-1][1]) == (min(quasi), max(quasi))


def released_of_one(resolution: int, k: int) -> JointRange:
    """One of nine records takes every value of a grid on [0,1), all others fixed."""
    others = [Fraction(i, 7) for i in range(8)]
    tables = [
        k_anonymous_release(range(9), [*others[:4], Fraction(j, resolution), *others[4:]], k)
        for j in range(resolution)
    ]
    joint = JointRange.of_map(tables)
    return JointRange(joint.possible, (Fraction(1, resolution),) * resolution)


@pytest.mark.parametrize("k", [2, 4, 9])
def test_k_anonymity_leaves_nothing_of_a_value_hidden(k: int) -> None:
    """[DP] Prop. V.1: at resolution m, I* = log2 m and d0 = −log2 m, without bound, whatever k is."""
    for m in (2, 16, 128, 512):
        joint = released_of_one(m, k)
        assert maximin_information(joint) == leakage(joint) == log2(m)
        assert relative_disarray(joint) == -log2(m)
        assert isclose(leakage_privacy(joint), 1 / log2(m))
