"""The figures of the study of disaggregation, drawn from its tables."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from simulators.studies._charts import Panel, Point, against_bits
from simulators.studies._disaggregation_rows import CLASSIFIER, MEAN, OPTIMISATION, Chance, Score, homes_of
from simulators.studies._releases import RAW

_BLIND = "blind: always on"
_SAID = "one release a minute, 0 to 14 kW; over cuts and attacked days"


def draw_means(scores: Sequence[Score], chances: Sequence[Chance]) -> Figure:
    """Draw the mean over appliances: a row of panels per attacker, a column per home."""
    rows = [
        [_panel(scores, chances, (home, MEAN, attacker), attacker) for home in homes_of(scores)]
        for attacker in (OPTIMISATION, CLASSIFIER)
    ]
    return against_bits(rows, f"Mean F-score over appliances\n{_SAID}", "F-score", _BLIND)


def draw_appliances(scores: Sequence[Score], chances: Sequence[Chance]) -> Figure:
    """Draw a panel per appliance, a row per home: what the stronger attacker finds."""
    rows = [
        [
            _panel(scores, chances, (home, chance.appliance, CLASSIFIER), chance.appliance)
            for chance in chances
            if chance.home == home and chance.appliance != MEAN
        ]
        for home in homes_of(scores)
    ]
    return against_bits(rows, f"F-score per appliance, {CLASSIFIER}\n{_SAID}", "F-score", _BLIND)


def _panel(scores: Sequence[Score], chances: Sequence[Chance], key: tuple[str, str, str], what: str) -> Panel:
    mine = [score for score in scores if score[:3] == key]
    return Panel(
        f"{key[0]}\n{what}",
        [
            Point(
                score.codebook, score.rounding, score.epsilon_bits, score.f_score, score.f_low, score.f_high
            )
            for score in mine
        ],
        next(score.f_score for score in mine if score.codebook == RAW),
        next(chance.always_on_f for chance in chances if chance[:2] == key[:2]),
    )
