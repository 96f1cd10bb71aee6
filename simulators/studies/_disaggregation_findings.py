"""What the study of disaggregation found, in sentences with its own numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from simulators.studies._disaggregation_rows import (
    CLASSIFIER,
    MEAN,
    OPTIMISATION,
    Chance,
    Score,
    homes_of,
)
from simulators.studies._releases import RAW
from simulators.studies._sentences import by_levels

_METHOD = (
    "Scores are means over cuts between training and attack, each with an attacker of its own. In brackets is the"
    " middle 95 % of what one attack scores, over cuts and resampled days together. Blind is always saying on:"
    " 2p/(1+p) for what is on for a share p of the time; always saying off scores 0, guessing at the base rate p."
    " Fitted codebooks were fitted to the first half of the other home, never to the one attacked. The paper's"
    " attacker is combinatorial optimisation. The classifier had a meter on each appliance in the same home until the"
    " cut: near the worst case."
)


def findings(scores: Sequence[Score], chances: Sequence[Chance]) -> list[str]:
    """Return what each attacker got in each home, whether it falls smoothly, and what is seen best at one bit."""
    homes = homes_of(scores)
    blind = {chance.home: chance.always_on_f for chance in chances if chance.appliance == MEAN}
    each = [(home, attacker) for attacker in (OPTIMISATION, CLASSIFIER) for home in homes]
    means = {of: [score for score in scores if score[:3] == (of[0], MEAN, of[1])] for of in each}
    return [
        *(_fall(of, mine, blind[of[0]]) for of, mine in means.items()),
        *(_beyond_readings(of, mine) for of, mine in means.items()),
        *(_smooth(of, mine) for of, mine in means.items()),
        *(_most_exposed(scores, home) for home in homes),
        _METHOD,
    ]


def _fall(of: tuple[str, str], scores: Sequence[Score], blind: float) -> str:
    raw = next(score for score in scores if score.codebook == RAW)
    return (
        f"{of[0]}, {of[1]}: mean F-score {raw.f_score:.2f} ({raw.f_low:.2f} to {raw.f_high:.2f}) unprotected,"
        f" {raw.least:.2f} to {raw.most:.2f} at single cuts ({raw.cuts} of them); {blind:.2f} blind."
        f" {by_levels(scores, lambda score: score.f_score)}"
    )


def _beyond_readings(of: tuple[str, str], scores: Sequence[Score]) -> str:
    """Say whether releases score above the readings themselves: whether a whole interval lies above theirs."""
    raw = next(score for score in scores if score.codebook == RAW)
    quantized = [score for score in scores if score.codebook != RAW]
    above = sum(score.f_low > raw.f_high for score in quantized)
    best = max(quantized, key=lambda score: score.f_score)
    return (
        f"{of[0]}, {of[1]}: the interval lies above that of the readings for {above} of {len(quantized)} codebooks."
        f" Highest are {_cells(best)} with {best.f_score:.2f} ({best.f_low:.2f} to {best.f_high:.2f}), at single cuts"
        f" {best.least:.2f} to {best.most:.2f}."
    )


def _smooth(of: tuple[str, str], scores: Sequence[Score]) -> str:
    """Say where more levels score less, by intervals that do not meet."""
    steps = [
        (fewer, more) for fewer, more in pairwise(scores) if fewer.codebook != RAW and fewer[3:5] == more[3:5]
    ]
    falls = [(fewer, more) for fewer, more in steps if more.f_high < fewer.f_low]
    listed = "; ".join(
        f"{fewer.f_score:.2f} to {more.f_score:.2f} from {_cells(fewer)} to {more.levels}"
        for fewer, more in falls
    )
    said = (
        f"{of[0]}, {of[1]}: more levels score less, by intervals that do not meet, in {len(falls)} of"
        f" {len(steps)} steps"
    )
    return f"{said}: {listed}." if falls else f"{said}."


def _cells(score: Score) -> str:
    return f"{score.levels} {score.codebook} levels ({score.rounding})"


def _most_exposed(scores: Sequence[Score], home: str) -> str:
    """Say which appliance is still seen best at one bit, by whom, and with which codebook."""
    one_bit = [s for s in scores if s.home == home and s.epsilon_bits == 1 and s.appliance != MEAN]
    worst = max(one_bit, key=lambda score: score.f_score)
    raw = next(s.f_score for s in scores if s[:3] == worst[:3] and s.codebook == RAW)
    return (
        f"{home}: seen best at 1 bit a release is {worst.appliance}, {worst.f_score:.2f} ({worst.f_low:.2f} to"
        f" {worst.f_high:.2f}; {raw:.2f} unprotected), by the {worst.attacker} on {worst.codebook} cells"
        f" ({worst.rounding})."
    )
