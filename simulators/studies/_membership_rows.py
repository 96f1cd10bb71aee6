"""The membership study's rows: what its tables, figures and findings are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

OBSERVED, CONNECTION = "largest reading", "connection, 14.5 kW"
DAILY, HALF_HOURLY = "daily", "half-hourly"
BUDGET_LEVELS = (2, 4, 8)
PAPER_POINTS = {4: 2.0, 8: 3.0}
"""n and ε (bits) for which the paper reports an advantage near zero."""


class Row(NamedTuple):
    """One adversary's result in one setting; a line of the study's tables."""

    series: str
    homes_in_group: int
    range: str
    reading: str
    k: int | None
    epsilon_bits: float | None
    cells: int | None
    days: int
    releases: int
    games: int
    adversary: str
    right: int
    advantage: float
    low: float
    high: float
    error_percent: float


def of(rows: Sequence[Row], **wanted: object) -> list[Row]:
    """Return the rows with these values, in order."""
    return [row for row in rows if all(getattr(row, name) == value for name, value in wanted.items())]


def bits_of(row: Row) -> float:
    """Return the bits of a budget: in the whole period for daily energy, a day for half hours."""
    bits = row.releases * (row.epsilon_bits or 0)
    return bits if row.series == DAILY else bits / row.days
