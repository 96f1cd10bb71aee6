"""People with a height and a weight: a survey's respondents, or simulated ones ([HT] V)."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gateway.privacy.regions import FloatArray
from simulators.studies.study import Settings

FILE = Path("young_people_survey") / "responses.csv"
"""The survey's answers below the folder of data sets."""

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
    path = None if settings.data is None else settings.data / FILE
    if path is not None and path.exists():
        return read(path)
    count = _SIMULATED_QUICK if settings.quick else _SIMULATED
    return simulated(count, settings.seed)


def read(path: Path) -> Respondents:
    """Return everybody who gave both numbers, less those whose height nobody has.

    Raises:
        OSError: it cannot be read.
        ValueError: a column is missing, an answer is not a number, or nobody is left.

    """
    with path.open(newline="", encoding="utf-8") as file:
        try:
            answers = [(_number(row["Height"]), _number(row["Weight"])) for row in csv.DictReader(file)]
        except (KeyError, TypeError) as absent:
            raise ValueError(f"{path.name}: every row needs Height and Weight") from absent
    heights, weights = np.array(answers, np.float64).reshape(-1, 2).T
    given = ~np.isnan(heights + weights)
    kept = given & (heights >= LEAST_HEIGHT) & (heights <= MOST_HEIGHT)
    if not kept.any():
        raise ValueError(f"{path.name}: nobody gave a height and a weight")
    missing, typos = len(given) - int(given.sum()), int(given.sum() - kept.sum())
    name = (
        f"{int(kept.sum()):,} of {len(kept):,} respondents of the Young People Survey, Slovakia 2013"
        f" ({missing} without height or weight and {typos} with a height below 100 or above 250 cm left out)"
    )
    return Respondents(name, heights[kept], weights[kept])


def simulated(count: int, seed: int) -> Respondents:
    """Return made-up adults: half of them women, a body-mass index around 22, whole numbers as in a survey."""
    rng = np.random.default_rng(seed)
    women = rng.random(count) < 1 / 2
    heights = np.rint(rng.normal(np.where(women, 168, 181), 7))
    index = np.exp(rng.normal(np.log(22), 0.15, count))
    name = f"{count:,} simulated respondents, seed {seed}"
    return Respondents(name, heights, np.rint(index * (heights / 100) ** 2))


def _number(text: str) -> float:
    return float("nan") if text in {"", "NA", "NaN"} else float(text)
