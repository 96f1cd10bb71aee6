"""A household is the sum of her meters, of any quantity; memory is taken only by what differs."""

from __future__ import annotations

import time
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from slots.rolls import FAR, NEXT, SLOT_MS, START, Meter, intervals, opened, put, roll, taken

from gateway.meters import Quantity
from gateway.privacy import MISSING
from gateway.slots import OpenSlots, RegisterState
from gateway.sources import Readings, Reason
from gateway.sources.readings import Row

POWER = Meter(Quantity.POWER, gap_ms=SLOT_MS)
REGISTER = Meter(Quantity.REGISTER, gap_ms=SLOT_MS)


def test_a_household_is_the_sum_of_her_meters() -> None:
    """An interval meter, a sampled solar inverter and a heat pump's register; 250 Wh in half an hour are 500 W."""
    slots = opened(intervals(household=0), POWER._replace(household=0), REGISTER._replace(household=0))
    put(slots, Row(0, START, 250_000), Row(1, START, -300_000))
    put(slots, Row(2, START, 10**9), Row(2, START + SLOT_MS, 10**9 + 50_000))
    assert taken(slots) == [[500_000 - 300_000 + 100_000]]


def test_each_meter_is_rounded_down_by_itself() -> None:
    slots = opened(
        *[Meter(Quantity.INTERVAL, 7_000, household=0)] * 2, slot_ms=7_000
    )  # 3,600,000 / 7,000 = 514.28…
    put(slots, Row(0, NEXT * 7_000, -1), Row(1, NEXT * 7_000, 1))
    assert taken(slots) == [[-515 + 514]]


@pytest.mark.parametrize("silent", range(3))
def test_a_household_is_missing_if_one_of_her_meters_is(silent: int) -> None:
    slots = opened(intervals(household=0), POWER._replace(household=0), REGISTER._replace(household=0))
    told = [[Row(0, START, 1)], [Row(1, START, 1)], [Row(2, START, 1), Row(2, START + SLOT_MS, 1)]]
    put(slots, *[row for meter, rows in enumerate(told) if meter != silent for row in rows])
    assert taken(slots) == [[MISSING]]


def test_a_household_without_meters_is_missing() -> None:
    slots = OpenSlots(SLOT_MS, roll(intervals(household=1)), 3, NEXT, RegisterState.initial(1))
    put(slots, Row(0, START, 1))
    assert taken(slots) == [[MISSING, 2, MISSING]]


def test_a_roll_without_meters_closes() -> None:
    slots = OpenSlots(SLOT_MS, roll(), 1, NEXT, RegisterState.initial(0))
    assert taken(slots) == [[MISSING]]


def test_a_sum_of_absurd_meters_stays_within_64_bits() -> None:
    """Each of three meters alone would fit."""
    slots = opened(*[Meter(Quantity.INTERVAL, 1, household=0)] * 3, slot_ms=1_000)
    put(slots, *[Row(meter, NEXT * 1_000 + part, 10**12) for meter in range(3) for part in range(1_000)])
    assert 10**18 < taken(slots)[0][0] < 2**63


@pytest.mark.parametrize("quantity", Quantity)
def test_the_horizon_is_the_last_moment_that_is_believed(quantity: Quantity) -> None:
    """Of an interval its end counts."""
    span = 60_000 if quantity == Quantity.INTERVAL else 0
    slots = opened(Meter(quantity, span))
    moment = START + 600_000
    assert put(slots, Row(0, moment, 1), horizon=moment + span - 1).rejected == Counter({Reason.FUTURE: 1})
    assert put(slots, Row(0, moment, 1), horizon=moment + span).rejected == Counter()


@pytest.mark.parametrize("quantity", Quantity)
def test_what_comes_after_its_slot_has_closed_is_late_or_stale(quantity: Quantity) -> None:
    slots = opened(Meter(quantity, SLOT_MS if quantity == Quantity.INTERVAL else 0))
    answer = put(slots, Row(0, START - 1, 1), Row(0, START - 1, 1, retained=True))
    assert answer.rejected == Counter({Reason.LATE: 1, Reason.STALE_RETAINED: 1})


@pytest.mark.parametrize("batch", [1, 50])
def test_a_repeat_takes_no_memory_and_no_quota(batch: int) -> None:
    slots = opened(POWER)
    rows = [Row(0, START + 1_000 * second, second) for second in range(50)]
    put(slots, *rows)
    held = slots._open[NEXT].rows()
    for _ in range(200):
        for first in range(0, 50, batch):
            assert len(put(slots, *rows[first : first + batch]).fresh) == 0
    assert len(slots._open[NEXT].rows().meter) == len(held.meter) == 50
    assert put(slots, Row(0, START + 1, 1)).rejected == Counter()


def test_a_meter_whose_clock_is_ahead_takes_no_memory_for_the_whole_roll() -> None:
    """One meter of 50,000 opens 96 slots; an array over the roll would take 0.4 MB of each of them."""
    slots = opened(*[POWER] * 50_000)
    tracemalloc.start()
    for slot in range(96):
        put(slots, Row(7, START + slot * SLOT_MS, 1))
    taken_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken_bytes < 1_000_000


@pytest.mark.parametrize("quantity", Quantity)
def test_a_slot_of_a_hundred_thousand_meters_closes_at_once(
    quantity: Quantity, capsys: pytest.CaptureFixture[str]
) -> None:
    """Six readings each, in twenty batches, out of order."""
    count, each = 100_000, 6
    one = Meter(quantity, SLOT_MS // each if quantity == Quantity.INTERVAL else 0, gap_ms=SLOT_MS)
    slots = opened(*[one] * count)
    rng = np.random.default_rng(4)
    for slot in range(2):
        moments = START + slot * SLOT_MS + np.arange(each) * (SLOT_MS // each)
        told = rng.permutation(count * each)
        meter, part = told % count, told // count
        value = (
            10**9 + meter + (moments[part] - START) // 60 if quantity == Quantity.REGISTER else 50_000 + meter
        )
        no = np.zeros(len(told), np.int64)
        readings = Readings(meter, moments[part], value, no.astype(np.bool_), no)
        for chosen in np.array_split(np.arange(len(told)), 20):
            slots.put(readings.where(chosen), FAR)
    began = time.process_time()
    closed = slots.take()
    took_s = time.process_time() - began
    with capsys.disabled():
        print(f"\n{quantity.name.lower()}: one slot of {count:,} meters closed in {took_s:.2f} s")  # noqa: T201
    assert np.count_nonzero(closed.values == MISSING) == 0
    # Well under a second; a busy machine makes every second longer.
    assert took_s < 3
