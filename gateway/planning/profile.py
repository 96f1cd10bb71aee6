"""A public load profile: what codebooks are fitted to and tried on."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from gateway.privacy import MISSING, IntArray

_OPENERS: dict[str, Callable[..., IO[str]]] = {".xz": lzma.open, ".gz": gzip.open}
_MS_PER_HOUR = 3_600_000
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
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            columns = len(file.readline().split(","))
            table = np.genfromtxt(file, delimiter=",", usecols=range(1, columns), ndmin=2)
    except (OSError, ValueError, lzma.LZMAError) as error:
        raise PlanError(
            f"{path}: {error}; give a CSV with a header, a time column, and a column per home"
        ) from error
    if not np.isfinite(table).any():
        raise PlanError(f"{path}: no number in it; give a CSV with a column of energies per home")
    scaled = np.nan_to_num(table) * (_MW_PER[unit] * _MS_PER_HOUR / interval_ms)
    return Profile(np.where(np.isfinite(table), np.rint(scaled).astype(np.int64), MISSING), interval_ms)
