"""The two ends of a campaign, both aiomqtt: meters that publish, and an independent subscriber."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable, Sequence

import aiomqtt
from faults.wiretap import Key, release_key
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from service.expecting import Grid

_RETRY_S = 0.02
_TIMEOUT_S = 1.0


def power_w(seed: int, slot: int, name: str) -> int:
    """Return what a household used in a slot, the same whenever it is asked."""
    return random.Random(f"{seed} {slot} {name}").randrange(0, 15_000, 60)


class Meters:
    """Publish slot after slot at QoS 1 until told to finish; a slot is done when the broker took all of it."""

    def __init__(self, port: int, grid: Grid, names: Sequence[str], *, seed: int, pause: float) -> None:
        self._port, self._grid, self._names, self._seed = port, grid, names, seed
        self.pause = pause
        self.slots = 0
        """Slots that are done."""
        self.until: int | None = None
        """Where to stop."""

    async def run(self) -> None:
        """Publish; whatever the broker did not take when it went away is published again."""
        while not self._done:
            try:
                async with aiomqtt.Client("127.0.0.1", self._port, timeout=_TIMEOUT_S) as client:
                    client.pending_calls_threshold = 10 * len(self._names)
                    while not self._done:
                        await self._publish(client)
                        self.slots += 1
                        await asyncio.sleep(self.pause)
            except aiomqtt.MqttError:
                await asyncio.sleep(_RETRY_S)

    @property
    def _done(self) -> bool:
        return self.until is not None and self.slots >= self.until

    async def _publish(self, client: aiomqtt.Client) -> None:
        sending = []
        for name in self._names:
            message = self._grid.reading(name, self.slots, power_w(self._seed, self.slots, name))
            sending.append(client.publish(message.topic, message.payload, qos=1))
        for one in await asyncio.gather(*sending, return_exceptions=True):
            if isinstance(one, BaseException):
                raise one


class Subscriber:
    """Receives all releases, in a session that the broker keeps for it.

    `connections` tells how often the gateway has connected: only a new connection, its or ours, explains a repeat.
    """

    def __init__(self, port: int, prices: dict[str, int], connections: Callable[[], int]) -> None:
        self._port = port
        self._prices = prices
        self._theirs, self._ours = connections, 0
        self._first_connections: dict[Key, int] = {}
        self.first: dict[Key, bytes] = {}
        """The bytes of each release when it was first seen, in that order."""
        self.repeats: Counter[Key] = Counter()
        self.unexplained: list[Key] = []
        """Repeats on the same connections as the first."""
        self.differing: list[tuple[Key, bytes]] = []
        self.released_microbits = 0
        """The price of everything that was released, once each."""
        self.connected = asyncio.Event()

    async def run(self) -> None:
        """Receive for ever."""
        properties = Properties(PacketTypes.CONNECT)
        properties.SessionExpiryInterval = 86_400
        while True:
            # The iterator forgets what it had acknowledged and not yet yielded when the connection ends.
            queue: asyncio.Queue[aiomqtt.Message] = asyncio.Queue()
            try:
                async with aiomqtt.Client(
                    "127.0.0.1",
                    self._port,
                    identifier="judge",
                    protocol=aiomqtt.ProtocolVersion.V5,
                    clean_start=False,
                    properties=properties,
                    timeout=_TIMEOUT_S,
                    queue_type=lambda *_, queue=queue, **__: queue,
                ) as client:
                    await client.subscribe("noiseless/+/+", qos=1)
                    self._ours += 1
                    self.connected.set()
                    async for message in client.messages:
                        self._take(message)
            except aiomqtt.MqttError:
                self.connected.clear()
            while not queue.empty():
                self._take(queue.get_nowait())
            await asyncio.sleep(_RETRY_S)

    def _take(self, message: aiomqtt.Message) -> None:
        payload = bytes(message.payload)
        key = release_key(str(message.topic), payload)
        if key is None:
            return
        connections = self._theirs() + self._ours
        if key not in self.first:
            self.first[key] = payload
            self._first_connections[key] = connections
            if not json.loads(payload).get("spent"):
                self.released_microbits += self._prices.get(key.topic, 0)
            return
        self.repeats[key] += 1
        if connections == self._first_connections[key]:
            self.unexplained.append(key)
        if self.first[key] != payload:
            self.differing.append((key, payload))
