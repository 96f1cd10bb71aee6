"""Uncertain variables: what one unknown says about another when nothing is known but what is possible.

A joint range is the set of pairs (x, y) that can occur. Everything here is a count, or a measure, over it
([NP] II, [DP] II; theory 1). Every logarithm is base 2: with natural ones for measures and base 2 for counts
the order of Proposition 1 fails.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, inf, lgamma, log2, pi, sqrt
from typing import Self

import numpy as np

from gateway.privacy.accounting import BoolArray, IntArray
from gateway.privacy.intervals import Union, atoms

_LN2 = 0.6931471805599453


@dataclass(frozen=True, eq=False)
class JointRange:
    """The possible pairs of two uncertain variables.

    Attributes:
        possible: (m, n) whether the m-th x and the n-th y can occur together; each x and y with at least one.
        x_measure: what each x weighs (a length, an area); counted, 1 each, when ``None``.
        y_measure: the same for y.

    Raises:
        ValueError: an x or y occurs with nothing, or measures do not fit or are nothing altogether.

    """

    possible: BoolArray
    x_measure: tuple[Fraction, ...] | None = None
    y_measure: tuple[Fraction, ...] | None = None

    def __post_init__(self) -> None:
        if not (self.possible.size and self.possible.any(axis=0).all() and self.possible.any(axis=1).all()):
            raise ValueError("every x and every y of a joint range occurs in at least one pair")
        for measure, size in zip((self.x_measure, self.y_measure), self.possible.shape, strict=True):
            if measure is not None and (len(measure) != size or min(measure) < 0 or not any(measure)):
                raise ValueError(f"{size} values need as many measures, none negative, not all 0")

    @classmethod
    def of_pairs(cls, pairs: Iterable[tuple[Hashable, Hashable]]) -> Self:
        """Return the joint range of two finite variables."""
        listed = list(pairs)
        xs = {x: i for i, x in enumerate(dict.fromkeys(x for x, _ in listed))}
        ys = {y: j for j, y in enumerate(dict.fromkeys(y for _, y in listed))}
        possible = np.zeros((len(xs), len(ys)), np.bool_)
        for x, y in listed:
            possible[xs[x], ys[y]] = True
        return cls(possible)

    @classmethod
    def of_map(cls, outputs: Sequence[Hashable]) -> Self:
        """Return the joint range of a deterministic mechanism: the output of each of its inputs."""
        return cls.of_pairs(enumerate(outputs))

    @classmethod
    def of_preimages(cls, preimages: Sequence[Union]) -> Self:
        """Return the joint range of a real x and a finite y, from the intervals that each y leaves of x."""
        return cls(*atoms(preimages))

    @property
    def swapped(self) -> JointRange:
        """The same pairs, seen from y."""
        return JointRange(self.possible.T, self.y_measure, self.x_measure)

    def size(self) -> Fraction:
        """Return how much of x is possible: ``|⟦X⟧|`` or ``μ(⟦X⟧)``."""
        return Fraction(len(self.possible)) if self.x_measure is None else sum(self.x_measure, Fraction(0))

    def sizes(self) -> list[Fraction]:
        """Return for each y how much of x remains possible: ``|⟦X|y⟧|`` or ``μ(⟦X|y⟧)``."""
        if self.x_measure is None:
            return [Fraction(count) for count in self.possible.sum(axis=0).tolist()]
        measure = np.array(self.x_measure, dtype=object)
        return [Fraction(sum(measure[column])) for column in self.possible.T]


def bits(amount: Fraction) -> float:
    """Return ``log2`` of a count, measure or ratio, however large; −∞ for 0."""
    return log2(amount.numerator) - log2(amount.denominator) if amount else -inf


def entropy(joint: JointRange) -> float:
    """Return Hartley's entropy ``H(X) = log2|⟦X⟧|`` in bits; ``log2 μ(⟦X⟧)`` where x is measured."""
    return bits(joint.size())


def conditional_entropy(joint: JointRange) -> float:
    """Return ``H(X|Y) = max_y log2|⟦X|y⟧|`` in bits: what remains unknown in the vaguest case."""
    return bits(max(joint.sizes()))


def relative_disarray(joint: JointRange) -> float:
    """Return ``d0(X|Y) = min_y log2 μ(⟦X|y⟧)`` in bits: what remains unknown in the sharpest case."""
    return bits(min(joint.sizes()))


def information(joint: JointRange) -> float:
    """Return ``I(X;Y) = min_y log2(|⟦X⟧| / |⟦X|y⟧|)`` in bits."""
    return bits(joint.size() / max(joint.sizes()))


def leakage(joint: JointRange) -> float:
    """Return ``L(X;Y) = max_y log2(|⟦X⟧| / |⟦X|y⟧|)`` in bits; +∞ where some y leaves x no measure."""
    least = min(joint.sizes())
    return bits(joint.size() / least) if least else inf


def symmetrised_leakage(joint: JointRange) -> float:
    """Return ``L_s0 = min(L(X;Y), L(Y;X))`` in bits."""
    return min(leakage(joint), leakage(joint.swapped))


def maximin_information(joint: JointRange) -> float:
    """Return ``I*(X;Y) = log2(cells of the taxicab partition)`` in bits: what x and y always agree on."""
    return log2(len(np.unique(taxicab_partition(joint))))


def taxicab_partition(joint: JointRange) -> IntArray:
    """Return (m,) the cell of each x in the taxicab partition of the joint range; y has the cells of its x.

    A taxicab path changes x or y, one at a time, through possible pairs. So its cells are the connected
    components of the bipartite graph with an edge for each possible pair.
    """
    rows, columns = np.nonzero(joint.possible)
    m, n = joint.possible.shape
    roots = _components(rows, columns + m, m + n)[:m]
    return np.unique(roots, return_inverse=True)[1].astype(np.int64)


def _components(one: IntArray, other: IntArray, nodes: int) -> IntArray:
    """Return (nodes,) a root per component, by union-find over all edges at once.

    Each round hooks the larger root of an edge below the smaller, then flattens: parents only fall, so there
    are no cycles, and every round that changes something leaves fewer roots.
    """
    parent = np.arange(nodes)
    while True:
        left, right = parent[one], parent[other]
        if np.array_equal(left, right):
            return parent
        np.minimum.at(parent, np.maximum(left, right), np.minimum(left, right))
        while not np.array_equal(flatter := parent[parent], parent):
            parent = flatter


def fano_worst(joint: JointRange, dimension: int = 1) -> float:
    """Return what the worst error of any estimate of x from y is at least ([DP] II.1): in x's unit of length.

    Args:
        joint: x measured in ``dimension``-dimensional volume.
        dimension: n of Rⁿ.

    """
    return ball_radius(max(joint.sizes()), dimension)


def fano_best(joint: JointRange, dimension: int = 1) -> float:
    """Return what the largest error is at least even at the luckiest y ([DP] II.2); as :func:`fano_worst`."""
    return ball_radius(min(joint.sizes()), dimension)


def ball_radius(volume: Fraction, dimension: int) -> float:
    """Return ``(Γ(n/2+1)·volume)^(1/n) / √π``, the radius of the n-ball of that volume.

    A set that lies within r of its estimate lies in a ball of radius r, so its volume is at most the ball's.

    Raises:
        ValueError: a dimension below 1.

    """
    if dimension < 1:
        raise ValueError(f"dimension {dimension}: at least 1")
    return exp((lgamma(dimension / 2 + 1) + bits(volume) * _LN2) / dimension) / sqrt(pi)
