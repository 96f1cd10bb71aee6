"""Registers become power; glitches, resets, rollovers, replacements and gaps are told apart."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from slots.rolls import NEXT, SLOT_MS, START, Meter, opened, put, roll, taken

from gateway.meters import Quantity
from gateway.privacy import MISSING
from gateway.slots import OpenSlots, RegisterState
from gateway.sources import Reason
from gateway.sources.readings import Row

MINUTE = 60_000
KWH = 10**6
REGISTER = Meter(Quantity.REGISTER, gap_ms=10 * MINUTE)

Told = tuple[float, float]


def register(meter: Meter = REGISTER) -> OpenSlots:
    return opened(meter)


def kwh(*told: Told, serial: int = 0) -> list[Row]:
    """Return the readings of (minute, kWh)."""
    return [Row(0, START + round(at * MINUTE), round(value * KWH), serial=serial) for at, value in told]


def energies(slots: OpenSlots, times: int = 1) -> list[float | None]:
    """Close slots; return what each assigned, in kWh: mean power times half an hour."""
    values = [value for (value,) in taken(slots, times)]
    return [None if value == MISSING else value / 2 / KWH for value in values]


def every(minutes: int, first: Told, last: Told) -> list[Told]:
    """Return even readings from one to another."""
    (start, low), (end, high) = first, last
    moments = np.arange(start, end + minutes / 2, minutes).tolist()
    return [(at, low + (high - low) * (at - start) / (end - start)) for at in moments]


# --- energy ------------------------------------------------------------------------------------------


def test_what_a_register_moved_is_the_energy_of_the_slot() -> None:
    slots = register()
    put(slots, *kwh(*every(10, (0, 100), (30, 100.6))))
    assert energies(slots) == [pytest.approx(0.6)]


def test_the_value_at_a_border_lies_on_the_way_between_its_neighbours() -> None:
    """From 0.5 kWh at 25 to 1.1 kWh at 35 minutes: half of it before the border, half after."""
    slots = register()
    put(slots, *kwh(*every(5, (0, 100), (25, 100.5)), (35, 101.1), (45, 101.1), (55, 101.1), (60, 101.1)))
    assert energies(slots, 2) == [pytest.approx(0.8), pytest.approx(0.3)]


def test_what_a_slot_could_not_know_goes_to_the_next_one() -> None:
    """The reading after the border comes after the slot closed."""
    slots = register()
    put(slots, *kwh(*every(5, (0, 100), (25, 100.5))))
    first = energies(slots)
    put(slots, *kwh((35, 101.1), (45, 101.1), (55, 101.1), (60, 101.1)))
    assert (first, energies(slots)) == ([pytest.approx(0.5)], [pytest.approx(0.6)])


def test_a_late_reading_below_the_interpolated_value_takes_nothing_back() -> None:
    """A display of whole kWh stood at 30 until 33 minutes; half a kWh is assigned already at 30."""
    slots = register()
    put(slots, *kwh(*every(5, (0, 30), (25, 30)), (35, 31)))
    first = energies(slots)
    put(slots, *kwh((33, 30), (45, 31), (55, 31), (60, 31)))
    assert (first, energies(slots)) == ([pytest.approx(0.5)], [pytest.approx(0.5)])


def test_the_first_reading_ever_is_only_where_counting_starts() -> None:
    """At 10 minutes; 0.4 kWh in the 20 minutes after it are 1.2 kW."""
    slots = register()
    put(slots, *kwh(*every(10, (10, 7_000), (30, 7_000.4))))
    assert taken(slots) == [[1_200_000]]


def test_a_slot_of_which_less_than_half_is_known_is_missing_and_not_counted_again() -> None:
    slots = register()
    put(slots, *kwh((16, 100), (25, 101), (30, 101), (40, 102), (50, 103), (60, 104)))
    assert energies(slots, 2) == [None, pytest.approx(3)]


def test_the_largest_register_and_the_longest_slot_fit() -> None:
    """Up to 1 TWh, at most 10 MW, in days; the reading after the first day is 1 ms late."""
    day, stood, moved = 86_400_000, 10**15 - 2 * 10**11, 10**11
    slots = opened(Meter(Quantity.REGISTER, gap_ms=day, limit_mw=10**10), slot_ms=day)
    moments = [NEXT * day, (NEXT + 1) * day + 1, (NEXT + 2) * day]
    put(slots, *[Row(0, moment, stood + place * moved) for place, moment in enumerate(moments)])
    first = moved * day // (day + 1)
    assert taken(slots, 2) == [[first * 3_600_000 // day], [(2 * moved - first) * 3_600_000 // day]]


# --- gaps --------------------------------------------------------------------------------------------


def test_the_energy_of_a_gap_is_spread_evenly_once_its_end_is_known() -> None:
    """6 kWh over 2 h of silence, all slots still open."""
    slots = register()
    put(slots, *kwh((0, 100), (120, 106)))
    assert energies(slots, 4) == [pytest.approx(1.5)] * 4


def test_only_a_slots_own_share_of_a_gap_is_counted_when_its_end_comes_late() -> None:
    """After two hours nobody can tell when the energy went through: three slots of it were missing."""
    slots = register()
    put(slots, *kwh((0, 100)))
    silent = energies(slots, 3)
    put(slots, *kwh((120, 106)))
    assert (silent, energies(slots)) == ([None] * 3, [pytest.approx(1.5)])


def test_a_gap_that_is_not_spread_contributes_neither_energy_nor_time() -> None:
    """12 minutes of the slot are silent; 0.6 kWh in the other 18 are 2 kW."""
    slots = register(REGISTER._replace(spread=False))
    put(slots, *kwh((0, 100), (9, 100.3), (21, 105), (30, 105.3)))
    assert taken(slots) == [[2_000_000]]


def test_a_slot_whose_end_stays_silent_for_long_is_the_mean_of_the_rest() -> None:
    """0.4 kWh in 20 minutes; what came after them no slot will get, as the gap begins before this slot's end."""
    slots = register(REGISTER._replace(gap_ms=9 * MINUTE, spread=False))
    put(slots, *kwh(*every(5, (0, 100), (20, 100.4))))
    assert taken(slots) == [[1_200_000]]


