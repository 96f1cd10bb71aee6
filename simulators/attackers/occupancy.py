"""Is anyone home? Tests of that question on a household's released series ([HT]).

A :class:`SlotTest` looks at one release, as [HT]'s adversary does, a :class:`DayTest` at a whole day of them;
both learnt from other homes. :func:`quiet_days` has learnt nothing: it needs a recording and no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from gateway.privacy import BoolArray, IntArray
from simulators.attackers.recording import FloatArray

if TYPE_CHECKING:
    from sklearn.ensemble import RandomForestClassifier

_QUIET_SHARE = 1 / 3


class SlotTest:
    """The test of one release with the best balanced accuracy on the releases that it learnt from.

    It counts, for each released value at each time, how large a share of the empty slots and of the others
    show it, and says "empty" where the first is larger. A value never seen says "home".

    Args:
        values_w: (v,) the released values that were seen (W), increasing.
        empty: (times, v) whether each says "empty".

    """

    def __init__(self, values_w: FloatArray, empty: BoolArray) -> None:
        self._values = values_w
        self._empty = empty

    @classmethod
    def learnt(cls, released_w: FloatArray, time: IntArray, empty: BoolArray) -> Self:
        """Count.

        Args:
            released_w: (n,) released values (W).
            time: (n,) the public time of each, as whole numbers from 0, such as the slot of the day.
            empty: (n,) whether nobody was home.

        """
        values, place = np.unique(released_w, return_inverse=True)
        shape = (int(time.max()) + 1, len(values))
        seen = np.zeros((2, *shape))
        np.add.at(seen, (empty.astype(np.int64), time, place), 1)
        # Shares of all empty (or other) slots at that time.
        shares = seen / np.maximum(seen.sum(axis=2, keepdims=True), 1)
        return cls(values, shares[1] > shares[0])

    def empty(self, released_w: FloatArray, time: IntArray) -> BoolArray:
        """Return (n,) whether each release says that nobody is home."""
        place = np.minimum(np.searchsorted(self._values, released_w), len(self._values) - 1)
        said: BoolArray = self._empty[time, place] & (self._values[place] == released_w)
        return said


class DayTest:
    """A random forest that says from a day's releases whether the home was empty. Make one with :meth:`learnt`."""

    def __init__(self, forest: RandomForestClassifier) -> None:
        self._forest = forest

    @classmethod
    def learnt(cls, days_w: FloatArray, empty: BoolArray, known: BoolArray, seed: int) -> Self:
        """Learn from homes of which it is known when they were empty.

        Args:
            days_w: (h, d, slots) releases of homes on days (W).
            empty: (h, d) whether a home was empty on a day.
            known: (h, d) whether that is known.
            seed: of every random choice.

        Raises:
            ValueError: all known days are empty, or none.

        """
        from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415 - an extra, and slow to load

        if empty[known].all() or not empty[known].any():
            raise ValueError("a test of days is learnt from empty days and from others")
        forest = RandomForestClassifier(
            n_estimators=40, max_depth=4, class_weight="balanced_subsample", random_state=seed
        )
        return cls(forest.fit(day_features(days_w)[known], empty[known]))

    def empty(self, days_w: FloatArray) -> BoolArray:
        """Return (h, d) whether nobody is said to have been home, for (h, d, slots) releases (W)."""
        features = day_features(days_w)
        said = self._forest.predict(features.reshape(-1, features.shape[-1]))
        return np.asarray(said, np.bool_).reshape(features.shape[:-1])


def day_features(days_w: FloatArray) -> FloatArray:
    """Return (h, d, 14) what tells empty days of (h, d, slots) releases (W) from others.

    Mean, spread, least, largest, median, movement and the mean of the first quarter (the night); each as it is
    and against the home's own median day.
    """
    slots = days_w.shape[-1]
    plain = np.stack(
        (
            days_w.mean(axis=-1),
            days_w.std(axis=-1),
            days_w.min(axis=-1),
            days_w.max(axis=-1),
            np.median(days_w, axis=-1),
            np.abs(np.diff(days_w, axis=-1)).sum(axis=-1),
            days_w[..., : slots // 4].mean(axis=-1),
        ),
        axis=-1,
    )
    return np.concatenate((plain, plain - np.median(plain, axis=1, keepdims=True)), axis=-1)


def quiet_days(days_w: FloatArray) -> BoolArray:
    """Return (..., d) which of a household's (..., d, slots) released days (W) stand out as quiet.

    Quiet is a day whose mean lies below that of her median day, and whose range from lowest to highest release
    is at most a third of her median day's.
    """
    mean, reach = days_w.mean(axis=-1), np.ptp(days_w, axis=-1)
    below = mean < np.median(mean, axis=-1, keepdims=True)
    quiet: BoolArray = below & (reach <= _QUIET_SHARE * np.median(reach, axis=-1, keepdims=True))
    return quiet


def advantage(said: BoolArray, empty: BoolArray) -> float:
    """Return how much more often "empty" is said of empty ones than of others, −1 to 1; 0 is blind.

    It is 2·(balanced accuracy) − 1.

    Raises:
        ValueError: all are empty, or none.

    """
    if empty.all() or not empty.any():
        raise ValueError("an advantage compares empty ones with others")
    return float(said[empty].mean() - said[~empty].mean())
