"""Time, and when a slot is due. All times are ms UTC.

A slot closes by event time: on the wall clock, a grace after its end; or, for replay and simulation, when
half the roll has a reading past that. One meter with a wild clock can do neither harm nor good.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

import numpy as np

from gateway.meters import Meters
from gateway.sources import Readings

_LONGEST_NAP_S = 1.0
_NEVER = np.iinfo(np.int64).max
# How far ahead of the slot that is closing a reading may lie on the event clock.
_AHEAD_MS = 2 * 86_400_000
_AHEAD_SLOTS = 4
_QUORUM = 3


def utc_ms() -> int:
    """Return the system's time."""
    return time.time_ns() // 1_000_000


class WallClock:
    """UTC in ms.

    Args:
        now_ms: the time; the system's, or a simulated one.
        speed: how many of its seconds pass in one second.

    """

    def __init__(self, now_ms: Callable[[], int] = utc_ms, speed: float = 1.0) -> None:
        self.now_ms = now_ms
        self._speed = speed

    async def sleep_until(self, moment_ms: int) -> None:
        """Return when the moment has come; short naps, since clocks are set and machines sleep."""
        while (left := (moment_ms - self.now_ms()) / (1_000 * self._speed)) > 0:  # noqa: ASYNC110 - clocks set no event
            await asyncio.sleep(min(left, _LONGEST_NAP_S))


class Schedule(Protocol):
    """Decides which slot is the first, which readings are too far ahead, and when a slot is due."""

    def observe(self, readings: Readings) -> None:
        """Take note of a batch of readings."""

    def arrival_ms(self) -> int | None:
        """Return the time of readings that arrive now and say none; None where they have no place."""

    def first_slot(self) -> int | None:
        """Return the first slot of a new ledger, once it can be known."""

    def horizon_ms(self, next_slot: int) -> int:
        """Return the latest end of an interval that is believed."""

    def due(self, slot: int) -> bool:
        """Return whether a slot closes now."""

    async def wait(self, slot: int) -> None:
        """Return when a slot may be due."""


class WallSchedule:
    """A slot is due a grace after its end."""

    def __init__(self, clock: WallClock, slot_ms: int, grace_ms: int, skew_ms: int) -> None:
        self._clock = clock
        self._slot_ms = slot_ms
        self._grace_ms = grace_ms
        self._skew_ms = skew_ms

    def observe(self, readings: Readings) -> None:
        """Take no note: readings do not move this clock."""

    def arrival_ms(self) -> int:
        """Return the time."""
        return self._clock.now_ms()

    def first_slot(self) -> int:
        """Return the slot that is running."""
        return self._clock.now_ms() // self._slot_ms

    def horizon_ms(self, next_slot: int) -> int:  # noqa: ARG002 - the event clock needs it
        """Return now, and the skew that a meter's clock may have."""
        return self._clock.now_ms() + self._skew_ms

    def due(self, slot: int) -> bool:
        """Return whether the slot's grace is over."""
        return self._clock.now_ms() >= self._due_ms(slot)

    async def wait(self, slot: int) -> None:
        """Return when the slot's grace is over."""
        await self._clock.sleep_until(self._due_ms(slot))

    def _due_ms(self, slot: int) -> int:
        return (slot + 1) * self._slot_ms + self._grace_ms


class EventSchedule:
    """A slot is due when half the roll has a reading past its end and grace; a household has one vote.

    Args:
        meters: of the roll.
        households: how many it has.
        slot_ms: the slot's length.
        grace_ms: the grace.

    """

    def __init__(self, meters: Meters, households: int, slot_ms: int, grace_ms: int) -> None:
        self._meters = meters
        self._slot_ms = slot_ms
        self._grace_ms = grace_ms
        self._latest = np.full(households, np.iinfo(np.int64).min)
        self._earliest = np.full(households, _NEVER)
        self._moved = asyncio.Event()

    def observe(self, readings: Readings) -> None:
        """Move each household's first and last moment."""
        household, time_ms = self._meters.household[readings.meter], readings.time_ms
        np.maximum.at(self._latest, household, time_ms + self._meters.span_ms[readings.meter])
        np.minimum.at(self._earliest, household, time_ms)
        self._moved.set()

    def arrival_ms(self) -> None:
        """Return None: our own time says nothing about events, and must not move their clock."""

    def first_slot(self) -> int | None:
        """Return the median household's first slot, once half the roll has spoken.

        Two of them that lie far apart wait for a third: one may have a wild clock.
        """
        spoken, roll = np.sort(self._earliest[self._earliest != _NEVER]), len(self._earliest)
        if 2 * len(spoken) < roll or len(spoken) == 0:
            return None
        if len(spoken) < min(_QUORUM, roll) and spoken[-1] - spoken[0] > _AHEAD_MS:
            return None
        return int(spoken[(len(spoken) - 1) // 2]) // self._slot_ms

    def horizon_ms(self, next_slot: int) -> int:
        """Return two days, or some slots, past what half the roll has reached, or past the next slot."""
        reached = int(np.partition(self._latest, len(self._latest) // 2)[len(self._latest) // 2])
        return max(next_slot * self._slot_ms, reached) + max(_AHEAD_MS, _AHEAD_SLOTS * self._slot_ms)

    def due(self, slot: int) -> bool:
        """Return whether half the roll is past the slot."""
        past = np.count_nonzero(self._latest > (slot + 1) * self._slot_ms + self._grace_ms)
        return 2 * int(past) >= len(self._latest)

    async def wait(self, slot: int) -> None:
        """Return when the slot is due."""
        while not self.due(slot):
            self._moved.clear()
            await self._moved.wait()
