"""Where every account stands, for all households and groups ever seen, whoever is on today's roll."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from gateway.privacy import Account, IntArray, State

_INT64 = np.dtype("<i8")


@dataclass(frozen=True, eq=False)
class Balances:
    """The accounts of all places.

    Attributes:
        households: (4, n) window start (ms), spent, total (micro-bits), held (mW).
        groups: (3, g) window start, spent, total.

    """

    households: IntArray
    groups: IntArray

    @classmethod
    def none(cls) -> Self:
        """Return the balances of nobody."""
        return cls(np.zeros((4, 0), np.int64), np.zeros((3, 0), np.int64))

    @classmethod
    def unpack(cls, households: bytes, groups: bytes) -> Self:
        """Return the balances from their packed columns."""
        return cls(_unpacked(households, 4), _unpacked(groups, 3))

    def pack(self) -> tuple[bytes, bytes]:
        """Return the packed columns of households and groups."""
        return self.households.astype(_INT64).tobytes(), self.groups.astype(_INT64).tobytes()

    def widened(self, fresh: State, homes: IntArray, groups: IntArray) -> Balances:
        """Return the balances with places for all of a roll; new ones stand as in ``fresh``."""
        return Balances(
            _widened(self.households, _household_columns(fresh), homes),
            _widened(self.groups, _account_columns(fresh.groups), groups),
        )

    def state(self, homes: IntArray, groups: IntArray) -> State:
        """Return the state of a roll at the places ``homes`` and ``groups``."""
        mine, theirs = self.households[:, homes], self.groups[:, groups]
        return State(Account(mine[0], mine[1], mine[2]), Account(theirs[0], theirs[1], theirs[2]), mine[3])

    def after(self, state: State, homes: IntArray, groups: IntArray) -> Balances:
        """Return the balances with the state of a roll entered at its places."""
        households, theirs = self.households.copy(), self.groups.copy()
        households[:, homes] = _household_columns(state)
        theirs[:, groups] = _account_columns(state.groups)
        return Balances(households, theirs)


def carried_over(balances: Balances, old_window_ms: int, window: int) -> Balances:
    """Return the balances for windows of another length: no spend is forgotten.

    What was spent in an old window (of ``old_window_ms``) that reaches into the new one is spent there.

    Args:
        balances: as the old policy left them.
        old_window_ms: the old windows' length.
        window: the start of the new policy's first window.

    """
    return Balances(
        *(_relabelled(columns, old_window_ms, window) for columns in (balances.households, balances.groups))
    )


def _relabelled(columns: IntArray, old_window_ms: int, window: int) -> IntArray:
    moved = columns.copy()
    # Never-charged accounts have the least window: comparing by subtraction cannot overflow upwards.
    reaches = columns[0] > window - old_window_ms
    moved[0] = np.where(reaches, window, columns[0])
    return moved


def _unpacked(blob: bytes, rows: int) -> IntArray:
    return np.frombuffer(blob, _INT64).reshape(rows, -1).astype(np.int64)


def _account_columns(account: Account) -> IntArray:
    return np.stack((account.window, account.spent, account.total))


def _household_columns(state: State) -> IntArray:
    return np.concatenate((_account_columns(state.households), state.held[None, :]))


def _widened(columns: IntArray, fresh: IntArray, places: IntArray) -> IntArray:
    known = columns.shape[1]
    wide = np.zeros((columns.shape[0], max(known, int(places.max(initial=-1)) + 1)), np.int64)
    wide[:, :known] = columns
    new = places >= known
    wide[:, places[new]] = fresh[:, new]
    return wide
