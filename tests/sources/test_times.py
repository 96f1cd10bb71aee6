"""What meters write as time becomes exact ms UTC, or a reason why it is none."""

import tracemalloc
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.sources.times import ClockUnset, TimeError, time_reader

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

TEN = 1_767_607_200_000
"""2026-01-05T10:00:00Z."""
KINDS = ["auto", "s", "ms", "iso", "dsmr", "cosem", "%d.%m.%Y %H:%M:%S"]


def read(value: object, kind: str = "auto", zone: str | None = None) -> int:
    return time_reader(kind, zone)(value)


def iso(value: object, kind: str = "auto", zone: str | None = None) -> str:
    return datetime.fromtimestamp(read(value, kind, zone) / 1_000, UTC).isoformat()[:19]


def refused(value: object, kind: str, zone: str | None = None) -> str:
    with pytest.raises(TimeError) as refusal:
        read(value, kind, zone)
    assert type(refusal.value) is TimeError
    return str(refusal.value)


@pytest.mark.parametrize(
    "time",
    [
        "2026-01-05T10:00:00Z",
        "2026-01-05T10:00Z",
        "2026-01-05 10:00:00Z",
        "20260105T100000Z",
        "2026-01-05T10:00:00+00:00",
        "2026-01-05T10:00:00-00:00",
        "2026-01-05T11:00:00+01:00",
        "2026-01-05T15:45:00+05:45",
        "2026-01-04T23:00:00-11:00",
        "2026-01-05T10:00:00.000Z",
        "2026-01-05T10:00:00.000999999Z",
        1_767_607_200,
        1_767_607_200.0,
        1_767_607_200_000,
        1_767_607_200_000.4,
    ],
)
def test_one_moment_is_read_from_iso_8601_seconds_and_milliseconds_alike(time: object) -> None:
    assert read(time) == TEN
    if isinstance(time, str):
        assert read(time, "iso") == TEN


def test_parts_of_a_second_are_kept_to_the_millisecond() -> None:
    assert read("2026-01-05T10:00:00.123456789Z") == TEN + 123
    assert read(1_767_607_200.08) == TEN + 80
    assert read("1767607200.0804", "s") == TEN + 80
    assert read(1_767_607_200_123, "ms") == TEN + 123
    assert read("1767607200123", "ms") == TEN + 123


@pytest.mark.parametrize("kind", ["auto", "iso"])
@pytest.mark.parametrize(
    "time",
    [
        "2026-01-05T10:00:00",
        "2026-01-05",
        "2026-01-05Z",
        "10:00:00Z",
        "2026-02-30T10:00:00Z",
        "2026-01-05T25:00:00Z",
        "2026-01-05T10:00:00+24:00",
        "2026-01-05T10:00:00 Europe/Amsterdam",
        "1767607200",
        "260105100000W",
        "",
        "now",
        "\ud800026-01-05T10:00Z",
        True,
        None,
        [1_767_607_200],
        {"s": 1_767_607_200},
        b"2026-01-05T10:00:00Z",
    ],
)
def test_a_text_that_is_no_iso_8601_time_with_its_offset_is_refused(time: object, kind: str) -> None:
    assert refused(time, kind)


@pytest.mark.parametrize("date", ["2026-01-05", "20260105", "2026-W02-1"])
def test_a_date_alone_names_no_moment_in_any_zone(date: str) -> None:
    assert refused(date, "iso", "Europe/Amsterdam") == "not an ISO 8601 time"


@pytest.mark.parametrize("kind", ["auto", "s", "ms"])
@pytest.mark.parametrize("time", [-1, -0.5, 1e30, float("nan"), float("inf"), 10**400, 253_402_300_800_001])
def test_a_number_that_counts_no_time_is_refused(time: float, kind: str) -> None:
    assert refused(time, kind)


@pytest.mark.parametrize("kind", ["s", "ms"])
@pytest.mark.parametrize(
    "time", ["", "nan", "1,5", "0x10", "now", "1e999", "2026-01-05T10:00:00Z", "-1", True, None, [1]]
)
def test_seconds_and_milliseconds_are_numbers_or_texts_of_numbers(time: object, kind: str) -> None:
    assert refused(time, kind)


