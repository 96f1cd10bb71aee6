"""The capacity bound of a class is that of its channel with the most, in bits."""

from __future__ import annotations

import numpy as np
import pytest

from gateway.privacy import Account, CapacityBound, capacity_bound

HOUR_MS = 3_600_000


def test_a_class_is_bounded_by_its_channel_with_the_most() -> None:
    account = Account.opened(3)
    account = account.charged(0, np.array([2_000_000, 500_000, 9_000_000]))
    account = account.charged(24 * HOUR_MS, np.array([1_000_000, 3_000_000, 9_000_000]))
    charges = np.array([0, 1_500_000, 9_000_000])
    account = account.charged(24 * HOUR_MS, charges)
    bound = capacity_bound(account, charges, np.array([0, 1]), elapsed_ms=2 * HOUR_MS)
    assert bound == CapacityBound(bits_per_release=1.5, cumulative_bits=5.0, bits_per_hour=2.25)


@pytest.mark.parametrize(("slots", "hourly"), [(1, 4.0), (2, 4.0), (48, 4.0)])
def test_a_steady_release_of_two_bits_each_half_hour_is_four_bits_an_hour(slots: int, hourly: float) -> None:
    """Whatever the time of day."""
    account, charges = Account.opened(1), np.array([2_000_000])
    for _ in range(slots):
        account = account.charged(0, charges)
    bound = capacity_bound(account, charges, np.array([0]), elapsed_ms=slots * HOUR_MS // 2)
    assert bound == CapacityBound(2.0, 2.0 * slots, hourly)


def test_a_spent_slot_adds_nothing() -> None:
    account = Account.opened(1).charged(0, np.array([2_000_000])).charged(0, np.array([0]))
    bound = capacity_bound(account, np.array([0]), np.array([0]), elapsed_ms=HOUR_MS)
    assert bound == CapacityBound(bits_per_release=0.0, cumulative_bits=2.0, bits_per_hour=2.0)
