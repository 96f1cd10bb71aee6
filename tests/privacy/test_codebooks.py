"""Codebooks are half-open cells over integers, exactly; shelves are many of them in one call."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import pairwise
from math import inf, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.privacy import MAX_CELLS, Codebook, IntArray, Rounding, Shelf, both_ends, uniform


@st.composite
def uniform_books(draw: st.DrawFn, most_width: int = 200) -> Codebook:
    lower, width = draw(st.integers(-500, 500)), draw(st.integers(1, most_width))
    missing = draw(st.booleans())
    levels = draw(st.integers(1, min(width, 20))) + missing
    return uniform(lower, lower + width, levels, missing_symbol=missing)


@st.composite
def unequal_books(draw: st.DrawFn) -> Codebook:
    lower, width = draw(st.integers(-500, 500)), draw(st.integers(1, 200))
    cuts = sorted(draw(st.sets(st.integers(lower + 1, lower + width), max_size=12)))
    edges = [lower, *cuts, lower + width + 1]
    values = [draw(st.integers(low, high - 1)) for low, high in pairwise(edges)]
    return Codebook(lower, lower + width, np.array(cuts, np.int64), np.array(values, np.int64))


books = st.one_of(uniform_books(), unequal_books())


def line(book: Codebook) -> IntArray:
    return np.arange(book.floor, book.upper + 1)


def readings(book: Codebook) -> IntArray:
    return np.arange(book.lower, book.upper + 1)


@settings(deadline=None)
@given(st.integers(-500, 500), st.integers(1, 200), st.integers(1, 20), st.booleans())
def test_a_uniform_symbol_is_the_half_open_cell_that_holds_the_reading(
    lower: int, width: int, cells: int, missing: bool
) -> None:
    """Cells [lower + j·R/k, lower + (j+1)·R/k), the last closed, in rationals, for every integer."""
    cells = min(cells, width)
    book = uniform(lower, lower + width, cells + missing, missing_symbol=missing)
    edges = [lower + Fraction(j * width, cells) for j in range(cells)]
    expected = [sum(x >= edge for edge in edges) - 1 + missing for x in range(lower, lower + width + 1)]
    assert book.encode(readings(book)).tolist() == expected
    assert book.levels == cells + missing
    assert set(book.encode(line(book)).tolist()) == set(range(book.levels)), "every symbol can be reached"
    if missing:
        assert book.encode(np.array([lower - 1])).tolist() == [0]
        assert 0 not in expected


@settings(deadline=None)
@given(st.integers(-(10**17), 10**17), st.integers(1, 10**17), st.integers(1, MAX_CELLS), st.data())
def test_uniform_cells_are_exact_at_every_scale(
    lower: int, width: int, cells: int, data: st.DataObject
) -> None:
    """Ranges of up to 10^17 mW: each cut is the ceiling of its rational."""
    cells = min(cells, width, 1 << data.draw(st.integers(0, 16)))
    book = uniform(lower, lower + width, cells)
    for j in data.draw(st.lists(st.integers(1, max(1, cells - 1)), max_size=5)):
        if j < cells:
            assert book.cuts[j - 1] == -((-(lower * cells + j * width)) // cells)


def test_the_most_cells_fit() -> None:
    book = uniform(0, 10**12, MAX_CELLS)
    assert book.levels == MAX_CELLS
    for j in (1, 2, 3_000_001, MAX_CELLS - 1):
        assert book.cuts[j - 1] == -(-j * 10**12 // MAX_CELLS)


@settings(deadline=None)
@given(uniform_books())
def test_uniform_values_are_mid_points_to_the_milliwatt(book: Codebook) -> None:
    first = int(book.missing_symbol)
    cells = book.levels - first
    for j in range(cells):
        middle = book.lower + Fraction((2 * j + 1) * (book.upper - book.lower), 2 * cells)
        assert abs(int(book.values[first + j]) - middle) <= 1


def test_the_papers_golden_codebooks() -> None:
    """[DP] IV: mean of two in [−2,2], γ=2: 4 bins, ±0.5, ±1.5; [0,12] in 12 bins: i + 0.5. In mW."""
    assert uniform(-2_000, 2_000, 4).values.tolist() == [-1_500, -500, 500, 1_500]
    assert uniform(0, 12_000, 12).values.tolist() == [1_000 * i + 500 for i in range(12)]


@settings(deadline=None)
@given(books)
def test_the_largest_gap_is_the_widest_between_values_of_readings(book: Codebook) -> None:
    values = book.values.tolist()[int(book.missing_symbol) :]
    assert book.largest_gap == max((high - low for low, high in pairwise(values)), default=0)


@settings(deadline=None)
@given(books)
def test_every_value_lies_in_its_cell_and_encodes_to_its_symbol(book: Codebook) -> None:
    for symbol in range(book.levels):
        low, high = book.cell(symbol)
        value = int(book.values[symbol])
        assert low <= value
        assert value < high or (symbol == book.levels - 1 and value == high)
    assert book.encode(book.values).tolist() == list(range(book.levels))


@settings(deadline=None)
@given(books)
def test_cells_cover_the_line_without_overlap_the_last_closed(book: Codebook) -> None:
    symbols = dict(zip(line(book).tolist(), book.encode(line(book)).tolist(), strict=True))
    for symbol in range(book.levels):
        low, high = book.cell(symbol)
        last = symbol == book.levels - 1
        assert [x for x, s in symbols.items() if s == symbol] == list(range(low, high + last))
    assert symbols[book.upper] == book.levels - 1


@settings(deadline=None)
@given(books)
def test_the_worst_error_is_the_largest_over_all_readings(book: Codebook) -> None:
    released = book.values[book.encode(readings(book))]
    assert book.worst_error() == np.abs(released - readings(book)).max()


def widths_by_counting(book: Codebook) -> list[int]:
    """Measure each cell that holds readings: from its first reading to the next's, or to the end."""
    symbols = book.encode(readings(book))
    first = [book.lower + int(np.argmax(symbols == symbol)) for symbol in dict.fromkeys(symbols.tolist())]
    return [after - before for before, after in pairwise([*first, book.upper])]


