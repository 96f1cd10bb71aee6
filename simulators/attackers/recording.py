"""Recordings of what was released, as a receiver makes them.

``mosquitto_sub -F '%t %p' -t 'noiseless/#' > recording.txt`` writes topic, space and payload, a line each. Lines
that are no release (the gateway's state, other topics, half a line at the end) are counted and left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from gateway.privacy import IntArray

FloatArray = npt.NDArray[np.float64]

_LINE = re.compile(rb"(?:.*/)?(household|group)/([^/]+?) (\{.*\})\s*")
_MS = 1_000


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
        codebook: the hash of its codebook, in the last release.
        rounding: of that codebook.

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
        other: lines that are no release.

    """

    households: dict[str, Released] = field(default_factory=dict)
    groups: dict[str, Released] = field(default_factory=dict)
    releases: int = 0
    repeated: int = 0
    other: int = 0


def read_recording(path: Path) -> Recording:
    """Return the releases of a recording.

    Raises:
        OSError: it cannot be read.

    """
    with path.open("rb") as lines:
        return parse(lines)


def parse(lines: Iterable[bytes]) -> Recording:
    """Return the releases of lines of topic, space, payload."""
    found: dict[tuple[str, str], dict[int, _Message]] = {}
    repeated = other = 0
    for line in lines:
        release = _release_in(line)
        if release is None:
            other += 1
            continue
        topic, start_ms, message = release
        if start_ms in found.setdefault(topic, {}):
            repeated += 1
        else:
            found[topic][start_ms] = message
    series = [_series(kind, name, messages) for (kind, name), messages in found.items()]
    return Recording(
        households={one.name: one for one in series if one.kind == "household"},
        groups={one.name: one for one in series if one.kind == "group"},
        releases=sum(len(one.start_ms) for one in series),
        repeated=repeated,
        other=other,
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
    if message.slot.tzinfo is None or message.minutes <= 0 or min(message.levels, message.members) < 1:
        return None
    return topic, round(message.slot.timestamp() * _MS), message


def _series(kind: str, name: str, messages: dict[int, _Message]) -> Released:
    ordered = [messages[start_ms] for start_ms in sorted(messages)]
    last = ordered[-1]
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
    )
