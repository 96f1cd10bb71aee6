"""Consumption that an attacker is assumed to know: a CSV of a time and a column of energies per home."""

from __future__ import annotations

import csv
import gzip
import lzma
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import numpy as np

from gateway.privacy import IntArray
from simulators.attackers.attack import AttackError
from simulators.attackers.recording import FloatArray

_OPENERS: dict[str, Callable[..., IO[str]]] = {".xz": lzma.open, ".gz": gzip.open}
_WH_PER = {"Wh": 1.0, "kWh": 1_000.0}
_WATT = "W"
_MS_PER_MINUTE, _MINUTES_PER_HOUR = 60_000, 60
UNITS = (*_WH_PER, _WATT)
"""What the numbers may be in."""
_FORM = "give a CSV with a header, a time column, and a column of energies per home"


@dataclass(frozen=True, eq=False)
class Known:
    """Readings of homes.

    Attributes:
        homes: their names, as in the header.
        start_ms: (t,) beginnings of the intervals (ms UTC), increasing.
        minutes: the length of an interval.
        power_w: (homes, t) mean power (W); NaN where nothing is known.

    """

    homes: tuple[str, ...]
    start_ms: IntArray
    minutes: float
    power_w: FloatArray


def read_known(path: Path, unit: str) -> Known:
    """Return what a file says; times without a zone are UTC, and stamp the beginning of an interval.

    Raises:
        AttackError: it cannot be read, or is not such a file.

    """
    if unit not in UNITS:
        raise AttackError(f"unit {unit!r}: write Wh or kWh, or W for mean power")
    try:
        with _OPENERS.get(path.suffix, open)(path, "rt", encoding="utf-8", newline="") as file:
            header, *lines = [row for row in csv.reader(file) if row]
            start_ms = np.array([_ms(row[0]) for row in lines], np.int64)
            energy = np.array([[float(cell or "nan") for cell in row[1:]] for row in lines], np.float64)
    except (OSError, EOFError, ValueError, lzma.LZMAError) as error:
        raise AttackError(f"{path}: {error}; {_FORM}") from error
    if energy.ndim != 2 or energy.shape[1] != len(header) - 1 or len(lines) < 2:  # noqa: PLR2004 - a table
        raise AttackError(f"{path}: no column of energies, or no lines; {_FORM}")
    steps = np.diff(start_ms)
    if steps.min() <= 0:
        raise AttackError(f"{path}: its times do not increase; {_FORM}")
    minutes = float(steps.min()) / _MS_PER_MINUTE
    to_watts = 1.0 if unit == _WATT else _WH_PER[unit] * _MINUTES_PER_HOUR / minutes
    return Known(tuple(header[1:]), start_ms, minutes, energy.T * to_watts)


def _ms(text: str) -> int:
    time = datetime.fromisoformat(text)
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1_000)
