"""Recordings are read as what their layout says, exactly, and refused with the line but never the value."""

import gzip
import lzma
import os
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from gateway.privacy import MISSING
from simulators.recorded import Form, Layout, Unit, read_recording, zone_of
from simulators.recording import Recording

DATA = Path(os.environ.get("NOISELESS_DATA", Path(__file__).parents[3] / "shared" / "data"))
HALF_HOUR = 1_800_000
WIDE = "time,a,b\n2026-01-05T00:00Z,100,\n2026-01-05T00:30Z,2.5,7\n2026-01-05T01:00Z,,0\n"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the data sets are not here: set NOISELESS_DATA")


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1_000)


def read(folder: Path, text: str, *, name: str = "homes.csv", form: Form = Form()) -> Recording:  # noqa: B008 - frozen
    path = folder / name
    path.write_text(text)
    return read_recording(path, form)


def test_a_wide_file_has_a_time_and_a_column_per_home_and_empty_is_not_recorded(tmp_path: Path) -> None:
    recording = read(tmp_path, WIDE)
    assert recording.households == ("a", "b")
    assert recording.start_ms.tolist() == [ms("2026-01-05T00:00Z") + i * HALF_HOUR for i in range(3)]
    assert recording.milli.tolist() == [[100_000, MISSING], [2_500, 7_000], [MISSING, 0]]
    assert (recording.power, recording.interval_ms) == (False, HALF_HOUR)


def test_columns_may_stand_between_semicolons(tmp_path: Path) -> None:
    assert read(tmp_path, WIDE.replace(",", ";")).milli.tolist() == read(tmp_path, WIDE).milli.tolist()


def test_a_long_file_has_a_time_a_meter_and_a_value_and_says_the_same(tmp_path: Path) -> None:
    lines = [
        "2026-01-05T00:00Z,a,100",
        "2026-01-05T00:30Z,a,2.5",
        "2026-01-05T00:30Z,b,7",
        "2026-01-05T01:00Z,b,0",
    ]
    by_meter = read(tmp_path, "time,meter,value\n" + "\n".join(lines))
    by_time = read(tmp_path, "t,m,v\n" + "\n".join(sorted(lines)), form=Form(layout=Layout.LONG))
    wide = read(tmp_path, WIDE)
    for recording in (by_meter, by_time):
        assert recording.households == wide.households
        assert recording.start_ms.tolist() == wide.start_ms.tolist()
        assert recording.milli.tolist() == wide.milli.tolist()


@pytest.mark.parametrize(("suffix", "opened"), [(".xz", lzma.open), (".gz", gzip.open)])
def test_a_packed_file_is_read_like_a_plain_one(tmp_path: Path, suffix: str, opened: object) -> None:
    path = tmp_path / f"homes.csv{suffix}"
    with opened(path, "wt") as file:  # type: ignore[operator]
        file.write(WIDE)
    assert read_recording(path, Form()).milli.tolist() == read(tmp_path, WIDE).milli.tolist()


@pytest.mark.parametrize(
    ("unit", "energy_mwh", "power_mw"),
    [
        (Unit.WH, 300_000, 600_000),
        (Unit.KWH, 300_000_000, 600_000_000),
        (Unit.W, 150_000, 300_000),
        (Unit.KW, 150_000_000, 300_000_000),
    ],
)
def test_energy_and_power_follow_from_the_unit(
    tmp_path: Path, unit: Unit, energy_mwh: int, power_mw: int
) -> None:
    form = Form(unit=unit, interval_ms=HALF_HOUR)
    recording = read(tmp_path, "time,a\n2026-01-05T00:00Z,300\n", form=form)
    assert recording.energy_mwh().tolist() == [[energy_mwh]]
    assert recording.power_mw().tolist() == [[power_mw]]


def test_a_minute_of_watts_is_rounded_to_the_nearest_milliwatt_hour(tmp_path: Path) -> None:
    form = Form(unit=Unit.W, interval_ms=60_000)
    recording = read(tmp_path, "time,a\n2026-01-05T00:00Z,187\n2026-01-05T00:01Z,\n", form=form)
    assert recording.energy_mwh().tolist() == [[round(187_000 / 60)], [MISSING]]


def test_the_interval_is_the_most_frequent_step_unless_it_is_given(tmp_path: Path) -> None:
    times = [0, 5, 10, 15, 30, 45, 50]
    text = "time,a\n" + "".join(f"2026-01-05T00:{minute:02}Z,1\n" for minute in times)
    assert read(tmp_path, text).interval_ms == 300_000
    assert read(tmp_path, text, form=Form(interval_ms=60_000)).interval_ms == 60_000


def test_a_time_may_stamp_the_end_of_its_interval(tmp_path: Path) -> None:
    ending = read(tmp_path, WIDE, form=Form(stamp="end"))
    assert (read(tmp_path, WIDE).start_ms - ending.start_ms).tolist() == [HALF_HOUR] * 3


@pytest.mark.parametrize("zone", ["+10:00", "Etc/GMT-10"])
def test_times_without_an_offset_are_in_the_zone_that_is_given(tmp_path: Path, zone: str) -> None:
    text = "time,a\n2012-07-01 00:00:00,1\n2012-07-01 00:30:00,1\n"
    recording = read(tmp_path, text, form=Form(zone=zone))
    assert recording.start_ms[0] == ms("2012-06-30T14:00Z")


