"""One connection's conversation with the broker, from CONNECT to DISCONNECT."""

import asyncio
import secrets
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog
from mqtt5 import (
    ConnAckPacket,
    DisconnectPacket,
    DisconnectReasonCode,
    PingRespPacket,
    SubAckPacket,
    UnsubAckPacket,
)

from gateway.mqtt._connection import Connection, ConnectionLost
from gateway.mqtt._decoder import Batch, Skipped
from gateway.mqtt._flight import Flight
from gateway.mqtt._handshake import (
    check_connack,
    check_suback,
    connect_packet,
    subscribe_packet,
    unsubscribe_packet,
)
from gateway.mqtt._inbox import Inbox
from gateway.mqtt._interface import Broker, Message, Publication, PublishRefused
from gateway.mqtt._window import Window

if TYPE_CHECKING:
    from mqtt5.mqtt5 import Packet

CONNECT_TIMEOUT = 10.0
"""Seconds to wait for TCP."""
FAREWELL_TIMEOUT = 2.0
"""Seconds to wait for the broker to take the farewell, and again for the connection to close."""
BYTES_AT_ONCE = 1 << 15
"""Bytes of publications encoded before the socket is asked whether it takes more."""

log = structlog.get_logger()


class TakenOver(ConnectionLost):
    """Another client connected with our client id."""


class Unanswered(ConnectionLost):
    """The connection ended before the broker answered CONNECT."""


class DeliveryFailed(Exception):  # noqa: N818 - carries the error
    """`deliver` raised `error`."""

    def __init__(self, error: Exception) -> None:
        super().__init__(type(error).__name__)
        self.error = error


@dataclass(frozen=True, slots=True)
class Terms:
    """What every connection of a session is opened with."""

    broker: Broker
    filters: Sequence[str]
    deliver: Callable[[Sequence[Message], int], None]
    birth: Publication | None
    will: Publication | None
    will_delay: int
    fence_topic: str | None
    former: Sequence[str]


