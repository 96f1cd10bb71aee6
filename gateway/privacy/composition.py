"""Composition, odometers and filters for whoever builds on the core: levels multiply, unless cuts merge.

An *odometer* says what was spent along the way; a *filter* refuses what would exceed a budget. An odometer
read along one path is no bound when levels depend on outputs; a filter that picks levels from public facts or
past symbols is valid (theory A9).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from gateway.privacy.accounting import MICROBITS_PER_BIT, microbits
from gateway.privacy.guarantees import composed_levels, merged_levels


@dataclass(frozen=True, slots=True)
class Channel:
    """One release of one household in one slot, as composition sees it.

    Attributes:
        levels: k, the outputs it can reach while she varies.
        reads: which integer it reads; equal for channels that see the very same one.
        monotone: whether it is a monotone step function of that integer.
        stateless: whether nothing private but that integer decides it; not so with feedback.

    """

    levels: int
    reads: Hashable
    monotone: bool = True
    stateless: bool = True

    @property
    def merges(self) -> bool:
        """Whether its cuts merge with those of others on one line."""
        return self.monotone and self.stateless


class CompositionError(ValueError):
    """Refined composition was asked for where its conditions do not hold."""


def additive(channels: Iterable[Channel]) -> int:
    """Return the product of all levels: always valid ([NP] Thm 6)."""
    return composed_levels(channel.levels for channel in channels)


def refined(channels: Sequence[Channel]) -> int:
    """Return ``1 + Σ(k_j − 1)`` (theory A2).

    Raises:
        CompositionError: a channel has private state, is not monotone, or reads another integer.

    """
    for channel in channels:
        if not channel.merges:
            what = "carries private state (feedback)" if channel.monotone else "is not monotone"
            raise CompositionError(f"a channel of {channel.levels} levels {what}: its levels multiply")
    if len({channel.reads for channel in channels}) > 1:
        raise CompositionError("the channels read different integers: their levels multiply")
    return merged_levels(channel.levels for channel in channels)


def composed(channels: Iterable[Channel]) -> int:
    """Return the joint levels: refined where the conditions hold, multiplied elsewhere."""
    mergeable: dict[Hashable, list[Channel]] = {}
    alone: list[Channel] = []
    for channel in channels:
        (mergeable.setdefault(channel.reads, []) if channel.merges else alone).append(channel)
    return composed_levels([additive(alone), *(refined(group) for group in mergeable.values())])


@dataclass(frozen=True, slots=True)
class Odometer:
    """What was spent, in micro-bits.

    Odometers add up in sequence; over disjoint households the largest counts.
    """

    spent: int = 0

    def charged(self, levels: int) -> Odometer:
        """Return the odometer after a release of ``levels`` outputs.

        Raises:
            ValueError: fewer than one level.

        """
        return Odometer(self.spent + microbits(levels))

    @classmethod
    def in_sequence(cls, parts: Iterable[Odometer]) -> Odometer:
        """Return what one household spent through all parts (Thm 6)."""
        return cls(sum(part.spent for part in parts))

    @classmethod
    def in_parallel(cls, parts: Iterable[Odometer]) -> Odometer:
        """Return what any one household spent, each in one part: groups without common members."""
        return cls(max((part.spent for part in parts), default=0))

    @property
    def bits(self) -> float:
        """What was spent, for people."""
        return self.spent / MICROBITS_PER_BIT


class BudgetSpentError(Exception):
    """A filter refuses a release.

    Attributes:
        asked: what the release costs (micro-bits).
        left: what is left (micro-bits).
        turns: when the window turns, in the unit of ``at``; None without windows.

    """

    def __init__(self, asked: int, left: int, turns: int | None) -> None:
        when = "" if turns is None else f"; the window turns at {turns}"
        super().__init__(
            f"the release asks for {asked / MICROBITS_PER_BIT:.6f} bits,"
            f" {left / MICROBITS_PER_BIT:.6f} are left{when}"
        )
        self.asked = asked
        self.left = left
        self.turns = turns


@dataclass(frozen=True, slots=True)
class Filter:
    """A budget, per window if it has one; inside another filter both must agree.

    Attributes:
        budget: micro-bits.
        window: the length of a window, aligned to 0, in the unit of ``at``; None for ever.
        within: the filter around this one.
        odometer: what was spent in the present window.
        began: the start of the present window.

    """

    budget: int
    window: int | None = None
    within: Filter | None = None
    odometer: Odometer = field(default=Odometer())
    began: int | None = None

    def charged(self, levels: int, at: int = 0) -> Filter:
        """Return the filter after a release of ``levels`` outputs at a time.

        Raises:
            BudgetSpentError: it, or the one around it, cannot pay; then nothing is charged anywhere.
            ValueError: the time lies before the present window.

        """
        price, began = microbits(levels), self._window(at)
        left = self.left(at)
        if price > left:
            raise BudgetSpentError(price, left, None if self.window is None else began + self.window)
        around = None if self.within is None else self.within.charged(levels, at)
        return replace(self, within=around, odometer=Odometer(self.budget - left + price), began=began)

    def left(self, at: int = 0) -> int:
        """Return the micro-bits that are left in the window of a time.

        Raises:
            ValueError: the time lies before the present window.

        """
        began = self._window(at)
        if self.began is not None and began < self.began:
            raise ValueError(f"time {at} lies before the window that began at {self.began}")
        # What was spent before the first use belongs to the window of that.
        return self.budget - (self.odometer.spent if self.began in (None, began) else 0)

    def releases_remaining(self, levels: int, at: int = 0) -> int | None:
        """Return how many releases of ``levels`` outputs can still be paid; None where they cost nothing."""
        price = microbits(levels)
        if price == 0:
            return None
        here = max(0, self.left(at)) // price
        around = None if self.within is None else self.within.releases_remaining(levels, at)
        return here if around is None else min(here, around)

    def _window(self, at: int) -> int:
        return 0 if self.window is None else at // self.window * self.window


def coarsened_levels(levels: int, left: int, releases: int) -> int:
    """Return the most cells, merged from adjacent ones, that so many releases can still afford (theory A9).

    It depends on counts only, so the choice itself says nothing. 1 (a constant) when nothing fits.

    Args:
        levels: cells of the finest codebook.
        left: micro-bits left in the window.
        releases: releases that are still to come in it, this one included.

    Raises:
        ValueError: no levels or no releases.

    """
    if levels < 1 or releases < 1:
        raise ValueError("at least one level and one release")
    most = left // releases
    low, high = 1, levels
    while low < high:
        middle = (low + high + 1) // 2
        if microbits(middle) <= most:
            low = middle
        else:
            high = middle - 1
    return low
