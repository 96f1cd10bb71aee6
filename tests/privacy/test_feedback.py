"""Feedback (theory A3): totals stay exact, one release is charged for what it can say, and what that costs later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy.tracing import Roll, Together, book, enumerated, said

from gateway.audit.criticals import residual_interval
from gateway.privacy import (
    MISSING,
    Closed,
    Codebook,
    Groups,
    IntArray,
    Missing,
    Policy,
    Rounding,
    Shelf,
    State,
    both_ends,
    close_slot,
    feedback_levels,
    group_codebook,
    microbits,
    on_levels,
    refined,
    uniform,
)
from gateway.privacy.composition import Channel
from gateway.privacy.groups import Reach, reach_in

FEEDBACK = Rounding.FEEDBACK
FAR = 10**15


@st.composite
def level_sets(draw: st.DrawFn, most_width: int = 14) -> Codebook:
    """Levels with both ends of a small range, at unequal distances."""
    lower, width = draw(st.integers(-20, 20)), draw(st.integers(2, most_width))
    inner = draw(st.sets(st.integers(lower + 1, lower + width - 1), max_size=4))
    levels = np.array(sorted({lower, lower + width} | inner), np.int64)
    return on_levels(lower, lower + width, levels, FEEDBACK)


def alone(codebook: Codebook, **rules: object) -> Roll:
    return Roll((codebook,), **rules)  # type: ignore[arg-type]


def left_over(roll: Roll, values: Sequence[int]) -> list[int]:
    """Return what is left over after every slot, the state before them included."""
    state, kept = roll.start(), [0]
    for slot, value in enumerate(values):
        state = roll.close(state, slot, [value]).state
        kept.append(int(state.residual[0]))
    return kept


# --- what is left over ----------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(level_sets())
def test_what_is_left_over_takes_exactly_the_interval_of_half_the_largest_gap_for_ever(
    codebook: Codebook,
) -> None:
    """Every integer that any reading can leave, from every integer that was left before, until nothing is new."""
    roll = alone(codebook)
    reached, fresh = {0}, {0}
    while fresh:
        state = roll.start()
        pairs = list(product(sorted(fresh), range(codebook.lower - 1, codebook.upper + 2)))
        fresh = {
            int(roll.close(replace(state, residual=np.array([e])), 0, [x]).state.residual[0])
            for e, x in pairs
        } - reached
        reached |= fresh
    least, most = residual_interval(codebook)
    assert reached == set(range(least, most + 1))
    assert max(-least, most) * 2 <= codebook.largest_gap


@settings(max_examples=80, deadline=None)
@given(st.data(), level_sets(), st.sampled_from([Missing.HOLD, Missing.FLOOR]))
def test_released_totals_stay_within_one_gap_over_every_horizon(
    data: st.DataObject, codebook: Codebook, missing: Missing
) -> None:
    """Against the clamped series, in which silence is her last released value, or the lower end."""
    readings = st.one_of(
        st.integers(codebook.lower - 3, codebook.upper + 3), st.sampled_from([MISSING, -FAR, FAR])
    )
    values = data.draw(st.lists(readings, min_size=1, max_size=30))
    roll = alone(codebook, missing=missing)
    state, held, off = roll.start(), codebook.lower, [0]
    for slot, value in enumerate(values):
        state = roll.close(state, slot, [value]).state
        substitute = held if missing is Missing.HOLD else codebook.lower
        used = substitute if value == MISSING else min(max(value, codebook.lower), codebook.upper)
        held = int(state.held[0])
        off.append(off[-1] + held - used)
    assert max(off) - min(off) < codebook.largest_gap


@settings(max_examples=80, deadline=None)
@given(st.data(), level_sets())
def test_with_a_symbol_for_silence_the_totals_of_the_slots_with_readings_stay_within_one_gap(
    data: st.DataObject, codebook: Codebook
) -> None:
    readings = st.one_of(st.integers(codebook.lower, codebook.upper), st.just(MISSING))
    values = data.draw(st.lists(readings, min_size=1, max_size=30))
    roll = alone(codebook, missing=Missing.SYMBOL)
    state, off = roll.start(), [0]
    for slot, value in enumerate(values):
        state = roll.close(state, slot, [value]).state
        if value != MISSING:
            off.append(off[-1] + int(state.held[0]) - value)
    assert max(off) - min(off) < codebook.largest_gap


def test_the_symbol_for_silence_is_said_of_silence_only() -> None:
    """6 leaves −4 over; a following 0 is a reading, whatever was left over."""
    roll = alone(both_ends(0, 10, 2, FEEDBACK), missing=Missing.SYMBOL)
    state = roll.after([6])
    assert int(state.residual[0]) == -4
    assert roll.close(state, 1, [MISSING]).symbols.tolist() == [0]
    assert roll.close(state, 1, [0]).symbols.tolist() == [1]


@settings(max_examples=60, deadline=None)
@given(st.data(), level_sets())
def test_a_reading_never_gets_the_symbol_for_silence(data: st.DataObject, codebook: Codebook) -> None:
    values = data.draw(st.lists(st.integers(codebook.lower - 2, codebook.upper + 2), max_size=12))
    roll = alone(codebook, missing=Missing.SYMBOL)
    state = roll.start()
    for slot, value in enumerate(values):
        closed = roll.close(state, slot, [value])
        assert closed.symbols[0] > 0
        state = closed.state


def test_what_is_left_over_is_frozen_while_the_budget_is_spent() -> None:
    """Two paid slots of four: the two held ones keep it, whatever is read, and the next window goes on from it."""
    roll = alone(both_ends(0, 10, 2, FEEDBACK), budget=(2 * microbits(2),), window=4)
    for reading in (MISSING, 0, 3, 10, FAR):
        kept = left_over(roll, [3, 4, reading, reading])
        assert kept == [0, 3, -3, -3, -3]
    state = roll.after([3], [4], [0], [0])
    assert int(roll.close(state, 4, [8]).state.residual[0]) == 5 - 10 == -5


def test_what_is_left_over_is_frozen_while_a_symbol_says_that_there_is_no_reading() -> None:
    roll = alone(both_ends(0, 10, 3, FEEDBACK), missing=Missing.SYMBOL)
    assert left_over(roll, [2, MISSING, MISSING, 2]) == [0, 2, 2, 2, -1]


def test_fresh_windows_forget_what_was_left_over_and_others_do_not() -> None:
    for fresh, expected in ((True, [0, 2, 4, 2]), (False, [0, 2, 4, -4])):
        roll = alone(both_ends(0, 10, 2, FEEDBACK), fresh=fresh, window=2)
        assert left_over(roll, [2, 2, 2]) == expected


def test_fresh_windows_make_a_window_independent_of_those_before_it() -> None:
    """Every history of one window, then every reading of the next: what follows is the same."""
    for groups in ((), (Together((0, 1), 3, FEEDBACK),)):
        books = (book(0, 6, 2, FEEDBACK), book(0, 6, 2, FEEDBACK))
        roll = Roll(books, groups, missing=Missing.FLOOR, fresh=True, window=2)
        for reading in range(7):
            following = {
                said(roll.close(roll.after([a, 2], [b, 3]), 2, [reading, 1]))
                for a, b in product(range(7), repeat=2)
            }
            assert len(following) == 1


# --- how much a household can say -------------------------------------------------------------------------

PAIR = (book(0, 6, 2, FEEDBACK), book(0, 6, 2))
NEAREST_PAIR = (book(0, 6, 2), book(0, 6, 2))
TWO_PAID = 2 * microbits(2)

SCENES = {
    "alone": (Roll((book(0, 5, 3, FEEDBACK),)), 4),
    "alone, silence at the floor": (Roll((book(-2, 3, 3, FEEDBACK),), missing=Missing.FLOOR), 4),
    "alone, silence a symbol": (Roll((book(0, 5, 2, FEEDBACK),), missing=Missing.SYMBOL), 4),
    "budget runs out, windows turn": (Roll((book(0, 6, 2, FEEDBACK),), budget=(TWO_PAID,), window=4), 8),
    "the same with a symbol for silence": (
        Roll((book(0, 6, 2, FEEDBACK),), missing=Missing.SYMBOL, budget=(2 * microbits(3),), window=3),
        6,
    ),
    "the same, fresh windows": (
        Roll((book(0, 6, 2, FEEDBACK),), budget=(TWO_PAID,), window=4, fresh=True),
        8,
    ),
    "alone in front of a nearest group": (Roll(PAIR, (Together((0, 1), 3),)), 3),
    "group with feedback, own nearest": (Roll(NEAREST_PAIR, (Together((0, 1), 3, FEEDBACK),)), 4),
    "both with feedback": (Roll(PAIR, (Together((0, 1), 3, FEEDBACK),)), 3),
    "weights, one negative": (Roll(NEAREST_PAIR, (Together((0, 1), 3, FEEDBACK, (-2, 1)),)), 4),
    "group with feedback, she is spent on the way": (
        Roll(NEAREST_PAIR, (Together((0, 1), 3, FEEDBACK),), budget=(2 * microbits(6), 99_000_000), window=5),
        7,
    ),
    "group with feedback, the other is spent on the way": (
        Roll(NEAREST_PAIR, (Together((0, 1), 3, FEEDBACK),), budget=(99_000_000, 2 * microbits(6)), window=4),
        6,
    ),
    "group with feedback, both spent, fresh windows": (
        Roll(
            NEAREST_PAIR,
            (Together((0, 1), 2, FEEDBACK),),
            budget=(TWO_PAID * 2, TWO_PAID),
            window=5,
            fresh=True,
        ),
        7,
    ),
    "both with feedback, silence a symbol, she is spent": (
        Roll(
            (book(0, 4, 2, FEEDBACK), book(0, 4, 2)),
            (Together((0, 1), 2, FEEDBACK),),
            missing=Missing.SYMBOL,
            budget=(2 * microbits(6), 99_000_000),
            window=4,
        ),
        5,
    ),
    "both with feedback, silence at the floor, she is spent": (
        Roll(
            (book(0, 4, 2, FEEDBACK), book(0, 4, 2)),
            (Together((0, 1), 2, FEEDBACK),),
            missing=Missing.FLOOR,
            budget=(2 * microbits(4), 99_000_000),
            window=4,
        ),
        6,
    ),
    "a nearest group beside one with feedback": (
        Roll(
            NEAREST_PAIR, (Together((0, 1), 3, FEEDBACK), Together((0, 1), 2)), budget=(9_000_000, 9_000_000)
        ),
        3,
    ),
}


@pytest.mark.parametrize("name", SCENES)
def test_all_traces_say_at_most_the_product_of_the_charged_levels(name: str) -> None:
    """From every public prefix no more outputs follow than are charged; none but one while she is spent."""
    roll, slots = SCENES[name]
    for household in range(len(roll.books)):
        rest = [[(5 * slot + 2) % 7 for _ in roll.books] for slot in range(slots)]
        traces = enumerated(roll, rest, household)
        assert len(traces.sequences) > 1
        if "alone" in name and "nearest" not in name and roll.missing is not Missing.SYMBOL:
            assert len(traces.sequences) == traces.bound, "k sequences per slot are all there"


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_all_traces_say_at_most_the_charged_levels_in_any_small_roll_with_feedback(
    data: st.DataObject,
) -> None:
    """Levels, ranges, groups, weights, rules, budgets and windows as they come."""
    roundings = st.sampled_from([Rounding.NEAREST, FEEDBACK])
    books = tuple(
        book(lower, lower + data.draw(st.integers(3, 5)), 2, data.draw(roundings)) for lower in (-1, 2)
    )
    groups = tuple(
        Together((0, 1), data.draw(st.integers(2, 3)), data.draw(roundings), data.draw(weights))
        for weights in [st.sampled_from([None, (1, 2), (-1, 1), (0, 1)])] * data.draw(st.integers(0, 2))
    )
    budgets = st.integers(0, 9_000_000)
    roll = Roll(
        books,
        groups,
        missing=data.draw(st.sampled_from(Missing)),
        budget=data.draw(st.none() | st.tuples(budgets, budgets)),
        window=data.draw(st.integers(1, 3)),
        fresh=data.draw(st.booleans()),
    )
    others = data.draw(st.lists(st.tuples(st.integers(-2, 8), st.integers(-2, 8)), min_size=3, max_size=3))
    enumerated(roll, others, data.draw(st.integers(0, 1)))


def _keeps_carrying(policy: Policy, state: State, start: int, values: IntArray) -> Closed:
    """A mutant: a spent member's groups go on carrying what her earlier readings left over."""
    closed = close_slot(policy, state, start, values)
    rich = replace(policy, budget=np.full_like(policy.budget, 1 << 60))
    onward = close_slot(rich, state, start, np.where(closed.spent, state.held, values))
    after = replace(closed.state, group_residual=onward.state.group_residual)
    return replace(closed, group_symbols=onward.group_symbols, state=after)


