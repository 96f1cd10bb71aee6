"""A node is asked for its births once a minute at most, and a flood of nodes is not answered."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from gateway import rebirths
from gateway.mqtt import Publication
from gateway.rebirths import Rebirths


class Link:
    """Takes note of what is published."""

    def __init__(self) -> None:
        self.topics: list[str] = []

    async def publish(self, publications: Sequence[Publication]) -> None:
        self.topics += [one.topic for one in publications]


async def asked(births: Rebirths, link: Link, *nodes: str) -> list[str]:
    link.topics.clear()
    births.ask([("plant", node) for node in nodes])
    await asyncio.sleep(0)
    return [topic.rpartition("/")[2] for topic in link.topics]


async def test_a_node_is_asked_again_after_a_minute_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    now, link = [0.0], Link()
    monkeypatch.setattr(rebirths.time, "monotonic", lambda: now[0])
    births = Rebirths(link)  # type: ignore[arg-type]
    assert await asked(births, link, "a", "b") == ["a", "b"]
    now[0] = 59.0
    assert await asked(births, link, "a", "c") == ["c"]
    now[0] = 60.0
    assert await asked(births, link, "a", "c") == ["a"]


async def test_a_flood_of_nodes_is_asked_no_more_than_ten_thousand_times_a_minute() -> None:
    link = Link()
    births = Rebirths(link)  # type: ignore[arg-type]
    flood = [f"n{i}" for i in range(15_000)]
    assert len(await asked(births, link, *flood)) == 10_000
    assert await asked(births, link, *flood) == []
