"""Which games the membership study plays: readings of the paper, lengths, half hours, budgets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from gateway.privacy import IntArray
from simulators.studies._membership_game import CERTIFIED, OVER_ALL, PAPER, READINGS
from simulators.studies._membership_rows import (
    BUDGET_LEVELS,
    CONNECTION,
    DAILY,
    HALF_HOURLY,
    OBSERVED,
    PAPER_POINTS,
)
from simulators.studies._membership_setting import Loads, Rule, Setting
from simulators.studies.data import SLOTS_PER_DAY, Homes

_PAPER_LEVELS, _PAPER_SIZE = 4, 4
_SEVERAL = (PAPER, CERTIFIED, OVER_ALL)
_SLOTS_PER_HOUR = 2
_STRETCHES, _STRETCH_SLOTS = (0, 6, 12, 17), 12  # hours at which stretches of six hours begin


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
        draws: of the likelihood's others, for each slot.

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
    draws: int


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
    draws=200,
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
    draws=50,
)


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
        *_stretches_of_a_day(fine, scale),
    ]


def _setting(table: str, loads: Loads, size: int, games: int, rules: Sequence[Rule]) -> Setting:
    tops = {kind: loads.top(kind) for kind in (OBSERVED, CONNECTION)}
    return Setting(table, loads, size, games, loads.readings.shape[1], rules, loads.days, tops)


def _readings(daily: Loads, scale: Scale) -> Iterator[Setting]:
    """Every reading of "ε with n homes", over both ranges."""
    rules = [Rule(*one) for one in product(READINGS, (OBSERVED, CONNECTION), scale.levels)]
    for size in scale.sizes:
        levels = 2 ** PAPER_POINTS.get(size, 0)
        likely = [rule for rule in rules if rule.k == levels and size in PAPER_POINTS]
        yield _setting("readings", daily, size, scale.games, rules)._replace(likely=likely, draws=scale.draws)


def _whole_series(daily: Loads, scale: Scale) -> Iterator[Setting]:
    """ε as Definition 1 has it when a home's data is her year: so many releases of two outputs, then nothing."""
    rules = [Rule(CERTIFIED, OBSERVED, 2)]
    for size, bits in product(scale.sizes, range(1, 7)):
        setting = _setting("whole-series", daily, size, scale.games, rules)
        yield setting._replace(releases=bits, whole_bits=bits, likely=rules, draws=scale.draws)


def _lengths(loads: Loads, games: int, scale: Scale) -> Iterator[Setting]:
    rules = [Rule(reading, OBSERVED, _PAPER_LEVELS) for reading in _SEVERAL]
    for days in (*scale.lengths, scale.days):
        setting = _setting("lengths", loads, _PAPER_SIZE, games, rules)
        yield setting._replace(releases=days * loads.per_day, days=days)


def _half_hours(fine: Loads, scale: Scale) -> Iterator[Setting]:
    rules = [Rule(*one) for one in product(_SEVERAL, (OBSERVED, CONNECTION), scale.fine_levels)]
    for size in scale.fine_sizes:
        yield _setting("half-hours", fine, size, scale.fine_games, rules)


def _days_of_a_year(daily: Loads, scale: Scale) -> Iterator[Setting]:
    """Release so many days of the year, evenly spread; the others are held, and tell nothing."""
    for kept in (*scale.kept, 96, 192, scale.days):
        days = np.unique(np.linspace(0, scale.days - 1, min(kept, scale.days)).astype(np.int64))
        yield _of("budgets", daily, daily.readings[:, days], scale.games, scale.draws)


def _slots_of_a_day(fine: Loads, scale: Scale) -> Iterator[Setting]:
    """Release the first slots of each day; then the budget of the day is spent."""
    for kept in scale.kept:
        yield _hours("budgets", fine, range(kept), scale.fine_games, scale.draws)


def _stretches_of_a_day(fine: Loads, scale: Scale) -> Iterator[Setting]:
    """Release as many slots of each day, at other hours."""
    for hour in _STRETCHES:
        first = hour * _SLOTS_PER_HOUR
        yield _hours("stretches", fine, range(first, first + _STRETCH_SLOTS), scale.games, scale.draws)


def _hours(table: str, fine: Loads, of_day: range, games: int, draws: int) -> Setting:
    by_day = fine.readings.reshape(len(fine.readings), -1, SLOTS_PER_DAY)[:, :, of_day]
    readings = by_day.reshape(len(by_day), -1)
    hours = f"{of_day.start / _SLOTS_PER_HOUR:g}-{of_day.stop / _SLOTS_PER_HOUR:g}"
    return _of(table, fine, readings, games, draws)._replace(hours=hours)


def _of(table: str, loads: Loads, kept: IntArray, games: int, draws: int) -> Setting:
    """Play what is left of a series, with the range of the whole one."""
    rules = [Rule(CERTIFIED, OBSERVED, k) for k in BUDGET_LEVELS]
    setting = _setting(table, loads, _PAPER_SIZE, games, rules)
    kept_loads = loads._replace(readings=kept)
    return setting._replace(loads=kept_loads, releases=kept.shape[1], likely=rules, draws=draws)
