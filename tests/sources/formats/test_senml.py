"""SenML packs resolve as RFC 8428 says, in JSON and CBOR alike."""

import json
import struct
from typing import Any

import cbor2
import pytest

from gateway.sources.formats import FormatError, Measured, format_named

SENML = format_named("senml")
LABELS = {"bver": -1, "bn": -2, "bt": -3, "bu": -4, "bv": -5, "bs": -6} | {
    label: number for number, label in enumerate(["n", "u", "v", "vs", "vb", "s", "t", "ut", "vd"])
}
Pack = list[dict[str, Any]]


def in_json(pack: Pack) -> bytes:
    return json.dumps(pack).encode()


def in_cbor(pack: Pack) -> bytes:
    return cbor2.dumps(
        [{LABELS.get(label, label): value for label, value in record.items()} for record in pack]
    )


both = pytest.mark.parametrize("written", [in_json, in_cbor])


def found(payload: bytes, address: str) -> object:
    return SENML.compile(address)(SENML.parse(payload))


PACK: Pack = [
    {
        "bn": "urn:dev:ow:10e2073a01080063:",
        "bt": 1_767_607_200,
        "bu": "W",
        "n": "power",
        "v": 310.5,
        "s": 3_600,
    },
    {"n": "import", "u": "kWh", "v": 4711.8, "t": -60},
    {"n": "label", "vs": "0401"},
    {"n": "on", "vb": True},
    {"n": "raw", "vd": "MTIz"},
    {"bn": "m2/", "bv": 1_000, "bs": 10, "n": "a", "v": 5},
    {"n": "b", "s": 90},
]


@both
@pytest.mark.parametrize(
    ("address", "value"),
    [
        ("urn:dev:ow:10e2073a01080063:power", Measured(310.5, "W")),
        ("urn:dev:ow:10e2073a01080063:power|v", Measured(310.5, "W")),
        ("urn:dev:ow:10e2073a01080063:power|s", Measured(3_600, "J")),
        ("urn:dev:ow:10e2073a01080063:power|t", 1_767_607_200),
        ("urn:dev:ow:10e2073a01080063:import", Measured(4711.8, "kWh")),
        ("urn:dev:ow:10e2073a01080063:import|t", 1_767_607_140),
        ("urn:dev:ow:10e2073a01080063:label", "0401"),
        ("urn:dev:ow:10e2073a01080063:on", True),
        ("m2/a", Measured(1_005, "W")),
        ("m2/a|s", Measured(10, "J")),
        ("m2/b", Measured(1_000, "W")),
        ("m2/b|s", Measured(100, "J")),
        ("m2/b|t", 1_767_607_200),
    ],
)
def test_base_fields_apply_from_their_record_on(written: Any, address: str, value: object) -> None:  # noqa: ANN401
    assert found(written(PACK), address) == value


@both
@pytest.mark.parametrize(
    "address",
    ["m2/c", "m2/c|t", "urn:dev:ow:10e2073a01080063:raw", "urn:dev:ow:10e2073a01080063:import|s", "power"],
)
def test_what_a_pack_does_not_say_is_not_found(written: Any, address: str) -> None:  # noqa: ANN401
    """An integral of kWh has no name, data is no value, and names are resolved ones."""
    with pytest.raises(LookupError):
        found(written(PACK), address)


def test_a_value_without_a_unit_is_a_bare_number() -> None:
    assert found(in_json([{"n": "m1", "v": 5}]), "m1") == 5


@both
@pytest.mark.parametrize("base", [{}, {"bt": 0}, {"bt": -5}, {"bt": 1 << 27}, {"bt": (1 << 28) - 1}])
def test_a_time_relative_to_now_is_no_time(written: Any, base: dict[str, int]) -> None:  # noqa: ANN401
    with pytest.raises(LookupError, match="relative"):
        found(written([{**base, "n": "m1", "v": 5}]), "m1|t")


def test_a_time_is_absolute_from_two_to_the_28_on() -> None:
    assert found(in_json([{"bt": 1 << 28, "n": "m1", "v": 5}]), "m1|t") == 1 << 28


