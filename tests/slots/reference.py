"""The rules for power samples and registers in plain rationals, second by second; slow, and only for tests.

All times are whole seconds (in ms), so that a slot is so many seconds, each of which is covered or not.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import floor
from typing import NamedTuple

from slots.rolls import Meter

from gateway.privacy import MISSING
from gateway.sources.readings import Row

SECOND = 1_000
HOUR = 3_600_000


def largest_at_each_time(rows: list[Row]) -> list[Row]:
    """Return one row per time, a live one rather than a retained one, then the largest, of the largest serial."""
    best: dict[int, Row] = {}
    for row in rows:
        held = best.setdefault(row.time_ms, row)
        best[row.time_ms] = max(held, row, key=lambda one: (not one.retained, one.value, one.serial))
    return [best[time] for time in sorted(best)]


def mean_power(meter: Meter, rows: list[Row], start: int, end: int) -> int:
    """Return the mean of a slot's samples, by asking for each second which one holds."""
    samples = [(row.time_ms, row.value) for row in largest_at_each_time(rows)]
    total, covered = 0, 0
    for now in range(start, end, SECOND):
        holding = [(time, value) for time, value in samples if time <= now]
        if holding:
            time, value = holding[-1]
            holds = now < time + meter.gap_ms
        elif samples:
            time, value = samples[0]
            holds = now >= time - meter.gap_ms
        else:
            holds, value = False, 0
        covered += holds
        total += value * holds
    return MISSING if 2 * covered * SECOND < end - start else floor(Fraction(total, covered))


class Point(NamedTuple):
    """A believed reading; ``level`` counts on across breaks, ``born`` is when its chain began."""

    time: int
    value: int
    serial: int
    level: int
    born: int
    known: bool = True


class Register:
    """One register, which forgets nothing."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self.believed: list[Point] = []
        self.pending: list[Row] = []
        self.assigned: tuple[int, int] | None = None
        self.energies: list[int] = []

    def close(self, rows: list[Row], start: int, end: int) -> int:
        """Return the mean power of a slot; ``rows`` are all of it and of later slots."""
        useful: list[Row] = []
        for row in largest_at_each_time([row for row in rows if row.time_ms < end]):
            if not row.retained or not (self.believed or useful or self.pending):
                useful.append(row)
        later = [row for row in largest_at_each_time(rows) if row.time_ms >= end and not row.retained]
        fresh = not self.believed
        points, held = self.judge(self.pending + useful + later[:3])
        if not points or points[0].time >= end:
            return MISSING
        self.believed = [point for point in points if point.time < end]
        self.pending = [row for row in held if row.time_ms < end]
        after = next((point for point in points if point.time >= end), None)
        return self.value(after, start, end, fresh=fresh)

    def judge(self, rows: list[Row]) -> tuple[list[Point], list[Row]]:
        points, held = list(self.believed), list[Row]()
        for row in rows:
            if not points:
                points.append(Point(row.time_ms, row.value, row.serial, row.value, row.time_ms))
            elif (step := self.step(points, row)) is not None:
                points.append(self.next_point(points[-1], row, step))
                held = []
            elif self.confirms(points[-1], held, row):
                held.append(row)
                if len(held) == 3:
                    points, held = self.new_chain(points, held), []
            else:
                held = [row]
        return points, held

    def step(self, points: list[Point], row: Row) -> int | None:
        """Return the energy of a step that goes on."""
        last = points[-1]
        energy = row.value - last.value
        if energy < 0 and row.value < self.meter.modulus_mwh:
            energy = row.value + self.meter.modulus_mwh - last.value
        other = row.serial and last.serial and row.serial != last.serial
        return energy if energy >= 0 and not other and self.carries(points, row, energy) else None

    def carries(self, points: list[Point], row: Row, energy: int) -> bool:
        last = points[-1]
        lower = [
            p.time for p in points if p.time >= last.born and p.level < last.level and p.born == last.born
        ]
        since = lower[-1] if lower else last.born
        unit = max(10**k for k in range(7) if last.value % 10**k == 0 and row.value % 10**k == 0)
        power = Fraction(energy * HOUR, max(row.time_ms - since, SECOND))
        return power <= self.meter.limit_mw or energy <= unit

    def next_point(self, last: Point, row: Row, energy: int) -> Point:
        return Point(row.time_ms, row.value, row.serial or last.serial, last.level + energy, last.born)

    def confirms(self, last: Point, held: list[Row], row: Row) -> bool:
        if not held:
            return False
        other = row.serial and last.serial and row.serial != last.serial
        if held[0].value == 0 and row.value == 0 and not other:
            return False
        return self.step(self.chain_of(held), row) is not None

    def chain_of(self, held: list[Row], level: int = 0, *, known: bool = True) -> list[Point]:
        first = held[0]
        points = [Point(first.time_ms, first.value, first.serial, level, first.time_ms, known)]
        for row in held[1:]:
            step = self.step(points, row)
            assert step is not None
            points.append(self.next_point(points[-1], row, step))
        return points

    def new_chain(self, points: list[Point], held: list[Row]) -> list[Point]:
        last, first = points[-1], held[0]
        other = first.serial and last.serial and first.serial != last.serial
        if first.value < last.value and not other and self.carries(points, first, first.value):
            return points + self.chain_of(held, last.level + first.value)
        ahead = self.assigned[1] if self.assigned else last.level
        return points + self.chain_of(held, max(last.level, ahead), known=False)

    def value(self, after: Point | None, start: int, end: int, *, fresh: bool) -> int:
        points = self.believed + ([after] if after else [])
        time, level = self.assigned or (points[0].time, points[0].level)
        energy, covered, silent = 0, set[int](), set[int]()
        seconds = range(start, end, SECOND)
        for left, right in pairwise(points):
            if right.time < time or (right.time == time and right.level <= level):
                continue
            of_it = {now for now in seconds if left.time <= now < right.time}
            if not right.known or not (self.meter.spread or right.time - left.time <= self.meter.gap_ms):
                silent |= of_it
                if right.time < end:
                    time, level = right.time, max(level, right.level)
                else:
                    after = None
                continue
            begin = max(left.time, time)
            low, high = max(left.level, level), max(right.level, level)
            at_start = (
                low if start - begin <= self.meter.gap_ms else along(begin, low, right.time, high, start)
            )
            stop = min(right.time, end)
            at_stop = along(begin, low, right.time, high, stop)
            energy += at_stop - at_start
            covered |= {now for now in of_it if now >= begin}
            time, level = stop, at_stop
        if after is None:
            time, level = max(time, self.believed[-1].time), max(level, self.believed[-1].level)
            if end - time > self.meter.gap_ms:
                silent |= {now for now in seconds if now >= time}
        if fresh:
            silent |= {now for now in seconds if now < points[0].time}
        self.assigned = (time, level)
        if 2 * len(covered) < len(seconds):
            return MISSING
        self.energies.append(energy)
        return floor(Fraction(energy * HOUR, (len(seconds) - len(silent)) * SECOND))


def along(begin: int, low: int, end: int, high: int, now: int) -> int:
    """Return the level at a time on the way, rounded down."""
    return high if now >= end else low + floor(Fraction((high - low) * (now - begin), end - begin))
