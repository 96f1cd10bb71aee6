"""What a recording's meters send, and when: in the order of time across homes, with faults on demand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from gateway.privacy import MISSING, BoolArray, IntArray
from gateway.quantities import written_time
from simulators._uplink import Message
from simulators.recording import Recording


class Quantity(StrEnum):
    """What a message says."""

    INTERVAL = "interval"
    """The energy of an interval, and its start."""
    POWER = "power"
    """The mean power of an interval, and its start."""
    REGISTER = "register"
    """The running total of energy, and the time up to which it counts."""


FIELDS = {Quantity.INTERVAL: "energy_wh", Quantity.POWER: "power_w", Quantity.REGISTER: "register_wh"}
"""The payload's field of each quantity."""


@dataclass(frozen=True)
class Faults:
    """What goes wrong on purpose, drawn from `seed`.

    `lost`, `repeated` and `reordered` are shares of all readings: never sent, sent twice, sent later than due.
    A late one comes within `within_ms`, a second copy within that after the first. Each home's clock is off by
    up to `skew_ms`, in whole seconds. ValueError if a value is unusable.
    """

    lost: float = 0.0
    repeated: float = 0.0
    reordered: float = 0.0
    within_ms: int = 0
    skew_ms: int = 0
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("lost", "repeated", "reordered"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is a share between 0 and 1: got {getattr(self, name)}")
        if self.reordered and self.within_ms < 1:
            raise ValueError("readings can only be late within a time: give one above 0")

    @property
    def span_ms(self) -> int:
        """How long after others of its time a first copy may come, by what their clocks say."""
        return (self.within_ms if self.reordered else 0) + 2 * self.skew_ms


@dataclass(frozen=True, eq=False)
class Timetable:
    """Everything to send, in order; what is lost has its place in it.

    Attributes:
        due_ms: (m,) when a message leaves, ms UTC, rising.
        ts_ms: (m,) the time that it says.
        household: (m,) the home's position.
        milli: (m,) its value, in mWh or mW.
        lost: (m,) never sent.
        repetition: (m,) a second copy.
        overtaken: (m,) first copies that leave after one that was due later.

    """

    due_ms: IntArray
    ts_ms: IntArray
    household: IntArray
    milli: IntArray
    lost: BoolArray
    repetition: BoolArray
    overtaken: BoolArray

    @classmethod
    def of(cls, recording: Recording, quantity: Quantity, faults: Faults) -> Timetable:
        """Return when a recording's readings leave: each as its interval ends, unless it is late."""
        ts, due, household, milli = (
            _registers(recording) if quantity is Quantity.REGISTER else _means(recording, quantity)
        )
        rng = np.random.default_rng([faults.seed])
        draws = rng.random((3, len(ts)))
        lateness = rng.integers(0, faults.within_ms, (2, len(ts)), endpoint=True)
        skew_s = faults.skew_ms // 1_000
        ts = ts + 1_000 * rng.integers(-skew_s, skew_s, len(recording.households), endpoint=True)[household]
        lost, late, twice = draws < [[faults.lost], [faults.reordered], [faults.repeated]]
        leaves = due + np.where(late, np.maximum(lateness[0], 1), 0)
        again = np.flatnonzero(twice & ~lost)
        chosen = np.concatenate((np.arange(len(ts)), again))
        repetition = np.arange(len(chosen)) >= len(ts)
        when = np.concatenate((leaves, leaves[again] + lateness[1][again]))
        order = np.argsort(when, kind="stable")
        chosen, repetition = chosen[order], repetition[order]
        overtaken = _overtaken(due[chosen], lost[chosen] | repetition)
        return cls(
            when[order], ts[chosen], household[chosen], milli[chosen], lost[chosen], repetition, overtaken
        )

    def __len__(self) -> int:
        return len(self.due_ms)

    def messages(self, first: int, last: int, topics: Sequence[str], field: str) -> list[Message]:
        """Write the messages of the places `first` to `last`, without what is lost."""
        sent = first + np.flatnonzero(~self.lost[first:last])
        columns = (self.ts_ms, self.due_ms, self.household, self.milli, self.repetition)
        return [
            Message(
                due,
                topics[home],
                f'{{"ts":"{written_time(ts)}","{field}":{_decimal(milli)}}}'.encode(),
                again,
            )
            for ts, due, home, milli, again in zip(
                *(column[sent].tolist() for column in columns), strict=True
            )
        ]


def _means(recording: Recording, quantity: Quantity) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    values = recording.power_mw() if quantity is Quantity.POWER else recording.energy_mwh()
    row, household = np.nonzero(values != MISSING)
    start = recording.start_ms[row]
    return start, start + recording.interval_ms, household, values[row, household]


def _registers(recording: Recording) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return the totals at the ends of intervals, and before them each home's zero.

    An interval that was not recorded has no total at its end: the next total leaves open what was used in it.
    """
    energy, known = recording.energy_mwh(), recording.known
    total = np.cumsum(np.where(known, energy, 0), axis=0)
    row, household = np.nonzero(known)
    end = recording.start_ms[row] + recording.interval_ms
    zero = recording.start_ms[known.argmax(axis=0)]
    ts = np.concatenate((zero, end))
    homes = np.concatenate((np.arange(len(zero)), household))
    return ts, ts, homes, np.concatenate((np.zeros(len(zero), np.int64), total[row, household]))


def _overtaken(due: IntArray, passed_over: BoolArray) -> BoolArray:
    """Return which of the readings, in the order sent, come after one that was due later."""
    counted = np.where(passed_over, np.iinfo(np.int64).min, due)
    overtaken: BoolArray = ~passed_over & (due < np.maximum.accumulate(counted))
    return overtaken


def _decimal(milli: int) -> str:
    """Write thousandths exactly, as a JSON number."""
    whole, rest = divmod(abs(milli), 1_000)
    sign = "-" if milli < 0 else ""
    return f"{sign}{whole}" + (f".{rest:03}".rstrip("0") if rest else "")
