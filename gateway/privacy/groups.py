"""Group queries: exact sums of the members' values, quantized so that one member reaches at most k outputs.

[NP] Theorem 8 allows ``q = ⌊k·R/S⌋`` equal cells over the span R of the sum when one member moves it by S.
That is one cell too many: a segment of length S over cells of width R/q touches up to ``⌈qS/R⌉ + 1`` of them
(theory E1). Certified is ``q = max(k, ⌊(k−1)·R/S⌋)``: then S covers at most k−1 cell widths, so a half-open
window of length S holds at most k−1 cuts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gateway.privacy.accounting import BoolArray, IntArray
from gateway.privacy.codebooks import Codebook, Shelf, uniform


def certified_levels(span: int, sensitivity: int, reach: int) -> int:
    """Return the most equal cells over ``span`` for which one member reaches at most ``reach`` (theory E1).

    Args:
        span: R, the largest minus the smallest sum (mW).
        sensitivity: S, the most that one member can move it (mW).
        reach: k, the outputs one member may reach.

    Raises:
        ValueError: no member can move the sum, or no output is allowed.

    """
    if sensitivity < 1 or reach < 1:
        raise ValueError("a group needs a member with a range, and at least one level")
    return max(reach, (reach - 1) * span // sensitivity)


def reach_of(cuts: IntArray, sensitivity: int) -> int:
    """Return how many cells a window of length ``sensitivity`` can touch, by counting the actual cuts.

    One plus the most cuts in any half-open window of that length (theory A1, for equal and unequal cells).
    """
    if len(cuts) == 0:
        return 1
    ends = np.searchsorted(cuts, cuts + (sensitivity - 1), side="right")
    return 1 + int(np.max(ends - np.arange(len(cuts))))


def group_codebook(lower: IntArray, upper: IntArray, reach: int) -> Codebook:
    """Return the certified uniform codebook over the sum of members with ranges ``[lower, upper]`` (mW).

    Raises:
        ValueError: as :func:`certified_levels` and :func:`gateway.privacy.codebooks.uniform`.

    """
    low, high = int(lower.sum()), int(upper.sum())
    levels = certified_levels(high - low, int((upper - lower).max()), reach)
    return uniform(low, high, levels)


class Groups:
    """All group queries of a roll, summed and quantized in one call.

    Args:
        members: for each group the (m,) positions of its members in the roll, without repeats.
        codebooks: for each group the codebook of its sum.

    """

    def __init__(self, members: Sequence[IntArray], codebooks: Sequence[Codebook]) -> None:
        sizes = np.array([len(positions) for positions in members], np.int64)
        self.members = np.concatenate(members) if members else np.zeros(0, np.int64)
        self.starts = np.cumsum(sizes) - sizes
        self.group_of = np.repeat(np.arange(len(sizes)), sizes)
        self.shelf = Shelf(codebooks, np.arange(len(codebooks))) if codebooks else None

    def __len__(self) -> int:
        return len(self.starts)

    def reach(self, lower: IntArray, upper: IntArray) -> IntArray:
        """Return (g,) outputs that one member can reach, given (n,) ranges of the roll (mW)."""
        if self.shelf is None:
            return np.zeros(0, np.int64)
        sensitivity = np.maximum.reduceat((upper - lower)[self.members], self.starts)
        books = zip(self.shelf.codebooks, sensitivity, strict=True)
        return np.array([reach_of(book.cuts, int(widest)) for book, widest in books], np.int64)

    def encode(self, values: IntArray) -> IntArray:
        """Return (g,) symbols of the exact sums of (n,) household values (mW)."""
        if self.shelf is None:
            return np.zeros(0, np.int64)
        return self.shelf.encode(np.add.reduceat(values[self.members], self.starts))

    def any_member(self, flags: BoolArray) -> BoolArray:
        """Return (g,) whether any member's flag is set."""
        if self.shelf is None:
            return np.zeros(0, np.bool_)
        return np.logical_or.reduceat(flags[self.members], self.starts)
