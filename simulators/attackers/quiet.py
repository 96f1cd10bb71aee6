"""Is anyone home? Days of a household that stand out as quiet, from the recording alone.

What chance would show is found by shuffling: each time of day is dealt anew among her days, which leaves her
habits and her levels as they are, and takes away whatever makes a whole day quiet.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby

import numpy as np

from gateway.privacy import IntArray
from simulators.attackers.attack import Attack, AttackError, Learnt, Options
from simulators.attackers.occupancy import quiet_days
from simulators.attackers.recording import FloatArray, Recording, Released

_MS_PER_DAY, _MS_PER_MINUTE, _MINUTES_PER_DAY = 86_400_000, 60_000, 1_440
_LEAST_DAYS, _LEAST_MINUTES = 7, 360
_OFTEN = 0.5
_SHUFFLES = 200
_SURE = 0.05
_COLUMNS = ("household", "days", "quiet days", "by chance", "chance of as many", "quiet on")


def learn(recording: Recording, options: Options) -> Learnt:  # noqa: ARG001 - he needs nothing else
    """Tell on which days each household was quiet, and how many would look so by chance.

    Raises:
        AttackError: no household has seven whole days in the recording.

    """
    rows: list[tuple[object, ...]] = []
    rng = np.random.default_rng(1)
    partly = 0
    for name, released in recording.households.items():
        day, values = whole_days(released)
        if len(day) >= _LEAST_DAYS:
            partly += values.shape[1] * released.minutes < _MINUTES_PER_DAY
            rows.append((name, len(day), *_told(day, values, rng)))
    if not rows:
        raise AttackError(_reason(recording))
    notes = _notes(rows, len(recording.households) - len(rows))
    if partly:
        notes.append(f"{partly} households were told for part of the day only, and are judged by that part")
    return Learnt(_COLUMNS, rows, notes)


def _reason(recording: Recording) -> str:
    if any(one.spent.any() for one in recording.households.values()):
        return (
            f"no household was told for {_LEAST_MINUTES // 60} hours on each of {_LEAST_DAYS} UTC days:"
            " for the rest the budget was spent"
        )
    return f"no household was recorded for {_LEAST_DAYS} whole UTC days"


def whole_days(released: Released) -> tuple[IntArray, FloatArray]:
    """Return (d,) days since 1970 (UTC) of which every usual slot was told, and (d, slots) their values (W).

    Usual are the times of day that were told on half of the days or more; none if they are less than six hours.
    """
    minutes = int(released.minutes)
    if minutes != released.minutes or _MINUTES_PER_DAY % minutes:
        return np.zeros(0, np.int64), np.zeros((0, 1))
    slots = _MINUTES_PER_DAY // minutes
    told = ~released.spent & np.isfinite(released.value_w)
    day, in_day = np.divmod(released.start_ms[told], _MS_PER_DAY)
    days, place = np.unique(day, return_inverse=True)
    values = np.full((len(days), slots), np.nan)
    values[place, in_day // (minutes * _MS_PER_MINUTE)] = released.value_w[told]
    values = values[:, np.isfinite(values).mean(axis=0) >= _OFTEN] if len(days) else values
    if values.shape[1] * minutes < _LEAST_MINUTES:
        return np.zeros(0, np.int64), np.zeros((0, 1))
    whole = np.isfinite(values).all(axis=1)
    return days[whole].astype(np.int64), values[whole]


def _told(day: IntArray, values: FloatArray, rng: np.random.Generator) -> tuple[int, float, float, list[str]]:
    quiet = quiet_days(values)
    count = int(quiet.sum())
    dealt = np.stack([rng.permuted(values, axis=0) for _ in range(_SHUFFLES)])
    by_chance = quiet_days(dealt).sum(axis=1)
    # The recording itself counts as one of the deals: a share of 0 cannot be had from 200 of them.
    as_many = (1 + int(np.count_nonzero(by_chance >= count))) / (1 + _SHUFFLES)
    # Days that are no more than chance makes are not worth a date.
    dates = _spans(day[quiet]) if as_many <= _SURE else []
    return count, round(float(by_chance.mean()), 2), round(as_many, 3), dates


def _spans(days: IntArray) -> list[str]:
    """Return days as dates, those in a row as "first to last"."""
    spans = []
    for _, run in groupby(enumerate(days.tolist()), lambda pair: pair[1] - pair[0]):
        dates = [datetime.fromtimestamp(day * 86_400, UTC).date().isoformat() for _, day in run]
        spans.append(dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}")
    return spans


def _notes(rows: Sequence[tuple[object, ...]], skipped: int) -> list[str]:
    found = [row for row in rows if row[2] and float(str(row[4])) <= _SURE]
    amount = (
        f"{len(found)} of {len(rows)} households have more quiet days than chance explains (in {_SURE:.0%} of shuffles"
        f" or fewer as many); {len(rows) * _SURE:.1f} would by chance alone"
    )
    notes = [
        amount,
        "a quiet day has less than usual and little movement: nobody may have been home; days are UTC",
    ]
    if skipped:
        notes.append(f"{skipped} households have fewer than {_LEAST_DAYS} whole days: left out")
    return notes


ATTACK = Attack("occupancy", "On which days nobody seems to be home, from nothing but the releases", learn)
