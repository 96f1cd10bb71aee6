"""Studies find their homes in a folder, or take simulated ones and say so."""

import lzma
from pathlib import Path

import numpy as np
import pytest

from simulators.households import Households
from simulators.studies.data import find, half_hourly_homes
from simulators.studies.study import Settings


def sgsc50(folder: Path, days: int = 3) -> Path:
    """Write a data set of three homes: complete, with a hole, and hardly recorded."""
    lines = ["time,c1,c2,c3"]
    for slot in range(days * 48):
        second = "" if slot == 50 else str(100 + slot % 48)
        lines.append(f"{slot},{slot % 7},{second},{'5' if slot < 20 else ''}")
    path = folder / "sgsc50_test_wh.csv.xz"
    path.write_bytes(lzma.compress(("\n".join(lines) + "\n").encode()))
    return path


def test_a_data_set_lies_in_the_folder_or_in_one_of_its_folders(tmp_path: Path) -> None:
    assert find(None, "sgsc50_") is None
    assert find(tmp_path, "sgsc50_") is None
    (tmp_path / "sgsc50_folder").mkdir()
    assert find(tmp_path, "sgsc50_") is None
    inner = sgsc50(tmp_path / "sgsc50_folder")
    assert find(tmp_path, "sgsc50_") == inner
    outer = sgsc50(tmp_path)
    assert find(tmp_path, "sgsc50_") in {inner, outer}


def test_homes_that_are_hardly_recorded_are_left_out_and_holes_take_the_usual(tmp_path: Path) -> None:
    sgsc50(tmp_path)
    homes = half_hourly_homes(Settings(tmp_path), days=3)
    assert homes.energy_mwh.shape == (2, 144)
    assert homes.energy_mwh[0].tolist() == [1_000 * (slot % 7) for slot in range(144)]
    assert homes.energy_mwh[1].tolist() == [1_000 * (100 + slot % 48) for slot in range(144)]
    assert homes.daily_mwh[1].tolist() == [1_000 * sum(range(100, 148))] * 3
    assert homes.source == "sgsc50 (Smart Grid, Smart City trial, New South Wales), 2 homes, 3 days"


@pytest.mark.parametrize("folder", [None, Path("/nowhere-at-all")])
def test_without_the_data_set_homes_are_simulated_and_it_says_so(folder: Path | None) -> None:
    homes = half_hourly_homes(Settings(folder, seed=3), days=2)
    assert "the simulated fleet" in homes.source
    assert ("no folder" in homes.source) == (folder is None)
    fleet = Households.draw(40, 3)
    begin = int(np.datetime64("2012-07-01", "ms").astype(int))
    for slot in (0, 17, 95):
        expected = fleet.energy_wh(begin + slot * 1_800_000, 1_800_000)
        assert np.allclose(homes.energy_mwh[:, slot] / 1_000, expected, atol=0.001)
