"""A bench for one household: many trials of one slot at once, by the production ``close_slot``.

A trial has the household herself and, for each of her groups, one stand-in for all other members, whose total
it sets. The codebooks, prices and budget are production's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gateway.privacy import (
    Account,
    BoolArray,
    Closed,
    Codebook,
    Groups,
    IntArray,
    Missing,
    Policy,
    Shelf,
    State,
    uniform,
)

CloseSlot = Callable[[Policy, State, int, IntArray], Closed]


@dataclass(frozen=True, eq=False)
class Seat:
    """One group as one member sees it.

    Attributes:
        group: its position.
        weight: hers.
        codebook: the group's.
        others: the least and the largest total of all other members (mW).

    """

    group: int
    weight: int
    codebook: Codebook
    others: tuple[int, int]


class Trials(NamedTuple):
    """What varies from trial to trial; arrays of N, or of (g, N) for her g groups."""

    values: IntArray
    totals: IntArray
    held: IntArray
    residual: IntArray
    group_residual: IntArray


class Outcome(NamedTuple):
    """What came out: (1 + g, N) symbols and residuals of her own topic and her groups'; (N,) the rest."""

    symbols: IntArray
    residual: IntArray
    charges: IntArray
    spent: BoolArray
    coarse: IntArray


class Bench:
    """Closes slots for one household of a policy.

    Args:
        policy: production's.
        household: her position.
        close: the function under test.

    """

    def __init__(self, policy: Policy, household: int, close: CloseSlot) -> None:
        self.policy = policy
        self.household = household
        self.codebook = policy.households.codebooks[int(policy.households.book_of[household])]
        self.seats = seats_of(policy, household)
        self._close = close
        self._policies: dict[int, Policy] = {}

    def run(self, trials: Trials, *, spent: int, start: int) -> Outcome:
        """Return the outcome of every trial of a slot, her account standing at ``spent`` micro-bits."""
        n, g = len(trials.values), len(self.seats)
        bench = self._policy(n)
        window = np.full(n * (1 + g), bench.window_of(start))
        paid = np.concatenate((np.full(n, spent), np.zeros(n * g, np.int64)))
        held = np.concatenate((trials.held, *(np.full(n, seat.others[0]) for seat in self.seats)))
        residual = np.concatenate((trials.residual, np.zeros(n * g, np.int64)))
        groups = Account(
            np.full(n * g, bench.window_of(start)), np.zeros(n * g, np.int64), np.zeros(n * g, np.int64)
        )
        state = State(Account(window, paid, paid), groups, held, residual, trials.group_residual.ravel())
        closed = self._close(bench, state, start, np.concatenate((trials.values, trials.totals.ravel())))
        after = closed.state
        return Outcome(
            np.concatenate((closed.symbols[None, :n], closed.group_symbols.reshape(g, n))),
            np.concatenate((after.residual[None, :n], after.group_residual.reshape(g, n))),
            closed.charges[:n],
            closed.spent[:n],
            closed.coarse[:n],
        )

    def _policy(self, n: int) -> Policy:
        if n not in self._policies:
            self._policies = {n: self._made_policy(n)}
        return self._policies[n]

    def _made_policy(self, n: int) -> Policy:
        """Return a policy for n trials: her, n times, then the others of each of her groups, n times."""
        production, one, g = self.policy, self.household, len(self.seats)
        symbol = production.missing is Missing.SYMBOL
        others = [uniform(*seat.others, 1 + symbol, missing_symbol=symbol) for seat in self.seats]
        shelf = Shelf(
            [self.codebook, *others],
            np.repeat(np.arange(1 + g), n),
            np.concatenate((np.full(n, production.households.keys[one]), np.zeros(n * g, np.uint64))),
        )
        trial = np.arange(n)
        members = [pair for j in range(g) for pair in np.stack((trial, n * (1 + j) + trial), axis=1)]
        weights = [np.array([seat.weight, 1]) for seat in self.seats for _ in range(n)]
        books = np.repeat(np.arange(g), n)
        groups = Groups(members, [seat.codebook for seat in self.seats], weights, books)
        seated = np.array([seat.group for seat in self.seats], np.int64)
        free = np.zeros(n * g, np.int64)
        return replace(
            production,
            households=shelf,
            groups=groups,
            levels=np.concatenate((np.full(n, production.levels[one]), free + 1)),
            reach=np.repeat(production.reach[seated], n),
            price=np.concatenate((np.full(n, production.price[one]), free)),
            group_price=np.repeat(production.group_price[seated], n),
            budget=np.concatenate((np.full(n, production.budget[one]), free)),
        )


def seats_of(policy: Policy, household: int) -> list[Seat]:
    """Return a household's groups as she sees them."""
    groups, shelf = policy.groups, policy.households
    if groups.shelf is None:
        return []
    seats = []
    for place in np.flatnonzero(groups.members == household).tolist():
        group = int(groups.group_of[place])
        book = groups.shelf.codebooks[int(groups.book_of[group])]
        weight = int(groups.weights[place])
        ends = (weight * int(shelf.lower[household]), weight * int(shelf.upper[household]))
        seats.append(Seat(group, weight, book, (book.lower - min(ends), book.upper - max(ends))))
    return seats
