"""``run(config)``: builds the parts, starts them, and stops them in order."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import structlog

from gateway.certificates import seconds_left
from gateway.clocks import EventSchedule, Schedule, WallClock, WallSchedule
from gateway.closing import Closer
from gateway.config import Config, Credentials
from gateway.intake import Intake
from gateway.ledger import Ledger, LedgerThread
from gateway.mqtt import Broker, Message, Publication, Session, TlsFiles
from gateway.policy import document_of
from gateway.publishing import Publisher
from gateway.rules import ledger_path
from gateway.slots import OpenSlots
from gateway.sources import Sources
from gateway.telemetry import Bounds, OperatorMetrics, PublicMetrics
from gateway.web import Server, application

_log = structlog.get_logger()
_DRAIN_S = 10.0
_TOKEN_VARIABLE = "NOISELESS_OPERATOR_TOKEN"  # noqa: S105 - its name, not the token


class Gateway:
    """One gateway, from readings in to releases out.

    Args:
        config: a configuration that :mod:`gateway.checking` found good.
        clock: the time; the system's unless it is simulated.

    Raises:
        LedgerError: the ledger cannot be used.

    """

    def __init__(self, config: Config, clock: WallClock | None = None) -> None:
        self._config = config
        document = document_of(config)
        policy = document.compile()
        self._sources = Sources(config.source, document.households, document.slot_ms)
        self._schedule = self._make_schedule(clock or WallClock())
        self.operator = OperatorMetrics()
        self._thread = LedgerThread(self.operator.commit_seconds.observe)
        self._ledger = Ledger(ledger_path(config))
        self._standing = self._ledger.enter(document, policy)
        self._session = self._make_session()
        self._intake = Intake(self._sources, self._schedule, self._ledger, self._thread, self.operator)
        self._closer = Closer(
            document,
            policy,
            self._standing.state,
            ledger=self._ledger,
            thread=self._thread,
            metrics=self.operator,
        )
        self._publisher = Publisher(self._ledger, self._thread, self._session)
        self.public = PublicMetrics(self._closer.bounds)
        self.operator.unacknowledged.set_function(lambda: self._session.unacknowledged)
        self.operator.outbox.set_function(lambda: self._publisher.waiting)
        self.operator.connections.set_function(lambda: self._session.connections)
        self._watch_certificates("broker", config.broker)

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until ``stop`` is set, then drain, commit and keep the broker's session.

        Raises:
            SessionTakenOver: another client uses the client id.
            OSError: the HTTP address cannot be listened on.

        """
        host, _, port = self._config.http.listen.rpartition(":")
        app = application(self.public, self.operator, self.readiness, _token(self._config.http.token_file))
        async with AsyncExitStack() as parts:
            parts.callback(self._ledger.close)
            parts.callback(self._thread.shutdown)
            if self._config.broker.url == "embedded":
                from gateway.mqtt.embedded import EmbeddedBroker  # noqa: PLC0415 - an extra

                await parts.enter_async_context(EmbeddedBroker(self._config.broker.address[1]))
            await self._serve(stop, Server(app, host.strip("[]"), int(port)))

    def bounds(self) -> Bounds:
        """Return what the public may know after the latest slot."""
        return self._closer.bounds()

    def readiness(self) -> dict[str, bool]:
        """Return what must hold for the gateway to be ready."""
        return {"subscribed": self._session.ready, "ledger_writable": self._thread.writable}

    async def _serve(self, stop: asyncio.Event, server: Server) -> None:
        link = asyncio.create_task(self._session.run())
        web = asyncio.create_task(server.run_until(stop))
        commit_s = self._config.ledger.commit / 1_000
        work = [
            asyncio.create_task(self._intake.commit_every(commit_s, self._session)),
            asyncio.create_task(self._publisher.run(self._closer.releases)),
            asyncio.create_task(self._close_slots()),
        ]
        stopped = asyncio.create_task(stop.wait())
        try:
            done, _ = await asyncio.wait([link, web, *work, stopped], return_when=asyncio.FIRST_COMPLETED)
            if stopped in done:
                await self._drain(work)
            else:
                done.pop().result()
        finally:
            stop.set()
            await self._end([*work, stopped], link, web)

    async def _close_slots(self) -> None:
        slot_ms = self._config.slots.length
        self._intake.replay(self._standing.readings)
        next_ms = self._standing.next_ms
        if next_ms is None:
            next_ms = await self._intake.first_slot() * slot_ms
            await self._thread.insist(self._ledger.begin, next_ms)
        # A slot length that changed goes on at the first border of the new grid.
        slots = OpenSlots(slot_ms, self._sources.parts, -(-next_ms // slot_ms))
        self._intake.open(slots)
        catch_up_s = self._config.slots.catch_up / 1_000
        await self._closer.run(slots, self._schedule, self._session, catch_up_s)

    async def _drain(self, work: Sequence[asyncio.Task[None]]) -> None:
        """Finish the slot that is closing, make all input durable, and publish what was decided."""
        _log.info("stopping", drain_s=_DRAIN_S)
        try:
            async with asyncio.timeout(_DRAIN_S), self._closer.busy:
                work[-1].cancel()
                await self._intake.commit(self._session.acknowledge)
                if self._session.ready:
                    await self._closer.releases.join()
        except TimeoutError:
            _log.warning(
                "not all is published", waiting=self._publisher.waiting, note="the next start goes on with it"
            )

    async def _end(
        self, work: Sequence[asyncio.Task[object]], link: asyncio.Task[None], web: asyncio.Task[None]
    ) -> None:
        for task in work:
            task.cancel()
        await self._session.stop()
        await asyncio.gather(*work, link, web, return_exceptions=True)
        _log.info("stopped")

    def _watch_certificates(self, table: str, given: Credentials) -> None:
        for kind, path in (("cert", given.cert_file), ("ca", given.ca_file)):
            if path is not None:
                left = self.operator.certificate_expiry.labels(table, kind)
                left.set_function(partial(seconds_left, path))

    def _make_schedule(self, clock: WallClock) -> Schedule:
        slots = self._config.slots
        if slots.clock == "event":
            return EventSchedule(slots.length // self._sources.parts, slots.length, slots.grace)
        return WallSchedule(clock, slots.length, slots.grace, slots.skew)

    def _make_session(self) -> Session:
        config, topic = self._config.broker, self._config.output.topic
        broker = _broker("broker", config.address, config.client_id, config, tls=config.tls)
        state = f"{topic}/state"
        return Session(
            broker,
            filters=self._sources.filters,
            deliver=self._deliver,
            birth=Publication(state, b'{"state":"online"}', retain=True),
            will=Publication(state, b'{"state":"offline"}', retain=True),
            fence_topic=f"{topic}/fence/{config.client_id}",
        )

    def _deliver(self, messages: Sequence[Message], sequence: int) -> None:
        # Half a window unacknowledged: the broker will soon wait for us.
        hurry = 2 * self._session.unacknowledged >= self._session.window
        self._intake.receive(messages, sequence, hurry=hurry)


def _broker(table: str, address: tuple[str, int], client_id: str, given: Credentials, *, tls: bool) -> Broker:
    """Return what a session needs to know of the broker that a table configures."""
    files = TlsFiles(given.ca_file, given.cert_file, given.key_file) if tls else None
    return Broker(*address, client_id, given.username, given.password_file, files, table)


def _token(path: Path | None) -> str | None:
    if path is None:
        return os.environ.get(_TOKEN_VARIABLE) or None
    return path.read_text(encoding="utf-8").strip() or None
