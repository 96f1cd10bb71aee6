"""Unions of intervals with rational ends, cut into atoms so that questions about them become finite.

All ends together cut the line into points and open intervals between them. Every union holds an atom wholly
or not at all, so ranges, overlaps and measures are sums over a boolean matrix: exact, without sampling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from gateway.privacy.accounting import BoolArray


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval of reals, half-open ``[low, high)`` unless told otherwise; its ends in any one unit.

    Raises:
        ValueError: it holds no point.

    """

    low: Fraction
    high: Fraction
    closed_low: bool = True
    closed_high: bool = False

    def __post_init__(self) -> None:
        if self.low > self.high or (self.low == self.high and not (self.closed_low and self.closed_high)):
            raise ValueError(f"no point lies between {self.low} and {self.high}; close both ends of a point")

    def __contains__(self, point: Fraction) -> bool:
        above = point >= self.low if self.closed_low else point > self.low
        return above and (point <= self.high if self.closed_high else point < self.high)


Union = Sequence[Interval]


def closed(low: Fraction | int, high: Fraction | int) -> Interval:
    """Return ``[low, high]``."""
    return Interval(Fraction(low), Fraction(high), closed_high=True)


def cells(edges: Sequence[Fraction | int]) -> list[list[Interval]]:
    """Return the cells between increasing edges: half-open, the last closed.

    Raises:
        ValueError: fewer than two edges, or not increasing.

    """
    ends = [Fraction(edge) for edge in edges]
    pairs = list(pairwise(ends))
    if not pairs or any(low >= high for low, high in pairs):
        raise ValueError("cells need at least two edges, increasing")
    last = len(pairs) - 1
    return [[Interval(low, high, closed_high=j == last)] for j, (low, high) in enumerate(pairs)]


def atoms(unions: Sequence[Union]) -> tuple[BoolArray, tuple[Fraction, ...]]:
    """Cut several unions by all their ends.

    Returns:
        The (atoms, unions) matrix of which union holds which atom, without atoms outside all of them, and the
        atoms' lengths, 0 for single points.

    """
    ends = sorted({end for union in unions for piece in union for end in (piece.low, piece.high)})
    pieces = [(end, end) for end in ends] + list(pairwise(ends))
    rows = [[_holds(union, (low + high) / 2) for union in unions] for low, high in pieces]
    held = np.array(rows, np.bool_).reshape(len(pieces), len(unions))
    kept = np.flatnonzero(held.any(axis=1))
    return held[kept], tuple(pieces[i][1] - pieces[i][0] for i in kept.tolist())


def _holds(union: Union, point: Fraction) -> bool:
    return any(point in piece for piece in union)
