"""From messages to readings, by a declarative mapping; no user code runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gateway.metering import Metering
from gateway.source_table import SourceTable
from gateway.sources.mapping import Found, MessageMapping, Reader
from gateway.sources.parsing import RebirthWantedError
from gateway.sources.readings import IGNORED, Readings, Reason, RejectedError, Row, occurrences

__all__ = ["IGNORED", "Found", "Readings", "Reason", "RejectedError", "Row", "Sources", "occurrences"]

# Topics are the publisher's choice: the cache of their meaning must not be.
_SPARE_ROUTES = 10_000
_LONGEST_ROUTE = 256
_MOST_REBIRTHS = 64


class _Branch(NamedTuple):
    """One source's way to read a topic, and where its meters stand."""

    read: Reader
    positions: dict[str, int]


class Sources:
    """All sources of a configuration.

    Args:
        tables: the [[source]] tables.
        metering: the meters, and which of them each source speaks for.
        slot_ms: the slot's length, which is the interval's where a source does not say.

    """

    def __init__(self, tables: Sequence[SourceTable], metering: Metering, slot_ms: int) -> None:
        self._mappings = [MessageMapping(table, slot_ms) for table in tables]
        ids = metering.meters.ids
        self._positions = [{ids[place]: place for place in places} for places in metering.served]
        self._routes: dict[str, tuple[_Branch, ...]] = {}
        self._most_routes = len(ids) + _SPARE_ROUTES
        self._rebirths: dict[tuple[str, str], None] = {}

    @property
    def filters(self) -> list[str]:
        """The MQTT topic filters to subscribe to, without repeats."""
        return list(dict.fromkeys(name for mapping in self._mappings for name in mapping.filters))

    def decode(
        self, messages: Iterable[tuple[str, bytes, bool]], arrival_ms: int | None = None
    ) -> tuple[Readings, Counter[Reason]]:
        """Return the readings of (topic, payload, retained) messages, and how many were none, by reason.

        Args:
            messages: in the order of arrival.
            arrival_ms: the time of readings that say none; left out: they are kept out.

        """
        rows: list[tuple[int, int, int, bool, int]] = []
        rejected: Counter[Reason] = Counter()
        routes = self._routes
        for topic, payload, retained in messages:
            branches = routes.get(topic) or self._route(topic)
            before, reasons = len(rows), list[Reason]()
            for branch in branches:
                self._read(branch, payload, retained, arrival_ms, rows, reasons)
            if len(branches) == 1:
                rejected.update(reasons)
            elif len(rows) == before:
                # None of several sources could use it.
                rejected[reasons[0] if reasons else Reason.UNKNOWN_TOPIC] += 1
        return Readings.of(rows), rejected

    def _read(  # noqa: PLR0917 - called for every message, and keywords take time
        self,
        branch: _Branch,
        payload: bytes,
        retained: bool,  # noqa: FBT001 - a column
        arrival_ms: int | None,
        rows: list[tuple[int, int, int, bool, int]],
        reasons: list[Reason],
    ) -> None:
        """Add what a message says in one source to the rows, and why it does not to the reasons."""
        try:
            found = branch.read(payload)
        except RejectedError as rejection:
            reasons.append(self._noted(rejection))
            return
        for one in found:
            if isinstance(one, Reason):
                reasons.append(one)
            elif (place := branch.positions.get(one.meter)) is None:
                reasons.append(Reason.UNKNOWN_HOUSEHOLD)
            elif one.time_ms is not None:
                rows.append((place, one.time_ms, one.value, retained, one.serial))
            elif retained:
                # It arrived at the broker before we asked, who knows when.
                reasons.append(Reason.STALE_RETAINED)
            elif arrival_ms is None:
                reasons.append(Reason.BAD_TIME)
            else:
                rows.append((place, arrival_ms, one.value, retained, one.serial))

    def wanted_rebirths(self) -> list[tuple[str, str]]:
        """Return the (group, node) pairs whose births were missed since the last call, and forget them."""
        wanted, self._rebirths = list(self._rebirths), {}
        return wanted

    def _noted(self, rejection: RejectedError) -> Reason:
        if isinstance(rejection, RebirthWantedError) and len(self._rebirths) < _MOST_REBIRTHS:
            self._rebirths[rejection.group, rejection.node] = None
        return rejection.reason

    def _route(self, topic: str) -> tuple[_Branch, ...]:
        branches = tuple(
            _Branch(read, positions)
            for mapping, positions in zip(self._mappings, self._positions, strict=True)
            if (read := mapping.reader(topic)) is not None
        )
        if branches and len(topic) <= _LONGEST_ROUTE:
            if len(self._routes) >= self._most_routes:
                self._routes.clear()
            self._routes[topic] = branches
        return branches
