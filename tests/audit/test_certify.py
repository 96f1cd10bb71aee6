"""Certificates by counting: production's policies hold, and every way of breaking the promise is caught."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gateway.audit import certify
from gateway.audit.bench import CloseSlot
from gateway.ledger import Ledger
from gateway.messages import Release
from gateway.policy import Book, Group, PolicyDocument
from gateway.privacy import (
    MISSING,
    Closed,
    IntArray,
    Missing,
    Policy,
    Rounding,
    State,
    close_slot,
    groups,
)

HOMES = 6


def document(**changes: object) -> PolicyDocument:
    """A roll of homes on one feeder: 4 levels alone, 8 in the group, a budget for a day."""
    plain: dict[str, Any] = {
        "topic": "noiseless",
        "slot_ms": 1_800_000,
        "window_ms": 86_400_000,
        "missing": Missing.HOLD,
        "budget": 168_000_000,
        "books": (Book(0, 14_500_000, 4),),
        "households": tuple(f"h-{i:02d}" for i in range(HOMES)),
        "book_of": (0,) * HOMES,
        "groups": (Group("feeder", tuple(range(HOMES)), "sum", 8),),
    }
    return PolicyDocument(**(plain | changes))


def group(**changes: object) -> tuple[Group, ...]:
    plain: dict[str, Any] = {"name": "feeder", "members": tuple(range(HOMES)), "query": "sum", "reach": 8}
    return (Group(**(plain | changes)),)


GOOD = {
    "alone": document(groups=()),
    "in a group": document(),
    "in two groups": document(groups=(*group(), Group("street", (0, 1, 2, 3), "mean", 5))),
    "silence has a symbol": document(missing=Missing.SYMBOL),
    "silence is the floor": document(missing=Missing.FLOOR),
    "export and import": document(books=(Book(-10_000_000, 14_500_000, 5),)),
    "unequal ranges": document(
        books=(Book(0, 3_000_000, 4), Book(-5_000_000, 14_500_000, 3)), book_of=(0, 1) * (HOMES // 2)
    ),
    "feedback": document(books=(Book(0, 14_500_000, 4, Rounding.FEEDBACK),)),
    "feedback afresh each window": document(
        books=(Book(0, 14_500_000, 4, Rounding.FEEDBACK),), fresh_windows=True
    ),
    "feedback with a symbol for silence": document(
        books=(Book(0, 14_500_000, 4, Rounding.FEEDBACK),), missing=Missing.SYMBOL
    ),
    "feedback in the group": document(groups=group(rounding=Rounding.FEEDBACK)),
    "dither": document(books=(Book(0, 14_500_000, 4, Rounding.DITHER),)),
    "weights": document(groups=group(weights=(-3, 2, *(1,) * (HOMES - 2)))),
    "unequal cells": document(
        books=(Book(0, 14_500_000, 4, values=(150_000, 1_000_000, 2_100_000, 4_300_000),
                    cuts=(575_000, 1_550_000, 3_200_000)),)
    ),
    "one household in the group": document(groups=group(members=(3,))),
    "a budget that never pays": document(budget=1_000_000),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_production_keeps_the_promise(name: str) -> None:
    certificate = certify(GOOD[name])
    assert certificate.holds, certificate
    assert all(one.trials > 0 for one in certificate.classes)


def test_the_counts_are_tight_where_the_theory_says_so() -> None:
    """A2 is attained: 4 and 8 levels reach 11 together, and with feedback 4·8."""
    assert certify(document()).classes[0].joint == 11
    assert certify(GOOD["feedback"]).classes[0].joint == 32
    assert [topic.distinct for topic in certify(document()).classes[0].topics] == [4, 8]


def test_theorem_8_is_caught() -> None:
    """[NP] Theorem 8's q lets one member reach one output more (theory E1)."""
    certificate = certify(document(groups=group(calibration="paper")))
    assert not certificate.holds
    assert certificate.classes[0].topics[1].distinct == 9