# --- glitches ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "told",
    [
        pytest.param([47.9, 47.9, 41.2, 47.9, 48.0, 48.1], id="a cached old value (zigbee2mqtt#11115)"),
        pytest.param([6613.4, 6613.4, 0, 6613.4, 6613.5, 6613.6], id="zero while a link is down"),
        pytest.param([6613.4, 0, 0, 0, 0, 6613.6], id="zeros for longer"),
        pytest.param([6941.8, 6942, 6941, 6942, 6942, 6942], id="off by one back (ism7mqtt#134)"),
        pytest.param([12.4, 12.4, 0, 2, 12.5, 12.6], id="two glitches that do not go on"),
        pytest.param([12.4, 12.4, 0.4, 0.5, 12.5, 12.6], id="two glitches in sequence"),
        pytest.param([12.4, 12.4, 16777.2, 12.5, 12.5, 12.6], id="a sentinel"),
    ],
)
def test_a_glitch_that_passes_changes_nothing(told: list[float]) -> None:
    slots = register(REGISTER._replace(gap_ms=SLOT_MS))
    put(slots, *kwh(*zip(range(0, 36, 6), told, strict=False)))
    assert energies(slots) == [pytest.approx(0.2)]


def test_glitches_are_counted() -> None:
    slots = register()
    put(slots, *kwh((0, 100), (5, 0), (10, 100), (15, 50), (20, 100), (30, 100), (40, 0)))
    assert slots.take().rejected == Counter({Reason.IMPLAUSIBLE: 2})


def test_whole_kwh_in_ten_seconds_are_what_a_coarse_display_does() -> None:
    """30, 30, 31 kWh every ten seconds: 360 kW it is not."""
    slots = register()
    put(slots, *kwh(*[(second / 6, 30 + (second >= 12)) for second in range(200)]))
    assert energies(slots) == [1.0]


