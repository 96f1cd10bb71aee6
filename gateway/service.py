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
from gateway.metering import metering_of
from gateway.mqtt import Broker, Message, Publication, Session, TlsFiles
from gateway.outbox import Outbox
from gateway.policy import document_of
from gateway.publishing import Publisher
from gateway.rebirths import Rebirths
from gateway.rules import ledger_path
from gateway.slots import OpenSlots, RegisterState
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
        metering = metering_of(config)
        self._meters = metering.meters
        self._sources = Sources(config.source, metering, document.slot_ms)
        clock = clock or WallClock()
        self._schedule = self._make_schedule(clock)
        self.operator = OperatorMetrics()
        self._thread = LedgerThread(self.operator.commit_seconds.observe)
        self._ledger = Ledger(ledger_path(config))
        self._ledger.keep_key(config.output.pseudonym_key)
        blank = RegisterState.initial(len(self._meters)).packed()
        self._standing = self._ledger.enter(document, policy, self._meters, blank)
        self._outbox = Outbox(config.output.max_pending, *self._ledger.waiting())
        self._session, self._output = self._make_sessions()
        self._rebirths = Rebirths(self._session)
        self._sessions = dict.fromkeys((self._session, self._output))  # one, if they are the same
        self._surprised = False
        self._intake = Intake(
            self._sources,
            meters=len(self._meters),
            schedule=self._schedule,
            ledger=self._ledger,
            thread=self._thread,
            metrics=self.operator,
        )
        self._closer = Closer(
            document,
            policy,
            self._standing.state,
            ledger=self._ledger,
            thread=self._thread,
            outbox=self._outbox,
            metrics=self.operator,
        )
        self._publisher = Publisher(self._ledger, self._thread, self._outbox, self._output)
        self.public = PublicMetrics(self._closer.bounds)
        self._watch()

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
        return {
            "subscribed": self._session.ready,
            "output_connected": self._output.ready,
            "ledger_writable": self._thread.writable,
        }

    async def _serve(self, stop: asyncio.Event, server: Server) -> None:
        links = [asyncio.create_task(session.run()) for session in self._sessions]
        web = asyncio.create_task(server.run_until(stop))
        commit_s = self._config.ledger.commit / 1_000
        work = [
            asyncio.create_task(self._intake.commit_every(commit_s, self._session)),
            asyncio.create_task(self._publisher.run()),
            asyncio.create_task(self._close_slots()),
        ]
        stopped = asyncio.create_task(stop.wait())
        try:
            done, _ = await asyncio.wait([*links, web, *work, stopped], return_when=asyncio.FIRST_COMPLETED)
            if stopped in done:
                await self._drain(work)
            else:
                done.pop().result()
        finally:
            stop.set()
            await self._end([*work, stopped], [*links, web])

    async def _close_slots(self) -> None:
        slot_ms = self._config.slots.length
        self._intake.replay(self._standing.readings)
        next_ms = self._standing.next_ms
        if next_ms is None:
            next_ms = await self._intake.first_slot() * slot_ms
            await self._thread.insist(self._ledger.begin, next_ms)
        # A slot length that changed goes on at the first border of the new grid.
        first, households = -(-next_ms // slot_ms), len(self._config.household)
        slots = OpenSlots(
            slot_ms, self._meters, households, first, RegisterState.of(self._standing.registers)
        )
        self._intake.open(slots)
        catch_up_s = self._config.slots.catch_up / 1_000
        await self._closer.run(slots, self._schedule, self._intake, self._session, catch_up_s)

    async def _drain(self, work: Sequence[asyncio.Task[None]]) -> None:
        """Finish the slot that is closing, make all input durable, and publish what was decided."""
        _log.info("stopping", drain_s=_DRAIN_S)
        try:
            async with asyncio.timeout(_DRAIN_S), self._closer.busy:
                work[-1].cancel()
                await self._intake.commit(self._session.acknowledge)
                if self._output.ready:
                    await self._outbox.emptied()
        except TimeoutError:
            _log.warning(
                "not all is published", waiting=self._outbox.releases, note="the next start goes on with it"
            )

    async def _end(self, work: Sequence[asyncio.Task[object]], serving: Sequence[asyncio.Task[None]]) -> None:
        for task in work:
            task.cancel()
        await asyncio.gather(*(session.stop() for session in self._sessions))
        await asyncio.gather(*work, *serving, return_exceptions=True)
        _log.info("stopped")

    def _watch(self) -> None:
        """Let the operator's gauges look at the parts when they are asked."""
        gauges = self.operator
        gauges.unacknowledged.set_function(lambda: self._session.unacknowledged)
        gauges.outbox.set_function(lambda: self._outbox.releases)
        gauges.outbox_slots.set_function(lambda: self._outbox.slots)
        gauges.connections.set_function(lambda: self._session.connections)
        gauges.output_connections.set_function(lambda: self._output.connections)
        self._watch_certificates("broker", self._config.broker)
        self._watch_certificates("output", self._config.output)

    def _watch_certificates(self, table: str, given: Credentials) -> None:
        for kind, path in (("cert", given.cert_file), ("ca", given.ca_file)):
            if path is not None:
                left = self.operator.certificate_expiry.labels(table, kind)
                left.set_function(partial(seconds_left, path))

    def _make_schedule(self, clock: WallClock) -> Schedule:
        slots = self._config.slots
        if slots.clock == "event":
            return EventSchedule(self._meters, len(self._config.household), slots.length, slots.grace)
        return WallSchedule(clock, slots.length, slots.grace, slots.skew)

    def _make_sessions(self) -> tuple[Session, Session]:
        """Return the session of readings and that of releases: one, unless they have a broker of their own."""
        given, output = self._config.broker, self._config.output
        broker = _broker("broker", given.address, given.client_id, given, tls=given.tls)
        fence = f"{output.topic}/fence/{given.client_id}"
        birth = Publication(f"{output.topic}/state", b'{"state":"online"}', retain=True)
        will = birth._replace(payload=b'{"state":"offline"}')
        filters = self._sources.filters
        former = self._ledger.former_filters([*filters, fence])
        if output.address is None:
            both = Session(
                broker,
                filters=filters,
                deliver=self._deliver,
                birth=birth,
                will=will,
                fence_topic=fence,
                former=former,
            )
            return both, both
        receivers = _broker("output", output.address, self._config.output_client_id, output, tls=output.tls)
        return (
            Session(broker, filters=filters, deliver=self._deliver, fence_topic=fence, former=former),
            Session(receivers, filters=(), deliver=self._pass_over, birth=birth, will=will),
        )

    def _pass_over(self, messages: Sequence[Message], sequence: int) -> None:
        """Acknowledge what nobody asked for: an earlier client of this name left subscriptions behind."""
        self._output.acknowledge(sequence)
        if messages and not self._surprised:
            self._surprised = True
            remedy = "an earlier client of this name subscribed: set another output.client_id"
            _log.warning("messages from the broker of releases", count=len(messages), remedy=remedy)

    def _deliver(self, messages: Sequence[Message], sequence: int) -> None:
        # Half a window unacknowledged: the broker will soon wait for us.
        hurry = 2 * self._session.unacknowledged >= self._session.window
        self._intake.receive(messages, sequence, hurry=hurry)
        self._rebirths.ask(self._sources.wanted_rebirths())


def _broker(table: str, address: tuple[str, int], client_id: str, given: Credentials, *, tls: bool) -> Broker:
    """Return what a session needs to know of the broker that a table configures."""
    files = TlsFiles(given.ca_file, given.cert_file, given.key_file) if tls else None
    return Broker(*address, client_id, given.username, given.password_file, files, table)


def _token(path: Path | None) -> str | None:
    if path is None:
        return os.environ.get(_TOKEN_VARIABLE) or None
    return path.read_text(encoding="utf-8").strip() or None