def test_a_group_that_went_on_carrying_after_a_member_is_spent_would_speak_of_her_for_nothing() -> None:
    """The enumeration sees the leak that forgetting prevents."""
    roll, slots = SCENES["group with feedback, she is spent on the way"]
    with pytest.raises(AssertionError, match="outputs after"):
        enumerated(roll, [[0, 2]] * slots, close=_keeps_carrying)


def test_a_group_with_a_spent_member_is_nearest_and_forgets_until_all_can_pay() -> None:
    roll = Roll(NEAREST_PAIR, (Together((0, 1), 3, FEEDBACK),), budget=(microbits(6), 99_000_000), window=3)
    state = roll.after([5, 2])
    assert int(state.group_residual[0]) != 0
    (group,) = roll.policy.groups.shelf.codebooks  # type: ignore[union-attr]
    for slot in (1, 2):
        for other in range(7):
            closed = roll.close(state, slot, [6, other])
            assert closed.spent.tolist() == [True, False]
            hers = int(state.held[0])
            assert closed.group_symbols.tolist() == group.encode(np.array([hers + other])).tolist()
            assert closed.state.group_residual.tolist() == [0]
    state = roll.close(roll.close(state, 1, [6, 1]).state, 2, [6, 1]).state
    assert int(roll.close(state, 3, [5, 2]).state.group_residual[0]) != 0, "the window has turned"


