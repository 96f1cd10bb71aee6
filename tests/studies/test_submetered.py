"""Homes with metered appliances, recorded or simulated, and their releases."""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np

from gateway.privacy import MISSING, Rounding
from simulators.studies import Settings
from simulators.studies._occupancy_activity import half_hours
from simulators.studies._releases import (
    BLIND,
    FITTED,
    UNIFORM,
    codebooks,
    named,
    released_by_all,
    released_by_each,
)
from simulators.studies._submetered import Submetered, simulated, submetered_homes, told

FILES = {
    "ukdale_house2_1min_w.csv.xz": "timestamp,Aggregate,Kettle\n2013-05-20 21:28:00,252,0\n2013-05-20 21:29:00,0,0\n",
    "ideal_house65_1min_w.csv.xz": "timestamp,Aggregate,Shower\n2017-06-01 00:00:00,9189,9000\n",
}


def folder_of(path: Path, names: list[str]) -> Path:
    (path / "nilm_1min").mkdir()
    for name in names:
        (path / "nilm_1min" / name).write_bytes(lzma.compress(FILES[name].encode()))
    return path


def test_recorded_homes_are_read_and_gaps_are_known_as_such(tmp_path: Path) -> None:
    homes = submetered_homes(Settings(folder_of(tmp_path, list(FILES))), days=3)
    assert {home.name for home in homes} == {"UK-DALE house 2", "IDEAL home 65"}
    (dale,) = (home for home in homes if home.name == "UK-DALE house 2")
    assert dale.total_w.tolist() == [252, 0]
    assert dale.known.tolist() == [True, False]
    assert np.diff(dale.minute).tolist() == [1]
    assert dale.by_hand() == ("Kettle",)
    (ideal,) = (home for home in homes if home.name == "IDEAL home 65")
    assert ideal.appliances["Shower"].tolist() == [9000]


def test_where_one_is_missing_simulated_homes_stand_in(tmp_path: Path) -> None:
    homes = submetered_homes(Settings(folder_of(tmp_path, ["ideal_house65_1min_w.csv.xz"])), days=1)
    assert all(home.name.startswith("simulated home") for home in homes)
    assert "(ukdale_house2 is not in the folder given), seed 1" in told(Settings(tmp_path), homes)


def test_simulated_homes_have_five_appliances_within_their_total() -> None:
    for home in simulated(seed=1, days=2):
        assert len(home.appliances) == 5
        assert len(home.total_w) == 2 * 1440
        assert (sum(home.appliances.values()) < home.total_w).all()


def test_half_hours_are_means_and_a_minute_missing_makes_them_missing() -> None:
    minute = np.arange(90)
    known = minute != 40
    home = Submetered("h", minute, minute * 10, known, {"Kettle": np.where(minute == 65, 2000, 0)})
    halves = half_hours(home)
    assert halves.series_mw.tolist() == [145_000, MISSING, 745_000]
    assert halves.active.tolist() == [False, False, True]
    assert halves.day.tolist() == [0, 0, 0]


def test_every_codebook_releases_what_its_cell_stands_for_and_feedback_keeps_totals() -> None:
    series = np.random.default_rng(1).integers(0, 9_000_000, 300)
    kinds = [(kind, Rounding.NEAREST) for kind in (UNIFORM, FITTED, BLIND)]
    made = codebooks([*kinds, (UNIFORM, Rounding.FEEDBACK), (FITTED, Rounding.FEEDBACK)], (1, 2, 5), series)
    assert [named(one).levels for one in made] == [1, 2, 5, 1, 2, 5, 2, 5, 2, 5, 2, 5]
    released = released_by_each(made, series)
    for one, column in zip(made, released.T, strict=True):
        np.testing.assert_array_equal(released_by_all(one, series[:, None])[:, 0], column)
        if one.rounding is Rounding.NEAREST:
            np.testing.assert_array_equal(column, one.book.values[one.book.encode(series)] / 1000)
        else:
            assert abs(column.sum() * 1000 - series.sum()) <= one.book.largest_gap


def test_what_is_missing_repeats_the_last_release() -> None:
    (made,) = codebooks([(UNIFORM, Rounding.NEAREST)], (4,), np.arange(9))
    released = released_by_each([made], np.array([13_000_000, MISSING, 100]))
    assert released[:, 0].tolist() == [12_250, 12_250, 1750]
