"""Prices are exact integers, budgets are never exceeded, and windows only move forward."""

from __future__ import annotations

from fractions import Fraction
from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.privacy import MICROBITS_PER_BIT, Account, levels_within, microbits, microbits_of

_PRECISION = 256


def exact_microbits(levels: int) -> int:
    """Return the least m with 2^m ≥ levels^(10⁶), by squaring between two integer bounds."""
    low, high, exponent = 1, 1, 0
    for bit in f"{MICROBITS_PER_BIT:b}":
        factor = levels if bit == "1" else 1
        low, high, exponent = low * low * factor, high * high * factor, 2 * exponent
        excess = max(0, low.bit_length() - _PRECISION)
        low, high, exponent = low >> excess, -(-high >> excess), exponent + excess
    ceilings = {(bound - 1).bit_length() + exponent for bound in (low, high)}
    assert len(ceilings) == 1, "the bounds are too far apart to decide"
    return ceilings.pop()


@pytest.mark.parametrize("levels", [*range(1, 14), 31])
def test_a_price_is_the_least_power_of_two_that_covers_a_million_releases(levels: int) -> None:
    """2^m ≥ k^(10⁶) and no smaller m does, in integers of a few million bits."""
    million = levels**MICROBITS_PER_BIT
    price = microbits(levels)
    assert million <= 1 << price
    assert price == 0 or million > 1 << (price - 1)
    assert price == exact_microbits(levels)


def test_prices_are_exact_over_three_thousand_levels() -> None:
    wrong = [k for k in range(1, 3_000) if microbits(k) != exact_microbits(k)]
    assert wrong == []


@settings(deadline=None)
@given(st.integers(1, 2**40))
def test_prices_are_exact_for_large_levels(levels: int) -> None:
    assert microbits(levels) == exact_microbits(levels)


@settings(deadline=None)
@given(st.integers(1, 2**40), st.integers(1, 2**40))
def test_prices_grow_with_levels_and_joint_prices_never_exceed_the_sum(one: int, other: int) -> None:
    assert (microbits(one) <= microbits(other)) or one > other
    assert microbits(one * other) <= microbits(one) + microbits(other)


def test_powers_of_two_cost_whole_bits() -> None:
    assert [microbits(1 << m) for m in range(25)] == [m * MICROBITS_PER_BIT for m in range(25)]


def test_one_above_a_power_of_two_costs_more_than_whole_bits() -> None:
    """Up to 2^20 + 1, whose logarithm is a micro-bit and a bit above 20."""
    assert all(microbits((1 << m) + 1) > m * MICROBITS_PER_BIT for m in range(21))
    assert microbits((1 << 22) + 1) == 22 * MICROBITS_PER_BIT + 1


@pytest.mark.parametrize("levels", [0, -1])
def test_a_release_without_levels_has_no_price(levels: int) -> None:
    with pytest.raises(ValueError, match="at least one level"):
        microbits(levels)


@given(st.lists(st.one_of(st.integers(1, 2**50), st.integers(0, 50).map(lambda e: 2**e)), min_size=1))
def test_many_prices_at_once_are_the_exact_ones(levels: list[int]) -> None:
    around = [max(1, k + step) for k in levels for step in (-1, 0, 1)]
    assert microbits_of(np.array(around)).tolist() == [microbits(k) for k in around]


def test_of_many_prices_one_without_levels_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one level"):
        microbits_of(np.array([4, 0, 2]))


def test_levels_survive_being_written_as_bits() -> None:
    """levels_within(log2(k)) == k; the float form ⌊2^bits⌋ gets many of them wrong."""
    assert [k for k in range(1, 20_001) if levels_within(log2(k)) != k] == []
    assert sum(int(2.0 ** log2(k)) != k for k in range(1, 20_001)) > 1_000


@given(st.integers(0, 40 * 16))
def test_levels_never_exceed_the_bits(sixteenths: int) -> None:
    """k ≤ 2^(p/16) < k + 1, decided as k^16 ≤ 2^p < (k+1)^16; up to 40 bits."""
    levels = levels_within(sixteenths / 16)
    assert levels**16 <= 1 << sixteenths < (levels + 1) ** 16


