"""A curve of scores as a part of a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from simulators.studies._releases import RAW

_LEVELS = (2, 4, 16)


class Scored(Protocol):
    """What a row says of the codebook that was attacked."""

    @property
    def codebook(self) -> str: ...
    @property
    def rounding(self) -> str: ...
    @property
    def levels(self) -> int | None: ...


S = TypeVar("S", bound=Scored)


def by_levels(scores: Sequence[S], value: Callable[[S], float]) -> str:
    """Return what 2, 4 and 16 levels of each codebook gave, as the end of a sentence."""
    kinds = dict.fromkeys((score.codebook, score.rounding) for score in scores if score.codebook != RAW)
    parts = [
        f"{kind} {rounding} "
        + ", ".join(
            f"{value(score):z.2f}"
            for score in scores
            if (score.codebook, score.rounding) == (kind, rounding) and score.levels in _LEVELS
        )
        for kind, rounding in kinds
    ]
    return f"With {', '.join(map(str, _LEVELS))} levels (1, 2, 4 bits): {'; '.join(parts)}."
