"""Accounts keep their places, their bytes, and their spend whatever the roll and the windows become."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.ledger.balance import Balances
from gateway.privacy import Account, IntArray, State

# Under load a first example may take its time.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

HOUR = 3_600_000
NOON = 490_992 * HOUR + 4 * HOUR
NEVER = int(np.iinfo(np.int64).min)


def account(window: int, spent: list[int], total: list[int]) -> Account:
    return Account(np.full(len(spent), window), np.array(spent, np.int64), np.array(total, np.int64))


def state(window: int, spent: list[int], total: list[int], held: list[int], left: list[int]) -> State:
    """Return the state of households without a group."""
    return State(
        account(window, spent, total), account(window, [], []), np.array(held), np.array(left), places()
    )


def places(*positions: int) -> IntArray:
    return np.array(positions, np.int64)


def mixed() -> State:
    """Return the state of two households and three groups."""
    return State(
        account(NOON, [1, 2], [3, 4]),
        account(NOON, [5, 6, 7], [8, 9, 10]),
        np.array([11, 12]),
        np.array([-13, 14]),
        np.array([15, -16, 17]),
    )


def test_packed_columns_come_back_as_they_were() -> None:
    fresh = state(NOON, [1, 2, 3], [10, 20, 30], [-5, 0, 2**40], [7, -(2**40), 0])
    balances = Balances.none().widened(fresh, places(0, 1, 2), places())
    again = Balances.unpack(*balances.pack())
    assert again.households.tolist() == balances.households.tolist()
    assert again.groups.shape == (4, 0)
    assert len(balances.pack()[0]) == 3 * 5 * 8


def test_packed_columns_are_little_endian_whatever_the_machine() -> None:
    packed, _ = Balances.none().widened(state(1, [2], [3], [4], [5]), places(0), places()).pack()
    assert packed == b"".join(number.to_bytes(8, "little") for number in (1, 2, 3, 4, 5))


def test_groups_have_a_window_a_spend_a_total_and_what_is_left_over() -> None:
    balances = Balances.none().widened(mixed(), places(0, 1), places(0, 1, 2))
    assert balances.groups.T.tolist() == [[NOON, 5, 8, 15], [NOON, 6, 9, -16], [NOON, 7, 10, 17]]
    again = Balances.unpack(*balances.pack())
    assert again.groups.tolist() == balances.groups.tolist()
    assert len(balances.pack()[1]) == 3 * 4 * 8


def test_a_household_that_is_new_stands_as_fresh_and_the_others_as_they_were() -> None:
    old = Balances.none().widened(state(NOON, [1, 2], [10, 20], [7, 8], [5, 6]), places(0, 1), places())
    fresh = state(NEVER, [0, 0], [0, 0], [-1, -2], [0, 0])
    wide = old.widened(fresh, places(1, 2), places())
    assert wide.households.T.tolist() == [
        [NOON, 1, 10, 7, 5],
        [NOON, 2, 20, 8, 6],
        [NEVER, 0, 0, -2, 0],
    ]


def test_a_household_off_the_roll_is_untouched_by_what_its_slots_charge() -> None:
    old = Balances.none().widened(
        state(NOON, [1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 2, 3]), places(0, 1, 2), places()
    )
    after = old.after(state(NOON + HOUR, [50, 60], [500, 600], [5, 6], [7, 8]), places(2, 0), places())
    assert after.households.T.tolist() == [
        [NOON + HOUR, 60, 600, 6, 8],
        [NOON, 2, 2, 2, 2],
        [NOON + HOUR, 50, 500, 5, 7],
    ]
    assert old.households.T.tolist()[0] == [NOON, 1, 1, 1, 1]


def test_the_state_of_a_roll_is_read_at_its_places_in_its_order() -> None:
    balances = Balances.none().widened(mixed(), places(2, 0), places(1, 2, 0))
    roll = balances.state(places(0, 2), places(0, 2))
    assert roll.households.spent.tolist() == [2, 1]
    assert roll.households.total.tolist() == [4, 3]
    assert roll.held.tolist() == [12, 11]
    assert roll.residual.tolist() == [14, -13]
    assert roll.groups.spent.tolist() == [7, 6]
    assert roll.groups.total.tolist() == [10, 9]
    assert roll.group_residual.tolist() == [17, -16]


def test_a_state_that_is_entered_is_the_state_that_is_read() -> None:
    balances = Balances.none().widened(mixed(), places(0, 1), places(0, 1, 2))
    again = Balances.none().widened(
        balances.state(places(0, 1), places(0, 1, 2)), places(0, 1), places(0, 1, 2)
    )
    assert again.pack() == balances.pack()


numbers = st.integers(0, 2**40)
columns = st.lists(st.tuples(numbers, numbers, numbers, numbers, numbers), max_size=4)


@unhurried
@given(columns, columns, st.data())
def test_windows_of_another_length_change_windows_and_spends_and_nothing_else(
    homes: list[tuple[int, ...]], groups: list[tuple[int, ...]], data: st.DataObject
) -> None:
    """Every account stands in the new window, so no later slot is refused as one before it."""
    before = Balances(
        np.array(homes, np.int64).reshape(-1, 5).T, np.array(groups, np.int64).reshape(-1, 5).T[:4]
    )
    copies = before.pack()
    spends = [
        np.array(data.draw(st.lists(numbers, min_size=n, max_size=n)), np.int64)
        for n in (len(homes), len(groups))
    ]
    after = before.carried_over(NOON, *spends)
    pairs = ((after.households, before.households), (after.groups, before.groups))
    for (carried, old), spent in zip(pairs, spends, strict=True):
        assert carried[0].tolist() == [NOON] * len(spent)
        assert carried[1].tolist() == spent.tolist()
        assert carried[2:].tolist() == old[2:].tolist()
    assert before.pack() == copies


@pytest.mark.parametrize("window", [NOON, 0])
def test_an_account_that_was_never_charged_has_spent_nothing_in_the_new_window(window: int) -> None:
    balances = Balances(
        np.array([[NEVER], [0], [0], [9], [0]], np.int64), np.array([[NEVER], [0], [0], [0]], np.int64)
    )
    carried = balances.carried_over(window, places(0), places(0)).state(places(0), places(0))
    for one in (carried.households, carried.groups):
        assert one.spent_in(window).tolist() == [0]
        assert one.total.tolist() == [0]
    assert carried.held.tolist() == [9]


def test_without_what_was_left_over_all_else_is_as_it_was() -> None:
    balances = Balances.none().widened(mixed(), places(0, 1), places(0, 1, 2))
    copies = balances.pack()
    bare = balances.without_residuals()
    assert bare.households.tolist() == [*balances.households[:4].tolist(), [0, 0]]
    assert bare.groups.tolist() == [*balances.groups[:3].tolist(), [0, 0, 0]]
    assert balances.pack() == copies