@given(st.floats(0, 40))
def test_levels_are_the_most_whose_logarithm_fits(bits: float) -> None:
    levels = levels_within(bits)
    assert log2(levels) <= bits
    assert log2(levels + 1) > bits
    assert levels_within(0.0) == 1


def test_whole_bits_give_powers_of_two_over_the_whole_domain() -> None:
    """Never 2^m + 1, which needs more than m bits."""
    assert {m: levels_within(m) for m in range(41) if levels_within(m) != 1 << m} == {}


@given(st.integers(1, 1 << 40))
def test_levels_survive_being_written_as_bits_over_the_whole_domain(levels: int) -> None:
    """Up to 40 bits doubles tell neighbouring levels apart."""
    assert levels_within(log2(levels)) == levels


@pytest.mark.parametrize("bits", [-0.1, 40.0000001, 62.5, float("nan"), float("inf")])
def test_bits_outside_the_domain_are_refused(bits: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 40"):
        levels_within(bits)


# --- accounts ----------------------------------------------------------------------------------------


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def test_an_account_counts_by_window_and_in_total() -> None:
    account = Account.opened(2).charged(0, ints(3, 5)).charged(0, ints(4, 0)).charged(100, ints(1, 2))
    assert account.window.tolist() == [100, 100]
    assert account.spent.tolist() == [1, 2]
    assert account.total.tolist() == [8, 7]
    assert account.spent_in(100).tolist() == [1, 2]
    assert account.spent_in(200).tolist() == [0, 0]


def test_an_account_does_not_go_back_to_an_earlier_window() -> None:
    """Otherwise the budget of a past window could be spent twice."""
    account = Account.opened(2).charged(100, ints(1, 1))
    with pytest.raises(ValueError, match="lies before"):
        account.spent_in(99)
    with pytest.raises(ValueError, match="lies before"):
        account.charged(0, ints(1, 1))
    with pytest.raises(ValueError, match="lies before"):
        account.affords(99, ints(1, 1), ints(9, 9))


def test_a_new_account_may_open_in_any_window() -> None:
    """Also before 1970."""
    assert Account.opened(1).charged(-86_400_000, ints(7)).spent_in(-86_400_000).tolist() == [7]


def test_charging_leaves_the_account_before_as_it_was() -> None:
    before = Account.opened(1).charged(5, ints(3))
    before.charged(5, ints(4))
    before.charged(6, ints(4))
    assert (before.window.tolist(), before.spent.tolist(), before.total.tolist()) == ([5], [3], [3])


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 120)), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=25),
)
def test_the_filter_never_lets_a_window_exceed_its_budget(
    channels: list[tuple[int, int]], steps: list[tuple[int, int]]
) -> None:
    """Against a plain dictionary of what each channel paid in each window."""
    price, budget = ints(*(p for p, _ in channels)), ints(*(b for _, b in channels))
    account, window = Account.opened(len(channels)), -3
    paid: dict[tuple[int, int], int] = {}
    for forward, divisor in steps:
        window += forward
        asked = price // (divisor + 1)
        affords = account.affords(window, asked, budget)
        for i, fits in enumerate(affords.tolist()):
            spent = paid.get((i, window), 0)
            assert fits == (spent + int(asked[i]) <= int(budget[i]))
            paid[i, window] = spent + int(asked[i]) * fits
        account = account.charged(window, np.where(affords, asked, 0))
    assert all(spent <= int(budget[i]) for (i, _), spent in paid.items())
    totals = [sum(spent for (j, _), spent in paid.items() if j == i) for i in range(len(channels))]
    assert account.total.tolist() == totals


def test_the_price_of_a_day_is_what_the_design_says() -> None:
    """48 slots of 2 bits alone and 3 in a group: 48·log2(1 + 3 + 7) = 166.1 bits."""
    assert round(Fraction(48 * microbits(1 + 3 + 7), MICROBITS_PER_BIT), 1) == Fraction("166.1")