def test_an_hour_that_a_zone_has_twice_is_read_twice(tmp_path: Path) -> None:
    hours = ["01:00", "02:00", "02:00", "03:00"]
    text = "time,a\n" + "".join(f"2025-10-26 {hour},1\n" for hour in hours)
    recording = read(tmp_path, text, form=Form(zone="Europe/Berlin"))
    assert recording.start_ms.tolist() == [ms(f"2025-10-25T{hour}:00Z") for hour in (23,)] + [
        ms(f"2025-10-26T0{hour}:00Z") for hour in range(3)
    ]


def test_a_part_is_chosen_by_time_in_the_files_zone_and_by_homes_that_recorded_something(
    tmp_path: Path,
) -> None:
    text = "time,a,b,c\n2026-01-05 00:00,1,,3\n2026-01-05 01:00,4,,6\n2026-01-05 02:00,7,8,9\n"
    recording = read(tmp_path, text, form=Form(zone="+01:00"))
    part = recording.between("2026-01-05T01:00", "2026-01-05T01:00Z").of_first(2)
    assert part.households == ("a",)
    assert part.milli.tolist() == [[4_000]]
    with pytest.raises(ValueError, match="nothing was recorded"):
        recording.between("2027-01-01", None).of_first(None)


@pytest.mark.parametrize(
    ("text", "form", "words"),
    [
        ("", Form(), "fewer than two times"),
        ("time,a\n2026-01-05T00:00Z,1\n", Form(), "--interval"),
        ("time,a\n2026-01-05T00:00,4711\n", Form(), "--zone"),
        ("time,a\n2026-01-05T00:00,4711\n", Form(zone="Atlantis"), "no zone 'Atlantis'"),
        ("time,a\nsoon,4711\n", Form(), "line 2: not an ISO 8601 time"),
        ("time,a\n2026-01-05T00:00Z,4711x\n", Form(), "line 2: a value is not a number"),
        ("time,a\n2026-01-05T00:00Z,inf\n", Form(), "line 2: a value is not finite"),
        ("time,a\n2026-01-05T00:00Z,4711,4711\n", Form(), "line 2: 2 values for 1 homes"),
        ("time,a\n2026-01-05T01:00Z,1\n2026-01-05T00:00Z,4711\n", Form(), "line 3: its time is not after"),
        ("time,meter,value\n2026-01-05T01:00Z,a\n", Form(), "line 2: not a time, a meter and a value"),
        ("time,4711+\n2026-01-05T00:00Z,1\n", Form(interval_ms=1_000), "home 1's name"),
        ("time,a,a\n2026-01-05T00:00Z,1,1\n", Form(interval_ms=1_000), "the same name"),
        ("time,a\n2026-01-05T00:00Z,1e13\n", Form(interval_ms=1_000), "beyond 1 GWh"),
        ("time,a\n2026-01-05T00:00Z,1\n", Form(layout=Layout.NILM_1MIN), "no column Aggregate"),
        ("month,hour_ending,day_type,a\n7,24,7,1\n8,2,1,4711\n", Form(), "line 3: not the hour"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_place_and_never_with_its_value(
    tmp_path: Path, text: str, form: Form, words: str
) -> None:
    with pytest.raises(ValueError, match=words.replace("+", r"\+")) as refused:
        read(tmp_path, text, form=form)
    assert "homes.csv" in str(refused.value)
    assert "4711" not in str(refused.value).removeprefix(str(tmp_path))


def test_bytes_that_are_no_packed_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a CSV file"):
        read(tmp_path, WIDE, name="homes.csv.xz")


@pytest.mark.parametrize("text", ["", "+1", "nowhere", "../etc/passwd", "+99:00"])
def test_a_zone_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no zone"):
        zone_of(text)


def test_columns_of_appliances_are_left_out_and_a_zero_of_the_mains_is_a_gap(tmp_path: Path) -> None:
    text = "timestamp,Kettle,Aggregate\n2017-06-01 00:00:00,1,189\n2017-06-01 00:01:00,0,0\n2017-06-01 00:02:00,0,5\n"
    recording = read(tmp_path, text, name="house_65.csv")
    assert recording.households == ("house_65",)
    assert recording.power_mw().tolist() == [[189_000], [MISSING], [5_000]]
    assert recording.start_ms[0] == ms("2017-06-01T00:00Z")


@needs_data
def test_half_hours_of_newcastle_are_on_fixed_eastern_time() -> None:
    recording = read_recording(next((DATA / "sgsc50").glob("*.xz")), Form())
    assert recording.milli.shape == (17_520, 50)
    assert recording.start_ms[0] == ms("2012-07-01T00:00+10:00")
    assert set(np.diff(recording.start_ms).tolist()) == {HALF_HOUR}
    assert recording.milli[0, 0] == 293_000
    assert 0.046 < 1 - recording.known.mean() < 0.048


@needs_data
def test_hours_of_fontana_follow_each_other_on_fixed_pacific_time() -> None:
    recording = read_recording(next((DATA / "citylearn17").glob("*.xz")), Form())
    assert recording.milli.shape == (8_760, 17)
    assert recording.households[0] == "b01"
    assert recording.start_ms[0] == ms("2016-07-31T23:00-08:00")
    assert recording.interval_ms == 3_600_000
    assert recording.milli[0, 0] == 2_275_800
    assert round(recording.milli.max() / 1e6, 2) == 8.85


@needs_data
@pytest.mark.parametrize(("name", "gaps"), [("ukdale_house2", 0.157), ("ideal_house65", 0.031)])
def test_minutes_of_british_mains_have_gaps_where_the_file_has_zeros(name: str, gaps: float) -> None:
    recording = read_recording(next((DATA / "nilm_1min").glob(f"{name}*.xz")), Form())
    assert (recording.power, recording.interval_ms) == (True, 60_000)
    assert abs(1 - recording.known.mean() - gaps) < 0.001
