"""Recordings of what was released, as a receiver makes them.

``mosquitto_sub -F '%t %p' -t 'noiseless/#' > recording.txt`` writes topic, space and payload, a line each. Lines
that are no release (the gateway's state, other topics, half a line at the end) are counted and left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from gateway.privacy import IntArray, Rounding

FloatArray = npt.NDArray[np.float64]

_LINE = re.compile(rb"(?:.*/)?(household|group)/([^/]+?) (\{.*\})\s*")
_MS = 1_000
_MOST = 1 << 32  # levels, and members: beyond what a gateway releases
_MOST_MINUTES = 7 * 24 * 60
_MOST_W = 1e12
_FIRST, _END = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


class _Message(msgspec.Struct):
    slot: datetime
    minutes: float
    symbol: int
    levels: int
    between_w: tuple[float | None, float | None]
    value_w: float | None
    spent: bool = False
    members: int = 1
    query: str = ""
    codebook: str = ""
    rounding: str = "nearest"
    coarse: bool = False


_DECODER = msgspec.json.Decoder(_Message)


@dataclass(frozen=True, eq=False)
class Released:
    """The releases of one household or group, in the order of their slots.

    Attributes:
        kind: "household" or "group".
        name: its name in the topic.
        minutes: the length of a slot.
        start_ms: (t,) beginnings of the slots (ms UTC).
        symbols: (t,) symbols.
        levels: (t,) how many symbols there were to choose among.
        value_w: (t,) what the symbols stand for (W); NaN for "no reading".
        spent: (t,) whether the budget was spent, so that the release tells nothing.
        members: how many homes it speaks of.
        query: "sum" or "mean" of a group, "" of a household.
        codebook: the hash of its codebook, in the last release that is not coarse.
        rounding: of that codebook.
        coarse: how many releases had merged cells, since the budget was nearly spent.

    """

    kind: str
    name: str
    minutes: float
    start_ms: IntArray
    symbols: IntArray
    levels: IntArray
    value_w: FloatArray
    spent: npt.NDArray[np.bool_]
    members: int
    query: str
    codebook: str = ""
    rounding: str = "nearest"
    coarse: int = 0

    @property
    def per_home_w(self) -> FloatArray:
        """(t,) the released values as a mean per home (W)."""
        return self.value_w / self.members if self.query == "sum" else self.value_w


@dataclass(frozen=True, eq=False)
class Recording:
    """What a receiver recorded.

    Attributes:
        households: their releases, by name.
        groups: their releases, by name.
        releases: releases that were read, each slot of a topic once.
        repeated: further lines of a slot that is there already; the first one counts.
        other_length: releases of a topic whose slots are not as long as most of it; left out.
        other: lines that are no release.

    """

    households: dict[str, Released] = field(default_factory=dict)
    groups: dict[str, Released] = field(default_factory=dict)
    releases: int = 0
    repeated: int = 0
    other: int = 0
    other_length: int = 0

    @property
    def spent(self) -> int:
        """Releases that tell nothing, since the budget was spent."""
        return sum(int(one.spent.sum()) for one in (*self.households.values(), *self.groups.values()))

    @property
    def coarse(self) -> int:
        """Releases of merged cells."""
        return sum(one.coarse for one in (*self.households.values(), *self.groups.values()))


def read_recording(path: Path) -> Recording:
    """Return the releases of a recording.

    Raises:
        OSError: it cannot be read.

    """
    with path.open("rb") as lines:
        return parse(lines)


def parse(lines: Iterable[bytes]) -> Recording:
    """Return the releases of lines of topic, space, payload."""
    found: dict[tuple[str, str], dict[float, dict[int, _Message]]] = {}
    repeated = other = 0
    for line in lines:
        release = _release_in(line)
        if release is None:
            other += 1
            continue
        topic, start_ms, message = release
        slots = found.setdefault(topic, {}).setdefault(message.minutes, {})
        if start_ms in slots:
            repeated += 1
        else:
            slots[start_ms] = message
    series = [_series(kind, name, max(of.values(), key=len)) for (kind, name), of in found.items()]
    read = sum(len(slots) for of in found.values() for slots in of.values())
    releases = sum(len(one.start_ms) for one in series)
    return Recording(
        households={one.name: one for one in series if one.kind == "household"},
        groups={one.name: one for one in series if one.kind == "group"},
        releases=releases,
        repeated=repeated,
        other=other,
        other_length=read - releases,
    )


def _release_in(line: bytes) -> tuple[tuple[str, str], int, _Message] | None:
    matched = _LINE.fullmatch(line)
    if matched is None:
        return None
    try:
        message = _DECODER.decode(matched[3])
        topic = (matched[1].decode(), matched[2].decode())
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if not _is_possible(message):
        return None
    return topic, round(message.slot.timestamp() * _MS), message


def _is_possible(message: _Message) -> bool:
    """Tell whether a gateway could have released it."""
    return (
        message.slot.tzinfo is not None
        and _FIRST <= message.slot < _END
        and 0 < message.minutes <= _MOST_MINUTES
        and 0 <= message.symbol < message.levels <= _MOST
        and 1 <= message.members <= _MOST
        and (message.value_w is None or (isfinite(message.value_w) and abs(message.value_w) <= _MOST_W))
        and message.rounding in set(Rounding)
    )


def _series(kind: str, name: str, messages: dict[int, _Message]) -> Released:
    ordered = [messages[start_ms] for start_ms in sorted(messages)]
    last = next((one for one in reversed(ordered) if not one.coarse), ordered[-1])
    return Released(
        kind=kind,
        name=name,
        minutes=last.minutes,
        start_ms=np.array(sorted(messages), np.int64),
        symbols=np.array([one.symbol for one in ordered], np.int64),
        levels=np.array([one.levels for one in ordered], np.int64),
        value_w=np.array([np.nan if one.value_w is None else one.value_w for one in ordered], np.float64),
        spent=np.array([one.spent for one in ordered], np.bool_),
        members=last.members,
        query=last.query,
        codebook=last.codebook,
        rounding=last.rounding,
        coarse=sum(one.coarse for one in ordered),
    )
