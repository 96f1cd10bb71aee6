"""JSON payloads with the energy of one interval, found by RFC 6901 pointers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import msgspec

from gateway.config import SourceTable, UnitField
from gateway.sources.readings import MAX_ENERGY_MWH, Reason, RejectedError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_MWH = {"Wh": 1_000, "kWh": 1_000_000}
# Times as numbers: up to the year 5138 in seconds, from 1973 on in milliseconds.
_SECONDS_BELOW = 10**11
_MAX_TIME_MS = 253_402_300_800_000
_SNAP = 20
_LONGEST_CACHED = 40
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")

Reader = Callable[[bytes], tuple[int, int]]
"""From a payload to (interval start in ms UTC, energy in mWh); raises RejectedError."""


def interval_reader(source: SourceTable, interval_ms: int) -> Reader:
    """Return the reader of a source's payloads.

    Args:
        source: the mapping.
        interval_ms: the length of the interval that a message speaks of.

    """
    values = [_tokens(pointer) for pointer in source.value]
    time = _tokens(source.time.at)
    unit = _tokens(source.unit.at) if isinstance(source.unit, UnitField) else None
    fixed = 0 if unit is not None else _MWH[str(source.unit)]
    back = interval_ms if source.stamp == "end" else 0
    decode, longest = msgspec.json.Decoder().decode, source.max_bytes

    def read(payload: bytes) -> tuple[int, int]:
        if len(payload) > longest:
            raise RejectedError(Reason.TOO_LARGE)
        try:
            document = decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise RejectedError(Reason.UNDECODABLE) from None
        scale = fixed or _scale(_follow(document, unit or ()))
        energy = sum([_energy_mwh(_follow(document, tokens), scale) for tokens in values])
        if not -MAX_ENERGY_MWH <= energy <= MAX_ENERGY_MWH:
            raise RejectedError(Reason.IMPLAUSIBLE)
        return _snapped(_time_ms(_follow(document, time)) - back, interval_ms), energy

    return read


def _tokens(pointer: str) -> tuple[str, ...]:
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:])


def _follow(document: object, tokens: Sequence[str]) -> object:
    for token in tokens:
        try:
            document = document[_index(token)] if isinstance(document, list) else document[token]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            raise RejectedError(Reason.MISSING_FIELD) from None
    return document


def _index(token: str) -> int:
    """Return an array's index; RFC 6901 knows no signs, no leading zeros and no other digits."""
    if not _INDEX.fullmatch(token):
        raise RejectedError(Reason.MISSING_FIELD)
    return int(token)


def _scale(unit: object) -> int:
    scale = _MWH.get(unit) if isinstance(unit, str) else None
    if scale is None:
        raise RejectedError(Reason.UNDECLARED_UNIT)
    return scale


def _energy_mwh(value: object, scale: int) -> int:
    # type(), not isinstance(): true and false are no numbers.
    if type(value) is int:
        return value * scale
    if type(value) is float:
        if not abs(value) <= MAX_ENERGY_MWH:
            raise RejectedError(Reason.IMPLAUSIBLE)
        return round(value * scale)
    raise RejectedError(Reason.WRONG_TYPE)


def _time_ms(value: object) -> int:
    if type(value) is str:
        # What a meter writes stays in the cache: nothing long.
        return _iso_ms(value) if len(value) <= _LONGEST_CACHED else _iso_ms.__wrapped__(value)
    if (type(value) is int or type(value) is float) and 0 <= value <= _MAX_TIME_MS:
        return round(value * 1_000) if value < _SECONDS_BELOW else round(value)
    raise RejectedError(Reason.BAD_TIME)


@lru_cache(maxsize=4_096)
def _iso_ms(text: str) -> int:
    """Return ms since 1970 of an ISO 8601 text; without an offset it could mean any of 38 hours."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise RejectedError(Reason.BAD_TIME) from None
    if moment.tzinfo is None:
        raise RejectedError(Reason.BAD_TIME)
    return (moment - _EPOCH) // _MILLISECOND


def _snapped(start_ms: int, interval_ms: int) -> int:
    """Return the interval's border next to a time that is at most a twentieth of the interval off."""
    border = (start_ms + interval_ms // 2) // interval_ms * interval_ms
    if abs(start_ms - border) * _SNAP > interval_ms:
        raise RejectedError(Reason.MISALIGNED)
    return border
