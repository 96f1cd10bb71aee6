"""What meters write as time, as exact ms since 1970 UTC.

Nothing is guessed: a time without an offset needs a declared zone, and in the night when clocks go back it
is refused unless the meter says which of the two it means.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from fractions import Fraction
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gateway.sources.formats.numbers import number_of

TimeReader = Callable[[object], int]
"""From what a document holds to ms since 1970 UTC; raises TimeError, ClockUnset among them."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_HOUR = timedelta(hours=1)
_FIRST_MS = 978_307_200_000
_LAST_MS = 4_102_444_800_000
# As numbers: up to the year 5138 in seconds, from 1973 on in milliseconds, up to the year 10000.
_SECONDS_BELOW = 10**11
_MAX_TIME_MS = 253_402_300_800_000
_LONGEST_CACHED = 40
_LONGEST_DATE = 10
_DSMR = re.compile(r"([0-9]{12})([SW]?)")
# Two-digit years: a meter that lost its clock says 70, and none is as old.
_CENTURY = 70
_COSEM_LENGTH = 12
_UNSPECIFIED = 0xFF
_NO_DEVIATION = 0x8000
_FARTHEST_MINUTES = 840
_SUMMER = 0x80
_SAMPLE = datetime(2026, 1, 25, 13, 47, tzinfo=UTC)


class TimeError(ValueError):
    """What stands there is no time, or could be more than one; the text is public."""


class ClockUnset(TimeError):  # noqa: N818 - the reading may be right; only its clock is not
    """A time before 2001 or from 2100 on: the device's clock was never set."""


def time_reader(kind: str, zone: str | None = None) -> TimeReader:
    """Return the reader of one kind of time.

    Args:
        kind: "auto" (ISO 8601 text, or a number: seconds below 10**11, else ms), "s", "ms", "iso", "dsmr"
            ("240914115100S"), "cosem" (12 octets, or their hex), or a strptime pattern.
        zone: the IANA zone of times that do not say their offset.

    Raises:
        ValueError: no such kind or zone; the text says what to write.

    """
    place = _zone(zone)
    read = _pattern(kind, place) if "%" in kind else _kind(kind, place)

    def checked(value: object) -> int:
        moment = read(value)
        if not _FIRST_MS <= moment < _LAST_MS:
            raise ClockUnset("a clock that was never set")
        return moment

    return checked


def _kind(kind: str, zone: ZoneInfo | None) -> TimeReader:
    if kind not in _KINDS:
        raise ValueError(
            f'no such kind of time: write one of {", ".join(_KINDS)}, or a pattern like "%d.%m.%Y %H:%M"'
        )
    return _KINDS[kind](zone)


def _zone(name: str | None) -> ZoneInfo | None:
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError('no such time zone: write a name like "Europe/Amsterdam"') from None


def _auto(zone: ZoneInfo | None) -> TimeReader:
    iso = _iso(zone)

    def read(value: object) -> int:
        if type(value) is str:
            return iso(value)
        if type(value) is int or type(value) is float:
            return _ms(value, 1_000 if value < _SECONDS_BELOW else 1)
        raise TimeError("not a time")

    return read


def _counted(scale: int | Fraction) -> Callable[[ZoneInfo | None], TimeReader]:
    def read(value: object) -> int:
        if type(value) is int or type(value) is float:
            return _ms(value, scale)
        if type(value) is not str:
            raise TimeError("not a time")
        try:
            return _ms(number_of(value), scale)
        except ValueError:
            raise TimeError("not a time as a number") from None

    return lambda _: read


def _ms(value: float | Fraction, scale: int | Fraction) -> int:
    """Return a number in ms; the comparison also refuses NaN."""
    if not 0 <= value * min(scale, 1) <= _MAX_TIME_MS:
        raise TimeError("not a time as a number")
    return round(value * scale)


def _iso(zone: ZoneInfo | None) -> TimeReader:
    return _of_texts(lambda text: _iso_ms(text, zone))


def _iso_ms(text: str, zone: ZoneInfo | None) -> int:
    # A date alone names a day, not a moment.
    if len(text) <= _LONGEST_DATE:
        raise TimeError("not an ISO 8601 time")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise TimeError("not an ISO 8601 time") from None
    return _utc_ms(moment, zone)


def _dsmr(zone: ZoneInfo | None) -> TimeReader:
    return _of_texts(lambda text: _dsmr_ms(text, zone))


def _dsmr_ms(text: str, zone: ZoneInfo | None) -> int:
    found = _DSMR.fullmatch(text)
    if found is None:
        raise TimeError("not a DSMR time")
    digits, flag = found.groups()
    century = "20" if int(digits[:2]) < _CENTURY else "19"
    try:
        moment = datetime.strptime(century + digits, "%Y%m%d%H%M%S")  # noqa: DTZ007 - the offset follows
    except ValueError:
        raise TimeError("not a DSMR time") from None
    return _flagged_ms(moment, zone, summer=flag == "S") if flag else _utc_ms(moment, zone)