@pytest.mark.parametrize(
    ("time", "kind"),
    [
        (0, "auto"),
        (0, "s"),
        (0, "ms"),
        ("0", "s"),
        ("1321890", "s"),
        (1_767_607_200, "ms"),
        (1_767_607_200_000, "s"),
        (978_307_199, "s"),
        (4_102_444_800, "s"),
        ("1970-01-01T00:00:00Z", "iso"),
        ("1111-11-11T11:11:11Z", "auto"),
        ("0001-01-01T00:00:00+23:59", "auto"),
        ("9999-12-31T23:59:59-23:59", "auto"),
        ("700101010000W", "dsmr"),
        ("000101000000W", "dsmr"),
        (bytes.fromhex("07b20101ff00000000800000"), "cosem"),
    ],
)
def test_a_clock_that_was_never_set_is_told_from_a_time_that_is_none(time: object, kind: str) -> None:
    with pytest.raises(ClockUnset):
        read(time, kind, "Europe/Vienna" if kind == "cosem" else None)


def test_the_clocks_that_count_begin_with_2001_and_end_with_2099() -> None:
    assert read(978_307_200) == 978_307_200_000
    assert read("2099-12-31T23:59:59.999Z") == 4_102_444_799_999


NAIVE = {
    "auto": "2026-07-05 12:00:00",
    "iso": "2026-07-05T12:00",
    "dsmr": "260705120000",
    "cosem": "07EA0705070C000000800000"[:-2] + "FF",
    "%d.%m.%Y %H:%M:%S": "05.07.2026 12:00:00",
}


@pytest.mark.parametrize("kind", NAIVE)
def test_a_local_time_counts_in_its_declared_zone(kind: str) -> None:
    assert iso(NAIVE[kind], kind, "Europe/Amsterdam") == "2026-07-05T10:00:00"
    assert iso(NAIVE[kind], kind, "Europe/London") == "2026-07-05T11:00:00"
    assert iso(NAIVE[kind], kind, "America/St_Johns") == "2026-07-05T14:30:00"


@pytest.mark.parametrize("kind", [kind for kind in NAIVE if "%" not in kind])
def test_a_local_time_without_a_zone_is_refused(kind: str) -> None:
    assert "zone" in refused(NAIVE[kind], kind)


def test_a_time_that_says_its_offset_needs_no_zone_and_heeds_none() -> None:
    assert read("2026-01-05T11:00:00+01:00", "iso", "America/New_York") == TEN


FOLD = {
    "auto": "2025-10-26 02:30:00",
    "iso": "2025-10-26T02:30",
    "dsmr": "251026023000",
    "cosem": "07E90A1A07021E00008000FF",
    "%d.%m.%Y %H:%M:%S": "26.10.2025 02:30:00",
}
GAP = {
    "auto": "2026-03-29 02:30:00",
    "iso": "2026-03-29T02:30",
    "dsmr": "260329023000",
    "cosem": "07EA031D07021E00008000FF",
    "%d.%m.%Y %H:%M:%S": "29.03.2026 02:30:00",
}


@pytest.mark.parametrize("kind", FOLD)
def test_a_local_time_that_comes_twice_or_never_is_refused(kind: str) -> None:
    assert refused(FOLD[kind], kind, "Europe/Amsterdam") == "a local time that comes twice or never"
    assert refused(GAP[kind], kind, "Europe/Amsterdam") == "a local time that comes twice or never"


def test_a_flag_says_which_of_the_two_it_is() -> None:
    assert iso("251026023000S", "dsmr") == "2025-10-26T00:30:00"
    assert iso("251026023000W", "dsmr") == "2025-10-26T01:30:00"
    assert iso("07E90A1A07021E0000800080", "cosem", "Europe/Vienna") == "2025-10-26T00:30:00"
    assert iso("07E90A1A07021E0000800000", "cosem", "Europe/Vienna") == "2025-10-26T01:30:00"


