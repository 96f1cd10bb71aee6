"""Budgets counted in integers: levels multiply, micro-bits add, windows turn.

A release of ``levels`` values costs ``⌈10⁶·log2(levels)⌉`` micro-bits. Rounding up keeps every sum on
the safe side: what was charged is never less than what the outputs can say ([NP] Thm 6).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal, localcontext
from functools import lru_cache
from math import log2
from typing import Self

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

MICROBITS_PER_BIT = 1_000_000
_NO_WINDOW = np.iinfo(np.int64).min
_MOST_BITS = 40
_DOUBTFUL = 1e-4


@lru_cache(maxsize=65_536)
def microbits(levels: int) -> int:
    """Return ``⌈10⁶·log2(levels)⌉``, exactly.

    Raises:
        ValueError: ``levels`` is less than 1.

    """
    if levels < 1:
        raise ValueError(f"a release has at least one level, not {levels}")
    if levels & (levels - 1) == 0:
        return MICROBITS_PER_BIT * (levels.bit_length() - 1)
    # 60 digits: the logarithm of anything but a power of two is irrational, and not that close to a whole number.
    with localcontext(prec=60):
        exact = Decimal(levels).ln() / Decimal(2).ln() * MICROBITS_PER_BIT
        return int(exact.to_integral_value(ROUND_CEILING))


def microbits_of(levels: IntArray) -> IntArray:
    """Return the price (micro-bits) of each number of levels.

    Raises:
        ValueError: one of them is less than 1.

    """
    distinct, back = np.unique(levels, return_inverse=True)
    about = np.log2(np.maximum(distinct, 1)) * MICROBITS_PER_BIT
    prices: IntArray = np.ceil(about).astype(np.int64)
    # Doubles are right to 1e-7 here: only next to a whole number can rounding up go wrong.
    for place in np.flatnonzero((np.abs(about - np.rint(about)) < _DOUBTFUL) | (distinct < 1)):
        prices[place] = microbits(int(distinct[place]))
    found: IntArray = prices[back]
    return found


def levels_within(bits: float) -> int:
    """Return the most levels k with ``log2(k) ≤ bits``; ``levels_within(log2(k)) == k`` for every k.

    (``⌊2^bits⌋`` in floats is wrong for many k: theory 2.)

    Raises:
        ValueError: negative bits, or more than 40, where doubles cannot tell neighbouring levels apart.

    """
    if not 0 <= bits <= _MOST_BITS:
        raise ValueError(f"{bits} bits: between 0 and {_MOST_BITS}")
    guess = int(2.0**bits)
    return max(k for k in (guess - 1, guess, guess + 1) if k == 1 or (k > 1 and log2(k) <= bits))


@dataclass(frozen=True, eq=False)
class Account:
    """Odometers of n channels: what each spent in her window, and since she was first seen.

    Attributes:
        window: (n,) the window that ``spent`` belongs to.
        spent: (n,) micro-bits charged in that window.
        total: (n,) micro-bits charged over all windows.

    """

    window: IntArray
    spent: IntArray
    total: IntArray

    @classmethod
    def opened(cls, channels: int) -> Self:
        """Return accounts that have never been charged."""
        zeros = np.zeros(channels, np.int64)
        return cls(np.full(channels, _NO_WINDOW, np.int64), zeros, zeros.copy())

    def spent_in(self, window: int) -> IntArray:
        """Return (n,) micro-bits already charged in ``window``.

        Raises:
            ValueError: an account already stands in a later window; slots close in order.

        """
        if np.any(self.window > window):
            raise ValueError(f"window {window} lies before one that was already charged")
        return np.where(self.window == window, self.spent, 0)

    def affords(self, window: int, price: IntArray, budget: IntArray) -> BoolArray:
        """Return (n,) whether ``price`` still fits in ``budget`` (micro-bits per window): the filter."""
        return self.spent_in(window) + price <= budget

    def charged(self, window: int, charges: IntArray) -> Account:
        """Return the accounts after ``charges`` (micro-bits) in ``window``."""
        return replace(
            self,
            window=np.full_like(self.window, window),
            spent=self.spent_in(window) + charges,
            total=self.total + charges,
        )