def test_group_feedback_cut_from_one_level_too_many_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels from k − 1, as without feedback, reach k + 1 when something was left over (theory A3)."""
    monkeypatch.setattr(groups, "feedback_levels", lambda span, s, k: (k - 1) * span // s + 1)
    monkeypatch.setattr(groups, "reach_in", lambda book, s: groups.reach_of(book.cuts, s))
    certificate = certify(document(groups=group(rounding=Rounding.FEEDBACK)))
    assert not certificate.holds


def _uncharged_when_silent(policy: Policy, state: State, start: int, values: IntArray) -> Closed:
    closed = close_slot(policy, state, start, values)
    return replace(closed, charges=np.where(values == MISSING, 0, closed.charges))


def _spent_member_left_in_the_group(policy: Policy, state: State, start: int, values: IntArray) -> Closed:
    closed = close_slot(policy, state, start, values)
    shelf = policy.households
    present = np.clip(np.where(values == MISSING, state.held, values), shelf.lower, shelf.upper)
    assert policy.groups.shelf is not None
    return replace(closed, group_symbols=policy.groups.shelf.encode(policy.groups.sums(present)))


def _held_as_symbol_here_and_value_there(
    policy: Policy, state: State, start: int, values: IntArray
) -> Closed:
    closed = close_slot(policy, state, start, values)
    floor = close_slot(replace(policy, missing=Missing.FLOOR), state, start, values)
    return replace(closed, group_symbols=floor.group_symbols)


def _float_sums(policy: Policy, state: State, start: int, values: IntArray) -> Closed:
    """Watts as single floats, the sum divided by the cell's width: as one writes it without thinking."""
    closed = close_slot(policy, state, start, values)
    shelf, books = policy.households, policy.groups.shelf
    assert books is not None
    present = np.clip(np.where(values == MISSING, state.held, values), shelf.lower, shelf.upper)
    watts = (present / 1_000).astype(np.float32)
    sums = np.add.reduceat(watts[policy.groups.members], policy.groups.starts)
    levels = np.array([book.levels for book in books.codebooks])[books.book_of]
    width = ((books.upper - books.lower) / levels / 1_000).astype(np.float32)
    cells = np.floor((sums - (books.lower / 1_000).astype(np.float32)) / width).astype(np.int64)
    return replace(closed, group_symbols=np.clip(cells, 0, levels - 1))


def _charge_follows_the_symbol(policy: Policy, state: State, start: int, values: IntArray) -> Closed:
    closed = close_slot(policy, state, start, values)
    return replace(closed, charges=closed.charges + closed.symbols)


def _spent_goes_on(policy: Policy, state: State, start: int, values: IntArray) -> Closed:
    rich = replace(policy, budget=np.full_like(policy.budget, 1 << 60))
    return replace(
        close_slot(rich, state, start, values), charges=close_slot(policy, state, start, values).charges
    )


@pytest.mark.parametrize(
    "mutant",
    [
        _uncharged_when_silent,
        _spent_member_left_in_the_group,
        _held_as_symbol_here_and_value_there,
        _float_sums,
        _charge_follows_the_symbol,
        _spent_goes_on,
    ],
)
def test_code_that_breaks_the_promise_is_caught(mutant: CloseSlot) -> None:
    assert not certify(document(), close=mutant).holds


class _KeyedByEpoch(Ledger):
    """Tells slots of different policies apart, as if they were different slots."""

    def close_slot(self, release: Release, next_ms: int, closed: Closed, registers: IntArray) -> None:
        keyed = release._replace(start_ms=release.start_ms + self.epoch)
        super().close_slot(keyed, next_ms, closed, registers)


def test_charges_keyed_by_epoch_are_caught() -> None:
    """The same slot under two policies says more than either (theory A8: 6 > 4)."""
    assert certify(GOOD["alone"]).charged_once
    assert not certify(GOOD["alone"], ledger_type=_KeyedByEpoch).holds


def test_residuals_that_grow_are_caught() -> None:
    """Carrying more than one gap over would say more later than is counted here."""

    def careless(policy: Policy, state: State, start: int, values: IntArray) -> Closed:
        closed = close_slot(policy, state, start, values)
        return replace(closed, state=replace(closed.state, residual=closed.state.residual * 3))

    assert not certify(GOOD["feedback"], close=careless).holds
