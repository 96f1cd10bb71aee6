"""What people do at home in a day, as uses of appliances, drawn for all homes at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from datetime import date

    from simulators.households import Households

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

_USES = 3  # the first word of the random streams' keys
_SATURDAY = 5
_LUNCH = (705, 770)  # earliest and latest minute


class Uses(NamedTuple):
    """Appliance uses: in `home` (index), from minute `start` of the day, `minutes` long, at `watts`."""

    home: IntArray
    start: IntArray
    minutes: IntArray
    watts: IntArray


def joined(parts: list[Uses]) -> Uses:
    """Put several lists of uses into one."""
    return Uses(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def some(rng: np.random.Generator, count: int, share: float | FloatArray) -> BoolArray:
    """Draw for each of `count` homes whether it is one of a share."""
    return rng.random(count) < share


def clipped(
    rng: np.random.Generator, count: int, mean: float, spread: float, limits: tuple[int, int]
) -> IntArray:
    """Draw `count` whole numbers around a mean, normally distributed, none beyond the limits."""
    return np.clip(rng.normal(mean, spread, count), *limits).astype(np.int64)


class _Today(NamedTuple):
    """What all activities of a day depend on. The absence [leave, back) is empty where leave == back."""

    homes: Households
    rng: np.random.Generator
    weekend: bool
    cold: float  # 0 in July, 1 in January
    sunrise: int
    sunset: int
    here: BoolArray  # not on holiday
    wake: IntArray
    leave: IntArray
    back: IntArray
    bed: IntArray

    def chance(self, probability: float | FloatArray) -> BoolArray:
        return some(self.rng, len(self.here), probability) & self.here

    def uses(self, when: BoolArray, start: IntArray, minutes: IntArray, watts: IntArray) -> Uses:
        """One use in each home of `when`; those that would last no minute are left out."""
        home = np.flatnonzero(when & (minutes > 0) & (watts > 0))
        return Uses(home, start[home], minutes[home], watts[home])

    def awake_minute(self, home: IntArray) -> IntArray:
        """Draw a minute, for each entry of `home`, in which somebody is home and awake."""
        wake, leave, back, bed = self.wake[home], self.leave[home], self.back[home], self.bed[home]
        minute = self.rng.integers(0, (leave - wake) + (bed - back)) + wake
        return np.where(minute < leave, minute, minute + back - leave)

    def between(self, low: int, high: int) -> IntArray:
        return self.rng.integers(low, high, len(self.here))


def uses_of(homes: Households, day: date) -> Uses:
    """Draw everything that people switch on that day; it may run past midnight."""
    return joined(list(uses_by_appliance(homes, day).values()))


def uses_by_appliance(homes: Households, day: date) -> dict[str, Uses]:
    """Draw the uses of that day by what is switched on; every appliance is named on every day."""
    rng = np.random.default_rng([_USES, homes.seed, day.toordinal()])
    today = _today(homes, day, rng)
    activities = (
        (_lighting, ("lights", "lights")),
        (_screens, ("screens", "screens")),
        (_breakfast, ("toaster",)),
        (_lunch, ("hob",)),
        (_dinner, ("hob", "hob", "dishwasher", "dishwasher")),
        (_kettles, ("kettle",)),
        (_laundry, ("washing machine", "washing machine")),
        (_heating, ("heating", "heating")),
        (_charging, ("car",)),
    )
    uses: dict[str, list[Uses]] = {}
    for activity, appliances in activities:
        for appliance, use in zip(appliances, activity(today), strict=True):
            uses.setdefault(appliance, []).append(use)
    return {appliance: joined(parts) for appliance, parts in uses.items()}


def _today(homes: Households, day: date, rng: np.random.Generator) -> _Today:
    count, weekend = len(homes.ids), day.weekday() >= _SATURDAY
    season = np.cos(2 * np.pi * (day.timetuple().tm_yday - 15) / 365.25)
    wake = homes.wake + clipped(rng, count, 75 if weekend else 0, 15, (-30, 150))
    bed = np.minimum(homes.bed + clipped(rng, count, 20 if weekend else 0, 20, (-60, 60)), 1500)
    at_work = homes.works & (not weekend)
    errand = rng.random(count) < (0.6 if weekend else 0.45)
    out_from, out_for = rng.integers(780, 960, count), np.where(errand, rng.integers(40, 240, count), 0)
    late = np.where(
        some(rng, count, 0.08), rng.integers(90, 200, count), clipped(rng, count, 0, 15, (-40, 40))
    )
    leave = np.where(at_work, homes.leave - homes.wake + wake, out_from)
    back = np.where(at_work, np.minimum(homes.back + late, bed - 30), out_from + out_for)
    half_day = int(60 * (6 - 2.1 * season))  # of daylight, at 50 degrees north
    return _Today(
        homes,
        rng,
        weekend,
        cold=float(1 + season) / 2,
        sunrise=740 - half_day,
        sunset=740 + half_day,
        here=~homes.on_holiday(day),
        wake=wake,
        leave=leave,
        back=back,
        bed=bed,
    )


def _lighting(today: _Today) -> list[Uses]:
    watts = (today.homes.lights_w * today.rng.uniform(0.6, 1.2, len(today.here))).astype(np.int64)
    morning = np.minimum(today.leave, today.sunrise) - today.wake
    dusk = np.maximum(today.back, today.sunset - 20)
    return [
        today.uses(today.here, today.wake, morning, watts),
        today.uses(today.here, dusk, today.bed - dusk, watts),
    ]


def _screens(today: _Today) -> list[Uses]:
    evening = np.maximum(today.back, today.between(1050, 1200))
    afternoon = today.chance(0.35)
    start = today.awake_minute(np.arange(len(today.here)))
    screens = today.homes.screens_w
    return [
        today.uses(today.chance(0.9), evening, today.bed - today.between(0, 45) - evening, screens),
        today.uses(afternoon, start, today.between(30, 180), screens // 2),
    ]


def _breakfast(today: _Today) -> list[Uses]:
    start = today.wake + today.between(8, 35)
    return [today.uses(today.chance(0.65), start, today.between(3, 12), today.between(900, 1600))]


def _lunch(today: _Today) -> list[Uses]:
    cooks = today.chance(0.5) & ((today.leave > _LUNCH[1]) | (today.back < _LUNCH[0]))
    return [today.uses(cooks, today.between(*_LUNCH), today.between(8, 28), today.homes.hob_w * 2 // 3)]


def _dinner(today: _Today) -> list[Uses]:
    """Run a hob or oven, full on for a third of the time and then held by its thermostat; then the dishes."""
    shift = today.between(-45, 60) if today.weekend else today.between(-20, 25)
    start = np.maximum(today.homes.dinner + shift, today.back + 10)
    minutes, watts = today.between(15, 61), today.homes.hob_w
    cooks, heating = today.chance(0.85), minutes // 3
    washes = cooks & today.homes.has_dishwasher & today.chance(0.7)
    dishes = start + minutes + today.between(20, 60)
    return [
        today.uses(cooks, start, heating, watts),
        today.uses(cooks, start + heating, minutes - heating, watts * 55 // 100),
        *_machine(today, washes, dishes, heating_w=1800, minutes=(15, 22), running_w=90),
    ]


def _kettles(today: _Today) -> list[Uses]:
    times = np.minimum(today.rng.poisson(today.homes.kettles_per_day), 12)
    home = np.repeat(np.arange(len(today.here)), np.where(today.here, times, 0))
    minutes = today.rng.integers(2, 5, len(home))
    return [Uses(home, today.awake_minute(home), minutes, today.homes.kettle_w[home])]


def _laundry(today: _Today) -> list[Uses]:
    share = today.homes.washes_per_week / 7 * (1.4 if today.weekend else 0.84)
    start = today.awake_minute(np.arange(len(today.here)))
    return _machine(today, today.chance(share), start, heating_w=2000, minutes=(18, 32), running_w=200)


def _machine(
    today: _Today,
    when: BoolArray,
    start: IntArray,
    *,
    heating_w: int,
    minutes: tuple[int, int],
    running_w: int,
) -> list[Uses]:
    """Run a machine that heats its water, then its motor or pump for an hour or so."""
    heating = today.between(*minutes)
    watts = np.full(len(when), heating_w)
    return [
        today.uses(when, start, heating, watts),
        today.uses(when, start + heating, today.between(45, 90), np.full(len(when), running_w)),
    ]


def _heating(today: _Today) -> list[Uses]:
    """Heat with electricity: once from waking and, after the home has cooled, more in the evening."""
    warm = today.chance(min(1.0, 1.4 * today.cold))
    scale, watts = today.cold * today.rng.uniform(0.5, 1.0, len(today.here)), today.homes.heating_w
    morning = np.minimum((150 * scale).astype(np.int64), today.leave - today.wake)
    evening = np.maximum(today.back, 990)
    until = np.minimum(evening + (360 * scale).astype(np.int64), today.bed)
    return [
        today.uses(warm, today.wake - 20, morning, watts),
        today.uses(warm, evening, until - evening, watts),
    ]


def _charging(today: _Today) -> list[Uses]:
    """Charge an electric car on its timer, which runs past midnight."""
    return [
        today.uses(
            today.chance(0.55), today.between(1350, 1470), today.between(60, 330), today.homes.charger_w
        )
    ]