@both
@pytest.mark.parametrize(
    "pack",
    [
        [{"n": "m1", "v": 1}, {"n": "m1", "v": 2}],
        [{"n": "m1", "v": True}],
        [{"n": "m1", "v": "5"}],
        [{"n": "m1", "v": None, "s": True}],
        [{"n": "m1", "v": 1, "vs": "x"}],
        [{"n": "m1", "vs": "x", "vb": True}],
        [{"n": "m1", "vs": 5}],
        [{"n": "m1", "vb": 1}],
        [{"n": "m1", "u": 5, "v": 1}],
        [{"n": "m1", "t": "now", "v": 1}],
        [{"n": 5, "v": 1}],
        [{"bn": 5, "n": "m1", "v": 1}],
        [{"v": 1}],
        [{"n": "x" * 257, "v": 1}],
        [{"n": "a b", "v": 1}],
        [{"n": "/a", "v": 1}],
        [{"n": "a|t", "v": 1}],
        [{"n": "zähler", "v": 1}],
        [{"bver": 11, "n": "m1", "v": 1}],
        [{"bver": "10", "n": "m1", "v": 1}],
        [{"n": "m1", "v": 1, "new_": 1}],
        [{"n": "m1", "v": None}],
        [{"n": "m1", "t": None, "v": 1}],
    ],
)
def test_what_rfc_8428_does_not_allow_is_refused(written: Any, pack: Any) -> None:  # noqa: ANN401
    with pytest.raises(FormatError):
        SENML.parse(written(pack))


@pytest.mark.parametrize("pack", [[5], [[]], [None], {"n": "m1", "v": 1}, 5, "m1"])
def test_a_pack_is_an_array_of_records(pack: object) -> None:
    for payload in (json.dumps(pack).encode(), cbor2.dumps(pack)):
        with pytest.raises(FormatError):
            SENML.parse(payload)


@both
def test_unknown_fields_and_records_of_nothing_but_bases_are_passed_over(written: Any) -> None:  # noqa: ANN401
    assert found(written([{"bn": "m1/"}, {"n": "a", "v": 1, "vendor": "x"}]), "m1/a") == 1


def test_a_number_that_no_double_holds_is_refused() -> None:
    with pytest.raises(FormatError, match="not a SenML number"):
        SENML.parse(b'[{"n":"m1","v":%b}]' % (b"9" * 309))


def cbor_value(value: bytes) -> bytes:
    """A CBOR pack of one record whose value is encoded by hand."""
    return b"\x81\xa2\x00\x62m1\x02" + value


def test_a_half_float_is_a_number() -> None:
    assert found(cbor_value(b"\xf9\x3e\x00"), "m1") == 1.5


@pytest.mark.parametrize(
    "value",
    [
        b"\xf9\x7e\x00",
        b"\xfb" + struct.pack(">d", float("inf")),
        b"\xf7",
        b"\xf8\x20",
        b"\xc2\x41\x05",
        b"\xc4\x82\x20\x05",
        b"\xd8\x1c\x05",
        b"\xd8\x1d\x00",
        b"\xd9\xd9\xf7\x05",
        b"\xd8\x23\x61\x28",
        b"\x80",
        b"\xa0",
        b"\x05\x05",
        b"\x05\x82",
        b"",
        b"\x5b\x7f\xff\xff\xff\xff\xff\xff\xff",
    ],
)
def test_cbor_of_anything_but_plain_numbers_and_texts_is_refused(value: bytes) -> None:
    with pytest.raises(FormatError):
        SENML.parse(cbor_value(value))


@pytest.mark.parametrize("tag", [b"\xd8\x1c", b"\xd9\xd9\xf7", b"\xd8\x1e", b"\xc1"])
@pytest.mark.parametrize("pack", [b"\x80", b"\x82\x01\x02", b"\x05"])
def test_a_tag_around_a_pack_is_refused(tag: bytes, pack: bytes) -> None:
    with pytest.raises(FormatError):
        SENML.parse(tag + pack)


def test_a_label_is_an_integer_and_what_equals_one_is_not() -> None:
    """In Python True is 1, which is the unit's label, and 2.0 is the value's."""
    payload = b"\x81\xa4\x00\x62m1\xf5\x05\x02\x07\xf9\x42\x00\x05"
    assert found(payload, "m1") == 7


@pytest.mark.parametrize("record", [b"\xa3\x00\x62m1\x02\x05\x02\x05", b"\xa3\x00\x62m1\x02\x05\x61v\x05"])
def test_a_field_that_stands_twice_is_refused(record: bytes) -> None:
    with pytest.raises(FormatError):
        SENML.parse(b"\x81" + record)


@pytest.mark.parametrize("address", ["", "|v", "m1|", "m1|x", "m1|v|v", "/m1", "m 1"])
def test_what_is_no_address_is_answered_with_what_to_write(address: str) -> None:
    with pytest.raises(ValueError, match="write"):
        SENML.compile(address)
