"""Which games the membership study plays: readings of the paper, lengths, half hours, budgets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import log2
from typing import NamedTuple

import numpy as np

from gateway.policy import DEFAULT_RANGE_MW
from gateway.privacy import IntArray
from simulators.studies._membership_game import (
    CERTIFIED,
    OVER_ALL,
    PAPER,
    READINGS,
    UNPROTECTED,
    Release,
    codebook_of,
    draw,
    plain,
    play,
    release_of,
)
from simulators.studies._membership_rows import BUDGET_LEVELS, CONNECTION, DAILY, HALF_HOURLY, OBSERVED, Row
from simulators.studies.data import SLOTS_PER_DAY, Homes

WHOLE_SERIES = "ε for the whole series"
_HOURS_PER_DAY = 24
_PAPER_LEVELS, _PAPER_SIZE = 4, 4
_SEVERAL = (PAPER, CERTIFIED, OVER_ALL)


class Scale(NamedTuple):
    """How much is played.

    Attributes:
        days: of each home.
        games: per setting of daily energy.
        fine_games: per setting of half-hourly energy, whose series are 48 times as long.
        sizes: n.
        levels: k.
        fine_sizes: n of half-hourly energy.
        fine_levels: k of half-hourly energy.
        lengths: days of shorter series; the whole one comes with them.
        kept: releases a year, or a day, of the budgets.

    """

    days: int
    games: int
    fine_games: int
    sizes: tuple[int, ...]
    levels: tuple[int, ...]
    fine_sizes: tuple[int, ...]
    fine_levels: tuple[int, ...]
    lengths: tuple[int, ...]
    kept: tuple[int, ...]


FULL = Scale(
    days=365,
    games=4_000,
    fine_games=1_000,
    sizes=(1, 2, 4, 8, 16),
    levels=(1, 2, 3, 4, 6, 8, 16, 32, 64),
    fine_sizes=(4, 8),
    fine_levels=(1, 2, 4, 8, 16, 64),
    lengths=(1, 2, 3, 5, 7, 14, 28, 56, 112, 224),
    kept=(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48),
)
QUICK = Scale(
    days=84,
    games=500,
    fine_games=200,
    sizes=(4, 8),
    levels=(1, 2, 4, 8, 64),
    fine_sizes=(4,),
    fine_levels=(1, 4, 64),
    lengths=(1, 7, 28),
    kept=(2, 8, 48),
)


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

    def rows(self, rng: np.random.Generator) -> Iterator[Row]:
        """Play, and yield a row per rule and adversary."""
        homes, slots = self.loads.readings.shape
        starts = np.arange(0, slots - self.releases + 1, self.loads.per_day)
        games = draw(homes, self.size, self.games, rng, starts)
        releases: dict[Rule | None, Release] = {None: plain}
        releases |= {rule: self._release(rule) for rule in self.rules}
        for rule, outcome in play(self.loads.readings, games, releases, self.releases).items():
            for adversary, score in outcome.scores.items():
                low, high = score.interval
                yield Row(
                    self.loads.series,
                    self.size,
                    *self._described(rule),
                    self.days,
                    self.releases,
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


def settings_of(homes: Homes, scale: Scale) -> list[Setting]:
    """Return all that the study plays."""
    daily = Loads(DAILY, homes.daily_mwh, 1, scale.days)
    fine = Loads(HALF_HOURLY, homes.energy_mwh, SLOTS_PER_DAY, scale.days)
    return [
        *_readings(daily, scale),
        *_whole_series(daily, scale),
        *_lengths(daily, scale.games, scale),
        *_lengths(fine, scale.fine_games, scale),
        *_half_hours(fine, scale),
        *_days_of_a_year(daily, scale),
        *_slots_of_a_day(fine, scale),
    ]


def _setting(table: str, loads: Loads, size: int, games: int, rules: Sequence[Rule]) -> Setting:
    tops = {kind: loads.top(kind) for kind in (OBSERVED, CONNECTION)}
    return Setting(table, loads, size, games, loads.readings.shape[1], rules, loads.days, tops)


def _readings(daily: Loads, scale: Scale) -> Iterator[Setting]:
    """Every reading of "ε with n homes", over both ranges."""
    rules = [Rule(*one) for one in product(READINGS, (OBSERVED, CONNECTION), scale.levels)]
    for size in scale.sizes:
        yield _setting("readings", daily, size, scale.games, rules)


def _whole_series(daily: Loads, scale: Scale) -> Iterator[Setting]:
    """ε as Definition 1 has it when a home's data is her year: so many releases of two outputs, then nothing."""
    for size, bits in product(scale.sizes, range(1, 7)):
        setting = _setting("whole-series", daily, size, scale.games, [Rule(CERTIFIED, OBSERVED, 2)])
        yield setting._replace(releases=bits, whole_bits=bits)


def _lengths(loads: Loads, games: int, scale: Scale) -> Iterator[Setting]:
    rules = [Rule(reading, OBSERVED, _PAPER_LEVELS) for reading in _SEVERAL]
    for days in (*scale.lengths, scale.days):
        setting = _setting("lengths", loads, _PAPER_SIZE, games, rules)
        yield setting._replace(releases=days * loads.per_day, days=days)


def _half_hours(fine: Loads, scale: Scale) -> Iterator[Setting]:
    rules = [Rule(*one) for one in product(_SEVERAL, (OBSERVED, CONNECTION), scale.fine_levels)]
    for size in scale.fine_sizes:
        yield _setting("half-hours", fine, size, scale.fine_games, rules)


def _budget_rules() -> list[Rule]:
    return [Rule(CERTIFIED, OBSERVED, k) for k in BUDGET_LEVELS]


def _days_of_a_year(daily: Loads, scale: Scale) -> Iterator[Setting]:
    """Release so many days of the year, evenly spread; the others are held, and tell nothing."""
    for kept in (*scale.kept, 96, 192, scale.days):
        days = np.unique(np.linspace(0, scale.days - 1, min(kept, scale.days)).astype(np.int64))
        yield from _of(daily, daily.readings[:, days], scale.games)


def _slots_of_a_day(fine: Loads, scale: Scale) -> Iterator[Setting]:
    """Release the first slots of each day; then the budget of the day is spent."""
    by_day = fine.readings.reshape(len(fine.readings), -1, SLOTS_PER_DAY)
    for kept in scale.kept:
        yield from _of(fine, by_day[:, :, :kept].reshape(len(by_day), -1), scale.fine_games)


def _of(loads: Loads, kept: IntArray, games: int) -> Iterator[Setting]:
    """Play what is left of a series, with the range of the whole one."""
    setting = _setting("budgets", loads, _PAPER_SIZE, games, _budget_rules())
    yield setting._replace(loads=loads._replace(readings=kept), releases=kept.shape[1])
