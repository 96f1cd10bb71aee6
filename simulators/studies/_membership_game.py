"""The membership game of [NP] V-A, many games at a time.

The adversary names two homes; a coin picks one, and n−1 others join it. The mean of the n is released, and the
adversary says which of the two is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from math import sqrt
from statistics import NormalDist
from typing import NamedTuple, TypeVar

import numpy as np

from gateway.privacy import BoolArray, Codebook, IntArray, Reach, group_codebook, uniform
from simulators.attackers.membership import ADVERSARIES, names_second
from simulators.attackers.recording import FloatArray
from simulators.studies._membership_likelihood import LIKELIHOOD, Likelihood, Symbols

Release = Callable[[IntArray], FloatArray]
"""(g, n, t) readings of the members → (g, t) released means, in the readings' unit."""

K = TypeVar("K", bound=Hashable)

_THREE = tuple(ADVERSARIES.items())
_AT_ONCE = 4_000_000  # readings: some 30 MB
_Z = NormalDist().inv_cdf(0.975)
PAPER, CERTIFIED, OVER_ALL = "Theorem 8", "certified", "k over the whole span"
LOCAL = "each home, then the mean"
READINGS = (PAPER, CERTIFIED, OVER_ALL, LOCAL)
"""What "ε with n homes" may mean for the quantizer; ``release_of`` makes each."""
UNPROTECTED = "unprotected"


class Games(NamedTuple):
    """Games that were drawn.

    Attributes:
        candidates: (g, 2) homes that the adversary names.
        members: (g, n) homes whose mean is released; the first is the chosen candidate.
        second: (g,) whether that is the second one.
        first_slot: (g,) where the released series begins.
        coins: (g,) what the adversary says when both fit alike.

    """

    candidates: IntArray
    members: IntArray
    second: BoolArray
    first_slot: IntArray
    coins: BoolArray


class Score(NamedTuple):
    """How often an adversary was right.

    Attributes:
        right: games in which she was.
        games: all of them.

    """

    right: int
    games: int

    @property
    def advantage(self) -> float:
        """Adv = 2·|P(right) − ½|."""
        return abs(2 * self.right / self.games - 1)

    @property
    def interval(self) -> tuple[float, float]:
        """Ends of the advantage's 95 % interval (Wilson's, of P(right)), over games among *these* homes."""
        low, high = (2 * end - 1 for end in wilson(self.right, self.games))
        if low <= 0 <= high:
            return 0.0, max(-low, high)
        return min(abs(low), abs(high)), max(abs(low), abs(high))


class Outcome(NamedTuple):
    """What playing all games under one release gave.

    Attributes:
        scores: of each adversary.
        error_percent: RMS error of the released means, in % of the mean of what they stand for.

    """

    scores: Mapping[str, Score]
    error_percent: float


