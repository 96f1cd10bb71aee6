"""Optimal deterministic policies ([DP] IV): the fewest cells for a wanted accuracy, and what they tell.

An answer within 1/γ of the truth needs cells no wider than 2/γ, and I* is the logarithm of their number. So
the most private policy of that accuracy is a uniform quantizer with mid-point outputs. All ends are rational.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil, inf, sqrt
from typing import Self, TypeVar

import numpy as np

from gateway.privacy.accounting import IntArray
from gateway.privacy.information import JointRange, leakage, maximin_information
from gateway.privacy.regions import FloatArray, Query

V = TypeVar("V", int, float, Fraction)


def fewest_cells(lower: Fraction, upper: Fraction, gamma: Fraction) -> int:
    """Return ``⌈γ(ȳ−y̲)/2⌉``, the fewest cells whose worst error is at most ``1/gamma``.

    Args:
        lower: the least answer of the query.
        upper: the largest answer, in the same unit.
        gamma: the wanted quality, one over the worst error.

    Raises:
        ValueError: an empty range, or a quality that is not positive.

    """
    if lower > upper or gamma <= 0:
        raise ValueError(f"[{lower}, {upper}] with quality {gamma}: a range, and a positive quality")
    return max(1, ceil(gamma * (upper - lower) / 2))


@dataclass(frozen=True, slots=True)
class UniformPolicy:
    """Equal cells over a query's answers, half-open, the last closed; each answers with its mid-point.

    Attributes:
        lower: the least answer.
        upper: the largest answer.
        cells: how many cells there are, q.

    Raises:
        ValueError: no cell, or an empty range.

    """

    lower: Fraction
    upper: Fraction
    cells: int

    def __post_init__(self) -> None:
        if self.cells < 1 or self.lower >= self.upper:
            raise ValueError(
                f"{self.cells} cells over [{self.lower}, {self.upper}]: at least one, over a range"
            )

    @classmethod
    def of_quality(cls, lower: Fraction, upper: Fraction, gamma: Fraction) -> Self:
        """Return the optimal policy: the fewest cells with worst error at most ``1/gamma``."""
        return cls(lower, upper, fewest_cells(lower, upper, gamma))

    @property
    def width(self) -> Fraction:
        """The width of a cell."""
        return (self.upper - self.lower) / self.cells

    @property
    def worst_error(self) -> Fraction:
        """``sup |f − f̃|``: half a cell."""
        return self.width / 2

    @property
    def edges(self) -> tuple[Fraction, ...]:
        """The cells' ends, q + 1 of them."""
        return tuple(self.lower + j * self.width for j in range(self.cells + 1))

    @property
    def outputs(self) -> tuple[Fraction, ...]:
        """The cells' mid-points."""
        return tuple(edge + self.worst_error for edge in self.edges[:-1])

    def cell(self, answer: Fraction) -> int:
        """Return the cell of an exact answer.

        Raises:
            ValueError: the answer lies outside the range.

        """
        if not self.lower <= answer <= self.upper:
            raise ValueError(f"{answer} lies outside [{self.lower}, {self.upper}]")
        return min(self.cells - 1, int((answer - self.lower) // self.width))

    def release(self, answer: Fraction) -> Fraction:
        """Return what is answered instead of ``answer``; raises as :meth:`cell`."""
        return self.outputs[self.cell(answer)]

    def regions(self, query: Query, x1: FloatArray, x2: FloatArray) -> IntArray:
        """Return the cell of each point of a grid of inputs, in doubles: for pictures, not for proofs."""
        inner = np.array([float(edge) for edge in self.edges[1:-1]])
        return np.searchsorted(inner, query.value(x1, x2), side="right").astype(np.int64)

    def joint_range(self, query: Query) -> JointRange:
        """Return the joint range of the pair of inputs, by area, and the answer given."""
        below = [Fraction(query.area_below(edge)) for edge in self.edges]
        areas = tuple(high - low for low, high in pairwise(below))
        return JointRange(np.eye(self.cells, dtype=np.bool_), areas)


def leakage_privacy(joint: JointRange) -> float:
    """Return ``P1 = 1/L(X;Y)``: +∞ where nothing leaks, 0 where some output leaves x no measure."""
    return _reciprocal(leakage(joint))


def maximin_privacy(joint: JointRange) -> float:
    """Return ``P2 = 1/I*(X;Y)``: +∞ where nothing is told for sure."""
    return _reciprocal(maximin_information(joint))


def quality(worst_error: Fraction) -> float:
    """Return ``Q = 1/sup|f − f̃|``: +∞ for exact answers."""
    return _reciprocal(float(worst_error))


def _reciprocal(amount: float) -> float:
    return 1 / amount if amount else inf


def top_cell_radius(span: Fraction, individuals: int, cells: int) -> float:
    """Return the radius of the smallest ball around the inputs that the top cell of a mean leaves possible.

    The top cell of ``cells`` over a mean of n values with ranges of length ``span`` is the corner of a cube,
    cut off at ``L = n·span/cells`` along each edge: its ball is that of a regular simplex with side ``L√2``,
    of radius ``span·√(n(n−1))/cells`` (theory E7), and half a cell for one individual.

    Raises:
        ValueError: more individuals than cells, where the cut corner reaches over the cube, or none.

    """
    if not 1 <= individuals <= cells:
        raise ValueError(f"{individuals} individuals: at least one, at most as many as the {cells} cells")
    if individuals == 1:
        return float(span / (2 * cells))
    return float(span) * sqrt(individuals * (individuals - 1)) / cells


def k_anonymous_release(
    quasi: Sequence[int], sensitive: Sequence[V], k: int
) -> tuple[tuple[int, int, tuple[V, ...]], ...]:
    """Return a k-anonymous table: what that rule permits, not what is private ([DP] Prop. V.1).

    Quasi-identifiers are generalised into ranges that at least ``k`` records share; the sensitive values of a
    range are published, sorted, so that none is tied to a record. With all other records fixed the table is
    still an injective function of one record's value, however fine: ``I* = +∞`` and ``d0 = −∞`` for reals.

    Args:
        quasi: what may identify each record, such as a postcode.
        sensitive: each record's private value.
        k: how many records share a range at least.

    Returns:
        For each range its ends and its values.

    Raises:
        ValueError: fewer than ``k`` records, or k below 1.

    """
    if not 1 <= k <= len(quasi):
        raise ValueError(f"{len(quasi)} records cannot be {k}-anonymous; k lies between 1 and their number")
    order = sorted(range(len(quasi)), key=quasi.__getitem__)
    starts: list[int] = [g * k for g in range(len(quasi) // k)]
    ends = [*starts[1:], len(quasi)]
    groups = [order[start:end] for start, end in zip(starts, ends, strict=True)]
    return tuple((quasi[g[0]], quasi[g[-1]], tuple(sorted(sensitive[i] for i in g))) for g in groups)
