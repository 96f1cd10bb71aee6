"""What the gateway should say, worked out independently: plain integers, no code of the gateway."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil, log2

from service.watching import Message

RANGE_MW = (0, 14_500_000)
MIDNIGHT = 1_767_225_600
"""The first second of 2026: a border of every slot and window used here."""


@dataclass(frozen=True)
class Grid:
    """Slots of `length_s` seconds; slot 0 starts at `first_s` seconds since 1970."""

    length_s: int = 60
    first_s: int = MIDNIGHT

    @classmethod
    def running(cls, length_s: int) -> "Grid":
        """Return the grid whose slot 0 is the one that runs now."""
        return cls(length_s, int(time.time()) // length_s * length_s)

    def start(self, slot: int) -> str:
        """Return a slot's start as releases write it."""
        return datetime.fromtimestamp(self.first_s + slot * self.length_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def starts(self, first: int, stop: int) -> list[str]:
        """Return the starts of slots `first` to `stop`, without the last."""
        return [self.start(slot) for slot in range(first, stop)]

    def reading(self, household: str, slot: int, watts: int) -> Message:
        """Return the message of a meter that measured `watts` over a slot."""
        payload = json.dumps({"ts": self.start(slot), "energy_wh": self._mwh(watts) / 1_000})
        return Message(f"meters/{household}/reading", payload.encode())

    def sleep_into(self, slot: int, seconds: float = 0.0) -> None:
        """Sleep until `seconds` after the start of a slot."""
        time.sleep(max(0.0, self.first_s + slot * self.length_s + seconds - time.time()))

    def power_mw(self, watts: int) -> int:
        """Return the mean power that such a message says, in whole mWh of the slot."""
        return self._mwh(watts) * 3_600 // self.length_s

    def _mwh(self, watts: int) -> int:
        return round(watts * self.length_s / 3.6)


def symbol_of(power_mw: int, levels: int, low: int = RANGE_MW[0], high: int = RANGE_MW[1]) -> int:
    """Return which of `levels` equal cells over a range a power lies in, beyond it the outer one."""
    clamped = min(max(power_mw, low), high)
    return sum(1 for j in range(1, levels) if (clamped - low) * levels >= j * (high - low))


def group_symbol_of(powers_mw: Sequence[int], reach: int) -> int:
    """Return the cell of a sum of members with the default range, of whom each may reach `reach` cells."""
    clamped = [min(max(power, RANGE_MW[0]), RANGE_MW[1]) for power in powers_mw]
    span = RANGE_MW[1] * len(powers_mw)
    levels = max(reach, (reach - 1) * len(powers_mw))
    return symbol_of(sum(clamped), levels, 0, span)


def price_of(levels: int, reaches: Sequence[int] = ()) -> int:
    """Return the micro-bits that a slot of a household costs, with all her groups."""
    return ceil(1e6 * log2(levels + sum(reach - 1 for reach in reaches)))


def without_slot(payload: bytes) -> str:
    """Return a release without its slot: what remains must say no more than was charged."""
    fields = json.loads(payload)
    del fields["slot"]
    return json.dumps(fields)
