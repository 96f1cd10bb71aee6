"""Who is in a group? Three adversaries of [NP] V-A, who hold a home's readings and see a group's releases.

Each scores how well a home fits a released series: who fits best is named. Series lie along the last axis, the
others are games or candidates, so that thousands are scored in one call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from gateway.privacy import BoolArray

FloatArray = npt.NDArray[np.float64]

Adversary = Callable[[FloatArray, FloatArray], FloatArray]
"""Given (…, t) released values and (…, t) readings of a home in the same unit: (…) scores, more is likelier."""


def correlation(released: FloatArray, readings: FloatArray) -> FloatArray:
    """Score by Pearson's correlation; 0 where either series does not vary."""
    one, other = _centred(released), _centred(readings)
    lengths = np.sqrt(np.einsum("...t,...t->...", one, one) * np.einsum("...t,...t->...", other, other))
    together = np.einsum("...t,...t->...", one, other)
    scores: FloatArray = np.divide(together, lengths, out=np.zeros_like(together), where=lengths > 0)
    return scores


def squared_error(released: FloatArray, readings: FloatArray) -> FloatArray:
    """Score by the negative sum of squared differences."""
    apart = released - readings
    scores: FloatArray = -np.einsum("...t,...t->...", apart, apart)
    return scores


def common_peaks(released: FloatArray, readings: FloatArray) -> FloatArray:
    """Score by the number of slots that are peaks of both; a peak rises, and does not rise on."""
    return np.count_nonzero(_peaks(released) & _peaks(readings), axis=-1).astype(np.float64)


ADVERSARIES: Mapping[str, Adversary] = MappingProxyType(
    {"correlation": correlation, "squared error": squared_error, "common peaks": common_peaks}
)
"""The paper's adversaries by name."""


def names_second(first: FloatArray, second: FloatArray, coins: BoolArray) -> BoolArray:
    """Return where the second candidate is named, given both scores; a tie is decided by the coin."""
    return np.where(first == second, coins, second > first)


def _centred(series: FloatArray) -> FloatArray:
    centred: FloatArray = series - series.mean(axis=-1, keepdims=True)
    # What a mean of equal numbers is off by is not a variation: without this, a constant would correlate.
    centred[np.ptp(series, axis=-1) == 0] = 0
    return centred


def _peaks(series: FloatArray) -> BoolArray:
    inner = series[..., 1:-1]
    peaks: BoolArray = (inner > series[..., :-2]) & (inner >= series[..., 2:])
    return peaks
