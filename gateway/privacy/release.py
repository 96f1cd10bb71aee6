"""``close_slot``: one slot of a whole roll, from readings to symbols and charges. Pure, in integers.

The promise (Definition 1, [NP]): while one household's reading varies and all others are fixed, her own
release and those of her groups take at most ``levels`` different values together, and that is charged.

Topics rounded to nearest, or with public dither, see the *same integer* per household, after clamping and
substitution, through monotone step functions without memory; so their cuts merge on one line and compose to
``1 + Σ(k_j − 1)`` (theory A2). A topic with feedback also sees what its earlier releases left over, which is
private: its levels multiply.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

import numpy as np

from gateway.privacy.accounting import Account, BoolArray, IntArray, microbits_of
from gateway.privacy.codebooks import Shelf
from gateway.privacy.groups import Groups

MISSING: int = int(np.iinfo(np.int64).min)
"""The slot value of a household whose meter said nothing."""
_MOST_LEVELS = 1 << 50  # products in doubles are exact below


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
        window: the length of a budget window, in the unit of a slot's start.
        fresh_windows: whether feedback forgets what is left over when a window begins.

    """

    households: Shelf
    groups: Groups
    levels: IntArray
    reach: IntArray
    price: IntArray
    group_price: IntArray
    budget: IntArray
    missing: Missing
    window: int
    fresh_windows: bool

    @classmethod
    def over(
        cls,
        households: Shelf,
        groups: Groups,
        *,
        missing: Missing = Missing.HOLD,
        budget: IntArray | None = None,
        slots_per_window: int = 1,
        window: int = 1,
        fresh_windows: bool = False,
    ) -> Self:
        """Return the policy with its prices; without ``budget`` (micro-bits) every window affords its slots.

        Raises:
            ValueError: the codebooks have a missing symbol where the rule is another, or have none; or a
                household's joint levels exceed 2^50.

        """
        if any(book.missing_symbol != (missing is Missing.SYMBOL) for book in households.codebooks):
            raise ValueError("codebooks carry a missing symbol exactly when the rule is 'symbol'")
        reach = groups.reach(households.lower, households.upper)
        levels = joint_household_levels(households, groups, reach)
        price = microbits_of(levels)
        return cls(
            households,
            groups,
            levels,
            reach,
            price,
            microbits_of(reach),
            price * slots_per_window if budget is None else budget,
            missing,
            window,
            fresh_windows,
        )

    def window_of(self, start: int) -> int:
        """Return the start of the budget window that a slot beginning at ``start`` belongs to."""
        return start // self.window * self.window


@dataclass(frozen=True, eq=False)
class State:
    """What a slot leaves to the next one.

    Attributes:
        households: (n,) the households' odometers.
        groups: (g,) the groups' odometers; they inform (capacity), the budget is the household's.
        held: (n,) the value of each household's last symbol (mW).
        residual: (n,) what the households' releases left over, for feedback (mW). Private.
        group_residual: (g,) the same of the groups.

    """

    households: Account
    groups: Account
    held: IntArray
    residual: IntArray
    group_residual: IntArray

    @classmethod
    def initial(cls, policy: Policy) -> Self:
        """Return the state before the first slot: nothing spent, the range's lower end held."""
        n, g = len(policy.households), len(policy.groups)
        return cls(
            Account.opened(n),
            Account.opened(g),
            policy.households.lower.copy(),
            np.zeros(n, np.int64),
            np.zeros(g, np.int64),
        )


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


