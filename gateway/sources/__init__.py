"""From messages to readings, by a declarative mapping; no user code runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple, NoReturn

from gateway.metering import Metering
from gateway.source_table import SourceTable
from gateway.sources.mapping import MessageMapping, PayloadReader, Reader
from gateway.sources.parsing import RebirthWantedError
from gateway.sources.readings import Readings, Reason, RejectedError, Row, occurrences

__all__ = ["Readings", "Reason", "RejectedError", "Row", "Sources", "occurrences"]

# Topics are the publisher's choice: the cache of their meaning must not be.
_SPARE_ROUTES = 10_000
_LONGEST_ROUTE = 256
_MOST_REBIRTHS = 64

_Row = tuple[int, int, int, bool, int]
"""As :class:`gateway.sources.readings.Row`, which takes longer to make."""


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
        self._alone: dict[str, tuple[int, PayloadReader]] = {}
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
        rows: list[_Row] = []
        rejected: Counter[Reason] = Counter()
        alone, add = self._alone, rows.append
        for topic, payload, retained in messages:
            route = alone.get(topic)
            if route is None:
                rejected.update(
                    self._looked_into(topic, payload, rows, retained=retained, arrival_ms=arrival_ms)
                )
                continue
            place, read = route
            try:
                value, time_ms, serial = read(payload)
            except RejectedError as rejection:
                rejected[rejection.reason] += 1
                continue
            if time_ms is None and not retained:
                time_ms = arrival_ms
            if time_ms is None:
                rejected[_timeless(retained=retained)] += 1
            else:
                add((place, time_ms, value, retained, serial))
        return Readings.of(rows), rejected

    def _looked_into(
        self, topic: str, payload: bytes, rows: list[_Row], *, retained: bool, arrival_ms: int | None
    ) -> list[Reason]:
        """Read a message that takes more than its topic: several sources, several meters, or ids in payloads."""
        branches = self._routes.get(topic) or self._route(topic)
        before, reasons = len(rows), list[Reason]()
        for branch in branches:
            self._read(branch, payload, rows, reasons, retained=retained, arrival_ms=arrival_ms)
        if len(branches) == 1:
            return reasons
        # None of several sources could use it.
        return (reasons or [Reason.UNKNOWN_TOPIC])[:1] if len(rows) == before else []

    def _read(
        self,
        branch: _Branch,
        payload: bytes,
        rows: list[_Row],
        reasons: list[Reason],
        *,
        retained: bool,
        arrival_ms: int | None,
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
            elif (time_ms := arrival_ms if one.time_ms is None and not retained else one.time_ms) is None:
                reasons.append(_timeless(retained=retained))
            else:
                rows.append((place, time_ms, one.value, retained, one.serial))

    def wanted_rebirths(self) -> list[tuple[str, str]]:
        """Return the (group, node) pairs whose births were missed since the last call, and forget them."""
        wanted, self._rebirths = list(self._rebirths), {}
        return wanted

    def _noted(self, rejection: RejectedError) -> Reason:
        if isinstance(rejection, RebirthWantedError) and len(self._rebirths) < _MOST_REBIRTHS:
            self._rebirths[rejection.group, rejection.node] = None
        return rejection.reason

    def _route(self, topic: str) -> tuple[_Branch, ...]:
        """Return the ways to read a topic; a topic of one meter is read the quick way from now on."""
        pairs = zip(self._mappings, self._positions, strict=True)
        ways = [way for pair in pairs if (way := _way(topic, *pair)) is not None]
        # Sources share a topic's template, and each meter is one source's: to the others it is a stranger.
        ways = [way for way in ways if way[0].read is not _refuse_stranger] or ways[:1]
        branches = tuple(branch for branch, _ in ways)
        if branches and len(topic) <= _LONGEST_ROUTE:
            if len(self._routes) + len(self._alone) >= self._most_routes:
                self._routes.clear()
                self._alone.clear()
            if len(ways) == 1 and (alone := ways[0][1]) is not None:
                self._alone[topic] = alone
            else:
                self._routes[topic] = branches
        return branches


def _way(
    topic: str, mapping: MessageMapping, positions: dict[str, int]
) -> tuple[_Branch, tuple[int, PayloadReader] | None] | None:
    """Return how a source reads a topic, and the quick way if there is one; None if the topic is not its."""
    read = mapping.reader(topic)
    if read is None:
        return None
    named = mapping.named(topic)
    if named is not None and named not in positions:
        return _Branch(_refuse_stranger, positions), None
    quick = mapping.read_alone
    return _Branch(read, positions), None if named is None or quick is None else (positions[named], quick)


def _refuse_stranger(_: bytes) -> NoReturn:
    """Keep out what a meter says that is on no household, unread."""
    raise RejectedError(Reason.UNKNOWN_HOUSEHOLD)


def _timeless(*, retained: bool) -> Reason:
    """Return why a reading without a time is none; a kept one came to the broker who knows when."""
    return Reason.STALE_RETAINED if retained else Reason.BAD_TIME
