"""Messages become integers or a reason, whatever bytes a publisher sends."""

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.source_table import SourceTable
from gateway.sources.mapping import Found, MessageMapping, Reader
from gateway.sources.parsing import RebirthWantedError
from gateway.sources.readings import MAX_REGISTER_MWH, Reason, RejectedError

# Under load a first example may take its time.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

SLOT_MS = 30 * 60_000
TEN = 1_767_607_200_000
"""2026-01-05T10:00:00Z."""
FIRST_MS, LAST_MS = 978_307_200_000, 4_102_444_800_000
"""2001 and 2100: what a clock says that was set."""
WIDEST = {"limit": "10 MW"}
MOST_MWH = 5_000_000_000
"""10 MW for half an hour."""


def reader(interval_ms: int = SLOT_MS, **fields: object) -> Reader:
    table = {"topic": "{household}", "value": "/e", "unit": "Wh", "time": {"at": "/ts"}, **fields}
    mapping = MessageMapping(SourceTable.model_validate(table), interval_ms)
    read = mapping.reader("h")
    assert read is not None
    return read


def found(payload: bytes, **fields: object) -> Found | Reason:
    try:
        (one,) = reader(**fields)(payload)  # type: ignore[arg-type]
    except RejectedError as rejection:
        return rejection.reason
    return one


def outcome(payload: bytes, **fields: object) -> tuple[int | None, int] | Reason:
    one = found(payload, **fields)
    return one if isinstance(one, Reason) else (one.time_ms, one.value)


def energy(value: str, **fields: object) -> int | Reason:
    one = outcome(b'{"e":%b,"ts":"2026-01-05T10:00:00Z"}' % value.encode(), **fields)
    return one if isinstance(one, Reason) else one[1]


def start(time: str, **fields: object) -> int | Reason | None:
    one = outcome(b'{"e":1,"ts":%b}' % time.encode(), **fields)
    return one if isinstance(one, Reason) else one[0]


@pytest.mark.parametrize(
    ("value", "mwh"),
    [
        ("0", 0),
        ("-0", 0),
        ("-0.0", 0),
        ("1", 1_000),
        ("-79", -79_000),
        ("123.4", 123_400),
        ("0.0004", 0),
        ("0.0006", 1),
        ("1e3", 1_000_000),
        ("1E-3", 1),
        ("1e-9999", 0),
        ("5000000", MOST_MWH),
        ("-5000000", -MOST_MWH),
        ("5e6", MOST_MWH),
        ('"123.4"', 123_400),
        ("[1,2.5]", 3_500),
        ('[1,"2.5"]', 3_500),
    ],
)
def test_a_json_number_becomes_the_nearest_milliwatt_hour(value: str, mwh: int) -> None:
    assert energy(value, **WIDEST) == mwh


@pytest.mark.parametrize(
    "value",
    [
        "5000001",
        "-5000001",
        "5000000.001",
        '"5000001"',
        "1e10",
        "1e308",
        "-1e308",
        "9" * 400,
        "-" + "9" * 400,
        # -79 Wh in an unsigned 64-bit counter (domoticz#4521), and a 24-bit sentinel in MWh
        "18446744073709551537",
        "16777215000000",
    ],
)
def test_more_than_the_limit_carries_in_one_interval_is_implausible(value: str) -> None:
    assert energy(value, **WIDEST) is Reason.IMPLAUSIBLE


def test_the_limit_is_what_the_connection_carries_in_and_out() -> None:
    assert energy("8700", limit="17.4 kW") == 8_700_000
    assert energy("8700.001", limit="17.4 kW") is Reason.IMPLAUSIBLE
    assert energy("-8700.001", limit="17.4 kW") is Reason.IMPLAUSIBLE
    assert energy("8700", limit="17.4 kW", interval="10min") is Reason.IMPLAUSIBLE


@pytest.mark.parametrize("value", ['"-"', '""', '"12 Wh"', '"1,5"', '"nan"', '"0x1"', '"' + "1" * 65 + '"'])
def test_a_text_that_is_no_number_is_none(value: str) -> None:
    assert energy(value) is Reason.NOT_A_NUMBER


