"""Readers of recorded loads: CSV files of several layouts, wide, long, and those of public data sets."""

from __future__ import annotations

import csv
import gzip
import lzma
import math
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from enum import StrEnum
from pathlib import Path
from typing import IO, Literal, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from gateway.privacy import MISSING, IntArray
from simulators.recording import Recording, utc_ms_of

_OPENERS: dict[str, Callable[..., IO[str]]] = {".xz": lzma.open, ".gz": gzip.open}
_MILLI = {"Wh": 1e3, "kWh": 1e6, "W": 1e3, "kW": 1e6}
_MOST_MILLI = 10**12
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")
_METER_COLUMNS = {"meter", "household", "home", "id"}
_CITYLEARN_START = datetime(2016, 7, 31, 23)  # noqa: DTZ001 - local time; its zone is applied like any other's
_CITYLEARN_KEYS = ["month", "hour_ending", "day_type"]


class Unit(StrEnum):
    """Of a file's values: energy of an interval, or mean power in it."""

    WH = "Wh"
    KWH = "kWh"
    W = "W"
    KW = "kW"


class Layout(StrEnum):
    """How a file's columns are to be understood."""

    WIDE = "wide"
    """A time, and a column per home."""
    LONG = "long"
    """A time, a meter, a value."""
    SGSC50 = "sgsc50"
    """Wide: half hours in Wh, on a fixed UTC+10."""
    CITYLEARN17 = "citylearn17"
    """Month, hour ending and type of day, then a column per home: hours in kWh from August 2016, fixed UTC-8."""
    NILM_1MIN = "nilm_1min"
    """A time, and the column Aggregate: one home's minutes in W, UTC; 0 stands for a gap."""


_DEFAULTS: dict[Layout, tuple[Unit, str | None]] = {
    Layout.WIDE: (Unit.WH, None),
    Layout.LONG: (Unit.WH, None),
    Layout.SGSC50: (Unit.WH, "+10:00"),
    Layout.CITYLEARN17: (Unit.KWH, "-08:00"),
    Layout.NILM_1MIN: (Unit.W, "UTC"),
}


@dataclass(frozen=True)
class Form:
    """How to read a file; what is None is found out, or is the layout's.

    Attributes:
        layout: of the columns.
        unit: of the values.
        interval_ms: how long an interval is; None: the most frequent step between times.
        zone: of times without an offset: "Australia/Sydney" or "+10:00".
        stamp: which end of the interval a time says.

    """

    layout: Layout | None = None
    unit: Unit | None = None
    interval_ms: int | None = None
    zone: str | None = None
    stamp: Literal["start", "end"] = "start"


class _Row(NamedTuple):
    """A line of a file: its number, its time, and the texts of all homes' values."""

    line: int
    time: datetime
    cells: Sequence[str]


def read_recording(path: Path, form: Form) -> Recording:
    """Return the content of a CSV file with a header, which may be packed by xz or gzip.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not what its layout says; with the line, never the value.

    """
    opener = _OPENERS.get(path.suffix, open)
    try:
        with opener(path, "rt", encoding="utf-8", newline="") as file:
            header = file.readline()
            file.seek(0)
            separator = ";" if header.count(";") > header.count(",") else ","
            return _read(csv.reader(file, delimiter=separator), path, form)
    except (lzma.LZMAError, zlib.error, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path}: not a CSV file: {error}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def zone_of(text: str) -> tzinfo:
    """Return the zone of "Australia/Sydney" or "+10:00". ValueError: there is none of that name."""
    try:
        if text[:1] in {"+", "-"}:
            offset = datetime.fromisoformat(f"2000-01-01T00:00{text}").tzinfo
            assert offset is not None
            return offset
        return ZoneInfo(text)
    except (ValueError, ZoneInfoNotFoundError, OSError) as error:
        raise ValueError(f'no zone {text!r}: write one like "Australia/Sydney" or "+10:00"') from error


def layout_of(header: Sequence[str], path: Path) -> Layout:
    """Tell the layout from the header, and where it could be any wide file from the file's name."""
    if list(header[:3]) == _CITYLEARN_KEYS:
        return Layout.CITYLEARN17
    if "Aggregate" in header:
        return Layout.NILM_1MIN
    if len(header) == 3 and header[1].strip().lower() in _METER_COLUMNS:  # noqa: PLR2004 - time, meter, value
        return Layout.LONG
    return Layout.SGSC50 if path.name.startswith("sgsc50_") else Layout.WIDE


def _read(lines: Iterable[list[str]], path: Path, form: Form) -> Recording:
    numbered = ((number, line) for number, line in enumerate(lines, start=1) if line)
    _, header = next(numbered, (0, []))
    layout = form.layout or layout_of(header, path)
    unit, zone = _DEFAULTS[layout]
    zone = form.zone or zone
    place = None if zone is None else zone_of(zone)
    scale = _MILLI[form.unit or unit]
    if layout is Layout.LONG:
        homes, times, milli = _long(numbered, place, scale)
    else:
        homes, rows = _rows(layout, header, numbered, path)
        gap = 0.0 if layout is Layout.NILM_1MIN else math.nan
        times, milli = _wide(rows, len(homes), place, scale, gap)
    _check_names(homes)
    interval = form.interval_ms or _interval_ms(times)
    begins = times - interval if form.stamp == "end" else times
    return Recording(begins, homes, milli, (form.unit or unit) in {Unit.W, Unit.KW}, interval, place)


