"""Releases out: from the outbox to the broker, in order, byte for byte the same however often."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from gateway.ledger import Ledger, LedgerThread, PendingRelease
from gateway.messages import Renderer
from gateway.mqtt import Publication, PublishRefused, Session
from gateway.outbox import Outbox

_log = structlog.get_logger()
# After so many acknowledged releases of a slot the ledger remembers how far it came.
_CHUNK = 20_000
_RETRY_S = 5.0


class Publisher:
    """Publishes decided slots, from the ledger: what waits costs no memory.

    Args:
        ledger: keeps the outbox and every epoch's policy.
        thread: runs the ledger.
        outbox: counts what waits.
        session: the link to the receivers' broker.

    """

    def __init__(self, ledger: Ledger, thread: LedgerThread, outbox: Outbox, session: Session) -> None:
        self._ledger = ledger
        self._thread = thread
        self._session = session
        self._outbox = outbox
        self._renderers: dict[int, Renderer] = {}

    async def run(self) -> None:
        """Publish for ever what the ledger's outbox holds, in order."""
        while True:
            await self._outbox.filled()
            pending = await self._thread.insist(self._ledger.oldest)
            assert pending is not None, "a slot is counted after it is durable"
            await self._publish(pending)
            self._outbox.delivered()

    async def _publish(self, pending: PendingRelease) -> None:
        renderer = await self._renderer(pending.epoch)
        start_ms = pending.release.start_ms
        for start in range(pending.sent, len(renderer), _CHUNK):
            stop = min(start + _CHUNK, len(renderer))
            await self._deliver(renderer.render(pending.release, start, stop))
            # By place, not by message: a withheld release is done with as well.
            self._outbox.sent(stop - start)
            if stop < len(renderer):
                await self._thread.insist(self._ledger.sent, start_ms, stop)
        await self._thread.insist(self._ledger.delivered, start_ms)

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
            terms = document.pseudonyms
            key = None if terms is None else await self._thread.insist(self._ledger.key, terms.key)
            self._renderers[epoch] = Renderer(document, document.compile(), key)
        return self._renderers[epoch]