@pytest.mark.parametrize(
    ("time", "zone", "moment"),
    [
        ("260312101500W", None, "2026-03-12T09:15:00"),
        ("260712134500S", None, "2026-07-12T11:45:00"),
        # Swedish meters stay on normal time all year.
        ("260714220000W", None, "2026-07-14T21:00:00"),
        ("260714220000W", "Europe/Stockholm", "2026-07-14T21:00:00"),
        ("260714220000S", "Europe/Stockholm", "2026-07-14T20:00:00"),
        ("260114220000W", "Europe/London", "2026-01-14T22:00:00"),
        ("260714220000S", "Europe/London", "2026-07-14T21:00:00"),
        ("260714220000S", "Europe/Dublin", "2026-07-14T21:00:00"),
        ("260114220000W", "Europe/Dublin", "2026-01-14T22:00:00"),
        ("260114220000W", "Europe/Helsinki", "2026-01-14T20:00:00"),
        ("260114220000S", "Australia/Sydney", "2026-01-14T11:00:00"),
        ("260714220000W", "Australia/Sydney", "2026-07-14T12:00:00"),
    ],
)
def test_dsmr_flags_are_fixed_offsets_of_central_europe_or_of_the_zone(
    time: str, zone: str | None, moment: str
) -> None:
    assert iso(time, "dsmr", zone) == moment


@pytest.mark.parametrize(
    "time",
    [
        "",
        "260312101500",
        "260312101500X",
        "260312101500w",
        "2603121015W",
        "632525252525W",
        "٢60312101500W",
        260312101500,
    ],
)
def test_what_is_no_dsmr_time_is_refused(time: object) -> None:
    assert refused(time, "dsmr")


def cosem(deviation: int, status: int, *, hundredths: int = 0) -> bytes:
    """2026-07-05 12:00:00 by the wall."""
    return (
        bytes.fromhex("07ea0705070c0000")
        + bytes([hundredths])
        + deviation.to_bytes(2, signed=True)
        + bytes([status])
    )


@pytest.mark.parametrize(
    ("deviation", "status", "zone", "moment"),
    [
        (-120, 0x80, None, "2026-07-05T10:00:00"),
        (-60, 0x00, None, "2026-07-05T11:00:00"),
        (0, 0x00, None, "2026-07-05T12:00:00"),
        (240, 0x80, "Europe/Vienna", "2026-07-05T16:00:00"),
        (-0x8000, 0x80, "Europe/Vienna", "2026-07-05T10:00:00"),
        (-0x8000, 0x81, "Europe/Vienna", "2026-07-05T10:00:00"),
        (-0x8000, 0x00, "Europe/Vienna", "2026-07-05T11:00:00"),
        (-0x8000, 0xFF, "Europe/Vienna", "2026-07-05T10:00:00"),
    ],
)
def test_a_cosem_clock_counts_by_its_deviation_or_its_zone_and_flag(
    deviation: int, status: int, zone: str | None, moment: str
) -> None:
    octets = cosem(deviation, status)
    assert (
        iso(octets, "cosem", zone)
        == iso(octets.hex(), "cosem", zone)
        == iso(octets.hex().upper(), "cosem", zone)
        == moment
    )


def test_hundredths_of_a_second_count_where_the_clock_has_them() -> None:
    whole = read(cosem(0, 0), "cosem")
    assert read(cosem(0, 0, hundredths=25), "cosem") == whole + 250
    assert read(cosem(0, 0, hundredths=0xFF), "cosem") == whole


@pytest.mark.parametrize("place", [0, 2, 3, 5, 6, 7])
def test_a_cosem_clock_with_an_unspecified_field_is_refused(place: int) -> None:
    octets = bytearray(cosem(0, 0))
    octets[place : place + (2 if place == 0 else 1)] = b"\xff\xff"[: 2 if place == 0 else 1]
    assert refused(bytes(octets), "cosem") == "a COSEM clock with unspecified or wrong fields"