@pytest.mark.parametrize(
    "value", ["true", "false", "null", "[]", "[null]", "[[1]]", "{}", '{"value":1}', "[" * 900 + "]" * 900]
)
def test_what_is_no_json_number_is_of_the_wrong_type(value: str) -> None:
    assert energy(value) is Reason.WRONG_TYPE


@pytest.mark.parametrize(
    "value", ["NaN", "Infinity", "-Infinity", "1.", ".5", "01", "+1", "0x10", "1e400", "9" * 5_000, "'1'", ""]
)
def test_what_json_does_not_know_is_undecodable(value: str) -> None:
    assert energy(value) is Reason.UNDECODABLE


@pytest.mark.parametrize(
    "payload",
    [
        b" ",
        b"\0",
        b"\xff\xfe",
        '{"e":1,"ts":"2026-01-05T10:00:00Z"}'.encode("utf-16"),
        b'{"e":1,"ts":"2026-01-05T10:00:00Z"',
        b'{"e":1,"ts":"2026-01-05T10:00:00Z"}}',
        b'{"e":1,"x":"\xff","ts":"2026-01-05T10:00:00Z"}',
        b'{"e":1,"x":"\\ud800","ts":"2026-01-05T10:00:00Z"}',
        b"e=1",
    ],
)
def test_bytes_that_are_not_one_json_document_in_utf_8_are_undecodable(payload: bytes) -> None:
    assert outcome(payload) is Reason.UNDECODABLE


def test_an_empty_payload_is_empty() -> None:
    assert outcome(b"") is Reason.EMPTY


@pytest.mark.parametrize("opening", [b"[", b'{"e":'])
def test_a_hundred_thousand_open_brackets_are_undecodable(opening: bytes) -> None:
    assert outcome(opening * 100_000, max_bytes=1_000_000) is Reason.UNDECODABLE


def test_brackets_that_close_deep_inside_are_undecodable_too() -> None:
    assert outcome(b"[" * 50_000 + b"]" * 50_000, max_bytes=1_000_000) is Reason.UNDECODABLE


def test_a_payload_is_read_up_to_max_bytes_and_no_longer() -> None:
    payload = b'{"e":1,"ts":"2026-01-05T10:00:00Z"}'
    assert outcome(payload, max_bytes=len(payload)) == (TEN, 1_000)
    assert outcome(payload, max_bytes=len(payload) - 1) is Reason.TOO_LARGE
    assert outcome(payload + b" " * 65_536) is Reason.TOO_LARGE


def test_of_a_repeated_key_the_last_counts() -> None:
    assert outcome(b'{"e":1,"e":2,"ts":"2026-01-05T10:00:00Z"}') == (TEN, 2_000)


def test_values_at_several_pointers_are_summed_exactly() -> None:
    payload = b'{"t1":1.25,"t2":{"wh":2},"t3":[0,-0.25],"ts":"2026-01-05T10:00:00Z"}'
    assert outcome(payload, value=["/t1", "/t2/wh", "/t3/1"]) == (TEN, 3_000)


def test_a_sum_is_bounded_as_one_value_is() -> None:
    payload = b'{"a":400000,"b":400000,"ts":"2026-01-05T10:00:00Z"}'
    assert outcome(payload, value=["/a", "/b"]) is Reason.IMPLAUSIBLE


def test_a_missing_summand_is_a_missing_field_and_not_zero() -> None:
    assert outcome(b'{"a":1,"ts":"2026-01-05T10:00:00Z"}', value=["/a", "/b"]) is Reason.MISSING_FIELD


@pytest.mark.parametrize(
    ("pointer", "document"),
    [
        ("/", {"": 5}),
        ("//", {"": {"": 5}}),
        ("/a~1b", {"a/b": 5}),
        ("/m~0n", {"m~n": 5}),
        ("/~01", {"~1": 5}),
        ("/~10", {"/0": 5}),
        ("/ ", {" ": 5}),
        ('/k"l', {'k"l': 5}),
        ("/é", {"é": 5}),
        ("/0", {"0": 5}),
        ("/-1", {"-1": 5}),
        ("/-", {"-": 5}),
        ("/data/0/value", {"data": [{"value": 5}]}),
        ("/data/10", {"data": [0] * 10 + [5]}),
    ],
)
def test_a_pointer_leads_where_rfc_6901_says(pointer: str, document: dict[str, Any]) -> None:
    payload = json.dumps({**document, "ts": "2026-01-05T10:00:00Z"}).encode()
    assert outcome(payload, value=pointer) == (TEN, 5_000)