@settings(deadline=None)
@given(books)
def test_the_widest_cell_and_the_leakage_follow_from_the_cells_widths(book: Codebook) -> None:
    """L(X;Y) = max over outputs of log2(range ÷ width of the cell); the missing symbol holds no reading."""
    widths = widths_by_counting(book)
    assert sum(widths) == book.upper - book.lower
    assert book.widest_cell() == max(widths)
    if min(widths):
        span = book.upper - book.lower
        assert book.leakage_bits() == pytest.approx(max(log2(span / width) for width in widths), abs=1e-12)


@settings(deadline=None)
@given(uniform_books(most_width=60))
def test_the_leakage_is_that_of_counted_readings_up_to_the_grid(book: Codebook) -> None:
    """log2(|X| ÷ |X given y|) over integers differs from the continuous one by less than one mW per cell."""
    _, counts = np.unique(book.encode(readings(book)), return_counts=True)
    least = int(counts.min())
    counted = log2(len(readings(book)) / least)
    upper = log2(len(readings(book)) / (least - 1)) if least > 1 else inf
    assert counted - 0.75 <= book.leakage_bits() <= upper


def test_equal_cells_leak_what_their_number_says() -> None:
    """Where k divides the range, L = log2 k (theory A4)."""
    assert uniform(0, 14_500_000, 4).leakage_bits() == 2.0
    assert uniform(0, 14_500_000, 5, missing_symbol=True).leakage_bits() == 2.0
    assert Codebook(0, 100, np.array([10]), np.array([5, 50])).leakage_bits() == pytest.approx(log2(10))


