"""Accounts keep their places, their bytes, and their spend whatever the roll and the windows become."""

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gateway.ledger.balance import Balances, carried_over
from gateway.policy import Book, PolicyDocument
from gateway.privacy import Account, IntArray, Missing, State

# Under load a first example may take its time.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

HOUR = 3_600_000
NOON = 490_992 * HOUR + 4 * HOUR
NEVER = int(np.iinfo(np.int64).min)


def state(window: int, spent: list[int], total: list[int], held: list[int]) -> State:
    count = len(spent)
    return State(
        Account(np.full(count, window), np.array(spent), np.array(total)),
        Account(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)),
        np.array(held),
    )


def places(*positions: int) -> IntArray:
    return np.array(positions, np.int64)


def test_packed_columns_come_back_as_they_were() -> None:
    fresh = state(NOON, [1, 2, 3], [10, 20, 30], [-5, 0, 2**40])
    balances = Balances.none().widened(fresh, places(0, 1, 2), places())
    again = Balances.unpack(*balances.pack())
    assert again.households.tolist() == balances.households.tolist()
    assert again.groups.shape == (3, 0)
    assert len(balances.pack()[0]) == 3 * 4 * 8


def test_packed_columns_are_little_endian_whatever_the_machine() -> None:
    packed, _ = Balances.none().widened(state(1, [2], [3], [4]), places(0), places()).pack()
    assert packed == b"".join(number.to_bytes(8, "little") for number in (1, 2, 3, 4))


def test_a_household_that_is_new_stands_as_fresh_and_the_others_as_they_were() -> None:
    old = Balances.none().widened(state(NOON, [1, 2], [10, 20], [7, 8]), places(0, 1), places())
    fresh = state(NEVER, [0, 0], [0, 0], [-1, -2])
    wide = old.widened(fresh, places(1, 2), places())
    assert wide.households.T.tolist() == [[NOON, 1, 10, 7], [NOON, 2, 20, 8], [NEVER, 0, 0, -2]]


def test_a_household_off_the_roll_is_untouched_by_what_its_slots_charge() -> None:
    old = Balances.none().widened(state(NOON, [1, 2, 3], [1, 2, 3], [1, 2, 3]), places(0, 1, 2), places())
    after = old.after(state(NOON + HOUR, [50, 60], [500, 600], [5, 6]), places(2, 0), places())
    assert after.households.T.tolist() == [
        [NOON + HOUR, 60, 600, 6],
        [NOON, 2, 2, 2],
        [NOON + HOUR, 50, 500, 5],
    ]
    assert old.households.T.tolist()[0] == [NOON, 1, 1, 1]


def test_the_state_of_a_roll_is_read_at_its_places_in_its_order() -> None:
    balances = Balances.none().widened(
        state(NOON, [1, 2, 3], [4, 5, 6], [7, 8, 9]), places(0, 1, 2), places()
    )
    roll = balances.state(places(2, 0), places())
    assert roll.households.spent.tolist() == [3, 1]
    assert roll.held.tolist() == [9, 7]


def charged(balances: Balances, window: int) -> Balances:
    """Return the balances after a charge of one micro-bit in a window."""
    before, spent, total, held = balances.households[:, 0].tolist()
    after = [window, (spent if before == window else 0) + 1, total + 1, held]
    return Balances(np.array([after], np.int64).T, balances.groups)


def document(window_ms: int) -> PolicyDocument:
    return PolicyDocument(
        "noiseless", HOUR, window_ms, Missing.HOLD, None, (Book(0, 4_000, 4),), ("a",), (0,), ()
    )


hours = st.sampled_from([1, 2, 3, 4, 6, 8, 12, 24, 48])


@unhurried
@given(st.lists(hours, min_size=2, max_size=4), st.lists(st.integers(0, 30), min_size=3, max_size=3))
@example([24, 1], [14, 3, 3])
@example([1, 24], [14, 3, 3])
@example([24, 1, 24], [14, 3, 3])
def test_changed_windows_forget_nothing_that_was_spent_in_the_new_window(
    lengths: list[int], counts: list[int]
) -> None:
    """One micro-bit a slot: in any window, what counts as spent is at least its slots that were charged."""
    slot, starts = 490_992, list[int]()  # the hours since 1970, from a midnight on
    balances = Balances(np.array([[NEVER], [0], [0], [0]], np.int64), np.zeros((3, 0), np.int64))
    old = None
    for hours_, count in zip(lengths, [*counts, 0], strict=False):
        policy = document(hours_ * HOUR)
        now = policy.window_of(slot * HOUR)
        if old is not None:
            balances = carried_over(balances, old.window_ms, now)
        spent = int(balances.households[1, 0]) if balances.households[0, 0] == now else 0
        assert spent >= sum(now <= start for start in starts)
        for _ in range(count):
            starts.append(slot * HOUR)
            balances = charged(balances, policy.window_of(slot * HOUR))
            slot += 1
        old = policy


@unhurried
@given(hours, hours, st.integers(1, 60))
def test_an_account_never_stands_in_a_window_after_the_new_one(old: int, new: int, passed: int) -> None:
    """Else every later slot would be refused as one before a window that was charged."""
    next_ms = (490_992 + passed) * HOUR
    last = document(old * HOUR).window_of(next_ms - HOUR)
    balances = Balances(np.array([[last], [5], [5], [0]], np.int64), np.zeros((3, 0), np.int64))
    window = document(new * HOUR).window_of(next_ms)
    carried = carried_over(balances, old * HOUR, window)
    assert carried.households[0, 0] <= window
    assert carried.households[1, 0] >= 5
    assert carried.households[2:].tolist() == balances.households[2:].tolist()


@pytest.mark.parametrize("window", [NOON, 0])
def test_an_account_that_was_never_charged_stays_so(window: int) -> None:
    balances = Balances(np.array([[NEVER], [0], [0], [9]], np.int64), np.array([[NEVER], [0], [0]], np.int64))
    carried = carried_over(balances, 24 * HOUR, window)
    assert carried.households.tolist() == balances.households.tolist()
    assert carried.groups.tolist() == balances.groups.tolist()