def _rows(
    layout: Layout, header: Sequence[str], lines: Iterator[tuple[int, list[str]]], path: Path
) -> tuple[tuple[str, ...], Iterator[_Row]]:
    """Return the homes, and the lines with their times, of all layouts but the long one."""
    if layout is Layout.CITYLEARN17:
        return tuple(header[3:]), _hours(lines)
    if layout is Layout.NILM_1MIN:
        if "Aggregate" not in header:
            raise ValueError("no column Aggregate")
        column = header.index("Aggregate")
        return (path.name.partition(".")[0],), (
            _Row(number, _time(line[0], number), line[column : column + 1]) for number, line in lines
        )
    return tuple(header[1:]), (_Row(number, _time(line[0], number), line[1:]) for number, line in lines)


def _hours(lines: Iterator[tuple[int, list[str]]]) -> Iterator[_Row]:
    for hour, (number, line) in enumerate(lines):
        time = _CITYLEARN_START + timedelta(hours=hour)
        if line[:2] != [str(time.month), str(time.hour + 1)]:
            raise ValueError(f"line {number}: not the hour that follows the one before")
        yield _Row(number, time, line[3:])


def _wide(
    rows: Iterable[_Row], homes: int, zone: tzinfo | None, scale: float, gap: float
) -> tuple[IntArray, IntArray]:
    times: list[int] = []
    values: list[list[float]] = []
    for line, time, cells in rows:
        if len(cells) != homes:
            raise ValueError(f"line {line}: {len(cells)} values for {homes} homes")
        times.append(_following(time, zone, times[-1] if times else None, line))
        values.append([_number(cell, line) for cell in cells])
    table = np.array(values, np.float64).reshape(len(times), homes)
    return np.array(times, np.int64), _milli(np.where(table == gap, np.nan, table), scale)


def _long(
    lines: Iterable[tuple[int, list[str]]], zone: tzinfo | None, scale: float
) -> tuple[tuple[str, ...], IntArray, IntArray]:
    homes: dict[str, int] = {}
    latest: dict[str, int] = {}
    entries: list[tuple[int, int, float]] = []
    for number, line in lines:
        if len(line) != 3:  # noqa: PLR2004 - time, meter, value
            raise ValueError(f"line {number}: not a time, a meter and a value")
        time, meter, value = line
        latest[meter] = _following(_time(time, number), zone, latest.get(meter), number)
        entries.append((latest[meter], homes.setdefault(meter, len(homes)), _number(value, number)))
    times, row = np.unique(np.array([entry[0] for entry in entries], np.int64), return_inverse=True)
    table = np.full((len(times), len(homes)), np.nan)
    table[row, [entry[1] for entry in entries]] = [entry[2] for entry in entries]
    return tuple(homes), times, _milli(table, scale)


def _time(text: str, line: int) -> datetime:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"line {line}: not an ISO 8601 time") from None


def _following(time: datetime, zone: tzinfo | None, before: int | None, line: int) -> int:
    """Return ms UTC of a time that lies after the one before; of an hour that a zone has twice, the second."""
    for fold in (0, 1):
        found = utc_ms_of(time.replace(fold=fold), zone)
        if before is None or found > before:
            return found
    raise ValueError(f"line {line}: its time is not after the one before")


def _number(cell: str, line: int) -> float:
    try:
        value = float(cell) if cell.strip() else math.nan
    except ValueError:
        raise ValueError(f"line {line}: a value is not a number") from None
    if math.isinf(value):
        raise ValueError(f"line {line}: a value is not finite")
    return value


def _milli(table: np.ndarray[tuple[int, int], np.dtype[np.float64]], scale: float) -> IntArray:
    known = ~np.isnan(table)
    scaled = np.rint(np.where(known, table, 0) * scale)
    if np.abs(scaled).max(initial=0) > _MOST_MILLI:
        raise ValueError("a value beyond 1 GWh or 1 GW: see --unit")
    return np.where(known, scaled.astype(np.int64), MISSING)


def _interval_ms(times: IntArray) -> int:
    steps, often = np.unique(np.diff(times), return_counts=True)
    if not len(steps):
        raise ValueError("fewer than two times: say how long an interval is by --interval")
    return int(steps[often.argmax()])


def _check_names(homes: Sequence[str]) -> None:
    for place, name in enumerate(homes, start=1):
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"home {place}'s name does not fit into an MQTT topic: letters, digits and . _ : @ -"
            )
    if len(set(homes)) < len(homes):
        raise ValueError("two homes have the same name")
