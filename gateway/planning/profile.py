"""A public load profile: what codebooks are fitted to and tried on."""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from gateway.privacy import MISSING, IntArray
from gateway.quantities import MAX_POWER_MW

_OPENERS: dict[str, Callable[..., IO[str]]] = {".xz": lzma.open, ".gz": gzip.open}
_MS_PER_HOUR = 3_600_000
_TIME_AND_A_HOME = 2
_MW_PER = {"Wh": 1_000, "kWh": 1_000_000}


class PlanError(Exception):
    """A profile that cannot be used, or a wish that no codebook fulfils."""


@dataclass(frozen=True, eq=False)
class Profile:
    """A public load profile.

    Attributes:
        power: (T, H) mean power (mW) per slot and home; ``MISSING`` where nothing was recorded.
        slot_ms: the length of a slot.

    """

    power: IntArray
    slot_ms: int

    def halves(self) -> tuple[Profile, Profile]:
        """Return what fits codebooks and what they are tried on: other homes, or else a later time."""
        slots, homes = self.power.shape
        if homes > 1:
            return Profile(self.power[:, : homes // 2], self.slot_ms), Profile(
                self.power[:, homes // 2 :], self.slot_ms
            )
        return Profile(self.power[: slots // 2], self.slot_ms), Profile(
            self.power[slots // 2 :], self.slot_ms
        )


def read_profile(path: Path, unit: str, interval_ms: int) -> Profile:
    """Return a profile from a CSV file, which may be packed by xz or gzip.

    The first line names the columns, the first column the time; the others are homes, with the energy of one
    interval in each line, empty where it was not recorded.

    Raises:
        PlanError: it cannot be read, or holds no number.

    """
    opener = _OPENERS.get(path.suffix, open)
    wanted = "give a CSV with a header, a time column, and a column of energies per home"
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            columns, lines = len(file.readline().split(",")), file.readlines()
        if columns < _TIME_AND_A_HOME or not lines:
            raise PlanError(f"{path}: no column of energies, or no line; {wanted}")
        table = np.genfromtxt(lines, delimiter=",", usecols=range(1, columns), ndmin=2)
    except (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error) as error:
        raise PlanError(f"{path}: {error}; {wanted}") from error
    known = np.isfinite(table)
    scaled = np.where(known, table, 0) * (_MW_PER[unit] * _MS_PER_HOUR / interval_ms)
    if not known.any() or np.abs(scaled).max() > MAX_POWER_MW:
        raise PlanError(f"{path}: no number in it, or one beyond 1 GW; {wanted}")
    return Profile(np.where(known, np.rint(scaled).astype(np.int64), MISSING), interval_ms)
