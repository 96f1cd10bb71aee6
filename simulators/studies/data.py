"""Where a study finds its homes: a recorded data set in a folder, or else the simulated fleet.

A folder holds one folder per data set (``sgsc50/sgsc50_….csv.xz``), or the files themselves.
"""

from __future__ import annotations

import lzma
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gateway.privacy import IntArray
from simulators.households import Households
from simulators.studies.study import Settings

SLOTS_PER_DAY = 48
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


def stand_in(settings: Settings, dataset: str) -> str:
    """Say why the simulated fleet stands in for a data set."""
    if settings.data is None:
        return f"the simulated fleet (no folder with {dataset} was given)"
    return f"the simulated fleet ({dataset} is not in the folder given)"


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
    path = find(settings.data, "sgsc50_")
    if path is None:
        source = f"{stand_in(settings, 'sgsc50')}, {_SIMULATED} homes, {days} days, seed {settings.seed}"
        return Homes(_simulated(settings.seed, days), source)
    homes = _recorded(path)[:, : days * SLOTS_PER_DAY]
    source = f"sgsc50 (Smart Grid, Smart City trial, New South Wales), {len(homes)} homes, {days} days"
    return Homes(homes, source)


def _recorded(path: Path) -> IntArray:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        columns = len(file.readline().split(","))
        table = np.genfromtxt(file, delimiter=",", usecols=range(1, columns), ndmin=2).T
    kept = table[np.isfinite(table).mean(axis=1) >= _COMPLETE]
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
