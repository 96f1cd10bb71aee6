"""One connection of the fleet to its broker: everything handed over is published until it is confirmed."""

from __future__ import annotations

import asyncio
import math
import socket
import time
from collections import deque
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import structlog
from aiomqtt import Client, MqttError, ProtocolVersion
from aiomqtt.exceptions import MqttConnectError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

log = structlog.get_logger()

# Publishes under way at once. paho ignores the broker's Receive Maximum; mosquitto grants 20 by default.
_WINDOW = 20
_KEEPALIVE_S = 10  # a broker that hangs without closing is noticed within two of these
_PATIENCE_S = 20.0  # for a broker that was never there; for one that went away there is no end to it
_PAUSES_S = (0.1, 2.0)  # between attempts to connect: first and longest
# without it a small packet waits for the acknowledgement of the one before, 40 ms at a time
_NO_DELAY = (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class Message(NamedTuple):
    """A reading to publish, not before simulated time `due_ms`; `repetition` marks a second copy."""

    due_ms: float
    topic: str
    payload: bytes
    repetition: bool


def broker_address(url: str) -> tuple[str, int]:
    """Host and port of "mqtt://host[:port]"; ValueError for anything else."""
    parts = urlsplit(url)
    plain = not (parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc)
    if parts.scheme != "mqtt" or not parts.hostname or not plain:
        raise ValueError('the fleet\'s broker must be given as "mqtt://host:port", with nothing else in it')
    return parts.hostname, parts.port or 1883


class Uplink:
    """A connection that is made when first needed and made again when lost.

    `readings` and `repeated` count what the broker confirmed: first copies, and repetitions.
    """

    def __init__(self, host: str, port: int, qos: int) -> None:
        self.readings = 0
        self.repeated = 0
        self._host, self._port, self._qos = host, port, qos
        self._client: Client | None = None
        self._reached = False
        self._session = AsyncExitStack()

    async def deliver(self, messages: Iterable[Message], until: Callable[[float], Awaitable[None]]) -> None:
        """Publish messages in order of their time and return when all are confirmed.

        `until` waits for a simulated time (ms UTC). What was not confirmed when the broker went away is sent
        again. aiomqtt.exceptions.MqttConnectError if the broker refuses the connection.
        """
        waiting = deque(messages)
        while waiting:
            client = await self._connected()
            try:
                await self._publish(client, waiting, until)
            except* MqttError as lost:
                log.warning("broker lost", unconfirmed=len(waiting), error=str(lost.exceptions[0]))
                # Each worker put its own back, in any order.
                waiting = deque(sorted(waiting, key=lambda message: message.due_ms))
                await self.close()
                await asyncio.sleep(_PAUSES_S[0])

    async def close(self) -> None:
        """Disconnect; `deliver` would connect again."""
        self._client = None
        try:
            await self._session.aclose()
        except MqttError as error:
            log.warning("disconnect not confirmed", error=str(error))

    async def _connected(self) -> Client:
        pause, longest = _PAUSES_S
        began = time.monotonic()
        while self._client is None:
            try:
                self._client = await self._session.enter_async_context(self._new_client())
            except MqttConnectError:
                raise
            except MqttError as error:
                if not self._reached and time.monotonic() - began > _PATIENCE_S:
                    raise
                log.warning("broker not reachable", host=self._host, port=self._port, error=str(error))
                await asyncio.sleep(pause)
                pause = min(2 * pause, longest)
        self._reached = True
        return self._client

    def _new_client(self) -> Client:
        client = Client(
            self._host,
            self._port,
            protocol=ProtocolVersion.V5,
            keepalive=_KEEPALIVE_S,
            max_inflight_messages=_WINDOW,
            socket_options=[_NO_DELAY],
        )
        client.pending_calls_threshold = _WINDOW
        return client

    async def _publish(
        self, client: Client, waiting: deque[Message], until: Callable[[float], Awaitable[None]]
    ) -> None:
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(_watch(client))
            width = min(_WINDOW, len(waiting))
            work = [group.create_task(self._work(client, waiting, until)) for _ in range(width)]
            await asyncio.wait(work)
            watch.cancel()

    async def _work(
        self, client: Client, waiting: deque[Message], until: Callable[[float], Awaitable[None]]
    ) -> None:
        while waiting:
            message = waiting.popleft()
            try:
                await until(message.due_ms)
                # no time limit of its own: a task per message would double the cost, and the watch ends this
                await client.publish(message.topic, message.payload, self._qos, timeout=math.inf)
            except BaseException:
                waiting.appendleft(message)
                raise
            if message.repetition:
                self.repeated += 1
            else:
                self.readings += 1


async def _watch(client: Client) -> None:
    """Raise MqttError when the connection is lost: pending publishes do not notice by themselves."""
    async for _ in client.messages:
        pass
