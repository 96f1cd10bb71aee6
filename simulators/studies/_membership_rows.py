"""The membership study's rows: what its tables, figures and findings are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

OBSERVED, CONNECTION = "largest reading", "connection, 14.5 kW"
DAILY, HALF_HOURLY = "daily", "half-hourly"
BUDGET_LEVELS = (2, 4, 8)
PAPER_POINTS = {4: 2.0, 8: 3.0}
"""n and ε (bits) for which the paper reports an advantage near zero."""
NEAR_ZERO = 0.1
"""An advantage that the study calls near zero: right in 55 of 100 games."""
NEAR, UNDECIDED, ABOVE = "near zero", "undecided", "above"


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
    hours: str
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


def strongest(rows: Sequence[Row]) -> Row:
    """Return the row of the adversary with the largest advantage."""
    return max(rows, key=lambda row: row.advantage)


def verdict(rows: Sequence[Row]) -> str:
    """Judge one setting by the intervals of all its adversaries.

    Near zero: every interval ends at ``NEAR_ZERO`` or below. Above: one begins above it. Else it is undecided.
    """
    if any(row.low > NEAR_ZERO for row in rows):
        return ABOVE
    return NEAR if all(row.high <= NEAR_ZERO for row in rows) else UNDECIDED


def by_releases(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows of each number of releases, as they come."""
    settings: dict[int, list[Row]] = {}
    for row in rows:
        settings.setdefault(row.releases, []).append(row)
    return list(settings.values())
