"""Composition, odometers and filters, against counting and against trying."""

from __future__ import annotations

from itertools import combinations, product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.privacy import (
    BudgetSpentError,
    Channel,
    CompositionError,
    Filter,
    Odometer,
    additive,
    coarsened_levels,
    composed,
    microbits,
    refined,
)

channels = st.builds(
    Channel,
    levels=st.integers(1, 6),
    reads=st.sampled_from(["x", "y"]),
    monotone=st.booleans(),
    stateless=st.booleans(),
)


def steps(cuts: tuple[int, ...], size: int, *, falling: bool) -> list[int]:
    """A monotone step function of 0 … size−1, as a table."""
    rising = [sum(x >= cut for cut in cuts) for x in range(size)]
    return [len(cuts) - y for y in rising] if falling else rising


def test_refined_composition_is_the_most_that_monotone_functions_of_one_integer_reach_together() -> None:
    """All pairs of step functions on 8 integers, rising and falling: never more, and attained."""
    size = 8
    for k, m in product(range(1, 5), repeat=2):
        most = 0
        for first, second in product(
            combinations(range(1, size), k - 1), combinations(range(1, size), m - 1)
        ):
            for falling in (False, True):
                tables = (steps(first, size, falling=False), steps(second, size, falling=falling))
                most = max(most, len(set(zip(*tables, strict=True))))
        assert most == min(refined([Channel(k, "x"), Channel(m, "x")]), size)


@given(st.lists(st.tuples(st.sets(st.integers(1, 29), max_size=4), st.booleans()), min_size=1, max_size=5))
def test_refined_composition_bounds_any_number_of_rising_and_falling_functions(
    functions: list[tuple[set[int], bool]],
) -> None:
    tables = [steps(tuple(sorted(cuts)), 30, falling=falling) for cuts, falling in functions]
    together = len(set(zip(*tables, strict=True)))
    assert together <= refined([Channel(len(cuts) + 1, "x") for cuts, _ in functions])
    if len({cut for cuts, _ in functions for cut in cuts}) == sum(len(cuts) for cuts, _ in functions):
        assert together == refined([Channel(len(cuts) + 1, "x") for cuts, _ in functions])


def test_functions_that_are_not_monotone_reach_more_than_refined_composition() -> None:
    """Why the condition stands: bits of one integer, two levels each, reach 4 together and not 3."""
    tables = [[x & 1 for x in range(4)], [x >> 1 for x in range(4)]]
    assert len(set(zip(*tables, strict=True))) == 4 > refined([Channel(2, "x")] * 2)


@given(st.lists(channels, max_size=5))
def test_composed_levels_lie_between_the_largest_and_the_product(parts: list[Channel]) -> None:
    joint = composed(parts)
    assert max((part.levels for part in parts), default=1) <= joint <= additive(parts)
    assert additive(parts) == prod(part.levels for part in parts)


@given(st.lists(channels, max_size=5))
def test_composed_merges_by_integer_what_may_merge_and_multiplies_the_rest(parts: list[Channel]) -> None:
    expected = 1
    for name in ("x", "y"):
        merging = [c.levels for c in parts if c.reads == name and c.monotone and c.stateless]
        expected *= 1 + sum(k - 1 for k in merging)
    expected *= prod(c.levels for c in parts if not (c.monotone and c.stateless))
    assert composed(parts) == expected
    assert composed(list(reversed(parts))) == expected


@given(st.lists(channels, min_size=1, max_size=4))
def test_refined_composition_is_refused_exactly_where_its_conditions_fail(parts: list[Channel]) -> None:
    allowed = all(c.monotone and c.stateless for c in parts) and len({c.reads for c in parts}) == 1
    if allowed:
        assert refined(parts) == composed(parts)
    else:
        with pytest.raises(CompositionError, match="multiply"):
            refined(parts)


def test_a_refusal_says_which_condition_fails() -> None:
    for channel, reason in (
        (Channel(3, "x", stateless=False), "feedback"),
        (Channel(3, "x", monotone=False), "not monotone"),
        (Channel(3, "y"), "different integers"),
    ):
        with pytest.raises(CompositionError, match=reason):
            refined([Channel(2, "x"), channel])


# --- odometers --------------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.integers(1, 50), max_size=4), max_size=4))
def test_odometers_add_in_sequence_and_take_the_largest_over_disjoint_households(
    runs: list[list[int]],
) -> None:
    parts = []
    for levels in runs:
        part = Odometer()
        for k in levels:
            part = part.charged(k)
        parts.append(part)
    spent = [sum(map(microbits, levels)) for levels in runs]
    assert [part.spent for part in parts] == spent
    assert Odometer.in_sequence(parts) == Odometer(sum(spent))
    assert Odometer.in_parallel(parts) == Odometer(max(spent, default=0))
    assert Odometer.in_sequence(parts).bits == sum(spent) / 1e6