def test_a_change_of_her_budget_rule_alone_does_not_let_a_group_speak_of_a_spent_member() -> None:
    """She runs out in the second window only: rules that change on the way, the state carried as it is."""
    pay = Roll(NEAREST_PAIR, (Together((0, 1), 3, FEEDBACK),), budget=(99_000_000,) * 2, window=2)
    poor = Roll(NEAREST_PAIR, (Together((0, 1), 3, FEEDBACK),), budget=(0, 99_000_000), window=2)
    traces = enumerated([pay, pay, poor, poor, pay], [[0, 3], [0, 4], [0, 5], [0, 1], [0, 2]])
    assert traces.spent == [False, False, True, True, False]


def test_group_totals_stay_within_one_gap_of_the_sum_of_what_its_members_used() -> None:
    rng = np.random.default_rng(1)
    roll = Roll((book(0, 40, 4), book(-10, 30, 3)), (Together((0, 1), 6, FEEDBACK, (2, -1)),))
    (group,) = roll.policy.groups.shelf.codebooks  # type: ignore[union-attr]
    state, off = roll.start(), [0]
    for slot in range(300):
        values = rng.integers(-15, 45, 2)
        closed = roll.close(state, slot, values.tolist())
        used = np.clip(values, [0, -10], [40, 30]) @ [2, -1]
        off.append(off[-1] + int(group.values[closed.group_symbols[0]]) - int(used))
        state = closed.state
    assert max(off) - min(off) < group.largest_gap


