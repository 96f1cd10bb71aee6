"""Readings as integer arrays, and the reasons why a message is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Self

import numpy as np

from gateway.privacy import BoolArray, IntArray

MAX_REGISTER_MWH = 10**15
"""1 TWh: no register of a household ever stands there."""

MAX_POWER_MW = 10**10
"""10 MW: what a power sample may say at most, so that sums over a slot stay within 64 bits."""


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
    NOT_A_NUMBER = "not_a_number"
    SENTINEL = "sentinel"
    NO_METER = "no_meter"
    BIRTH_NEEDED = "birth_needed"
    GUARD = "guard"
    EMPTY = "empty"
    BAD_TIME = "bad_time"
    MISALIGNED = "misaligned"
    FUTURE = "future"
    LATE = "late"
    STALE_RETAINED = "stale_retained"
    REPEATED = "repeated"
    QUOTA = "quota"


IGNORED = frozenset({Reason.GUARD, Reason.EMPTY, Reason.MISSING_FIELD, Reason.UNKNOWN_TOPIC})
"""Messages that are not meant for us, rather than faulty."""


class RejectedError(Exception):
    """A message that is no reading; it carries the reason and nothing of the message."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


def occurrences(meter: IntArray) -> IntArray:
    """Return for each reading how many of the same meter stand before it in the batch."""
    order = np.argsort(meter, kind="stable")
    grouped = meter[order]
    first = np.searchsorted(grouped, grouped, side="left")
    before = np.empty(len(meter), np.int64)
    before[order] = np.arange(len(meter)) - first
    return before


class Row(NamedTuple):
    """One reading, as :class:`Readings` holds them."""

    meter: int
    time_ms: int
    value: int
    retained: bool = False
    serial: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """A batch of readings: parallel arrays of one entry per reading.

    Attributes:
        meter: position among the meters.
        time_ms: UTC; of an interval its start, else when the value held.
        value: the energy of an interval (mWh), the power (mW), or what the register stood at (mWh).
        retained: whether the broker had kept the message.
        serial: names the meter behind a register, where the message does; another one is another register.

    """

    meter: IntArray
    time_ms: IntArray
    value: IntArray
    retained: BoolArray
    serial: IntArray

    @classmethod
    def of(cls, rows: Sequence[tuple[int, int, int, bool, int]]) -> Self:
        """Return the batch of rows."""
        table = np.array(rows, np.int64).reshape(-1, len(Row._fields))
        return cls(table[:, 0], table[:, 1], table[:, 2], table[:, 3].astype(np.bool_), table[:, 4])

    @classmethod
    def joined(cls, batches: Sequence[Self]) -> Self:
        """Return the batches as one, in order."""
        if not batches:
            return cls.of(())
        return cls(
            np.concatenate([batch.meter for batch in batches]),
            np.concatenate([batch.time_ms for batch in batches]),
            np.concatenate([batch.value for batch in batches]),
            np.concatenate([batch.retained for batch in batches]),
            np.concatenate([batch.serial for batch in batches]),
        )

    def __len__(self) -> int:
        return len(self.meter)

    def where(self, chosen: BoolArray | IntArray) -> Self:
        """Return the chosen readings."""
        return type(self)(
            self.meter[chosen],
            self.time_ms[chosen],
            self.value[chosen],
            self.retained[chosen],
            self.serial[chosen],
        )
