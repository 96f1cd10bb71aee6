"""Readings as integer arrays, and the reasons why a message is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

import numpy as np

from gateway.privacy import BoolArray, IntArray

MAX_ENERGY_MWH = 10**12
"""1 GWh: beyond it a number is no reading of a household, and sums could leave 64 bits."""


class Reason(StrEnum):
    """Why a message, or a reading in it, was kept out."""

    UNKNOWN_TOPIC = "unknown_topic"
    UNKNOWN_HOUSEHOLD = "unknown_household"
    TOO_LARGE = "too_large"
    UNDECODABLE = "undecodable"
    MISSING_FIELD = "missing_field"
    WRONG_TYPE = "wrong_type"
    UNDECLARED_UNIT = "undeclared_unit"
    IMPLAUSIBLE = "implausible"
    BAD_TIME = "bad_time"
    MISALIGNED = "misaligned"
    FUTURE = "future"
    LATE = "late"
    STALE_RETAINED = "stale_retained"
    REPEATED = "repeated"
    QUOTA = "quota"


class RejectedError(Exception):
    """A message that is no reading; it carries the reason and nothing of the message."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


def occurrences(household: IntArray) -> IntArray:
    """Return for each reading how many of the same household stand before it in the batch."""
    order = np.argsort(household, kind="stable")
    grouped = household[order]
    first = np.searchsorted(grouped, grouped, side="left")
    before = np.empty(len(household), np.int64)
    before[order] = np.arange(len(household)) - first
    return before


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """A batch of interval energies: parallel arrays of one entry per reading.

    Attributes:
        household: position on the roll.
        start_ms: the interval's start, UTC.
        energy_mwh: the energy in it, mWh.
        retained: whether the broker had kept the message.

    """

    household: IntArray
    start_ms: IntArray
    energy_mwh: IntArray
    retained: BoolArray

    @classmethod
    def of(cls, rows: Sequence[tuple[int, int, int, bool]]) -> Self:
        """Return the batch of (household, start, energy, retained) rows."""
        table = np.array(rows, np.int64).reshape(-1, 4)
        return cls(table[:, 0], table[:, 1], table[:, 2], table[:, 3].astype(np.bool_))

    @classmethod
    def joined(cls, batches: Sequence[Self]) -> Self:
        """Return the batches as one, in order."""
        if not batches:
            return cls.of(())
        return cls(
            np.concatenate([batch.household for batch in batches]),
            np.concatenate([batch.start_ms for batch in batches]),
            np.concatenate([batch.energy_mwh for batch in batches]),
            np.concatenate([batch.retained for batch in batches]),
        )

    def __len__(self) -> int:
        return len(self.household)

    def where(self, chosen: BoolArray | IntArray) -> Self:
        """Return the chosen readings."""
        return type(self)(
            self.household[chosen], self.start_ms[chosen], self.energy_mwh[chosen], self.retained[chosen]
        )
