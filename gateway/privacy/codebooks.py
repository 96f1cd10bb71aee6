"""Codebooks: k cells on a line of integers (mW) and the value that each stands for.

A cell is half-open, ``[cut_j, cut_{j+1})``, the last closed. Cuts are integers: for an integer ``x`` and a
rational cut ``c`` the comparison ``x ≥ c`` is that of ``x ≥ ⌈c⌉``, so nothing is lost and no float decides.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from math import log2

import numpy as np

from gateway.privacy.accounting import BoolArray, IntArray
from gateway.privacy.prf import KeyArray, threshold

MAX_CELLS = 1 << 22


class Rounding(StrEnum):
    """How a value finds its symbol."""

    NEAREST = "nearest"
    """The cell that it lies in."""
    FEEDBACK = "feedback"
    """Nearest after adding what earlier releases left over, so that totals stay exact (theory A3)."""
    DITHER = "dither"
    """Up or down between two levels by a public threshold, so that means over many are exact (theory A5)."""


@dataclass(frozen=True, eq=False)
class Codebook:
    """Cells and values over ``[lower, upper]``.

    Attributes:
        lower: the range's lower end, an integer (mW).
        upper: the range's upper end.
        cuts: (k−1,) strictly increasing lower ends of all cells but the first.
        values: (k,) the value each symbol stands for, inside its cell.
        missing_symbol: whether symbol 0 means "no reading"; it then stands for ``lower − 1``, a point below
            the range, so that missing and present readings stay on one line (theory A2).
        rounding: how a value finds its symbol. Feedback and dither need levels with both ends: else what is
            carried grows without bound (A3), or the ends are biased (A5).

    Raises:
        ValueError: the cells are not ordered, a value lies outside its cell, or the rounding does not fit.

    """

    lower: int
    upper: int
    cuts: IntArray
    values: IntArray
    missing_symbol: bool = False
    rounding: Rounding = Rounding.NEAREST

    def __post_init__(self) -> None:
        edges = np.concatenate(([self.floor], self.cuts, [self.upper + 1]))
        if np.any(np.diff(edges) <= 0):
            raise ValueError(
                f"{self.levels} cells do not fit on the integers of [{self.lower}, {self.upper}]"
            )
        placed = len(self.values) == self.levels and np.array_equal(
            self.encode(self.values), np.arange(self.levels)
        )
        if not placed or self.values[0] < self.floor or self.values[-1] > self.upper:
            raise ValueError("every cell needs one value, inside the cell")
        if self.rounding is not Rounding.NEAREST:
            self._check_carrying()

    @property
    def levels(self) -> int:
        """The number of symbols, k."""
        return len(self.cuts) + 1

    @property
    def largest_gap(self) -> int:
        """The largest distance between neighbouring levels (mW)."""
        return int(np.max(np.diff(self.values[int(self.missing_symbol) :]), initial=0))

    @property
    def floor(self) -> int:
        """The least point of the line: ``lower``, or ``lower − 1`` where missing is a symbol."""
        return self.lower - self.missing_symbol

    @cached_property
    def hash(self) -> str:
        """A short content hash that names this codebook in every message."""
        carried = "" if self.rounding is Rounding.NEAREST else f",{self.rounding}"
        head = f"{self.lower},{self.upper},{int(self.missing_symbol)}{carried};".encode()
        body = self.cuts.astype("<i8").tobytes() + self.values.astype("<i8").tobytes()
        return hashlib.sha256(head + body).hexdigest()[:6]

    def encode(self, values: IntArray) -> IntArray:
        """Return the symbols of integers that lie on the line."""
        return np.searchsorted(self.cuts, values, side="right").astype(np.int64)

    def cell(self, symbol: int) -> tuple[int, int]:
        """Return the half-open cell ``[low, high)`` of a symbol; the last ends at ``upper`` itself."""
        low = self.floor if symbol == 0 else int(self.cuts[symbol - 1])
        high = self.upper if symbol == self.levels - 1 else int(self.cuts[symbol])
        return low, high

    def widest_cell(self) -> int:
        """Return the width of the widest cell that holds readings (mW)."""
        return int(np.max(np.diff(self._edges())))

    def worst_error(self) -> int:
        """Return the largest distance between an integer in range and the value released for it (mW).

        With feedback or dither it is the largest gap: one release may be off by more than with nearest, so
        that totals, or means, are off by less.
        """
        if self.rounding is not Rounding.NEAREST:
            return self.largest_gap
        edges, first = self._edges(), int(self.missing_symbol)
        low, high = edges[:-1], edges[1:] - 1
        high[-1] = self.upper
        values = self.values[first:]
        return int(np.max(np.maximum(values - low, high - values)))

    def leakage_bits(self) -> float:
        """Return ``L(X;Y) = max_j log2(range ÷ width_j)`` of a reading in range (theory 1, A4)."""
        return log2((self.upper - self.lower) / max(1, int(np.min(np.diff(self._edges())))))

    def _check_carrying(self) -> None:
        levels = self.values[int(self.missing_symbol) :]
        if len(levels) < 2:  # noqa: PLR2004 - both ends
            raise ValueError(f"{self.rounding} needs two levels for readings or more, not {len(levels)}")
        if levels[0] != self.lower or levels[-1] != self.upper:
            raise ValueError(
                f"{self.rounding} needs levels that include both ends, {self.lower} and {self.upper}:"
                f" these run from {levels[0]} to {levels[-1]}"
            )
        if not np.array_equal(self.cuts[int(self.missing_symbol) :], _midway(levels)):
            raise ValueError(f"{self.rounding} needs cuts midway between the levels")

    def _edges(self) -> IntArray:
        """Return the ends of the cells that hold readings, ``lower`` first and ``upper`` last."""
        inner = self.cuts[1:] if self.missing_symbol else self.cuts
        return np.concatenate(([self.lower], inner, [self.upper]))


def uniform(lower: int, upper: int, levels: int, *, missing_symbol: bool = False) -> Codebook:
    """Return equal cells over ``[lower, upper]`` with their mid-points as values ([DP] IV, [NP] III).

    Args:
        lower: the range's lower end, an integer (mW).
        upper: the range's upper end.
        levels: k, the number of symbols; one of them is spent on "no reading" with ``missing_symbol``.
        missing_symbol: let symbol 0 mean "no reading".

    Raises:
        ValueError: fewer than one cell for readings, more than ``MAX_CELLS``, or more than the range holds.

    """
    cells = levels - missing_symbol
    if not 1 <= cells <= MAX_CELLS:
        raise ValueError(f"{cells} cells: a codebook has 1 to {MAX_CELLS} of them")
    edges = _equal_edges(lower, upper, cells)
    book = Codebook(lower, upper, edges[1:-1], (edges[:-1] + edges[1:]) // 2)
    return with_missing_symbol(book) if missing_symbol else book


def on_levels(lower: int, upper: int, levels: IntArray, rounding: Rounding = Rounding.NEAREST) -> Codebook:
    """Return the codebook with these values and cuts midway between them.

    Args:
        lower: the range's lower end (mW).
        upper: the range's upper end (mW).
        levels: strictly increasing integers in the range.
        rounding: how a value finds its symbol.

    Raises:
        ValueError: as :class:`Codebook`.

    """
    return Codebook(lower, upper, _midway(levels), levels, rounding=rounding)


def both_ends(
    lower: int, upper: int, levels: int, rounding: Rounding, *, missing_symbol: bool = False
) -> Codebook:
    """Return equally spaced levels that include both ends, for feedback and dither (theory A3, A5).

    Raises:
        ValueError: fewer than two levels for readings, or more than the range holds.

    """
    readings = levels - missing_symbol
    if not 2 <= readings <= MAX_CELLS:  # noqa: PLR2004 - both ends
        raise ValueError(f"{rounding} needs 2 to {MAX_CELLS} levels for readings, not {readings}")
    book = on_levels(lower, upper, _equal_edges(lower, upper, readings - 1), rounding)
    return with_missing_symbol(book) if missing_symbol else book


def middle_cell(merged: IntArray, cells: IntArray | int, levels: IntArray | int) -> IntArray:
    """Return the fine cell in the middle of each merged one, when ``levels`` cells are merged into ``cells``.

    Fine cell j belongs to merged cell ``⌊j·cells/levels⌋``.
    """
    first = -(-merged * levels // cells)
    last = -(-(merged + 1) * levels // cells) - 1
    middle: IntArray = (first + last) // 2
    return middle


def merged(book: Codebook, cells: int) -> Codebook:
    """Return a codebook of so many cells, adjacent ones merged (theory A9); rounded to nearest.

    Raises:
        ValueError: more cells, none, or there is a symbol for "no reading".

    """
    if not 1 <= cells <= book.levels or book.missing_symbol:
        raise ValueError(f"{book.levels} cells do not merge into {cells}")
    symbols = np.arange(cells)
    first = -(-symbols[1:] * book.levels // cells)
    return Codebook(
        book.lower, book.upper, book.cuts[first - 1], book.values[middle_cell(symbols, cells, book.levels)]
    )


def blind_band(lower: int, upper: int, levels: int, band: tuple[int, int]) -> Codebook:
    """Return a codebook in which ``[band[0], band[1]]`` lies in one cell (theory A6).

    No test of ``x ≥ τ`` can then decide for any τ in the band, if this is the household's only release,
    rounded to nearest and in no group. The other cells share the rest of the range by their widths.

    Raises:
        ValueError: the band is not inside the range, or no cells are left for the rest.

    """
    low, high = band
    if not lower <= low < high <= upper:
        raise ValueError(f"the band {low} to {high} does not lie in the range {lower} to {upper}")
    below, above = low - lower, upper - high
    rest = levels - 1
    if rest < (below > 0) + (above > 0):
        raise ValueError(f"{levels} levels leave no cell beside the band")
    under = round(rest * below / max(1, below + above))
    under = min(max(under, int(below > 0)), rest - int(above > 0))
    edges = [lower]
    if under:
        edges = list(_equal_edges(lower, low, under))
    tail = list(_equal_edges(high + 1, upper, rest - under))[:-1] if rest - under else []
    cuts = np.array([*edges[1:], *tail] if under else tail, np.int64)
    starts = np.concatenate(([lower], cuts))
    ends = np.concatenate((cuts, [upper]))
    return Codebook(lower, upper, cuts, (starts + ends) // 2)


def _midway(levels: IntArray) -> IntArray:
    """Return the cuts midway between levels, rounded up: a value on a cut goes up."""
    return -(-(levels[:-1] + levels[1:]) // 2)


def _equal_edges(lower: int, upper: int, cells: int) -> IntArray:
    """Return (cells+1,) integers ``⌈lower + j·(upper−lower)/cells⌉`` without overflow."""
    width, rest = divmod(upper - lower, cells)
    steps = np.arange(cells + 1, dtype=np.int64)
    return lower + steps * width + -(-(steps * rest) // cells)


def to_json(book: Codebook, about: str = "") -> str:
    """Return the text of a codebook file: everything public, with its content hash.

    Raises:
        ValueError: it has a symbol for "no reading", which the configuration adds.

    """
    if book.missing_symbol:
        raise ValueError('a codebook file has no symbol for "no reading": missing = "symbol" adds it')
    content = {
        "about": about,
        "unit": "mW",
        "range": [book.lower, book.upper],
        "rounding": book.rounding.value,
        "values": book.values.tolist(),
        "cuts": book.cuts.tolist(),
        "hash": book.hash,
    }
    return json.dumps(content, indent=1) + "\n"


def from_json(text: str) -> Codebook:
    """Return the codebook of a file's text.

    Raises:
        ValueError: it is not a codebook's text, or its content does not have its hash.

    """
    try:
        content = json.loads(text)
        lower, upper = _whole(content["range"])
        cuts, values = (np.array(_whole(content[name]), np.int64) for name in ("cuts", "values"))
        rounding, named = Rounding(content["rounding"]), content["hash"]
    except (KeyError, TypeError, OverflowError, RecursionError, ValueError) as error:
        raise ValueError(f"not a codebook file: {error}") from error
    book = Codebook(lower, upper, cuts, values, rounding=rounding)
    if book.hash != named:
        raise ValueError(f"the content's hash is {book.hash}, not {named}: the file was changed")
    return book


def _whole(numbers: list[object]) -> list[int]:
    """Return the numbers if all are whole: what is cut off would not change the hash."""
    if not all(type(number) is int for number in numbers):
        raise ValueError("ranges, cuts and values are whole milliwatts")
    return numbers  # type: ignore[return-value]


def with_missing_symbol(book: Codebook) -> Codebook:
    """Return the codebook with symbol 0 for "no reading" before its own symbols."""
    return Codebook(
        book.lower,
        book.upper,
        np.concatenate(([book.lower], book.cuts)),
        np.concatenate(([book.lower - 1], book.values)),
        missing_symbol=True,
        rounding=book.rounding,
    )


class Shelf:
    """The codebooks of many channels, read in one vectorised call.

    Codebooks are laid end to end on one line, so that a single binary search finds every channel's symbol,
    whatever ranges and levels the channels have.

    Args:
        codebooks: the distinct codebooks.
        book_of: (n,) index into ``codebooks`` for each channel.
        keys: (n,) public keys for the thresholds of dithered channels; zeros unless given.

    Raises:
        ValueError: the ranges together are too wide for 64-bit integers.

    """

    def __init__(
        self, codebooks: Sequence[Codebook], book_of: IntArray, keys: KeyArray | None = None
    ) -> None:
        self.codebooks = tuple(codebooks)
        self.book_of = book_of
        floors = [book.floor for book in codebooks]
        spans = [book.upper - book.floor + 1 for book in codebooks]
        if sum(spans) >= 1 << 62:
            raise ValueError("the ranges of all codebooks together exceed 64-bit integers")
        shift = np.cumsum([0, *spans[:-1]], dtype=np.int64) - np.array(floors, np.int64)
        first = np.cumsum([0, *(book.levels - 1 for book in codebooks[:-1])], dtype=np.int64)
        self._cuts = np.concatenate([book.cuts + s for book, s in zip(codebooks, shift, strict=True)])
        self._values = np.concatenate([book.values for book in codebooks])
        self._levels = np.concatenate([book.values + s for book, s in zip(codebooks, shift, strict=True)])
        self.keys = np.zeros(len(book_of), np.uint64) if keys is None else keys
        self._shift = shift[book_of]
        self._first_cut = first[book_of]
        self._first_value = self._first_cut + book_of
        self.lower = np.array([book.lower for book in codebooks], np.int64)[book_of]
        self.upper = np.array([book.upper for book in codebooks], np.int64)[book_of]
        self.floor = np.array(floors, np.int64)[book_of]
        self.levels = np.array([book.levels for book in codebooks], np.int64)[book_of]
        roundings = np.array([book.rounding for book in codebooks])[book_of]
        self.feedback: BoolArray = roundings == Rounding.FEEDBACK
        self.dithered: BoolArray = roundings == Rounding.DITHER
        self._any_dithered = bool(self.dithered.any())

    def __len__(self) -> int:
        return len(self.book_of)

    def encode(self, values: IntArray) -> IntArray:
        """Return (n,) symbols of the cells that (n,) integers lie in; beyond a range is its outer cell."""
        line = np.clip(values, self.floor, self.upper) + self._shift
        found = np.searchsorted(self._cuts, line, side="right")
        return found.astype(np.int64) - self._first_cut

    def dither(self, values: IntArray, symbols: IntArray, moment: int) -> IntArray:
        """Return (n,) symbols, those of dithered channels by the public thresholds of a moment (theory A5).

        Between two levels at distance d a value goes up when it is above the lower one by more than ``u·d``,
        u uniform on [0, 1) from key and moment. On a level, and for "no reading", nothing moves.

        Args:
            values: (n,) integers in range.
            symbols: (n,) what :meth:`encode` found.
            moment: the slot, public.

        """
        if not self._any_dithered:
            return symbols
        below = np.searchsorted(self._levels, values + self._shift, side="right") - 1
        above = np.minimum(below + 1, len(self._levels) - 1)
        offset, gap = values - self._values[below], self._values[above] - self._values[below]
        up = offset > threshold(self.keys, moment, np.maximum(gap, 0))
        moved = below - self._first_value + np.where(offset > 0, up, 0)
        return np.where(self.dithered & (values >= self.lower), moved, symbols)

    def decode(self, symbols: IntArray) -> IntArray:
        """Return (n,) values of (n,) symbols."""
        values: IntArray = self._values[self._first_value + symbols]
        return values
