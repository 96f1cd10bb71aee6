"""The codebooks that studies compare, and what homes release with them."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import NamedTuple

import numpy as np

from gateway.privacy import (
    Codebook,
    IntArray,
    Rounding,
    Shelf,
    blind_band,
    both_ends,
    fitted,
    uniform,
)
from simulators.attackers.recording import FloatArray
from simulators.attackers.replay import released_w

LOWER_MW, UPPER_MW = 0, 14_000_000
BAND_MW = (0, 1_000_000)
UNIFORM, FITTED, BLIND, RAW = "uniform", "fitted", "blind band", "unprotected"
_MOST_PROFILE = 20_000


class Made(NamedTuple):
    """A codebook and what it is called."""

    kind: str
    rounding: Rounding
    book: Codebook


class Named(NamedTuple):
    """What a row of a table says of the codebook; nothing but its name for unprotected readings."""

    codebook: str
    rounding: str
    levels: int | None
    epsilon_bits: float | None


def named(made: Made | None) -> Named:
    """Return a codebook's columns; those of unprotected readings for None."""
    if made is None:
        return Named(RAW, "", None, None)
    return Named(made.kind, made.rounding.value, made.book.levels, log2(made.book.levels))


def codebooks(
    kinds: Sequence[tuple[str, Rounding]], levels: Sequence[int], profile_mw: IntArray
) -> list[Made]:
    """Return codebooks over 0 to 14 kW of every kind and number of levels that it can have.

    One level, which says nothing, has no room for both ends nor beside a blind band.

    Args:
        kinds: uniform, fitted or blind band, each with a rounding.
        levels: numbers of levels, 1 or more.
        profile_mw: public loads that fitted cells are fitted to (mW); every so many of a long profile.

    """
    profile = profile_mw[:: max(1, len(profile_mw) // _MOST_PROFILE)]
    return [
        Made(kind, rounding, _codebook(kind, rounding, k, profile))
        for kind, rounding in kinds
        for k in levels
        if k > 1 or (rounding is Rounding.NEAREST and kind != BLIND)
    ]


def _codebook(kind: str, rounding: Rounding, levels: int, profile_mw: IntArray) -> Codebook:
    if kind == BLIND:
        return blind_band(LOWER_MW, UPPER_MW, levels, BAND_MW)
    if kind == FITTED:
        return fitted(profile_mw, LOWER_MW, UPPER_MW, levels, rounding=rounding)
    if rounding is Rounding.NEAREST:
        return uniform(LOWER_MW, UPPER_MW, levels)
    return both_ends(LOWER_MW, UPPER_MW, levels, rounding)


def released_by_each(made: Sequence[Made], series_mw: IntArray) -> FloatArray:
    """Return (T, codebooks) what each codebook releases (W) for one household's (T,) mean powers (mW)."""
    column = np.broadcast_to(series_mw[:, None], (len(series_mw), len(made)))
    return released_w(Shelf([one.book for one in made], np.arange(len(made))), column)


def released_by_all(made: Made, series_mw: IntArray) -> FloatArray:
    """Return (T, homes) what homes with this codebook release (W) for their (T, homes) mean powers (mW)."""
    return released_w(Shelf([made.book], np.zeros(series_mw.shape[1], np.int64)), series_mw)
