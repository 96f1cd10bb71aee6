"""A broker whose every packet a test decides, for what a real one does not do on demand."""

import asyncio
from collections.abc import Callable
from typing import Any, Self, TypeVar

import mqtt5
from mqtt5 import (
    ConnAckPacket,
    ConnectPacket,
    PubAckPacket,
    PublishPacket,
    QoS,
    SubAckPacket,
    SubAckReasonCode,
    SubscribePacket,
)

P = TypeVar("P")


def reading(packet_id: int, payload: bytes = b"1", *, topic: str = "in/a") -> bytes:
    """Return the bytes of a QoS 1 PUBLISH."""
    return PublishPacket(topic, payload, qos=QoS.AT_LEAST_ONCE, packet_id=packet_id).write()


class Peer:
    """One client's connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._buffer = b""
        self.passed: list[Any] = []
        """Packets that came while another kind was expected."""

    async def receive(self) -> Any:  # noqa: ANN401 - any packet
        """Return the next packet. Raises `EOFError` at the end."""
        async with asyncio.timeout(10):
            while True:
                try:
                    packet, used = mqtt5.read(memoryview(self._buffer))
                except IndexError:
                    data = await self._reader.read(65_536)
                    if not data:
                        raise EOFError from None
                    self._buffer += data
                else:
                    self._buffer = self._buffer[used:]
                    return packet

    async def expect(self, kind: type[P], matches: Callable[[P], bool] = lambda _: True) -> P:
        """Return the next packet of that kind; others are put aside in `passed`, which is searched first."""
        for place, packet in enumerate(self.passed):
            if type(packet) is kind and matches(packet):
                return self.passed.pop(place)
        while True:
            packet = await self.receive()
            if type(packet) is kind and matches(packet):
                return packet
            self.passed.append(packet)

    async def publications(self, count: int) -> list[PublishPacket]:
        """Return the next `count` publications that are not about the session itself."""
        return [await self.expect(PublishPacket, lambda p: p.topic.startswith("out/")) for _ in range(count)]

    async def expect_publish(
        self, matches: Callable[[PublishPacket], bool] = lambda _: True
    ) -> PublishPacket:
        """Return the next publication, be it birth, fence or release."""
        return await self.expect(PublishPacket, matches)

    async def assert_silent(self, seconds: float = 0.05) -> None:
        """Fail if a publication comes within `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                packet = await self.expect_publish()
        except TimeoutError:
            return
        raise AssertionError(f"came unexpectedly: {packet.topic} {packet.payload!r}")

    async def pubacks(self, count: int) -> list[int]:
        """Return the packet ids of the next `count` PUBACKs."""
        return [(await self.expect(PubAckPacket)).packet_id for _ in range(count)]

    def send(self, *packets: bytes) -> None:
        """Send all in one piece."""
        self._writer.write(b"".join(packets))

    def acknowledge(self, *packets: PublishPacket) -> None:
        self.send(*(PubAckPacket(packet.packet_id or 0).write() for packet in packets))

    async def connack(self, **connack: Any) -> ConnectPacket:  # noqa: ANN401 - its fields
        """Accept the client and return its CONNECT."""
        connect = await self.expect(ConnectPacket)
        self.send(ConnAckPacket(**connack).write())
        return connect

    async def suback(self) -> SubscribePacket:
        """Grant all subscriptions and return the SUBSCRIBE."""
        subscribe = await self.expect(SubscribePacket)
        granted = [SubAckReasonCode.GRANTED_QOS_AT_LEAST_ONCE] * len(subscribe.topic_filters)
        self.send(SubAckPacket(subscribe.packet_id, granted).write())
        return subscribe

    async def greet(self, **connack: Any) -> ConnectPacket:  # noqa: ANN401 - its fields
        """Do all that makes a session ready, except for answering its birth and fence."""
        connect = await self.connack(**connack)
        await self.suback()
        return connect

    async def closed(self) -> None:
        """Wait until the client has gone."""
        try:
            while True:
                self.passed.append(await self.receive())
        except (EOFError, ConnectionError):
            return

    def cut(self) -> None:
        """Break the connection."""
        self._writer.transport.abort()


class FakeBroker:
    """Listens on a free loopback port."""

    def __init__(self) -> None:
        self._peers: asyncio.Queue[Peer] = asyncio.Queue()
        self._all: list[Peer] = []
        self._server: asyncio.Server | None = None
        self.port = 0

    async def accept(self) -> Peer:
        """Return the next client."""
        return await asyncio.wait_for(self._peers.get(), 10)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        self._all.append(peer)
        self._peers.put_nowait(peer)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for peer in self._all:
            peer.cut()
        await self._server.wait_closed()
