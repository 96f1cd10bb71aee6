"""Which readings of a register are believed, and what energy lies between them.

A meter's readings are judged in the order of their time, when a slot closes. A reading goes on from another one if
the register did not fall, the step needs no more than the meter's ``limit_mw``, and no other serial is told (0 is
none). The power is taken over the time since the register last stood lower (at least a second): a display of whole
kWh makes large steps after long rests. A step of one unit of such a display, the largest power of ten up to 1 kWh
that divides both readings, is never too large. With a declared ``modulus_mwh``, a fall that is a step across it
goes on as well.

A reading that does not go on from the latest believed one is held. If one of the next goes on from the believed
one, what was held was a glitch and is forgotten (a cached old value, a zero from a bridge without link). If two
more in sequence go on from the held one, all three are believed, and a new chain starts there. The energy across
such a break is never negative: after a fall it is the new reading itself, if the connection could have carried that
much since (the register was reset to zero); else, with another serial, or after a jump up it is unknown, and the
time across the break says nothing. Zeros do not confirm a zero, unless with another serial: a bridge may say zero
for hours. Readings that do not go on from what is held take its place.

Of a retained reading the age is unknown: it counts only as the very first one of a meter.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from gateway.meters import Meters
from gateway.privacy import MISSING, BoolArray, IntArray
from gateway.slots.exact import energy_mwh, latest, starts
from gateway.slots.held import Rows
from gateway.slots.register_state import PENDING, RegisterState

_SHORTEST_MS = 1_000
_MS_PER_HOUR = 3_600_000
_COARSEST_MWH = 10**6


class Link(NamedTuple):
    """A believed reading; in a :class:`Chain` each field is an array.

    Attributes:
        time_ms: when.
        value: what the register stood at.
        serial: the latest that was told in its chain; 0 where none was.
        lower_ms: when the register stood lower for the last time, or its chain began.
        energy_mwh: since the believed reading before.
        known: whether that energy is known; if not, it is only what was assigned beyond the reading before.

    """

    time_ms: int
    value: int
    serial: int
    lower_ms: int
    energy_mwh: int
    known: bool


class Chain(NamedTuple):
    """Believed readings, meter by meter, in order of time: parallel arrays, as in :class:`Link`."""

    meter: IntArray
    time_ms: IntArray
    value: IntArray
    serial: IntArray
    lower_ms: IntArray
    energy_mwh: IntArray
    known: BoolArray

    def where(self, chosen: BoolArray) -> Chain:
        """Return the chosen readings."""
        return Chain(
            self.meter[chosen],
            self.time_ms[chosen],
            self.value[chosen],
            self.serial[chosen],
            self.lower_ms[chosen],
            self.energy_mwh[chosen],
            self.known[chosen],
        )

    @classmethod
    def of(cls, rows: list[tuple[int, Link]]) -> Chain:
        """Return the chain of readings of (meter, link)."""
        table = np.array([(meter, *link) for meter, link in rows], np.int64).reshape(-1, len(cls._fields)).T
        return cls(table[0], table[1], table[2], table[3], table[4], table[5], table[6].astype(np.bool_))

    def and_then(self, other: Chain) -> Chain:
        """Return both, of different meters."""
        return Chain(
            np.concatenate((self.meter, other.meter)),
            np.concatenate((self.time_ms, other.time_ms)),
            np.concatenate((self.value, other.value)),
            np.concatenate((self.serial, other.serial)),
            np.concatenate((self.lower_ms, other.lower_ms)),
            np.concatenate((self.energy_mwh, other.energy_mwh)),
            np.concatenate((self.known, other.known)),
        )


class Believed(NamedTuple):
    """What is believed of all meters that said something.

    Attributes:
        chain: their readings, after the one that the state tells of, which comes first.
        pending: (2, 3, m) what waits to be confirmed, as in :class:`RegisterState`.
        forgotten: how many readings before the slot's end were glitches.

    """

    chain: Chain
    pending: IntArray
    forgotten: int


def believe(rows: Rows, state: RegisterState, meters: Meters, end_ms: int) -> Believed:
    """Judge readings; ``rows`` start, for each meter that has begun, with the reading that the state tells of."""
    plain, sound = _plain(rows, state, meters)
    begun, pending, forgotten = state.begun, state.pending.copy(), 0
    judged: list[tuple[int, Link]] = []
    doubtful = np.unique(rows.meter[~sound])
    borders = np.searchsorted(rows.meter, (doubtful, doubtful + 1)).T
    for meter, (first, after) in zip(doubtful.tolist(), borders.tolist(), strict=True):
        judge = _Judge.of(meter, state, meters)
        skip = int(begun[meter])
        for reading in zip(*(column[first + skip : after].tolist() for column in _told(rows)), strict=True):
            judge.hear(*reading)
        waiting = [(one.time_ms, one.value, one.serial) for one in judge.held if one.time_ms < end_ms]
        pending[:, :, meter] = waiting + [(MISSING, MISSING, MISSING)] * (PENDING - len(waiting))
        forgotten += sum(time_ms < end_ms for time_ms in judge.forgotten)
        judged += [(meter, link) for link in judge.links]
    chain = plain.where(sound).and_then(Chain.of(judged)) if judged else plain
    return Believed(chain, pending, forgotten)


def _told(rows: Rows) -> tuple[IntArray, IntArray, IntArray]:
    return rows.time_ms, rows.value, rows.serial


def _plain(rows: Rows, state: RegisterState, meters: Meters) -> tuple[Chain, BoolArray]:
    """Return all rows as a chain, and which rows are of meters of which that is true."""
    first = starts(rows.meter)
    step = np.where(first, 0, np.diff(rows.value, prepend=0))
    begun_ms = np.where(state.begun[rows.meter], state.lower_ms[rows.meter], rows.time_ms)
    lower_ms = np.where(first, begun_ms, np.roll(rows.time_ms, 1))[latest(first | (step > 0))]
    serial = rows.serial[latest(first | (rows.serial != 0))]
    resting_ms = np.where(first, 0, rows.time_ms - np.roll(lower_ms, 1))
    most = energy_mwh(meters.limit_mw[rows.meter], np.maximum(resting_ms, _SHORTEST_MS))
    other = (serial != np.roll(serial, 1)) & (np.roll(serial, 1) != 0)
    broken = ~first & ((step < 0) | (step > most) | other)
    doubtful = state.pending[0, 0] != MISSING
    doubtful[rows.meter[broken]] = True
    chain = Chain(rows.meter, rows.time_ms, rows.value, serial, lower_ms, step, np.ones(len(step), np.bool_))
    return chain, ~doubtful[rows.meter]


class _Judge:
    """One meter's readings, in the order of time, where they are not plain.

    Attributes:
        links: what is believed.
        held: what waits to be confirmed.
        forgotten: times of glitches.

    """

    def __init__(self, limit_mw: int, modulus_mwh: int, ahead_mwh: int) -> None:
        self.links: list[Link] = []
        self.held: list[Link] = []
        self.forgotten: list[int] = []
        self._limit_mw = limit_mw
        self._modulus_mwh = modulus_mwh
        self._ahead_mwh = ahead_mwh

    @classmethod
    def of(cls, meter: int, state: RegisterState, meters: Meters) -> Self:
        """Return the judge of a meter's readings after those that the state tells of."""
        begun = bool(state.time_ms[meter] != MISSING)
        ahead = int(state.assigned_mwh[meter] - state.value_mwh[meter]) if begun else 0
        judge = cls(int(meters.limit_mw[meter]), int(meters.modulus_mwh[meter]), ahead)
        if begun:
            told = int(state.time_ms[meter]), int(state.value_mwh[meter]), int(state.serial[meter])
            judge.links.append(Link(*told, int(state.lower_ms[meter]), 0, known=True))
        for time_ms, value, serial in state.pending[:, :, meter].tolist():
            if time_ms != MISSING:
                judge.hear(time_ms, value, serial)
        return judge

    def hear(self, time_ms: int, value: int, serial: int) -> None:
        """Judge the next reading."""
        alone = Link(time_ms, value, serial, time_ms, 0, known=True)
        if not self.links:
            self.links.append(alone)
        elif (link := self._going_on(self.links[-1], alone)) is not None:
            self._forget()
            self._believe(link)
        elif (further := self._confirming(alone)) is not None:
            self.held.append(further)
            if len(self.held) > PENDING:
                self._start_again()
        else:
            self._forget()
            self.held.append(alone)

    def _going_on(self, last: Link, new: Link) -> Link | None:
        step = new.value - last.value
        if step < 0 and new.value < self._modulus_mwh:
            step += self._modulus_mwh
        if _another(last, new) or step < 0 or not self._carried(last, new, step):
            return None
        lower_ms = last.time_ms if step else last.lower_ms
        return Link(new.time_ms, new.value, new.serial or last.serial, lower_ms, step, known=True)

    def _carried(self, last: Link, new: Link, energy_mwh: int) -> bool:
        """Return whether the connection could carry so much between two readings."""
        resting_ms = max(new.time_ms - last.lower_ms, _SHORTEST_MS)
        unit = _COARSEST_MWH
        while last.value % unit or new.value % unit:
            unit //= 10
        return energy_mwh <= unit or energy_mwh * _MS_PER_HOUR <= self._limit_mw * resting_ms

    def _confirming(self, new: Link) -> Link | None:
        if not self.held:
            return None
        silent = self.held[0].value == new.value == 0 and not _another(self.links[-1], new)
        return None if silent else self._going_on(self.held[-1], new)

    def _start_again(self) -> None:
        last, first = self.links[-1], self.held[0]
        reset = first.value < last.value and not _another(last, first)
        known = reset and self._carried(last, first, first.value)
        energy = first.value if known else max(self._ahead_mwh, 0)
        for link in (first._replace(energy_mwh=energy, known=known), *self.held[1:]):
            self._believe(link)
        self.held.clear()

    def _believe(self, link: Link) -> None:
        self.links.append(link)
        self._ahead_mwh -= link.energy_mwh

    def _forget(self) -> None:
        self.forgotten += [link.time_ms for link in self.held]
        self.held.clear()


def _another(last: Link, new: Link) -> bool:
    return 0 not in {last.serial, new.serial} and last.serial != new.serial
