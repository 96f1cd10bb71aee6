"""The rows of the study of disaggregation: what its figures and findings are made from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

MEAN = "mean of all"
OPTIMISATION, CLASSIFIER = "combinatorial optimisation", "trained classifier"


class Score(NamedTuple):
    """One row of the table of scores: an F-score, averaged over cuts between training and attack.

    Attributes:
        home: which home.
        appliance: which appliance, or the mean of all.
        attacker: who guessed.
        codebook: uniform, fitted or unprotected.
        rounding: of the codebook.
        levels: of the codebook; None for unprotected readings.
        epsilon_bits: log2 of them.
        f_score: the mean over cuts.
        f_low: lower end of the middle 95 % of what one attack scores, over cuts and resampled days.
        f_high: its upper end.
        cuts: how many cuts there were, each with an attacker of its own.
        least: the lowest score of a cut.
        most: the highest.

    """

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
    cuts: int
    least: float
    most: float


class Trial(NamedTuple):
    """One row of the table of cuts: the mean F-score over appliances of one attacker, trained before one day."""

    home: str
    attacker: str
    codebook: str
    rounding: str
    levels: int | None
    first_attacked: str
    f_score: float


class Chance(NamedTuple):
    """One row of the table of chance: how often an appliance is on, and the F-score of always saying so."""

    home: str
    appliance: str
    on_share: float
    always_on_f: float


def homes_of(scores: Sequence[Score]) -> list[str]:
    """Return the homes in the order of the rows."""
    return list(dict.fromkeys(score.home for score in scores))
