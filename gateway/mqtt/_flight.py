"""Outgoing QoS 1: what waits, what is in flight, and what a reconnect must send again.

Everything leaves in order and within the broker's Receive Maximum. There is one future per call, not per
publication. Packet id 65,535 is left to SUBSCRIBE.
"""

import asyncio
from collections import deque
from collections.abc import Sequence

from mqtt5 import PubAckPacket, PubAckReasonCode, PublishPacket, QoS

from gateway.mqtt._interface import Publication, PublishRefused

LARGEST_ID = 65_534
MOST_IN_FLIGHT = 32_767
"""However much the broker allows: keeps free packet ids easy to find."""
FEW_IN_FLIGHT = 512
"""With a smaller window than this, waiting some milliseconds for PUBACKs to gather slows publishing down."""

_TOO_LARGE = 0x95


class Call:
    """One `publish()` call: how far it was sent, what is unsettled, what was refused."""

    __slots__ = ("done", "publications", "refused", "sent", "unsettled", "urgent")

    def __init__(self, publications: Sequence[Publication], *, urgent: bool) -> None:
        self.publications = tuple(publications)
        self.urgent = urgent
        self.sent = 0
        self.unsettled = len(self.publications)
        self.refused: list[tuple[Publication, int]] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def settle(self, publication: Publication, reason: int) -> None:
        """Note the broker's answer for one publication; the last one ends the call."""
        if reason >= 0x80:  # noqa: PLR2004 - MQTT 5, 2.4: failures start here
            self.refused.append((publication, reason))
        self.unsettled -= 1
        if self.unsettled or self.done.done():
            return
        if self.refused:
            (first, code), everything = self.refused[0], tuple(publication for publication, _ in self.refused)
            self.done.set_exception(PublishRefused(first.topic, code, everything))
        else:
            self.done.set_result(None)


_Entry = tuple[Call, Publication]


class Flight:
    """The outgoing side of one session, over all its connections."""

    def __init__(self) -> None:
        self._calls: deque[Call] = deque()
        self._front: deque[_Entry] = deque()  # goes before the calls
        self._in_flight: dict[int, _Entry] = {}  # in the order of first sending
        self._again: deque[int] = deque()  # packet ids to send again, as duplicates, before anything else
        self._limit = 0
        self._largest: int | None = None
        self._id = 0

    @property
    def impatient(self) -> bool:
        """Whether publications wait for PUBACKs, and the broker allows so few that each PUBACK counts."""
        return self._limit < FEW_IN_FLIGHT and bool(self._calls or self._front or self._again)

    @property
    def sendable(self) -> bool:
        """Whether something could be sent now."""
        return self._room() > 0 and bool(self._calls or self._front or self._again)

    def submit(self, publications: Sequence[Publication]) -> Call:
        """Queue one call's publications (at least one) behind all others."""
        call = Call(publications, urgent=False)
        self._calls.append(call)
        return call

    def submit_urgent(self, publication: Publication) -> Call:
        """Queue a publication of this connection only before all that was not sent yet."""
        call = Call([publication], urgent=True)
        place = sum(entry[0].urgent for entry in self._front)
        self._front.insert(place, (call, publication))
        return call

    def withdraw(self, call: Call) -> None:
        """Forget the unsent rest of a call whose caller went away."""
        if call in self._calls:
            self._calls.remove(call)

    def opened(self, *, limit: int, largest: int | None, resumed: bool) -> None:
        """Begin a connection: `limit` in flight, `largest` bytes per packet, session `resumed` or new."""
        self._limit = min(limit, MOST_IN_FLIGHT)
        self._largest = largest
        if resumed:
            self._again = deque(self._in_flight)
            return
        self._front.extendleft(reversed([entry for entry in self._in_flight.values() if not entry[0].urgent]))
        self._in_flight.clear()

    def lost(self) -> None:
        """End a connection: nothing may be sent, and what belonged to it alone is dropped."""
        self._limit = 0
        self._again.clear()
        for call, _ in self._front:
            if call.urgent:
                call.done.cancel()
        self._front = deque(entry for entry in self._front if not entry[0].urgent)

    def fail(self, error: Exception) -> None:
        """End every call with `error`: there will be no further connection."""
        entries = [*self._in_flight.values(), *self._front]
        for call in [*(call for call, _ in entries), *self._calls]:
            if not call.done.done():
                call.done.set_exception(error)
                call.done.exception()  # nobody need be waiting any more
        self._in_flight.clear()
        self._front.clear()
        self._calls.clear()

    def take(self, enough: int) -> bytes:
        """Return packets that may be sent now, until they are `enough` bytes; they count as in flight."""
        packets: list[bytes] = []
        room, size = self._room(), 0
        while room > 0 and size < enough and self._again:
            packet_id = self._again.popleft()
            if packet_id in self._in_flight:
                packets.append(_packet(self._in_flight[packet_id][1], packet_id, duplicate=True))
                size += len(packets[-1])
                room -= 1
        while room > 0 and size < enough and (self._front or self._calls):
            if packet := self._launch(*self._next()):
                packets.append(packet)
                size += len(packet)
                room -= 1
        return b"".join(packets)

    def settle(self, pubacks: Sequence[PubAckPacket]) -> None:
        """Take the broker's answers."""
        in_flight, success = self._in_flight, PubAckReasonCode.SUCCESS
        for puback in pubacks:
            entry = in_flight.pop(puback.packet_id, None)
            if entry is None:
                continue
            call, publication = entry
            reason = puback.reason_code
            if reason is success and call.unsettled > 1:
                call.unsettled -= 1  # nearly all of them
            else:
                call.settle(publication, int(reason))

    def _room(self) -> int:
        return self._limit - len(self._in_flight) + len(self._again)

    def _next(self) -> _Entry:
        if self._front:
            return self._front.popleft()
        call = self._calls[0]
        publication = call.publications[call.sent]
        call.sent += 1
        if call.sent == len(call.publications):
            self._calls.popleft()
        return call, publication

    def _launch(self, call: Call, publication: Publication) -> bytes:
        packet_id = self._id % LARGEST_ID + 1
        while packet_id in self._in_flight:
            packet_id = packet_id % LARGEST_ID + 1
        packet = _packet(publication, packet_id)
        if self._largest is not None and len(packet) > self._largest:
            call.settle(publication, _TOO_LARGE)
            return b""
        self._id = packet_id
        self._in_flight[packet_id] = (call, publication)
        return packet


def _packet(publication: Publication, packet_id: int, *, duplicate: bool = False) -> bytes:
    topic, payload, retain = publication
    return PublishPacket(
        topic, payload, qos=QoS.AT_LEAST_ONCE, retain=retain, packet_id=packet_id, duplicate=duplicate
    ).write()