def _flagged_ms(moment: datetime, zone: ZoneInfo | None, *, summer: bool) -> int:
    """Return a local time whose flag says summer time: fixed offsets, as some meters never leave winter."""
    standard = _standard_offset(moment, zone) if zone else _HOUR
    return _utc_ms(moment.replace(tzinfo=timezone(standard + _HOUR if summer else standard)), None)


def _standard_offset(moment: datetime, zone: ZoneInfo) -> timedelta:
    # The smaller of January's and July's: what a zone calls summer time is not the same everywhere.
    offsets = [datetime(moment.year, month, 1, tzinfo=zone).utcoffset() for month in (1, 7)]
    return min(offset for offset in offsets if offset is not None)


def _cosem(zone: ZoneInfo | None) -> TimeReader:
    def read(value: object) -> int:
        octets = value if type(value) is bytes else b""
        if type(value) is str and len(value) == 2 * _COSEM_LENGTH:
            octets = _from_hex(value)
        if len(octets) != _COSEM_LENGTH:
            raise TimeError("not a COSEM clock")
        return _cosem_ms(octets, zone)

    return read


def _from_hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""


def _cosem_ms(octets: bytes, zone: ZoneInfo | None) -> int:
    """Return the date-time of 12 octets [IEC 62056-6-2, 4.1.6.1]; the deviation is UTC less local time."""
    year, month, day = int.from_bytes(octets[:2]), octets[2], octets[3]
    hour, minute, second, hundredths = octets[5:9]
    micro = 0 if hundredths == _UNSPECIFIED else hundredths * 10_000
    try:
        moment = datetime(year, month, day, hour, minute, second, micro)  # noqa: DTZ001 - the offset follows
    except ValueError:
        raise TimeError("a COSEM clock with unspecified or wrong fields") from None
    deviation, status = octets[9:11], octets[11]
    if int.from_bytes(deviation) != _NO_DEVIATION:
        return _utc_ms(moment.replace(tzinfo=_offset(-int.from_bytes(deviation, signed=True))), None)
    if zone is None:
        raise TimeError("a COSEM clock without its deviation, and no zone is declared")
    if status == _UNSPECIFIED:
        return _utc_ms(moment, zone)
    return _flagged_ms(moment, zone, summer=bool(status & _SUMMER))


def _offset(minutes: int) -> tzinfo:
    if abs(minutes) > _FARTHEST_MINUTES:
        raise TimeError("a COSEM clock with a deviation that no place has")
    return timezone(timedelta(minutes=minutes))


def _pattern(pattern: str, zone: ZoneInfo | None) -> TimeReader:
    remedy = 'a time pattern names date and time: write one like "%d.%m.%Y %H:%M:%S"'
    try:
        sample = datetime.strptime(_SAMPLE.strftime(pattern), pattern)  # noqa: DTZ007 - checked below
    except (ValueError, re.error):
        raise ValueError(remedy) from None
    if sample.replace(tzinfo=UTC) != _SAMPLE:
        raise ValueError(remedy)
    if sample.tzinfo is None and zone is None:
        raise ValueError(
            'a time pattern without "%z" needs a time zone: write zone = "Europe/Amsterdam" or so'
        )
    return _of_texts(lambda text: _pattern_ms(text, pattern, zone))


def _pattern_ms(text: str, pattern: str, zone: ZoneInfo | None) -> int:
    try:
        moment = datetime.strptime(text, pattern)  # noqa: DTZ007 - a zone is declared
    except ValueError:
        raise TimeError("a time that does not fit its pattern") from None
    return _utc_ms(moment, zone)


def _of_texts(read: Callable[[str], int]) -> TimeReader:
    """Return a reader that remembers: thousands of meters write the same few moments."""
    remembered = lru_cache(maxsize=4_096)(read)

    def reader(value: object) -> int:
        if type(value) is not str:
            raise TimeError("not a time as a text")
        # What a meter writes stays in the cache: nothing long.
        return remembered(value) if len(value) <= _LONGEST_CACHED else read(value)

    return reader


def _utc_ms(moment: datetime, zone: ZoneInfo | None) -> int:
    if moment.tzinfo is None:
        moment = _placed(moment, zone)
    return (moment - _EPOCH) // _MILLISECOND


def _placed(moment: datetime, zone: ZoneInfo | None) -> datetime:
    if zone is None:
        raise TimeError("a time without an offset, and no zone is declared")
    early, late = (moment.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if early.utcoffset() != late.utcoffset():
        raise TimeError("a local time that comes twice or never")
    return early


_KINDS: dict[str, Callable[[ZoneInfo | None], TimeReader]] = {
    "auto": _auto,
    "s": _counted(1_000),
    "ms": _counted(1),
    "us": _counted(Fraction(1, 1_000)),
    "ns": _counted(Fraction(1, 1_000_000)),
    "iso": _iso,
    "dsmr": _dsmr,
    "cosem": _cosem,
}
