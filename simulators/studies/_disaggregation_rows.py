"""The rows of the study of disaggregation: what its figures and findings are made from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

MEAN = "mean of all"
OPTIMISATION, CLASSIFIER = "combinatorial optimisation", "trained classifier"


class Score(NamedTuple):
    """One row of the table of scores: an F-score with the 95 % interval of resampled days."""

    home: str
    appliance: str
    attacker: str
    codebook: str
    rounding: str
    levels: int | None
    epsilon_bits: float | None
    f_score: float
    f_low: float
    f_high: float


class Chance(NamedTuple):
    """One row of the table of chance: how often an appliance is on, and the F-score of always saying so."""

    home: str
    appliance: str
    on_share: float
    always_on_f: float


def homes_of(scores: Sequence[Score]) -> list[str]:
    """Return the homes in the order of the rows."""
    return list(dict.fromkeys(score.home for score in scores))
