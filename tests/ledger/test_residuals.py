"""What feedback leaves over, and what was spent, across restarts and changes of policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from meters import meters_for

from gateway.ledger import Ledger
from gateway.messages import Release
from gateway.policy import Book, Group, PolicyDocument
from gateway.privacy import MISSING, Closed, Missing, Policy, Rounding, State, close_slot

SLOT_MS = 1_800_000
MONDAY_MS = 1_767_571_200_000
FEEDBACK = Rounding.FEEDBACK


def document(
    homes: Sequence[str] = ("a", "b"),
    *,
    levels: int = 2,
    window: int = 48,
    budget: int | None = None,
    rounding: Rounding = FEEDBACK,
    fresh: bool = False,
) -> PolicyDocument:
    """Homes over 0 to 1,000 mW on one feeder, all with feedback."""
    return PolicyDocument(
        topic="out",
        slot_ms=SLOT_MS,
        window_ms=SLOT_MS * window,
        missing=Missing.HOLD,
        budget=budget,
        books=(Book(0, 1_000, levels, rounding),),
        households=tuple(homes),
        book_of=(0,) * len(homes),
        groups=(Group("g", tuple(range(len(homes))), "sum", 4, rounding=rounding),),
        fresh_windows=fresh,
    )


class Service:
    """Closes slots and enters them, as the service does it."""

    def __init__(self, ledger: Ledger, entered: PolicyDocument, begin: int | None) -> None:
        self.ledger, self.document = ledger, entered
        self.policy: Policy = entered.compile()
        standing = ledger.enter(entered, self.policy, *meters_for(entered))
        self.registers = standing.registers
        self.state: State = standing.state
        if standing.next_ms is None:
            ledger.begin(MONDAY_MS if begin is None else begin)
        self.next_ms = standing.next_ms or (MONDAY_MS if begin is None else begin)

    def close(self, *values: int) -> Closed:
        closed = close_slot(self.policy, self.state, self.next_ms, np.array(values, np.int64))
        symbols = [*closed.symbols.tolist(), *closed.group_symbols.tolist()]
        self.ledger.close_slot(
            Release(self.next_ms, symbols, closed.spent.tolist()),
            self.next_ms + SLOT_MS,
            closed,
            self.registers,
        )
        self.state, self.next_ms = closed.state, self.next_ms + SLOT_MS
        return closed


@contextmanager
def service(path: Path, entered: PolicyDocument, begin: int | None = None) -> Iterator[Service]:
    ledger = Ledger(path)
    try:
        yield Service(ledger, entered, begin)
    finally:
        ledger.close()


SERIES = [(300, 800), (300, 100), (MISSING, 700), (900, 450), (20, MISSING), (300, 300), (640, 999), (1, 2)]


def test_what_is_left_over_survives_closing_and_opening_and_nothing_is_released_otherwise(
    tmp_path: Path,
) -> None:
    """One run, and one with a restart after every slot: the same symbols, charges and residuals."""
    with service(tmp_path / "whole.db", document()) as one:
        whole = [one.close(*values) for values in SERIES]
    for values, before in zip(SERIES, whole, strict=True):
        with service(tmp_path / "pieces.db", document()) as one:
            now = one.close(*values)
            assert now.symbols.tolist() == before.symbols.tolist()
            assert now.group_symbols.tolist() == before.group_symbols.tolist()
            assert now.state.residual.tolist() == before.state.residual.tolist()
            assert now.state.group_residual.tolist() == before.state.group_residual.tolist()
    assert any(closed.state.residual.any() for closed in whole)
    assert any(closed.state.group_residual.any() for closed in whole)


@pytest.mark.parametrize(
    "changed",
    [
        document(levels=3),
        document(window=24),
        document(budget=500_000_000),
        document(fresh=True),
        document(homes=("b", "a")),
        document(rounding=Rounding.NEAREST),
    ],
)
def test_what_is_left_over_is_dropped_when_the_policy_changes_and_when_it_changes_back(
    path: Path, changed: PolicyDocument
) -> None:
    with service(path, document()) as one:
        left = one.close(300, 800).state
        assert left.residual.all()
        assert left.group_residual.all()
    with service(path, changed) as one:
        assert not one.state.residual.any()
        assert not one.state.group_residual.any()
    with service(path, document()) as one:
        assert not one.state.residual.any()
        assert not one.state.group_residual.any()


def test_who_leaves_the_roll_takes_nothing_left_over_with_her_when_she_returns(path: Path) -> None:
    with service(path, document()) as one:
        one.close(300, 800)
    with service(path, document(homes=("b",))) as one:
        one.close(300)
    with service(path, document()) as one:
        assert one.state.residual.tolist() == [0, 0]
        assert one.state.group_residual.tolist() == [0]


def test_what_is_left_over_is_kept_per_household_whatever_the_roll_s_order(path: Path) -> None:
    """Places are the ledger's: b's residual never becomes a's."""
    with service(path, document(homes=("a", "b", "c"))) as one:
        kept = one.close(100, 300, 450).state.residual.tolist()
    assert len(set(kept)) == 3
    with service(path, document(homes=("a", "b", "c"))) as one:
        assert one.state.residual.tolist() == kept


