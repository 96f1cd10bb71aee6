"""Registers: a meter says how much energy went through since it was new.

Each register has a point (T, V): the energy up to V is assigned to slots. Closing a slot [a, b) moves the point, and
what it passes is the slot's energy, so that nothing is assigned twice:

- to (b, V(b)), by linear interpolation (rounded down) between what is believed before and at or after b, if a
  reading at or after b is there already (the first three of a meter are looked at, to tell glitches);
- else to the latest reading before b. What came after it goes to the next slot, if its start is at most ``gap_ms``
  later; if not, only what came from its start on, by interpolation over the whole stretch.

Two readings further apart than ``gap_ms`` say nothing about the time between, unless the meter's energy is spread
evenly over gaps. Nothing is said either about the time before the very first reading, across a break of unknown
energy (:mod:`~gateway.slots.believing`), and from the latest reading to b if that is longer than ``gap_ms``: no slot
will get that energy.

A slot is missing if the stretches that say something cover less than half of it. Else its value is its energy over
the slot's length less the time about which nothing is said. So, of a register without gaps, the energy of all slots
together is exactly what the register moved, up to the rounding of each slot (less than 1 mW).

If what is believed later is less than what interpolation assigned, nothing is taken back: the slots that follow get
the less.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from gateway.meters import Meters
from gateway.privacy import MISSING, BoolArray, IntArray
from gateway.slots.believing import Chain, believe
from gateway.slots.exact import ends, latest, mean_mw, share, starts, sums
from gateway.slots.held import Rows
from gateway.slots.register_state import RegisterState
from gateway.sources import Reason

LOOK_AHEAD = 3
"""So many readings after a slot tell whether the first is a glitch, and confirm a break."""


class Closed(NamedTuple):
    """What a slot closed with: mean powers (mW, MISSING where too little is said), the state after it, and what not."""

    means: IntArray
    state: RegisterState
    rejected: Counter[Reason]


def close_registers(
    rows: Rows, ahead: Rows, state: RegisterState, meters: Meters, *, start_ms: int, slot_ms: int
) -> Closed:
    """Close one slot of all registers.

    Args:
        rows: the slot's readings.
        ahead: of each register the first live ones after it.
        state: what the slot before left.
        meters: (m,) of the roll.
        start_ms: the slot's start.
        slot_ms: its length.

    """
    rejected: Counter[Reason] = Counter()
    end_ms = start_ms + slot_ms
    told = Rows.joined([_points(rows, ahead, state), rows, ahead])
    useful = told.live | (starts(told.meter) & ~state.begun[told.meter])
    rejected[Reason.STALE_RETAINED] = int(np.count_nonzero(~useful))
    believed = believe(told.where(useful), state, meters, end_ms)
    rejected[Reason.IMPLAUSIBLE] = believed.forgotten
    chain = believed.chain.where(_reaching(believed.chain, end_ms))
    walk = _Walk(chain, state, meters, start_ms, end_ms)
    return Closed(walk.means(), walk.state(believed.pending), +rejected)


def _points(rows: Rows, ahead: Rows, state: RegisterState) -> Rows:
    """Return the latest believed readings of meters that say something more."""
    said = np.zeros(len(state.time_ms), np.bool_)
    said[rows.meter] = True
    said[ahead.meter] = True
    meter = np.flatnonzero(said & state.begun)
    live = np.ones(len(meter), np.bool_)
    return Rows(meter, state.time_ms[meter], state.value_mwh[meter], live, state.serial[meter])


def _reaching(chain: Chain, end_ms: int) -> BoolArray:
    """Return which readings matter to a slot: those before its end, and one after such a one."""
    before = chain.time_ms < end_ms
    follows = np.zeros(len(before), np.bool_)
    follows[1:] = before[:-1] & ~starts(chain.meter)[1:]
    return before | follows


class _Walk:
    """The stretches between successive believed readings, from the point on.

    Each row is the stretch that ends with its reading; a meter's first row is the reading before, and no stretch.
    """

    def __init__(
        self, chain: Chain, state: RegisterState, meters: Meters, start_ms: int, end_ms: int
    ) -> None:
        self._chain, self._before, self._meters = chain, state, meters
        self._start_ms, self._end_ms = start_ms, end_ms
        first = starts(chain.meter)
        root = latest(first)
        begun = state.begun[chain.meter]
        self._point_ms = np.where(begun, state.assigned_ms[chain.meter], chain.time_ms[root])
        self._point_mwh = np.where(begun, state.assigned_mwh[chain.meter], chain.value[root])
        # The sum over all meters may leave 64 bits, but it wraps round, and a meter's difference does not.
        total = np.cumsum(np.where(first, 0, chain.energy_mwh))
        self._level = chain.value[root] + (total - total[root])
        self._last = ends(chain.meter)
        self._rest(first)

    def _rest(self, first: BoolArray) -> None:
        chain, meter = self._chain, self._chain.meter
        since = np.where(first, chain.time_ms, np.roll(chain.time_ms, 1))
        gap_ms = self._meters.gap_ms[meter]
        self._says = ~first & chain.known & (self._meters.spread[meter] | (chain.time_ms - since <= gap_ms))
        self._from_ms = np.maximum(since, self._point_ms)
        self._from_mwh = np.maximum(np.where(first, self._level, np.roll(self._level, 1)), self._point_mwh)
        self._silent_ms = np.where(self._says, 0, self._within(chain.time_ms) - self._within(since))
        # A meter that has just begun says nothing about the time before.
        fresh = first & ~self._before.begun[meter]
        self._silent_ms += np.where(fresh, chain.time_ms - self._start_ms, 0)
        # From where on a stretch counts: a longer carry from the slots before is theirs.
        carried = self._start_ms - self._from_ms <= gap_ms
        self._count_ms = np.where(carried, self._from_ms, self._start_ms)

    def _within(self, time_ms: IntArray) -> IntArray:
        within: IntArray = np.clip(time_ms, self._start_ms, self._end_ms)
        return within

    def _at(self, time_ms: IntArray) -> IntArray:
        """Return the level at a time of each stretch."""
        whole = self._chain.time_ms - self._from_ms
        rise = np.maximum(self._level, self._point_mwh) - self._from_mwh
        part = np.clip(time_ms - self._from_ms, 0, whole)
        # All of a stretch without length lies at its end.
        passed = np.where(part < whole, 0, rise)
        between = np.flatnonzero((part > 0) & (part < whole))
        passed[between] = share(rise[between], part[between], whole[between])
        level: IntArray = self._from_mwh + passed
        return level

    def means(self) -> IntArray:
        """Return (m,) the mean powers."""
        meters, meter = len(self._meters), self._chain.meter
        until_ms = np.minimum(self._chain.time_ms, self._end_ms)
        counted = self._at(until_ms) - np.where(
            self._count_ms > self._from_ms, self._at(self._count_ms), self._from_mwh
        )
        covered = sums(
            meter,
            np.where(self._says, self._within(self._chain.time_ms) - self._within(self._from_ms), 0),
            meters,
        )
        energy = sums(meter, np.where(self._says, counted, 0), meters)
        silent = sums(meter, self._silent_ms + self._tail_ms(), meters)
        slot_ms = self._end_ms - self._start_ms
        heard = 2 * covered >= slot_ms
        return np.where(heard, mean_mw(energy, np.where(heard, slot_ms - silent, 1)), MISSING)

    def _tail_ms(self) -> IntArray:
        """Return the time after each meter's last row, if no slot will get its energy."""
        since = np.maximum(self._chain.time_ms, self._point_ms)
        lost = self._last & (self._end_ms - since > self._meters.gap_ms[self._chain.meter])
        return np.where(lost, self._end_ms - self._within(since), 0)

    def state(self, pending: IntArray) -> RegisterState:
        """Return the state after the slot."""
        after = self._before.copy()
        chain, end_ms = self._chain, self._end_ms
        inside = chain.time_ms < end_ms
        final = np.flatnonzero(inside & (self._last | ~np.roll(inside, -1)))
        meter = chain.meter[final]
        after.time_ms[meter] = chain.time_ms[final]
        after.value_mwh[meter] = chain.value[final]
        after.serial[meter] = chain.serial[final]
        after.lower_ms[meter] = chain.lower_ms[final]
        after.assigned_ms[meter] = np.maximum(chain.time_ms, self._point_ms)[final]
        raw = chain.value - self._level
        after.assigned_mwh[meter] = (raw + np.maximum(self._level, self._point_mwh))[final]
        crossing = np.flatnonzero(self._says & ~inside)
        meter = chain.meter[crossing]
        after.assigned_ms[meter] = end_ms
        after.assigned_mwh[meter] = raw[crossing - 1] + self._at(np.full(len(chain.meter), end_ms))[crossing]
        after.pending[...] = pending
        return after
