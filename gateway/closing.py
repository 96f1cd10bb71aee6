"""Slots close, in order, each once: symbols and charges in one transaction, then to the publisher."""

from __future__ import annotations

import asyncio

import numpy as np
import structlog

from gateway.classes import group_classes, household_classes
from gateway.clocks import Schedule
from gateway.intake import Intake
from gateway.ledger import Ledger, LedgerThread
from gateway.messages import Release
from gateway.mqtt import Session
from gateway.outbox import Outbox
from gateway.policy import PolicyDocument
from gateway.privacy import MISSING, CapacityBound, Closed, Policy, State, capacity_bound, close_slot
from gateway.slots import OpenSlots
from gateway.telemetry import Bounds, OperatorMetrics

_log = structlog.get_logger()
_LOOK_S = 1.0


class Closer:
    """Closes slots when they are due.

    Args:
        document: the public policy.
        policy: the same, compiled.
        state: what the latest slot left.
        ledger: charges.
        thread: runs the ledger.
        outbox: counts what is decided and not published.
        metrics: counts for the operator.

    Attributes:
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
        outbox: Outbox,
        metrics: OperatorMetrics,
    ) -> None:
        self._document = document
        self._policy = policy
        self._state = state
        self._ledger = ledger
        self._thread = thread
        self._outbox = outbox
        self._metrics = metrics
        self._classes = household_classes(document, policy)
        self._groups = group_classes(document, policy)
        books = [(one.label, one.codebook) for one in self._classes]
        books += [(group.label, group.codebook) for group in self._groups]
        self._leakage = {label: book.leakage_bits() for label, book in books}
        self._totals = ledger.totals()
        self._latest: tuple[int, Closed] | None = None
        self._behind = False
        self.busy = asyncio.Lock()

    async def run(
        self, slots: OpenSlots, schedule: Schedule, intake: Intake, session: Session, catch_up_s: float
    ) -> None:
        """Close slots for ever, when they are due, there is room for them, and the input's backlog is in."""
        while True:
            await schedule.wait(slots.next_slot)
            await self._wait_for_room(slots, schedule, intake, session)
            await session.wait_caught_up(catch_up_s)
            while schedule.due(slots.next_slot) and not self._outbox.full:
                async with self.busy:
                    await self._close_next(slots, intake)
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

    async def _wait_for_room(
        self, slots: OpenSlots, schedule: Schedule, intake: Intake, session: Session
    ) -> None:
        """Return when the outbox has room; input waits at its broker if as many slots again are due."""
        held = False
        while self._outbox.full or (held and not self._outbox.relieved):
            self._say_behind()
            if not held and schedule.due(slots.next_slot + self._outbox.most):
                held = True
                intake.hold(held=True)
                _log.warning("input waits at its broker", due_slots=self._outbox.most)
            await self._outbox.changed(_LOOK_S)
        if held:
            # What came meanwhile is still at the broker: no slot closes before it is in.
            intake.hold(held=False)
            session.fence()
            _log.info("input flows again")
        self._behind = self._behind and not self._outbox.relieved

    def _say_behind(self) -> None:
        if not self._behind:
            self._behind = True
            remedy = "see why the broker does not take releases; output.max_pending bounds what waits"
            _log.warning("releases wait, no slot closes", waiting_slots=self._outbox.slots, remedy=remedy)

    async def _close_next(self, slots: OpenSlots, intake: Intake) -> None:
        start_ms = slots.next_slot * slots.slot_ms
        intake.enter()
        values, registers, rejected = slots.take()
        closed = close_slot(self._policy, self._state, start_ms, values)
        symbols = np.concatenate((closed.symbols, closed.group_symbols)).tolist()
        coarse = closed.coarse.tolist() if closed.coarse.any() else []
        release = Release(start_ms, symbols, closed.spent.tolist(), coarse)
        next_ms = start_ms + slots.slot_ms
        await self._thread.insist(self._ledger.close_slot, release, next_ms, closed, registers.packed())
        intake.late_faults(rejected)
        self._outbox.add(len(symbols))
        self._state, self._latest = closed.state, (start_ms, closed)
        counts = (len(closed.symbols), len(closed.group_symbols), int(closed.charges.sum()))
        households, groups, charged = (before + now for before, now in zip(self._totals, counts, strict=True))
        self._totals = (households, groups, charged)
        self._metrics.substituted.inc(int(np.count_nonzero((values == MISSING) & ~closed.spent)))
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
