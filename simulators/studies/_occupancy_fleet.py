"""Presence in simulated homes: who is on holiday, and what the adversaries make of the releases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from math import log2
from typing import NamedTuple

import numpy as np

from gateway.privacy import BoolArray, IntArray
from simulators.attackers.occupancy import DayTest, SlotTest, quiet_days
from simulators.attackers.recording import FloatArray
from simulators.households import Households
from simulators.studies._occupancy_presence import presence
from simulators.studies._occupancy_rows import (
    FLEET,
    ONE_DAY,
    ONE_RELEASE,
    SLOT_MINUTES,
    SLOTS,
    UNTRAINED,
    Exact,
    Score,
)
from simulators.studies._releases import Made, named, released_by_all

_FIRST_DAY = date(2026, 6, 1)
_RAW_STEP_W = 25  # unprotected readings are counted in steps
_RESAMPLES = 400


class Fleet(NamedTuple):
    """Simulated homes.

    Attributes:
        series_mw: (slots, homes) mean power in half hours.
        empty: (homes, days) whether nobody was there.
        known: (homes, days) whether that is meant: the first day of a holiday, into which machines of the
            evening before may run, is left out.
        least_mw: (homes,) the least that an empty home draws.
        most_mw: (homes,) the most that it draws: base load and fridge.

    """

    series_mw: IntArray
    empty: BoolArray
    known: BoolArray
    least_mw: IntArray
    most_mw: IntArray


def fleet(count: int, seed: int, days: int) -> Fleet:
    """Return so many homes over so many days from 1 June."""
    homes = Households.draw(count, seed)
    dates = [_FIRST_DAY + timedelta(days=n) for n in range(-1, days)]
    away = np.stack([homes.on_holiday(day) for day in dates], axis=1)
    power = [homes.power_w(day).astype(np.int64).reshape(count, SLOTS, SLOT_MINUTES) for day in dates[1:]]
    series = np.concatenate([day.sum(axis=2).T for day in power]) * 1000 // SLOT_MINUTES
    before, today = away[:, :-1], away[:, 1:]
    least = homes.base_w * 1000
    return Fleet(series, today & before, ~(today & ~before), least, least + homes.fridge_w * 1000)


class View(NamedTuple):
    """What adversaries see of a codebook: (homes, days, slots of a day) releases (W).

    Attributes:
        made: the codebook; None for the readings themselves.
        public: of homes that they learn from.
        attacked: of the others.

    """

    made: Made | None
    public: FloatArray
    attacked: FloatArray


def view(made: Made | None, public: Fleet, attacked: Fleet) -> View:
    """Return what is released of both fleets."""
    series = np.concatenate((public.series_mw, attacked.series_mw), axis=1)
    released = series / 1000 if made is None else released_by_all(made, series)
    days = released.T.reshape(released.shape[1], -1, SLOTS)
    return View(made, days[: len(public.empty)], days[len(public.empty) :])


def presence_scores(seen: View, public: Fleet, attacked: Fleet, seed: int) -> Iterator[Score]:
    """Yield what three adversaries gain, two of them taught by public homes."""
    tests: Mapping[str, Callable[[], BoolArray]] = {
        ONE_RELEASE: lambda: _by_slot(_stepped(seen), public),
        ONE_DAY: lambda: DayTest.learnt(seen.public, public.empty, public.known, seed).empty(seen.attacked)[
            ..., None
        ],
        UNTRAINED: lambda: quiet_days(seen.attacked)[..., None],
    }
    for adversary, test in tests.items():
        gained = _advantage(test().mean(axis=2), attacked.empty, attacked.known, seed)
        yield Score(FLEET, adversary, *named(seen.made), *gained)


def _stepped(seen: View) -> View:
    """Return a view that has few values: readings are counted in steps."""
    if seen.made is not None:
        return seen
    return View(None, *(days // _RAW_STEP_W * _RAW_STEP_W for days in seen[1:]))


def _by_slot(seen: View, public: Fleet) -> BoolArray:
    """Return (homes, days, slots) what a test says that knows one release and the time of day."""
    known = seen.public[public.known]
    empty = np.broadcast_to(public.empty[public.known][:, None], known.shape)
    test = SlotTest.learnt(known.ravel(), np.tile(np.arange(SLOTS), len(known)), empty.ravel())
    slot = np.broadcast_to(np.arange(SLOTS), seen.attacked.shape)
    return test.empty(seen.attacked.ravel(), slot.ravel()).reshape(slot.shape)


def _advantage(
    share: FloatArray, empty: BoolArray, known: BoolArray, seed: int
) -> tuple[float, float, float]:
    """Return the advantage and its 95 % interval over resampled homes.

    Args:
        share: (homes, days) share of a day's tests that say "empty".
        empty: (homes, days) the truth.
        known: (homes, days) whether it counts.
        seed: of the resampling.

    """
    away, there = known & empty, known & ~empty
    counts = np.stack(
        [(away * share).sum(axis=1), away.sum(axis=1), (there * share).sum(axis=1), there.sum(axis=1)]
    )
    return resampled_advantage(counts, seed)


def resampled_advantage(counts: FloatArray, seed: int) -> tuple[float, float, float]:
    """Return ``hits/all − alarms/others`` and its 95 % interval over resampled columns.

    Args:
        counts: (4, n) hits, all that could be hit, false alarms, and all others, of each home or day.
        seed: of the resampling.

    """
    columns = counts.shape[1]
    drawn = np.random.default_rng(seed).integers(0, columns, (_RESAMPLES, columns))
    hits, every, alarms, others = counts[:, drawn].sum(axis=-1)
    low, high = np.quantile(hits / np.maximum(every, 1) - alarms / np.maximum(others, 1), (0.025, 0.975))
    total = counts.sum(axis=1)
    return float(total[0] / total[1] - total[2] / total[3]), float(low), float(high)


def exact_row(made: Made, released: FloatArray, attacked: Fleet) -> Exact:
    """Return what consistent tests of one release decide, for an adversary who knows each home's base and fridge.

    Args:
        made: a codebook that rounds to nearest: with feedback a release also depends on earlier readings.
        released: (homes, days, slots) what was released with it (W).
        attacked: of these homes.

    """
    symbols = made.book.encode(np.rint(released * 1000).astype(np.int64))
    tests = [
        presence(made.book, (least, most))
        for least, most in zip(attacked.least_mw.tolist(), attacked.most_mw.tolist(), strict=True)
    ]
    decided = np.stack([test.decides[mine] for test, mine in zip(tests, symbols, strict=True)])
    error = released.reshape(len(released), -1).T - attacked.series_mw / 1000
    return Exact(
        made.kind,
        made.book.levels,
        log2(made.book.levels),
        max(test.performance_bits for test in tests),
        float(np.mean([test.undecided_range for test in tests])),
        float(decided[attacked.known & ~attacked.empty].mean()),
        float(decided[attacked.known & attacked.empty].mean()),
        float(np.sqrt(np.mean(error**2))),
    )
