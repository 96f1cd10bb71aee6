"""What the fields of a configuration must be to each other."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from gateway.config import Config, HouseholdTable, SourceTable
from gateway.policy import document_of, members_of
from gateway.privacy import MAX_CELLS, Missing, certified_levels
from gateway.quantities import written_duration, written_power
from gateway.topics import TopicTemplate

_MS_PER_S = 1_000
_MOST_PARTS = 1_000
_LEAST_SYMBOL_LEVELS = 3
SQLITE = "sqlite:///"


class Fault(NamedTuple):
    """One fault of a configuration: where, what, and what to do."""

    field: str
    value: object
    problem: str
    remedy: str


Check = Callable[[Config], Iterator[Fault]]


class Rule(NamedTuple):
    """A check, and the fields that must be free of other faults for it to make sense."""

    check: Check
    reads: frozenset[str]


RULES: list[Rule] = []


def _rule(*reads: str) -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        RULES.append(Rule(check, frozenset(reads)))
        return check

    return register


@_rule("slots.length")
def _slots(config: Config) -> Iterator[Fault]:
    length = config.slots.length
    if length % _MS_PER_S:
        yield Fault(
            "slots.length", written_duration(length), "not whole seconds", 'write a time like "30min"'
        )


@_rule("slots.length", "budget.window")
def _windows(config: Config) -> Iterator[Fault]:
    length, window = config.slots.length, config.budget.window
    if window % length:
        remedy = f"write a multiple of slots.length, {written_duration(length)}"
        yield Fault("budget.window", written_duration(window), "not a whole number of slots", remedy)


@_rule("household.id")
def _roll(config: Config) -> Iterator[Fault]:
    if not config.household:
        yield Fault("household", None, "the roll is empty", 'add a [[household]] with id = "h-001"')
    yield from _repeats("household", "id", [household.id for household in config.household])


@_rule(
    "release.levels",
    "release.epsilon",
    "release.range",
    "household.levels",
    "household.epsilon",
    "household.range",
)
def _codebooks(config: Config) -> Iterator[Fault]:
    document = document_of(config)
    for i, household in enumerate(config.household):
        book = document.books[document.book_of[i]]
        field, value = _where_levels(config, household, i)
        if config.slots.missing is Missing.SYMBOL and book.levels < _LEAST_SYMBOL_LEVELS:
            problem = 'missing = "symbol" takes one value, so fewer than two are left for readings'
            yield Fault(field, value, problem, 'use levels = 3 or more, or missing = "hold"')
        elif book.upper - book.lower < book.levels:
            span = written_power(book.upper - book.lower)
            yield Fault(field, value, f"more cells than milliwatts in a range of {span}", "use fewer levels")


def _where_levels(config: Config, household: HouseholdTable, i: int) -> tuple[str, object]:
    """Return the field that decides a household's levels, and its value."""
    for where, table in ((f"household.{i}", household), ("release", config.release)):
        for field in ("levels", "epsilon"):
            if getattr(table, field) is not None:
                return f"{where}.{field}", getattr(table, field)
    return "release.epsilon", None


@_rule("group.name", "group.members", "household.id")
def _groups(config: Config) -> Iterator[Fault]:
    ids = [household.id for household in config.household]
    yield from _repeats("group", "name", [group.name for group in config.group])
    for i, group in enumerate(config.group):
        for pattern in group.members:
            if not members_of([pattern], ids):
                remedy = "name an id of the roll, or a pattern like h-0*"
                yield Fault(f"group.{i}.members", pattern, "matches no household", remedy)


@_rule("group.members", "group.levels", "group.epsilon", "household.id", "household.range", "release.range")
def _group_cells(config: Config) -> Iterator[Fault]:
    document = document_of(config)
    for i, group in enumerate(document.groups):
        books = [document.books[document.book_of[member]] for member in group.members]
        widths = [book.upper - book.lower for book in books]
        if not widths:
            continue
        levels = certified_levels(sum(widths), max(widths), group.reach)
        if levels > min(MAX_CELLS, sum(widths)):
            problem = f"{levels} cells for {len(books)} members: at most {MAX_CELLS}, and one per mW"
            field = "levels" if config.group[i].levels else "epsilon"
            yield Fault(f"group.{i}.{field}", getattr(config.group[i], field), problem, "use a smaller one")


