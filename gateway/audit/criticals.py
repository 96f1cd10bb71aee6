"""Where outputs can change: the critical totals of the others, and the critical values of one household."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gateway.audit.bench import Seat
from gateway.privacy import Codebook, IntArray, Rounding

_MOST_TOTALS = 1 << 15
_BEYOND = 10**9


def critical_totals(seat: Seat, own: Codebook) -> IntArray:
    """Return the totals of the others at which a cut enters or leaves her reach, and those between.

    Each cut shifted by either end of her contribution, one unit to either side, the middles between those, and
    the ends. For very large groups totals that put the same cuts at the same places count once.
    """
    ends = np.sort(np.array([seat.weight * own.lower, seat.weight * own.upper], np.int64))
    shifted = (seat.codebook.cuts[:, None] - ends[None, :]).ravel()
    around = np.concatenate((shifted - 1, shifted, shifted + 1, np.array(seat.others, np.int64)))
    exact = np.unique(np.clip(around, *seat.others))
    totals = np.union1d(exact, exact[:-1] + np.diff(exact) // 2)
    return totals if len(totals) <= _MOST_TOTALS else _distinct_places(seat, totals, ends)


def critical_values(seats: Sequence[Seat], own: Codebook, totals: IntArray) -> IntArray:
    """Return (R, X) values of hers, rising, around every cut that she can reach; totals are (g, R)."""
    near = [own.lower - _BEYOND, own.lower, own.lower + 1, own.upper - 1, own.upper, own.upper + _BEYOND]
    cuts = np.concatenate((own.cuts, own.values))
    fixed = np.concatenate((np.array(near, np.int64), cuts - 1, cuts, cuts + 1))
    blocks = [np.repeat(np.unique(fixed)[None, :], totals.shape[1], axis=0)]
    for seat, row in zip(seats, totals, strict=True):
        if seat.weight:
            reached = reachable_cuts(seat, own, row) - row[:, None]
            crossing = reached // seat.weight
            blocks += [np.clip(crossing + step, own.lower, own.upper) for step in (-1, 0, 1)]
    return np.sort(np.concatenate(blocks, axis=1), axis=1)


def critical_residuals(book: Codebook, values: IntArray, cuts: IntArray) -> IntArray:
    """Return (..., E) of what feedback may have left over: its ends, and what just lifts a value to a cut.

    Args:
        book: with feedback; else nothing is left over.
        values: (...) what is added to it.
        cuts: (..., c) the cuts near each of them.

    """
    if book.rounding is not Rounding.FEEDBACK:
        return np.zeros((*values.shape, 1), np.int64)
    least, most = residual_interval(book)
    lifts = cuts - values[..., None]
    ends = np.broadcast_to(np.array([least, 0, most], np.int64), (*values.shape, 3))
    return np.clip(np.concatenate((ends, lifts, lifts - 1), axis=-1), least, most)


def residual_interval(book: Codebook) -> tuple[int, int]:
    """Return the least and the most that feedback can leave over: half the largest gap, ties going up."""
    gap = book.largest_gap
    return -(gap // 2), max(0, -(-gap // 2) - 1)


def reachable_cuts(seat: Seat, own: Codebook, totals: IntArray) -> IntArray:
    """Return (R, c) the group's cuts that she can reach for each of (R,) totals, and one to either side."""
    cuts = seat.codebook.cuts
    if len(cuts) == 0:
        return np.full((len(totals), 1), seat.codebook.upper, np.int64)
    least = min(seat.weight * own.lower, seat.weight * own.upper)
    most = max(seat.weight * own.lower, seat.weight * own.upper)
    first = np.searchsorted(cuts, totals + least, side="right") - 1
    last = np.searchsorted(cuts, totals + most, side="right") + 1
    width = int((last - first).max())
    near: IntArray = cuts[np.clip(first[:, None] + np.arange(width)[None, :], 0, len(cuts) - 1)]
    return near


def _distinct_places(seat: Seat, totals: IntArray, ends: IntArray) -> IntArray:
    """Return one total for every way in which cuts can lie within reach, the outermost included."""
    cuts = seat.codebook.cuts
    first = np.searchsorted(cuts, totals + ends[0], side="right")
    width = int((np.searchsorted(cuts, totals + ends[1], side="right") - first).max()) + 1
    padded = np.concatenate((cuts, np.full(width, seat.codebook.upper + 1)))
    places = padded[first[:, None] + np.arange(width)] - totals[:, None]
    inside = np.where(places <= ends[1], places, ends[1] + 1)
    _, kept = np.unique(inside, axis=0, return_index=True)
    return np.union1d(totals[kept], np.array(seat.others, np.int64))