# --- what it costs later ------------------------------------------------------------------------------------


def _later(rounding: Rounding, slots: int, quiet: int) -> int:
    """How many outcomes one varied reading has in so many slots, when known ones follow it."""
    top = 2_000
    shelf = Shelf([book(0, top, 2, rounding)], np.zeros(top + 1, np.int64))
    policy = Policy.over(shelf, Groups([], []))
    state, values, seen = State.initial(policy), np.arange(top + 1), []
    for slot in range(slots):
        closed = close_slot(policy, state, slot, values)
        seen.append(closed.symbols)
        state, values = closed.state, np.full(top + 1, quiet)
    return len(np.unique(np.stack(seen), axis=1).T)


def test_later_releases_speak_of_an_earlier_reading() -> None:
    """Theory A3's price: a day of slots after one varied reading, 49 outcomes instead of 2."""
    assert _later(Rounding.NEAREST, 48, 617) == 2
    assert _later(FEEDBACK, 48, 617) == 49


def test_refined_composition_fails_with_feedback_and_the_product_is_charged() -> None:
    """Theory A2: her own release with 3 levels carries, a group with 4 does not; 6 is too few, 12 are charged."""
    roll = Roll((book(0, 12, 3, FEEDBACK),), (Together((0,), 4),))
    least, most = residual_interval(roll.books[0])
    outcomes = {
        said(roll.close(replace(roll.start(), residual=np.array([e])), 0, [x]))
        for e, x in product(range(least, most + 1), range(13))
    }
    assert refined([Channel(3, "x"), Channel(4, "x")]) == 6
    assert len(outcomes) == 8
    assert roll.policy.levels.tolist() == [12]


