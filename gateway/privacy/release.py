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
from gateway.privacy.codebooks import Shelf, middle_cell
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


class WhenSpent(StrEnum):
    """What a household's own release says when her budget does not pay for all her topics any more."""

    HOLD = "hold"
    """Her last symbol, again."""
    COARSEN = "coarsen"
    """As many merged cells as what is left pays for; then her last symbol again (theory A9)."""
    WITHHOLD = "withhold"
    """Nothing: no release of hers is published until the window turns."""


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
        when_spent: what she releases when her budget is spent.
        ladder: (K,) micro-bits of 1 to K levels, K the most of any household.

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
    when_spent: WhenSpent
    ladder: IntArray

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
        when_spent: WhenSpent = WhenSpent.HOLD,
    ) -> Self:
        """Return the policy with its prices; without ``budget`` (micro-bits) every window affords its slots.

        Raises:
            ValueError: the codebooks have a missing symbol where the rule is another, or have none; cells that
                may be merged have one; or a household's joint levels exceed 2^50.

        """
        if any(book.missing_symbol != (missing is Missing.SYMBOL) for book in households.codebooks):
            raise ValueError("codebooks carry a missing symbol exactly when the rule is 'symbol'")
        if when_spent is WhenSpent.COARSEN and missing is Missing.SYMBOL:
            raise ValueError("merged cells have no symbol for silence: use hold or floor with coarsen")
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
            when_spent,
            microbits_of(np.arange(1, 1 + max(book.levels for book in households.codebooks))),
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
        coarse: (n,) the merged cells that her symbol is one of, 0 where it is one of all. Public.

    """

    symbols: IntArray
    group_symbols: IntArray
    spent: BoolArray
    charges: IntArray
    group_charges: IntArray
    state: State
    coarse: IntArray


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
    coarse = _coarse_levels(policy, policy.budget - state.households.spent_in(window), active)
    x, constant = _used(policy, state, values)
    symbols, residual = _own(policy, state, start, np.where(active | (coarse > 0), x, constant), active)
    symbols, held = _merged(shelf, symbols, coarse)
    group_active = groups.any_member(active)
    group_symbols, group_residual = _grouped(
        policy, state, start, np.where(active, x, constant), groups.any_member(~active)
    )
    charges = np.where(active, policy.price, np.where(coarse > 0, policy.ladder[coarse - 1], 0))
    group_charges = np.where(group_active, policy.group_price, 0)
    after = State(
        state.households.charged(window, charges),
        state.groups.charged(window, group_charges),
        held,
        residual,
        group_residual,
    )
    return Closed(symbols, group_symbols, ~active & (coarse == 0), charges, group_charges, after, coarse)


def _coarse_levels(policy: Policy, left: IntArray, active: BoolArray) -> IntArray:
    """Return (n,) the most merged cells that what is left pays for, 0 where none of two or more do (theory A9).

    It depends on counts only. Her groups use her constant: what is left pays for her own release alone, which
    may even keep all its cells.
    """
    if policy.when_spent is not WhenSpent.COARSEN:
        return np.zeros(len(left), np.int64)
    levels = np.minimum(np.searchsorted(policy.ladder, left, side="right"), policy.households.levels)
    return np.where(active | (levels < 2), 0, levels).astype(np.int64)  # noqa: PLR2004 - one cell says nothing


def _merged(shelf: Shelf, symbols: IntArray, coarse: IntArray) -> tuple[IntArray, IntArray]:
    """Return (n,) symbols, of merged cells where ``coarse`` says how many, and the values that they stand for."""
    cells = np.maximum(coarse, 1)
    merged = symbols * cells // shelf.levels
    return np.where(coarse > 0, merged, symbols), shelf.decode(
        np.where(coarse > 0, middle_cell(merged, cells, shelf.levels), symbols)
    )


def _used(policy: Policy, state: State, values: IntArray) -> tuple[IntArray, IntArray]:
    """Return (n,) the one integer per household that all her topics see, and the constant for when she is spent."""
    shelf = policy.households
    # The last symbol's value, on today's line: a public constant, whatever changed since.
    constant = np.clip(state.held, shelf.floor, shelf.upper)
    # One public number for a missing reading, the same in all her topics.
    substitute = constant if policy.missing is Missing.HOLD else shelf.floor
    return np.where(values == MISSING, substitute, np.clip(values, shelf.lower, shelf.upper)), constant


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
    symbols = np.where(active, shelf.dither(x, shelf.encode(within), start), shelf.encode(within))
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
    own = households.levels
    merged = np.where(households.feedback, 1, own)
    carried = groups.feedback[groups.group_of]
    np.add.at(merged, groups.members[~carried], (reach - 1)[groups.group_of[~carried]])
    factors = np.where(households.feedback, own, 1).astype(np.float64)
    np.multiply.at(factors, groups.members[carried], reach[groups.group_of[carried]].astype(np.float64))
    if np.any(merged * factors >= _MOST_LEVELS):
        raise ValueError("a household's joint levels exceed 2^50: use fewer levels or fewer groups")
    return merged * factors.astype(np.int64)
