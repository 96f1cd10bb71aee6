"""People with a height and a weight: a survey's respondents, or simulated ones ([HT] V)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from gateway.privacy.regions import FloatArray
from simulators.studies.data import SURVEY, columns_of, find, reading, stand_in
from simulators.studies.study import Settings

LEAST_HEIGHT, MOST_HEIGHT = 100.0, 250.0
"""Heights outside (cm) are taken for typing errors: [DP]'s public range of heights."""

_SIMULATED, _SIMULATED_QUICK = 1_000, 300


class Respondents(NamedTuple):
    """Heights (cm) and weights (kg) of the same people, and where they are from."""

    name: str
    heights: FloatArray
    weights: FloatArray


def respondents_of(settings: Settings) -> Respondents:
    """Return the survey's respondents where they are, else simulated ones."""
    path = find(settings.data, SURVEY)
    if path is not None:
        return read(path)
    count = _SIMULATED_QUICK if settings.quick else _SIMULATED
    made = stand_in(settings, SURVEY, f"{count:,} simulated respondents")
    return Respondents(f"{made}, seed {settings.seed}", *simulated(count, settings.seed))


def read(path: Path) -> Respondents:
    """Return everybody who gave both numbers, less those whose height nobody has.

    Raises:
        OSError: it cannot be read.
        ValueError: a column is missing, an answer is not a number, or nobody is left.

    """
    with reading(path) as file:
        heights, weights = columns_of(file, ("Height", "Weight")).T
        given = ~np.isnan(heights + weights)
        kept = given & (heights >= LEAST_HEIGHT) & (heights <= MOST_HEIGHT)
        if not kept.any():
            raise ValueError("nobody gave a height and a weight")
    missing, typos = len(given) - int(given.sum()), int(given.sum() - kept.sum())
    name = (
        f"{int(kept.sum()):,} of {len(kept):,} respondents of the Young People Survey, Slovakia 2013"
        f" ({missing} without height or weight and {typos} with a height below 100 or above 250 cm left out)"
    )
    return Respondents(name, heights[kept], weights[kept])


def simulated(count: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return heights and weights of made-up adults, half of them women, in whole cm and kg as in a survey."""
    rng = np.random.default_rng(seed)
    women = rng.random(count) < 1 / 2
    heights = np.rint(rng.normal(np.where(women, 168, 181), 7))
    index = np.exp(rng.normal(np.log(22), 0.15, count))
    return heights, np.rint(index * (heights / 100) ** 2)
