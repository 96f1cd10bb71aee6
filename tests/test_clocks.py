"""Slots are due by the wall clock or by half the roll, and no single meter moves either."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from meters import interval_meters

from gateway.clocks import EventSchedule, WallClock, WallSchedule, utc_ms
from gateway.sources import Readings

# Under load a first example may take its time.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

SLOT_MS = 30 * 60_000
GRACE_MS = 2 * 60_000
SKEW_MS = 5 * 60_000
FIRST = 981_000
"""The number of a slot, in 2025."""


class Hands:
    """A clock that is set by hand."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


def event(households: int, parts: int = 1) -> EventSchedule:
    return scheduled(households, SLOT_MS // parts)


def scheduled(households: int, span_ms: int, slot_ms: int = SLOT_MS) -> EventSchedule:
    meters = interval_meters([f"h-{i}" for i in range(households)], span_ms)
    return EventSchedule(meters, households, slot_ms, GRACE_MS)


def heard(*pairs: tuple[int, int]) -> Readings:
    """Readings of (household, start in ms)."""
    return Readings.of([(meter, start, 1_000, False, 0) for meter, start in pairs])


def in_slot(household: int, slot: int) -> tuple[int, int]:
    return household, slot * SLOT_MS


def test_on_the_wall_clock_a_slot_is_due_a_grace_after_its_end() -> None:
    hands = Hands(FIRST * SLOT_MS)
    schedule = WallSchedule(WallClock(hands), SLOT_MS, GRACE_MS, SKEW_MS)
    due_ms = (FIRST + 1) * SLOT_MS + GRACE_MS
    for now_ms, due in (
        (FIRST * SLOT_MS, False),
        (due_ms - 1, False),
        (due_ms, True),
        (due_ms + 10**9, True),
    ):
        hands.now_ms = now_ms
        assert schedule.due(FIRST) is due


def test_on_the_wall_clock_the_first_slot_is_the_one_that_is_running() -> None:
    hands = Hands(FIRST * SLOT_MS)
    schedule = WallSchedule(WallClock(hands), SLOT_MS, GRACE_MS, SKEW_MS)
    assert schedule.first_slot() == FIRST
    hands.now_ms += SLOT_MS - 1
    assert schedule.first_slot() == FIRST
    hands.now_ms += 1
    assert schedule.first_slot() == FIRST + 1


def test_on_the_wall_clock_a_reading_is_believed_up_to_the_skew_ahead() -> None:
    hands = Hands(FIRST * SLOT_MS + 17)
    schedule = WallSchedule(WallClock(hands), SLOT_MS, GRACE_MS, SKEW_MS)
    for next_slot in (0, FIRST, 2 * FIRST):
        assert schedule.horizon_ms(next_slot) == FIRST * SLOT_MS + 17 + SKEW_MS


def test_readings_do_not_move_the_wall_clock() -> None:
    schedule = WallSchedule(WallClock(Hands(FIRST * SLOT_MS)), SLOT_MS, GRACE_MS, SKEW_MS)
    schedule.observe(heard(*[in_slot(i, FIRST + 100) for i in range(10)]))
    assert not schedule.due(FIRST)
    assert schedule.first_slot() == FIRST


async def test_waiting_on_the_wall_clock_ends_when_the_slot_is_due_and_follows_a_clock_that_is_set() -> None:
    hands = Hands(FIRST * SLOT_MS)
    schedule = WallSchedule(WallClock(hands, speed=1e7), SLOT_MS, GRACE_MS, SKEW_MS)
    waiting = asyncio.create_task(schedule.wait(FIRST))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    hands.now_ms = (FIRST + 1) * SLOT_MS + GRACE_MS
    await asyncio.wait_for(waiting, 1.5)


async def test_waiting_for_a_moment_that_has_come_takes_no_time() -> None:
    async with asyncio.timeout(0.05):
        await WallClock(Hands(1_000)).sleep_until(1_000)
        await WallClock().sleep_until(utc_ms())


def test_by_event_time_a_slot_is_due_when_half_the_roll_is_past_its_end_and_grace() -> None:
    schedule = event(4)
    # An interval that starts with the next slot ends 30 minutes after the end: past the grace.
    schedule.observe(heard(*[in_slot(i, FIRST) for i in range(4)]))
    assert not schedule.due(FIRST)
    schedule.observe(heard(in_slot(0, FIRST + 1)))
    assert not schedule.due(FIRST)
    schedule.observe(heard(in_slot(2, FIRST + 1)))
    assert schedule.due(FIRST)
    assert not schedule.due(FIRST + 1)


def test_by_event_time_a_household_has_one_vote_however_many_meters_she_has() -> None:
    """One home of four, whose five meters all are a lifetime ahead, closes nothing and does not choose the first."""
    meters = interval_meters([f"m-{i}" for i in range(8)], SLOT_MS)
    schedule = EventSchedule(
        replace(meters, household=np.array([0, 0, 0, 0, 0, 1, 2, 3])), 4, SLOT_MS, GRACE_MS
    )
    schedule.observe(heard(*((meter, 4_070_908_799_999) for meter in range(5))))
    assert schedule.first_slot() is None
    assert not schedule.due(FIRST)
    schedule.observe(heard(in_slot(5, FIRST), in_slot(6, FIRST)))
    assert schedule.first_slot() == FIRST
    assert not schedule.due(FIRST)
    assert schedule.horizon_ms(FIRST) < FIRST * SLOT_MS + 3 * 86_400_000


def test_by_event_time_the_grace_counts_to_the_millisecond() -> None:
    schedule = scheduled(1, 60_000)
    end = (FIRST + 1) * SLOT_MS
    schedule.observe(heard((0, end + GRACE_MS - 60_000)))
    assert not schedule.due(FIRST)
    schedule.observe(heard((0, end + GRACE_MS)))
    assert schedule.due(FIRST)


@pytest.mark.parametrize("households", [1, 2, 3, 4, 5, 10, 11])
def test_exactly_half_of_a_roll_suffices(households: int) -> None:
    schedule = event(households)
    half = -(-households // 2)
    schedule.observe(heard(*[in_slot(i, FIRST + 1) for i in range(half - 1)]))
    assert not schedule.due(FIRST)
    schedule.observe(heard(in_slot(half - 1, FIRST + 1)))
    assert schedule.due(FIRST)


def test_repeats_of_one_household_are_no_half_of_the_roll() -> None:
    schedule = event(3)
    for slot in range(FIRST, FIRST + 50):
        schedule.observe(heard(in_slot(1, slot), in_slot(1, slot)))
    assert not schedule.due(FIRST)
    assert schedule.first_slot() is None


def test_one_clock_that_runs_ahead_closes_nothing() -> None:
    schedule = event(3)
    schedule.observe(heard(in_slot(0, FIRST), in_slot(1, FIRST), in_slot(2, 10 * FIRST)))
    assert not schedule.due(FIRST)
    assert schedule.first_slot() == FIRST


def test_one_clock_that_stands_still_stalls_nothing() -> None:
    """dsmr-reader#1026: a reading of 1970 blocked all others."""
    schedule = event(3)
    schedule.observe(heard(in_slot(0, 0), in_slot(1, FIRST + 1), in_slot(2, FIRST + 1)))
    assert schedule.due(FIRST)


def test_a_late_reading_takes_nothing_back() -> None:
    schedule = event(1)
    schedule.observe(heard(in_slot(0, FIRST + 1)))
    schedule.observe(heard(in_slot(0, FIRST - 100)))
    assert schedule.due(FIRST)


def test_the_first_slot_is_unknown_until_half_the_roll_has_spoken() -> None:
    schedule = event(5)
    assert schedule.first_slot() is None
    schedule.observe(heard(in_slot(0, FIRST), in_slot(1, FIRST)))
    assert schedule.first_slot() is None
    schedule.observe(heard(in_slot(2, FIRST)))
    assert schedule.first_slot() == FIRST


def test_the_first_slot_is_the_median_households_first() -> None:
    schedule = event(5)
    schedule.observe(heard(*[in_slot(i, FIRST + i) for i in range(5)], in_slot(4, FIRST + 50)))
    assert schedule.first_slot() == FIRST + 2


@pytest.mark.parametrize("households", [3, 4, 5, 6, 20])
@pytest.mark.parametrize("wild", [0, 100 * FIRST], ids=["of 1970", "far ahead"])
def test_one_wild_clock_that_speaks_first_does_not_choose_the_first_slot(households: int, wild: int) -> None:
    """From a slot of 1970 on, a gateway would have to close a million slots before the first real one."""
    schedule = event(households)
    chosen = None
    for household in range(households):
        schedule.observe(heard(in_slot(household, wild if household == 0 else FIRST)))
        chosen = schedule.first_slot()
        if chosen is not None:
            break
    assert chosen == FIRST


def test_by_event_time_a_reading_is_believed_two_days_or_four_slots_past_the_next() -> None:
    assert event(3).horizon_ms(FIRST) == FIRST * SLOT_MS + 2 * 86_400_000
    day = 86_400_000
    daily = scheduled(1, day, day)
    assert daily.horizon_ms(20_000) == 20_004 * day


def test_by_event_time_a_reading_is_believed_two_days_past_what_half_the_roll_has_reached() -> None:
    """A backlog of any length is believed as it comes in; one household that runs ahead moves nothing."""
    two_days = 2 * 86_400_000
    schedule = event(5)
    for household in (0, 1):
        schedule.observe(heard(in_slot(household, 100 * FIRST)))
        assert schedule.horizon_ms(FIRST) == FIRST * SLOT_MS + two_days
    schedule.observe(heard(in_slot(2, FIRST + 1_000)))
    assert schedule.horizon_ms(FIRST) == (FIRST + 1_001) * SLOT_MS + two_days
    assert schedule.horizon_ms(FIRST + 2_000) == (FIRST + 2_000) * SLOT_MS + two_days


async def test_waiting_by_event_time_ends_with_the_reading_that_makes_the_slot_due() -> None:
    schedule = event(2)
    waiting = asyncio.create_task(schedule.wait(FIRST))
    schedule.observe(heard(in_slot(0, FIRST)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not waiting.done()
    schedule.observe(heard(in_slot(0, FIRST + 1)))
    await asyncio.wait_for(waiting, 1)


@unhurried
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-5, 5)), max_size=30), st.randoms())
def test_the_order_of_readings_decides_nothing(pairs: list[tuple[int, int]], random: object) -> None:
    shuffled = list(pairs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = event(5), event(5)
    for household, slot in pairs:
        one.observe(heard(in_slot(household, FIRST + slot)))
    other.observe(heard(*[in_slot(household, FIRST + slot) for household, slot in shuffled]))
    assert one.first_slot() == other.first_slot()
    slots = range(FIRST - 6, FIRST + 6)
    assert [one.due(slot) for slot in slots] == [other.due(slot) for slot in slots]


@unhurried
@given(st.lists(st.integers(-5, 5), min_size=5, max_size=5))
def test_due_is_the_count_of_households_past_the_slot(latest: list[int]) -> None:
    schedule = event(5)
    schedule.observe(heard(*[in_slot(i, FIRST + slot) for i, slot in enumerate(latest)]))
    for slot in range(-6, 6):
        past = sum(one > slot for one in latest)
        assert schedule.due(FIRST + slot) == (past >= 3)
