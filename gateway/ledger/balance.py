"""Where every account stands, for all households and groups ever seen, whoever is on today's roll."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from gateway.privacy import Account, IntArray, State

_INT64 = np.dtype("<i8")
_HOUSEHOLD_ROWS, _GROUP_ROWS = 5, 4


@dataclass(frozen=True, eq=False)
class Balances:
    """The accounts of all places.

    Attributes:
        households: (5, n) window start (ms), spent, total (micro-bits), held, residual (mW).
        groups: (4, g) window start, spent, total, residual.

    """

    households: IntArray
    groups: IntArray

    @classmethod
    def none(cls) -> Self:
        """Return the balances of nobody."""
        return cls(np.zeros((_HOUSEHOLD_ROWS, 0), np.int64), np.zeros((_GROUP_ROWS, 0), np.int64))

    @classmethod
    def unpack(cls, households: bytes, groups: bytes) -> Self:
        """Return the balances from their packed columns."""
        return cls(_unpacked(households, _HOUSEHOLD_ROWS), _unpacked(groups, _GROUP_ROWS))

    def pack(self) -> tuple[bytes, bytes]:
        """Return the packed columns of households and groups."""
        return self.households.astype(_INT64).tobytes(), self.groups.astype(_INT64).tobytes()

    def padded(self, households: int, groups: int) -> Balances:
        """Return the balances with so many places; those that were never saved have spent nothing."""
        return Balances(_padded(self.households, households), _padded(self.groups, groups))

    def widened(self, fresh: State, homes: IntArray, groups: IntArray) -> Balances:
        """Return the balances with places for all of a roll; new ones stand as in ``fresh``."""
        return Balances(
            _widened(self.households, _household_columns(fresh), homes),
            _widened(self.groups, _group_columns(fresh), groups),
        )

    def state(self, homes: IntArray, groups: IntArray) -> State:
        """Return the state of a roll at the places ``homes`` and ``groups``."""
        mine, theirs = self.households[:, homes], self.groups[:, groups]
        return State(
            Account(mine[0], mine[1], mine[2]),
            Account(theirs[0], theirs[1], theirs[2]),
            mine[3],
            mine[4],
            theirs[3],
        )

    def after(self, state: State, homes: IntArray, groups: IntArray) -> Balances:
        """Return the balances with the state of a roll entered at its places."""
        households, theirs = self.households.copy(), self.groups.copy()
        households[:, homes] = _household_columns(state)
        theirs[:, groups] = _group_columns(state)
        return Balances(households, theirs)

    def carried_over(self, window: int, homes_spent: IntArray, groups_spent: IntArray) -> Balances:
        """Return the balances for a policy with other windows: no spend is forgotten.

        Args:
            window: the start of the new policy's first window.
            homes_spent: (n,) the most that each household can have spent since then (micro-bits).
            groups_spent: (g,) the same for the groups.

        """
        households, groups = self.households.copy(), self.groups.copy()
        for columns, spent in ((households, homes_spent), (groups, groups_spent)):
            columns[0], columns[1] = window, spent
        return Balances(households, groups)

    def without_residuals(self) -> Balances:
        """Return the balances for a policy with other levels: what feedback left over belonged to the old."""
        households, groups = self.households.copy(), self.groups.copy()
        households[-1], groups[-1] = 0, 0
        return Balances(households, groups)


def _unpacked(blob: bytes, rows: int) -> IntArray:
    return np.frombuffer(blob, _INT64).reshape(rows, -1).astype(np.int64)


def _account_columns(account: Account) -> IntArray:
    return np.stack((account.window, account.spent, account.total))


def _household_columns(state: State) -> IntArray:
    return np.concatenate((_account_columns(state.households), (state.held, state.residual)))


def _group_columns(state: State) -> IntArray:
    return np.concatenate((_account_columns(state.groups), (state.group_residual,)))


def _padded(columns: IntArray, places: int) -> IntArray:
    return np.pad(columns, ((0, 0), (0, max(0, places - columns.shape[1]))))


def _widened(columns: IntArray, fresh: IntArray, places: IntArray) -> IntArray:
    known = columns.shape[1]
    wide = np.zeros((columns.shape[0], max(known, int(places.max(initial=-1)) + 1)), np.int64)
    wide[:, :known] = columns
    new = places >= known
    wide[:, places[new]] = fresh[:, new]
    return wide
