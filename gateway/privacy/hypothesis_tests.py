"""Tests of a yes-or-no question about private data, without statistics ([HT], theory 6).

A test is right at an output when every input that could have led there has the hypothesis it says. No test is
right where both hypotheses remain possible, so the best are the consistent ones: they say the hypothesis that
remains, and are right exactly on the symmetric difference ``⟦Y|p0⟧ Δ ⟦Y|p1⟧``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from fractions import Fraction
from math import inf, isqrt, log, log2, sqrt
from typing import TypeVar

import numpy as np

from gateway.privacy.intervals import Union, atoms
from gateway.privacy.regions import FloatArray

Y = TypeVar("Y", bound=Hashable)
Real = Fraction | float


def outputs_by_hypothesis(pairs: Iterable[tuple[bool, Y]]) -> tuple[set[Y], set[Y]]:
    """Return ``⟦Y|p0⟧`` and ``⟦Y|p1⟧`` from the (hypothesis, output) of every input."""
    listed = list(pairs)
    return {y for holds, y in listed if not holds}, {y for holds, y in listed if holds}


def consistent_test(given_p0: AbstractSet[Y], given_p1: AbstractSet[Y]) -> dict[Y, bool | None]:
    """Return what a consistent test says at each output: p1 or not; ``None`` where both are possible."""
    return {y: (y in given_p1) if (y in given_p0) != (y in given_p1) else None for y in given_p0 | given_p1}


def right_outputs(
    test: Mapping[Y, bool | None], given_p0: AbstractSet[Y], given_p1: AbstractSet[Y]
) -> set[Y]:
    """Return the outputs at which a test is right whatever the input was."""
    return {y for y, says in test.items() if says is not None and y not in (given_p0 if says else given_p1)}


def performance_bits(given_p0: AbstractSet[Hashable], given_p1: AbstractSet[Hashable]) -> float:
    """Return ``P(T) = log2|⟦Y|p0⟧ Δ ⟦Y|p1⟧|`` of the best tests, in bits; −∞ when nothing can be decided."""
    decided = len(given_p0 ^ given_p1)
    return log2(decided) if decided else -inf


def undecided_bits(given_p0: AbstractSet[Hashable], given_p1: AbstractSet[Hashable]) -> float:
    """Return ``log2|⟦Y⟧| − log2|Δ|`` in bits: 0 when every output decides, +∞ when none does."""
    return log2(len(given_p0 | given_p1)) - performance_bits(given_p0, given_p1)


def performance_nats(given_p0: Union, given_p1: Union) -> float:
    """Return ``P(T) = ln μ(⟦Y|p0⟧ Δ ⟦Y|p1⟧)`` of the best tests, in nats as [HT] has it; −∞ when it is 0."""
    return _ln(_measures(given_p0, given_p1)[0])


def privacy_nats(given_p0: Union, given_p1: Union) -> float:
    """Return ``Priv = h0(Y) − ln μ(Δ)`` in nats ([HT] Def. 3).

    It is never negative, so "at least ln ε" with ε ≤ 1 asks nothing, and it is 0 under Theorem 3's policy
    (theory E3). Use :func:`undecidable_share` to say what a policy hides.
    """
    decided, possible = _measures(given_p0, given_p1)
    return _ln(possible) - _ln(decided)


def _measures(given_p0: Union, given_p1: Union) -> tuple[Fraction, Fraction]:
    """Return the measure of the outputs that decide, and of all outputs."""
    held, lengths = atoms([given_p0, given_p1])
    apart = (held[:, 0] != held[:, 1]).tolist()
    decided = sum((size for size, decides in zip(lengths, apart, strict=True) if decides), Fraction(0))
    return decided, sum(lengths, Fraction(0))


def _ln(measure: Fraction) -> float:
    return log(measure.numerator) - log(measure.denominator) if measure else -inf


def blinded(values: FloatArray, thresholds: FloatArray | float, band: float) -> FloatArray:
    """Return Theorem 3's policy: the threshold itself where a value lies within ``band = 1/ρ`` of it."""
    return np.where(np.abs(values - thresholds) <= band, thresholds, values)


def undecidable_share(lower: Fraction, upper: Fraction, threshold: Fraction, band: Fraction) -> Fraction:
    """Return the share of ``[lower, upper]`` where the policy leaves ``x ≥ threshold`` open (theory E3).

    It is that of the band ``threshold ± band``, if both hypotheses occur there; else 0, for the threshold as
    an answer then has one hypothesis and tells it.

    Raises:
        ValueError: an empty range or a negative band.

    """
    if lower >= upper or band < 0:
        raise ValueError(f"[{lower}, {upper}] with a band of {band}: a range, and a band of 0 or more")
    if not lower < threshold <= upper:
        return Fraction(0)
    return (min(upper, threshold + band) - max(lower, threshold - band)) / (upper - lower)


def undecidable_share_under_square(
    coefficient: Fraction, weight: Fraction, height: Fraction, band: Fraction
) -> Real:
    """Return the undecidable share where the threshold is ``coefficient·x2²`` ([HT] IV, mended by E4).

    With x1 in ``[0, weight]``, x2 in ``[0, height]`` and ``g = coefficient·x2²`` it is
    ``∫ (min(g+band, weight) − max(g−band, 0)) dx2 / (weight·height)`` over the x2 with ``0 < g ≤ weight``.
    For a body-mass index of 30, with x1 in kg and x2 in cm, the coefficient is 3/1000. The integral is cut at
    square roots; the result is a fraction where they are rational, else a double.

    Raises:
        ValueError: a number that is not positive (the band may be 0).

    """
    if min(coefficient, weight, height) <= 0 or band < 0:
        raise ValueError("coefficient, weight and height are positive, and the band is not negative")
    end = min(height, _root(weight / coefficient))
    clipped_below = min(end, _root(band / coefficient))
    clipped_above = min(end, _root(max(weight - band, Fraction(0)) / coefficient))
    upper = _area(coefficient, band, clipped_above) + weight * (end - clipped_above)
    lower = _area(coefficient, -band, end) - _area(coefficient, -band, clipped_below)
    return (upper - lower) / (weight * height)


def _area(coefficient: Fraction, offset: Fraction, end: Real) -> Real:
    """Return ``∫₀^end (coefficient·x² + offset) dx``."""
    return coefficient * end**3 / 3 + offset * end


def _root(square: Fraction) -> Real:
    """Return the square root: exact where it is rational."""
    top, bottom = isqrt(square.numerator), isqrt(square.denominator)
    exact = Fraction(top, bottom)
    return exact if exact**2 == square else sqrt(square)
