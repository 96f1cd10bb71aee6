"""A session under test that records what is delivered, and waits for conditions."""

import asyncio
import subprocess
from collections.abc import Callable, Sequence
from typing import Any, Self

from gateway.mqtt import Broker, Message, Publication, Session

STATE = "noiseless/state"
FENCE = "noiseless/fence"


DENYING = ("max_queued_messages 100000",)
"""With an unlimited queue mosquitto 2.0.11 disconnects whoever it denies a publication."""


def publish_lines(port: int, topic: str, payloads: Sequence[str]) -> None:
    """Publish each line at QoS 1 with mosquitto_pub."""
    subprocess.run(
        ["mosquitto_pub", "-p", str(port), "-t", topic, "-q", "1", "-l"],
        input="\n".join(payloads).encode() + b"\n",
        check=True,
        timeout=30,
    )


def numbers(count: int) -> list[str]:
    return [str(number) for number in range(count)]


async def until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait until `condition()` is true; TimeoutError after `seconds`."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - anything can be the condition
            await asyncio.sleep(0.005)


class Gateway:
    """A running `Session` on `in/#`; acknowledges each batch at once unless told otherwise."""

    def __init__(
        self,
        port: int,
        *,
        acknowledging: bool = True,
        filters: Sequence[str] = ("in/#",),
        will_delay: int = 0,
        client_id: str = "gateway",
        deliver: Callable[[Sequence[Message], int], None] | None = None,
        **broker: Any,  # noqa: ANN401 - the fields of Broker
    ) -> None:
        self.messages: list[Message] = []
        self.batches: list[tuple[int, int]] = []
        self.last = 0
        self.most_unacknowledged = 0
        self.acknowledging = acknowledging
        self.session = Session(
            Broker("127.0.0.1", port, client_id, **broker),
            filters=filters,
            deliver=deliver or self.deliver,
            birth=Publication(STATE, b"online"),
            will=Publication(STATE, b"offline"),
            will_delay=will_delay,
            fence_topic=FENCE,
        )
        self.running: asyncio.Task[None] | None = None

    def deliver(self, messages: Sequence[Message], sequence: int) -> None:
        self.messages.extend(messages)
        self.batches.append((len(messages), sequence))
        self.last = sequence
        self.most_unacknowledged = max(self.most_unacknowledged, self.session.unacknowledged)
        if self.acknowledging:
            self.session.acknowledge(sequence)

    @property
    def payloads(self) -> list[bytes]:
        return [message.payload for message in self.messages]

    def start(self) -> Self:
        self.running = asyncio.create_task(self.session.run())
        return self

    async def crash(self) -> None:
        """End without a word to the broker, as a kill would."""
        assert self.running is not None
        self.running.cancel()
        await asyncio.wait((self.running,))

    def cut(self) -> None:
        """Break the connection; the session will make another."""
        link = self.session._link
        assert link is not None
        transport = link._connection._transport
        assert transport is not None
        transport.abort()

    async def __aenter__(self) -> Self:
        self.start()
        await asyncio.wait_for(self.session.wait_ready(), 10)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.stop()
        assert self.running is not None
        await asyncio.wait((self.running,))
