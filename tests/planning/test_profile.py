"""Public load profiles: what is read from which file, and what is said of files that cannot be used."""

from __future__ import annotations

import gzip
import lzma
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gateway.planning import PlanError, Profile, read_profile
from gateway.privacy import MISSING

HALF_HOUR = 1_800_000
TEXT = "time,a,b,c\n00:00,100,0,7.5\n00:30,,250,\n01:00,1e3,-3,2\n"
"""Wh per half hour: three homes, gaps, a decimal, an exponent, an export."""
POWER = [[200_000, 0, 15_000], [MISSING, 500_000, MISSING], [2_000_000, -6_000, 4_000]]


def _plain(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def _gz(path: Path, data: bytes) -> None:
    path.write_bytes(gzip.compress(data))


def _xz(path: Path, data: bytes) -> None:
    path.write_bytes(lzma.compress(data))


PACKED: dict[str, Callable[[Path, bytes], None]] = {".csv": _plain, ".csv.gz": _gz, ".csv.xz": _xz}


@pytest.mark.parametrize("ending", PACKED)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_csv_is_read_packed_or_not_with_gaps_decimals_and_exports(
    tmp_path: Path, ending: str, newline: str
) -> None:
    path = tmp_path / f"loads{ending}"
    PACKED[ending](path, TEXT.replace("\n", newline).encode())
    profile = read_profile(path, "Wh", HALF_HOUR)
    assert profile.power.tolist() == POWER
    assert profile.power.dtype == np.int64
    assert profile.slot_ms == HALF_HOUR


def test_kwh_and_other_intervals_give_the_mean_power_they_mean(tmp_path: Path) -> None:
    path = tmp_path / "loads.csv"
    path.write_text("t,a,b\n1,0.1,0.25\n2,1,0\n")
    assert read_profile(path, "kWh", HALF_HOUR).power.tolist() == [[200_000, 500_000], [2_000_000, 0]]
    assert read_profile(path, "kWh", 2 * HALF_HOUR).power.tolist() == [[100_000, 250_000], [1_000_000, 0]]
    assert read_profile(path, "Wh", HALF_HOUR // 2).power.tolist() == [[400, 1_000], [4_000, 0]]


def test_a_file_of_one_home_has_one_column(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("t,a\n1,100\n2,\n3,300\n4,400\n5,500\n")
    profile = read_profile(path, "Wh", HALF_HOUR)
    assert profile.power.shape == (5, 1)
    fit, trial = profile.halves()
    assert fit.power[:, 0].tolist() == [200_000, MISSING]
    assert trial.power[:, 0].tolist() == [600_000, 800_000, 1_000_000]


def test_one_line_is_one_slot(tmp_path: Path) -> None:
    path = tmp_path / "line.csv"
    path.write_text("t,a,b,c\n1,100,200,300\n")
    assert read_profile(path, "Wh", HALF_HOUR).power.tolist() == [[200_000, 400_000, 600_000]]


@pytest.mark.parametrize("homes", [2, 3, 50])
def test_of_several_homes_the_first_half_fits_and_the_others_are_tried(homes: int) -> None:
    profile = Profile(np.arange(4 * homes).reshape(4, homes), HALF_HOUR)
    fit, trial = profile.halves()
    assert np.array_equal(np.concatenate((fit.power, trial.power), axis=1), profile.power)
    assert fit.power.shape[1] == homes // 2
    assert fit.slot_ms == trial.slot_ms == HALF_HOUR


GZ, XZ = gzip.compress(TEXT.encode() * 50), lzma.compress(TEXT.encode() * 50)
UNUSABLE: dict[str, tuple[str, bytes]] = {
    "empty": ("loads.csv", b""),
    "only a header": ("loads.csv", b"time,a,b\n"),
    "only text": ("loads.csv", b"time,a\n1,hello\n2,world\n"),
    "only gaps": ("loads.csv", b"time,a\n1,\n2,\n"),
    "only a time column": ("loads.csv", b"time\n1\n2\n3\n"),
    "lines of other lengths": ("loads.csv", b"time,a,b\n1,2\n1,2,3,4\n"),
    "bytes that are no text": ("loads.csv", bytes(range(256)) * 4),
    "plain text named .gz": ("loads.csv.gz", TEXT.encode()),
    "plain text named .xz": ("loads.csv.xz", TEXT.encode()),
    "a gzip cut short": ("loads.csv.gz", GZ[: len(GZ) // 2]),
    "an xz cut short": ("loads.csv.xz", XZ[: len(XZ) // 2]),
    "a gzip of damaged data": ("loads.csv.gz", GZ[:20] + b"\xff\x00\xff\x00\xff" + GZ[25:]),
    "an xz of damaged data": ("loads.csv.xz", XZ[:20] + b"\xff\x00\xff\x00\xff" + XZ[25:]),
    "an energy beyond all meters": ("loads.csv", b"time,a,b\n1,1e300,2\n2,3,4\n"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_file_that_cannot_be_used_is_named_with_what_to_give(tmp_path: Path, name: str) -> None:
    """One error of ours, no traceback of a library's, and no warning of a library's beside it."""
    file, content = UNUSABLE[name]
    path = tmp_path / file
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PlanError, match=r"(?s)loads.csv.*give"):
            read_profile(path, "Wh", HALF_HOUR)


def test_a_file_that_is_not_there_or_a_folder_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.csv", tmp_path):
        with pytest.raises(PlanError, match="give a CSV"):
            read_profile(path, "Wh", HALF_HOUR)
