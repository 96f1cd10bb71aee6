"""What has arrived and is not acknowledged: sequence numbers, PUBACKs in arrival order, and how much it is.

Sequence numbers run on over all connections. What an earlier connection delivered is forgotten when it is
lost: its packet ids mean nothing to the next one, and the broker delivers those messages again.
"""

from collections import deque
from collections.abc import Sequence
from itertools import islice

from mqtt5 import PubAckPacket, PublishPacket

from gateway.mqtt._decoder import Skipped

MAX_BYTES = 16 << 20
"""Bytes of unacknowledged input at which reading pauses, whatever their number."""


class Inbox:
    """The unacknowledged input of one session, asked to stay within `receive_maximum` messages."""

    def __init__(self, receive_maximum: int) -> None:
        self.last = 0
        self._receive_maximum = receive_maximum
        self._packet_ids: deque[int | None] = deque()
        self._reads: deque[tuple[int, int]] = deque()  # last sequence number and bytes of each arrival
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._packet_ids)

    @property
    def full(self) -> bool:
        """Whether reading must pause: brokers exceed the window they were asked for."""
        return len(self) > 2 * self._receive_maximum or self._bytes > MAX_BYTES

    @property
    def relieved(self) -> bool:
        """Whether a paused reading may go on."""
        return len(self) <= self._receive_maximum and self._bytes <= MAX_BYTES // 2

    def arrive(self, publishes: Sequence[PublishPacket | Skipped], size: int) -> int:
        """Take in messages that took `size` bytes and return the sequence number of the last one."""
        self._packet_ids.extend([packet.packet_id for packet in publishes])
        self.last += len(publishes)
        self._reads.append((self.last, size))
        self._bytes += size
        return self.last

    def acknowledge(self, sequence: int) -> bytes:
        """Return the PUBACKs, in arrival order, for everything up to `sequence` that is not acknowledged.

        Raises `ValueError` for a sequence number that was never delivered.
        """
        if sequence > self.last:
            raise ValueError(f"sequence {sequence} was never delivered; the last one is {self.last}")
        count = sequence - (self.last - len(self))
        if count <= 0:
            return b""
        pubacks = b"".join([PubAckPacket(p).write() for p in islice(self._packet_ids, count) if p])
        for _ in range(count):
            self._packet_ids.popleft()
        while self._reads and self._reads[0][0] <= sequence:
            self._bytes -= self._reads.popleft()[1]
        return pubacks

    def forget(self) -> None:
        """Drop everything unacknowledged: its connection is gone."""
        self._packet_ids.clear()
        self._reads.clear()
        self._bytes = 0