# --- filters ------------------------------------------------------------------------------------------------


class Plain:
    """The definition: a list of what was paid, and when."""

    def __init__(self, budgets: list[tuple[int, int | None]]) -> None:
        self.budgets = budgets
        self.paid: list[tuple[int, int]] = []

    def left(self, at: int) -> list[int]:
        return [
            budget
            - sum(price for when, price in self.paid if window is None or when // window == at // window)
            for budget, window in self.budgets
        ]

    def charge(self, levels: int, at: int) -> bool:
        fits = all(microbits(levels) <= left for left in self.left(at))
        if fits:
            self.paid.append((at, microbits(levels)))
        return fits


def nested(budgets: list[tuple[int, int | None]]) -> Filter:
    made: Filter | None = None
    for budget, window in budgets:
        made = Filter(budget, window, made)
    assert made is not None
    return made


budgets_of = st.lists(
    st.tuples(st.integers(0, 12_000_000), st.none() | st.integers(1, 12)), min_size=1, max_size=3
)
requests_of = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 4)), max_size=25)


@given(budgets_of, requests_of)
def test_nested_filters_pay_exactly_what_all_of_them_can_pay(
    budgets: list[tuple[int, int | None]], requests: list[tuple[int, int]]
) -> None:
    """Against the list of all payments: windows turn, refusals charge nothing anywhere, and say what is wrong."""
    budget, plain, at = nested(budgets), Plain(budgets), 0
    for levels, step in requests:
        at += step
        left = plain.left(at)
        if plain.charge(levels, at):
            budget = budget.charged(levels, at)
        else:
            with pytest.raises(BudgetSpentError, match=f"{microbits(levels) / 1e6:.6f} bits") as told:
                budget.charged(levels, at)
            # Any filter that cannot pay may be the one that speaks.
            turns = [None if w is None else (at // w + 1) * w for _, w in budgets]
            assert (told.value.left, told.value.turns) in list(zip(left, turns, strict=True))
            assert told.value.asked == microbits(levels) > told.value.left
        assert budget.left(at) == plain.left(at)[-1]


@given(budgets_of, requests_of, st.integers(1, 9))
def test_the_releases_that_remain_are_those_that_trying_finds(
    budgets: list[tuple[int, int | None]], requests: list[tuple[int, int]], levels: int
) -> None:
    budget, at = nested(budgets), 0
    for asked, step in requests:
        at += step
        try:
            budget = budget.charged(asked, at)
        except BudgetSpentError:
            continue
    remaining = budget.releases_remaining(levels, at)
    if levels == 1:
        assert remaining is None
        assert budget.charged(1, at).left(at) == budget.left(at)
        return
    assert remaining is not None
    tried = 0
    while tried <= remaining:
        try:
            budget = budget.charged(levels, at)
        except BudgetSpentError:
            break
        tried += 1
    assert tried == remaining


def test_a_refusal_names_what_is_asked_what_is_left_and_when_the_window_turns() -> None:
    day = Filter(5_000_000, window=24).charged(8, 30)
    with pytest.raises(
        BudgetSpentError, match=r"3\.000000 bits, 2\.000000 are left; the window turns at 48"
    ) as told:
        day.charged(8, 47)
    assert (told.value.asked, told.value.left, told.value.turns) == (3_000_000, 2_000_000, 48)
    assert day.charged(8, 48).left(48) == 2_000_000
    with pytest.raises(BudgetSpentError) as told:
        Filter(1, within=None).charged(2)
    assert told.value.turns is None


def test_time_does_not_go_back_behind_a_window() -> None:
    day = Filter(5_000_000, window=24).charged(8, 30)
    for call in (lambda: day.charged(2, 23), lambda: day.left(23)):
        with pytest.raises(ValueError, match="before the window"):
            call()


def test_a_filter_made_with_an_odometer_that_has_run_does_not_forget_it() -> None:
    """What was spent before counts, as a filter for ever has no other window."""
    assert Filter(10_000_000, odometer=Odometer(9_000_000)).left() == 1_000_000
    with pytest.raises(BudgetSpentError):
        Filter(10_000_000, odometer=Odometer(10_000_000)).charged(2)


# --- coarsening ---------------------------------------------------------------------------------------------


@given(st.integers(1, 300), st.integers(-5, 60_000_000), st.integers(1, 60))
def test_coarsened_levels_fit_and_are_the_most_that_do(levels: int, left: int, releases: int) -> None:
    most = coarsened_levels(levels, left, releases)
    assert 1 <= most <= levels
    assert most == 1 or releases * microbits(most) <= left
    assert most == levels or releases * microbits(most + 1) > left


def test_coarsening_refuses_no_levels_and_no_releases() -> None:
    for levels, releases in ((0, 1), (1, 0)):
        with pytest.raises(ValueError, match="at least one"):
            coarsened_levels(levels, 1, releases)
