"""An independent witness: subscribes to releases like any receiver, and counts what a receiver can count."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, log2
from typing import Any

import aiomqtt

from simulators._uplink import broker_address


@dataclass
class Witness:
    """What was released, as seen from outside.

    `payloads` holds the first payload of each (topic, slot); `repeated` counts byte-identical repeats and
    `doubled` the (topic, slot) pairs that came again with different bytes.
    """

    topic: str = "noiseless"
    payloads: dict[tuple[str, str], bytes] = field(default_factory=dict)
    latest: dict[str, dict[str, Any]] = field(default_factory=dict)
    repeated: int = 0
    doubled: set[tuple[str, str]] = field(default_factory=set)

    async def watch(self, url: str, subscribed: asyncio.Event) -> None:
        """Count until cancelled; sets `subscribed` when nothing can be missed any more."""
        host, port = broker_address(url)
        async with aiomqtt.Client(host, port, protocol=aiomqtt.ProtocolVersion.V5) as client:
            for kind in ("household", "group"):
                await client.subscribe(f"{self.topic}/{kind}/+", qos=1)
            subscribed.set()
            async for message in client.messages:
                self.see(str(message.topic), bytes(message.payload))

    def see(self, topic: str, payload: bytes) -> None:
        """Take note of one message."""
        release = json.loads(payload)
        key = (topic, release["slot"])
        if key not in self.payloads:
            self.payloads[key] = payload
            self.latest[topic] = release
        elif self.payloads[key] == payload:
            self.repeated += 1
        else:
            self.doubled.add(key)

    def count(self, kind: str) -> int:
        """Count the distinct (topic, slot) pairs of a kind, "household" or "group"."""
        return sum(topic.startswith(f"{self.topic}/{kind}/") for topic, _ in self.payloads)

    def slots(self) -> set[str]:
        """Return the slots that any release spoke of."""
        return {slot for _, slot in self.payloads}

    def released_bits(self, groups: Mapping[str, Sequence[str]]) -> float:
        """Sum ⌈10⁶·log2(charged levels)⌉/10⁶ over household-slots, from the messages and the public roll.

        A household's charged levels are 1 + (her levels − 1) + Σ (reach of her groups − 1); none while spent.
        """
        reaches: dict[tuple[str, str], int] = {}
        parsed = {key: json.loads(payload) for key, payload in self.payloads.items()}
        for group, members in groups.items():
            for (topic, slot), release in parsed.items():
                if topic == f"{self.topic}/group/{group}":
                    for member in members:
                        reaches[member, slot] = reaches.get((member, slot), 0) + release["reach"] - 1
        microbits = 0
        for (topic, slot), release in parsed.items():
            kind, _, household = topic.removeprefix(f"{self.topic}/").partition("/")
            if kind == "household" and not release.get("spent"):
                together = 0 if release.get("coarse") else reaches.get((household, slot), 0)
                microbits += ceil(1e6 * log2(release["levels"] + together))
        return microbits / 1e6