class Link:
    """Joins a connection to the session's inbox and flight, which outlive it."""

    def __init__(self, terms: Terms, inbox: Inbox, window: Window, flight: Flight) -> None:
        self._terms = terms
        self._inbox = inbox
        self._window = window
        self._flight = flight
        self._loop = asyncio.get_running_loop()
        self._connection = Connection(self._receive, self.pump)
        self._token = b""
        self._leaving = False
        self._undelivered = 0  # bytes read since the last delivery: a large message takes many reads
        self.ready_at: float | None = None
        self.fenced: asyncio.Future[None] = self._loop.create_future()
        self.fenced_from = 0.0
        self.malformed = 0
        self.resumed = False

    @property
    def lasted(self) -> float:
        """Seconds since it became ready; 0 if it never did."""
        return 0.0 if self.ready_at is None else self._loop.time() - self.ready_at

    async def connect(self) -> None:
        """Open TCP, TLS and the session. Raises `OSError`, `ConnectionLost`, `CredentialsError`."""
        broker = self._terms.broker
        password, context = await asyncio.to_thread(_credentials, broker)
        async with asyncio.timeout(CONNECT_TIMEOUT):
            await self._loop.create_connection(
                lambda: self._connection,
                broker.host,
                broker.port,
                ssl=context,
                server_hostname=broker.host if context else None,
            )
        connect = connect_packet(broker, password, self._terms.will, self._terms.will_delay)
        self._connection.send(connect.write())
        try:
            connack = await self._connection.reply(ConnAckPacket)
        except ConnectionLost as lost:
            raise Unanswered(str(lost)) from lost.__cause__
        check_connack(connack, broker.table)
        self.resumed = connack.session_present
        server_keep_alive = connack.server_keep_alive
        self._connection.keep_alive(broker.keep_alive if server_keep_alive is None else server_keep_alive)
        self._flight.opened(
            limit=connack.receive_max, largest=connack.max_packet_size, resumed=connack.session_present
        )
        self.pump()

    async def subscribe(self) -> None:
        """Subscribe, announce us, and send the fence. Raises `ConnectionLost`."""
        terms = self._terms
        if terms.filters or terms.fence_topic is not None:
            self._connection.send(subscribe_packet(terms.filters, terms.fence_topic).write())
            check_suback(await self._connection.reply(SubAckPacket), terms.filters, terms.fence_topic)
        if terms.former:
            # Whatever it answers: what is not subscribed to any more was not to be.
            self._connection.send(unsubscribe_packet(terms.former).write())
            await self._connection.reply(UnsubAckPacket)
        self.ready_at = self._loop.time()
        if terms.birth is not None:
            self._announce(terms.birth._replace(retain=True))
        self.fence()

    def fence(self) -> None:
        """Send a token that comes back behind all that the broker holds for us now; `fenced` then is done."""
        self.fenced.cancel()
        self.fenced, self.fenced_from = self._loop.create_future(), self._loop.time()
        if self._terms.fence_topic is None:
            self.fenced.set_result(None)
            return
        self._token = secrets.token_hex(16).encode()
        self._announce(Publication(self._terms.fence_topic, self._token))

    async def serve(self) -> None:
        """Wait for the end; returns if we closed, else raises its cause."""
        cause = await asyncio.shield(self._connection.ended)
        if cause is not None:
            raise cause

    def pump(self) -> None:
        """Send what may be sent."""
        if self._connection.writable and (packets := self._flight.take(BYTES_AT_ONCE)):
            self._connection.send(packets)
            if self._flight.sendable:
                self._loop.call_soon(self.pump)

    def acknowledge(self, pubacks: bytes) -> None:
        """Send PUBACKs, and go on reading if that was paused."""
        self._connection.send(pubacks)
        if self._inbox.relieved:
            self._connection.hold(held=False)

    async def farewell(self) -> None:
        """Publish the will's payload ourselves, then disconnect and leave the session to the broker."""
        self._leaving = True
        self._connection.hold(held=False)
        if self._terms.will is not None:
            call = self._flight.submit_urgent(self._terms.will._replace(retain=True))
            self.pump()
            await asyncio.wait(
                (call.done, self._connection.ended), timeout=FAREWELL_TIMEOUT, return_when="FIRST_COMPLETED"
            )
        self._connection.send(DisconnectPacket().write())
        self._connection.close()
        await asyncio.wait((self._connection.ended,), timeout=FAREWELL_TIMEOUT)
        self.abort()

    def abort(self) -> None:
        """Cut the connection, if it is still there."""
        self._connection.abort(None)
        self.fenced.cancel()

    def _receive(self, batch: Batch, size: int) -> None:
        self._undelivered += size
        if batch.pubacks:
            self._flight.settle(batch.pubacks)
        if batch.publishes and not self._leaving:
            self._deliver(batch)
        for packet in batch.others:
            self._control(packet)
        self.pump()
        if not self._flight.impatient:
            self._connection.collect()

    def _deliver(self, batch: Batch) -> None:
        fence_topic, messages = self._terms.fence_topic, []
        self.malformed += batch.skipped
        for packet in batch.publishes:
            if isinstance(packet, Skipped):
                continue
            topic = packet.topic
            if topic == fence_topic:
                self._fence(packet.payload)
            else:
                messages.append(Message(topic, packet.payload, packet.retain))
        sequence = self._inbox.arrive(batch.publishes, self._undelivered)
        self._undelivered = 0
        self._window.arrived(len(batch.publishes), len(self._inbox), self._loop.time())
        try:
            self._terms.deliver(messages, sequence)
        except Exception as error:
            raise DeliveryFailed(error) from error
        if self._inbox.full:
            self._connection.hold(held=True)

    def _announce(self, publication: Publication) -> None:
        self._flight.submit_urgent(publication).done.add_done_callback(_report)
        self.pump()

    def _fence(self, token: bytes) -> None:
        if token == self._token and not self.fenced.done():
            self.fenced.set_result(None)

    def _control(self, packet: "Packet") -> None:
        if type(packet) is DisconnectPacket:
            raise _disconnected(packet)
        if type(packet) is not PingRespPacket and not self._connection.answer(packet):
            raise ConnectionLost(f"the broker sent an unexpected {type(packet).__name__}")


def _credentials(broker: Broker) -> tuple[bytes | None, ssl.SSLContext | None]:
    """Read the password and the TLS files as they are now."""
    return broker.password(), None if broker.tls is None else broker.tls.context()


def _disconnected(packet: DisconnectPacket) -> ConnectionLost:
    reason = packet.reason_code
    if reason is DisconnectReasonCode.SESSION_TAKEN_OVER:
        return TakenOver("another client took over our session")
    return ConnectionLost(f"the broker disconnected us: {reason.name.lower()} (0x{int(reason):02x})")


def _report(done: asyncio.Future[None]) -> None:
    if not done.cancelled() and isinstance(error := done.exception(), PublishRefused):
        log.error("own topic refused", topic=error.topic, error=str(error))
