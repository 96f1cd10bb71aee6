"""Whose trip was it? Starts and ends in boxes, and who still stands alone in hers ([NP] V-C).

The attacker knows where one person set out and where she arrived, and looks for that pair of boxes among the
released trips. If a single trip has it, she reads the rest of the record: when, how many, at what fare.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, lgamma, radians

import numpy as np

from gateway.privacy import Channel, IntArray, additive, levels_within, uniform

COORDINATES = 4
"""Latitude and longitude of the start, then of the end: the columns of every array of trips."""

_METRES_PER_DEGREE = 111_195.0
_MICRO = 1_000_000


@dataclass(frozen=True, slots=True)
class Area:
    """A public rectangle that trips are clamped to, in microdegrees.

    Attributes:
        south: its least latitude.
        north: its largest.
        west: its least longitude.
        east: its largest.

    """

    south: int
    north: int
    west: int
    east: int

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """The range of each of the four coordinates of a trip."""
        return ((self.south, self.north), (self.west, self.east)) * 2

    def box_metres(self, levels: int) -> tuple[float, float]:
        """Return the height and the width of a box (m), with so many levels for each coordinate."""
        narrowing = cos(radians((self.south + self.north) / 2 / _MICRO))
        height, width = self.north - self.south, (self.east - self.west) * narrowing
        metres = _METRES_PER_DEGREE / _MICRO / levels
        return height * metres, width * metres


def levels_of_budget(bits: float) -> int:
    """Return the levels of each coordinate when all four together may cost so many bits ([NP] Thm 6).

    Raises:
        ValueError: as :func:`gateway.privacy.levels_within`.

    """
    return levels_within(bits / COORDINATES)


def outputs(levels: int) -> int:
    """Return the pairs of boxes that one trip can reach: the four coordinates are four releases."""
    return additive(Channel(levels, reads=coordinate) for coordinate in range(COORDINATES))


def boxed(trips: IntArray, area: Area, levels: int) -> IntArray:
    """Return (n, 4) the box of each coordinate of (n, 4) trips (microdegrees), clamped to the area.

    Raises:
        ValueError: no level, or more than the area has microdegrees.

    """
    columns = [
        uniform(low, high, levels).encode(np.clip(column, low, high))
        for column, (low, high) in zip(trips.T, area.ranges, strict=True)
    ]
    return np.stack(columns, axis=1)


def crowds(released: IntArray) -> IntArray:
    """Return (n,) how many trips share each trip's row of (n, 4), itself included."""
    _, row, count = np.unique(released, axis=0, return_inverse=True, return_counts=True)
    return count[row.reshape(-1)].astype(np.int64)


def unique_share(crowd: IntArray) -> float:
    """Return the share of trips that are alone: found for certain by who knows start and end."""
    return float(np.mean(crowd == 1))


def guessed_share(crowd: IntArray) -> float:
    """Return how often who knows start and end names the right trip, drawing one of those that fit.

    Blind guessing is right once in n; with every pair unique it is always right.
    """
    return float(np.mean(1 / crowd))


def expected_unique_share(crowd: IntArray, among: int) -> float:
    """Return the share that is unique in a random part of the trips, averaged over all parts of that size.

    Exact, without drawing: of n trips of which c share a pair, a chosen one is alone in a part of m with
    probability ``C(n−c, m−1) / C(n−1, m−1)``.

    Args:
        crowd: (n,) as :func:`crowds` has it for all trips.
        among: m, the size of the part.

    Raises:
        ValueError: a part of no trip, or of more than there are.

    """
    n = len(crowd)
    if not 1 <= among <= n:
        raise ValueError(f"{among} of {n} trips: at least one, at most all")
    sizes, back = np.unique(crowd, return_inverse=True)
    alone = np.array([_alone(n, int(size), among) for size in sizes])
    return float(np.mean(alone[back]))


def most_unique_share(outputs: int, trips: int) -> float:
    """Return the largest unique share that any city allows: every unique trip needs a pair of its own.

    If not all trips are unique, the others need at least one pair as well.
    """
    return 1.0 if outputs >= trips else max(0, outputs - 1) / trips


def _alone(n: int, size: int, among: int) -> float:
    if n - size < among - 1:
        return 0.0
    return float(np.exp(_log_choose(n - size, among - 1) - _log_choose(n - 1, among - 1)))


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
