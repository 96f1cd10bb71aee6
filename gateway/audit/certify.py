"""An inductive proof by counting that a policy keeps its promise, with the production code.

For one household of every class: from every kind of public state (last symbol, budget left or spent, dither's
threshold, a value held from another policy) and every critical total of the others, she varies over her range
and silence, and what feedback left over varies over all it can be. Counted are distinct *bytes* per topic,
which must not exceed the topic's levels, and over all topics together, which must not exceed what is charged.
From any public state the next slot keeps the promise; so does every sequence of slots ([NP] Thm 6, theory 2).

Nothing here uses the formulas it checks: cells, reach and prices are read off what ``close_slot`` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from gateway.audit.bench import Bench, CloseSlot, Outcome, Trials
from gateway.audit.criticals import (
    critical_residuals,
    critical_totals,
    critical_values,
    reachable_cuts,
    residual_interval,
)
from gateway.audit.epochs import charged_once
from gateway.classes import household_classes
from gateway.ledger import Ledger
from gateway.messages import COARSE_BITS, Renderer
from gateway.policy import PolicyDocument
from gateway.privacy import MISSING, IntArray, Missing, Rounding, close_slot, microbits

_MOST_TRIALS = 1 << 17
_DITHER_MOMENTS = 16
_MOST_HELD = 16
_MOST_LEVELS = 1_024
_MOST_TOGETHER = 4


class TopicCount(NamedTuple):
    """One topic: the bytes that were seen at the most, and its levels."""

    topic: str
    distinct: int
    allowed: int

    @property
    def holds(self) -> bool:
        """Whether the promise holds."""
        return self.distinct <= self.allowed


@dataclass(frozen=True)
class ClassCertificate:
    """What was counted for one class of households.

    Attributes:
        label: the class.
        household: the one that was varied.
        topics: per topic.
        joint: distinct outputs over all topics together, at the most.
        charged: micro-bits that the ledger charges for them, at the least.
        constant_when_spent: whether one output is left, at no charge, when the budget is spent; with merged
            cells (coarsen) no more than are charged, and her groups constant.
        charged_alike: whether what is charged does not depend on the reading.
        bounded: whether what feedback leaves over stays in its interval.
        trials: how many slots were closed.

    """

    label: str
    household: str
    topics: tuple[TopicCount, ...]
    joint: int
    charged: int
    constant_when_spent: bool
    charged_alike: bool
    bounded: bool
    trials: int

    @property
    def holds(self) -> bool:
        """Whether the promise holds."""
        paid = microbits(self.joint) <= self.charged
        steady = self.constant_when_spent and self.charged_alike and self.bounded
        return paid and steady and all(topic.holds for topic in self.topics)


@dataclass(frozen=True)
class Certificate:
    """What was found.

    Attributes:
        classes: per class of households.
        charged_once: whether the ledger refuses to charge and release a slot again under another policy.

    """

    classes: tuple[ClassCertificate, ...]
    charged_once: bool

    @property
    def holds(self) -> bool:
        """Whether the promise holds."""
        return self.charged_once and all(one.holds for one in self.classes)


def certify(
    document: PolicyDocument,
    *,
    close: CloseSlot = close_slot,
    ledger_type: type[Ledger] = Ledger,
    progress: Callable[[str], None] = lambda _: None,
) -> Certificate:
    """Count over every class of a policy.

    Args:
        document: the public policy.
        close: the function under test; production's unless a mutant is tried.
        ledger_type: the ledger under test, likewise.
        progress: is told which class is at work.

    Raises:
        ValueError: more levels than can be counted.

    """
    policy = document.compile()
    finest = max([*(book.levels for book in policy.households.codebooks), *policy.reach.tolist()])
    if finest > _MOST_LEVELS:
        raise ValueError(f"{finest} levels are too many to count: at most {_MOST_LEVELS} can be certified")
    renderer = Renderer(document, policy)
    certificates = []
    for one, household in _representatives(document):
        progress(one)
        bench = Bench(policy, household, close)
        certificates.append(_Counting(document, renderer, bench).certificate(one))
    return Certificate(tuple(certificates), charged_once(document, ledger_type))


def _representatives(document: PolicyDocument) -> Iterator[tuple[str, int]]:
    """Yield one household for each class and set of groups: others in the same position behave alike."""
    policy = document.compile()
    seated: dict[int, list[tuple[int, int]]] = {}
    for place, member in enumerate(policy.groups.members.tolist()):
        seated.setdefault(member, []).append(
            (int(policy.groups.group_of[place]), int(policy.groups.weights[place]))
        )
    for one in household_classes(document, policy):
        seen = set()
        for household in one.positions.tolist():
            seats = tuple(seated.get(household, ()))
            if seats not in seen:
                seen.add(seats)
                yield one.label, household


class _State(NamedTuple):
    """A public state: the value held, what is spent, and the slot's start (dither's moment)."""

    held: int
    spent: int
    start: int


class _Counting:
    """Counts for one household."""

    def __init__(self, document: PolicyDocument, renderer: Renderer, bench: Bench) -> None:
        self._document = document
        self._renderer = renderer
        self._bench = bench
        self._name = document.households[bench.household]
        self._books = [bench.codebook, *(seat.codebook for seat in bench.seats)]
        self._carrying = [book.rounding is Rounding.FEEDBACK for book in self._books]
        self._distinct = [1] * len(self._books)
        self._steps = [0] * len(self._books)
        self._joint = self._apart = self._trials = 0
        self._charged: set[int] = set()
        self._constant = self._bounded = True
        self._names: list[dict[bytes, int]] = [{} for _ in self._books]

    def certificate(self, label: str) -> ClassCertificate:
        """Count, and return what was counted."""
        for state in self._states():
            for totals in self._rows():
                self._count(state, totals)
        groups, seats = self._document.groups, self._bench.seats
        allowed = [self._bench.codebook.levels, *(groups[seat.group].reach for seat in seats)]
        names = [f"household/{self._name}", *(f"group/{groups[seat.group].name}" for seat in seats)]
        return ClassCertificate(
            label,
            self._name,
            tuple(TopicCount(*row) for row in zip(names, self._distinct, allowed, strict=True)),
            max(self._joint, self._merged()),
            min(self._charged, default=0),
            self._constant,
            len(self._charged) <= 1,
            self._bounded,
            self._trials,
        )

    def _merged(self) -> int:
        """Return the joint outputs over all totals at once: changes along her line add up, states multiply.

        Along her line the outputs of all topics change only where one of them does, so there are at most one
        more than changes; silence may be one more. That counts what was seen, whatever the rule was.
        """
        carried = prod(n for n, carrying in zip(self._distinct, self._carrying, strict=True) if carrying)
        steps = sum(n for n, carrying in zip(self._steps, self._carrying, strict=True) if not carrying)
        return carried * (1 + steps + self._apart)

    def _states(self) -> Iterator[_State]:
        book, policy, one = self._bench.codebook, self._bench.policy, self._bench.household
        budget, price = int(policy.budget[one]), int(policy.price[one])
        held = book.values[
            np.unique(np.linspace(0, book.levels - 1, min(book.levels, _MOST_HELD)).astype(np.int64))
        ]
        # Under another policy she may have been left with any value; the ends and odd places stand for them.
        foreign = [book.floor, book.upper, book.lower - 10**9, (int(held[0]) + int(held[-1])) // 2 + 1]
        moments = _DITHER_MOMENTS if book.rounding is Rounding.DITHER else 1
        for value in [*held.tolist(), *foreign]:
            for moment in range(moments):
                start = moment * self._document.slot_ms
                yield _State(value, 0, start)
            if price:
                for left in self._too_little(price):
                    yield _State(value, max(0, budget - left), 0)

    def _too_little(self, price: int) -> list[int]:
        """Return what may be left (micro-bits) when a slot cannot be paid, at which what is done about it changes."""
        costs = [int(cost) for cost in self._bench.policy.ladder[:_MOST_HELD] if cost < price]
        return sorted({0, price - 1, *costs, *(cost - 1 for cost in costs if cost)})

    def _rows(self) -> Iterator[IntArray]:
        """Yield (g, R) totals: every critical one of each group, and the ends of all together."""
        seats = self._bench.seats
        if not seats:
            yield np.zeros((0, 1), np.int64)
        ends = np.array([seat.others for seat in seats], np.int64).reshape(len(seats), 2)
        for j, seat in enumerate(seats):
            critical = critical_totals(seat, self._bench.codebook)
            rows = np.repeat(ends[:, :1], len(critical), axis=1)
            rows[j] = critical
            yield rows
        if len(seats) > 1:
            few = [
                np.linspace(*seat.others, _MOST_TOGETHER).astype(np.int64) for seat in seats[:_MOST_TOGETHER]
            ]
            combined = np.array(list(product(*few))).T
            rest = np.repeat(ends[_MOST_TOGETHER:, :1], combined.shape[1], axis=1)
            yield np.concatenate((combined, rest))

    def _count(self, state: _State, totals: IntArray) -> None:
        columns = critical_values(self._bench.seats, self._bench.codebook, totals)
        silent = np.full((totals.shape[1], 1), MISSING)
        same = np.full((totals.shape[1], 1), self._said_by_silence(state))
        columns = np.concatenate((columns, same, silent), axis=1)
        step = max(1, _MOST_TRIALS // (columns.shape[1] * self._widest(columns, totals)))
        for first in range(0, totals.shape[1], step):
            rows = slice(first, first + step)
            self._count_rows(state, totals[:, rows], columns[rows])

    def _said_by_silence(self, state: _State) -> int:
        """Return the reading that silence should look like; with its own symbol it looks like none."""
        book = self._bench.codebook
        held = self._document.missing is Missing.HOLD
        return int(np.clip(state.held, book.lower, book.upper)) if held else book.lower

    def _count_rows(self, state: _State, totals: IntArray, columns: IntArray) -> None:
        """Close a slot for every row (totals), column (her value) and what may be left over."""
        grids = self._grids(totals, columns)
        shape = np.broadcast_shapes(*(grid.shape for grid in grids))
        flat = [np.broadcast_to(grid, shape).ravel() for grid in grids]
        g, n = len(totals), len(flat[0])
        spread = [np.broadcast_to(row[:, None, None, None], shape).ravel() for row in totals]
        trials = Trials(
            np.broadcast_to(columns[:, :, None, None], shape).ravel(),
            np.array(spread, np.int64).reshape(g, n),
            np.full(n, state.held),
            flat[0],
            np.array(flat[1:], np.int64).reshape(g, n),
        )
        outcome = self._bench.run(trials, spent=state.spent, start=state.start)
        self._trials += n
        codes = np.stack([self._identified(t, outcome, state.start) for t in range(1 + g)]).reshape(
            1 + g, *shape
        )
        if bool(outcome.spent.any()):
            self._take_spent(codes, outcome)
        elif bool(outcome.coarse.any()):
            self._take_coarse(codes, outcome)
        else:
            self._take_active(codes, outcome)

    def _take_spent(self, codes: IntArray, outcome: Outcome) -> None:
        rows = codes.reshape(codes.shape[0], codes.shape[1], -1)
        self._constant &= bool(np.all(rows == rows[:, :, :1])) and not bool(outcome.charges.any())

    def _take_coarse(self, codes: IntArray, outcome: Outcome) -> None:
        rows = codes.reshape(codes.shape[0], codes.shape[1], -1)
        constant = bool(np.all(rows[1:] == rows[1:, :, :1]))
        charges = np.unique(outcome.charges)
        self._constant &= (
            constant and len(charges) == 1 and microbits(_most_distinct(rows[0])) <= int(charges[0])
        )

    def _take_active(self, codes: IntArray, outcome: Outcome) -> None:
        topics, rows = codes.shape[:2]
        self._charged |= set(np.unique(outcome.charges).tolist())
        self._joint = max(self._joint, _most_distinct(_combined(codes).reshape(rows, -1)))
        for topic in range(topics):
            seen, along = codes[topic].reshape(rows, -1), codes[topic][:, :-2]
            self._distinct[topic] = max(self._distinct[topic], _most_distinct(seen))
            changes = np.count_nonzero(np.diff(along, axis=1), axis=1)
            self._steps[topic] = max(self._steps[topic], int(changes.max(initial=0)))
            if not self._carrying[topic] and not np.array_equal(codes[topic][:, -1], codes[topic][:, -2]):
                self._apart = 1
            self._bounded &= self._stays(topic, outcome.residual[topic])

    def _stays(self, topic: int, residual: IntArray) -> bool:
        least, most = residual_interval(self._books[topic]) if self._carrying[topic] else (0, 0)
        return bool(np.all((residual >= least) & (residual <= most)))

    def _grids(self, totals: IntArray, columns: IntArray) -> list[IntArray]:
        """Return what may be left over of each topic: (R, X, E, 1) of her own, (R, X, 1, G) of a group.

        Only the group whose totals vary has its own varied with hers; the others' levels multiply anyway.
        """
        book = self._bench.codebook
        present = np.clip(columns, book.lower, book.upper)
        own = critical_residuals(book, present, np.broadcast_to(book.cuts, (*present.shape, len(book.cuts))))
        grids = [own[:, :, :, None]]
        varied = self._varied(totals)
        for j, (seat, row) in enumerate(zip(self._bench.seats, totals, strict=True)):
            if j != varied:
                grids.append(np.zeros((1, 1, 1, 1), np.int64))
                continue
            near = reachable_cuts(seat, book, row)
            sums = row[:, None] + seat.weight * present
            cuts = np.broadcast_to(near[:, None, :], (*present.shape, near.shape[1]))
            grids.append(critical_residuals(seat.codebook, sums, cuts)[:, :, None, :])
        return grids

    def _varied(self, totals: IntArray) -> int | None:
        moving = [j for j, row in enumerate(totals) if row.min() != row.max()]
        return moving[0] if len(moving) == 1 else (0 if len(totals) == 1 else None)

    def _widest(self, columns: IntArray, totals: IntArray) -> int:
        grids = self._grids(totals[:, :1], columns[:1])
        return int(np.prod(np.broadcast_shapes(*(grid.shape[2:] for grid in grids))))

    def _identified(self, topic: int, outcome: Outcome, start: int) -> IntArray:
        """Return (N,) a number for each distinct payload of a topic."""
        place = (
            self._bench.household
            if topic == 0
            else len(self._document.households) + self._bench.seats[topic - 1].group
        )
        keys = outcome.symbols[topic]
        if topic == 0:
            keys = np.where(outcome.spent, ~keys, keys | outcome.coarse << COARSE_BITS)
        distinct, back = np.unique(keys, return_inverse=True)
        names = self._names[topic]
        numbers = []
        for key in distinct.tolist():
            payload = self._renderer.payload(place, start, key)
            numbers.append(names.setdefault(payload, len(names)))
        return np.array(numbers, np.int64)[back.ravel()]


def _combined(codes: IntArray) -> IntArray:
    """Return one number for each combination of payloads over all topics."""
    joint = codes[0]
    for topic in codes[1:]:
        joint = joint * (int(topic.max()) + 1) + topic
        _, joint_flat = np.unique(joint, return_inverse=True)
        joint = joint_flat.reshape(topic.shape)
    return np.asarray(joint, np.int64)


def _most_distinct(rows: IntArray) -> int:
    """Return the most distinct numbers in any row."""
    ordered = np.sort(rows, axis=1)
    return int(1 + np.count_nonzero(np.diff(ordered, axis=1), axis=1).max(initial=0))
