"""Group queries: exact sums of the members' values, quantized so that one member reaches at most k outputs.

[NP] Theorem 8 allows ``q = ⌊k·R/S⌋`` equal cells over the span R of the sum when one member moves it by S.
That is one cell too many: a segment of length S over cells of width R/q touches up to ``⌈qS/R⌉ + 1`` of them
(theory E1). Certified is ``q = max(k, ⌊(k−1)·R/S⌋)``: then S covers at most k−1 cell widths, so a half-open
window of length S holds at most k−1 cuts.

With feedback the sum is offset by what earlier releases left over, at most half a gap d either way. The
window grows to S + d, so one cell less is allowed: ``q = max(k, ⌊(k−2)·R/S⌋ + 1)`` levels with both ends
(theory A3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gateway.privacy.accounting import BoolArray, IntArray
from gateway.privacy.codebooks import MAX_CELLS, Codebook, Rounding, Shelf, both_ends, uniform

Calibration = Literal["certified", "paper"]
_MOST_SUM = 1 << 62


@dataclass(frozen=True, slots=True)
class Reach:
    """What one member can do to a weighted sum.

    Attributes:
        lower: the least sum (mW).
        upper: the largest sum.
        sensitivity: S, the most that one member moves it.

    """

    lower: int
    upper: int
    sensitivity: int

    @classmethod
    def of(cls, lower: IntArray, upper: IntArray, weights: IntArray | None = None) -> Reach:
        """Return span and sensitivity of members with ranges ``[lower, upper]`` and public weights.

        Raises:
            ValueError: no member can move the sum, or it leaves 64 bits.

        """
        scaled = np.stack((lower, upper)) * (1 if weights is None else weights)
        # Sums in integers without bound: at 64 bits they could wrap, and the sum be no step function any more.
        least, most = scaled.min(axis=0).tolist(), scaled.max(axis=0).tolist()
        sensitivity = max((high - low for low, high in zip(least, most, strict=True)), default=0)
        if sensitivity < 1:
            raise ValueError("a group needs a member with a range and a weight")
        if max(-sum(least), sum(most)) >= _MOST_SUM:
            raise ValueError("the members' sum leaves 64 bits: use smaller ranges or weights")
        return cls(sum(least), sum(most), sensitivity)


def certified_levels(span: int, sensitivity: int, reach: int) -> int:
    """Return the most equal cells over ``span`` for which one member reaches at most ``reach`` (theory E1).

    Args:
        span: R, the largest minus the smallest sum (mW).
        sensitivity: S, the most that one member can move it (mW).
        reach: k, the outputs one member may reach.

    Raises:
        ValueError: no member can move the sum, or no output is allowed.

    """
    _check(sensitivity, reach)
    return max(reach, (reach - 1) * span // sensitivity)


def paper_levels(span: int, sensitivity: int, reach: int) -> int:
    """Return [NP] Theorem 8's ``⌊k·R/S⌋``: for studies; it breaks Definition 1 by one output (theory E1).

    Raises:
        ValueError: as :func:`certified_levels`.

    """
    _check(sensitivity, reach)
    return max(1, reach * span // sensitivity)


def feedback_levels(span: int, sensitivity: int, reach: int) -> int:
    """Return the most levels with both ends under feedback (theory A3).

    Raises:
        ValueError: as :func:`certified_levels`, or fewer than two outputs are allowed.

    """
    _check(sensitivity, reach)
    if reach < 2:  # noqa: PLR2004 - both ends
        raise ValueError("feedback needs two levels or more")
    return max(reach, (reach - 2) * span // sensitivity + 1)


def reach_of(cuts: IntArray, sensitivity: int) -> int:
    """Return how many cells a window of length ``sensitivity`` can touch, by counting the actual cuts.

    One plus the most cuts in any half-open window of that length (theory A1, for equal and unequal cells).
    """
    if len(cuts) == 0:
        return 1
    ends = np.searchsorted(cuts, cuts + (sensitivity - 1), side="right")
    return 1 + int(np.max(ends - np.arange(len(cuts))))


def reach_in(book: Codebook, sensitivity: int) -> int:
    """Return how many outputs one member reaches in a group's codebook.

    Under feedback the carried error takes the integers of ``[−⌊d/2⌋, ⌈d/2⌉ − 1]``, d the largest gap, so the
    window is longer by d − 1.
    """
    carried = book.largest_gap - 1 if book.rounding is Rounding.FEEDBACK else 0
    return reach_of(book.cuts, sensitivity + carried)


def group_codebook(
    members: Reach,
    reach: int,
    rounding: Rounding = Rounding.NEAREST,
    calibration: Calibration = "certified",
) -> Codebook:
    """Return the uniform codebook of a sum in which one member reaches at most ``reach`` outputs.

    Args:
        members: span and sensitivity.
        reach: k.
        rounding: nearest or feedback.
        calibration: "paper" for [NP] Theorem 8, which reaches one more; for studies only.

    Raises:
        ValueError: as the level rules and :func:`gateway.privacy.codebooks.uniform`.

    """
    span = members.upper - members.lower
    if calibration == "paper":
        if rounding is not Rounding.NEAREST:
            raise ValueError("Theorem 8 is about rounding to nearest")
        return uniform(members.lower, members.upper, paper_levels(span, members.sensitivity, reach))
    if rounding is Rounding.NEAREST:
        return uniform(members.lower, members.upper, certified_levels(span, members.sensitivity, reach))
    if rounding is not Rounding.FEEDBACK:
        raise ValueError("a group rounds to nearest or with feedback")
    levels = min(feedback_levels(span, members.sensitivity, reach), MAX_CELLS)
    while True:
        book = both_ends(members.lower, members.upper, levels, rounding)
        # Gaps of integers differ by one: the formula for reals may be one level too many.
        if reach_in(book, members.sensitivity) <= reach or levels == reach:
            return book
        levels -= 1


class Groups:
    """All group queries of a roll, summed and quantized in one call.

    Args:
        members: for each group the (m,) positions of its members in the roll, without repeats.
        codebooks: of the sums; one per group unless ``book_of`` says which.
        weights: for each group the (m,) public integer weights of its members; ones unless given.
        book_of: (g,) index into ``codebooks`` for each group.

    """

    def __init__(
        self,
        members: Sequence[IntArray],
        codebooks: Sequence[Codebook],
        weights: Sequence[IntArray] | None = None,
        book_of: IntArray | None = None,
    ) -> None:
        sizes = np.array([len(positions) for positions in members], np.int64)
        self.members = np.concatenate(members) if members else np.zeros(0, np.int64)
        self.weights = np.concatenate(weights) if weights else np.ones(len(self.members), np.int64)
        self.starts = np.cumsum(sizes) - sizes
        self.group_of = np.repeat(np.arange(len(sizes)), sizes)
        self.book_of = np.arange(len(sizes)) if book_of is None else book_of
        self.shelf = Shelf(codebooks, self.book_of) if codebooks else None
        self.feedback = self.shelf.feedback if self.shelf else np.zeros(0, np.bool_)

    def __len__(self) -> int:
        return len(self.starts)

    def reach(self, lower: IntArray, upper: IntArray) -> IntArray:
        """Return (g,) outputs that one member can reach, given (n,) ranges of the roll (mW)."""
        if self.shelf is None:
            return np.zeros(0, np.int64)
        moves = (upper - lower)[self.members] * np.abs(self.weights)
        sensitivity = np.maximum.reduceat(moves, self.starts)
        books = zip(self.book_of.tolist(), sensitivity.tolist(), strict=True)
        return np.array([reach_in(self.shelf.codebooks[book], widest) for book, widest in books], np.int64)

    def sums(self, values: IntArray) -> IntArray:
        """Return (g,) exact weighted sums of (n,) household values (mW)."""
        if self.shelf is None:
            return np.zeros(0, np.int64)
        return np.add.reduceat(values[self.members] * self.weights, self.starts)

    def any_member(self, flags: BoolArray) -> BoolArray:
        """Return (g,) whether any member's flag is set."""
        if self.shelf is None:
            return np.zeros(0, np.bool_)
        return np.logical_or.reduceat(flags[self.members], self.starts)


def _check(sensitivity: int, reach: int) -> None:
    if sensitivity < 1 or reach < 1:
        raise ValueError("a group needs a member with a range, and at least one level")