def wilson(right: int, games: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share."""
    share, weight = right / games, _Z * _Z / games
    centre = (share + weight / 2) / (1 + weight)
    half = _Z * sqrt(share * (1 - share) / games + weight / (4 * games)) / (1 + weight)
    return centre - half, centre + half


def draw(
    homes: int, size: int, games: int, rng: np.random.Generator, starts: IntArray | None = None
) -> Games:
    """Draw games among ``homes`` homes, each independent of the others.

    Args:
        homes: how many there are.
        size: n, the members of the group.
        games: how many to draw.
        rng: draws them.
        starts: slots at which a series may begin; 0 unless given.

    Raises:
        ValueError: there are too few homes for two candidates and the n − 1 others.

    """
    if size + 1 > homes:
        raise ValueError(f"groups of {size} and a candidate outside need {size + 1} homes, not {homes}")
    picked = rng.permuted(np.broadcast_to(np.arange(homes), (games, homes)), axis=1)[:, : size + 1]
    candidates, second = picked[:, :2], rng.random(games) < 0.5  # noqa: PLR2004 - a fair coin
    chosen = np.where(second, candidates[:, 1], candidates[:, 0])
    members = np.concatenate((chosen[:, None], picked[:, 2:]), axis=1)
    first_slot = rng.choice(np.zeros(1, np.int64) if starts is None else starts, games)
    return Games(candidates, members, second, first_slot, rng.random(games) < 0.5)  # noqa: PLR2004


def play(
    readings: IntArray,
    games: Games,
    releases: Mapping[K, Release],
    slots: int,
    likelihoods: Mapping[K, Likelihood] | None = None,
) -> dict[K, Outcome]:
    """Play all games under each release.

    Args:
        readings: (homes, T) of all homes.
        games: the same for every release, so that releases differ by themselves and not by luck.
        releases: by any key.
        slots: the length of the released series.
        likelihoods: of the releases against which that adversary plays as well.

    """
    right: dict[K, dict[str, int]] = {release: {} for release in releases}
    squares, total = dict.fromkeys(releases, 0.0), 0.0
    for some in _parts(games, slots):
        seen = some.first_slot[:, None] + np.arange(slots)
        members = readings[some.members[:, :, None], seen[:, None, :]]
        known = readings[some.candidates.T[:, :, None], seen].astype(np.float64)
        truth = plain(members)
        total += float(truth.sum())
        for name, release in releases.items():
            released = release(members)
            squares[name] += float(np.square(released - truth).sum())
            scores = {who: (score(released, known[0]), score(released, known[1])) for who, score in _THREE}
            if likelihoods and name in likelihoods:
                first, second = likelihoods[name].scores(members, some.candidates, seen)
                scores[LIKELIHOOD] = first, second
            for adversary, both in scores.items():
                says = names_second(*both, some.coins)
                before = right[name].get(adversary, 0)
                right[name][adversary] = before + int(np.count_nonzero(says == some.second))
    played = len(games.second)
    return {
        name: Outcome(
            {adversary: Score(count, played) for adversary, count in by.items()},
            100 * sqrt(squares[name] * played * slots) / total,
        )
        for name, by in right.items()
    }


def _parts(games: Games, slots: int) -> Iterator[Games]:
    """Cut the games into parts whose readings fit in memory."""
    step = max(1, _AT_ONCE // (games.members.shape[1] * slots))
    for low in range(0, len(games.second), step):
        part = slice(low, low + step)
        yield Games(
            games.candidates[part],
            games.members[part],
            games.second[part],
            games.first_slot[part],
            games.coins[part],
        )


def plain(members: IntArray) -> FloatArray:
    """Release the mean as it is."""
    mean: FloatArray = members.mean(axis=1)
    return mean


def codebook_of(reading: str, size: int, levels: int, top: int) -> Codebook:
    """Return the codebook of a reading of "ε = log k for groups of n homes with readings in [0, top]".

    It is of the sum, or of one home's reading where each home is quantized by itself.

    Raises:
        ValueError: as :func:`gateway.privacy.group_codebook`.

    """
    span = Reach.of(np.zeros(size, np.int64), np.full(size, top, np.int64))
    if reading == PAPER:
        return group_codebook(span, levels, calibration="paper")
    if reading == CERTIFIED:
        return group_codebook(span, levels)
    return uniform(0, top if reading == LOCAL else span.upper, levels)


def release_of(reading: str, size: int, levels: int, top: int) -> Release:
    """Return what releases the mean of n homes under a reading.

    Raises:
        ValueError: as :func:`codebook_of`.

    """
    book = codebook_of(reading, size, levels, top)
    if reading == LOCAL:
        return lambda members: book.values[book.encode(members)].mean(axis=1)
    return lambda members: book.values[book.encode(members.sum(axis=1))] / size


def symbols_of(reading: str, size: int, levels: int, top: int) -> Symbols:
    """Return the symbols of what :func:`release_of` releases: cells, or sums of the homes' cells.

    Raises:
        ValueError: as :func:`codebook_of`.

    """
    book = codebook_of(reading, size, levels, top)
    if reading == LOCAL:
        return Symbols(lambda members: book.encode(members).sum(axis=1), size * (book.levels - 1) + 1)
    return Symbols(lambda members: book.encode(members.sum(axis=1)), book.levels)
