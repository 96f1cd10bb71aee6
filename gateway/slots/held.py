"""The readings of one open slot, each time of a meter once, sorted; it takes memory only for what came.

New readings are sorted runs of their own, and runs of like length are merged, so that there are few: a reading is
looked up in each of them, which tells exactly whether it is a repeat, whatever the batches were.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from gateway.privacy import BoolArray, IntArray
from gateway.slots.exact import ends
from gateway.sources import Readings, Reason, occurrences

# No value is as much as half of it.
_LIVE = 2**52


class Rows(NamedTuple):
    """Readings by meter and time, each time of a meter once: parallel arrays of one entry per reading.

    Attributes:
        meter: position among the meters, ascending.
        time_ms: ascending within a meter.
        value: in the meter's unit.
        live: whether it is sure to be new: not a register's that the broker had retained.
        serial: names the meter behind a register; 0 where the message does not.

    """

    meter: IntArray
    time_ms: IntArray
    value: IntArray
    live: BoolArray
    serial: IntArray

    def where(self, chosen: BoolArray | IntArray) -> Rows:
        """Return the chosen rows."""
        return Rows(
            self.meter[chosen],
            self.time_ms[chosen],
            self.value[chosen],
            self.live[chosen],
            self.serial[chosen],
        )

    @classmethod
    def none(cls) -> Rows:
        """Return no rows."""
        empty = np.zeros(0, np.int64)
        return cls(empty, empty, empty, np.zeros(0, np.bool_), empty)

    @classmethod
    def joined(cls, parts: list[Rows]) -> Rows:
        """Return the rows of the parts, meter by meter; within a meter in the order of the parts."""
        rows = cls(
            np.concatenate([part.meter for part in parts]),
            np.concatenate([part.time_ms for part in parts]),
            np.concatenate([part.value for part in parts]),
            np.concatenate([part.live for part in parts]),
            np.concatenate([part.serial for part in parts]),
        )
        return rows.where(np.argsort(rows.meter, kind="stable"))


class _Run(NamedTuple):
    key: IntArray  # by meter, then time; ascending, each once
    rank: IntArray  # the value; a live one is more than any retained one
    serial: IntArray
    changes: IntArray  # (rows + 1,) how often readings changed the rows before each

    @classmethod
    def of(cls, key: IntArray, rank: IntArray, serial: IntArray, changes: IntArray) -> _Run:
        """Return the run of unsorted rows, of each key the best."""
        order = _by_goodness(key, rank, serial)
        key = key[order]
        last = ends(key)
        total = np.cumsum(changes[order])[last]
        best = order[last]
        return cls(key[last], rank[best], serial[best], np.concatenate(([0], total)))


class HeldSlot:
    """What one open slot holds.

    Args:
        start_ms: the slot's start.
        slot_ms: its length.

    """

    def __init__(self, start_ms: int, slot_ms: int) -> None:
        self._start_ms = start_ms
        self._slot_ms = slot_ms
        self._runs: list[_Run] = []

    def enter(
        self, readings: Readings, live: BoolArray, quota: IntArray, rejected: Counter[Reason]
    ) -> BoolArray:
        """Hold readings of this slot; return which of them changed it.

        Args:
            readings: of times within the slot.
            live: which of them are sure to be new; of the same time they count rather than others.
            quota: (m,) how often one meter may change it.
            rejected: where the others are counted, repeats and a flood.

        """
        key = readings.meter * self._slot_ms + (readings.time_ms - self._start_ms)
        rank = readings.value + _LIVE * live
        changing = self._changing(key, rank, readings.serial)
        meter = readings.meter[changing]
        flooded = self._changes(meter) + occurrences(meter) >= quota[meter]
        rejected[Reason.QUOTA] += int(np.count_nonzero(flooded))
        rejected[Reason.REPEATED] += len(readings) - len(changing)
        chosen = changing[~flooded]
        if len(chosen):
            self._add(
                _Run.of(key[chosen], rank[chosen], readings.serial[chosen], np.ones(len(chosen), np.int64))
            )
        fresh = np.zeros(len(readings), np.bool_)
        fresh[chosen] = True
        return fresh

    def rows(self) -> Rows:
        """Return all that is held."""
        while len(self._runs) > 1:
            self._merge_last()
        if not self._runs:
            return Rows.none()
        run = self._runs[0]
        meter, offset = np.divmod(run.key, self._slot_ms)
        live = run.rank > _LIVE // 2
        return Rows(meter, self._start_ms + offset, run.rank - _LIVE * live, live, run.serial)

    def _changing(self, key: IntArray, rank: IntArray, serial: IntArray) -> IntArray:
        """Return the rows that are better than what is held, of each key one, in the order of arrival."""
        order = _by_goodness(key, rank, serial)
        # By key: a search for sorted keys is many times quicker.
        best = order[ends(key[order])]
        for run in self._runs:
            best = best[_better(run, key[best], rank[best], serial[best])]
        return np.sort(best)

    def _changes(self, meter: IntArray) -> IntArray:
        """Return how often each meter changed the slot so far."""
        some, which = np.unique(meter, return_inverse=True)
        total = np.zeros(len(some), np.int64)
        for run in self._runs:
            first = np.searchsorted(run.key, some * self._slot_ms)
            after = np.searchsorted(run.key, (some + 1) * self._slot_ms)
            total += run.changes[after] - run.changes[first]
        return total[which]

    def _add(self, run: _Run) -> None:
        self._runs.append(run)
        while len(self._runs) > 1 and len(self._runs[-2].key) < 2 * len(self._runs[-1].key):
            self._merge_last()

    def _merge_last(self) -> None:
        pair = self._runs[-2:]
        self._runs[-2:] = [
            _Run.of(
                np.concatenate([run.key for run in pair]),
                np.concatenate([run.rank for run in pair]),
                np.concatenate([run.serial for run in pair]),
                np.concatenate([np.diff(run.changes) for run in pair]),
            )
        ]


def _by_goodness(key: IntArray, rank: IntArray, serial: IntArray) -> IntArray:
    """Return the order by key, the best row of a key last; of equal ones as they stand."""
    order = np.argsort(key, kind="stable")
    if ends(key[order]).all():
        return order
    return np.lexsort((serial, rank, key))


def _better(run: _Run, key: IntArray, rank: IntArray, serial: IntArray) -> BoolArray:
    """Return which rows the run does not hold, or holds with less."""
    place = np.minimum(np.searchsorted(run.key, key), len(run.key) - 1)
    known, held = run.key[place] == key, run.rank[place]
    better: BoolArray = ~known | (rank > held) | ((rank == held) & (serial > run.serial[place]))
    return better
