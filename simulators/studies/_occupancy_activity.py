"""Activity in homes with metered appliances: it stands in for presence, which no recording tells.

Who switches on a kettle, a microwave or a shower is at home, and up. Half hours in which nobody does say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gateway.privacy import MISSING, BoolArray, IntArray
from simulators.attackers.disaggregation import ON_W
from simulators.attackers.occupancy import SlotTest
from simulators.attackers.recording import FloatArray
from simulators.studies._occupancy_fleet import resampled_advantage
from simulators.studies._occupancy_rows import ACTIVITY, KINDS, SLOT_MINUTES, SLOTS, Score
from simulators.studies._releases import Made, codebooks, named, released_by_each
from simulators.studies._submetered import Submetered

_RAW_STEP_W = 100  # unprotected readings are counted in steps: one home has few half hours


class HalfHours(NamedTuple):
    """A home's half hours.

    Attributes:
        series_mw: (T,) mean power, or ``MISSING`` where a minute was not recorded.
        active: (T,) whether an appliance was on that somebody had just switched on.
        day: (T,) days since 1970.

    """

    series_mw: IntArray
    active: BoolArray
    day: IntArray


def half_hours(home: Submetered) -> HalfHours:
    """Return a home's half hours, those of gaps in its record as well."""
    slot = home.minute // SLOT_MINUTES
    place = slot - slot[0]
    count = int(place[-1]) + 1
    by_hand = np.any([home.appliances[name] > ON_W for name in home.by_hand()], axis=0)
    minutes = np.bincount(place[home.known], minlength=count)
    energy = np.bincount(place, weights=home.total_w * home.known, minlength=count).astype(np.int64)
    return HalfHours(
        np.where(minutes == SLOT_MINUTES, energy * 1000 // SLOT_MINUTES, MISSING),
        np.bincount(place, weights=by_hand & home.known, minlength=count) > 0,
        (slot[0] + np.arange(count)) // SLOTS,
    )


def activity_scores(home: Submetered, other: Submetered, levels: Sequence[int], seed: int) -> Iterator[Score]:
    """Yield what a test of one release gains: learnt on the first half of the days, tried on the others.

    Args:
        home: the one attacked.
        other: the one whose record plays the public profile for fitted codebooks.
        levels: numbers of levels.
        seed: of the resampling.

    """
    mine, profile = half_hours(home), half_hours(other).series_mw
    known = mine.series_mw != MISSING
    early = mine.day < np.median(mine.day[known])
    made = codebooks(KINDS, levels, profile[profile != MISSING])
    readings = np.where(known, mine.series_mw, 0) // 1000 // _RAW_STEP_W * float(_RAW_STEP_W)
    views: list[tuple[Made | None, FloatArray]] = [
        (None, readings),
        *zip(made, released_by_each(made, mine.series_mw).T, strict=True),
    ]
    at_any_time = np.zeros(len(known), np.int64)
    for one, released in views:
        first, later = known & early, known & ~early
        idle = SlotTest.learnt(released[first], at_any_time[first], ~mine.active[first]).empty(
            released[later], at_any_time[later]
        )
        gained = resampled_advantage(_daily(~idle, mine.active[later], mine.day[later]), seed)
        yield Score(home.name, ACTIVITY, *named(one), *gained)


def _daily(says: BoolArray, active: BoolArray, day: IntArray) -> FloatArray:
    """Return (4, days) hits, active half hours, false alarms and others of each day."""
    days, place = np.unique(day, return_inverse=True)
    return np.stack(
        [
            np.bincount(place, weights=which, minlength=len(days))
            for which in (says & active, active, says & ~active, ~active)
        ]
    )
