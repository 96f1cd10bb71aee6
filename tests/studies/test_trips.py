"""The quick form of the study of trips has the shape that it must have, with and without recorded trips."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from quick_studies import quick_run

from simulators.attackers.trips import most_unique_share
from simulators.studies import Result, Settings, study_named
from simulators.studies._charts import values
from simulators.studies._city import CITY, read, simulated, source_of
from simulators.studies.data import TRIPS, find

RECORDED = Path(os.environ.get("NOISELESS_DATA", Path(__file__).parents[3] / "shared" / "data"))
HEADER = "pickup_longitude,pickup_latitude,dropoff_longitude,dropoff_latitude"


@pytest.fixture(scope="module")
def result() -> Result:
    return quick_run("trips").result


def test_no_trip_is_unique_for_nothing_and_every_one_in_the_finest_boxes(result: Result) -> None:
    table = result.tables["uniqueness"]
    unique, guessed = values(table, "unique"), values(table, "guessed")
    assert values(table, "epsilon")[0] == unique[0] == 0
    assert guessed[0] == pytest.approx(1 / 2_000)
    assert unique[-1] == pytest.approx(values(table, "unique_unprotected")[-1], abs=1e-3)


def test_more_bits_make_more_trips_unique(result: Result) -> None:
    """The quick form has powers of two for levels: their boxes lie inside each other."""
    for column in ("unique", "guessed"):
        shares = values(result.tables["uniqueness"], column)
        assert shares == sorted(shares)


def test_no_more_are_unique_than_there_are_pairs_of_boxes(result: Result) -> None:
    table = result.tables["uniqueness"]
    for row in zip(
        values(table, "levels"), values(table, "unique"), values(table, "unique_at_most"), strict=True
    ):
        assert row[2] == most_unique_share(int(row[0]) ** 4, 2_000)
        assert row[1] <= row[2]


def test_more_trips_hide_each_other(result: Result) -> None:
    table = result.tables["number"]
    for levels in set(values(table, "levels")):
        shares = values(table, "unique", levels=levels)
        assert shares == sorted(shares, reverse=True)
    half = values(result.tables["half"], "epsilon_half", kind="measured")
    assert half == sorted(half)


def test_all_trips_as_a_part_are_all_trips(result: Result) -> None:
    whole = values(result.tables["number"], "unique", trips=2_000)
    assert whole == pytest.approx(values(result.tables["uniqueness"], "unique"))


def test_what_is_extrapolated_says_so(result: Result) -> None:
    rows = {row[2]: row[0] for row in result.tables["half"].rows}
    assert rows["extrapolated"] == 1_000_000
    assert max(values(result.tables["half"], "trips", kind="measured")) == 2_000
    assert any(finding.startswith("Extrapolation, not a measurement") for finding in result.findings)


def test_the_figure_is_drawn_from_the_table(result: Result) -> None:
    line = result.figures["uniqueness"].axes[0].lines[0]
    drawn = np.asarray(line.get_xydata())
    assert drawn[:, 0].tolist() == values(result.tables["number"], "epsilon", trips=2_000)
    assert drawn[:, 1].tolist() == values(result.tables["number"], "unique", trips=2_000)


def test_recorded_trips_are_read_to_the_microdegree(tmp_path: Path) -> None:
    path = tmp_path / "taxi" / "nyc_yellow_2015-01.csv"
    path.parent.mkdir()
    path.write_text(f"{HEADER}\n-73.991859,40.72591,-73.998909,40.742180\n")
    assert read(path).tolist() == [[40_725_910, -73_991_859, 40_742_180, -73_998_909]]
    assert source_of(Settings(tmp_path)).name.startswith("1 yellow-cab trips")


@pytest.mark.parametrize("text", ["latitude\n1\n", f"{HEADER}\n1,2,3\n"])
def test_a_file_without_the_coordinates_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "trips.csv").write_text(text)
    with pytest.raises(ValueError, match="every row needs pickup_latitude"):
        read(tmp_path / "trips.csv")


@pytest.mark.parametrize(("trips", "why"), [(1_999, "needs 2,000"), (2_000, "fewer than half")])
def test_too_few_trips_or_one_repeated_are_refused(trips: int, why: str, tmp_path: Path) -> None:
    path = tmp_path / "taxi" / "nyc_yellow_2015-01.csv"
    path.parent.mkdir()
    path.write_text("\n".join([HEADER, *["-73.99,40.72,-73.99,40.74"] * trips]))
    with pytest.raises(ValueError, match=why):
        study_named("trips").run(Settings(tmp_path, quick=True), lambda _what, _share: None)


def test_without_the_file_trips_are_simulated_and_named_so(tmp_path: Path) -> None:
    source = source_of(Settings(tmp_path, quick=True, seed=7))
    assert source.name == (
        "2,000 simulated trips of a made-up city (nyc_yellow is not in the folder given), seed 7"
    )
    assert (source.trips == source_of(Settings(None, quick=True, seed=7)).trips).all()


def test_the_made_up_city_is_crowded_in_places_and_lies_in_its_area() -> None:
    trips = simulated(3_000, CITY, np.random.default_rng(3))
    for column, (low, high) in zip(trips.T, CITY.ranges, strict=True):
        assert low <= column.min() <= column.max() <= high
    counts, *_ = np.histogram2d(trips[:, 0], trips[:, 1], bins=10)
    assert counts.max() > 5 * counts.mean()


@pytest.mark.skipif(find(RECORDED, TRIPS) is None, reason="the recorded trips are not here")
def test_recorded_trips_have_the_same_shape() -> None:
    found = study_named("trips").run(Settings(RECORDED, quick=True), lambda _what, _share: None)
    unique = values(found.tables["uniqueness"], "unique")
    assert "yellow-cab" in found.source
    assert unique[0] == 0
    assert unique == sorted(unique)
    assert unique[-1] == pytest.approx(values(found.tables["uniqueness"], "unique_unprotected")[-1], abs=1e-3)