@pytest.mark.parametrize(
    "value",
    [
        228,
        None,
        b"",
        b"30052002",
        cosem(0, 0)[:11],
        cosem(0, 0) + b"\0",
        "z" * 24,
        " " * 24,
        "07ea 0705 070c 0000 0",
        [7],
    ],
)
def test_an_element_that_is_no_clock_is_told_from_a_wrong_time(value: object) -> None:
    """A list read with another meter's positions has a voltage where the clock should be."""
    assert refused(value, "cosem", "Europe/Vienna") == "not a COSEM clock"


def test_a_deviation_that_no_place_has_is_refused() -> None:
    assert "deviation" in refused(cosem(841, 0), "cosem")
    assert "deviation" in refused(cosem(-841, 0), "cosem")


def test_any_other_writing_is_a_pattern() -> None:
    assert iso("05.01.2026, 10:00", "%d.%m.%Y, %H:%M", "UTC") == "2026-01-05T10:00:00"
    assert iso("01/05/26 11:00 +0100", "%m/%d/%y %H:%M %z") == "2026-01-05T10:00:00"
    assert refused("05.01.2026", "%d.%m.%Y, %H:%M", "UTC") == "a time that does not fit its pattern"


@pytest.mark.parametrize("pattern", ["%d.%m.%Y", "%H:%M", "%d.%m. %H:%M", "%Q", "%"])
def test_a_pattern_that_names_no_moment_is_an_error_of_the_configuration(pattern: str) -> None:
    with pytest.raises(ValueError, match="write one like"):
        time_reader(pattern, "UTC")


def test_a_pattern_without_an_offset_needs_a_zone() -> None:
    with pytest.raises(ValueError, match="needs a time zone"):
        time_reader("%d.%m.%Y %H:%M")


@pytest.mark.parametrize("kind", ["", "ISO", "unix", "seconds"])
def test_an_unknown_kind_is_answered_with_the_known_ones(kind: str) -> None:
    with pytest.raises(ValueError, match="auto, s, ms, us, ns, iso, dsmr, cosem"):
        time_reader(kind)


@pytest.mark.parametrize(
    "zone", ["", "Amsterdam", "CEST", "../etc/passwd", "/etc/localtime", "Europe", "x\0y"]
)
def test_an_unknown_zone_is_answered_with_what_to_write(zone: str) -> None:
    with pytest.raises(ValueError, match="Europe/Amsterdam"):
        time_reader("iso", zone)


ZONES = [
    "Europe/Amsterdam",
    "Europe/London",
    "America/New_York",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
]


@unhurried
@given(st.integers(978_307_200, 4_102_444_799), st.sampled_from(ZONES))
def test_a_local_time_is_read_back_or_there_are_two_of_it(seconds: int, zone: str) -> None:
    """Against the definition: the moments that the zone's wall clock shows so."""
    moment = datetime.fromtimestamp(seconds, UTC)
    wall = moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    around = [moment + timedelta(minutes=shift) for shift in range(-180, 181, 30)]
    shown = [other for other in around if other.astimezone(ZoneInfo(zone)).replace(tzinfo=None) == wall]
    try:
        assert read(wall.isoformat(), "iso", zone) == seconds * 1_000
        assert len(shown) == 1
    except TimeError:
        assert len(shown) == 2


anything = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=30)
    | st.binary(max_size=13)
    | st.binary(min_size=12, max_size=12)
    | st.from_regex(r"[0-9]{12}[SW]?", fullmatch=True)
    | st.datetimes().map(str)
    | st.datetimes(timezones=st.timezones()).map(str)
    | st.lists(st.integers(), max_size=2)
)


@unhurried
@given(anything, st.sampled_from(KINDS), st.sampled_from(ZONES))
def test_whatever_stands_there_is_a_time_of_this_century_or_refused(
    value: object, kind: str, zone: str
) -> None:
    try:
        found = read(value, kind, zone)
    except TimeError:
        return
    assert type(found) is int
    assert 978_307_200_000 <= found < 4_102_444_800_000


def test_what_publishers_write_as_time_is_not_kept_in_memory() -> None:
    """ISO 8601 allows any number of digits of a second, and a publisher may change them each time."""
    reader = time_reader("auto")
    tracemalloc.start()
    try:
        for i in range(300):
            reader(f"2026-01-05T10:00:00.{i:060000d}Z")
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 2_000_000
