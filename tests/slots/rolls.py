"""Rolls of few meters, and short ways to say what they told."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gateway.meters import Meters, Quantity
from gateway.slots import OpenSlots, Put, RegisterState
from gateway.sources import Readings
from gateway.sources.readings import Row

SLOT_MS = 1_800_000
NEXT = 100
START = NEXT * SLOT_MS
FAR = 10**18


class Meter(NamedTuple):
    """One entry of a roll; by default a household of her own, connected by 3 × 25 A."""

    quantity: Quantity
    span_ms: int = 0
    gap_ms: int = 600_000
    limit_mw: int = 17_250_000
    modulus_mwh: int = 0
    spread: bool = True
    household: int | None = None


def intervals(parts: int = 1, household: int | None = None) -> Meter:
    return Meter(Quantity.INTERVAL, SLOT_MS // parts, household=household)


def roll(*meters: Meter) -> Meters:
    whose = [place if one.household is None else one.household for place, one in enumerate(meters)]
    return Meters(
        tuple(f"meter {place}" for place in range(len(meters))),
        np.array(whose, np.int64),
        np.array([one.quantity for one in meters], np.int64),
        np.array([one.span_ms for one in meters], np.int64),
        np.array([one.gap_ms for one in meters], np.int64),
        np.array([one.limit_mw for one in meters], np.int64),
        np.array([one.modulus_mwh for one in meters], np.int64),
        np.array([one.spread for one in meters], np.bool_),
    )


def opened(*meters: Meter, slot_ms: int = SLOT_MS, next_slot: int = NEXT) -> OpenSlots:
    known = roll(*meters)
    households = int(known.household.max(initial=-1)) + 1
    return OpenSlots(slot_ms, known, households, next_slot, RegisterState.initial(len(known)))


def put(slots: OpenSlots, *rows: Row, horizon: int = FAR) -> Put:
    return slots.put(Readings.of(rows), horizon)


def taken(slots: OpenSlots, times: int = 1) -> list[list[int]]:
    return [slots.take().values.tolist() for _ in range(times)]
