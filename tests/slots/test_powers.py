"""Power samples become the mean over the time for which they hold."""

from __future__ import annotations

from collections import Counter

import pytest
from slots.rolls import NEXT, SLOT_MS, START, Meter, opened, put, taken

from gateway.meters import Quantity
from gateway.privacy import MISSING
from gateway.slots import OpenSlots
from gateway.sources import Reason
from gateway.sources.readings import Row

MINUTE = 60_000


def sampled(gap_min: int = 10) -> OpenSlots:
    return opened(Meter(Quantity.POWER, gap_ms=gap_min * MINUTE))


def samples(*told: tuple[int, int]) -> list[Row]:
    """Return the samples of (minute, mW)."""
    return [Row(0, START + minute * MINUTE, value) for minute, value in told]


def test_a_sample_holds_until_the_next_one() -> None:
    """10 minutes of 300 mW, then 20 of 600."""
    slots = sampled(20)
    put(slots, *samples((0, 300), (10, 600)))
    assert taken(slots) == [[500]]


def test_the_first_sample_holds_back_to_the_start_of_the_slot() -> None:
    slots = sampled(20)
    put(slots, *samples((10, 300), (20, 600)))
    assert taken(slots) == [[400]]


def test_no_sample_holds_longer_than_the_gap() -> None:
    """After 10 minutes of 300 mW nothing is known for 5; the last 15 are 600 (10 back would not reach)."""
    slots = sampled(10)
    put(slots, *samples((0, 300), (15, 600), (25, 600)))
    assert taken(slots) == [[(10 * 300 + 15 * 600) // 25]]


@pytest.mark.parametrize(("gap_min", "value"), [(15, 7), (14, MISSING)])
def test_a_slot_of_which_less_than_half_is_covered_is_missing(gap_min: int, value: int) -> None:
    slots = sampled(gap_min)
    put(slots, *samples((0, 7)))
    assert taken(slots) == [[value]]


def test_of_two_samples_at_the_same_time_the_larger_counts() -> None:
    slots = sampled(30)
    put(slots, *samples((0, 5), (0, 9), (0, 7)))
    assert taken(slots) == [[9]]


def test_export_is_negative_and_rounds_towards_minus_infinity() -> None:
    slots = sampled(30)
    put(slots, *samples((0, -1), (10, 0)))
    assert taken(slots) == [[-1]]


def test_samples_of_the_slot_before_say_nothing() -> None:
    slots = sampled(30)
    put(slots, *samples((29, 5)))
    assert taken(slots, 2) == [[5], [MISSING]]


def test_the_largest_power_over_the_longest_slot_fits() -> None:
    day = 86_400_000
    slots = opened(Meter(Quantity.POWER, gap_ms=day), slot_ms=day)
    put(slots, Row(0, NEXT * day, 10**10), Row(0, NEXT * day + day // 2, 10**10))
    assert taken(slots) == [[10**10]]


def test_a_retained_sample_is_always_stale() -> None:
    """It is of unknown age, also when it carries the time of its arrival."""
    slots = sampled()
    assert put(slots, Row(0, START, 5, retained=True)).rejected == Counter({Reason.STALE_RETAINED: 1})
    assert taken(slots) == [[MISSING]]


def test_a_repeat_is_counted_and_not_journaled_again() -> None:
    slots = sampled()
    put(slots, *samples((0, 5), (3, 6)))
    answer = put(slots, *samples((3, 6), (0, 5), (0, 4)))
    assert (len(answer.fresh), answer.rejected) == (0, Counter({Reason.REPEATED: 3}))


def test_four_changes_a_second_are_believed_and_no_more() -> None:
    slots = sampled()
    most = 4 * SLOT_MS // 1_000
    answer = put(slots, *[Row(0, START + place, 1) for place in range(most + 5)])
    assert (len(answer.fresh), answer.rejected) == (most, Counter({Reason.QUOTA: 5}))
    assert put(slots, Row(0, START, 1)).rejected == Counter({Reason.REPEATED: 1})
    assert len(put(slots, Row(0, START + SLOT_MS, 1)).fresh) == 1