@pytest.mark.parametrize(
    "token", ["-", "-1", "01", "00", "+1", " 1", "1 ", "1_0", "1.0", "１", "11", "", "x"]
)
def test_an_array_has_no_element_but_those_that_rfc_6901_counts(token: str) -> None:
    """RFC 6901, section 4: an index is 0 or digits without a leading zero; "-" is past the end."""
    payload = json.dumps({"e": list(range(11)), "ts": "2026-01-05T10:00:00Z"}).encode()
    assert outcome(payload, value=f"/e/{token}") is Reason.MISSING_FIELD


def test_an_array_index_beyond_every_memory_is_a_missing_field() -> None:
    payload = b'{"e":[1],"ts":"2026-01-05T10:00:00Z"}'
    assert outcome(payload, value="/e/" + "9" * 30) is Reason.MISSING_FIELD
    assert outcome(payload, value="/e/" + "9" * 5_000) is Reason.MISSING_FIELD


@pytest.mark.parametrize("document", ["5", '"text"', "null", "true", "[]", "{}", '{"e":{}}', '{"e":"x"}'])
def test_a_pointer_into_what_has_no_members_is_a_missing_field(document: str) -> None:
    assert outcome(document.encode(), value="/e/f") is Reason.MISSING_FIELD


def test_an_empty_pointer_is_the_whole_document() -> None:
    moment = b"1767607200"
    assert outcome(moment, value="", time={"at": ""}, unit="mWh", **WIDEST) == (TEN, 1_767_607_200)


@pytest.mark.parametrize(
    ("unit", "mwh"),
    [("mWh", 2), ("Wh", 1_500), ("kWh", 1_500_000), ("J", 0), ("kJ", 417), ("MJ", 416_667), ("Wmin", 25)],
)
def test_a_unit_is_fixed_or_read_from_the_payload(unit: str, mwh: int) -> None:
    assert energy("1.5", unit=unit) == mwh
    payload = b'{"e":1.5,"u":"%b","ts":"2026-01-05T10:00:00Z"}' % unit.encode()
    assert outcome(payload, unit={"at": "/u"}) == (TEN, mwh)


@pytest.mark.parametrize(
    "unit", ['"GWh"', '"W"', '"wh"', '"kwh"', '" Wh"', '""', "null", "1", '["Wh"]', "{}"]
)
def test_any_other_unit_in_the_payload_is_undeclared(unit: str) -> None:
    payload = b'{"e":1,"u":%b,"ts":"2026-01-05T10:00:00Z"}' % unit.encode()
    assert outcome(payload, unit={"at": "/u"}) is Reason.UNDECLARED_UNIT


def test_a_payload_without_its_unit_lacks_a_field() -> None:
    assert energy("1", unit={"at": "/u"}) is Reason.MISSING_FIELD


@pytest.mark.parametrize(
    "time",
    [
        '"2026-01-05T10:00:00Z"',
        '"2026-01-05T10:00Z"',
        '"2026-01-05 10:00:00Z"',
        '"20260105T100000Z"',
        '"2026-01-05T10:00:00+00:00"',
        '"2026-01-05T10:00:00-00:00"',
        '"2026-01-05T11:00:00+01:00"',
        '"2026-01-05T15:45:00+05:45"',
        '"2026-01-04T23:00:00-11:00"',
        '"2026-01-05T10:00:00.000Z"',
        '"2026-01-05T10:00:00.123456789Z"',
        "1767607200",
        "1767607200.0",
        "1767607200.25",
        "1.7676072e9",
        "1767607200000",
        "1767607200000.4",
    ],
)
def test_one_moment_is_read_from_iso_8601_seconds_and_milliseconds_alike(time: str) -> None:
    assert start(time) == TEN


