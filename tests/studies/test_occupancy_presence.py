"""What one release decides about presence, and the example of body mass, against counting."""

from __future__ import annotations

from math import inf, log2
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.privacy import Codebook, blind_band, uniform
from simulators.studies._hypotheses import body_mass_rows, presence, surveyed


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


def test_the_exact_share_of_body_mass_is_that_of_drawn_people() -> None:
    rng = np.random.default_rng(1)
    weight, height = rng.uniform(0, 200, 200_000), rng.uniform(0, 250, 200_000)
    for band, exact, hidden, error in body_mass_rows(np.column_stack((weight, height))):
        assert hidden is not None
        assert error is not None
        assert error <= band
        threshold = 0.003 * height**2
        assert exact == pytest.approx(np.mean(np.abs(weight - threshold) <= band), abs=0.005)
        assert exact == pytest.approx(hidden, abs=0.005)


def test_without_people_their_columns_are_empty() -> None:
    assert all(row[2:] == (None, None) for row in body_mass_rows(None))


def test_gaps_and_misprints_of_a_survey_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "young_people_survey").mkdir()
    text = '"Age","Height","Weight"\n20,163,48\n19,62,55\n21,,70\n22,180,\n20,176,67\n'
    (tmp_path / "young_people_survey" / "responses.csv").write_text(text)
    people = surveyed(tmp_path)
    assert people is not None
    assert people.tolist() == [[48, 163], [67, 176]]
    assert surveyed(tmp_path / "elsewhere") is None
    assert surveyed(None) is None
