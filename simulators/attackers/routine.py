"""When does a home wake, leave and sleep? What the regularity of its symbols shows, from the recording alone.

A home's usual day is its mean released value by time of day. Its quiet stretch is the four hours in which that is
least. The stretch is chosen on even days and tried on odd ones, so that chance is not taken for a habit.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt
from statistics import median
from typing import NamedTuple

import numpy as np

from gateway.privacy import BoolArray, IntArray
from simulators.attackers.attack import Attack, AttackError, Learnt, Options
from simulators.attackers.recording import FloatArray, Recording, Released

_MS_PER_DAY, _MS_PER_MINUTE, _MINUTES_PER_DAY = 86_400_000, 60_000, 1_440
_FIRST_WEEKDAY, _WORKDAYS, _WEEK = 3, 5, 7  # day 0, 1 January 1970, was a Thursday
_QUIET_MINUTES, _AWAY_MINUTES = 240, 120
_LEAST_DAYS = 4
_OFTEN = 0.5  # of the days: what is told less often is no part of a usual day
_SURE = 3.0  # standard errors
_COLUMNS = (
    "household",
    "days",
    "bits allowed",
    "bits used",
    "of them by time of day",
    "wakes",
    "sleeps",
    "away on workdays",
)


class Routine(NamedTuple):
    """A home's usual day.

    Attributes:
        wakes: minute of the UTC day at which it is no longer quiet; None if it was not told just before.
        sleeps: minute at which it becomes quiet; None if it was not told just after.
        away: first and last minute of the longest low stretch of a workday between them; None if there is none.

    """

    wakes: int | None
    sleeps: int | None
    away: tuple[int, int] | None


class _Days(NamedTuple):
    """A home's releases by day and time of day: (days, slots a day), NaN where nothing was told.

    ``told`` are the (slots a day) times that were told on at least half of the even and of the odd days.
    """

    values: FloatArray
    told: BoolArray
    first_day: int
    minutes: int

    @property
    def workdays(self) -> BoolArray:
        weekday = (np.arange(len(self.values)) + self.first_day + _FIRST_WEEKDAY) % _WEEK
        return weekday < _WORKDAYS


def learn(recording: Recording, options: Options) -> Learnt:  # noqa: ARG001 - he needs nothing else
    """Tell each household's bits used and usual day.

    Raises:
        AttackError: no household is in the recording for four days.

    """
    rows: list[tuple[object, ...]] = []
    partly = 0
    for name, released in recording.households.items():
        days = _by_day(released)
        if days is not None:
            partly += not days.told.all()
            rows.append((name, len(days.values), *_bits(released), *_told(routine_of(released))))
    if not rows:
        raise AttackError(_reason(recording))
    notes = _notes(rows, len(recording.households) - len(rows))
    if partly:
        notes.append(
            f"{partly} households were told for part of the day only, and are judged by that part:"
            " a stretch may go on where it ends"
        )
    return Learnt(_COLUMNS, rows, notes)


def _reason(recording: Recording) -> str:
    if any(one.spent.any() for one in recording.households.values()):
        return f"no household was told anything over {_LEAST_DAYS} days: for the rest the budget was spent"
    return f"no household was recorded for {_LEAST_DAYS} days of slots that divide a day"


def routine_of(released: Released) -> Routine | None:
    """Return a home's usual day; None where the days do not agree on one."""
    days = _by_day(released)
    if days is None:
        return None
    width = _QUIET_MINUTES // days.minutes
    begins = _quietest(_usual(days.values[::2], days.told), width)
    if begins is None:
        return None
    quiet = (begins + np.arange(width)) % days.values.shape[1]
    if not _holds(days.values[1::2], days.told, quiet):
        return None
    usual = _usual(days.values, days.told)
    threshold = (usual[quiet].mean() + np.nanmean(usual)) / 2
    # From the middle of the quiet stretch once round: the first and last times that are not quiet.
    order = (begins + width // 2 + np.arange(len(usual))) % len(usual)
    awake = np.flatnonzero(usual[order] > threshold)
    if len(awake) == 0:
        return None
    first, last = int(order[awake[0]]), int(order[awake[-1]] + 1) % len(usual)
    between = order[awake[0] : awake[-1] + 1]
    away = _longest_low(_usual(days.values[days.workdays], days.told), between, threshold, days.minutes)
    # What happens beside a time that is not told may have happened in it.
    wakes = first * days.minutes if days.told[first - 1] else None
    return Routine(wakes, last * days.minutes if days.told[last] else None, away)


def entropy_bits(symbols: IntArray) -> float:
    """Return the empirical entropy of symbols (bits), with Miller and Madow's correction for few of them."""
    if len(symbols) == 0:
        return 0.0
    _, counts = np.unique(symbols, return_counts=True)
    shares = counts / len(symbols)
    plain = float(-(shares * np.log2(shares)).sum())
    return plain + (len(counts) - 1) / (2 * len(symbols) * log(2))


def _bits(released: Released) -> tuple[float, float, float]:
    """Return bits allowed and used per release, and how many of those the time of day explains."""
    told = ~released.spent
    symbols, allowed = released.symbols[told], float(np.log2(released.levels[told]).mean())
    used = min(entropy_bits(symbols), allowed)
    time_of_day = released.start_ms[told] % _MS_PER_DAY
    given = sum(
        entropy_bits(symbols[time_of_day == time]) * np.count_nonzero(time_of_day == time) / len(symbols)
        for time in np.unique(time_of_day)
    )
    return round(allowed, 3), round(used, 3), round(max(0.0, used - given), 3)


def _by_day(released: Released) -> _Days | None:
    """Lay the releases out by day; None with fewer than four days, or slots that do not divide a day."""
    minutes = int(released.minutes)
    told = ~released.spent & np.isfinite(released.value_w)
    if minutes != released.minutes or _MINUTES_PER_DAY % minutes or minutes > _AWAY_MINUTES or not told.any():
        return None
    day, in_day = np.divmod(released.start_ms[told], _MS_PER_DAY)
    first = int(day.min())
    values = np.full((int(day.max()) - first + 1, _MINUTES_PER_DAY // minutes), np.nan)
    values[day - first, in_day // (minutes * _MS_PER_MINUTE)] = released.value_w[told]
    if len(values) < _LEAST_DAYS:
        return None
    often = [np.isfinite(half).mean(axis=0) >= _OFTEN for half in (values[::2], values[1::2])]
    return _Days(values, often[0] & often[1], first, minutes)


def _usual(values: FloatArray, told: BoolArray) -> FloatArray:
    """Return the mean by time of day; NaN where it is not told, the mean of all where these days happen to miss it."""
    known = np.isfinite(values) & told
    counts = known.sum(axis=0)
    usual: FloatArray = np.where(known, values, 0).sum(axis=0) / np.maximum(counts, 1)
    usual[counts == 0] = values[known].mean() if known.any() else 0.0
    usual[~told] = np.nan
    return usual


def _quietest(usual: FloatArray, width: int) -> int | None:
    """Return where the stretch with the least mean begins, round the clock; None if no stretch is told."""
    around = np.concatenate((usual, usual[: width - 1]))
    sums = np.convolve(around, np.ones(width), "valid")
    return int(np.nanargmin(sums)) if np.isfinite(sums).any() else None


def _holds(values: FloatArray, told: BoolArray, quiet: IntArray) -> bool:
    """Tell whether days that did not choose the quiet stretch are quieter in it, by three standard errors."""
    inside = np.zeros(values.shape[1], np.bool_)
    inside[quiet] = True
    outside = told & ~inside
    whole = values[np.isfinite(values[:, told]).all(axis=1)]
    if len(whole) < _LEAST_DAYS // 2 or not outside.any():
        return False
    apart = whole[:, outside].mean(axis=1) - whole[:, inside].mean(axis=1)
    error = float(apart.std(ddof=1)) / sqrt(len(apart))
    return float(apart.mean()) > max(_SURE * error, 0.0)


def _longest_low(
    usual: FloatArray, between: IntArray, threshold: float, minutes: int
) -> tuple[int, int] | None:
    """Return the longest stretch at or below the threshold, if it lasts two hours."""
    low = np.concatenate(([False], usual[between] <= threshold, [False]))
    turns = np.flatnonzero(low[1:] != low[:-1]).reshape(-1, 2)
    lengths = turns[:, 1] - turns[:, 0]
    if len(turns) == 0 or lengths.max() * minutes < _AWAY_MINUTES:
        return None
    begin, end = turns[np.argmax(lengths)]
    return int(between[begin]) * minutes, (int(between[end - 1]) + 1) * minutes % _MINUTES_PER_DAY


def _told(routine: Routine | None) -> tuple[str | None, str | None, str | None]:
    if routine is None:
        return None, None, None
    away = None if routine.away is None else "–".join(str(_clock(minute)) for minute in routine.away)
    return _clock(routine.wakes), _clock(routine.sleeps), away


def _clock(minute: int | None) -> str | None:
    return None if minute is None else f"{minute // 60:02d}:{minute % 60:02d}"


def _notes(rows: Sequence[tuple[object, ...]], skipped: int) -> list[str]:
    allowed, used, by_time = (median(float(str(row[column])) for row in rows) for column in (2, 3, 4))
    shown = sum(any(told is not None for told in row[5:]) for row in rows)
    away = sum(row[7] is not None for row in rows)
    notes = [
        f"{shown} of {len(rows)} households show a daily routine, {away} a low stretch on workdays; times are UTC",
        f"in the middle a release uses {used:.2f} of {allowed:.2f} bits, {by_time:.2f} of them told by the time of day",
    ]
    if skipped:
        notes.append(f"{skipped} households were told on less than {_LEAST_DAYS} days: left out")
    return notes


ATTACK = Attack("routine", "When a home wakes, leaves and sleeps, from nothing but its releases", learn)
