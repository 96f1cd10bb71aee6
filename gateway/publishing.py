"""Releases out: from the outbox to the broker, in order, byte for byte the same however often."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from gateway.ledger import Ledger, LedgerThread, PendingRelease
from gateway.messages import Renderer
from gateway.mqtt import Publication, PublishRefused, Session

_log = structlog.get_logger()
# After so many acknowledged releases of a slot the ledger remembers how far it came.
_CHUNK = 20_000
_RETRY_S = 5.0


class Publisher:
    """Publishes decided slots.

    Args:
        ledger: knows the outbox and every epoch's policy.
        thread: runs the ledger.
        session: the link to the broker.

    Attributes:
        waiting: releases that were decided and not yet acknowledged.

    """

    def __init__(self, ledger: Ledger, thread: LedgerThread, session: Session) -> None:
        self._ledger = ledger
        self._thread = thread
        self._session = session
        self._renderers: dict[int, Renderer] = {}
        self.waiting = 0

    async def run(self, releases: asyncio.Queue[PendingRelease]) -> None:
        """Publish for ever: what the ledger still holds, then what is decided."""
        for pending in await self._thread.insist(self._ledger.outbox):
            releases.put_nowait(pending)
        while True:
            pending = await releases.get()
            await self._publish(pending)
            releases.task_done()

    async def _publish(self, pending: PendingRelease) -> None:
        renderer = await self._renderer(pending.epoch)
        start_ms = pending.release.start_ms
        for start in range(pending.sent, len(renderer), _CHUNK):
            chunk = renderer.render(pending.release, start, start + _CHUNK)
            self.waiting = len(renderer) - start
            await self._deliver(chunk)
            if start + _CHUNK < len(renderer):
                await self._thread.insist(self._ledger.sent, start_ms, start + _CHUNK)
        await self._thread.insist(self._ledger.delivered, start_ms)
        self.waiting = 0

    async def _deliver(self, publications: Sequence[Publication]) -> None:
        """Return when the broker has all of them; what it refuses is offered again."""
        while publications:
            try:
                await self._session.publish(publications)
            except PublishRefused as refusal:
                _log.error(
                    "broker refuses releases",
                    reason=f"0x{refusal.reason:02x}",
                    count=len(refusal.refused),
                    remedy="let the broker's ACL and quotas allow the topics below output.topic",
                )
                publications = refusal.refused
                await asyncio.sleep(_RETRY_S)
            else:
                return

    async def _renderer(self, epoch: int) -> Renderer:
        if epoch not in self._renderers:
            document = await self._thread.insist(self._ledger.document, epoch)
            self._renderers[epoch] = Renderer(document, document.compile())
        return self._renderers[epoch]
