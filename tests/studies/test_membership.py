"""The membership study's quick form has the shape that must hold, whatever the homes."""

import os
from itertools import combinations, pairwise
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from quick_studies import quick_run

from simulators.studies import Result, Settings
from simulators.studies._membership_game import (
    CERTIFIED,
    LOCAL,
    OVER_ALL,
    PAPER,
    READINGS,
    UNPROTECTED,
    draw,
    plain,
    play,
    release_of,
    symbols_of,
)
from simulators.studies._membership_likelihood import LIKELIHOOD, worked_out
from simulators.studies._membership_rows import (
    ABOVE,
    CONNECTION,
    NEAR,
    OBSERVED,
    UNDECIDED,
    Row,
    by_releases,
    of,
    verdict,
)
from simulators.studies.data import find, half_hourly_homes


@pytest.fixture(scope="module")
def result() -> Result:
    return quick_run("membership").result


def rows(result: Result, table: str, **wanted: object) -> list[Row]:
    found = of([Row(*row) for row in result.tables[table].rows], **wanted)  # type: ignore[arg-type]
    assert found
    return found


@pytest.mark.parametrize("size", [4, 8])
@pytest.mark.parametrize("reading", READINGS)
def test_more_levels_never_help_privacy_beyond_the_error_of_the_games(
    result: Result, reading: str, size: int
) -> None:
    """By correlation. Coarse cells take small peaks away, and may well help who counts common ones."""
    wanted = {"homes_in_group": size, "adversary": "correlation", "range": OBSERVED}
    curve = rows(result, "readings", reading=reading, **wanted)
    assert [row.k for row in curve] == sorted(row.k or 0 for row in curve)
    for before, after in pairwise(curve):
        assert after.high >= before.low


@pytest.mark.parametrize("reading", [CERTIFIED, OVER_ALL])
@pytest.mark.parametrize("kind", [OBSERVED, CONNECTION])
def test_no_bits_tell_nothing(result: Result, reading: str, kind: str) -> None:
    for row in rows(result, "readings", reading=reading, range=kind, k=1):
        assert row.cells == 1
        if (
            row.adversary != "squared error"
        ):  # a constant favours the home nearest to it, on whichever side it is
            assert row.advantage < 4 / sqrt(row.games)  # four standard deviations of a fair coin


@pytest.mark.parametrize("size", [4, 8])
@pytest.mark.parametrize("adversary", ["correlation", "squared error", "common peaks"])
def test_many_levels_are_as_good_as_none_for_the_adversary(result: Result, size: int, adversary: str) -> None:
    wanted = {"homes_in_group": size, "adversary": adversary}
    (bare,) = rows(result, "readings", reading=UNPROTECTED, **wanted)
    (fine,) = rows(result, "readings", reading=CERTIFIED, range=OBSERVED, k=64, **wanted)
    assert fine.low <= bare.high
    assert bare.low <= fine.high


def test_theorem_8_has_at_least_as_many_cells_as_is_certified(result: Result) -> None:
    cells = {(row.reading, row.k, row.homes_in_group): row.cells or 0 for row in rows(result, "readings")}
    for (reading, k, size), count in cells.items():
        if reading == CERTIFIED:
            assert cells[PAPER, k, size] >= count


def test_a_longer_series_tells_more(result: Result) -> None:
    curve = rows(result, "lengths", series="daily", reading=UNPROTECTED, adversary="correlation")
    assert [row.days for row in curve] == [1, 7, 28, 84]
    assert curve[0].low == 0  # one number correlates with nothing
    assert curve[-1].low > curve[1].high


def test_epsilon_for_the_whole_series_tells_correlation_next_to_nothing(result: Result) -> None:
    spent = [row for row in rows(result, "whole-series", adversary="correlation") if row.k is not None]
    assert [(row.releases, row.epsilon_bits) for row in spent[:3]] == [(1, 1.0), (2, 2.0), (3, 3.0)]
    assert max(row.low for row in spent[:3]) < 0.1


# --- who knows how likely each symbol is --------------------------------------------------------------------


def test_the_likelihood_plays_at_the_papers_points_and_against_every_budget(result: Result) -> None:
    points = rows(result, "readings", adversary=LIKELIHOOD)
    assert {(row.homes_in_group, row.k) for row in points} == {(4, 4), (8, 8)}
    assert len(points) == 2 * 2 * len(READINGS)
    for table in ("budgets", "whole-series", "stretches"):
        quantized = [row for row in rows(result, table) if row.k is not None]
        assert len(quantized) == 4 * len([row for row in quantized if row.adversary == LIKELIHOOD])


@pytest.mark.parametrize("table", ["budgets", "whole-series"])
def test_of_few_releases_the_likelihood_learns_no_less_than_the_others_beyond_the_error_of_the_games(
    result: Result, table: str
) -> None:
    few = [row for row in rows(result, table) if row.releases <= 8 and row.k is not None]
    for played in (of(few, homes_in_group=size, k=k) for size in (4, 8) for k in (2, 4, 8)):
        for setting in by_releases(played):
            (likelihood,) = of(setting, adversary=LIKELIHOOD)
            assert likelihood.high >= max(row.low for row in setting)


