"""A payload format as one source uses it: how its topics are subscribed to, and where it says its time."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from gateway.source_table import SourceTable, TimeField
from gateway.sources.formats import Find, SparkplugDecoder, format_named, sparkplug_metric

_P1_TIME = "0-0:1.0.0"
_NODE_LIFE = re.compile(r"spBv1\.0/[^/]+/N(?:BIRTH|DEATH)/[^/]+")
_KIND = 2
_KINDS = ("DATA", "BIRTH", "DEATH")


class Binding(NamedTuple):
    """What a source needs of its format.

    Attributes:
        compile: from an address to what looks it up; raises ValueError with what to write.
        parser: from a topic to what parses its payloads; raises FormatError.
        filters: from the source's topic filter to all that must be subscribed to.
        data_topic: from a topic to the one that the source's template is matched with.
        time: where the format itself says a reading's time, or None.
        plain: whether a payload is one document of one moment, whatever its topic.
        explains: whether the messages of a topic are no readings, but say how others are to be read.

    """

    compile: Callable[[str], Find]
    parser: Callable[[str], Callable[[bytes], object]]
    filters: Callable[[str], list[str]]
    data_topic: Callable[[str], str]
    time: TimeField | None
    plain: bool
    explains: Callable[[str], bool]


def bound(source: SourceTable) -> Binding:
    """Return a source's format, bound to it."""
    value = next(iter(source.value), "")
    if source.format == "sparkplug":
        return _sparkplug(TimeField(at=f"{value}|t", format="ms"))
    options = {"separator": source.separator} if source.format == "csv" else {}
    form = format_named(source.format, **options)
    return Binding(
        form.compile,
        lambda _: form.parse,
        lambda text: [text],
        str,
        _own_time(source.format, value),
        plain=source.format != "senml",
        explains=lambda _: False,
    )


def _own_time(name: str, value: str) -> TimeField | None:
    if name == "p1":
        return TimeField(at=_P1_TIME, format="dsmr")
    if name == "senml":
        return TimeField(at=f"{value.partition('|')[0]}|t", format="s")
    return None


def _sparkplug(time: TimeField) -> Binding:
    decoder = SparkplugDecoder()
    return Binding(
        sparkplug_metric,
        lambda topic: lambda payload: decoder.parse(topic, payload),
        _lifecycle,
        _as_data,
        time,
        plain=False,
        explains=lambda topic: _NODE_LIFE.fullmatch(topic) is not None,
    )


def _lifecycle(text: str) -> list[str]:
    """Return the filters of a node's or device's data, and of the births and deaths that explain it."""
    levels = text.split("/")
    if len(levels) <= _KIND or levels[_KIND] not in ("DDATA", "NDATA"):
        return [text]
    nodes, own = levels[: _KIND + 2], levels[_KIND][0]
    of_kind = [_with_kind(levels, own + kind) for kind in _KINDS]
    return list(dict.fromkeys([*of_kind, _with_kind(nodes, "NBIRTH"), _with_kind(nodes, "NDEATH")]))


def _as_data(topic: str) -> str:
    levels = topic.split("/")
    if len(levels) > _KIND and levels[_KIND][1:] in _KINDS:
        return _with_kind(levels, levels[_KIND][0] + "DATA")
    return topic


def _with_kind(levels: list[str], kind: str) -> str:
    return "/".join([*levels[:_KIND], kind, *levels[_KIND + 1 :]])
