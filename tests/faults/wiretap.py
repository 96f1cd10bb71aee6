"""What passes between the gateway and its broker, read off the wire by a parser of our own.

The subscriber sees what a broker passed on. Who is to blame for what it did not see is on the wire: what the
gateway acknowledged it must have made durable, and what the broker acknowledged it has to pass on.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

_PUBLISH, _PUBACK = 3, 4


class Key(NamedTuple):
    """A reading or a release: `household/h-1` or `group/all`, and the start of its slot."""

    topic: str
    slot: str


class Publish(NamedTuple):
    packet_id: int
    topic: str
    payload: bytes


def reading_key(topic: str, payload: bytes) -> Key | None:
    """Return which reading a message is; None if it is none."""
    first, _, household = topic.removesuffix("/reading").partition("/")
    return Key(f"household/{household}", json.loads(payload)["ts"]) if first == "meters" else None


def release_key(topic: str, payload: bytes) -> Key | None:
    """Return which release a message is; None if it is none."""
    _, _, below = topic.partition("/")
    return Key(below, json.loads(payload)["slot"]) if below.startswith(("household/", "group/")) else None


class Wiretap:
    """Everything that was said on all connections."""

    def __init__(self) -> None:
        self.delivered: set[Key] = set()
        """Readings that reached the gateway's side."""
        self.acknowledged: set[Key] = set()
        """Readings that the gateway acknowledged."""
        self.published: dict[Key, set[bytes]] = defaultdict(set)
        """The different bytes of each release that the gateway sent."""
        self.taken: set[Key] = set()
        """Releases that the broker acknowledged."""
        self.sent = 0
        """Releases that the gateway sent, repeats included."""

    def connection(self) -> tuple[Callable[[bytes], None], Callable[[bytes], None]]:
        """Return what hears the gateway's bytes, and what hears the broker's, on a new connection."""
        inbound: dict[int, Key] = {}
        outbound: dict[int, Key] = {}

        def from_gateway(packet: Publish | int) -> None:
            if isinstance(packet, int):
                if packet in inbound:
                    self.acknowledged.add(inbound.pop(packet))
            elif key := release_key(packet.topic, packet.payload):
                self.sent += 1
                self.published[key].add(packet.payload)
                outbound[packet.packet_id] = key

        def from_broker(packet: Publish | int) -> None:
            if isinstance(packet, int):
                if packet in outbound:
                    self.taken.add(outbound.pop(packet))
            elif key := reading_key(packet.topic, packet.payload):
                self.delivered.add(key)
                inbound[packet.packet_id] = key

        return _hearing(from_gateway), _hearing(from_broker)


def _hearing(say: Callable[[Publish | int], None]) -> Callable[[bytes], None]:
    waiting = bytearray()

    def hear(data: bytes) -> None:
        waiting.extend(data)
        for packet in _packets(waiting):
            say(packet)

    return hear


def _packets(waiting: bytearray) -> Iterator[Publish | int]:
    """Yield whole PUBLISHes at QoS 1, and the packet ids of PUBACKs; leave the incomplete rest."""
    while len(waiting) > 1:
        size, start = _varint(waiting, 1)
        if start == 0 or len(waiting) < start + size:
            return
        kind, qos, body = waiting[0] >> 4, waiting[0] >> 1 & 3, bytes(waiting[start : start + size])
        del waiting[: start + size]
        if kind == _PUBACK:
            yield int.from_bytes(body[:2], "big")
        elif kind == _PUBLISH and qos == 1:
            yield _publish(body)


def _publish(body: bytes) -> Publish:
    end = 2 + int.from_bytes(body[:2], "big")
    properties, start = _varint(body, end + 2)
    return Publish(
        int.from_bytes(body[end : end + 2], "big"), body[2:end].decode(), body[start + properties :]
    )


def _varint(data: bytes | bytearray, at: int) -> tuple[int, int]:
    """Return the number at that place and where it ends; an end of 0 if it is incomplete."""
    number = 0
    for i in range(4):
        if at + i >= len(data):
            return 0, 0
        number |= (data[at + i] & 0x7F) << 7 * i
        if data[at + i] < 0x80:
            return number, at + i + 1
    raise ValueError("no MQTT: a length of five bytes")
