"""Open slots: from readings to one integer per household and slot.

What a slot holds does not depend on the order of arrival, and a repeat changes nothing: an interval keeps the
largest energy that was reported for it (a provisional, partial value is the smaller one), and sums are exact. Only
a flood of changes is cut off, in the order of arrival.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import gcd
from typing import NamedTuple

import numpy as np

from gateway.privacy import MISSING, BoolArray, IntArray
from gateway.sources import Readings, Reason, occurrences

_MS_PER_HOUR = 3_600_000
# A meter may tell the energy so far, each minute of an hour; more changes are a flood that would fill the journal.
_CHANGES_PER_PART = 64


@dataclass(frozen=True, eq=False)
class _OpenSlot:
    energy: IntArray  # (parts, n) mWh, MISSING where nothing was reported
    changes: IntArray  # (n,) how often a reading changed it


class Put(NamedTuple):
    """What became of a batch: the readings that changed a slot, and how many did not, by reason."""

    fresh: Readings
    rejected: Counter[Reason]


class OpenSlots:
    """The slots that have not closed yet.

    Args:
        slot_ms: the slot's length.
        parts: (n,) how many intervals fill each household's slot.
        next_slot: the first slot that is still open.

    """

    def __init__(self, slot_ms: int, parts: IntArray, next_slot: int) -> None:
        self.slot_ms = slot_ms
        self.next_slot = next_slot
        self._parts = parts
        self._interval_ms = slot_ms // parts
        self._shape = (int(parts.max(initial=1)), len(parts))
        self._needed: BoolArray = np.arange(self._shape[0])[:, None] < parts
        self._open: dict[int, _OpenSlot] = {}
        scale = gcd(_MS_PER_HOUR, slot_ms)
        self._times, self._over = _MS_PER_HOUR // scale, slot_ms // scale

    def put(self, readings: Readings, horizon_ms: int) -> Put:
        """Enter a batch; intervals that end after ``horizon_ms`` are not believed yet."""
        rejected: Counter[Reason] = Counter()
        slot = readings.start_ms // self.slot_ms
        late = slot < self.next_slot
        future = ~late & (readings.start_ms + self._interval_ms[readings.household] > horizon_ms)
        rejected[Reason.STALE_RETAINED] = int(np.count_nonzero(late & readings.retained))
        rejected[Reason.LATE] = int(np.count_nonzero(late & ~readings.retained))
        rejected[Reason.FUTURE] = int(np.count_nonzero(future))
        timely = ~(late | future)
        fresh = np.zeros(len(readings), np.bool_)
        for one in np.unique(slot[timely]):
            chosen = np.flatnonzero(timely & (slot == one))
            fresh[chosen] = self._enter(int(one), readings.where(chosen), rejected)
        return Put(readings.where(fresh), +rejected)

    def take(self) -> IntArray:
        """Close the next slot; return (n,) mean powers (mW, rounded down), MISSING for want of any part."""
        energy = self._open.pop(self.next_slot, self._empty()).energy
        self.next_slot += 1
        missing = np.any((energy == MISSING) & self._needed, axis=0)
        total = np.sum(np.where(energy == MISSING, 0, energy), axis=0)
        return np.where(missing, MISSING, total * self._times // self._over)

    def _enter(self, slot: int, readings: Readings, rejected: Counter[Reason]) -> BoolArray:
        held = self._open.setdefault(slot, self._empty())
        part = readings.start_ms % self.slot_ms // self._interval_ms[readings.household]
        # Each interval once per turn, in the order of arrival: a batch changes what its readings one by one would.
        turn = occurrences(part * self._shape[1] + readings.household)
        fresh = np.zeros(len(readings), np.bool_)
        for one in range(int(turn.max()) + 1):
            chosen = np.flatnonzero(turn == one)
            fresh[chosen] = self._enter_once(held, part[chosen], readings.where(chosen), rejected)
        return fresh

    def _enter_once(
        self, held: _OpenSlot, part: IntArray, readings: Readings, rejected: Counter[Reason]
    ) -> BoolArray:
        household, energy = readings.household, readings.energy_mwh
        changed: BoolArray = energy > held.energy[part, household]
        changes = held.changes[household]
        changes[changed] += occurrences(household[changed])
        flooded = changed & (changes >= _CHANGES_PER_PART * self._parts[household])
        rejected[Reason.REPEATED] += int(np.count_nonzero(~changed))
        rejected[Reason.QUOTA] += int(np.count_nonzero(flooded))
        fresh: BoolArray = changed & ~flooded
        held.energy[part[fresh], household[fresh]] = energy[fresh]
        np.add.at(held.changes, household[fresh], 1)
        return fresh

    def _empty(self) -> _OpenSlot:
        return _OpenSlot(np.full(self._shape, MISSING, np.int64), np.zeros(self._shape[1], np.int64))
