"""What non-stochastic tests can decide, exactly: the examples of [HT], and of presence under a codebook."""

from __future__ import annotations

import csv
from fractions import Fraction
from math import log
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gateway.privacy import Codebook
from gateway.privacy.hypothesis_tests import (
    blinded,
    consistent_test,
    performance_bits,
    performance_nats,
    undecidable_share,
    undecidable_share_under_square,
)
from gateway.privacy.intervals import Interval, closed

FloatArray = npt.NDArray[np.float64]
_BMI = Fraction(3, 1000)
_WEIGHT, _HEIGHT = Fraction(200), Fraction(250)
_BANDS_KG = (0, 1, 2, 5, 10, 15, 20, 30)
_PLAUSIBLE_CM, _PLAUSIBLE_KG = (120, 250), (30, 200)


class Presence(NamedTuple):
    """What one release decides about presence, from what is possible alone.

    Attributes:
        performance_bits: ``P(T)`` of the best tests; −∞ when no output decides.
        decides: (k,) whether each symbol proves that somebody is home.
        undecided_range: the share of the range whose readings leave it open.

    """

    performance_bits: float
    decides: npt.NDArray[np.bool_]
    undecided_range: float


class BodyMass(NamedTuple):
    """One row of [HT]'s example: a band 1/ρ (kg) and what it hides.

    Attributes:
        band_kg: 1/ρ.
        undecidable_range: the exact undecidable share of the range of weight and height.
        undecidable_people: the share of people within the band; None without people.
        mean_error_kg: of their released weights.

    """

    band_kg: int
    undecidable_range: float
    undecidable_people: float | None
    mean_error_kg: float | None


def presence(book: Codebook, empty: tuple[int, int]) -> Presence:
    """Return what the best test of "is anyone home?" decides at each output, rounded to nearest.

    Empty, a home draws a power in ``empty``; with people in it, that or anything above. So no output proves
    that nobody is home, and those that an empty home cannot give prove that somebody is.

    Args:
        book: the codebook.
        empty: the least and the largest power of the empty home (mW), in the codebook's range.

    """
    low, high = book.encode(np.array(empty)).tolist()
    away, home = set(range(low, high + 1)), set(range(low, book.levels))
    test = consistent_test(away, home)
    decides = np.array([test.get(symbol) is True for symbol in range(book.levels)])
    width = book.cell(high)[1] - empty[0]
    return Presence(performance_bits(away, home), decides, width / (book.upper - empty[0]))


def golden_rows() -> list[tuple[str, float, float]]:
    """Return what [HT] reports beside what exact arithmetic gives: (what, paper, here)."""
    rows = [
        (f"P(T) − h0(Y) in nats, heights 100 to 250 cm with an error of ±{error}, H: above 150", paper, here)
        for error, paper in ((10, -0.1252), (20, -0.2364))
        for here in (_heights(error),)
    ]
    share = undecidable_share(Fraction(0), Fraction(100), Fraction(105), Fraction(10))
    # The band [95, 115] covers 5 of 100, and there all have one hypothesis (theory E3).
    return [*rows, ("undecidable share of [0, 100], threshold 105, band ±10", 0.05, float(share))]


def _heights(error: int) -> float:
    given_p0 = [closed(100 - error, 150 + error)]
    given_p1 = [Interval(Fraction(150 - error), Fraction(250 + error), closed_low=False, closed_high=True)]
    return performance_nats(given_p0, given_p1) - log(150 + 2 * error)


def body_mass_rows(people: FloatArray | None) -> list[BodyMass]:
    """Return what bands of several widths hide.

    Weight is released by [HT]'s Theorem 3, the hypothesis is a body-mass index above 30.

    Args:
        people: (n, 2) weights (kg) and heights (cm); None leaves their columns empty.

    """
    rows: list[BodyMass] = []
    for band in _BANDS_KG:
        exact = float(undecidable_share_under_square(_BMI, _WEIGHT, _HEIGHT, Fraction(band)))
        if people is None:
            rows.append(BodyMass(band, exact, None, None))
            continue
        weight, threshold = people[:, 0], float(_BMI) * people[:, 1] ** 2
        released = blinded(weight, threshold, band)
        hidden = float(np.mean(np.abs(weight - threshold) <= band)) if band else 0.0
        rows.append(BodyMass(band, exact, hidden, float(np.mean(np.abs(released - weight)))))
    return rows


def surveyed(folder: Path | None) -> FloatArray | None:
    """Return (n, 2) weights (kg) and heights (cm) of the young people's survey; gaps and misprints left out.

    None where the folder of data has no ``young_people_survey/responses.csv``.

    Raises:
        OSError: it cannot be read.

    """
    path = None if folder is None else folder / "young_people_survey" / "responses.csv"
    if path is None or not path.exists():
        return None
    with path.open(encoding="utf-8") as file:
        table = [(row["Weight"], row["Height"]) for row in csv.DictReader(file)]
    people = np.array([(float(weight), float(height)) for weight, height in table if weight and height])
    within = [
        (column >= low) & (column <= high)
        for column, (low, high) in zip(people.T, (_PLAUSIBLE_KG, _PLAUSIBLE_CM), strict=True)
    ]
    kept: FloatArray = people[within[0] & within[1]]
    return kept
