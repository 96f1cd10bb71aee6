"""What noiseless privacy promises: Theorems 1 to 8 of [NP] as bounds of a mechanism, errata applied.

A mechanism is described by the integer ``levels``: the most values its output takes while one individual
varies and all others are fixed ([NP] Definition 1). ε is its logarithm, and derived: ``⌊2^ε⌋`` in floats is
wrong for many levels (theory 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, log2, prod
from typing import Self

import numpy as np
import numpy.typing as npt

from gateway.privacy.groups import Calibration, certified_levels, paper_levels
from gateway.privacy.information import bits


@dataclass(frozen=True, slots=True)
class Mechanism:
    """One release, seen by one individual while all others are fixed.

    Attributes:
        widths: for each output the measure of her values that lead to it, in any one unit.

    Raises:
        ValueError: no output, a negative measure, or nothing but zeros.

    """

    widths: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if not self.widths or min(self.widths) < 0 or not any(self.widths):
            raise ValueError(
                "a mechanism has outputs, and values of hers with a positive measure lead to them"
            )

    @classmethod
    def equal(cls, span: Fraction, levels: int) -> Self:
        """Return ``levels`` equal cells over a range of length ``span``."""
        return cls((Fraction(span) / levels,) * levels)

    @property
    def levels(self) -> int:
        """The outputs she can reach, ``2^ε``."""
        return len(self.widths)

    @property
    def span(self) -> Fraction:
        """The length of her range."""
        return sum(self.widths, Fraction(0))

    @property
    def epsilon(self) -> float:
        """ε in bits."""
        return log2(self.levels)


def information_bound(mechanism: Mechanism) -> float:
    """Return ε, which bounds ``I* ≤ L_s0 ≤ L(Y;X_i)`` in bits, all others fixed ([NP] Thm 1).

    While others vary too, only ``I*(X_i;Y) ≤ ε`` remains, and only where their range does not depend on hers.
    """
    return mechanism.epsilon


def reading_leakage(mechanism: Mechanism) -> float:
    """Return ``L(X_i;Y) = max_j log2(span/width_j)`` in bits: above ε for unequal cells (theory A4).

    It is +∞ where single values, of no measure, have an output of their own.
    """
    narrowest = min(mechanism.widths)
    return bits(mechanism.span / narrowest) if narrowest else inf


def zero_error_capacity_bound(levels: Sequence[int]) -> float:
    """Return ``Σ log2 k_t / T``, the bound of the zero-error capacity in bits per use ([NP] Thm 2).

    Args:
        levels: k_t of every use on the path with the largest product, jointly over all topics of hers. Memory
            is allowed; a path that was merely observed does not do when k_t depends on symbols (theory A9).

    Raises:
        ValueError: no use, or one without a level.

    """
    if not levels or min(levels) < 1:
        raise ValueError("a channel has at least one use, each with at least one level")
    return log2(prod(levels)) / len(levels)


def hypothesis_test_bound(mechanism: Mechanism) -> float:
    """Return ``min(ε, 1)`` bits, what any test of two values of hers can reach ([NP] Thm 3)."""
    return min(mechanism.epsilon, 1.0)


def estimation_error_bound(mechanism: Mechanism, density: Fraction, power: int = 2) -> Fraction:
    """Return what ``E|X_i − X̂_i|^p`` is at least, whoever else the adversary knows ([NP] Thm 4, E2).

    It is ``ρ·μ^(p+1)·2^(−εp) / ((p+1)·2^p)``, with k for 2^ε; equal cells with a uniform prior attain it.

    Args:
        mechanism: only its levels and span count.
        density: ρ, what the density of her value, *given everybody else's*, is at least on her range.
        power: p, at least 1; the mean of the p-th power of the *absolute* error is bounded.

    Raises:
        ValueError: a power below 1, or a density that is negative or exceeds a mass of 1.

    """
    span, levels = mechanism.span, mechanism.levels
    if power < 1 or not 0 <= density * span <= 1:
        raise ValueError("the power is 1 or more, and the density times the range lies between 0 and 1")
    return Fraction(density * span ** (power + 1), (power + 1) * (2 * levels) ** power)


def estimation_error(mechanism: Mechanism, power: int = 2) -> Fraction:
    """Return the least ``E|X_i − X̂_i|^p`` for interval cells and a uniform prior: mid-points, exactly."""
    halves = sum(((width / 2) ** (power + 1) for width in mechanism.widths), Fraction(0))
    return Fraction(2 * halves, (power + 1) * mechanism.span)


def maximal_leakage_bound(mechanism: Mechanism) -> float:
    """Return ε, the bound of the maximal leakage in bits, others independent or fixed ([NP] Thm 5)."""
    return mechanism.epsilon


def maximal_leakage(conditional: npt.NDArray[np.float64]) -> float:
    """Return ``log2 Σ_y max_x P(y|x)`` in bits (Issa, Wagner, Kamath).

    Args:
        conditional: (inputs, outputs) the probability of each output given each input that occurs.

    """
    return float(np.log2(conditional.max(axis=0).sum()))


def composed_levels(levels: Iterable[int]) -> int:
    """Return the joint levels of releases whatever they are: levels multiply, bits add ([NP] Thm 6)."""
    return prod(levels)


def merged_levels(levels: Iterable[int]) -> int:
    """Return the joint levels of step functions of one number: ``1 + Σ(k_j − 1)`` (theory A2).

    Each is monotone in the *same* value of hers, others fixed and without private state, so k_j levels are
    k_j − 1 cuts on one line, and the cuts of all together leave one cell more than there are cuts.
    """
    return 1 + sum(k - 1 for k in levels)


def processed_levels(levels: int, outputs: int) -> int:
    """Return the levels after a function with ``outputs`` values was applied to a release ([NP] Thm 7)."""
    return min(levels, outputs)


def group_cells(
    span: Fraction, sensitivity: Fraction, levels: int, calibration: Calibration = "certified"
) -> int:
    """Return the equal cells over a query's span with which one member reaches ``levels`` ([NP] Thm 8, E1).

    Args:
        span: R, the largest less the smallest answer.
        sensitivity: S, the most that one member moves it, at most ``span``.
        levels: k.
        calibration: ``certified`` is ``max(k, ⌊(k−1)R/S⌋)`` and holds; ``paper`` is ``⌊kR/S⌋``, the theorem
            as printed, which lets her reach one cell more. It is here for studies only.

    Raises:
        ValueError: S is not positive or exceeds R, or there is no level.

    """
    if not 0 < sensitivity <= span or levels < 1:
        raise ValueError("a member moves the answer, by at most its span, and reaches at least one level")
    ratio = Fraction(span) / sensitivity
    rule = paper_levels if calibration == "paper" else certified_levels
    return rule(ratio.numerator, ratio.denominator, levels)
