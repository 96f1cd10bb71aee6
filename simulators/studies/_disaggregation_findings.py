"""What the study of disaggregation found, in sentences with its own numbers."""

from __future__ import annotations

from collections.abc import Sequence

from simulators.studies._disaggregation_rows import CLASSIFIER, MEAN, OPTIMISATION, Chance, Score, homes_of
from simulators.studies._releases import RAW
from simulators.studies._sentences import by_levels

_METHOD = (
    "Intervals are 95 %, over resampled days. Blind is always saying on: 2p/(1+p) for what is on for a share p of"
    " the time; always saying off scores 0, guessing at the base rate p. Fitted codebooks were fitted to the first"
    " half of the other home, never to the one attacked. The paper's attacker is combinatorial optimisation. The"
    " classifier had a meter on each appliance in the same home for the whole training half: near the worst case."
)


def findings(scores: Sequence[Score], chances: Sequence[Chance]) -> list[str]:
    """Return what each attacker got in each home, what is seen best at one bit, and how to read it."""
    homes = homes_of(scores)
    blind = {chance.home: chance.always_on_f for chance in chances if chance.appliance == MEAN}
    found = [
        _fall(home, attacker, [s for s in scores if s[:3] == (home, MEAN, attacker)], blind[home])
        for attacker in (OPTIMISATION, CLASSIFIER)
        for home in homes
    ]
    helped = [sentence for home in homes for sentence in _helped(scores, home)]
    return [*found, *helped, *(_most_exposed(scores, home) for home in homes), _METHOD]


def _fall(home: str, attacker: str, scores: Sequence[Score], blind: float) -> str:
    raw = next(score for score in scores if score.codebook == RAW)
    return (
        f"{home}, {attacker}: mean F-score {raw.f_score:.2f} ({raw.f_low:.2f} to {raw.f_high:.2f}) unprotected,"
        f" {blind:.2f} blind. {by_levels(scores, lambda score: score.f_score)}"
    )


def _helped(scores: Sequence[Score], home: str) -> list[str]:
    """Say where combinatorial optimisation did better on releases than on the readings themselves."""
    mine = [score for score in scores if score[:3] == (home, MEAN, OPTIMISATION)]
    raw = next(score for score in mine if score.codebook == RAW)
    better = [score for score in mine if score.f_low > raw.f_high]
    if not better:
        return []
    best = max(better, key=lambda score: score.f_score)
    sentence = (
        f"{home}: quantizing even helps combinatorial optimisation, {best.f_score:.2f} ({best.f_low:.2f} to"
        f" {best.f_high:.2f}) with {best.levels} {best.codebook} cells ({best.rounding}) against"
        f" {raw.f_score:.2f} ({raw.f_low:.2f} to {raw.f_high:.2f}) unprotected: a low score of this attacker is"
        " no proof of privacy."
    )
    return [sentence]


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