@pytest.mark.parametrize("reading", [CERTIFIED, OVER_ALL, LOCAL])
def test_of_one_level_the_likelihood_learns_nothing(reading: str) -> None:
    rng = np.random.default_rng(5)
    readings = rng.integers(0, 1_000, (12, 6))
    games = draw(12, 4, 4_000, rng)
    likelihoods = worked_out(readings, 4, {1: symbols_of(reading, 4, 1, 1_000)}, 20, rng)
    played = play(readings, games, {1: release_of(reading, 4, 1, 1_000)}, 6, likelihoods)
    assert played[1].scores[LIKELIHOOD].advantage < 4 / sqrt(4_000)  # four standard deviations of a fair coin


@pytest.mark.parametrize("reading", READINGS)
def test_the_likelihood_is_how_often_the_symbol_comes_over_all_choices_of_the_others(reading: str) -> None:
    """Against the definition: every set of two others, counted."""
    rng = np.random.default_rng(6)
    readings = rng.integers(0, 1_000, (6, 3))
    symbols = symbols_of(reading, 3, 2, 1_000)
    draws = 4_000
    shares = np.exp(worked_out(readings, 3, {reading: symbols}, draws, rng)[reading].log_share)
    assert np.allclose(shares.sum(axis=-1), 1, atol=1e-5)
    for home in range(6):
        others = combinations([other for other in range(6) if other != home], 2)
        groups = np.array([readings[[home, *pair]] for pair in others])
        seen = symbols.of(groups)
        exact = np.stack([(seen == symbol).mean(axis=0) for symbol in range(symbols.number)], axis=-1)
        assert np.abs(shares[home] - exact).max() < 5 * 0.5 / sqrt(draws)  # five standard deviations at most


@pytest.mark.parametrize("reading", READINGS)
def test_symbols_differ_exactly_where_released_means_do(reading: str) -> None:
    members = np.random.default_rng(7).integers(0, 1_000, (200, 3, 2))
    symbols, released = symbols_of(reading, 3, 3, 1_000), release_of(reading, 3, 3, 1_000)
    pairs = set(zip(symbols.of(members).ravel(), released(members).ravel(), strict=True))
    assert len(pairs) == len({symbol for symbol, _ in pairs}) == len({value for _, value in pairs})
    assert max(symbol for symbol, _ in pairs) < symbols.number


# --- what is near zero --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        ([(0.0, 0.03), (0.05, 0.1)], NEAR),
        ([(0.0, 0.03), (0.054, 0.116)], UNDECIDED),
        ([(0.1, 0.2)], UNDECIDED),
        ([(0.0, 0.03), (0.05, 0.11), (0.101, 0.2)], ABOVE),
    ],
)
def test_near_zero_needs_the_whole_interval_of_every_adversary(
    result: Result, intervals: list[tuple[float, float]], expected: str
) -> None:
    (some, *_) = rows(result, "budgets")
    assert verdict([some._replace(low=low, high=high) for low, high in intervals]) == expected


def test_the_same_budget_is_played_at_other_hours(result: Result) -> None:
    played = rows(result, "stretches", adversary=LIKELIHOOD, k=2)
    assert [row.hours for row in played] == ["0-6", "6-12", "12-18", "17-23"]
    assert {row.releases for row in played} == {12 * 84}


# --- budgets ------------------------------------------------------------------------------------------------


def test_a_larger_budget_never_helps_privacy_beyond_the_error_of_the_games(result: Result) -> None:
    for series in ("daily", "half-hourly"):
        for k in (2, 4, 8):
            curve = rows(result, "budgets", series=series, k=k, adversary="correlation")
            assert [row.releases for row in curve] == sorted(row.releases for row in curve)
            for before, after in pairwise(curve):
                assert after.high >= before.low


def test_coarser_releases_are_less_accurate(result: Result) -> None:
    curve = rows(
        result, "readings", reading=CERTIFIED, range=OBSERVED, homes_in_group=8, adversary="correlation"
    )
    assert curve[0].error_percent > 10 * curve[-1].error_percent


def test_findings_speak_of_this_run(result: Result) -> None:
    (row,) = rows(result, "readings", reading=UNPROTECTED, homes_in_group=4, adversary="correlation")
    assert f"correlation {row.advantage:.2f} [{row.low:.2f}, {row.high:.2f}]" in result.findings[0]
    assert result.source.startswith("the simulated fleet")
    assert all(finding.endswith(".") for finding in result.findings)


# --- the claim, on real homes -------------------------------------------------------------------------------

DATA = Path(os.environ.get("NOISELESS_DATA", Path(__file__).parents[2].parent / "shared" / "data"))


def test_on_real_homes_a_year_of_theorem_8_hides_no_member() -> None:
    """n = 4, ε = 2, daily energy: the paper's point, where it reports an advantage near zero."""
    if find(DATA, "sgsc50_") is None:
        pytest.skip("sgsc50 is not here: set NOISELESS_DATA to the folder that holds it")
    daily = half_hourly_homes(Settings(DATA)).daily_mwh
    assert daily.shape == (40, 365)
    releases = {UNPROTECTED: plain, PAPER: release_of(PAPER, 4, 4, int(daily.max()))}
    played = play(daily, draw(40, 4, 2_000, np.random.default_rng(1)), releases, 365)
    bare, quantized = (played[name].scores["correlation"] for name in releases)
    assert 0.65 < quantized.advantage < 0.8
    assert abs(bare.advantage - quantized.advantage) < 0.06
