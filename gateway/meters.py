"""The meters of a roll: whose they are, and how what they say becomes energy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Self

import numpy as np

from gateway.privacy import BoolArray, IntArray


class Quantity(IntEnum):
    """What a meter says; the number stands in the journal."""

    INTERVAL = 0
    POWER = 1
    REGISTER = 2


@dataclass(frozen=True, slots=True, eq=False)
class Meters:
    """Parallel arrays of one entry per meter, in the roll's order.

    Attributes:
        ids: as the meters name themselves.
        household: (m,) position of her household on the roll.
        quantity: (m,) codes of :class:`Quantity`.
        span_ms: (m,) the length of an interval; 0 where a reading speaks of a moment.
        gap_ms: (m,) two readings further apart say nothing certain about the time between.
        limit_mw: (m,) the most power that the connection can carry.
        modulus_mwh: (m,) where a register starts again from 0; 0 where it never does.
        spread: (m,) whether the energy of a gap is spread evenly over it; else it is missing.

    """

    ids: tuple[str, ...]
    household: IntArray
    quantity: IntArray
    span_ms: IntArray
    gap_ms: IntArray
    limit_mw: IntArray
    modulus_mwh: IntArray
    spread: BoolArray

    @classmethod
    def none(cls) -> Self:
        """Return the meters of a roll that has none: for releases that no readings lead to."""
        nothing = np.zeros(0, np.int64)
        return cls((), nothing, nothing, nothing, nothing, nothing, nothing, nothing.astype(np.bool_))

    def __len__(self) -> int:
        return len(self.ids)
