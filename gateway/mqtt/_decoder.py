"""Bytes from the broker to packets: whole packets only, and one bad PUBLISH never costs the connection.

The codec raises `IndexError` for an incomplete packet, `ValueError` for a malformed one, and a Rust panic
(a `BaseException`) for text that is not UTF-8. A malformed PUBLISH is stepped over by the length in its fixed
header; its packet id is kept, so that it can still be acknowledged in its place. Anything else malformed
raises `MalformedPacket`, since then nobody knows what the broker meant.
"""

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from mqtt5 import PubAckPacket, PublishPacket, read

if TYPE_CHECKING:
    from mqtt5.mqtt5 import Packet

MAX_PACKET = 1 << 20
"""Bytes of the largest packet we accept; the broker is told so in CONNECT."""

_PUBLISH = 3
_LONGEST_LENGTH = 4  # bytes of a remaining length
_LONGEST_PREFIX = 1 + _LONGEST_LENGTH + 2 + 65_535 + 2  # fixed header, topic, packet id


class MalformedPacket(Exception):  # noqa: N818
    """The broker's bytes cannot be understood and cannot be stepped over."""


class Skipped(NamedTuple):
    """A malformed or oversized PUBLISH that was stepped over; `packet_id` is None if it has none."""

    packet_id: int | None


@dataclass(slots=True)
class Batch:
    """The packets of one read: the two frequent kinds apart, each in order of arrival."""

    publishes: list[PublishPacket | Skipped] = field(default_factory=list)
    pubacks: list[PubAckPacket] = field(default_factory=list)
    others: "list[Packet]" = field(default_factory=list)
    skipped: int = 0


class Decoder:
    """Cuts the byte stream of one connection into packets."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []  # an incomplete packet; joined once, when it is complete
        self._held = 0
        self._needed = 0
        self._discard = 0  # bytes of an oversized packet that are still to come

    def feed(self, data: bytes) -> Batch:
        """Return the packets that `data` completes. Raises `MalformedPacket`."""
        batch = Batch()
        if self._discard:
            gone = min(self._discard, len(data))
            self._discard -= gone
            data = data[gone:]
        if self._chunks:
            self._chunks.append(data)
            self._held += len(data)
            if self._held < self._needed:
                return batch
            data = b"".join(self._chunks)
            self._chunks = []
        self._keep(data, self._decode(data, batch))
        return batch

    def _keep(self, data: bytes, start: int) -> None:
        if start < len(data):
            self._chunks = [data[start:]]
            self._held = len(data) - start

    def _decode(self, data: bytes, batch: Batch) -> int:
        """Fill `batch` and return where the first incomplete packet starts."""
        view = memoryview(data)
        publishes, pubacks = batch.publishes, batch.pubacks
        position, size = 0, len(data)
        while position < size:
            try:
                packet, used = read(view[position:])
            except (KeyboardInterrupt, SystemExit, asyncio.CancelledError):
                raise
            except BaseException:  # noqa: BLE001 - the codec's panic is no Exception
                used = self._step_over(data, position, batch)
                if not used:
                    break
                position += used
                continue
            position += used
            kind = type(packet)
            if kind is PublishPacket:
                publishes.append(packet)  # type: ignore[arg-type]
            elif kind is PubAckPacket:
                pubacks.append(packet)  # type: ignore[arg-type]
            else:
                batch.others.append(packet)
        return min(position, size)

    def _step_over(self, data: bytes, start: int, batch: Batch) -> int:
        """Return how many bytes to skip at `start`, 0 if more must arrive first."""
        head, total = _fixed_header(data, start)
        available = len(data) - start
        self._needed = total if total <= MAX_PACKET else min(total, _LONGEST_PREFIX)
        if available < self._needed:
            return 0
        if data[start] >> 4 != _PUBLISH:
            raise MalformedPacket(f"malformed or oversized packet of type {data[start] >> 4}, {total} bytes")
        batch.publishes.append(Skipped(_packet_id(data, start, start + head, start + total)))
        batch.skipped += 1
        self._discard = max(0, total - available)
        return total


def _fixed_header(data: bytes, start: int) -> tuple[int, int]:
    """Return the bytes of the fixed header and of the whole packet; more than there are if unknown yet."""
    remaining = 0
    for place in range(_LONGEST_LENGTH):
        index = start + 1 + place
        if index >= len(data):
            return place + 1, len(data) - start + 1
        remaining |= (data[index] & 0x7F) << 7 * place
        if data[index] < 0x80:  # noqa: PLR2004 - no continuation bit
            return place + 2, place + 2 + remaining
    raise MalformedPacket("remaining length of more than four bytes")


def _packet_id(data: bytes, start: int, body: int, end: int) -> int | None:
    """Return the packet id of the QoS 1 PUBLISH whose topic starts at `body`, None if it has none."""
    if (data[start] >> 1) & 3 != 1:
        return None
    place = body + 2 + int.from_bytes(data[body : body + 2], "big")
    if place + 2 > min(end, len(data)):
        return None
    return int.from_bytes(data[place : place + 2], "big") or None
