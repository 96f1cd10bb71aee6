"""What the policy that blurs a body-mass index of 30 does to a survey: to its mean, and to its histograms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from gateway.privacy import BoolArray, IntArray
from gateway.privacy.hypothesis_tests import blinded
from gateway.privacy.regions import FloatArray
from simulators.studies._respondents import Respondents
from simulators.studies.study import Table

INDEX, COEFFICIENT = 30, Fraction(3, 1000)
"""A body-mass index of 30 as a weight: ``3·h²/1000`` kg at h cm."""

_BIN_KG, _BIN_INDEX = 5, 1

_SHIFT_COLUMNS = (
    *("band_kg", "hidden", "hidden_below", "mean_weight", "mean_shift", "spread"),
    *("density_shift_weight", "density_shift_index", "largest_change", "mean_change"),
)


def shifts(people: Respondents, bands: Sequence[Fraction]) -> Table:
    """Return what each band (kg) does to a survey's mean and histograms."""
    return Table(_SHIFT_COLUMNS, [_shift(people, float(band)) for band in bands])


def _shift(people: Respondents, band: float) -> tuple[object, ...]:
    """Return what the policy does to a survey.

    A density shift is half the sum of the absolute differences of both histograms: the share of people
    that would have to move to another bin. ``hidden_below`` is how many of the hidden are below the threshold,
    which is how often somebody is right who says so of all of them.
    """
    released, hidden = _released(people, band), _hidden(people, band)
    below = people.weights[hidden] < _thresholds(people)[hidden]
    mean = float(released.mean())
    return (
        band,
        float(hidden.mean()),
        float(below.mean()) if len(below) else float("nan"),
        mean,
        mean - float(people.weights.mean()),
        float(released.std()),
        _density_shift(people.weights, released, _BIN_KG),
        _density_shift(_index(people, people.weights), _index(people, released), _BIN_INDEX),
        float(np.max(np.abs(released - people.weights))),
        float(np.mean(np.abs(released - people.weights))),
    )


def _thresholds(people: Respondents) -> FloatArray:
    return float(COEFFICIENT) * people.heights**2


def _released(people: Respondents, band: float) -> FloatArray:
    return blinded(people.weights, _thresholds(people), band)


def _hidden(people: Respondents, band: float) -> BoolArray:
    """Return whose released weight is a threshold that she may lie above or below."""
    return (np.abs(people.weights - _thresholds(people)) <= band) & (band > 0)


def _weight(people: Respondents, weights: FloatArray) -> FloatArray:
    del people
    return weights


def _index(people: Respondents, weights: FloatArray) -> FloatArray:
    """Return the body-mass index ``kg/m²``."""
    return weights / (people.heights / 100) ** 2


def weight_histogram(people: Respondents, bands: Sequence[Fraction]) -> Table:
    """Return the histogram of weights, as answered and as released with each band (kg)."""
    return _histogram(people, _weight, _BIN_KG, bands)


def index_histogram(people: Respondents, bands: Sequence[Fraction]) -> Table:
    """Return the histogram of body-mass indices, as answered and as released with each band (kg)."""
    return _histogram(people, _index, _BIN_INDEX, bands)


def _histogram(
    people: Respondents,
    seen: Callable[[Respondents, FloatArray], FloatArray],
    width: int,
    bands: Sequence[Fraction],
) -> Table:
    """Return the share of people in each bin, as they answered and as released with each band shown."""
    answered = seen(people, people.weights)
    released = [seen(people, _released(people, float(band))) for band in bands]
    first, last = int(answered.min() // width), int(answered.max() // width)
    shares = [_counts(data, width, first, last) / len(data) for data in (answered, *released)]
    names = ("answered", *(f"released_{band}_kg" for band in bands))
    rows = [
        ((first + at) * width, (first + at + 1) * width, *(float(share[at]) for share in shares))
        for at in range(last - first + 1)
    ]
    return Table(("from", "to", *names), rows)


def _density_shift(one: FloatArray, other: FloatArray, width: int) -> float:
    first = int(min(one.min(), other.min()) // width)
    last = int(max(one.max(), other.max()) // width)
    apart = _counts(one, width, first, last) - _counts(other, width, first, last)
    return float(np.abs(apart).sum() / 2 / len(one))


def _counts(data: FloatArray, width: int, first: int, last: int) -> IntArray:
    """Return how many fall into each bin; what exceeds an end is counted there.

    A released threshold is an index of 30 exactly, up to rounding: it belongs to the bin that starts there.
    """
    bins = np.floor(data / width + 1e-9).astype(np.int64) - first
    return np.bincount(np.clip(bins, 0, last - first), minlength=last - first + 1).astype(np.int64)
