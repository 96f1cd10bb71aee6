"""One TCP connection: packets in and bytes out, with keep-alive and back-pressure in both directions."""

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

from mqtt5 import PingReqPacket

from gateway.mqtt._decoder import Batch, Decoder, MalformedPacket

if TYPE_CHECKING:
    from mqtt5.mqtt5 import Packet

REPLY_TIMEOUT = 10.0
"""Seconds to wait for the broker's answer to CONNECT and SUBSCRIBE."""
COLLECT = 0.003
"""Seconds that `collect` waits. A broker that sends packets one by one wakes us for each, which costs several
times what the packet itself does; a few milliseconds gather dozens."""
BUSY = 4 * COLLECT
"""Reads closer together than this many seconds are quick succession."""

_PING = PingReqPacket().write()
_P = TypeVar("_P", bound="Packet")


class ConnectionLost(Exception):  # noqa: N818 - not an error of ours; the session connects again
    """The connection ended, for the reason given."""


class Connection(asyncio.Protocol):
    """Passes the packets of each read and its size in bytes to `receive`; ends when that raises.

    `ended` holds the cause: a `ConnectionLost`, what `receive` raised, or None if we closed it.
    """

    def __init__(self, receive: Callable[[Batch, int], None], writable: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._receive = receive
        self._on_writable = writable
        self._decoder = Decoder()
        self._transport: asyncio.Transport | None = None
        self._out: list[bytes] = []
        self._replies: dict[type, asyncio.Future[Packet]] = {}
        self._cause: Exception | None = ConnectionLost("the broker closed the connection")
        self._keep_alive = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._last_in = self._last_out = self._loop.time()
        self._pinged = False
        self._held = self._collecting = self._busy = False
        self._reading = True
        self.writable = False
        self.ended: asyncio.Future[Exception | None] = self._loop.create_future()

    def send(self, data: bytes) -> None:
        """Send `data` together with whatever else this turn of the loop sends."""
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(data)

    async def reply(self, kind: type[_P]) -> _P:
        """Wait for the next packet of a rare kind, such as CONNACK. Raises `ConnectionLost`."""
        future = self._replies[kind] = self._loop.create_future()
        try:
            await asyncio.wait((future, self.ended), timeout=REPLY_TIMEOUT, return_when="FIRST_COMPLETED")
            if future.done():
                return cast("_P", future.result())
        finally:
            self._replies.pop(kind, None)
        if self.ended.done():
            raise self.ended.result() or ConnectionLost("closed while waiting for the broker")
        raise ConnectionLost(f"no {kind.__name__} within {REPLY_TIMEOUT:g} s")

    def answer(self, packet: "Packet") -> bool:
        """Hand a packet to whoever waits for its kind; False if nobody does."""
        future = self._replies.pop(type(packet), None)
        if future is None or future.done():
            return False
        future.set_result(packet)
        return True

    def keep_alive(self, seconds: float) -> None:
        """Ping when idle for `seconds`, and end when nothing came for 1.5 times that; 0: never."""
        self._keep_alive = seconds
        if seconds:
            self._timer = self._loop.call_later(seconds / 4, self._tick)

    def hold(self, *, held: bool) -> None:
        """Stop or go on reading, whatever `collect` does."""
        if self._held and not held:
            self._last_in = self._loop.time()  # the silence was ours
        self._held = held
        self._read_or_wait()

    def collect(self) -> None:
        """Let packets gather for a moment before the next read, if they come in quick succession."""
        if self._busy and not self._collecting:
            self._collecting = True
            self._read_or_wait()
            self._loop.call_later(COLLECT, self._collected)

    def close(self) -> None:
        """Send what is waiting and close; `ended` follows."""
        self._cause = None
        self._flush()
        self.writable = False
        if self._transport is not None:
            self._transport.close()

    def abort(self, cause: Exception | None) -> None:
        """Close at once for `cause`, dropping what is waiting; `ended` follows."""
        if self._transport is not None and not self._transport.is_closing():
            self._cause = cause
            self._out.clear()
            self.writable = False
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self._transport = cast("asyncio.Transport", transport)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.writable = True

    def data_received(self, data: bytes) -> None:
        """Pass on the packets that `data` completes."""
        now = self._loop.time()
        self._busy = now - self._last_in < BUSY
        self._last_in = now
        self._pinged = False
        try:
            self._receive(self._decoder.feed(data), len(data))
        except MalformedPacket as malformed:
            self.abort(ConnectionLost(str(malformed)))
        except Exception as error:  # noqa: BLE001 - handed on through `ended`, where the session raises it
            self.abort(error)

    def pause_writing(self) -> None:
        """Note that the socket takes no more."""
        self.writable = False

    def resume_writing(self) -> None:
        """Note that the socket takes more again."""
        self.writable = True
        self._on_writable()

    def connection_lost(self, exc: Exception | None) -> None:
        """Publish the cause of the end."""
        self.writable = False
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
        if exc is not None and isinstance(self._cause, ConnectionLost):
            self._cause = ConnectionLost(f"the connection broke: {exc}")
            self._cause.__cause__ = exc
        if not self.ended.done():
            self.ended.set_result(self._cause)

    def _collected(self) -> None:
        self._collecting = False
        self._read_or_wait()

    def _read_or_wait(self) -> None:
        """Make the transport read, or not, as `hold` and `collect` want it together."""
        wanted = not (self._held or self._collecting)
        if self._transport is None or self._transport.is_closing() or wanted == self._reading:
            return
        self._reading = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _flush(self) -> None:
        if self._out and self._transport is not None:
            self._last_out = self._loop.time()
            self._transport.write(b"".join(self._out))
        self._out.clear()

    def _tick(self) -> None:
        now = self._loop.time()
        silent = 0.0 if self._held else now - self._last_in
        if self._pinged and silent > 1.5 * self._keep_alive:
            self.abort(ConnectionLost(f"nothing came from the broker for {silent:.0f} s"))
            return
        if max(silent, now - self._last_out) >= 0.75 * self._keep_alive:
            self._pinged = True
            self.send(_PING)
        self._timer = self._loop.call_later(self._keep_alive / 4, self._tick)
