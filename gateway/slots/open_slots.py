"""The slots that have not closed yet: what comes in is held by slot, and a slot is valued when it closes."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from gateway.meters import Meters, Quantity
from gateway.privacy import MISSING, BoolArray, IntArray
from gateway.slots.exact import latest, starts, sums
from gateway.slots.held import HeldSlot, Rows
from gateway.slots.intervals import interval_means
from gateway.slots.powers import power_means
from gateway.slots.register_state import RegisterState
from gateway.slots.registers import LOOK_AHEAD, close_registers
from gateway.sources import Readings, Reason

# A meter may tell the energy so far, each minute of an hour; more changes are a flood that would fill the journal.
_CHANGES_PER_INTERVAL = 64
_CHANGES_PER_SECOND = 4
_MOST_MW = 2**62


class Put(NamedTuple):
    """What became of a batch.

    Attributes:
        fresh: the readings that changed a slot: what must be journaled.
        rejected: how many did not, by reason.

    """

    fresh: Readings
    rejected: Counter[Reason]


class Taken(NamedTuple):
    """What a slot closed with.

    Attributes:
        values: (n,) mW per household, MISSING where there is none.
        registers: what the next slot goes on from; to be stored with what this slot leads to.
        rejected: readings that turned out not to count when the slot closed, by reason.

    """

    values: IntArray
    registers: RegisterState
    rejected: Counter[Reason]


class OpenSlots:
    """The slots that have not closed yet.

    Args:
        slot_ms: the slot's length; the length of an interval divides it.
        meters: of the roll.
        households: how many the roll has; one without any meter is always missing.
        next_slot: the first slot that is still open.
        registers: what the slot before left.

    Attributes:
        next_slot: the first slot that is still open.
        slot_ms: the slot's length.
        registers: what the latest slot left.

    """

    def __init__(
        self, slot_ms: int, meters: Meters, households: int, next_slot: int, registers: RegisterState
    ) -> None:
        self.slot_ms = slot_ms
        self.next_slot = next_slot
        self._meters = meters
        self._households = households
        self.registers = registers
        self._quota = _quotas(meters, slot_ms)
        self._open: dict[int, HeldSlot] = {}

    def put(self, readings: Readings, horizon_ms: int) -> Put:
        """Enter a batch; what lies after ``horizon_ms``, or ends after it, is not believed yet."""
        rejected: Counter[Reason] = Counter()
        slot = readings.time_ms // self.slot_ms
        late = slot < self.next_slot
        stale = readings.retained & (late | self._knows_better(readings.meter))
        future = ~(late | stale) & (readings.time_ms + self._meters.span_ms[readings.meter] > horizon_ms)
        rejected[Reason.STALE_RETAINED] = int(np.count_nonzero(stale))
        rejected[Reason.LATE] = int(np.count_nonzero(late & ~stale))
        rejected[Reason.FUTURE] = int(np.count_nonzero(future))
        # An interval names its time itself: it may be retained.
        live = ~readings.retained | (self._meters.quantity[readings.meter] == Quantity.INTERVAL)
        timely = ~(late | stale | future)
        fresh = np.zeros(len(readings), np.bool_)
        for one in np.unique(slot[timely]).tolist():
            chosen = np.flatnonzero(timely & (slot == one))
            held = self._open.setdefault(one, HeldSlot(one * self.slot_ms, self.slot_ms))
            fresh[chosen] = held.enter(readings.where(chosen), live[chosen], self._quota, rejected)
        return Put(readings.where(fresh), +rejected)

    def take(self) -> Taken:
        """Close the next slot."""
        start_ms = self.next_slot * self.slot_ms
        rows = self._rows(self.next_slot)
        registers = self._of(rows, Quantity.REGISTER)
        closed = close_registers(
            registers, self._ahead(), self.registers, self._meters, start_ms=start_ms, slot_ms=self.slot_ms
        )
        means = np.choose(
            self._meters.quantity,
            (
                interval_means(self._of(rows, Quantity.INTERVAL), self._meters, self.slot_ms),
                power_means(self._of(rows, Quantity.POWER), self._meters, start_ms, self.slot_ms),
                closed.means,
            ),
        )
        self._open.pop(self.next_slot, None)
        self.registers = closed.state
        self.next_slot += 1
        return Taken(self._by_household(means), closed.state, closed.rejected)

    def _knows_better(self, meter: IntArray) -> BoolArray:
        """Return of which meters a retained reading says nothing: it may be of any age."""
        quantity = self._meters.quantity[meter]
        begun = (quantity == Quantity.REGISTER) & (self.registers.time_ms[meter] != MISSING)
        better: BoolArray = (quantity == Quantity.POWER) | begun
        return better

    def _rows(self, slot: int) -> Rows:
        return self._open[slot].rows() if slot in self._open else Rows.none()

    def _of(self, rows: Rows, quantity: Quantity) -> Rows:
        return rows.where(self._meters.quantity[rows.meter] == quantity)

    def _ahead(self) -> Rows:
        """Return of each register the first live readings after the slot that closes."""
        wanted = np.where(self._meters.quantity == Quantity.REGISTER, LOOK_AHEAD, 0)
        found = [Rows.none()]
        for slot in sorted(self._open):
            if slot > self.next_slot and wanted.any():
                rows = self._rows(slot)
                rows = rows.where(rows.live & (wanted[rows.meter] > 0))
                nth = np.arange(len(rows.meter)) - latest(starts(rows.meter))
                rows = rows.where(nth < wanted[rows.meter])
                wanted -= sums(rows.meter, np.ones(len(rows.meter), np.int64), len(wanted))
                found.append(rows)
        return Rows.joined(found)

    def _by_household(self, means: IntArray) -> IntArray:
        whose, everyone = self._meters.household, self._households
        meters = sums(whose, np.ones(len(whose), np.int64), everyone)
        heard = sums(whose, (means != MISSING).astype(np.int64), everyone)
        # No connection carries as much: only a sum of absurd intervals could leave 64 bits.
        most = _MOST_MW // np.maximum(meters[whose], 1)
        total = sums(whose, np.clip(means, -most, most), everyone)
        return np.where((heard == meters) & (meters > 0), total, MISSING)


def _quotas(meters: Meters, slot_ms: int) -> IntArray:
    moments = max(_CHANGES_PER_INTERVAL, _CHANGES_PER_SECOND * slot_ms // 1_000)
    intervals = _CHANGES_PER_INTERVAL * (slot_ms // np.maximum(meters.span_ms, 1))
    return np.where(meters.quantity == Quantity.INTERVAL, intervals, moments)
