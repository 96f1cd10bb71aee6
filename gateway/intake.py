"""Messages in: decoded, entered into their slots, journaled, and only then acknowledged."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np

from gateway.clocks import Schedule
from gateway.ledger import Ledger, LedgerThread
from gateway.mqtt import Message, Session
from gateway.slots import OpenSlots, Put
from gateway.sources import Readings, Reason, Sources, occurrences
from gateway.telemetry import OperatorMetrics

# Before the first slot is known (event clock), one meter may have this many readings kept.
_MOST_EARLY = 1_000
_MOST_UNENTERED = 4_096


class Intake:
    """The way of a reading from a message to its slot.

    Args:
        sources: how messages become readings.
        meters: how many there are.
        schedule: which readings are too far ahead, and when those came that do not say it.
        ledger: journals the readings.
        thread: runs the ledger.
        metrics: counts for the operator.

    """

    def __init__(
        self,
        sources: Sources,
        *,
        meters: int,
        schedule: Schedule,
        ledger: Ledger,
        thread: LedgerThread,
        metrics: OperatorMetrics,
    ) -> None:
        self._sources = sources
        self._schedule = schedule
        self._ledger = ledger
        self._thread = thread
        self._metrics = metrics
        self._early: list[Readings] = []
        self._early_counts = np.zeros(meters, np.int64)
        self._entering: list[Readings] = []
        self._unentered = 0
        self._pending: list[Readings] = []
        self._sequence = 0
        self._committing = asyncio.Lock()
        self._hurry = asyncio.Event()
        self._heard = asyncio.Event()
        self.slots: OpenSlots | None = None
        self._held = False

    def replay(self, readings: Readings) -> None:
        """Enter the journal's readings, which are durable already, before the first slot is opened."""
        self._schedule.observe(readings)
        self._early.append(readings)

    def receive(self, messages: Sequence[Message], sequence: int, *, hurry: bool) -> None:
        """Take a batch of messages; ``sequence`` is acknowledged when they are durable.

        Args:
            messages: in the order of arrival.
            sequence: the number of the last one.
            hurry: the broker waits for acknowledgements.

        """
        readings, rejected = self._sources.decode(messages, self._schedule.arrival_ms())
        self._schedule.observe(readings)
        self._entering.append(readings)
        self._unentered += len(readings)
        self._sequence = sequence
        self._count(len(messages), 0, rejected)
        self._heard.set()
        if self._unentered >= _MOST_UNENTERED:
            self.enter()
        if hurry:
            self._hurry.set()

    def enter(self) -> None:
        """Enter all that was received into its slots; many batches at once cost little more than one."""
        readings, self._entering, self._unentered = Readings.joined(self._entering), [], 0
        put = self._enter(readings)
        self._pending.append(put.fresh)
        self._count(0, len(put.fresh), put.rejected)

    async def first_slot(self) -> int:
        """Return the first slot of a new ledger, once it can be known."""
        while (slot := self._schedule.first_slot()) is None:
            self._heard.clear()
            await self._heard.wait()
        return slot

    def open(self, slots: OpenSlots) -> None:
        """Enter what came before the first slot was known, and from now on straight into ``slots``."""
        self.enter()
        self.slots = slots
        early, self._early = self._early, []
        put = self._enter(Readings.joined(early))
        self._count(0, 0, put.rejected)

    async def commit_every(self, seconds: float, session: Session) -> None:
        """Commit for ever: every so often, or as soon as the broker waits."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), seconds)
            self._hurry.clear()
            await self.commit(session.acknowledge)
            await self._thread.insist(self._ledger.wipe)

    def hold(self, *, held: bool) -> None:
        """Leave input unacknowledged, so that its broker keeps it; or go on."""
        self._held = held
        self._hurry.set()

    async def commit(self, acknowledge: Callable[[int], None]) -> None:
        """Make all that was received durable, then acknowledge it; one commit at a time."""
        async with self._committing:
            if self._held:
                return
            self.enter()
            sequence, batches = self._sequence, self._pending
            self._pending = []
            pending = self._still_open(Readings.joined(batches))
            try:
                if len(pending):
                    await self._thread.insist(self._ledger.append, pending)
            except BaseException:
                self._pending = [*batches, *self._pending]
                raise
            if sequence:
                acknowledge(sequence)

    def _still_open(self, readings: Readings) -> Readings:
        """Leave out what a closed slot used: it is durable in its symbols, the raw reading need not be written."""
        next_ms = self._ledger.next_ms
        return readings if next_ms is None else readings.where(readings.time_ms >= next_ms)

    def _enter(self, readings: Readings) -> Put:
        if self.slots is not None:
            return self.slots.put(readings, self._schedule.horizon_ms(self.slots.next_slot))
        kept = self._early_counts[readings.meter] + occurrences(readings.meter) < _MOST_EARLY
        fresh = readings.where(kept)
        np.add.at(self._early_counts, fresh.meter, 1)
        self._early.append(fresh)
        return Put(fresh, +Counter({Reason.QUOTA: len(readings) - len(fresh)}))

    def late_faults(self, rejected: Counter[Reason]) -> None:
        """Count what was only found out about readings when their slot closed."""
        self._count(0, 0, rejected)

    def _count(self, messages: int, readings: int, rejected: Counter[Reason]) -> None:
        self._metrics.messages.inc(messages)
        self._metrics.readings.inc(readings)
        for reason, times in rejected.items():
            self._metrics.rejected.labels(reason.value).inc(times)