def test_refined_composition_fails_with_feedback_on_a_household_s_own_traces() -> None:
    """Her own past leaves enough over, given all that was said, for more than 6 outputs to follow."""
    roll = Roll((book(0, 12, 3, FEEDBACK),), (Together((0,), 4),))
    kept, most = {0}, 0
    for slot in range(6):
        following: dict[tuple[int, ...], set[int]] = {}
        for e, x in product(kept, range(13)):
            closed = roll.close(replace(roll.start(), residual=np.array([e])), slot, [x])
            following.setdefault(said(closed), set()).add(int(closed.state.residual[0]))
        most, kept = max(most, len(following)), max(following.values(), key=len)
    assert 6 < most <= 12


# --- the number of levels of a group with feedback ------------------------------------------------------------


def brute_reach(group: Codebook, sensitivity: int) -> int:
    """One member moves the sum by up to ``sensitivity``, what is left over is anything in its interval."""
    least, most = residual_interval(group)
    return max(
        len(
            set(
                group.encode(
                    np.clip(np.arange(t + least, t + sensitivity + most + 1), group.lower, group.upper)
                )
            )
        )
        for t in range(group.lower, group.upper - sensitivity + 1)
    )


@pytest.mark.parametrize("reach", [2, 3, 4, 5, 8])
def test_one_member_reaches_at_most_k_levels_of_a_group_with_feedback(reach: int) -> None:
    for span, sensitivity in product(range(2, 61), range(1, 21)):
        if sensitivity > span or feedback_levels(span, sensitivity, reach) > span:
            continue
        group = group_codebook(Reach(-7, span - 7, sensitivity), reach, FEEDBACK)
        assert group.values[[0, -1]].tolist() == [-7, span - 7]
        assert brute_reach(group, sensitivity) <= reach
        assert reach_in(group, sensitivity) >= brute_reach(group, sensitivity), "what is charged covers it"


def test_the_rule_for_levels_with_feedback_is_the_theory_s() -> None:
    """⌊(k−2)·R/S⌋ + 1 for reals; attained to the level where gaps are whole, and one more would reach k + 1."""
    for reach, members in product((3, 4, 8), (2, 5, 12)):
        side = (reach - 2) * 60
        group = group_codebook(Reach(0, members * side, side), reach, FEEDBACK)
        levels = (reach - 2) * members + 1
        assert feedback_levels(members * side, side, reach) == levels
        assert group.levels == max(levels, reach)
        if levels >= reach:
            more = both_ends(0, members * side, levels + 1, FEEDBACK)
            assert reach_in(more, side) == reach + 1


def test_without_feedback_the_same_cells_would_reach_one_more_than_with_the_rule_for_nearest() -> None:
    nearest = uniform(0, 600, 21)
    carrying = both_ends(0, 600, 21, FEEDBACK)
    assert reach_in(nearest, 200) == 8
    assert reach_in(carrying, 200) > 8


def test_feedback_refuses_fewer_than_two_levels_and_levels_without_both_ends() -> None:
    for make in (
        lambda: both_ends(0, 10, 1, FEEDBACK),
        lambda: feedback_levels(10, 5, 1),
        lambda: on_levels(0, 10, np.array([0, 9]), FEEDBACK),
        lambda: on_levels(0, 10, np.array([1, 10]), FEEDBACK),
        lambda: Codebook(0, 10, np.array([4]), np.array([0, 10]), rounding=FEEDBACK),
    ):
        with pytest.raises(ValueError, match=r"both ends|two levels|2 to|midway"):
            make()


def test_equally_spaced_levels_have_gaps_that_differ_by_at_most_one() -> None:
    for width, levels in product((9, 10, 97), (2, 3, 7)):
        gaps = [b - a for a, b in pairwise(both_ends(-3, width - 3, levels, FEEDBACK).values.tolist())]
        assert max(gaps) - min(gaps) <= 1