@pytest.mark.parametrize(
    "time",
    [
        '"2026-01-05T10:00:00"',
        '"2026-01-05"',
        '"2026-01-05Z"',
        '"10:00:00Z"',
        '"2026-02-30T10:00:00Z"',
        '"2026-01-05T25:00:00Z"',
        '"2026-01-05T10:00:00+24:00"',
        '"2026-01-05T10:00:00 Europe/Amsterdam"',
        '"1767607200"',
        '""',
        '"now"',
        "-1",
        "-0.5",
        "0",
        "978307199",
        "4102444800",
        '"1969-12-31T23:31:00Z"',
        '"2100-01-01T00:00:00Z"',
        "1e30",
        "253402300800001",
        "9" * 60,
        "true",
        "false",
        "null",
        "[1767607200]",
        '{"s":1767607200}',
    ],
)
def test_a_time_that_is_none_or_has_no_offset_is_bad(time: str) -> None:
    assert start(time) is Reason.BAD_TIME


def test_a_payload_without_a_time_lacks_a_field() -> None:
    assert outcome(b'{"e":1}') is Reason.MISSING_FIELD


def test_a_number_is_seconds_below_ten_to_the_eleven_and_milliseconds_from_there() -> None:
    assert start("978307200") == FIRST_MS
    assert start("978307200000") == FIRST_MS
    assert start("99999900000", interval_ms=100_000) is Reason.BAD_TIME
    assert start("100000000000", interval_ms=100_000) is Reason.BAD_TIME
    assert start("4102443000") == LAST_MS - SLOT_MS


def test_an_end_stamp_is_the_start_of_the_interval_one_length_before() -> None:
    assert start('"2026-01-05T10:30:00Z"', stamp="end") == TEN
    assert start('"2026-01-05T10:30:00Z"', stamp="start") == TEN + SLOT_MS
    assert start('"2026-01-05T10:05:00Z"', stamp="end", interval_ms=300_000) == TEN


def test_a_time_up_to_a_twentieth_of_the_interval_off_is_moved_to_the_border() -> None:
    twentieth = SLOT_MS // 20
    for off in (-twentieth, -1, 0, 1, twentieth):
        assert start(str(TEN + off)) == TEN


def test_a_time_further_off_the_border_is_misaligned() -> None:
    twentieth = SLOT_MS // 20
    for off in (-SLOT_MS // 2, -twentieth - 1, twentieth + 1, SLOT_MS // 2):
        assert start(str(TEN + off)) is Reason.MISALIGNED


def test_one_message_has_one_reason_however_much_is_wrong_with_it() -> None:
    assert outcome(b'{"e":true,"ts":"nonsense"}') is Reason.WRONG_TYPE
    assert outcome(b'{"e":1e308,"ts":null}') is Reason.IMPLAUSIBLE


def test_a_rejection_carries_nothing_of_the_message() -> None:
    with pytest.raises(RejectedError) as rejected:
        reader()(b'{"e":"secret-reading","ts":"2026-01-05T10:00:00Z"}')
    assert str(rejected.value) == "not_a_number"
    assert rejected.value.__suppress_context__ or rejected.value.__context__ is None


def test_what_publishers_write_as_time_is_not_kept_in_memory() -> None:
    """ISO 8601 allows any number of digits of a second, and a publisher may change them each time."""
    read = reader()
    tracemalloc.start()
    try:
        for i in range(300):
            read(b'{"e":1,"ts":"2026-01-05T10:00:00.%060000dZ"}' % i)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 2_000_000


READERS = [
    reader(),
    reader(value=["/e", "/data/0/v"], unit={"at": "/u"}, time={"at": "/data/0/t"}, stamp="end"),
    reader(value="", unit="kWh", time={"at": ""}),
    reader(value="/e/0", time={"at": "/e/1"}, interval_ms=1_000),
    reader(quantity="power", unit="kW", sign="export", sentinels=[7], when={"/u": ["Wh", 1, True]}),
    reader(
        quantity="power", unit="W", value="/e", minus="/data/0/v", time={"at": "/ts", "zone": "Europe/Oslo"}
    ),
    reader(quantity="register", serial="/data", meter=["/ts", "=x"], time={"at": "/ts", "format": "s"}),
    reader(each="/data", value="/v", time={"at": "/t"}, meter=["/t", "{household}-{key}"]),
    reader(each="", value="", time={"at": "/ts"}, meter="{key}", scale="1/3", decimal=","),
]
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**12), 10**15)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(["Wh", "kWh", "2026-01-05T10:00:00Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59Z"])
    | st.datetimes(timezones=st.timezones()).map(lambda moment: moment.isoformat())
)
keys = st.sampled_from(["e", "ts", "u", "data", "v", "t", ""]) | st.text(max_size=3)
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=6),
    max_leaves=12,
)
shaped = st.fixed_dictionaries(
    {"e": scalars, "ts": scalars},
    optional={
        "u": scalars,
        "data": st.lists(st.fixed_dictionaries({"v": scalars, "t": scalars}), max_size=2),
    },
)