# --- spend, when windows change --------------------------------------------------------------------------------

ROLLS = (("a", "b"), ("a",), ("b", "c"), ("c", "a", "b"))
epochs = st.lists(
    st.tuples(
        st.sampled_from(ROLLS),
        st.integers(2, 4),
        st.sampled_from([1, 2, 3, 4, 6, 8]),
        st.sampled_from([None, 3_000_000, 9_000_000, 10**9]),
        st.integers(0, 5),
    ),
    min_size=2,
    max_size=5,
)


class Paid:
    """The definition: who was charged how much for which slot, and what it would have been if all could pay."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, str, int, int]] = []

    def add(self, start: int, names: Sequence[str], charges: Sequence[int], prices: Sequence[int]) -> None:
        self.rows += [(start, *row) for row in zip(names, charges, prices, strict=True)]

    def since(self, window: int, name: str) -> tuple[int, int]:
        mine = [row for row in self.rows if row[0] >= window and row[1] == name]
        return sum(row[2] for row in mine), sum(row[3] for row in mine)

    def total(self, name: str) -> int:
        return sum(row[2] for row in self.rows if row[1] == name)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(epochs, st.integers(0, 7))
def test_no_change_of_policy_forgets_or_invents_spend(
    changes: list[tuple[tuple[str, ...], int, int, int | None, int]], offset: int
) -> None:
    """After every change: what is spent in today's window is at least what was charged since its start, and at
    most what all its slots would have cost; all that was ever charged is known exactly."""
    paid = Paid()
    begin = MONDAY_MS + offset * SLOT_MS
    with TemporaryDirectory() as folder:
        for homes, levels, window, budget, slots in changes:
            one_document = document(homes, levels=levels, window=window, budget=budget)
            with service(Path(folder) / "noiseless.db", one_document, begin) as one:
                now = one_document.window_of(one.next_ms)
                spent = one.state.households.spent_in(now).tolist()
                for name, known in zip(homes, spent, strict=True):
                    charged, priced = paid.since(now, name)
                    assert charged <= known <= priced
                totals = dict(zip(homes, one.state.households.total.tolist(), strict=True))
                assert totals == {name: paid.total(name) for name in homes}
                for _ in range(slots):
                    start = one.next_ms
                    closed = one.close(*[500] * len(homes))
                    paid.add(start, homes, closed.charges.tolist(), one.policy.price.tolist())
                    within = one.state.households.spent_in(one_document.window_of(start)).tolist()
                    for name, known, limit in zip(homes, within, one.policy.budget.tolist(), strict=True):
                        charged, priced = paid.since(one_document.window_of(start), name)
                        assert charged <= known <= priced
                        assert known <= limit or closed.charges[homes.index(name)] == 0


@pytest.mark.parametrize(
    ("before", "after", "slots"), [(48, 24, 5), (24, 48, 30), (6, 4, 11), (4, 6, 11), (8, 1, 3)]
)
def test_with_a_budget_that_never_runs_out_the_spend_carried_over_is_exact(
    path: Path, before: int, after: int, slots: int
) -> None:
    """Recomputed plainly: the slots since the new window began, at their price; groups alike."""
    with service(path, document(window=before, budget=10**12)) as one:
        for _ in range(slots):
            one.close(300, 800)
        price, group_price = one.policy.price.tolist(), one.policy.group_price.tolist()
    changed = document(window=after, budget=10**12)
    with service(path, changed) as one:
        began = changed.window_of(one.next_ms)
        inside = min(slots, max(0, (one.next_ms - began) // SLOT_MS))
        assert one.state.households.spent_in(began).tolist() == [inside * p for p in price]
        assert one.state.groups.spent_in(began).tolist() == [inside * p for p in group_price]
        assert one.state.households.total.tolist() == [slots * p for p in price]


def test_a_budget_that_was_spent_stays_spent_when_the_window_grows(path: Path) -> None:
    """Two paid slots of 24; with a window of 48 that holds them she has spent them still."""
    price = int(document().compile().price[0])
    with service(path, document(window=4, budget=2 * price)) as one:
        assert [one.close(1, 1).spent.tolist()[0] for _ in range(4)] == [False, False, True, True]
    with service(path, document(window=48, budget=2 * price)) as one:
        assert one.close(1, 1).spent.tolist() == [True, True]
    with service(path, document(window=48, budget=5 * price)) as one:
        spent = one.state.households.spent_in(MONDAY_MS).tolist()
        assert 2 * price <= spent[0] <= 5 * price
