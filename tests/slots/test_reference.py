"""Slots agree with the plain rules for random traces, in any order, batches and repeats, across restarts."""

from __future__ import annotations

from fractions import Fraction
from itertools import chain, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slots.reference import SECOND, Register, mean_power
from slots.rolls import FAR, Meter, roll

from gateway.meters import Meters, Quantity
from gateway.slots import OpenSlots, RegisterState
from gateway.sources import Readings
from gateway.sources.readings import Row

SLOT_MS = 20 * SECOND
SLOTS = 4
NEXT = 50
START = NEXT * SLOT_MS

seconds = st.integers(0, SLOTS * SLOT_MS // SECOND - 1).map(lambda second: START + second * SECOND)


class Case(st.SearchStrategy[None]):
    """Only a name for what follows."""


@st.composite
def registers(draw: st.DrawFn) -> Meter:
    return Meter(
        Quantity.REGISTER,
        gap_ms=draw(st.sampled_from([2, 7, 15, 100])) * SECOND,
        limit_mw=draw(st.sampled_from([3_600, 18_000, 36_000])),  # 1, 5 or 10 mWh in a second
        modulus_mwh=draw(st.sampled_from([0, 0, 300])),
        spread=draw(st.booleans()),
    )


@st.composite
def traces(draw: st.DrawFn, meter: int) -> list[Row]:
    """A register that mostly goes on, with glitches, resets, other serials and retained readings."""
    rows: list[Row] = []
    value = draw(st.sampled_from([0, 95, 100, 250]))
    serial = draw(st.sampled_from([0, 0, 7]))
    for time in sorted(draw(st.lists(seconds, max_size=25))):
        what = draw(
            st.sampled_from(
                ["on"] * 4 + ["rest"] * 4 + ["glitch", "glitch", "reset", "jump", "zero", "serial"]
            )
        )
        moved = draw(st.integers(0, 19))
        value = {"reset": moved, "jump": value + 170, "rest": value}.get(what, value + moved)
        serial = 9 if what == "serial" else serial
        told = {"glitch": draw(st.integers(0, 400)), "zero": 0}.get(what, value)
        retained = draw(st.sampled_from([False] * 9 + [True]))
        rows.append(Row(meter, time, told, retained, draw(st.sampled_from([serial, serial, 0]))))
    return rows


@st.composite
def powers(draw: st.DrawFn) -> tuple[Meter, list[tuple[int, int]]]:
    meter = Meter(Quantity.POWER, gap_ms=draw(st.sampled_from([1, 3, 8, 100])) * SECOND)
    return meter, draw(st.lists(st.tuples(seconds, st.integers(-(10**10), 10**10)), max_size=25))


@st.composite
def arrivals(draw: st.DrawFn, rows: list[Row]) -> list[list[list[Row]]]:
    """Return for each slot, in batches, what arrives before it closes; none comes late, some twice."""
    waves: list[list[Row]] = [[] for _ in range(SLOTS)]
    for row in rows:
        latest = (row.time_ms - START) // SLOT_MS
        waves[draw(st.integers(0, latest))].append(row)
    return [draw(batches(wave)) for wave in waves]


@st.composite
def batches(draw: st.DrawFn, rows: list[Row]) -> list[list[Row]]:
    repeated = draw(st.permutations(rows + [row for row in rows if draw(st.booleans())]))
    borders = sorted({0, len(repeated)} | draw(st.sets(st.integers(0, len(repeated)), max_size=3)))
    return [repeated[a:b] for a, b in pairwise(borders)]


class Gateway:
    """Open slots that are started again before each slot closes, from the state and the journal."""

    def __init__(self, meters: Meters, *, restarts: bool) -> None:
        self.meters = meters
        self.restarts = restarts
        self.journal: list[Readings] = []
        self.slots = self.started(NEXT, RegisterState.initial(len(meters)))

    def started(self, next_slot: int, registers: RegisterState) -> OpenSlots:
        return OpenSlots(SLOT_MS, self.meters, len(self.meters), next_slot, registers)

    def close(self, arriving: list[list[Row]]) -> list[int]:
        self.journal += [self.slots.put(Readings.of(batch), FAR).fresh for batch in arriving]
        taken = self.slots.take()
        if self.restarts:
            left = Readings.joined(self.journal)
            self.slots = self.started(self.slots.next_slot, RegisterState.of(taken.registers.packed()))
            self.slots.put(left.where(left.time_ms >= self.slots.next_slot * SLOT_MS), FAR)
        return taken.values.tolist()


@pytest.mark.parametrize("restarts", [False, True])
@settings(max_examples=200, deadline=None)
@given(st.data())
def test_registers_agree_with_the_plain_rules(restarts: bool, data: st.DataObject) -> None:
    meters = data.draw(st.lists(registers(), min_size=1, max_size=2))
    waves = data.draw(arrivals([row for place in range(len(meters)) for row in data.draw(traces(place))]))
    gateway, plain = Gateway(roll(*meters), restarts=restarts), [Register(meter) for meter in meters]
    known: list[Row] = []
    for number, wave in enumerate(waves):
        start = START + number * SLOT_MS
        known = [row for row in [*known, *chain.from_iterable(wave)] if row.time_ms >= start]
        expected = [
            one.close([row for row in known if row.meter == place], start, start + SLOT_MS)
            for place, one in enumerate(plain)
        ]
        assert gateway.close(wave) == expected, f"slot {number}"


@pytest.mark.parametrize("restarts", [False, True])
@settings(max_examples=100, deadline=None)
@given(st.data())
def test_power_samples_agree_with_the_plain_rules(restarts: bool, data: st.DataObject) -> None:
    told = data.draw(st.lists(powers(), min_size=1, max_size=2))
    rows = [Row(place, *sample) for place, (_, samples) in enumerate(told) for sample in samples]
    gateway = Gateway(roll(*(meter for meter, _ in told)), restarts=restarts)
    for number, wave in enumerate(data.draw(arrivals(rows))):
        start, end = START + number * SLOT_MS, START + (number + 1) * SLOT_MS
        inside = [row for row in rows if start <= row.time_ms < end]
        expected = [
            mean_power(meter, [row for row in inside if row.meter == place], start, end)
            for place, (meter, _) in enumerate(told)
        ]
        assert gateway.close(wave) == expected


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_slots_get_exactly_what_a_register_without_gaps_moved(data: st.DataObject) -> None:
    """Each slot rounds down, by less than 1 mW; nothing else is lost or counted twice."""
    rows = [Row(0, START, 0)]
    while rows[-1].time_ms < START + SLOTS * SLOT_MS:
        wait, energy = data.draw(st.tuples(st.integers(1, 5), st.integers(0, 50)))
        rows.append(Row(0, rows[-1].time_ms + wait * SECOND, rows[-1].value + energy))
    gateway = Gateway(roll(Meter(Quantity.REGISTER, gap_ms=5 * SECOND)), restarts=False)
    gateway.slots.put(Readings.of(rows[-1:]), FAR)
    total = sum(gateway.close(wave)[0] for wave in data.draw(arrivals(rows[:-1])))
    moved_mwh = int(gateway.slots.registers.assigned_mwh[0])
    exact = Fraction(moved_mwh * 3_600_000, SLOT_MS)
    assert gateway.slots.registers.assigned_ms[0] == START + SLOTS * SLOT_MS
    assert exact - SLOTS < total <= exact