def close_slot(policy: Policy, state: State, start: int, values: IntArray) -> Closed:
    """Release one slot.

    Args:
        policy: the public configuration.
        state: what the slot before left.
        start: the slot's start; its budget window is never before the state's.
        values: (n,) mean power (mW) in the slot, any integer, or ``MISSING``.

    Raises:
        ValueError: the window lies before one that was charged, or the shapes differ.

    """
    shelf, groups, window = policy.households, policy.groups, policy.window_of(start)
    if not values.shape == state.held.shape == (len(shelf),) or len(state.group_residual) != len(groups):
        raise ValueError(
            f"{values.shape} values and a state of {state.held.shape} for a roll of {len(shelf)}"
        )
    active = state.households.affords(window, policy.price, policy.budget)
    x = _used(policy, state, values, active)
    symbols, residual = _own(policy, state, start, x, active)
    group_active = groups.any_member(active)
    group_symbols, group_residual = _grouped(policy, state, start, x, groups.any_member(~active))
    charges = np.where(active, policy.price, 0)
    group_charges = np.where(group_active, policy.group_price, 0)
    after = State(
        state.households.charged(window, charges),
        state.groups.charged(window, group_charges),
        shelf.decode(symbols),
        residual,
        group_residual,
    )
    return Closed(symbols, group_symbols, ~active, charges, group_charges, after)


def _used(policy: Policy, state: State, values: IntArray, active: BoolArray) -> IntArray:
    """Return (n,) the one integer per household that all her topics see."""
    shelf = policy.households
    # The last symbol's value, on today's line: a public constant, whatever changed since.
    constant = np.clip(state.held, shelf.floor, shelf.upper)
    # One public number for a missing reading, the same in all her topics.
    substitute = constant if policy.missing is Missing.HOLD else shelf.floor
    x = np.where(values == MISSING, substitute, np.clip(values, shelf.lower, shelf.upper))
    return np.where(active, x, constant)


def _own(
    policy: Policy, state: State, start: int, x: IntArray, active: BoolArray
) -> tuple[IntArray, IntArray]:
    """Return (n,) the households' symbols and what they leave over."""
    shelf = policy.households
    # Frozen while held, and while a symbol of its own says that there is no reading.
    carrying = shelf.feedback & active & (x >= shelf.lower)
    residual = np.where(_renewed(policy, state.households, start), 0, state.residual)
    carried = np.where(carrying, x + residual, x)
    # What is left over never turns a reading into the symbol below the range, "no reading".
    within = np.where(carrying, np.maximum(carried, shelf.lower), carried)
    symbols = shelf.dither(x, shelf.encode(within), start)
    return symbols, np.where(carrying, carried - shelf.decode(symbols), residual)


def _grouped(
    policy: Policy, state: State, start: int, x: IntArray, any_spent: BoolArray
) -> tuple[IntArray, IntArray]:
    """Return (g,) the groups' symbols and what they leave over.

    While any member's budget is spent a group forgets what is left over and rounds to nearest: it would
    otherwise go on speaking of her earlier readings, which nobody is charged for.
    """
    groups = policy.groups
    if groups.shelf is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    carrying = groups.feedback & ~any_spent
    residual = np.where(_renewed(policy, state.groups, start) | ~carrying, 0, state.group_residual)
    carried = groups.sums(np.maximum(x, policy.households.lower)) + residual
    symbols = groups.shelf.encode(carried)
    return symbols, np.where(carrying, carried - groups.shelf.decode(symbols), 0)


def _renewed(policy: Policy, account: Account, start: int) -> BoolArray:
    """Return whether a window begins in which feedback starts afresh."""
    turned: BoolArray = account.window != policy.window_of(start)
    return turned if policy.fresh_windows else np.zeros_like(turned)


def joint_household_levels(households: Shelf, groups: Groups, reach: IntArray) -> IntArray:
    """Return (n,) joint outputs per slot (theory A2).

    Releases that are monotone step functions of the same integer without private state compose to
    ``1 + Σ(k_j − 1)``; each release with feedback multiplies by its own.

    Raises:
        ValueError: they exceed 2^50.

    """
    own = np.array([book.levels for book in households.codebooks], np.int64)[households.book_of]
    merged = np.where(households.feedback, 1, own)
    carried = groups.feedback[groups.group_of]
    np.add.at(merged, groups.members[~carried], (reach - 1)[groups.group_of[~carried]])
    factors = np.where(households.feedback, own, 1).astype(np.float64)
    np.multiply.at(factors, groups.members[carried], reach[groups.group_of[carried]].astype(np.float64))
    if np.any(merged * factors >= _MOST_LEVELS):
        raise ValueError("a household's joint levels exceed 2^50: use fewer levels or fewer groups")
    return merged * factors.astype(np.int64)