@_rule("source.topic", "source.household")
def _topics(config: Config) -> Iterator[Fault]:
    if not config.source:
        yield Fault(
            "source", None, "there is no source of readings", "add a [[source]] with topic, value, unit, time"
        )
    for i, source in enumerate(config.source):
        if TopicTemplate.parse(source.topic).captures == (source.household is not None):
            remedy = "put {household} into the topic, or set household, one of them"
            yield Fault(f"source.{i}.topic", source.topic, "does not say once which household speaks", remedy)


@_rule("source.interval", "slots.length")
def _intervals(config: Config) -> Iterator[Fault]:
    length = config.slots.length
    for i, source in enumerate(config.source):
        interval = source.interval or length
        if interval > length or length % interval or length // interval > _MOST_PARTS:
            remedy = (
                f"use {written_duration(length)} (slots.length) or a part of it, at most {_MOST_PARTS} parts"
            )
            yield Fault(f"source.{i}.interval", written_duration(interval), "does not fill a slot", remedy)


@_rule("source.topic", "output.topic")
def _loops(config: Config) -> Iterator[Fault]:
    for i, source in enumerate(config.source):
        if TopicTemplate.parse(source.topic).overlaps(config.output.topic):
            remedy = f"read or publish elsewhere: output.topic is {config.output.topic!r}"
            yield Fault(f"source.{i}.topic", source.topic, "would read our own releases", remedy)


@_rule("source.households", "source.household", "household.id")
def _speakers(config: Config) -> Iterator[Fault]:
    ids = [household.id for household in config.household]
    first: dict[int, int] = {}
    for i, source in enumerate(config.source):
        members = speakers(source, ids)
        if config.household and not members:
            field = "household" if source.household else "households"
            value = source.household or source.households
            yield Fault(f"source.{i}.{field}", value, "matches no household", "name households of the roll")
        taken = [member for member in members if first.setdefault(member, i) != i]
        if taken:
            problem = f"{ids[taken[0]]} already has source {first[taken[0]]}, and sources are not summed"
            remedy = 'let each source speak for its own, as in households = ["h-0*"]'
            yield Fault(f"source.{i}.households", source.households, problem, remedy)


@_rule("broker.url", "broker.password_file")
def _password(config: Config) -> Iterator[Fault]:
    yield from _unreadable("broker.password_file", config.broker.password_file)
    if config.broker.url == "embedded" and find_spec("iotcore") is None:
        yield Fault(
            "broker.url",
            "embedded",
            "the embedded broker is not installed",
            "pip install 'noiseless[simulate]'",
        )


@_rule("http.token_file")
def _token(config: Config) -> Iterator[Fault]:
    yield from _unreadable("http.token_file", config.http.token_file)


@_rule("ledger.url")
def _ledger(config: Config) -> Iterator[Fault]:
    folder = ledger_path(config).absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        yield Fault(
            "ledger.url",
            config.ledger.url,
            "its folder is not writable",
            f"create {folder}, or allow writing",
        )


def ledger_path(config: Config) -> Path:
    """Return the ledger's file."""
    return Path(config.ledger.url.removeprefix(SQLITE))


def speakers(source: SourceTable, ids: list[str]) -> tuple[int, ...]:
    """Return the positions of the households that a source speaks for."""
    return members_of([source.household] if source.household else source.households, ids)


def _repeats(table: str, field: str, names: list[str]) -> Iterator[Fault]:
    for name, times in Counter(names).items():
        if times > 1:
            places = [i for i, other in enumerate(names) if other == name]
            yield Fault(f"{table}.{places[1]}.{field}", name, f"stands {times} times", "keep one of them")


def _unreadable(field: str, path: Path | None) -> Iterator[Fault]:
    if path is not None and not os.access(path, os.R_OK):
        yield Fault(field, str(path), "cannot be read", "create the file, readable for the service's user")
