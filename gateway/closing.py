"""Slots close, in order, each once: symbols and charges in one transaction, then to the publisher."""

from __future__ import annotations

import asyncio

import numpy as np
import structlog

from gateway.classes import group_classes, household_classes
from gateway.clocks import Schedule
from gateway.ledger import Ledger, LedgerThread, PendingRelease
from gateway.messages import Release
from gateway.mqtt import Session
from gateway.policy import PolicyDocument
from gateway.privacy import MISSING, CapacityBound, Closed, Policy, State, capacity_bound, close_slot
from gateway.slots import OpenSlots
from gateway.telemetry import Bounds, OperatorMetrics

_log = structlog.get_logger()


class Closer:
    """Closes slots when they are due.

    Args:
        document: the public policy.
        policy: the same, compiled.
        state: what the latest slot left.
        ledger: charges.
        thread: runs the ledger.
        metrics: counts for the operator.

    Attributes:
        releases: decided slots, for the publisher.
        busy: held while a slot closes.

    """

    def __init__(
        self,
        document: PolicyDocument,
        policy: Policy,
        state: State,
        *,
        ledger: Ledger,
        thread: LedgerThread,
        metrics: OperatorMetrics,
    ) -> None:
        self._document = document
        self._policy = policy
        self._state = state
        self._ledger = ledger
        self._thread = thread
        self._metrics = metrics
        self._classes = household_classes(document, policy)
        self._groups = group_classes(document, policy)
        books = [(one.label, one.codebook) for one in self._classes]
        books += [(group.label, group.codebook) for group in self._groups]
        self._leakage = {label: book.leakage_bits() for label, book in books}
        self._totals = ledger.totals()
        self._latest: tuple[int, Closed] | None = None
        self.releases: asyncio.Queue[PendingRelease] = asyncio.Queue()
        self.busy = asyncio.Lock()

    async def run(self, slots: OpenSlots, schedule: Schedule, session: Session, catch_up_s: float) -> None:
        """Close slots for ever, when they are due and the broker's backlog is in."""
        while True:
            await schedule.wait(slots.next_slot)
            await session.wait_caught_up(catch_up_s)
            while schedule.due(slots.next_slot):
                async with self.busy:
                    await self._close_next(slots)
                # Closing many slots in a row must not starve the link.
                await asyncio.sleep(0)

    def bounds(self) -> Bounds:
        """Return what the public may know after the latest slot."""
        accounts = self._state.households
        households, groups, charged = self._totals
        window = int(accounts.window.max(initial=0))
        return Bounds(
            households,
            groups,
            charged,
            {} if self._latest is None else self._capacity(*self._latest),
            self._leakage,
            self._policy.budget - accounts.spent_in(window),
            self._policy.budget,
        )

    async def _close_next(self, slots: OpenSlots) -> None:
        start_ms = slots.next_slot * slots.slot_ms
        values = slots.take()
        closed = close_slot(self._policy, self._state, start_ms, values)
        symbols = np.concatenate((closed.symbols, closed.group_symbols)).tolist()
        coarse = closed.coarse.tolist() if closed.coarse.any() else []
        release = Release(start_ms, symbols, closed.spent.tolist(), coarse)
        await self._thread.insist(self._ledger.close_slot, release, start_ms + slots.slot_ms, closed)
        self._state, self._latest = closed.state, (start_ms, closed)
        self._totals = await self._thread.insist(self._ledger.totals)
        self._metrics.substituted.inc(int(np.count_nonzero((values == MISSING) & ~closed.spent)))
        self.releases.put_nowait(PendingRelease(self._ledger.epoch, release, 0))
        _log.debug("slot closed", slot_ms=start_ms)

    def _capacity(self, start_ms: int, closed: Closed) -> dict[str, CapacityBound]:
        elapsed = start_ms + self._document.slot_ms - self._document.window_of(start_ms)
        state = closed.state
        bounds = {
            one.label: capacity_bound(state.households, closed.charges, one.positions, elapsed)
            for one in self._classes
        }
        for group in self._groups:
            place = np.array([group.position])
            bounds[group.label] = capacity_bound(state.groups, closed.group_charges, place, elapsed)
        return bounds
