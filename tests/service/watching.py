"""The other side of the gateway: meters that publish, and an independent subscriber to its releases."""

import asyncio
import json
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import aiomqtt
import pytest
from gateways import PATIENCE, eventually

_AT_ONCE = 500


class Message(NamedTuple):
    """A message as a meter publishes it."""

    topic: str
    payload: bytes
    retain: bool = False


class Seen(NamedTuple):
    """A message as the subscriber got it."""

    retained: bool
    topic: str
    payload: bytes


class Watcher:
    """mosquitto_sub with a session of its own, so that it misses nothing when the broker restarts."""

    def __init__(self, directory: Path, port: int, topic: str = "noiseless/#") -> None:
        binary = shutil.which("mosquitto_sub")
        assert binary is not None, "these tests need mosquitto_sub: apt-get install mosquitto-clients"
        session = [binary, "-p", str(port), "-i", f"watcher-{uuid4()}", "-c", "-q", "1", "-t", topic]
        self._file = directory / "seen"
        # -E ends once the subscription is granted: from then on the broker keeps what is published.
        subprocess.run([*session, "-E"], check=True, timeout=PATIENCE)
        with self._file.open("wb") as out:
            self._process = subprocess.Popen([*session, "-F", "%r %t %p"], stdout=out)
        self._read = self._file.open("rb")
        self._partial = b""
        self._seen: list[Seen] = []

    @property
    def seen(self) -> list[Seen]:
        """Everything so far, in order."""
        *lines, self._partial = (self._partial + self._read.read()).split(b"\n")
        for line in lines:
            retained, topic, payload = line.split(b" ", 2)
            self._seen.append(Seen(retained == b"1", topic.decode(), payload))
        return self._seen

    def releases(self, below: str = "noiseless") -> dict[str, dict[str, list[bytes]]]:
        """Return the releases so far: by household or group, then by slot; repeats of one in order."""
        found: dict[str, dict[str, list[bytes]]] = defaultdict(lambda: defaultdict(list))
        kinds = (f"{below}/household/", f"{below}/group/")
        for _, topic, payload in self.seen:
            if topic.startswith(kinds):
                found[topic.removeprefix(f"{below}/")][json.loads(payload)["slot"]].append(payload)
        return found

    def states(self) -> list[str]:
        """Return the gateway's states so far."""
        return [json.loads(one.payload)["state"] for one in self.seen if one.topic == "noiseless/state"]

    def wait(self, what: str, happened: Callable[["Watcher"], bool], patience: float = PATIENCE) -> None:
        """Wait until `happened(self)`."""
        eventually(what, lambda: happened(self), patience)

    def wait_for_slots(
        self,
        topics: Iterable[str],
        slots: Sequence[str],
        patience: float = PATIENCE,
        below: str = "noiseless",
    ) -> dict[str, dict[str, list[bytes]]]:
        """Return the releases, once each of `topics` has one for each of `slots`."""
        wanted = [(topic, slot) for topic in topics for slot in slots]
        missing = wanted

        def complete() -> bool:
            nonlocal missing
            releases = self.releases(below)
            missing = [(topic, slot) for topic, slot in missing if slot not in releases[topic]]
            return not missing

        try:
            eventually("all releases", complete, patience)
        except AssertionError:
            pytest.fail(
                f"{len(missing)} of {len(wanted)} releases are missing: {missing[:3]} to {missing[-1]}"
            )
        return self.releases(below)

    def end(self) -> None:
        """Leave no process behind."""
        self._process.kill()
        self._process.wait()
        self._read.close()


async def publish_from(
    port: int, messages: Iterable[Message], pause: float = 0.0, burst: int = _AT_ONCE
) -> None:
    """Publish at QoS 1, in order, `burst` at once, with a pause (s) between bursts."""
    async with aiomqtt.Client(
        "127.0.0.1", port, max_inflight_messages=_AT_ONCE, max_queued_outgoing_messages=0
    ) as client:
        client.pending_calls_threshold = _AT_ONCE
        waiting = list(messages)
        for start in range(0, len(waiting), burst):
            chunk = waiting[start : start + burst]
            await asyncio.gather(*(client.publish(m.topic, m.payload, 1, m.retain) for m in chunk))
            await asyncio.sleep(pause)


def publish(port: int, messages: Iterable[Message]) -> None:
    """Publish at QoS 1, in order, and return when the broker has all."""
    asyncio.run(publish_from(port, messages))
