"""Sparkplug nodes whose births we missed are asked for another: nothing of Sparkplug is kept by the broker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import structlog

from gateway.clocks import utc_ms
from gateway.mqtt import Publication, PublishRefused, Session
from gateway.sources.formats import rebirth_request

_log = structlog.get_logger()
_EVERY_S = 60.0
_MOST_NODES = 10_000


class Rebirths:
    """Asks nodes for their births, each at most once a minute, and no more than 10,000 of them.

    Args:
        session: the link to the broker of readings.

    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._asked: dict[tuple[str, str], float] = {}
        self._asking: set[asyncio.Task[None]] = set()

    def ask(self, nodes: Sequence[tuple[str, str]]) -> None:
        """Ask the (group, node) pairs that were not asked lately."""
        now = time.monotonic()
        # In the order in which they were asked: the first are those that may be asked again.
        while self._asked and now - next(iter(self._asked.values())) >= _EVERY_S:
            del self._asked[next(iter(self._asked))]
        due = [node for node in nodes if node not in self._asked][: _MOST_NODES - len(self._asked)]
        if not due:
            return
        self._asked.update(dict.fromkeys(due, now))
        task = asyncio.create_task(self._publish(due))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _publish(self, nodes: Sequence[tuple[str, str]]) -> None:
        requests = [Publication(*rebirth_request(*node, utc_ms())) for node in nodes]
        try:
            await self._session.publish(requests)
        except PublishRefused as refusal:
            remedy = "let the broker's ACL allow the gateway spBv1.0/+/NCMD/+"
            _log.warning("broker refuses rebirth requests", reason=f"0x{refusal.reason:02x}", remedy=remedy)
