"""Meters that tell power or a register, and what their slots should say: exact fractions, none of the gateway."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from itertools import pairwise
from math import floor

from gateways import Table, roll
from service.expecting import MIDNIGHT
from service.watching import Message, Watcher

MOST_W = 1_500
FINE = {"range": [f"-{MOST_W} W", f"{MOST_W} W"], "levels": 2 * MOST_W + 1}
"""Cells of one watt and a symbol of its own for silence: what was decided can be read off the symbol."""

POWER: Table = {
    "topic": "meters/{meter}/power",
    "quantity": "power",
    "value": "/w",
    "unit": "W",
    "time": {"at": "/ts"},
}
REGISTER: Table = {
    "topic": "meters/{meter}/register",
    "quantity": "register",
    "value": "/wh",
    "unit": "Wh",
    "time": {"at": "/ts"},
}
_READINGS: Table = {
    "topic": "meters/{meter}/reading",
    "value": "/energy_wh",
    "unit": "Wh",
    "time": {"at": "/ts"},
    "meters": ["tick-*"],
}


@dataclass(frozen=True)
class Street:
    """Some meters that are watched, and more whose intervals move the event clock, so that the watched do not.

    `sources` are tables of the watched meters; `length_s` is the slot's.
    """

    watched: Sequence[str]
    sources: Sequence[Table]
    length_s: int = 60
    first_s: int = MIDNIGHT

    @property
    def ticking(self) -> list[str]:
        """The meters that move the clock: more than those that are watched."""
        return [f"tick-{i}" for i in range(len(self.watched) + 1)]

    def tables(self, missing: str = "symbol") -> dict[str, object]:
        """Return the tables of a gateway for it."""
        return {
            "household": [*roll(*self.watched, **FINE), *roll(*self.ticking)],
            "source": [*self.sources, _READINGS],
            "slots": {"length": f"{self.length_s}s", "missing": missing},
        }

    def tick(self, slot: int) -> list[Message]:
        """Return the messages after which every slot before `slot` is due."""
        start = iso(self.first_s + slot * self.length_s)
        return [
            Message(f"meters/{name}/reading", json.dumps({"ts": start, "energy_wh": 1}).encode())
            for name in self.ticking
        ]

    def power(self, meter: str, second: float, watts: float) -> Message:
        """Return a sample, `second` seconds after the first slot's start."""
        return self._message(meter, "power", second, w=watts)

    def register(self, meter: str, second: float, wh: float, **fields: object) -> Message:
        """Return what a register stands at, `second` seconds after the first slot's start."""
        return self._message(meter, "register", second, wh=wh, **fields)

    def watts(self, watcher: Watcher, meter: str, slots: int, below: str = "noiseless") -> list[int | None]:
        """Return the whole watts that her first slots were released with; None for silence."""
        starts = [iso(self.first_s + slot * self.length_s) for slot in range(slots)]
        releases = watcher.wait_for_slots([f"household/{meter}"], starts, below=below)[f"household/{meter}"]
        return [watts_of(releases[start][0]) for start in starts]

    def _message(self, meter: str, kind: str, second: float, **fields: object) -> Message:
        told = {"ts": iso(self.first_s + second), **fields}
        return Message(f"meters/{meter}/{kind}", json.dumps(told).encode())


def iso(seconds: float) -> str:
    """Return a moment as meters and releases write it."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="auto").replace("+00:00", "Z")


def watts_of(release: bytes) -> int | None:
    """Return the whole watts of a release with FINE cells; None for silence."""
    symbol = json.loads(release)["symbol"]
    return None if symbol == 0 else symbol - 1 - MOST_W


def mean_of_samples(samples: Mapping[int, int], length_s: int, gap_s: int) -> int | None:
    """Return the mean (W, rounded down) of samples by whole second: each second goes to the one that holds then."""
    held = [watts for second in range(length_s) if (watts := _holding(samples, second, gap_s)) is not None]
    return None if 2 * len(held) < length_s else floor(Fraction(sum(held), len(held)))


def _holding(samples: Mapping[int, int], second: int, gap_s: int) -> int | None:
    before = [moment for moment in samples if moment <= second]
    if before:
        return samples[max(before)] if second - max(before) < gap_s else None
    first = min(samples, default=None)
    return samples[first] if first is not None and first - second <= gap_s else None


def means_of_register(stood: Iterable[tuple[int, int]], length_s: int, slots: int) -> list[Fraction]:
    """Return the mean power (W) of slots by interpolation of (second, Wh) at their borders."""
    points = sorted(stood)

    def at(second: int) -> Fraction:
        for (earlier, low), (later, high) in pairwise(points):
            if earlier <= second <= later:
                return low + Fraction((high - low) * (second - earlier), later - earlier)
        raise AssertionError("not between two readings")

    borders = [at(slot * length_s) for slot in range(slots + 1)]
    return [(after - before) * 3_600 / length_s for before, after in pairwise(borders)]


def assert_close(watts: Sequence[int | None], means: Sequence[Fraction]) -> None:
    """Whole watts may be one off the exact mean: energies are whole mWh, powers whole mW, cells whole W."""
    assert len(watts) == len(means)
    for slot, (said, mean) in enumerate(zip(watts, means, strict=True)):
        assert said is not None, f"slot {slot} is missing"
        assert -1 <= mean - said <= 2, f"slot {slot}: {said} W instead of {float(mean)} W"
