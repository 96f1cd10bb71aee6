"""One setting of the membership study: games of one size and length, played under several rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import log2
from typing import NamedTuple

import numpy as np

from gateway.policy import DEFAULT_RANGE_MW
from gateway.privacy import IntArray
from simulators.studies._membership_game import (
    UNPROTECTED,
    Outcome,
    Release,
    codebook_of,
    draw,
    plain,
    play,
    release_of,
    symbols_of,
)
from simulators.studies._membership_likelihood import Symbols, worked_out
from simulators.studies._membership_rows import OBSERVED, Row

WHOLE_SERIES = "ε for the whole series"
_HOURS_PER_DAY = 24


class Rule(NamedTuple):
    """A quantizer as it is asked for: a reading of the paper, the range of a home's readings, k."""

    reading: str
    range: str
    k: int


class Loads(NamedTuple):
    """Readings of all homes.

    Attributes:
        series: daily or half-hourly.
        readings: (homes, T) energies of what is released (mWh).
        per_day: slots a day.
        days: that the readings are from.

    """

    series: str
    readings: IntArray
    per_day: int
    days: int

    def top(self, kind: str) -> int:
        """Return the upper end of the range of one home's readings (mWh)."""
        if kind == OBSERVED:
            return int(self.readings.max())
        return DEFAULT_RANGE_MW[1] * _HOURS_PER_DAY // self.per_day


class Setting(NamedTuple):
    """Games of one group size and length, played under several rules.

    Attributes:
        table: that the rows belong to.
        loads: the readings.
        size: n.
        games: how many.
        releases: the length of the series, in slots.
        rules: the quantizers; the plain mean is played as well.
        days: that the series covers.
        tops: upper ends of ranges, by name (mWh).
        whole_bits: ε, where it was spent on the whole series.
        hours: of the day that are released, where not all are.
        draws: of the likelihood's others for each slot.
        likely: rules against which the likelihood plays as well.

    """

    table: str
    loads: Loads
    size: int
    games: int
    releases: int
    rules: Sequence[Rule]
    days: int
    tops: Mapping[str, int]
    whole_bits: int | None = None
    hours: str = ""
    draws: int = 0
    likely: Sequence[Rule] = ()

    def rows(self, rng: np.random.Generator) -> Iterator[Row]:
        """Play, and yield a row per rule and adversary."""
        homes, slots = self.loads.readings.shape
        starts = np.arange(0, slots - self.releases + 1, self.loads.per_day)
        games = draw(homes, self.size, self.games, rng, starts)
        releases: dict[Rule | None, Release] = {None: plain}
        releases |= {rule: self._release(rule) for rule in self.rules}
        symbols: dict[Rule | None, Symbols] = {
            rule: symbols_of(rule.reading, self.size, rule.k, self.tops[rule.range]) for rule in self.likely
        }
        likelihoods = worked_out(self.loads.readings, self.size, symbols, self.draws, rng)
        played = play(self.loads.readings, games, releases, self.releases, likelihoods)
        for rule, outcome in played.items():
            yield from self._told(rule, outcome)

    def _told(self, rule: Rule | None, outcome: Outcome) -> Iterator[Row]:
        for adversary, score in outcome.scores.items():
            low, high = score.interval
            yield Row(
                self.loads.series,
                self.size,
                *self._described(rule),
                self.days,
                self.releases,
                self.hours,
                score.games,
                adversary,
                score.right,
                round(score.advantage, 4),
                round(low, 4),
                round(high, 4),
                round(outcome.error_percent, 3),
            )

    def _release(self, rule: Rule) -> Release:
        return release_of(rule.reading, self.size, rule.k, self.tops[rule.range])

    def _described(self, rule: Rule | None) -> tuple[str, str, int | None, float | None, int | None]:
        if rule is None:
            return "", UNPROTECTED, None, None, None
        cells = codebook_of(rule.reading, self.size, rule.k, self.tops[rule.range]).levels
        if self.whole_bits is not None:
            return rule.range, WHOLE_SERIES, rule.k, float(self.whole_bits), cells
        return rule.range, rule.reading, rule.k, round(log2(rule.k), 4), cells
