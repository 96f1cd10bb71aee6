"""Codebooks: k cells on a line of integers (mW) and the value that each stands for.

A cell is half-open, ``[cut_j, cut_{j+1})``, the last closed. Cuts are integers: for an integer ``x`` and a
rational cut ``c`` the comparison ``x ≥ c`` is that of ``x ≥ ⌈c⌉``, so nothing is lost and no float decides.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log2

import numpy as np

from gateway.privacy.accounting import IntArray

MAX_CELLS = 1 << 22


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

    Raises:
        ValueError: the cells are not ordered, or a value lies outside its cell.

    """

    lower: int
    upper: int
    cuts: IntArray
    values: IntArray
    missing_symbol: bool = False

    def __post_init__(self) -> None:
        edges = np.concatenate(([self.floor], self.cuts, [self.upper + 1]))
        if np.any(np.diff(edges) <= 0):
            raise ValueError(
                f"{self.levels} cells do not fit on the integers of [{self.lower}, {self.upper}]"
            )
        if len(self.values) != self.levels or not np.array_equal(
            self.encode(self.values), np.arange(self.levels)
        ):
            raise ValueError("every cell needs one value, inside the cell")

    @property
    def levels(self) -> int:
        """The number of symbols, k."""
        return len(self.cuts) + 1

    @property
    def floor(self) -> int:
        """The least point of the line: ``lower``, or ``lower − 1`` where missing is a symbol."""
        return self.lower - self.missing_symbol

    @cached_property
    def hash(self) -> str:
        """A short content hash that names this codebook in every message."""
        head = f"{self.lower},{self.upper},{int(self.missing_symbol)};".encode()
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
        """Return the largest distance between an integer in range and the value released for it (mW)."""
        edges, first = self._edges(), int(self.missing_symbol)
        low, high = edges[:-1], edges[1:] - 1
        high[-1] = self.upper
        values = self.values[first:]
        return int(np.max(np.maximum(values - low, high - values)))

    def leakage_bits(self) -> float:
        """Return ``L(X;Y) = max_j log2(range ÷ width_j)`` of a reading in range (theory 1, A4)."""
        return log2((self.upper - self.lower) / int(np.min(np.diff(self._edges()))))

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
    values = (edges[:-1] + edges[1:]) // 2
    cuts = edges[1:-1]
    if missing_symbol:
        cuts = np.concatenate(([lower], cuts))
        values = np.concatenate(([lower - 1], values))
    return Codebook(lower, upper, cuts, values, missing_symbol=missing_symbol)


def _equal_edges(lower: int, upper: int, cells: int) -> IntArray:
    """Return (cells+1,) integers ``⌈lower + j·(upper−lower)/cells⌉`` without overflow."""
    width, rest = divmod(upper - lower, cells)
    steps = np.arange(cells + 1, dtype=np.int64)
    return lower + steps * width + -(-(steps * rest) // cells)


class Shelf:
    """The codebooks of many channels, read in one vectorised call.

    Codebooks are laid end to end on one line, so that a single binary search finds every channel's symbol,
    whatever ranges and levels the channels have.

    Args:
        codebooks: the distinct codebooks.
        book_of: (n,) index into ``codebooks`` for each channel.

    Raises:
        ValueError: the ranges together are too wide for 64-bit integers.

    """

    def __init__(self, codebooks: Sequence[Codebook], book_of: IntArray) -> None:
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
        self._shift = shift[book_of]
        self._first_cut = first[book_of]
        self._first_value = self._first_cut + book_of
        self.lower = np.array([book.lower for book in codebooks], np.int64)[book_of]
        self.upper = np.array([book.upper for book in codebooks], np.int64)[book_of]
        self.floor = np.array(floors, np.int64)[book_of]

    def __len__(self) -> int:
        return len(self.book_of)

    def encode(self, values: IntArray) -> IntArray:
        """Return (n,) symbols of (n,) integers, each on its channel's line."""
        found = np.searchsorted(self._cuts, values + self._shift, side="right")
        return found.astype(np.int64) - self._first_cut

    def decode(self, symbols: IntArray) -> IntArray:
        """Return (n,) values of (n,) symbols."""
        values: IntArray = self._values[self._first_value + symbols]
        return values
