"""An adversary who knows all homes' readings, and how likely each symbol is with a candidate in.

The others of her group are drawn at random from the other homes, slot by slot, and the same draws serve all games.
He scores a candidate by the sum over slots of log P(symbol | she is in), as if slots were independent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from gateway.privacy import IntArray
from simulators.attackers.recording import FloatArray

LIKELIHOOD = "likelihood"
_AT_ONCE = 4_000_000  # readings: some 30 MB
_GROUPS = 5_000  # kinds of others that are drawn from
_UNSEEN = 0.5  # a symbol that no draw gave is rare, and not impossible

K = TypeVar("K")


class Symbols(NamedTuple):
    """What a release takes its symbols from.

    Attributes:
        of: (g, n, t) readings of the members → (g, t) symbols.
        number: how many there are.

    """

    of: Callable[[IntArray], IntArray]
    number: int


class Likelihood(NamedTuple):
    """What he worked out before any game.

    Attributes:
        symbols: of the release.
        log_share: (homes, T, symbols) logarithms of P(symbol | home is in), per slot.

    """

    symbols: Symbols
    log_share: NDArray[np.float32]

    def scores(self, members: IntArray, candidates: IntArray, slots: IntArray) -> FloatArray:
        """Return (2, g) scores of both candidates.

        Args:
            members: (g, n, t) readings of those in it.
            candidates: (g, 2) homes.
            slots: (g, t) that were released.

        """
        seen = self.symbols.of(members)
        shares = self.log_share[candidates.T[:, :, None], slots, seen]
        scores: FloatArray = shares.sum(axis=-1, dtype=np.float64)
        return scores


def worked_out(
    readings: IntArray, size: int, symbols: Mapping[K, Symbols], draws: int, rng: np.random.Generator
) -> dict[K, Likelihood]:
    """Estimate P(symbol | home is in) of every home, slot and release.

    Args:
        readings: (homes, T) of all homes.
        size: n, the members of a group.
        symbols: of each release, by any key; all are estimated from the same draws.
        draws: of the n − 1 others, for each slot.
        rng: draws them.

    """
    if not symbols:
        return {}
    homes, slots = readings.shape
    others = 1 + rng.permuted(np.tile(np.arange(homes - 1), (_GROUPS, 1)), axis=1)[:, : size - 1]
    shares = {key: np.empty((homes, slots, one.number), np.float32) for key, one in symbols.items()}
    step = max(1, _AT_ONCE // (homes * draws * size))
    for first in range(0, slots, step):
        part = readings[:, first : first + step]
        groups = _groups(part, others, draws, rng)
        for key, one in symbols.items():
            shares[key][:, first : first + step] = _log_shares(one, groups, homes)
    return {key: Likelihood(one, shares[key]) for key, one in symbols.items()}


def _groups(part: IntArray, others: IntArray, draws: int, rng: np.random.Generator) -> IntArray:
    """Return (homes · draws, n, t) readings of groups: each home, with others that are so many places after her."""
    homes, slots = part.shape
    places = others[rng.integers(len(others), size=(draws, slots))].transpose(0, 2, 1)
    at = np.arange(homes)[:, None, None, None] + places
    beside = np.concatenate((part, part))[at, np.arange(slots)]
    mine = np.broadcast_to(part[:, None, None, :], (homes, draws, 1, slots))
    return np.concatenate((mine, beside), axis=2).reshape(homes * draws, -1, slots)


def _log_shares(symbols: Symbols, groups: IntArray, homes: int) -> FloatArray:
    """Return (homes, t, symbols) logarithms of how often each symbol came."""
    slots = groups.shape[-1]
    seen = symbols.of(groups).reshape(homes, -1, slots)
    cell = (np.arange(homes)[:, None, None] * slots + np.arange(slots)) * symbols.number + seen
    counts = np.bincount(cell.ravel(), minlength=homes * slots * symbols.number)
    shares = (counts + _UNSEEN) / (seen.shape[1] + _UNSEEN * symbols.number)
    logs: FloatArray = np.log(shares).reshape(homes, slots, symbols.number)
    return logs
