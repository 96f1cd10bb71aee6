"""Trips through a city: recorded in New York, or through one that is made up."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from gateway.privacy import IntArray
from simulators.attackers.trips import Area
from simulators.studies.data import TRIPS, columns_of, find, reading, stand_in
from simulators.studies.study import Settings

CITY = Area(south=40_700_000, north=40_800_000, west=-74_050_000, east=-73_900_000)
"""The public rectangle: central New York, as the recorded trips were cropped."""

_COLUMNS = ("pickup_latitude", "pickup_longitude", "dropoff_latitude", "dropoff_longitude")
_SIMULATED, _SIMULATED_QUICK = 10_000, 2_000
_PLACES = 40


class Source(NamedTuple):
    """Trips, (n, 4) in microdegrees, and where they are from."""

    name: str
    trips: IntArray


def source_of(settings: Settings) -> Source:
    """Return the recorded trips where they are, else simulated ones."""
    path = find(settings.data, TRIPS)
    if path is not None:
        trips = read(path)
        return Source(f"{len(trips):,} yellow-cab trips, New York, January 2015", trips)
    count = _SIMULATED_QUICK if settings.quick else _SIMULATED
    trips = simulated(count, CITY, np.random.default_rng(settings.seed))
    made = stand_in(settings, TRIPS, f"{count:,} simulated trips of a made-up city")
    return Source(f"{made}, seed {settings.seed}", trips)


def read(path: Path) -> IntArray:
    """Return (n, 4) trips in microdegrees from a CSV with the trip records' column names.

    Raises:
        OSError: it cannot be read.
        ValueError: a column is missing, a coordinate is not a number, or it is damaged.

    """
    with reading(path) as file:
        degrees = columns_of(file, _COLUMNS)
        if not np.isfinite(degrees).all():
            raise ValueError("a coordinate is missing")
    return np.rint(degrees * 1e6).astype(np.int64)


def simulated(count: int, area: Area, rng: np.random.Generator) -> IntArray:
    """Return trips of a made-up city: busy places with weights 1, 1/2, 1/3…, one end in six anywhere.

    Starts and ends are drawn alike and independently; every place spreads by a fiftieth of the area.
    """
    (south, north), (west, east) = area.ranges[:2]
    low, span = np.array([south, west]), np.array([north - south, east - west])
    places = rng.uniform(0.1, 0.9, (_PLACES, 2))
    weights = 1 / np.arange(1, _PLACES + 1)
    chosen = rng.choice(_PLACES, 2 * count, p=weights / weights.sum())
    near = places[chosen] + rng.normal(0, 0.02, (2 * count, 2))
    anywhere = rng.random((2 * count, 1)) < 1 / 6
    points = np.where(anywhere, rng.random((2 * count, 2)), near)
    trips: IntArray = np.rint(low + np.clip(points, 0, 1) * span).astype(np.int64).reshape(count, 4)
    return trips
