"""The blind band (theory A6): a stretch of the range in which no test of x ≥ τ can decide."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.privacy import Codebook, blind_band


def made(lower: int, upper: int, levels: int, band: tuple[int, int]) -> Codebook | None:
    try:
        return blind_band(lower, upper, levels, band)
    except ValueError:
        return None


def test_the_band_lies_in_one_cell_for_every_band_and_number_of_levels() -> None:
    """All bands of a range of 24 integers, all levels up to 8; refused only where the cells cannot fit."""
    lower, upper, made_some = -4, 19, 0
    for levels, low, high in product(range(1, 9), range(lower, upper), range(lower + 1, upper + 1)):
        if low >= high:
            continue
        codebook = made(lower, upper, levels, (low, high))
        sides = (low > lower) + (high < upper)
        rest = (low - lower) + (upper - high)
        if codebook is None:
            assert levels - 1 < sides or levels - 1 > rest - 2 or sides == 0, "a codebook exists"
            continue
        made_some += 1
        assert codebook.levels == levels
        assert len(set(codebook.encode(np.arange(low, high + 1)).tolist())) == 1
        assert np.all(np.diff(codebook.encode(np.arange(lower, upper + 1))) >= 0)
    assert made_some > 1_000


def test_no_test_of_a_threshold_in_the_band_can_decide() -> None:
    """[HT]: for every τ strictly inside, each x of the band shares its release with one on the other side."""
    lower, upper = 0, 30
    for levels, (low, high) in product((2, 3, 4, 6), ((5, 9), (1, 29), (12, 13), (0, 8), (20, 30))):
        codebook = made(lower, upper, levels, (low, high))
        if codebook is None:
            continue
        symbols = codebook.encode(np.arange(lower, upper + 1)).tolist()
        consistent = {y: {x for x in range(lower, upper + 1) if symbols[x - lower] == y} for y in symbols}
        for tau in range(low + 1, high + 1):
            for x in range(low, high + 1):
                assert {one >= tau for one in consistent[symbols[x - lower]]} == {True, False}


@given(st.integers(-(10**9), 10**9), st.integers(10, 10**9), st.integers(3, 32), st.data())
def test_bands_of_real_ranges_get_all_levels_and_cells_on_both_sides(
    lower: int, width: int, levels: int, data: st.DataObject
) -> None:
    low = data.draw(st.integers(lower + width // 4, lower + width // 2))
    high = data.draw(st.integers(low + 1, lower + 3 * width // 4))
    codebook = made(lower, lower + width, levels, (low, high))
    if codebook is None:
        assert width < 10 * levels, "a narrow range"
        return
    assert codebook.levels == levels
    cell = int(codebook.encode(np.array([low]))[0])
    assert 0 < cell < levels - 1
    assert codebook.cell(cell) == (low, high + 1), "and nothing else is blind"


def test_the_other_cells_share_the_rest_by_its_widths() -> None:
    codebook = blind_band(0, 100, 7, (40, 60))
    assert codebook.cuts.tolist() == [14, 27, 40, 61, 74, 87]
    assert blind_band(0, 100, 5, (80, 100)).cuts.tolist() == [20, 40, 60, 80]
    assert blind_band(0, 100, 5, (0, 20)).cuts.tolist() == [21, 41, 61, 81]


@pytest.mark.parametrize(
    ("levels", "band"),
    [
        (4, (-1, 5)),
        (4, (5, 101)),
        (4, (5, 5)),
        (4, (9, 5)),
        (2, (5, 9)),
        (1, (5, 9)),
        (1, (0, 9)),
    ],
)
def test_bands_outside_the_range_or_without_cells_beside_them_are_refused(
    levels: int, band: tuple[int, int]
) -> None:
    with pytest.raises(ValueError, match="band"):
        blind_band(0, 100, levels, band)


def test_a_band_that_is_the_whole_range_takes_one_level() -> None:
    assert blind_band(0, 100, 1, (0, 100)).levels == 1


def test_a_band_next_to_the_upper_end_can_be_shown_like_any_other() -> None:
    """One integer is left above it: its cell says more than any, but it is a finite number of bits."""
    codebook = blind_band(0, 100, 3, (50, 99))
    assert codebook.levels == 3
    assert codebook.leakage_bits() > 0