def assert_read_or_rejected(payload: bytes) -> None:
    for read in READERS:
        try:
            ones = read(payload)
        except RejectedError:
            continue
        for one in ones:
            if isinstance(one, Reason):
                continue
            assert type(one.value) is int
            assert abs(one.value) <= MAX_REGISTER_MWH
            assert one.time_ms is None or FIRST_MS - SLOT_MS <= one.time_ms <= LAST_MS
            assert 0 < len(one.meter) <= 128
            assert 0 <= one.serial < 2**63


@unhurried
@given(st.binary())
def test_arbitrary_bytes_are_read_or_rejected_and_nothing_else(payload: bytes) -> None:
    assert_read_or_rejected(payload)


@unhurried
@given(documents | shaped)
def test_arbitrary_json_is_read_as_bounded_integers_or_rejected(document: object) -> None:
    assert_read_or_rejected(json.dumps(document).encode())


@unhurried
@given(st.integers(FIRST_MS, LAST_MS - 1), st.sampled_from([1_000, 60_000, SLOT_MS, 86_400_000]))
def test_an_accepted_start_is_a_border_at_most_a_twentieth_away(moment: int, interval_ms: int) -> None:
    begun = start(str(moment), interval_ms=interval_ms)
    off = min(moment % interval_ms, -moment % interval_ms)
    if off * 20 > interval_ms:
        assert begun is Reason.MISALIGNED
    else:
        assert isinstance(begun, int)
        assert begun % interval_ms == 0
        assert abs(begun - moment) == off


POWER = {"quantity": "power", "unit": "W", "time": None}
REGISTER = {"quantity": "register", "unit": "kWh", "time": None}


def test_a_power_or_a_register_without_a_clock_has_the_time_of_its_arrival() -> None:
    for declared in (POWER, REGISTER):
        assert outcome(b'{"e":1}', **declared) in {(None, 1_000), (None, 1_000_000)}
        timed = {**declared, "time": {"at": "/ts"}}
        assert outcome(b'{"e":1}', **timed)[0] is None  # type: ignore[index]
        for unset in (b"0", b'"1970-01-01T00:00:05Z"', b'"2100-01-01T00:00:00Z"'):
            assert outcome(b'{"e":1,"ts":%b}' % unset, **timed)[0] is None  # type: ignore[index]
        assert outcome(b'{"e":1,"ts":"x"}', **timed) is Reason.BAD_TIME
        assert outcome(b'{"e":1,"ts":"2026-01-05T10:07:00.5Z"}', **timed)[0] == TEN + 420_500  # type: ignore[index]


def test_a_register_is_bounded_by_zero_and_a_terawatt_hour() -> None:
    assert energy("1000000000", **REGISTER) == MAX_REGISTER_MWH
    for beyond in ("-0.001", "1000000000.001", '"1000000001"'):
        assert energy(beyond, **REGISTER) is Reason.IMPLAUSIBLE


def test_what_is_taken_off_must_be_there_and_the_sign_turns_the_difference() -> None:
    payload = b'{"e":5,"out":7.5}'
    assert outcome(payload, **POWER, minus="/out") == (None, -2_500)
    assert outcome(payload, **POWER, minus="/out", sign="export") == (None, 2_500)
    assert outcome(b'{"e":5}', **POWER, minus="/out") is Reason.MISSING_FIELD


def test_a_sentinel_is_looked_for_in_the_number_as_the_message_writes_it() -> None:
    declared = {**POWER, "unit": "kW", "sentinels": [-8388.608, 65535]}
    for value in ("-8388.608", "65535", "65535.0", '"65535"', "[1,65535]"):
        assert energy(value, **declared) is Reason.SENTINEL
    assert energy("65.535", **declared) == 65_535_000


