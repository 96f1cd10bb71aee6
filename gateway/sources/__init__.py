"""From messages to readings, by a declarative mapping; no user code runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from gateway.config import SourceTable
from gateway.policy import members_of
from gateway.privacy import IntArray
from gateway.sources.json_interval import Reader, interval_reader
from gateway.sources.readings import Readings, Reason, RejectedError, occurrences
from gateway.topics import TopicTemplate

__all__ = ["Readings", "Reason", "RejectedError", "Sources", "occurrences"]

# Topics are the publisher's choice: the cache of their meaning must not be.
_SPARE_ROUTES = 10_000
_LONGEST_ROUTE = 256


class _Family(NamedTuple):
    """One [[source]], compiled."""

    template: TopicTemplate
    household: str | None
    positions: dict[str, int]
    read: Reader


class Sources:
    """All sources of a configuration.

    Args:
        tables: the [[source]] tables.
        households: the roll's ids in order.
        slot_ms: the slot's length, which is the interval's where a source does not say.

    """

    def __init__(self, tables: Sequence[SourceTable], households: Sequence[str], slot_ms: int) -> None:
        self._families = [_family(table, households, slot_ms) for table in tables]
        self._routes: dict[str, tuple[int, Reader]] = {}
        self._most_routes = len(households) + _SPARE_ROUTES
        self.parts: IntArray = np.ones(len(households), np.int64)
        """(n,) how many intervals fill a household's slot."""
        for table, family in zip(tables, self._families, strict=True):
            self.parts[list(family.positions.values())] = slot_ms // (table.interval or slot_ms)

    @property
    def filters(self) -> list[str]:
        """The MQTT topic filters to subscribe to, without repeats."""
        return list(dict.fromkeys(family.template.filter for family in self._families))

    def decode(self, messages: Iterable[tuple[str, bytes, bool]]) -> tuple[Readings, Counter[Reason]]:
        """Return the readings of (topic, payload, retained) messages, and how many were none, by reason."""
        rows: list[tuple[int, int, int, bool]] = []
        rejected: Counter[Reason] = Counter()
        routes, add = self._routes, rows.append
        for topic, payload, retained in messages:
            try:
                household, read = routes.get(topic) or self._route(topic)
                start, energy = read(payload)
            except RejectedError as rejection:
                rejected[rejection.reason] += 1
            else:
                add((household, start, energy, retained))
        return Readings.of(rows), rejected

    def _route(self, topic: str) -> tuple[int, Reader]:
        reason = Reason.UNKNOWN_TOPIC
        for family in self._families:
            found = family.template.pattern.fullmatch(topic)
            if found is None:
                continue
            position = family.positions.get(family.household or found[1])
            if position is not None:
                return self._remember(topic, (position, family.read))
            reason = Reason.UNKNOWN_HOUSEHOLD
        raise RejectedError(reason)

    def _remember(self, topic: str, route: tuple[int, Reader]) -> tuple[int, Reader]:
        if len(topic) > _LONGEST_ROUTE:
            return route
        if len(self._routes) >= self._most_routes:
            self._routes.clear()
        self._routes[topic] = route
        return route


def _family(table: SourceTable, households: Sequence[str], slot_ms: int) -> _Family:
    patterns = [table.household] if table.household else table.households
    positions = {households[i]: i for i in members_of(patterns, households)}
    reader = interval_reader(table, table.interval or slot_ms)
    return _Family(TopicTemplate.parse(table.topic), table.household, positions, reader)
