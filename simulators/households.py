"""Simulated electricity use of households: appliances switched on by people who wake, work, cook and sleep.

A home's load is its base load, a cycling fridge and a list of *uses* (an appliance, from a minute, for some
minutes, at some watts). Each (seed, day) has a random stream of its own, so that a day is the same whichever
days were asked for before. The homes' clocks show UTC.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from simulators._activities import (
    BoolArray,
    FloatArray,
    IntArray,
    Uses,
    clipped,
    joined,
    some,
    uses_by_appliance,
    uses_of,
)

if TYPE_CHECKING:
    from typing import Self

WattArray = npt.NDArray[np.int32]

DAY_MINUTES = 1440
MINUTE_MS = 60_000
DAY_MS = DAY_MINUTES * MINUTE_MS
_EPOCH = date(1970, 1, 1)
_HOLIDAY_PERIOD = 91  # days; a home has at most one holiday in each, and it ends within
_DAYS_KEPT = 2  # an interval touches at most two neighbouring days, and fleets walk forward
_BLOCK = 1000  # homes painted at once: the wide temporaries stay in the processor's cache
# the first word of each stream's key (activities use 3), so that no two kinds of draws share one
_HOMES, _HOLIDAYS = 1, 2


@dataclass(frozen=True, eq=False)
class Households:
    """`count` simulated homes; each array has one entry per home. Make them with `Households.draw`.

    Minutes are minutes of the day, powers W. Two draws of one count and seed are equal in every respect.
    """

    ids: tuple[str, ...]
    seed: int
    base_w: IntArray
    fridge_w: IntArray
    fridge_period: FloatArray  # minutes from one start of the compressor to the next
    fridge_duty: FloatArray  # share of the period that it runs
    fridge_phase: FloatArray  # minutes
    people: IntArray
    works: BoolArray  # nobody is home on weekdays between leaving and coming back
    wake: IntArray
    leave: IntArray
    back: IntArray
    dinner: IntArray
    bed: IntArray  # may lie after midnight: up to 1500
    lights_w: IntArray
    screens_w: IntArray
    hob_w: IntArray
    kettle_w: IntArray
    kettles_per_day: FloatArray
    washes_per_week: FloatArray
    has_dishwasher: BoolArray
    heating_w: IntArray  # electric heating; 0 in most homes
    charger_w: IntArray  # electric car, charged at night; 0 in most homes
    _days: dict[date, npt.NDArray[np.uint16]] = field(default_factory=dict, repr=False)

    @classmethod
    def draw(cls, count: int, seed: int) -> Self:
        """Draw the parameters of `count` homes from `seed`; ValueError if either is negative."""
        if count < 0 or seed < 0:
            raise ValueError(f"count and seed must not be negative: got count={count}, seed={seed}")
        rng = np.random.default_rng([_HOMES, seed])
        wake = clipped(rng, count, 405, 40, (300, 560))
        period = rng.uniform(40, 70, count)
        people = rng.choice([1, 2, 3, 4, 5], count, p=[0.3, 0.34, 0.16, 0.14, 0.06])
        return cls(
            ids=_ids(count),
            seed=seed,
            base_w=rng.triangular(40, 75, 180, count).astype(np.int64),
            fridge_w=rng.integers(80, 151, count),
            fridge_period=period,
            fridge_duty=rng.uniform(0.3, 0.5, count),
            fridge_phase=rng.uniform(0, period),
            people=people,
            works=some(rng, count, 0.6),
            wake=wake,
            leave=wake + rng.integers(40, 90, count),
            back=clipped(rng, count, 1040, 45, (900, 1170)),
            dinner=clipped(rng, count, 1125, 40, (1020, 1260)),
            bed=clipped(rng, count, 1370, 45, (1260, 1500)),
            lights_w=rng.integers(40, 140, count) + 15 * people,
            screens_w=rng.integers(70, 220, count) + 20 * people,
            hob_w=rng.integers(1000, 3001, count),
            kettle_w=rng.integers(2000, 3001, count),
            kettles_per_day=rng.uniform(1.5, 3.5, count) + 0.5 * people,
            washes_per_week=rng.uniform(0.7, 1.3, count) * (0.5 + people),
            has_dishwasher=some(rng, count, 0.5),
            heating_w=np.where(some(rng, count, 0.04), rng.integers(1500, 4001, count), 0),
            charger_w=np.where(some(rng, count, 0.04), 7000, 0),
        )

    def power_w(self, day: date) -> WattArray:
        """Mean power in W of each home in each minute of the UTC day: shape (homes, 1440)."""
        return self._day(day).astype(np.int32)

    def appliances_w(self, day: date) -> dict[str, WattArray]:
        """Mean power in W of what people switch on, by appliance: arrays of shape (homes, 1440).

        Base load and fridge, which run by themselves, make up the rest of :meth:`power_w`.
        """
        today, before = uses_by_appliance(self, day), uses_by_appliance(self, day - timedelta(days=1))
        every = slice(0, len(self.ids))
        return {
            name: _drawn(joined([uses, _past_midnight(before[name])]), every) for name, uses in today.items()
        }

    def energy_wh(self, start_ms: int, length_ms: int) -> FloatArray:
        """Energy in Wh of each home in [start, start + length), both in ms (UTC since 1970).

        A part of a minute counts with that minute's mean power. ValueError if the length is negative.
        """
        if length_ms < 0:
            raise ValueError(f"the interval's length must not be negative: got {length_ms} ms")
        total = np.zeros(len(self.ids), np.int64)  # W·ms: integers, so that parts add up to the whole exactly
        end_ms = start_ms + length_ms
        while start_ms < end_ms:
            day_number, offset = divmod(start_ms, DAY_MS)
            until = min(DAY_MS, offset + end_ms - start_ms)
            total += _watt_ms(self._day(_EPOCH + timedelta(days=day_number)), offset, until)
            start_ms += until - offset
        return total / (3600 * 1000)

    def on_holiday(self, day: date) -> BoolArray:
        """Tell which homes are empty that day, in 3 to 14 days in a row with base load and fridge only."""
        period, today = divmod((day - _EPOCH).days, _HOLIDAY_PERIOD)
        rng = np.random.default_rng([_HOLIDAYS, self.seed, period % 2**32])
        length = rng.integers(3, 15, len(self.ids))
        first = rng.integers(0, _HOLIDAY_PERIOD - length + 1)
        goes = some(rng, len(self.ids), 0.5)
        return goes & (first <= today) & (today < first + length)

    def _day(self, day: date) -> npt.NDArray[np.uint16]:
        """Mean power in whole W (16 bits: 10,000 homes' day takes 29 MB), kept for the days used last."""
        power = self._days.get(day)
        if power is None:
            power = self._paint(day)
            for stale in list(self._days)[: 1 - _DAYS_KEPT]:
                self._days.pop(stale, None)
            self._days[day] = power
        return power

    def _paint(self, day: date) -> npt.NDArray[np.uint16]:
        before = uses_of(self, day - timedelta(days=1))
        uses = joined([uses_of(self, day), _past_midnight(before)])
        power = np.empty((len(self.ids), DAY_MINUTES), np.uint16)
        for low in range(0, len(self.ids), _BLOCK):
            homes = slice(low, min(low + _BLOCK, len(self.ids)))
            power[homes] = _standing(self, homes, day) + _drawn(uses, homes)
        return power


def _ids(count: int) -> tuple[str, ...]:
    digits = max(4, len(str(count)))
    return tuple(f"h-{number:0{digits}d}" for number in range(1, count + 1))


def _past_midnight(uses: Uses) -> Uses:
    """Return yesterday's uses in minutes of today: what runs past midnight ends in it."""
    return uses._replace(start=uses.start - DAY_MINUTES)


def _watt_ms(power: npt.NDArray[np.uint16], start: int, end: int) -> IntArray:
    """Sum the W·ms of the part [start, end) ms of a day, start < end."""
    first, last = start // MINUTE_MS, -(-end // MINUTE_MS)
    total: IntArray = power[:, first:last].sum(axis=1, dtype=np.int64) * MINUTE_MS
    total -= power[:, first].astype(np.int64) * (start - first * MINUTE_MS)
    total -= power[:, last - 1].astype(np.int64) * (last * MINUTE_MS - end)
    return total


def _standing(homes: Households, which: slice, day: date) -> WattArray:
    """Sum the power of base load and fridge, which run whether or not anybody is home."""
    period = homes.fridge_period[which, None]
    # reduced in double precision once a day, so that single precision does for the minutes
    begun = (homes.fridge_phase[which, None] + (day - _EPOCH).days * DAY_MINUTES) % period
    minutes = np.arange(DAY_MINUTES, dtype=np.float32)
    in_cycle = (begun.astype(np.float32) + minutes) % period.astype(np.float32)
    runs = in_cycle < (period * homes.fridge_duty[which, None]).astype(np.float32)
    fridge = np.where(runs, homes.fridge_w[which, None].astype(np.int32), np.int32(0))
    return fridge + homes.base_w[which, None].astype(np.int32)


def _drawn(uses: Uses, which: slice) -> WattArray:
    """Sum the power of the uses of some homes in each minute: steps up and down, then their running sum."""
    mine = (uses.home >= which.start) & (uses.home < which.stop)
    row = (uses.home[mine] - which.start) * (DAY_MINUTES + 1)
    start, watts = uses.start[mine], uses.watts[mine]
    steps = np.zeros((which.stop - which.start, DAY_MINUTES + 1), np.int32)
    np.add.at(steps.reshape(-1), row + np.clip(start, 0, DAY_MINUTES), watts)
    np.subtract.at(steps.reshape(-1), row + np.clip(start + uses.minutes[mine], 0, DAY_MINUTES), watts)
    return np.cumsum(steps[:, :DAY_MINUTES], axis=1, dtype=np.int32)
