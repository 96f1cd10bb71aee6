"""``close_slot``: one slot of a whole roll, from readings to symbols and charges. Pure, in integers.

The promise (Definition 1, [NP]): while one household's reading varies and all others are fixed, her own
release and those of her groups take at most ``levels`` different values together, and that is charged.
It holds because every topic sees the *same integer* per household, after clamping and substitution, through
monotone step functions without memory; so their cuts merge on one line (theory A2).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

import numpy as np

from gateway.privacy.accounting import Account, BoolArray, IntArray, microbits
from gateway.privacy.codebooks import Shelf
from gateway.privacy.groups import Groups

MISSING: int = int(np.iinfo(np.int64).min)
"""The slot value of a household whose meter said nothing."""


class Missing(StrEnum):
    """What a household's releases say when her meter said nothing (theory A1)."""

    HOLD = "hold"
    """The value of her last symbol, again."""
    FLOOR = "floor"
    """The lower end of her range."""
    SYMBOL = "symbol"
    """Her own release says so by symbol 0; her groups take the lower end."""


@dataclass(frozen=True, eq=False)
class Policy:
    """The public configuration of a roll of n households and g groups.

    Attributes:
        households: the households' codebooks.
        groups: the group queries over them.
        levels: (n,) joint outputs of all her topics in one slot.
        reach: (g,) outputs that one member can reach in a group.
        price: (n,) micro-bits that an active slot costs.
        group_price: (g,) micro-bits of ``reach``.
        budget: (n,) micro-bits per window.
        missing: the substitution rule.

    """

    households: Shelf
    groups: Groups
    levels: IntArray
    reach: IntArray
    price: IntArray
    group_price: IntArray
    budget: IntArray
    missing: Missing

    @classmethod
    def over(
        cls,
        households: Shelf,
        groups: Groups,
        *,
        missing: Missing = Missing.HOLD,
        budget: IntArray | None = None,
        slots_per_window: int = 1,
    ) -> Self:
        """Return the policy with its prices; without ``budget`` (micro-bits) every window affords its slots.

        Raises:
            ValueError: the codebooks have a missing symbol where the rule is another, or have none.

        """
        if any(book.missing_symbol != (missing is Missing.SYMBOL) for book in households.codebooks):
            raise ValueError("codebooks carry a missing symbol exactly when the rule is 'symbol'")
        reach = groups.reach(households.lower, households.upper)
        levels = joint_household_levels(households, groups, reach)
        price = microbits_of(levels)
        free = price * slots_per_window
        return cls(
            households,
            groups,
            levels,
            reach,
            price,
            microbits_of(reach),
            free if budget is None else budget,
            missing,
        )


@dataclass(frozen=True, eq=False)
class State:
    """What a slot leaves to the next one.

    Attributes:
        households: (n,) the households' odometers.
        groups: (g,) the groups' odometers; they inform (capacity), the budget is the household's.
        held: (n,) the value of each household's last symbol (mW).

    """

    households: Account
    groups: Account
    held: IntArray

    @classmethod
    def initial(cls, policy: Policy) -> Self:
        """Return the state before the first slot: nothing spent, the range's lower end held."""
        shelf = policy.households
        return cls(Account.opened(len(shelf)), Account.opened(len(policy.groups)), shelf.lower.copy())


@dataclass(frozen=True, eq=False)
class Closed:
    """One slot's releases.

    Attributes:
        symbols: (n,) the households' symbols.
        group_symbols: (g,) the groups' symbols.
        spent: (n,) whether her budget was spent: her symbol repeats and costs nothing. Public.
        charges: (n,) micro-bits charged.
        group_charges: (g,) micro-bits of capacity towards one member; 0 when all members are spent.
        state: the state after the slot.

    """

    symbols: IntArray
    group_symbols: IntArray
    spent: BoolArray
    charges: IntArray
    group_charges: IntArray
    state: State


def close_slot(policy: Policy, state: State, window: int, values: IntArray) -> Closed:
    """Release one slot.

    Args:
        policy: the public configuration.
        state: what the slot before left.
        window: the budget window of the slot's start; never before the state's.
        values: (n,) mean power (mW) in the slot, any integer, or ``MISSING``.

    Raises:
        ValueError: the window lies before one that was charged, or the shapes differ.

    """
    shelf, groups = policy.households, policy.groups
    if values.shape != (len(shelf),):
        raise ValueError(f"{values.shape} values for a roll of {len(shelf)}")
    active = state.households.affords(window, policy.price, policy.budget)
    # The last symbol's value, on today's line: a public constant, whatever changed since.
    constant = np.clip(state.held, shelf.floor, shelf.upper)
    present = np.clip(values, shelf.lower, shelf.upper)
    x = np.where(values == MISSING, _substitute(policy, constant), present)
    x = np.where(active, x, constant)
    symbols = shelf.encode(x)
    charges = np.where(active, policy.price, 0)
    group_charges = np.where(groups.any_member(active), policy.group_price, 0)
    after = State(
        state.households.charged(window, charges),
        state.groups.charged(window, group_charges),
        shelf.decode(symbols),
    )
    group_symbols = groups.encode(np.maximum(x, shelf.lower))
    return Closed(symbols, group_symbols, ~active, charges, group_charges, after)


def _substitute(policy: Policy, constant: IntArray) -> IntArray:
    """Return (n,) the public number that stands for a missing reading, the same in all her topics."""
    return constant if policy.missing is Missing.HOLD else policy.households.floor


def joint_household_levels(households: Shelf, groups: Groups, reach: IntArray) -> IntArray:
    """Return (n,) joint outputs per slot (theory A2): ``1 + Σ(k_j − 1)`` over her own and her groups' cuts.

    Refined composition holds for releases that are monotone step functions of the *same integer* without
    private state: their cuts merge on one line. ``close_slot`` is built so that they are.
    """
    levels = np.array([book.levels for book in households.codebooks], np.int64)[households.book_of]
    np.add.at(levels, groups.members, (reach - 1)[groups.group_of])
    return levels


def microbits_of(levels: IntArray) -> IntArray:
    """Return the price (micro-bits) of each number of levels."""
    distinct, back = np.unique(levels, return_inverse=True)
    return np.array([microbits(int(k)) for k in distinct], np.int64)[back]
