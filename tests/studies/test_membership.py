"""The membership study's quick form has the shape that must hold, whatever the homes."""

import os
from itertools import pairwise
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from quick_studies import quick_run

from simulators.studies import Result, Settings
from simulators.studies._membership_game import (
    CERTIFIED,
    OVER_ALL,
    PAPER,
    READINGS,
    UNPROTECTED,
    draw,
    plain,
    play,
    release_of,
)
from simulators.studies._membership_rows import CONNECTION, OBSERVED, Row, of
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


def test_epsilon_for_the_whole_series_tells_next_to_nothing(result: Result) -> None:
    spent = [row for row in rows(result, "whole-series", adversary="correlation") if row.k is not None]
    assert [(row.releases, row.epsilon_bits) for row in spent[:3]] == [(1, 1.0), (2, 2.0), (3, 3.0)]
    assert max(row.low for row in spent[:3]) < 0.1


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
