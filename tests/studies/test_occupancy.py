"""The study of occupancy, in its quick form on the simulated fleet: the shape that must hold."""

from __future__ import annotations

from itertools import pairwise
from math import inf, log2

import pytest
from quick_studies import quick_run

from simulators.studies import Result
from simulators.studies._occupancy_rows import ACTIVITY, ONE_DAY, ONE_RELEASE, UNTRAINED, Exact, Score


@pytest.fixture(scope="module")
def result() -> Result:
    return quick_run("occupancy").result


@pytest.fixture(scope="module")
def scores(result: Result) -> list[Score]:
    return [Score(*row) for row in result.tables["adversaries"].rows]  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def exact(result: Result) -> list[Exact]:
    return [Exact(*row) for row in result.tables["exact"].rows]  # type: ignore[arg-type]


def curve(scores: list[Score], adversary: str, codebook: str, rounding: str = "nearest") -> list[Score]:
    return [s for s in scores if (s.adversary, s.codebook, s.rounding) == (adversary, codebook, rounding)]


def test_one_level_tells_no_adversary_anything(scores: list[Score]) -> None:
    at_zero = [score for score in scores if score.levels == 1]
    assert {score.adversary for score in at_zero} == {ONE_RELEASE, ONE_DAY, UNTRAINED, ACTIVITY}
    assert all(score[-3:] == (0, 0, 0) for score in at_zero)


def test_adversaries_learn_no_less_with_more_levels_within_their_error(scores: list[Score]) -> None:
    for adversary in (ONE_RELEASE, ONE_DAY):
        for codebook, rounding in (("uniform", "nearest"), ("fitted", "nearest"), ("fitted", "feedback")):
            mine = curve(scores, adversary, codebook, rounding)
            assert len(mine) == (3 if rounding == "feedback" else 4)
            assert all(later.high >= earlier.low - 0.02 for earlier, later in pairwise(mine))


def test_with_many_fitted_levels_a_day_tells_as_much_as_readings(scores: list[Score]) -> None:
    (raw,) = (score for score in scores if score.adversary == ONE_DAY and score.levels is None)
    assert raw.low > 0.9
    assert curve(scores, ONE_DAY, "fitted")[-1].high >= raw.low - 0.05


def test_a_consistent_test_never_takes_an_empty_home_for_one_lived_in(exact: list[Exact]) -> None:
    assert all(row.wrong_share == 0 for row in exact)
    assert any(row.decided_share > 0 for row in exact)


def test_performance_is_within_the_bits_of_the_release(exact: list[Exact]) -> None:
    for row in exact:
        assert row.epsilon_bits == log2(row.levels)
        assert row.performance_bits <= row.epsilon_bits
        assert (row.performance_bits == -inf) == (row.levels == 1)
        assert (row.undecided_range == 1) == (row.levels == 1)


def test_cells_cut_finer_prove_more(exact: list[Exact]) -> None:
    """2, 4 and 16 equal cells are each other's parts: what a coarse one proves, the finer ones prove."""
    shares = [row.decided_share for row in exact if row.codebook == "uniform"]
    assert shares == sorted(shares)
    assert shares[0] == 0


def test_under_a_blind_band_levels_do_not_matter_for_what_a_release_proves(exact: list[Exact]) -> None:
    """An empty home lies in the band, so the band's symbol is all that is left open, whatever lies above it."""
    shares = {(row.decided_share, row.undecided_range) for row in exact if row.codebook == "blind band"}
    assert len(shares) == 1
    blind, fitted = (
        next(row for row in exact if (row.codebook, row.levels) == (codebook, 4))
        for codebook in ("blind band", "fitted")
    )
    assert blind.decided_share < fitted.decided_share


def test_what_a_release_proves_is_what_a_single_release_gains_under_a_band(
    scores: list[Score], exact: list[Exact]
) -> None:
    """The empirical test has nothing else to go by: its advantage is the share of slots that are proved."""
    proved = next(row.decided_share for row in exact if row.codebook == "blind band")
    assert curve(scores, ONE_RELEASE, "blind band")[0].advantage == pytest.approx(proved, abs=0.01)


def test_a_blind_band_is_for_one_release_and_a_day_sees_past_it(scores: list[Score]) -> None:
    assert curve(scores, ONE_RELEASE, "blind band")[0].high < 0.1
    assert curve(scores, ONE_DAY, "blind band")[0].low > 0.5


def test_findings_say_the_numbers_of_the_tables(result: Result, scores: list[Score]) -> None:
    text = "\n".join(result.findings)
    for score in scores:
        if score.levels is None:
            assert (
                f"{score.data}, {score.adversary}: advantage {score.advantage:.2f} ({score.low:.2f}" in text
            )
