"""Certified levels: [NP] Theorem 8 is one cell too generous, ours is not, and no cell is given away."""

from __future__ import annotations

from math import lcm

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.privacy import (
    MAX_CELLS,
    Codebook,
    Groups,
    IntArray,
    Reach,
    certified_levels,
    group_codebook,
    paper_levels,
    reach_of,
    uniform,
)


def theorem_8(span: int, sensitivity: int, reach: int) -> int:
    """Return the cells that [NP] Theorem 8 allows."""
    return reach * span // sensitivity


def members(*ranges: tuple[int, int]) -> Reach:
    """Return what members with these ranges can do to their sum."""
    lower, upper = np.array(ranges, np.int64).T
    return Reach.of(lower, upper)


def most_outputs(book: Codebook, width: int) -> int:
    """Count what one member of range ``width`` can reach, over every total that the others can have."""
    symbols = book.encode(np.arange(book.lower, book.upper + 1))
    return max(len(set(symbols[total : total + width + 1].tolist())) for total in range(len(symbols) - width))


def test_theorem_8_breaks_definition_1_for_a_mean_of_two() -> None:
    """Theory E1: two readings in [0,1], ε = 1; q = 4; the other at 0.1: three outputs, 3 > 2¹. In mW."""
    pair = members((0, 1_000), (0, 1_000))
    assert paper_levels(2_000, 1_000, 2) == theorem_8(2_000, 1_000, 2) == 4
    papers = group_codebook(pair, 2, calibration="paper")
    assert papers.cuts.tolist() == uniform(0, 2_000, 4).cuts.tolist()
    assert set(papers.encode(np.arange(0, 1_001) + 100).tolist()) == {0, 1, 2}
    ours = group_codebook(pair, 2)
    assert ours.levels == certified_levels(2_000, 1_000, 2) == 2
    for other in range(1_001):
        assert len(set(ours.encode(np.arange(0, 1_001) + other).tolist())) <= 2


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("k", [2, 3, 4, 5, 8])
def test_the_papers_levels_always_exceed_and_ours_never_nor_could_one_more(n: int, k: int) -> None:
    """A mean of n equal homes, every total of the others: paper > k, certified ≤ k, certified + 1 > k."""
    width = 2 * lcm(k, k - 1)
    width *= -(-120 // width)
    homes = members(*[(-7, -7 + width)] * n)
    low, span = -7 * n, n * width
    papers = group_codebook(homes, k, calibration="paper")
    assert papers.levels == theorem_8(span, width, k)
    assert most_outputs(papers, width) == k + 1
    ours = group_codebook(homes, k)
    assert most_outputs(ours, width) == k
    assert most_outputs(uniform(low, low + span, ours.levels + 1), width) > k


@pytest.mark.parametrize("k", [1, 2, 5, 16])
def test_a_single_member_has_k_levels_as_the_paper_says(k: int) -> None:
    assert certified_levels(1_000, 1_000, k) == k
    assert most_outputs(group_codebook(members((0, 1_000)), k), 1_000) == k


@pytest.mark.parametrize(("sensitivity", "reach"), [(0, 2), (-1, 2), (10, 0)])
def test_a_group_without_a_range_or_a_level_is_refused(sensitivity: int, reach: int) -> None:
    for rule in (certified_levels, paper_levels):
        with pytest.raises(ValueError, match="needs a member with a range"):
            rule(100, sensitivity, reach)


def test_members_of_whom_none_can_move_the_sum_are_refused() -> None:
    for ranges in ([], [(5, 5)], [(-3, -3), (0, 0)]):
        ends = np.array(ranges, np.int64).reshape(-1, 2).T
        with pytest.raises(ValueError, match="needs a member with a range"):
            Reach.of(*ends)


def test_more_cells_than_there_are_milliwatts_or_may_be_are_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        group_codebook(members((0, 4)), 6)
    with pytest.raises(ValueError, match=str(MAX_CELLS)):
        group_codebook(members(*[(0, 10**10)] * 3), MAX_CELLS)


ranges = st.lists(st.tuples(st.integers(-50, 50), st.integers(1, 40)), min_size=1, max_size=5)


@settings(deadline=None)
@given(ranges, st.integers(1, 6))
def test_unequal_members_reach_at_most_what_was_asked(homes: list[tuple[int, int]], reach: int) -> None:
    """Each member, over every total of the others, even ones that they cannot have."""
    together = members(*((low, low + width) for low, width in homes))
    lowest, widths = sum(low for low, _ in homes), [width for _, width in homes]
    assert together == Reach(lowest, lowest + sum(widths), max(widths))
    if certified_levels(sum(widths), max(widths), reach) > sum(widths):
        return
    book = group_codebook(together, reach)
    assert (book.lower, book.upper) == (together.lower, together.upper)
    for width in widths:
        assert most_outputs(book, width) <= reach


def counted_reach(cuts: IntArray, sensitivity: int) -> int:
    """Slide a member's range over the whole line and count the cells it touches."""
    low, high = int(cuts.min(initial=0)) - sensitivity - 1, int(cuts.max(initial=0)) + 1
    touched = [
        np.searchsorted(cuts, np.arange(at, at + sensitivity + 1), side="right") for at in range(low, high)
    ]
    return max(len(set(cells.tolist())) for cells in touched)


@settings(max_examples=150, deadline=None)
@given(st.sets(st.integers(-60, 60), max_size=12), st.integers(0, 50))
def test_reach_is_the_most_cells_a_window_touches_whatever_the_cuts(cuts: set[int], sensitivity: int) -> None:
    line = np.array(sorted(cuts), np.int64)
    assert reach_of(line, sensitivity) == counted_reach(line, sensitivity)


def test_unequal_cuts_reach_by_the_densest_window() -> None:
    """Three cuts within 3 mW, others far apart: the rule for equal cells would say 2."""
    cuts = np.array([0, 100, 101, 102, 200])
    assert reach_of(cuts, 2) == 3
    assert reach_of(cuts, 3) == 4
    assert reach_of(cuts, 100) == 4
    assert reach_of(cuts, 101) == 5


def test_reach_per_group_is_of_its_widest_member() -> None:
    lower, upper = np.array([0, 0, -20]), np.array([10, 40, 60])
    books = [Codebook(0, 50, np.array([10, 20, 40]), np.array([5, 15, 30, 45])), uniform(-20, 70, 9)]
    groups = Groups([np.array([0, 1]), np.array([2, 0])], books)
    assert groups.reach(lower, upper).tolist() == [most_outputs(books[0], 40), most_outputs(books[1], 80)]


def test_a_roll_without_groups_has_none() -> None:
    groups = Groups([], [])
    assert len(groups) == 0
    assert groups.reach(np.array([0]), np.array([9])).tolist() == []
    assert groups.shelf is None
    assert groups.sums(np.array([5])).tolist() == []
    assert groups.feedback.tolist() == []
    assert groups.any_member(np.array([True])).tolist() == []


def test_any_member_is_asked_of_each_group_alone() -> None:
    book = uniform(0, 20, 2)
    groups = Groups([np.array([0, 1]), np.array([3]), np.array([2, 0])], [book, book, book])
    assert groups.any_member(np.array([False, True, False, False])).tolist() == [True, False, False]
    assert groups.any_member(np.array([True, False, False, True])).tolist() == [True, True, True]
