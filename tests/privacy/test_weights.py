"""Public weights in groups: span, sensitivity and reach by enumeration, whatever their sign and size."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy.tracing import Roll, Together, book, said

from gateway.privacy import Groups, Policy, Reach, Rounding, Shelf, certified_levels, group_codebook, uniform

Member = tuple[int, int, int]
"""Lower end, width, weight."""

members_of_small_groups = st.lists(
    st.tuples(st.integers(-5, 5), st.integers(0, 4), st.integers(-3, 3)), min_size=1, max_size=3
)


def _columns(members: list[Member]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    lower, width, weight = (np.array(column, np.int64) for column in zip(*members, strict=True))
    return lower, lower + width, weight


@given(members_of_small_groups)
def test_span_and_sensitivity_are_those_of_all_sums(members: list[Member]) -> None:
    lower, upper, weights = _columns(members)
    sides = [range(a, b + 1) for a, b in zip(lower.tolist(), upper.tolist(), strict=True)]
    sums = [sum(w * x for w, x in zip(weights.tolist(), xs, strict=True)) for xs in product(*sides)]
    moves = [abs(w) * (len(side) - 1) for w, side in zip(weights.tolist(), sides, strict=True)]
    if max(moves) == 0:
        with pytest.raises(ValueError, match="a range and a weight"):
            Reach.of(lower, upper, weights)
        return
    assert Reach.of(lower, upper, weights) == Reach(min(sums), max(sums), max(moves))


@settings(max_examples=60, deadline=None)
@given(members_of_small_groups, st.integers(2, 4))
def test_no_member_reaches_more_than_k_cells_of_a_weighted_sum(members: list[Member], reach: int) -> None:
    """Every total of the others, every integer of hers: at most k symbols, and no more than is charged."""
    lower, upper, weights = _columns(members)
    if int(((upper - lower) * abs(weights)).max()) == 0:
        return
    move = Reach.of(lower, upper, weights)
    if certified_levels(move.upper - move.lower, move.sensitivity, reach) > move.upper - move.lower + 1:
        return  # more cells than integers: refused, as any codebook
    cells = group_codebook(move, reach)
    shelf = Shelf(
        [uniform(int(a), int(b), 1) for a, b in zip(lower, upper, strict=True)], np.arange(len(members))
    )
    groups = Groups([np.arange(len(members))], [cells], [weights])
    (charged,) = groups.reach(shelf.lower, shelf.upper).tolist()
    sides = [range(a, b + 1) for a, b in zip(lower.tolist(), upper.tolist(), strict=True)]
    for one in range(len(members)):
        rest = [side if i != one else (0,) for i, side in enumerate(sides)]
        totals = {sum(w * x for w, x in zip(weights.tolist(), xs, strict=True)) for xs in product(*rest)}
        hers = int(weights[one]) * np.arange(lower[one], upper[one] + 1)
        seen = max(len(set(cells.encode(total + hers).tolist())) for total in totals)
        assert seen <= min(charged, reach)


def test_sums_are_weighted_exactly() -> None:
    rng = np.random.default_rng(3)
    values = rng.integers(-(10**12), 10**12, 50)
    weights = [rng.integers(-(10**5), 10**5, 20), rng.integers(-3, 4, 7)]
    members = [rng.permutation(50)[:20], rng.permutation(50)[:7]]
    groups = Groups(members, [uniform(0, 1, 1)] * 2, weights)
    exact = [
        sum(int(w) * int(values[m]) for m, w in zip(member, weight, strict=True))
        for member, weight in zip(members, weights, strict=True)
    ]
    assert groups.sums(values).tolist() == exact


@pytest.mark.parametrize("rounding", [Rounding.NEAREST, Rounding.FEEDBACK])
@pytest.mark.parametrize("weight", [-4, -1, 0, 1, 7])
def test_her_releases_together_stay_within_what_is_charged_for_any_weight(
    rounding: Rounding, weight: int
) -> None:
    """A negative weight makes the group fall where her own release rises: the cuts still merge on her line."""
    roll = Roll((book(-3, 9, 3), book(0, 12, 2)), (Together((0, 1), 3, rounding, (weight, 1)),))
    (cells,) = roll.policy.groups.shelf.codebooks  # type: ignore[union-attr]
    for household, other in product((0, 1), range(-3, 13)):
        outcomes = {
            said(roll.close(roll.start(), 0, [x, other] if household == 0 else [other, x]))
            for x in range(-4, 14)
        }
        assert len(outcomes) <= roll.policy.levels[household]
    if weight == 0:
        readings = ([x, 5] for x in range(-3, 10))
        assert len({int(roll.close(roll.start(), 0, r).group_symbols[0]) for r in readings}) == 1
    assert (cells.lower, cells.upper) == (min(-3 * weight, 9 * weight), max(-3 * weight, 9 * weight) + 12)


def test_a_large_weight_moves_the_whole_span_and_earns_no_more_than_k_cells() -> None:
    members = Reach.of(np.array([0, 0]), np.array([10, 10]), np.array([1_000_000, 1]))
    assert members == Reach(0, 10_000_010, 10_000_000)
    assert group_codebook(members, 4).levels == 4


def test_weights_whose_sums_leave_64_bits_are_refused_and_not_wrapped() -> None:
    """19 members of 1 GW with weights of a million: 1.9·10¹⁹ mW, more than an int64 holds."""
    lower, upper, weights = np.zeros(19, np.int64), np.full(19, 10**12), np.full(19, 10**6)
    with pytest.raises(ValueError, match=r"64|wide|large|exceed"):
        group_codebook(Reach.of(lower, upper, weights), 4)


def test_a_policy_charges_the_reach_of_its_weighted_groups() -> None:
    shelf = Shelf([uniform(0, 12, 3)], np.zeros(3, np.int64))
    weights = np.array([1, -2, 0])
    cells = group_codebook(Reach.of(np.zeros(3, np.int64), np.full(3, 12), weights), 4)
    policy = Policy.over(shelf, Groups([np.arange(3)], [cells], [weights]))
    assert policy.reach.tolist() == [4]
    assert policy.levels.tolist() == [6, 6, 6]
