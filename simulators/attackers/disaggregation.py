"""Which appliances are on, from a household's released series ([NP] V-B).

Two attackers. The paper's is combinatorial optimisation: every appliance has a few states of power, and the
combination whose sum is nearest to the release is the guess. The stronger one is a classifier that was trained
on releases of the same codebook, beside a meter on the appliance, and looks at the releases around a minute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from gateway.privacy import BoolArray, IntArray
from simulators.attackers.recording import FloatArray

if TYPE_CHECKING:
    from sklearn.ensemble import RandomForestClassifier

ON_W = 50.0
"""Above this an appliance counts as on: standby of those recorded here lies below, their motors above."""
_MOST_CLUSTERED = 5_000
_NEIGHBOURS = 5
_WIDTHS = (15, 60)
_REST, _REST_STATES, _MOST_STATES = "rest of the home", 4, 3
_TREES = 20


def learnt_states(power_w: npt.ArrayLike, states: int, seed: int) -> FloatArray:
    """Return 0 W for off and at most so many states, the centres of k-means over the powers that are on.

    Args:
        power_w: (T,) training power of one appliance (W).
        states: the most states beside off.
        seed: of k-means.

    """
    power = np.asarray(power_w, np.float64)
    return np.concatenate(([0.0], clustered(power[power > ON_W], states, seed)))


def clustered(power_w: npt.ArrayLike, states: int, seed: int) -> FloatArray:
    """Return the increasing centres of at most so many clusters of powers (W); none of no power."""
    from sklearn.cluster import KMeans  # noqa: PLC0415 - an extra, and slow to load

    power = np.asarray(power_w, np.float64)
    power = power[:: max(1, len(power) // _MOST_CLUSTERED)]
    count = min(states, len(np.unique(power)))
    if count == 0:
        return np.zeros(0)
    found = KMeans(count, n_init=4, random_state=seed).fit(power[:, None])
    return np.unique(found.cluster_centers_)


class CombinatorialOptimisation:
    """The combination of appliance states whose sum is nearest to a release (Hart 1992, [NP] V-B).

    Of two sums at the same distance the lower is taken; of combinations with the same sum the one that comes
    first when states are counted up, the last appliance fastest.

    Args:
        states_w: the states of each appliance (W), at least one each; what always runs has one or more above 0.

    Raises:
        ValueError: no appliance, or one without a state.

    """

    def __init__(self, states_w: Mapping[str, Sequence[float] | FloatArray]) -> None:
        if not states_w or not all(len(states) for states in states_w.values()):
            raise ValueError("disaggregation needs appliances, each with at least one state")
        self.names = tuple(states_w)
        combinations = np.array(list(product(*states_w.values())), np.float64)
        totals, first = np.unique(combinations.sum(axis=1), return_index=True)
        self._combinations = combinations[first]
        self._borders = (totals[:-1] + totals[1:]) / 2

    @classmethod
    def trained(cls, appliances_w: Mapping[str, IntArray], total_w: IntArray, seed: int) -> Self:
        """Learn the states of appliances, and of the rest of the home, from meters on them.

        How many states an appliance has at most is what disaggregates the training power itself best.

        Args:
            appliances_w: (T,) the power of each appliance (W), by name.
            total_w: (T,) the power of the home (W).
            seed: of k-means.

        """
        rest = np.maximum(total_w - np.sum(list(appliances_w.values()), axis=0), 0)
        always = clustered(rest, _REST_STATES, seed)
        found = [
            cls(
                {name: learnt_states(power, states, seed) for name, power in appliances_w.items()}
                | {_REST: always}
            )
            for states in range(1, _MOST_STATES + 1)
        ]
        return max(found, key=lambda attacker: attacker.score(appliances_w, total_w))

    def on(self, released_w: npt.ArrayLike) -> dict[str, BoolArray]:
        """Return (T,) whether each appliance is guessed to be on."""
        return {name: power > ON_W for name, power in self.guess(released_w).items() if name != _REST}

    def score(self, appliances_w: Mapping[str, IntArray], released_w: npt.ArrayLike) -> float:
        """Return the mean F-score over appliances, given the power that each drew (W)."""
        guessed = self.on(released_w)
        return float(np.mean([f_score(guessed[name], power > ON_W) for name, power in appliances_w.items()]))

    def guess(self, released_w: npt.ArrayLike) -> dict[str, FloatArray]:
        """Return the power (W) that each appliance is guessed to draw at each of (T,) released values (W)."""
        nearest = np.searchsorted(self._borders, np.asarray(released_w, np.float64), side="left")
        return dict(zip(self.names, self._combinations[nearest].T, strict=True))


class WindowClassifier:
    """A random forest that says from the releases around a minute whether something is on.

    It sees the release itself, five before and after, and the means over a quarter of an hour and an hour:
    totals are what feedback keeps exact. Make one with :meth:`trained`.
    """

    def __init__(self, forest: RandomForestClassifier | None, threshold: float) -> None:
        self._forest = forest
        self._threshold = threshold

    @classmethod
    def trained(
        cls, released_w: npt.ArrayLike, on: BoolArray, known: BoolArray, seed: int, *, trees: int = _TREES
    ) -> Self:
        """Learn from releases of the codebook that is attacked, and what was on.

        The last quarter is kept to choose the probability from which "on" is said: that of the best F-score.

        Args:
            released_w: (T,) released values (W), one after the other.
            on: (T,) whether it was on.
            known: (T,) whether that was recorded.
            seed: of every random choice.
            trees: of the forest, 1 or more.

        """
        from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415 - an extra, and slow to load

        features = windows(released_w)
        late = np.arange(len(on)) >= len(on) * 3 // 4
        early, late = known & ~late, known & late
        if len(np.unique(on[early])) == 1 or not on[late].any():
            return cls(None, 0.0)
        forest = RandomForestClassifier(
            n_estimators=trees, min_samples_leaf=5, max_features=0.5, max_samples=0.5, random_state=seed
        )
        forest.fit(features[early], on[early])
        return cls(forest, best_threshold(forest.predict_proba(features[late])[:, 1], on[late]))

    def says(self, released_w: npt.ArrayLike) -> BoolArray:
        """Return (T,) whether it is guessed to be on; never, if training showed it always or never on."""
        if self._forest is None:
            return np.zeros(len(np.asarray(released_w)), np.bool_)
        likely: BoolArray = self._forest.predict_proba(windows(released_w))[:, 1] >= self._threshold
        return likely


def windows(released_w: npt.ArrayLike) -> FloatArray:
    """Return (T, features) the releases around each of (T,), at the ends those that there are."""
    series = np.asarray(released_w, np.float64)
    place = np.arange(len(series))
    last = len(series) - 1
    near = [
        series[np.clip(place + shift, 0, last)]
        for shift in sorted(range(-_NEIGHBOURS, _NEIGHBOURS + 1), key=abs)
    ]
    sums = np.concatenate(([0.0], np.cumsum(series)))
    means = []
    for width in _WIDTHS:
        low, high = np.maximum(place - width // 2, 0), np.minimum(place + width // 2, last) + 1
        means.append((sums[high] - sums[low]) / (high - low))
    return np.column_stack(near + means)


def best_threshold(likely: FloatArray, on: BoolArray) -> float:
    """Return the probability from which saying "on" gives the best F-score; the highest such."""
    order = np.argsort(-likely, kind="stable")
    hits = np.cumsum(on[order])
    score = 2 * hits / (np.arange(1, len(order) + 1) + on.sum())
    # All with the same probability are said together.
    whole = np.append(likely[order][:-1] != likely[order][1:], True)
    return float(likely[order][np.argmax(np.where(whole, score, -1.0))])


def f_score(guessed: BoolArray, on: BoolArray) -> float:
    """Return 2·hits / (guessed + on), the harmonic mean of precision and recall; 0 where nothing was hit."""
    return float(f_scores(np.sum(guessed & on), np.sum(guessed), np.sum(on)))


def f_scores(hits: npt.ArrayLike, guessed: npt.ArrayLike, on: npt.ArrayLike) -> FloatArray:
    """Return F-scores from counts of minutes, of one shape: hit, guessed to be on, and on."""
    said = np.asarray(guessed, np.float64) + np.asarray(on, np.float64)
    return np.where(said > 0, 2 * np.asarray(hits, np.float64) / np.maximum(said, 1.0), 0.0)


def always_on_score(rate: float) -> float:
    """Return the F-score of always saying "on" where it is on for a share of the time: the best blind guess."""
    return 2 * rate / (1 + rate)
