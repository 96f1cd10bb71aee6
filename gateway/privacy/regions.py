"""Queries of two inputs on a square, with the boundaries and areas of what an answer leaves possible.

They are the examples of [DP] IV: the cells of a policy, seen in the plane of the two private values.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import asin, sqrt
from typing import Protocol

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


class Query(Protocol):
    """A function of two inputs on a square."""

    @property
    def lower(self) -> Fraction:
        """The least answer."""
        ...

    @property
    def upper(self) -> Fraction:
        """The largest answer."""
        ...

    def value(self, x1: FloatArray, x2: FloatArray) -> FloatArray:
        """Return the answers at points of the square."""
        ...

    def boundary(self, cut: Fraction, x1: FloatArray) -> FloatArray:
        """Return (branches, n) the x2 where the answer equals ``cut``, NaN outside the square."""
        ...

    def area_below(self, cut: Fraction) -> Fraction | float:
        """Return the area of the inputs whose answer is at most ``cut``."""
        ...


@dataclass(frozen=True, slots=True)
class MeanOfTwo:
    """``(x1 + x2) / 2`` on ``[lower, upper]²``."""

    lower: Fraction
    upper: Fraction

    def value(self, x1: FloatArray, x2: FloatArray) -> FloatArray:
        """Return the means."""
        return (x1 + x2) / 2

    def boundary(self, cut: Fraction, x1: FloatArray) -> FloatArray:
        """Return (1, n): the straight line ``x2 = 2·cut − x1``."""
        return _inside(2 * float(cut) - x1[np.newaxis], float(self.lower), float(self.upper))

    def area_below(self, cut: Fraction) -> Fraction:
        """Return the area exactly: a triangle up to the middle, the square less one beyond."""
        side = self.upper - self.lower
        leg = min(max(2 * (cut - self.lower), Fraction(0)), 2 * side)
        return leg**2 / 2 if leg <= side else side**2 - (2 * side - leg) ** 2 / 2


@dataclass(frozen=True, slots=True)
class WeightedSquares:
    """``a·x1² + b·x2²`` on ``[−half_side, half_side]²``, with positive weights."""

    a: Fraction
    b: Fraction
    half_side: Fraction

    @property
    def lower(self) -> Fraction:
        """The least answer, 0."""
        return Fraction(0)

    @property
    def upper(self) -> Fraction:
        """The largest answer, in the corners."""
        return (self.a + self.b) * self.half_side**2

    def value(self, x1: FloatArray, x2: FloatArray) -> FloatArray:
        """Return the weighted sums of squares."""
        return float(self.a) * x1**2 + float(self.b) * x2**2

    def boundary(self, cut: Fraction, x1: FloatArray) -> FloatArray:
        """Return (2, n): the upper and the lower arc of the ellipse."""
        squared = (float(cut) - float(self.a) * x1**2) / float(self.b)
        arc = np.sqrt(np.where(squared >= 0, squared, np.nan))
        side = float(self.half_side)
        return _inside(np.stack([arc, -arc]), -side, side)

    def area_below(self, cut: Fraction) -> float:
        """Return the area of the ellipse within the square, in closed form.

        In a quadrant: a rectangle where the arc runs above the square, then the area under the arc.
        """
        side = float(self.half_side)
        end = min(side, sqrt(max(cut, Fraction(0)) / self.a))
        above = min(end, sqrt(max(cut - self.b * self.half_side**2, Fraction(0)) / self.a))
        radius = sqrt(max(cut, Fraction(0)) / self.a)
        arc = _under_circle(radius, end) - _under_circle(radius, above)
        return 4 * (side * above + sqrt(self.a / self.b) * arc)


def _under_circle(radius: float, x: float) -> float:
    """Return ``∫₀ˣ √(radius² − t²) dt``."""
    if radius == 0:
        return 0.0
    ratio = min(1.0, x / radius)
    return radius**2 / 2 * (ratio * sqrt(1 - ratio**2) + asin(ratio))


def _inside(x2: FloatArray, low: float, high: float) -> FloatArray:
    return np.where((x2 >= low) & (x2 <= high), x2, np.nan)
