"""A recording: what meters measured in intervals of one length, as one table of integers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo

import numpy as np

from gateway.privacy import MISSING, BoolArray, IntArray

_MS_PER_HOUR = 3_600_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, eq=False)
class Recording:
    """What meters recorded in intervals of one length.

    Attributes:
        start_ms: (T,) the intervals' starts, ms UTC, rising.
        households: the H homes' names.
        milli: (T, H) energy in mWh, or mean power in mW; ``MISSING`` where nothing was recorded.
        power: whether it is power.
        interval_ms: the intervals' length.
        zone: of the file's times without an offset.

    """

    start_ms: IntArray
    households: tuple[str, ...]
    milli: IntArray
    power: bool
    interval_ms: int
    zone: tzinfo | None = None

    @property
    def known(self) -> BoolArray:
        """(T, H) where something was recorded."""
        known: BoolArray = self.milli != MISSING
        return known

    def energy_mwh(self) -> IntArray:
        """Return (T, H) the intervals' energies, to the nearest mWh."""
        return self._scaled(self.interval_ms, _MS_PER_HOUR) if self.power else self.milli

    def power_mw(self) -> IntArray:
        """Return (T, H) the intervals' mean powers, to the nearest mW."""
        return self.milli if self.power else self._scaled(_MS_PER_HOUR, self.interval_ms)

    def between(self, begin: str | None, until: str | None) -> Recording:
        """Return the intervals that start in [begin, until), ISO 8601 times, in the file's zone without offset.

        Raises:
            ValueError: a text is no time, or its zone is not known.

        """
        first = 0 if begin is None else np.searchsorted(self.start_ms, _moment_ms(begin, self.zone))
        last = None if until is None else np.searchsorted(self.start_ms, _moment_ms(until, self.zone))
        return replace(self, start_ms=self.start_ms[first:last], milli=self.milli[first:last])

    def of_first(self, homes: int | None) -> Recording:
        """Return the first homes (all, if None), without those that recorded nothing.

        Raises:
            ValueError: nothing is left.

        """
        said = np.flatnonzero(self.known[:, :homes].any(axis=0))
        if not len(said):
            raise ValueError("nothing was recorded in the chosen time and homes")
        return replace(self, households=tuple(self.households[i] for i in said), milli=self.milli[:, said])

    def moved(self, by_ms: int) -> Recording:
        """Return the same at another time."""
        return replace(self, start_ms=self.start_ms + by_ms)

    def _scaled(self, times: int, over: int) -> IntArray:
        whole = np.where(self.known, self.milli, 0)
        scale = math.gcd(times, over)
        times, over = times // scale, over // scale
        return np.where(self.known, (2 * whole * times + over) // (2 * over), MISSING)


def utc_ms_of(time: datetime, zone: tzinfo | None) -> int:
    """Return ms UTC of a time. ValueError: it has no offset, and no zone is known."""
    if time.tzinfo is None:
        if zone is None:
            raise ValueError('times without an offset: say where they are from by --zone, like "+10:00"')
        time = time.replace(tzinfo=zone)
    return (time - _EPOCH) // timedelta(milliseconds=1)


def _moment_ms(text: str, zone: tzinfo | None) -> int:
    try:
        return utc_ms_of(datetime.fromisoformat(text), zone)
    except ValueError as error:
        raise ValueError(f"{text}: {error}") from None
