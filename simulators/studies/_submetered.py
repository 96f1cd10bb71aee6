"""Homes whose appliances have meters of their own: recorded ones, or simulated ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gateway.privacy import BoolArray, IntArray
from simulators.households import DAY_MINUTES, Households
from simulators.studies.data import IDEAL, UKDALE, find, reading, stand_in
from simulators.studies.study import Settings

_FIRST_DAY = date(2026, 1, 5)
_TOP = 5
_BY_HAND = frozenset({"Kettle", "Microwave", "Shower", "kettle", "hob", "toaster"})
_RECORDED = {UKDALE: "UK-DALE house 2", IDEAL: "IDEAL home 65"}


class Submetered(NamedTuple):
    """A home minute by minute.

    Attributes:
        name: of the home.
        minute: (T,) minutes since 1970 by the home's clock.
        total_w: (T,) power of the home (W).
        known: (T,) whether that was recorded.
        appliances: (T,) the power of each appliance (W), by name.

    """

    name: str
    minute: IntArray
    total_w: IntArray
    known: BoolArray
    appliances: Mapping[str, IntArray]

    @property
    def day(self) -> IntArray:
        """(T,) days since 1970."""
        return self.minute // DAY_MINUTES

    def by_hand(self) -> tuple[str, ...]:
        """Return the appliances that run only when somebody has just switched them on, and soon end."""
        return tuple(name for name in self.appliances if name in _BY_HAND)

    def part(self, start: int, stop: int) -> Submetered:
        """Return the minutes from position ``start`` to before ``stop``."""
        cut = slice(start, stop)
        return Submetered(
            self.name,
            self.minute[cut],
            self.total_w[cut],
            self.known[cut],
            {name: power[cut] for name, power in self.appliances.items()},
        )


def submetered_homes(settings: Settings, days: int) -> list[Submetered]:
    """Return two homes: UK-DALE house 2 and IDEAL home 65, one minute apart, or simulated ones.

    They are recorded where the folder of data has both (it, or a folder in it); the quick form takes their
    first ``4 · days``. A home's power of 0 marks a minute that was not recorded.

    Args:
        settings: of the study.
        days: how many days of simulated homes, and of recorded ones in the quick form.

    Raises:
        OSError: a file cannot be read.
        ValueError: it is damaged.

    """
    found = {dataset: find(settings.data, dataset) for dataset in _RECORDED}
    homes = [_read(path, _RECORDED[dataset]) for dataset, path in found.items() if path is not None]
    if len(homes) < len(found):
        return simulated(settings.seed, days)
    return [home.part(0, 4 * days * DAY_MINUTES) for home in homes] if settings.quick else homes


def told(settings: Settings, homes: Sequence[Submetered]) -> str:
    """Say what homes these are: the recorded ones, or what stands in for them."""
    if homes[0].name in _RECORDED.values():
        return "recorded homes, minute by minute"
    missing = next(dataset for dataset in _RECORDED if find(settings.data, dataset) is None)
    return f"{stand_in(settings, missing)}, seed {settings.seed}"


def _read(path: Path, name: str) -> Submetered:
    with reading(path) as file:
        columns = file.readline().strip().split(",")
        rows = [line.rstrip().split(",") for line in file]
        minute = np.array([row[0] for row in rows], "datetime64[m]").astype(np.int64)
        power = np.array([row[1:] for row in rows]).astype(np.int64)
        total = power[:, 0]
    appliances = {column: power[:, i] for i, column in enumerate(columns[2:], start=1)}
    return Submetered(name, minute, total, total > 0, appliances)


def simulated(seed: int, days: int, count: int = 2) -> list[Submetered]:
    """Return simulated homes with a dishwasher and no electric heating or car, their five largest appliances.

    Args:
        seed: of the fleet.
        days: how many.
        count: how many homes.

    """
    fleet = Households.draw(40 * count, seed)
    chosen = np.flatnonzero(fleet.has_dishwasher & (fleet.heating_w == 0) & (fleet.charger_w == 0))[:count]
    dates = [_FIRST_DAY + timedelta(days=n) for n in range(days)]
    total = np.concatenate([fleet.power_w(day)[chosen] for day in dates], axis=1).astype(np.int64)
    drawn = [fleet.appliances_w(day) for day in dates]
    power = {
        name: np.concatenate([day[name][chosen] for day in drawn], axis=1).astype(np.int64)
        for name in drawn[0]
    }
    first = (_FIRST_DAY - date(1970, 1, 1)).days * DAY_MINUTES
    minute = np.arange(first, first + days * DAY_MINUTES, dtype=np.int64)
    return [
        Submetered(
            f"simulated home {fleet.ids[home]}",
            minute,
            total[row],
            np.ones(len(minute), np.bool_),
            _largest({name: series[row] for name, series in power.items()}),
        )
        for row, home in enumerate(chosen.tolist())
    ]


def _largest(power: Mapping[str, IntArray]) -> dict[str, IntArray]:
    """Return the five that use most, without lights and screens: no one appliance each."""
    single = {name: series for name, series in power.items() if name not in ("lights", "screens")}
    by_energy = sorted(single, key=lambda name: -int(single[name].sum()))
    return {name: single[name] for name in by_energy[:_TOP]}
