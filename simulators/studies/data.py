"""Where a study finds its data: a recorded data set in a folder, or else what is simulated in its place.

A folder holds one folder per data set (``sgsc50/sgsc50_….csv.xz``), or the files themselves.
"""

from __future__ import annotations

import csv
import gzip
import lzma
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import numpy.typing as npt

from gateway.privacy import IntArray
from simulators.households import Households
from simulators.studies.study import Settings

SGSC, UKDALE, IDEAL, TRIPS, SURVEY = "sgsc50_", "ukdale_house2_", "ideal_house65_", "nyc_yellow_", "responses"
DATASETS = (SGSC, UKDALE, IDEAL, TRIPS, SURVEY)
"""How the file names of the data sets begin that studies look for."""

SLOTS_PER_DAY = 48
_OPENERS: dict[str, Callable[..., IO[str]]] = {".xz": lzma.open, ".gz": gzip.open}
_START = date(2012, 7, 1)  # of the recorded year, and of the simulated one beside it
_DAYS = 365
_SIMULATED = 40
_COMPLETE = 0.95
_WH_PER_WATT_MINUTE = 60
_MWH_PER_WH = 1_000


class Homes(NamedTuple):
    """Half-hourly energy of homes.

    Attributes:
        energy_mwh: (homes, days · 48) energy of each half hour (mWh).
        source: what they are, in words.

    """

    energy_mwh: IntArray
    source: str

    @property
    def daily_mwh(self) -> IntArray:
        """(homes, days) energy of each day (mWh)."""
        daily: IntArray = self.energy_mwh.reshape(len(self.energy_mwh), -1, SLOTS_PER_DAY).sum(axis=2)
        return daily


def find(folder: Path | None, dataset: str) -> Path | None:
    """Return the first file of a data set, by the beginning of its name; None if there is no folder or none.

    It may lie in the folder or in one of the folders in it.
    """
    if folder is None:
        return None
    found = [*folder.glob(f"{dataset}*"), *folder.glob(f"*/{dataset}*")]
    return next((path for path in sorted(found) if path.is_file()), None)


def stand_in(settings: Settings, dataset: str, what: str = "the simulated fleet") -> str:
    """Say what stands in for a data set, and why."""
    name = dataset.rstrip("_")
    if settings.data is None:
        return f"{what} (no folder with {name} was given)"
    return f"{what} ({name} is not in the folder given)"


@contextmanager
def reading(path: Path) -> Iterator[IO[str]]:
    """Open a file of data, packed with xz or gzip or not, and say which file it is if it cannot be understood.

    Raises:
        OSError: it cannot be opened.
        ValueError: what is done with it meanwhile fails, since it is damaged or another file.

    """
    try:
        with _OPENERS.get(path.suffix, open)(path, "rt", encoding="utf-8", newline="") as file:
            yield file
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile, ValueError, LookupError, TypeError) as fault:
        raise ValueError(
            f"{path}: damaged, or not the data set of that name: {fault or 'it ends early'}"
        ) from fault


def columns_of(file: IO[str], names: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return (n, names) the numbers in these columns of a CSV with a header; NaN where there is none.

    Raises:
        ValueError: there is no row, a row lacks a column, or a number cannot be read.

    """
    try:
        rows = [[_number(row[name]) for name in names] for row in csv.DictReader(file)]
    except (KeyError, TypeError) as missing:
        raise ValueError(f"every row needs {', '.join(names)}") from missing
    if not rows:
        raise ValueError("no row")
    return np.array(rows, np.float64)


def _number(text: str) -> float:
    return float("nan") if text in {"", "NA", "NaN"} else float(text)


def half_hourly_homes(settings: Settings, days: int = _DAYS) -> Homes:
    """Return the homes of ``sgsc50`` that are recorded for 95 % of the year or more, or simulated ones.

    A half hour that was not recorded takes that home's mean of the same half hour of the day.

    Args:
        settings: the folder; the seed of the simulated homes.
        days: how many, from 1 July 2012.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not a table of energies.

    """
    path = find(settings.data, SGSC)
    if path is None:
        source = f"{stand_in(settings, SGSC)}, {_SIMULATED} homes, {days} days, seed {settings.seed}"
        return Homes(_simulated(settings.seed, days), source)
    homes = _recorded(path)[:, : days * SLOTS_PER_DAY]
    source = f"sgsc50 (Smart Grid, Smart City trial, New South Wales), {len(homes)} homes, {days} days"
    return Homes(homes, source)


def _recorded(path: Path) -> IntArray:
    with reading(path) as file:
        columns = len(file.readline().split(","))
        table = np.genfromtxt(file, delimiter=",", usecols=range(1, columns), ndmin=2).T
        kept = table[np.isfinite(table).mean(axis=1) >= _COMPLETE]
        if not kept.size:
            raise ValueError("no column of numbers is nearly complete")
        by_time_of_day = kept.reshape(len(kept), -1, SLOTS_PER_DAY)
    filled = np.where(np.isfinite(by_time_of_day), by_time_of_day, _usual(by_time_of_day))
    energy_mwh: IntArray = np.rint(filled.reshape(len(kept), -1) * _MWH_PER_WH).astype(np.int64)
    return energy_mwh


def _usual(energy: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    usual: npt.NDArray[np.float64] = np.nanmean(energy, axis=1, keepdims=True)
    return usual


def _simulated(seed: int, days: int) -> IntArray:
    fleet = Households.draw(_SIMULATED, seed)
    painted = [fleet.power_w(_START + timedelta(days=day)) for day in range(days)]
    watt_minutes = np.concatenate(painted, axis=1, dtype=np.int64).reshape(_SIMULATED, -1, 30).sum(axis=2)
    mwh: IntArray = watt_minutes * _MWH_PER_WH // _WH_PER_WATT_MINUTE
    return mwh
