"""What the fields of a [[source]] must be to each other, to the roll and to the slots."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gateway.config import Config
from gateway.metering import patterns_of
from gateway.policy import members_of
from gateway.quantities import written_duration
from gateway.roll import meters_of
from gateway.rulebook import Fault, RuleBook
from gateway.source_table import SourceTable, TimeField, UnitField
from gateway.sources.bindings import bound
from gateway.sources.times import time_reader
from gateway.topics import TopicTemplate

_MOST_PARTS = 1_000
_CAPTURE = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_ONLY_FOR = {
    "interval": ("interval", "stamp"),
    "power": ("gap",),
    "register": ("gap", "gaps", "modulus", "serial"),
}
_PUBLISHED = ("household", "group", "fence")
SOURCE_RULES = RuleBook()
_rule = SOURCE_RULES.rule
_NEEDED = "add a [[source]] with topic, value, unit and time, or with a preset and a topic"


@_rule("source.preset", "source.topic", "source.meter")
def _topics(config: Config) -> Iterator[Fault]:
    if not config.source:
        yield Fault("source", None, "there is no source of readings", _NEEDED)
    for i, source in enumerate(config.source):
        captures = TopicTemplate.parse(source.topic).captures
        if not source.candidates:
            remedy = 'put {household} into the topic, or set meter = "/pointer" or "=constant"'
            yield Fault(f"source.{i}.topic", source.topic, "does not say whose readings they are", remedy)
        known = {*captures, "key"} if source.each is not None else set(captures)
        for text in source.meter:
            if unknown := [name for name in _CAPTURE.findall(text) if name not in known]:
                remedy = f'capture it, as in topic = "meters/{{{unknown[0]}}}"'
                yield Fault(f"source.{i}.meter", text, f"the topic captures no {unknown[0]}", remedy)


@_rule("source.preset", "source.format", "source.value", "source.minus", "source.each")
def _values(config: Config) -> Iterator[Fault]:
    for i, source in enumerate(config.source):
        if source.format == "number" and source.value:
            yield Fault(f"source.{i}.value", source.value, "the payload is the number", "leave it out")
        if source.format != "number" and not source.value:
            yield Fault(
                f"source.{i}.value", None, "it is needed", 'write where the value stands, as "/energy"'
            )
        if source.each is not None and source.format != "json":
            yield Fault(f"source.{i}.each", source.each, f"{source.format} has no lists", "leave it out")


@_rule("source.quantity", "source.sign", "source.minus")
def _directions(config: Config) -> Iterator[Fault]:
    for i, source in enumerate(config.source):
        if source.quantity != "register":
            continue
        remedy = "read power samples for what is net, or the register of import alone"
        if source.minus:
            yield Fault(f"source.{i}.minus", source.minus, "a register of the difference would fall", remedy)
        if source.sign == "export":
            yield Fault(f"source.{i}.sign", "export", "registers of export are not taken off yet", remedy)


@_rule("source.preset", "source.unit", "source.quantity", "source.format")
def _units(config: Config) -> Iterator[Fault]:
    for i, source in enumerate(config.source):
        yield from _unit(source, i)


def _unit(source: SourceTable, i: int) -> Iterator[Fault]:
    kind = "power" if source.quantity == "power" else "energy"
    remedy = f"write one of {', '.join(source.units)}: {source.quantity} readings are {kind}"
    if source.unit is None and not source.says_unit:
        yield Fault(f"source.{i}.unit", None, "it is needed", remedy)
    elif source.unit is not None and source.says_unit:
        yield Fault(f"source.{i}.unit", source.unit, f"{source.format} values say their unit", "leave it out")
    elif isinstance(source.unit, str) and source.unit not in source.units:
        yield Fault(f"source.{i}.unit", source.unit, f"is no unit of {kind}", remedy)


@_rule("source.quantity", *(f"source.{name}" for names in _ONLY_FOR.values() for name in names))
def _quantities(config: Config) -> Iterator[Fault]:
    for i, source in enumerate(config.source):
        others = {name for names in _ONLY_FOR.values() for name in names} - set(_ONLY_FOR[source.quantity])
        for name in sorted(others & source.model_fields_set):
            owners = " and ".join(f"{kind} readings" for kind, names in _ONLY_FOR.items() if name in names)
            problem = f"means nothing for {source.quantity} readings, only for {owners}"
            yield Fault(f"source.{i}.{name}", str(getattr(source, name)), problem, "leave it out")


@_rule("source.preset", "source.time", "source.quantity", "source.format", "slots.clock")
def _times(config: Config) -> Iterator[Fault]:
    for i, source in enumerate(config.source):
        where, own = f"source.{i}.time", bound(source).time
        if source.time is None and own is not None:
            continue
        if source.quantity == "interval" and not isinstance(source.time, TimeField):
            problem = "an interval is known by its time" if source.time else "it is needed"
            yield Fault(where, source.time, problem, 'write time = { at = "/ts" }')
        elif config.slots.clock == "event" and not isinstance(source.time, TimeField):
            remedy = 'write time = { at = "/ts" }, or slots.clock = "wall"'
            yield Fault(where, source.time, "times of arrival do not move an event clock", remedy)


@_rule("source.time")
def _clocks(config: Config) -> Iterator[Fault]:
    for i, source in enumerate(config.source):
        if not isinstance(source.time, TimeField):
            continue
        try:
            time_reader(source.time.format, source.time.zone)
        except ValueError as error:
            yield Fault(f"source.{i}.time.format", source.time.format, "is no way to read a time", str(error))


# An address in a field that was refused already is not looked at again.
@_rule("source.format")
def _addresses(config: Config) -> Iterator[Fault]:
    for i, source in enumerate(config.source):
        compiled = bound(source).compile
        for field, address in _addressed(source):
            try:
                compiled(address)
            except ValueError as error:
                yield Fault(f"source.{i}.{field}", address, f"not an address in {source.format}", str(error))


def _addressed(source: SourceTable) -> Iterator[tuple[str, str]]:
    """Yield every address of a source, with the field that it stands in."""
    # A number has no address at all, which is a fault of its own.
    yield from (("value", address) for address in source.value if source.format != "number")
    yield from (("minus", address) for address in source.minus)
    yield from (("when", address) for address in source.when)
    if isinstance(source.unit, UnitField):
        yield "unit.at", source.unit.at
    if isinstance(source.time, TimeField):
        yield "time.at", source.time.at
    if source.each is not None:
        yield "each", source.each
    if source.serial is not None:
        yield "serial", source.serial
    yield from (
        ("meter", text) for text in source.meter if not text.startswith("=") and not _CAPTURE.search(text)
    )


@_rule("source.gap", "slots.length")
def _gaps(config: Config) -> Iterator[Fault]:
    length = config.slots.length
    for i, source in enumerate(config.source):
        if source.gap is not None and source.gap > length:
            problem = "longer than a slot: what slots before it missed would pile up in one"
            remedy = f"write at most {written_duration(length)} (slots.length), or leave it out"
            yield Fault(f"source.{i}.gap", written_duration(source.gap), problem, remedy)


@_rule("source.interval", "slots.length", "source.quantity")
def _intervals(config: Config) -> Iterator[Fault]:
    length = config.slots.length
    for i, source in enumerate(config.source):
        interval = source.interval or length
        if interval > length or length % interval or length // interval > _MOST_PARTS:
            remedy = (
                f"use {written_duration(length)} (slots.length) or a part of it, at most {_MOST_PARTS} parts"
            )
            yield Fault(f"source.{i}.interval", written_duration(interval), "does not fill a slot", remedy)


@_rule("source.topic", "output.topic", "output.url", "broker.url")
def _loops(config: Config) -> Iterator[Fault]:
    if config.separate:
        return
    for i, source in enumerate(config.source):
        if _hears(source.topic, config.output.topic):
            remedy = f"read or publish elsewhere: output.topic is {config.output.topic!r}"
            yield Fault(f"source.{i}.topic", source.topic, "would read our own releases", remedy)


def _hears(text: str, topic: str) -> bool:
    """Return whether a source's filter matches what we publish: TOPIC/state, and TOPIC/KIND/NAME."""
    template = TopicTemplate.parse(text)
    levels = template.filter.split("/")
    deep = levels[-1] == "#" or len(levels) == len(topic.split("/")) + 2
    if TopicTemplate.parse(template.filter).pattern.fullmatch(f"{topic}/state"):
        return True
    return deep and any(template.overlaps(f"{topic}/{kind}") for kind in _PUBLISHED)


@_rule("source.meters", "source.meter", "household.id", "household.meters")
def _speakers(config: Config) -> Iterator[Fault]:
    ids, whose = meters_of(config)
    first: dict[int, int] = {}
    for i, source in enumerate(config.source):
        served = members_of(patterns_of(source), ids)
        if ids and not served:
            field, value = (
                ("meter", source.meter) if patterns_of(source) != source.meters else ("meters", source.meters)
            )
            yield Fault(
                f"source.{i}.{field}",
                value,
                "matches no meter of the roll",
                "name meters of the roll: ids, or h-0*",
            )
        taken = [place for place in served if first.setdefault(place, i) != i]
        if taken:
            owner = config.household[whose[taken[0]]].id
            problem = f"a meter of {owner} already has source {first[taken[0]]}: each has one"
            remedy = 'let each source speak for its own, as in meters = ["h-0*"]'
            yield Fault(f"source.{i}.meters", source.meters, problem, remedy)
