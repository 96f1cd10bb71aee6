"""Uncertain variables against their definitions, enumerated over every small joint range that comes up."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, pairwise
from math import inf, isclose, log, log2, pi, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.privacy.information import (
    JointRange,
    ball_radius,
    bits,
    conditional_entropy,
    entropy,
    fano_best,
    fano_worst,
    information,
    leakage,
    maximin_information,
    relative_disarray,
    symmetrised_leakage,
    taxicab_partition,
)
from gateway.privacy.intervals import Interval, atoms, cells, closed

Pair = tuple[int, int]

ranges = st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=20)


def remaining(pairs: set[Pair]) -> list[int]:
    """|⟦X|y⟧| for each y."""
    return [len({x for x, other in pairs if other == y}) for y in {y for _, y in pairs}]


def reversed_pairs(pairs: set[Pair]) -> set[Pair]:
    return {(y, x) for x, y in pairs}


@settings(deadline=None)
@given(ranges)
def test_entropies_and_leakages_are_their_definitions(pairs: set[Pair]) -> None:
    joint = JointRange.of_pairs(pairs)
    possible, left = len({x for x, _ in pairs}), remaining(pairs)
    assert entropy(joint) == log2(possible)
    assert conditional_entropy(joint) == max(log2(size) for size in left)
    assert relative_disarray(joint) == min(log2(size) for size in left)
    assert isclose(information(joint), min(log2(possible / size) for size in left), abs_tol=1e-12)
    assert isclose(leakage(joint), max(log2(possible / size) for size in left), abs_tol=1e-12)
    backwards = leakage(JointRange.of_pairs(reversed_pairs(pairs)))
    assert leakage(joint.swapped) == backwards
    assert symmetrised_leakage(joint) == min(leakage(joint), backwards)


def taxicab_connected(pairs: set[Pair]) -> list[set[Pair]]:
    """Grow taxicab paths pair by pair: a step keeps x or keeps y."""
    unseen, found = set(pairs), []
    while unseen:
        cell, frontier = set(), {unseen.pop()}
        while frontier:
            cell |= frontier
            frontier = {p for p in pairs - cell if any(p[0] == q[0] or p[1] == q[1] for q in frontier)}
        unseen -= cell
        found.append(cell)
    return found


@settings(deadline=None)
@given(ranges)
def test_the_taxicab_partition_is_that_of_taxicab_paths(pairs: set[Pair]) -> None:
    joint = JointRange.of_pairs(pairs)
    cells_found = taxicab_connected(pairs)
    assert maximin_information(joint) == log2(len(cells_found)) == maximin_information(joint.swapped)
    order = list(dict.fromkeys(x for x, _ in pairs))
    labels = dict(zip(order, taxicab_partition(joint).tolist(), strict=True))
    assert len({frozenset(labels[x] for x, _ in cell) for cell in cells_found}) == len(cells_found)


@settings(max_examples=40, deadline=None)
@given(st.sets(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=9))
def test_no_other_common_knowledge_is_finer(pairs: set[Pair]) -> None:
    """I* by definition: the finest labels of x that y determines as well, over all labels there are."""
    xs = sorted({x for x, _ in pairs})

    def agreed(labels: tuple[int, ...]) -> bool:
        of = dict(zip(xs, labels, strict=True))
        return all(of[a] == of[b] for a, y in pairs for b, other in pairs if y == other)

    finest = max(len(set(labels)) for labels in labellings(len(xs)) if agreed(labels))
    assert maximin_information(JointRange.of_pairs(pairs)) == log2(finest)


def labellings(n: int) -> list[tuple[int, ...]]:
    """All set partitions of n elements, as restricted growth strings."""
    grown: list[tuple[int, ...]] = [()]
    for _ in range(n):
        grown = [(*labels, new) for labels in grown for new in range(max(labels, default=-1) + 2)]
    return grown


@settings(max_examples=300, deadline=None)
@given(ranges)
def test_maximin_information_is_at_most_the_symmetrised_leakage(pairs: set[Pair]) -> None:
    """Proposition 1 in exact ratios: cells ≤ |⟦X⟧|/min|⟦X|y⟧| and the same from y; and I ≤ L."""
    joint = JointRange.of_pairs(pairs)
    number = len(taxicab_connected(pairs))
    for side in (joint, joint.swapped):
        assert 1 <= number <= side.size() / min(side.sizes())
        assert information(side) <= leakage(side)
    assert 0 <= maximin_information(joint) <= symmetrised_leakage(joint) + 1e-12


@settings(deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=12))
def test_a_deterministic_mechanism_tells_the_logarithm_of_its_outputs(outputs: list[int]) -> None:
    joint = JointRange.of_map(outputs)
    assert maximin_information(joint) == log2(len(set(outputs)))
    assert isclose(leakage(joint.swapped), log2(len(set(outputs))))


@pytest.mark.parametrize("k", [2, 3, 16])
def test_mixing_ln_and_log_breaks_proposition_1(k: int) -> None:
    """k equal cells: I* = log2 k. With L(X;Y) in nats the smaller of both leakages is ln k, below I*."""
    joint = JointRange.of_preimages(cells(range(k + 1)))
    mixed = min(log(joint.size() / min(joint.sizes())), leakage(joint.swapped))
    assert mixed < maximin_information(joint)
    assert maximin_information(joint) == symmetrised_leakage(joint) == log2(k)


def test_unrelated_variables_tell_nothing() -> None:
    joint = JointRange(np.ones((4, 3), np.bool_))
    assert information(joint) == leakage(joint) == leakage(joint.swapped) == maximin_information(joint) == 0


def test_leakage_is_not_symmetric() -> None:
    joint = JointRange.of_map([0, 1, 1, 1])
    assert (leakage(joint), leakage(joint.swapped)) == (2, 1)


# --- intervals ---------------------------------------------------------------------------------------

fractions = st.fractions(-3, 3, max_denominator=6)


@st.composite
def unions(draw: st.DrawFn) -> list[Interval]:
    """A union of up to three intervals, points among them, with any ends open or closed."""
    pieces = []
    for _ in range(draw(st.integers(1, 3))):
        low, high = sorted((draw(fractions), draw(fractions)))
        flags = (True, True) if low == high else (draw(st.booleans()), draw(st.booleans()))
        pieces.append(Interval(low, high, *flags))
    return pieces


def merged_length(union: list[Interval]) -> Fraction:
    """The length of a union, by sweeping over its pieces in order."""
    length, reached = Fraction(0), Fraction(-100)
    for piece in sorted(union, key=lambda piece: piece.low):
        length += max(Fraction(0), piece.high - max(piece.low, reached))
        reached = max(reached, piece.high)
    return length


def meet(one: list[Interval], other: list[Interval]) -> bool:
    """Whether two unions share a point, by comparing ends."""

    def touch(a: Interval, b: Interval) -> bool:
        low, high = max(a.low, b.low), min(a.high, b.high)
        return low < high or (low == high and low in a and low in b)

    return any(touch(a, b) for a in one for b in other)


@settings(max_examples=150, deadline=None)
@given(st.lists(unions(), min_size=1, max_size=5))
def test_interval_ranges_are_measured_and_connected_as_sets(preimages: list[list[Interval]]) -> None:
    lengths = [merged_length(union) for union in preimages]
    everything = [piece for union in preimages for piece in union]
    if merged_length(everything) == 0:
        with pytest.raises(ValueError, match="not all 0"):
            JointRange.of_preimages(preimages)
        return
    joint = JointRange.of_preimages(preimages)
    assert joint.size() == merged_length(everything)
    assert joint.sizes() == lengths
    linked = {
        (i, j) for i, one in enumerate(preimages) for j, other in enumerate(preimages) if meet(one, other)
    }
    assert maximin_information(joint) == log2(len(taxicab_connected(linked)))
    assert leakage(joint) == (bits(joint.size() / min(lengths)) if min(lengths) else inf)
    assert maximin_information(joint) <= symmetrised_leakage(joint) + 1e-12


def test_a_shared_end_links_two_cells_and_a_half_open_one_does_not() -> None:
    assert maximin_information(JointRange.of_preimages([[closed(0, 1)], [closed(1, 2)]])) == 0
    assert maximin_information(JointRange.of_preimages(cells([0, 1, 2]))) == 1


def test_an_output_of_a_single_point_leaks_without_bound() -> None:
    joint = JointRange.of_preimages([[closed(0, 0)], [Interval(Fraction(0), Fraction(1), closed_low=False)]])
    assert leakage(joint) == inf
    assert relative_disarray(joint) == -inf
    assert symmetrised_leakage(joint) == maximin_information(joint) == 1


def test_unequal_cells_leak_more_about_x_than_their_number() -> None:
    """Theory A4: cells of 1 and 7: I* is one bit, L(X;Y) three."""
    joint = JointRange.of_preimages(cells([0, 1, 8]))
    assert (maximin_information(joint), leakage(joint), information(joint)) == (1, 3, bits(Fraction(8, 7)))


def test_atoms_leave_out_gaps() -> None:
    held, lengths = atoms([[closed(0, 1), closed(5, 6)]])
    assert held.all()
    assert list(map(int, lengths)) == [0, 0, 0, 0, 1, 1]


@pytest.mark.parametrize(("low", "high"), [(1, 0), (1, 1)])
def test_an_interval_without_a_point_is_refused(low: int, high: int) -> None:
    with pytest.raises(ValueError, match="no point"):
        Interval(Fraction(low), Fraction(high))


@pytest.mark.parametrize("edges", [[0], [1, 0], [0, 0, 1]])
def test_cells_need_increasing_edges(edges: list[int]) -> None:
    with pytest.raises(ValueError, match="increasing"):
        cells(edges)


@pytest.mark.parametrize(
    "build",
    [
        lambda: JointRange(np.zeros((0, 0), np.bool_)),
        lambda: JointRange(np.array([[True], [False]])),
        lambda: JointRange(np.array([[True, False]])),
    ],
)
def test_a_value_that_occurs_with_nothing_is_refused(build: Callable[[], JointRange]) -> None:
    with pytest.raises(ValueError, match="at least one pair"):
        build()


@pytest.mark.parametrize("measure", [(1,), (1, -1), (0, 0)])
def test_measures_fit_or_are_refused(measure: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="as many measures"):
        JointRange(np.ones((2, 1), np.bool_), tuple(Fraction(m) for m in measure))


def test_a_million_pairs_are_partitioned_at_once() -> None:
    """A staircase of 3,000 steps is one cell, the diagonal is 3,000: paths as long as they get."""
    n = 3_000
    diagonal = np.eye(n, dtype=np.bool_)
    assert maximin_information(JointRange(diagonal)) == log2(n)
    assert maximin_information(JointRange(diagonal | np.eye(n, k=1, dtype=np.bool_))) == 0


# --- Fano ------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.sets(fractions, min_size=2, max_size=8))
def test_fano_is_attained_by_interval_cells(ends: set[Fraction]) -> None:
    """In one dimension the best estimate is the mid-point, and it errs by exactly half a cell."""
    edges = sorted(ends)
    joint = JointRange.of_preimages(cells(edges))
    errors = [(high - low) / 2 for low, high in pairwise(edges)]
    assert isclose(fano_worst(joint), max(errors))
    assert isclose(fano_best(joint), min(errors))


@settings(max_examples=100, deadline=None)
@given(st.lists(unions(), min_size=1, max_size=4))
def test_no_estimate_beats_fano_on_unions_of_intervals(preimages: list[list[Interval]]) -> None:
    """The best estimate of a union is the middle of its hull."""
    errors = [(max(p.high for p in u) - min(p.low for p in u)) / 2 for u in preimages]
    if any(merged_length(union) for union in preimages):
        joint = JointRange.of_preimages(preimages)
        assert fano_worst(joint) <= float(max(errors)) + 1e-9
        assert fano_best(joint) <= float(min(errors)) + 1e-9


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_fano_in_several_dimensions(dimension: int) -> None:
    """A cube cut into boxes: the best estimate is a box's centre, its error half the diagonal."""
    halves = [(Fraction(1, 4), Fraction(3, 4))] * dimension
    boxes: list[tuple[Fraction, ...]] = [()]
    for sides in halves:
        boxes = [(*box, side) for box in boxes for side in sides]
    volumes = tuple(np.prod(np.array(box, dtype=object)) for box in boxes)
    joint = JointRange(np.eye(len(boxes), dtype=np.bool_), volumes)
    diagonals = [sqrt(sum(float(side) ** 2 for side in box)) / 2 for box in boxes]
    assert fano_worst(joint, dimension) <= max(diagonals) + 1e-12
    assert fano_best(joint, dimension) <= min(diagonals) + 1e-12
    assert fano_worst(joint, dimension) > 0.5 * max(diagonals)


@pytest.mark.parametrize(
    ("dimension", "unit_ball"), [(1, 2.0), (2, pi), (3, 4 * pi / 3), (4, pi**2 / 2), (5, 8 * pi**2 / 15)]
)
def test_fano_is_attained_by_balls(dimension: int, unit_ball: float) -> None:
    assert isclose(ball_radius(Fraction(unit_ball * 3**dimension), dimension), 3)


def test_the_radius_of_nothing_is_0_and_of_no_dimension_undefined() -> None:
    assert ball_radius(Fraction(0), 3) == 0
    with pytest.raises(ValueError, match="at least 1"):
        ball_radius(Fraction(1), 0)


def test_logarithms_of_ratios_beyond_doubles() -> None:
    assert bits(Fraction(1 << 5000, 1 << 7000)) == -2000
    assert [a - b for a, b in combinations((bits(Fraction(n, 4)) for n in (1, 2, 4)), 2)] == [-1, -2, -1]
