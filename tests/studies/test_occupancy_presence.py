"""What one release decides about presence, against counting."""

from __future__ import annotations

from math import inf, log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.privacy import Codebook, blind_band, uniform
from simulators.studies._occupancy_presence import presence


@given(st.integers(0, 15), st.integers(0, 10), st.sampled_from((1, 2, 3, 5, 20)))
def test_presence_is_decided_where_an_empty_home_cannot_be(least: int, reach: int, levels: int) -> None:
    """Every power of a range of 41, with every hypothesis that it can have."""
    book, most = uniform(0, 40, levels), least + reach
    found = presence(book, (least, most))
    symbols = book.encode(np.arange(41)).tolist()
    away = {symbols[x] for x in range(least, most + 1)}
    home = {symbols[x] for x in range(least, 41)}
    decided = (away | home) - (away & home)
    assert found.performance_bits == (log2(len(decided)) if decided else -inf)
    assert set(np.flatnonzero(found.decides).tolist()) == decided


@pytest.mark.parametrize("book", [uniform(0, 40, 4), blind_band(0, 40, 3, (0, 20))])
def test_the_undecided_range_is_measured(book: Codebook) -> None:
    found = presence(book, (3, 8))
    steps = np.arange(3, 40)
    # Powers just above each integer: cells are half-open.
    undecided = ~found.decides[book.encode(steps)]
    assert found.undecided_range == pytest.approx(undecided.mean())