REFUSED = {
    "no cells": lambda: uniform(0, 10, 0),
    "no cells beside the missing one": lambda: uniform(0, 10, 1, missing_symbol=True),
    "too many cells": lambda: uniform(0, 10**12, MAX_CELLS + 1),
    "more cells than integers": lambda: uniform(0, 4, 6),
    "a reversed range": lambda: uniform(10, 0, 2),
    "unordered cuts": lambda: Codebook(0, 10, np.array([6, 3]), np.array([0, 4, 8])),
    "a repeated cut": lambda: Codebook(0, 10, np.array([3, 3]), np.array([0, 3, 8])),
    "an empty first cell": lambda: Codebook(0, 10, np.array([0]), np.array([0, 5])),
    "a cut above the range": lambda: Codebook(0, 10, np.array([11]), np.array([0, 11])),
    "a cut below the range": lambda: Codebook(0, 10, np.array([-1]), np.array([-1, 5])),
    "a missing value": lambda: Codebook(0, 10, np.array([5]), np.array([2])),
    "a value too many": lambda: Codebook(0, 10, np.array([5]), np.array([2, 7, 9])),
    "a value in another cell": lambda: Codebook(0, 10, np.array([5]), np.array([5, 7])),
    "values in the wrong order": lambda: Codebook(0, 10, np.array([5]), np.array([7, 2])),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_codebook_that_makes_no_sense_is_refused(what: str) -> None:
    with pytest.raises(ValueError, match=r"cells|value"):
        REFUSED[what]()


def test_values_beyond_the_range_are_refused() -> None:
    """They would fall into an outer cell, but lie in no cell of the range."""
    with pytest.raises(ValueError, match="inside the cell"):
        Codebook(0, 10, np.array([5]), np.array([-1, 7]))
    with pytest.raises(ValueError, match="inside the cell"):
        Codebook(0, 10, np.array([5]), np.array([2, 11]))


def test_a_hash_is_stable() -> None:
    """Receivers look codebooks up by it, and released bytes contain it: it must never change."""
    assert uniform(0, 14_500_000, 4).hash == "3addca"
    assert uniform(0, 14_500_000, 4, missing_symbol=True).hash == "141f16"
    assert uniform(-5_000_000, 5_000_000, 7).hash == "d1e14d"
    assert both_ends(0, 14_500_000, 4, Rounding.FEEDBACK).hash == "6db367"
    assert both_ends(0, 14_500_000, 4, Rounding.DITHER).hash == "7d0482"


def test_different_codebooks_have_different_hashes() -> None:
    variants = [
        uniform(lower, lower + width, levels, missing_symbol=missing)
        for lower in (-1_000, 0, 1_000)
        for width in (100, 1_000, 14_500_000)
        for levels in range(2, 12)
        for missing in (False, True)
    ]
    variants += [Codebook(0, 10, np.array([5]), np.array([2, value])) for value in range(5, 11)]
    variants += [both_ends(0, 900, levels, rounding) for rounding in Rounding for levels in range(2, 12)]
    assert len({book.hash for book in variants}) == len(variants)
    assert all(re.fullmatch("[0-9a-f]{6}", book.hash) for book in variants)
    assert uniform(0, 9, 3).hash == uniform(0, 9, 3).hash


# --- shelves -----------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(books, min_size=1, max_size=6), st.data())
def test_a_shelf_reads_like_its_codebooks_one_by_one(shelved: list[Codebook], data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, len(shelved) - 1), min_size=1, max_size=12))
    channels = [shelved[place] for place in places]
    shelf = Shelf(shelved, np.array(places))
    values = [data.draw(st.integers(book.floor, book.upper)) for book in channels]
    symbols = shelf.encode(np.array(values))
    alone = [int(book.encode(np.array([x]))[0]) for book, x in zip(channels, values, strict=True)]
    assert symbols.tolist() == alone
    assert shelf.decode(symbols).tolist() == [int(b.values[s]) for b, s in zip(channels, alone, strict=True)]
    assert shelf.encode(shelf.decode(symbols)).tolist() == alone
    assert len(shelf) == len(places)
    assert shelf.lower.tolist() == [book.lower for book in channels]
    assert shelf.upper.tolist() == [book.upper for book in channels]
    assert shelf.floor.tolist() == [book.floor for book in channels]


def test_a_shelf_is_exact_at_every_end_and_cut() -> None:
    """Neighbours on the common line must not leak into each other, however wide they are."""
    shelved = [uniform(-(10**17), 10**17, 5), uniform(3, 4, 1), uniform(-9, 10**15, 7, missing_symbol=True)]
    for place, book in enumerate(shelved):
        shelf = Shelf(shelved, np.array([place]))
        near = {int(edge) + step for edge in book.cuts for step in (-1, 0, 1)} | {book.floor, book.upper}
        for x in near:
            assert shelf.encode(np.array([x])).tolist() == book.encode(np.array([x])).tolist()


def test_ranges_too_wide_for_64_bits_are_refused() -> None:
    wide = uniform(-(1 << 60), 1 << 60, 2)
    with pytest.raises(ValueError, match="64-bit"):
        Shelf([wide, uniform(0, 1 << 61, 2)], np.array([0, 1]))
