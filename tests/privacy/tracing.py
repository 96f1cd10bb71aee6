"""All that one household's traces can make receivers see, by enumeration with the production ``close_slot``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from gateway.audit.bench import CloseSlot
from gateway.privacy import (
    MISSING,
    Closed,
    Codebook,
    Groups,
    IntArray,
    Missing,
    Policy,
    Rounding,
    Shelf,
    State,
    both_ends,
    close_slot,
    group_codebook,
    keys_of,
    microbits,
    uniform,
    with_missing_symbol,
)
from gateway.privacy.groups import Reach

Said = tuple[tuple[int, ...], ...]
"""What receivers saw, slot by slot: every symbol of the roll and its groups, and who was spent."""


def book(lower: int, upper: int, levels: int, rounding: Rounding = Rounding.NEAREST) -> Codebook:
    if rounding is Rounding.NEAREST:
        return uniform(lower, upper, levels)
    return both_ends(lower, upper, levels, rounding)


@dataclass(frozen=True)
class Together:
    """A group: members, reach, rounding and weights."""

    members: tuple[int, ...]
    reach: int
    rounding: Rounding = Rounding.NEAREST
    weights: tuple[int, ...] | None = None

    def weighted(self) -> IntArray:
        return np.array(self.weights or (1,) * len(self.members), np.int64)


@dataclass(frozen=True)
class Roll:
    """A small roll. Codebooks are given without the symbol for silence; it is added where the rule asks."""

    books: tuple[Codebook, ...]
    groups: tuple[Together, ...] = ()
    missing: Missing = Missing.HOLD
    budget: tuple[int, ...] | None = None
    window: int = 48
    fresh: bool = False
    policy: Policy = field(init=False)

    def __post_init__(self) -> None:
        symbol = self.missing is Missing.SYMBOL
        books = [with_missing_symbol(one) if symbol else one for one in self.books]
        n = len(books)
        shelf = Shelf(books, np.arange(n), keys_of("test", map(str, range(n))))
        policy = Policy.over(
            shelf,
            self._groups(),
            missing=self.missing,
            budget=None if self.budget is None else np.array(self.budget, np.int64),
            slots_per_window=self.window,
            window=self.window,
            fresh_windows=self.fresh,
        )
        object.__setattr__(self, "policy", policy)

    def _groups(self) -> Groups:
        cells = []
        for one in self.groups:
            lower, upper = (
                np.array(ends, np.int64)
                for ends in zip(
                    *((self.books[m].lower, self.books[m].upper) for m in one.members), strict=True
                )
            )
            cells.append(group_codebook(Reach.of(lower, upper, one.weighted()), one.reach, one.rounding))
        members = [np.array(one.members, np.int64) for one in self.groups]
        return Groups(members, cells, [one.weighted() for one in self.groups])

    def start(self) -> State:
        return State.initial(self.policy)

    def close(self, state: State, slot: int, values: Sequence[int], close: CloseSlot = close_slot) -> Closed:
        return close(self.policy, state, slot, np.array(values, np.int64))

    def after(self, *history: Sequence[int]) -> State:
        state = self.start()
        for slot, values in enumerate(history):
            state = self.close(state, slot, values).state
        return state

    def alphabet(self, household: int) -> list[int]:
        one = self.books[household]
        return [MISSING, *range(one.lower - 1, one.upper + 2)]


def said(closed: Closed) -> tuple[int, ...]:
    return (*closed.symbols.tolist(), *closed.group_symbols.tolist(), *closed.spent.tolist())


def replaced(values: Sequence[int], household: int, reading: int) -> list[int]:
    return [*values[:household], reading, *values[household + 1 :]]


@dataclass
class Traces:
    """What was enumerated.

    Attributes:
        sequences: everything that was seen.
        factors: per slot the levels charged, 1 where her budget was spent.
        spent: per slot whether it was.

    """

    sequences: set[Said]
    factors: list[int]
    spent: list[bool]

    @property
    def bound(self) -> int:
        return prod(self.factors)


def private(state: State) -> bytes:
    arrays = (state.residual, state.group_residual, state.held)
    return b"|".join(array.tobytes() for array in arrays)


def public(state: State) -> bytes:
    arrays = (state.households.window, state.households.spent, state.households.total, state.groups.spent)
    return b"|".join(array.tobytes() for array in arrays)


def enumerated(
    roll: Roll | Sequence[Roll],
    others: Sequence[Sequence[int]],
    household: int = 0,
    *,
    alphabet: Sequence[int] | Callable[[int], Sequence[int]] | None = None,
    close: CloseSlot = close_slot,
) -> Traces:
    """Run all traces of a household, the others' fixed, and check every step.

    From every public prefix, over all her pasts that lead to it, at most as many outputs follow as are charged,
    and one when her budget is spent; charges and accounts never depend on what she read.
    """
    rolls = [roll] * len(others) if isinstance(roll, Roll) else list(roll)
    letters = alphabet if callable(alphabet) else (lambda _: alphabet or rolls[0].alphabet(household))
    frontier: dict[Said, dict[bytes, State]] = {(): {b"": rolls[0].start()}}
    factors, spent = [], []
    for slot, (one, values) in enumerate(zip(rolls, others, strict=True)):
        following: dict[Said, dict[bytes, State]] = {}
        charged, accounts = set(), set()
        for prefix, states in frontier.items():
            here = set()
            for state in states.values():
                for reading in letters(slot):
                    closed = one.close(state, slot, replaced(values, household, reading), close)
                    here.add(said(closed))
                    charged.add((int(closed.charges[household]), bool(closed.spent[household])))
                    accounts.add(public(closed.state))
                    following.setdefault((*prefix, said(closed)), {})[private(closed.state)] = closed.state
            allowed = 1 if closed.spent[household] else int(one.policy.levels[household])
            assert len(here) <= allowed, f"{len(here)} outputs after {prefix}, {allowed} are charged"
        assert len(charged) == len(accounts) == 1, "charges and accounts do not depend on readings"
        ((charge, was_spent),) = charged
        factors.append(1 if was_spent else int(one.policy.levels[household]))
        spent.append(was_spent)
        assert charge == (0 if was_spent else microbits(factors[-1]))
        frontier = following
    traces = Traces(set(frontier), factors, spent)
    assert len(traces.sequences) <= traces.bound
    return traces