def test_a_coarse_display_of_any_unit_is_believed_after_a_rest() -> None:
    """A transformer's register in steps of 40 kWh, at most 690 kW; it rests for four minutes between steps."""
    slots = register(REGISTER._replace(limit_mw=690_000_000))
    put(slots, *kwh(*[(at / 6, 1_200 + 40 * (at // 24)) for at in range(181)]))
    assert energies(slots) == [pytest.approx(7 * 40)]


def test_a_rest_counts_from_the_slot_before() -> None:
    """A step of 40 kWh, at most 100 kW, a minute after the border; the register rested for half an hour."""
    slots = register(REGISTER._replace(limit_mw=100_000_000))
    told = [(at, 1_200 + 40 * (at // 31)) for at in range(66)]
    put(slots, *kwh(*told[:30]))
    first = slots.take()
    put(slots, *kwh(*told[30:]))
    second = slots.take()
    assert first.registers.lower_ms.tolist() == [START]
    assert (first.values + second.values).tolist() == [2 * 40 * KWH]
    assert (first.rejected, second.rejected) == (Counter(), Counter())


# --- breaks ------------------------------------------------------------------------------------------


def test_a_reset_is_believed_when_it_is_confirmed_and_loses_nothing() -> None:
    """home-assistant/core#54463: 64541 Wh, then from zero to 3.2 Wh."""
    slots = register()
    put(slots, *kwh((0, 64.441), (10, 64.541), (15, 0.0032), (20, 0.1), (25, 0.2), (30, 0.3)))
    assert energies(slots) == [pytest.approx(0.1 + 0.3)]


def test_a_fall_that_no_reset_explains_is_a_break_of_unknown_energy() -> None:
    """From 6942 to 5000 kWh in five minutes: nothing is known of them; 0.6 kWh in the other 25."""
    slots = register()
    put(slots, *kwh(*every(5, (0, 6_942), (10, 6_942.2)), *every(5, (15, 5_000), (30, 5_000.4))))
    assert taken(slots) == [[pytest.approx(0.6 / 25 * 60 * KWH, abs=1)]]


def test_a_jump_that_no_connection_carries_is_a_break_of_unknown_energy() -> None:
    slots = register()
    put(slots, *kwh(*every(5, (0, 100), (10, 100.2)), *every(5, (15, 9_000), (30, 9_000.4))))
    assert taken(slots) == [[pytest.approx(0.6 / 25 * 60 * KWH, abs=1)]]


@pytest.mark.parametrize("stands", [100.3, 0.1])
def test_another_serial_is_another_register(stands: float) -> None:
    """Also where its readings would go on, and where a reset would explain them."""
    slots = register()
    put(slots, *kwh(*every(5, (0, 100), (10, 100.2)), serial=7))
    put(slots, *kwh(*every(5, (15, stands), (30, stands + 0.4)), serial=8))
    assert taken(slots) == [[pytest.approx(0.6 / 25 * 60 * KWH, abs=1)]]


def test_a_reading_without_serial_goes_on() -> None:
    slots = register()
    rows = kwh(*every(5, (0, 100), (30, 101)), serial=7)
    put(slots, *[row._replace(serial=0) if place % 2 else row for place, row in enumerate(rows)])
    assert energies(slots) == [pytest.approx(1)]


def test_a_new_meter_that_stands_at_zero_is_believed() -> None:
    """An export register in winter."""
    slots = register()
    put(slots, *kwh((0, 100), (5, 100), serial=7), *kwh((10, 0), (15, 0), (20, 0), (30, 0), serial=8))
    assert energies(slots) == [0.0]


def test_a_declared_rollover_is_credited_at_once() -> None:
    """bemasher/rtlamr#64: from 99,998 past 100,000 to 1 kWh, without a reading to confirm it."""
    slots = register(REGISTER._replace(modulus_mwh=100_000 * KWH, gap_ms=30 * MINUTE))
    put(slots, *kwh((0, 99_998), (30, 1)))
    assert energies(slots) == [pytest.approx(3)]


def test_a_rollover_that_is_not_declared_is_a_fall() -> None:
    slots = register(REGISTER._replace(gap_ms=30 * MINUTE))
    put(slots, *kwh((0, 99_998), (30, 1)))
    assert energies(slots) == [None]


def test_a_break_across_slots_is_confirmed_by_the_next_ones_readings() -> None:
    """At the first slot's end two readings wait; until then the slot counts what is believed."""
    slots = register()
    put(slots, *kwh(*every(5, (0, 64), (20, 64.4)), (25, 0.1), (28, 0.2)))
    first = slots.take()
    assert first.values.tolist() == [800_000]
    assert first.registers.pending[:, 0, 0].tolist() == [START + 25 * MINUTE, START + 28 * MINUTE]
    put(slots, *kwh(*every(4, (32, 0.3), (60, 1))))
    assert energies(slots) == [pytest.approx(1)]


def test_a_glitch_at_the_end_of_a_slot_is_forgotten_in_the_next_one() -> None:
    slots = register()
    put(slots, *kwh(*every(5, (0, 64), (20, 64.4)), (25, 0.1)))
    assert (energies(slots), slots.registers.pending[0, 0, 0]) == ([pytest.approx(0.4)], START + 25 * MINUTE)
    put(slots, *kwh(*every(5, (30, 64.6), (60, 65.2))))
    closed = slots.take()
    assert closed.values.tolist() == [pytest.approx(0.8 * 2 * KWH, abs=1)]
    assert closed.rejected == Counter({Reason.IMPLAUSIBLE: 1})
    assert (closed.registers.pending == MISSING).all()


def half_a_kwh_ahead() -> OpenSlots:
    """Return slots of which the first closed with energy that only the reading after it tells of."""
    slots = register()
    put(slots, *kwh(*every(5, (0, 30), (25, 30)), (35, 31), serial=7))
    assert energies(slots) == [pytest.approx(0.5)]
    return slots


def test_what_was_assigned_ahead_is_not_taken_from_a_new_register() -> None:
    """The late readings of another one: 0.6 kWh in the 27 minutes since it is known."""
    slots = half_a_kwh_ahead()
    put(
        slots,
        *kwh((33, 500), (33.5, 500), (34, 500), (36, 500), *every(6, (42, 500.2), (60, 500.6)), serial=8),
    )
    assert taken(slots) == [[pytest.approx(0.6 / 27 * 60 * KWH, abs=1)]]


def test_what_was_assigned_stays_when_the_reading_it_relied_on_is_no_longer_believed() -> None:
    """A larger one of the same time takes its place, and is a glitch."""
    slots = half_a_kwh_ahead()
    put(slots, *kwh((35, 9_000), serial=7))
    left = slots.take().registers
    assert (left.assigned_ms.tolist(), left.assigned_mwh.tolist()) == ([START + 30 * MINUTE], [30.5 * KWH])


# --- retained ----------------------------------------------------------------------------------------


def test_a_retained_reading_is_where_a_new_meter_starts() -> None:
    slots = register()
    put(
        slots,
        *[row._replace(retained=True) for row in kwh((0, 100))],
        *kwh((10, 100.2), (20, 100.4), (30, 100.6)),
    )
    assert energies(slots) == [pytest.approx(0.6)]


def test_a_retained_reading_after_another_one_is_stale() -> None:
    slots = register()
    retained = [row._replace(retained=True) for row in kwh((15, 107), (45, 108))]
    put(slots, *kwh(*every(10, (0, 100), (30, 100.6))), retained[0])
    closed = slots.take()
    assert closed.values.tolist() == [pytest.approx(1_200_000, abs=1)]
    assert closed.rejected == Counter({Reason.STALE_RETAINED: 1})
    assert put(slots, retained[1]).rejected == Counter({Reason.STALE_RETAINED: 1})


# --- state -------------------------------------------------------------------------------------------


def test_the_state_is_packed_and_unpacked_unchanged() -> None:
    table = np.arange(12 * 5, dtype=np.int64).reshape(12, 5)
    state = RegisterState.of(table)
    assert (state.packed() == table).all()
    table[:] = 0
    assert state.packed().any(), "it has arrays of its own"


def test_a_slot_leaves_the_state_before_it_as_it_was() -> None:
    before = RegisterState.initial(1)
    slots = OpenSlots(SLOT_MS, roll(REGISTER), 1, NEXT, before)
    put(slots, *kwh((0, 1), (10, 2)))
    assert slots.take().registers.begun.all()
    assert not before.begun.any()