def test_a_guard_lets_through_one_of_its_values_and_takes_true_for_no_number() -> None:
    def guarded(written: str, allowed: object) -> object:
        return found(b'{"e":1,"k":%b}' % written.encode(), **POWER, when={"/k": allowed})

    for written, allowed in [
        ("1", 1),
        ('"1"', 1),
        ("true", True),
        ('"b"', ["a", "b"]),
        ("1.0", 1),
    ]:
        assert isinstance(guarded(written, allowed), Found), (written, allowed)
    for written, allowed in [
        ("true", 1),
        ("1", True),
        ("1", "1"),
        ('"c"', ["a", "b"]),
        ("null", 0),
        ("[1]", 1),
    ]:
        assert guarded(written, allowed) is Reason.GUARD, (written, allowed)
    assert found(b'{"e":1}', **POWER, when={"/k": 1}) is Reason.GUARD


def test_a_guard_speaks_before_the_value_does() -> None:
    assert found(b'{"e":null,"k":2}', **POWER, when={"/k": 1}) is Reason.GUARD


def test_the_first_place_that_names_the_meter_is_taken() -> None:
    places = {**POWER, "meter": ["/a", "/b", "{household}", "=never"]}
    named = {b'"x"': "x", b'" y "': "y", b"12": "12", b'""': "z", b"null": "z", b"1.5": "z", b"true": "z"}
    for written, meter in named.items():
        one = found(b'{"e":1,"a":%b,"b":"z"}' % written, **places)
        assert isinstance(one, Found)
        assert one.meter == meter
    assert found(b'{"e":1}', **places).meter == "h"  # type: ignore[union-attr]


def test_another_meters_number_is_another_serial_and_none_is_zero() -> None:
    def serial(written: bytes) -> int:
        one = found(b'{"e":1,"sn":%b}' % written, **REGISTER, serial="/sn")
        assert isinstance(one, Found)
        return one.serial

    assert len({serial(b'"A1"'), serial(b'"A2"'), serial(b"77")}) == 3
    assert serial(b'"77"') == serial(b"77")
    assert {serial(written) for written in (b'""', b"null", b"[1]", b"true")} == {0}
    assert found(b'{"e":1}', **REGISTER, serial="/sn").serial == 0  # type: ignore[union-attr]


def test_of_several_meters_in_a_message_each_is_read_or_refused_alone() -> None:
    read = reader(**{**POWER, "unit": {"at": "/u"}}, each="/m", meter="{household}/{key}")
    ones = read(b'{"e":9,"u":"W","m":{"a":{"e":1},"b":{"e":null},"c":{},"d":5,"f":{"e":2,"u":"kW"}}}')
    assert ones == [
        Found("h/a", None, 1_000),
        Reason.WRONG_TYPE,
        Reason.MISSING_FIELD,
        Reason.MISSING_FIELD,
        Found("h/f", None, 2_000_000),
    ]


def test_the_steps_before_a_format_are_done_in_order() -> None:
    plain = b'{"e":1}'
    for steps, payload in [
        ("hex", plain.hex().encode()),
        ("base64", b"eyJlIjox\r\nfQ=="),
        (["base64", "hex"], b"N2IyMjY1MjIzYTMxN2Q="),
    ]:
        assert outcome(payload, **POWER, steps=steps) == (None, 1_000)
    assert outcome(b"xx\x7eyy", **POWER, steps="cut7e") is Reason.UNDECODABLE
    assert outcome(b"7b2", **POWER, steps="hex") is Reason.UNDECODABLE
    assert outcome(b"e*", **POWER, steps="base64") is Reason.UNDECODABLE


def test_data_of_a_node_whose_birth_was_missed_names_the_node() -> None:
    table = {"topic": "spBv1.0/+/DDATA/+/{meter}", "format": "sparkplug", "value": "P", **POWER}
    mapping = MessageMapping(SourceTable.model_validate(table), SLOT_MS)
    read = mapping.reader("spBv1.0/site/DDATA/node/m1")
    assert read is not None
    with pytest.raises(RebirthWantedError) as wanted:
        read(bytes.fromhex("12041001500a"))
    assert (wanted.value.group, wanted.value.node) == ("site", "node")
    assert mapping.filters == [
        *(f"spBv1.0/+/D{kind}/+/+" for kind in ("DATA", "BIRTH", "DEATH")),
        "spBv1.0/+/NBIRTH/+",
        "spBv1.0/+/NDEATH/+",
    ]
