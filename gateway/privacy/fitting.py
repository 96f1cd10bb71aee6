"""Codebooks fitted to a *public* load profile: at the same k, a fraction of the error (theory A4).

Any k cells cost ``log2 k``, wherever the cuts are. Fitted to public data they leak nothing more; fitted to
the private data that they are used on, the cuts themselves would speak. Fitting happens once, before any
release: floats may decide where a cut lies, never in which cell a reading is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from gateway.privacy.accounting import IntArray
from gateway.privacy.codebooks import Codebook, Rounding, on_levels

FloatArray = npt.NDArray[np.float64]
_MOST_STEPS = 500
_BINS = 512
_MOST_POINTS = 600


def fitted(
    profile: IntArray,
    lower: int,
    upper: int,
    levels: int,
    *,
    rounding: Rounding = Rounding.NEAREST,
) -> Codebook:
    """Return the codebook with the least mean square error on a profile, by Lloyd and Max.

    Deterministic: Lloyd's steps from four starts (quantiles, companding, uniform, and the optimum over binned
    values), the best of the results. With feedback or dither the levels include both ends, and the others are
    fitted.

    Args:
        profile: public values (mW); clamped into the range.
        lower: the range's lower end (mW).
        upper: the range's upper end (mW).
        levels: k.
        rounding: what the codebook is for.

    Raises:
        ValueError: an empty profile, or more levels than the range holds.

    """
    if len(profile) == 0:
        raise ValueError("the profile is empty")
    if not 1 <= levels <= upper - lower:
        raise ValueError(f"{levels} levels do not fit on the integers of [{lower}, {upper}]")
    data = np.sort(np.clip(profile, lower, upper)).astype(np.float64)
    sums = np.concatenate(([0.0], np.cumsum(data)))
    ends = rounding is not Rounding.NEAREST
    starts = [start(data, lower, upper, levels) for start in _STARTS]
    if ends:
        for points in starts:
            points[0], points[-1] = lower, upper
    starts.extend(_optimum(data, lower, upper, levels, ends=ends))
    results = [_lloyd(data, sums, points, ends=ends) for points in starts]
    best = min(results, key=lambda points: _error(data, points))
    return on_levels(lower, upper, _integers(best, lower, upper, ends=ends), rounding)


def _quantiles(data: FloatArray, lower: int, upper: int, levels: int) -> FloatArray:
    del lower, upper
    return np.quantile(data, (np.arange(levels) + 0.5) / levels)


def _companded(data: FloatArray, lower: int, upper: int, levels: int) -> FloatArray:
    """Return points whose density is the cube root of the data's: the best for many levels (Bennett)."""
    counts, edges = np.histogram(data, _BINS, (lower, upper))
    mass = np.concatenate(([0.0], np.cumsum(np.cbrt(counts))))
    points: FloatArray = np.interp((np.arange(levels) + 0.5) / levels * mass[-1], mass, edges)
    return points


def _uniform(data: FloatArray, lower: int, upper: int, levels: int) -> FloatArray:
    del data
    return lower + (np.arange(levels) + 0.5) * (upper - lower) / levels


_STARTS: tuple[Callable[[FloatArray, int, int, int], FloatArray], ...] = (_quantiles, _companded, _uniform)


def _optimum(data: FloatArray, lower: int, upper: int, levels: int, *, ends: bool) -> list[FloatArray]:
    """Return the best points over at most ``_MOST_POINTS`` values, by dynamic programming; none if too few values."""
    values, weights = np.unique(data, return_counts=True)
    if len(values) > _MOST_POINTS:
        bins = np.linspace(0, len(data), _MOST_POINTS + 1).astype(np.int64)
        weights = np.diff(bins)
        values = np.diff(np.concatenate(([0.0], np.cumsum(data)))[bins]) / weights
    if len(values) < levels:
        return []
    moments = [np.concatenate(([0.0], np.cumsum(weights * values**power))) for power in (0, 1, 2)]
    fixed = {0: float(lower), levels - 1: float(upper)} if ends else {}
    cost = _costs(moments, fixed.get(0), 0)
    splits = []
    for cell in range(1, levels):
        totals = [
            cost[: end + 1] + _costs(moments, fixed.get(cell), 0, end)[: end + 1]
            for end in range(len(values) + 1)
        ]
        splits.append(np.array([int(np.argmin(total)) for total in totals]))
        cost = np.array([total.min() for total in totals])
    edges = [len(values)]
    for split in reversed(splits):
        edges.append(int(split[edges[-1]]))
    edges = [0, *reversed(edges)]
    mass, sums = moments[0][edges], moments[1][edges]
    points = np.diff(sums) / np.maximum(np.diff(mass), 1e-12)
    for cell, point in fixed.items():
        points[cell] = point
    return [np.maximum.accumulate(points)]


def _costs(
    moments: Sequence[FloatArray], point: float | None, start: int, end: int | None = None
) -> FloatArray:
    """Return the square errors of cells about a point, or their means: from ``start`` to each end, or to ``end``."""
    if end is None:
        count, total, square = (moment - moment[start] for moment in moments)
    else:
        count, total, square = (moment[end] - moment for moment in moments)
    about_mean = square - total**2 / np.maximum(count, 1e-12)
    costs: FloatArray = about_mean if point is None else square - 2 * point * total + point**2 * count
    return costs


def _lloyd(data: FloatArray, sums: FloatArray, points: FloatArray, *, ends: bool) -> FloatArray:
    """Return points moved to the means of their cells until they rest; the outer two stay at the ends."""
    points = points.copy()
    for _ in range(_MOST_STEPS):
        moved = _step(data, sums, points, ends=ends)
        if np.array_equal(moved, points):
            break
        points = moved
    return points


def _step(data: FloatArray, sums: FloatArray, points: FloatArray, *, ends: bool) -> FloatArray:
    borders = np.searchsorted(data, (points[:-1] + points[1:]) / 2)
    edges = np.concatenate(([0], borders, [len(data)]))
    counts = np.diff(edges)
    means = np.diff(sums[edges]) / np.maximum(counts, 1)
    moved = np.where(counts > 0, means, points)
    if ends:
        moved[[0, -1]] = points[[0, -1]]
    return moved


def _error(data: FloatArray, points: FloatArray) -> float:
    cells = np.searchsorted((points[:-1] + points[1:]) / 2, data, side="right")
    return float(np.mean((data - points[cells]) ** 2))


def _integers(points: FloatArray, lower: int, upper: int, *, ends: bool) -> IntArray:
    """Return strictly increasing integers in the range next to the points."""
    levels = np.rint(points).astype(np.int64)
    if ends:
        levels[0], levels[-1] = lower, upper
    step = np.arange(len(levels))
    rising = np.maximum.accumulate(levels - step) + step
    highest = upper - step[::-1]
    return np.minimum(np.maximum(rising, lower + step), highest)
