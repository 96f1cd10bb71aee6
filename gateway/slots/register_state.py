"""What registers need to know across slots and restarts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from gateway.privacy import MISSING, BoolArray, IntArray

PENDING = 2
"""How many readings of one meter may wait to be confirmed when a slot closes."""

_COLUMNS = 6
_FIELDS = 3


@dataclass(frozen=True, slots=True, eq=False)
class RegisterState:
    """Parallel arrays of one entry per meter of the roll (idle where she has no register).

    Attributes:
        time_ms: of the latest reading that is believed, before the next slot; MISSING where there is none yet.
        value_mwh: what it said.
        serial: the latest that was told in its chain; 0 where none was.
        lower_ms: when the register stood lower than ``value_mwh`` for the last time, or was first seen.
        assigned_ms: up to when energy is assigned to slots; never before ``time_ms``.
        assigned_mwh: what the register stood at then; never less than ``value_mwh``.
        pending: (2, 3, m) time, value and serial of readings that wait to be confirmed; MISSING where none does.

    """

    time_ms: IntArray
    value_mwh: IntArray
    serial: IntArray
    lower_ms: IntArray
    assigned_ms: IntArray
    assigned_mwh: IntArray
    pending: IntArray

    @classmethod
    def initial(cls, meters: int) -> Self:
        """Return the state of so many meters that said nothing yet."""
        return cls.of(np.full((_COLUMNS + PENDING * _FIELDS, meters), MISSING, np.int64))

    @classmethod
    def of(cls, columns: IntArray) -> Self:
        """Return the state of packed columns; they are copied."""
        table = np.array(columns, np.int64)
        pending = table[_COLUMNS:].reshape(PENDING, _FIELDS, -1)
        return cls(table[0], table[1], table[2], table[3], table[4], table[5], pending)

    def packed(self) -> IntArray:
        """Return (12, m) all of it, to be stored; a meter is a column."""
        single = (
            self.time_ms,
            self.value_mwh,
            self.serial,
            self.lower_ms,
            self.assigned_ms,
            self.assigned_mwh,
        )
        return np.concatenate((np.stack(single), self.pending.reshape(PENDING * _FIELDS, -1)))

    def copy(self) -> Self:
        """Return the same in arrays of its own."""
        return type(self).of(self.packed())

    @property
    def begun(self) -> BoolArray:
        """(m,) whether a reading is believed already."""
        begun: BoolArray = self.time_ms != MISSING
        return begun
