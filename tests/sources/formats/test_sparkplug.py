"""Sparkplug messages become values of named metrics, once their births have been seen."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sources.formats.corpus import BIRTH, field, metric, sparkplug

from gateway.sources.formats import (
    BirthNeeded,
    Births,
    FormatError,
    Snapshots,
    SparkplugDecoder,
    rebirth_request,
    sparkplug_metric,
)
from gateway.sources.formats.protobuf import fields, length_field, varint_field

TEN_MS = 1_767_607_200_000
NBIRTH, NDATA, NDEATH = (f"spBv1.0/plant/{kind}/edge1" for kind in ("NBIRTH", "NDATA", "NDEATH"))
DBIRTH, DDATA, DDEATH = (f"spBv1.0/plant/{kind}/edge1/meter7" for kind in ("DBIRTH", "DDATA", "DDEATH"))


def power(value: int, alias: int = 2) -> bytes:
    """A DATA message as edge nodes send it: the alias, and the number as an unsigned one."""
    return sparkplug(metric(alias=alias, rest=field(10, value % 2**32)))


def born(birth: bytes = BIRTH) -> SparkplugDecoder:
    decoder = SparkplugDecoder()
    decoder.parse(DBIRTH, birth)
    return decoder


def value(rest: bytes, datatype: int | None = None) -> object:
    document = SparkplugDecoder().parse(DDATA, sparkplug(metric(name="a", datatype=datatype, rest=rest)))
    return sparkplug_metric("a")(document)


def test_a_birth_is_a_reading_of_all_metrics() -> None:
    assert SparkplugDecoder().parse(DBIRTH, BIRTH) == {
        "Meter/Power": 0,
        "Meter/Power|t": TEN_MS,
        "Meter/Energy": 0.0,
        "Meter/Energy|t": TEN_MS,
    }


def test_an_alias_is_what_the_birth_called_it() -> None:
    document = born().parse(DDATA, power(310))
    assert sparkplug_metric("Meter/Power")(document) == 310
    assert sparkplug_metric("Meter/Power|t")(document) == TEN_MS
    with pytest.raises(LookupError):
        sparkplug_metric("Meter/Energy")(document)


def test_a_metric_may_have_a_time_of_its_own_or_none_at_all() -> None:
    own = sparkplug(metric(alias=2, rest=field(3, TEN_MS - 5) + field(10, 1)))
    assert born().parse(DDATA, own)["Meter/Power|t"] == TEN_MS - 5
    none = sparkplug(metric(alias=2, rest=field(10, 1)), time_ms=None)
    with pytest.raises(LookupError):
        sparkplug_metric("Meter/Power|t")(born().parse(DDATA, none))


@pytest.mark.parametrize(("datatype", "bits"), [(1, 8), (2, 16), (3, 32), (4, 64)])
@given(data=st.data())
def test_signed_numbers_come_back_from_their_unsigned_fields(
    datatype: int, bits: int, data: st.DataObject
) -> None:
    number = data.draw(st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1))
    width = data.draw(st.sampled_from([32, 64] if bits < 64 else [64]))
    extended = data.draw(st.sampled_from([bits, width]))
    where = 10 if width == 32 else 11
    assert value(field(where, number % 2**extended), datatype) == number


def test_an_int_of_32_bits_widened_to_64_is_still_that_int() -> None:
    assert value(field(10, -12 % 2**64), 3) == -12


@pytest.mark.parametrize("number", [256, 2**16 + 5, 2**31, 2**32 - 129])
def test_a_number_beyond_its_type_is_refused(number: int) -> None:
    with pytest.raises(FormatError, match="beyond its type"):
        value(field(10, number), 1)


@pytest.mark.parametrize(
    ("rest", "datatype", "expected"),
    [
        (field(10, 2**32 - 1), 7, 2**32 - 1),
        (field(11, 2**64 - 1), 8, 2**64 - 1),
        (field(12, 412.5, "<f"), None, 412.5),
        (field(13, 4711.815, "<d"), None, 4711.815),
        (field(14, 1), None, True),
        (field(15, "0401"), None, "0401"),
        (field(13, float("nan"), "<d"), None, None),
        (field(12, float("inf"), "<f"), None, None),
        (field(7, 1), None, None),
        (field(7, 1) + field(10, 5), None, None),
        (field(7, 0) + field(10, 5), 7, 5),
        (b"", None, None),
        (field(5, 1) + field(9, b"\x0a\x00") + field(10, 5), 7, 5),
    ],
)
def test_values_of_every_kind(rest: bytes, datatype: int | None, expected: object) -> None:
    found = value(rest, datatype)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    "message", [power(5), power(5, alias=9), sparkplug(metric(name="x", rest=field(10, 5)))]
)
def test_what_only_a_birth_explains_asks_for_one(message: bytes) -> None:
    decoder = SparkplugDecoder()
    if message != power(5):
        decoder.parse(DBIRTH, BIRTH)
    with pytest.raises(BirthNeeded) as needed:
        decoder.parse(DDATA, message)
    assert (needed.value.group, needed.value.node) == ("plant", "edge1")


def test_a_birth_explains_its_own_node_or_device_and_no_other() -> None:
    decoder = born()
    for topic in (
        NDATA,
        "spBv1.0/plant/DDATA/edge1/meter8",
        "spBv1.0/plant/DDATA/edge2/meter7",
        "spBv1.0/x/DDATA/edge1/meter7",
    ):
        with pytest.raises(BirthNeeded):
            decoder.parse(topic, power(5))


def test_a_later_birth_replaces_the_earlier() -> None:
    decoder = born()
    decoder.parse(DBIRTH, sparkplug(metric(name="Other", alias=2, datatype=7, rest=field(10, 1))))
    assert decoder.parse(DDATA, power(-1)) == {"Other": 2**32 - 1, "Other|t": TEN_MS}


@pytest.mark.parametrize("birth", [b"", b"\x00", sparkplug(metric(alias=1, datatype=3))])
def test_a_birth_that_cannot_be_read_still_ends_the_one_before(birth: bytes) -> None:
    decoder = born()
    with pytest.raises(FormatError):
        decoder.parse(DBIRTH, birth)
    with pytest.raises(BirthNeeded):
        decoder.parse(DDATA, power(5))


def test_a_death_ends_what_the_birth_said() -> None:
    decoder = born()
    assert decoder.parse(DDEATH, sparkplug()) == {}
    with pytest.raises(BirthNeeded):
        decoder.parse(DDATA, power(5))


@pytest.mark.parametrize("topic", [NBIRTH, NDEATH])
def test_a_node_that_is_born_or_dies_takes_its_devices_along(topic: str) -> None:
    decoder = born()
    decoder.parse(topic, sparkplug())
    with pytest.raises(BirthNeeded):
        decoder.parse(DDATA, power(5))


def session(number: int) -> bytes:
    return sparkplug(metric(name="bdSeq", datatype=8, rest=field(11, number)))


def test_the_late_will_of_an_earlier_session_ends_nothing() -> None:
    decoder = SparkplugDecoder()
    decoder.parse(NBIRTH, session(4))
    decoder.parse(DBIRTH, BIRTH)
    decoder.parse(NDEATH, session(3))
    assert decoder.parse(DDATA, power(5))["Meter/Power"] == 5
    decoder.parse(NDEATH, session(4))
    with pytest.raises(BirthNeeded):
        decoder.parse(DDATA, power(5))


@pytest.mark.parametrize(
    "metrics",
    [
        [metric(alias=1, datatype=3, rest=field(10, 1))],
        [metric(name="a", alias=1, rest=field(10, 1))],
        [metric(name="a", alias=1, datatype=3), metric(name="a", alias=2, datatype=3)],
        [metric(name="a", alias=1, datatype=3), metric(name="b", alias=1, datatype=3)],
        [metric(name=f"{i}", datatype=3) for i in range(5_001)],
    ],
)
def test_a_birth_that_explains_nothing_or_too_much_is_refused(metrics: list[bytes]) -> None:
    with pytest.raises(FormatError, match="birth"):
        SparkplugDecoder().parse(DBIRTH, sparkplug(*metrics))


@pytest.mark.parametrize(
    "message",
    [
        sparkplug(metric(name="a", rest=field(14, 1)), metric(name="a", rest=field(14, 1))),
        sparkplug(metric(name="a|t", rest=field(14, 1))),
        sparkplug(metric(rest=field(14, 1))),
        sparkplug(metric(name="x" * 257, rest=field(14, 1))),
        sparkplug(metric(rest=field(1, b"\xff"))),
        sparkplug(metric(name="a", rest=field(10, "5"))),
        field(1, "x"),
        field(2, 5),
        b"\x00\x01",
        b"\x0b\x0c",
        b"\x0f",
        b"\x12\x05a",
        b"\x08" + b"\xff" * 10 + b"\x01",
        b"\x08\x80",
        b"not protobuf",
    ],
)
def test_what_is_no_sparkplug_payload_is_refused(message: bytes) -> None:
    with pytest.raises(FormatError):
        SparkplugDecoder().parse(DDATA, message)


@pytest.mark.parametrize(
    "topic",
    [
        "",
        "spBv1.0",
        "spBv1.0/STATE/host",
        "spBv1.0/plant/NCMD/edge1",
        "spBv1.0/plant/DDATA/edge1",
        "spBv1.0/plant/DDATA/edge1/",
        "spBv1.0/plant/NDATA/edge1/meter7",
        "spBv1.0/plant/DDATA/edge1/meter7/x",
        "spAv1.0/plant/DDATA/edge1/meter7",
        "spBv1.0/plant/DDATA/edge1/" + "x" * 1_100,
    ],
)
def test_other_topics_are_refused(topic: str) -> None:
    with pytest.raises(FormatError, match="not a Sparkplug topic"):
        SparkplugDecoder().parse(topic, power(5))


def test_the_births_kept_are_bounded_and_the_node_used_longest_ago_goes_first() -> None:
    births = Births(most=30)
    decoder = SparkplugDecoder(births)
    for node in range(50):
        decoder.parse(f"spBv1.0/plant/DBIRTH/{node}/m", BIRTH)
        decoder.parse(
            "spBv1.0/plant/DBIRTH/0/m" if node == 0 else "spBv1.0/plant/DDATA/0/m",
            BIRTH if node == 0 else power(1),
        )
        assert len(births) <= 30
    assert decoder.parse("spBv1.0/plant/DDATA/0/m", power(1))["Meter/Power"] == 1
    with pytest.raises(BirthNeeded):
        decoder.parse("spBv1.0/plant/DDATA/1/m", power(1))


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["NBIRTH", "DBIRTH", "NDEATH", "DDEATH"]), st.integers(0, 2), st.integers(0, 2)
        )
    )
)
def test_what_is_kept_is_counted_exactly(messages: list[tuple[str, int, int]]) -> None:
    """Against the definition: the births that no later death or birth has ended."""
    births, alive = Births(), set[tuple[int, int | None]]()
    decoder = SparkplugDecoder(births)
    for kind, node, device in messages:
        if kind[0] == "N":
            decoder.parse(f"spBv1.0/g/{kind}/{node}", BIRTH)
            alive = {place for place in alive if place[0] != node}
        else:
            decoder.parse(f"spBv1.0/g/{kind}/{node}/{device}", BIRTH)
            alive.discard((node, device))
        if kind.endswith("BIRTH"):
            alive.add((node, device if kind[0] == "D" else None))
        assert len(births) == 3 * len(alive)


def test_nothing_is_kept_of_nodes_that_died() -> None:
    decoder = SparkplugDecoder()
    tracemalloc.start()
    try:
        for node in range(2_000):
            decoder.parse(f"spBv1.0/plant/DBIRTH/{node}/m", BIRTH)
            decoder.parse(
                f"spBv1.0/plant/{'DDEATH' if node % 2 else 'NDEATH'}/{node}{'/m' * (node % 2)}", sparkplug()
            )
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 50_000


def test_a_rebirth_is_asked_for_by_a_command_to_the_node() -> None:
    topic, payload = rebirth_request("plant", "edge1", TEN_MS)
    assert topic == "spBv1.0/plant/NCMD/edge1"
    ((asked, _, asked_ms), (number, _, command)) = fields(payload)
    assert (asked, asked_ms, number) == (1, TEN_MS, 2)
    assert isinstance(command, bytes)
    assert {key: said for key, _, said in fields(command)} == {1: b"Node Control/Rebirth", 4: 11, 14: 1}


@pytest.mark.parametrize("address", ["", "|t"])
def test_an_address_names_a_metric(address: str) -> None:
    with pytest.raises(ValueError, match="write"):
        sparkplug_metric(address)


def test_values_of_several_moments_are_told_moment_by_moment() -> None:
    """What a node stored while it was offline comes in one message."""
    decoder = SparkplugDecoder()
    old = length_field(1, b"P") + varint_field(3, TEN_MS - 60_000) + varint_field(4, 3) + varint_field(10, 7)
    new = length_field(1, b"P") + varint_field(3, TEN_MS) + varint_field(4, 3) + varint_field(10, 8)
    found = decoder.parse(NDATA, length_field(2, old) + length_field(2, new))
    assert isinstance(found, Snapshots)
    assert found.documents == [{"P": 7, "P|t": TEN_MS - 60_000}, {"P": 8, "P|t": TEN_MS}]


def test_two_values_of_one_moment_are_refused() -> None:
    one = length_field(1, b"P") + varint_field(3, TEN_MS) + varint_field(4, 3) + varint_field(10, 7)
    other = length_field(1, b"Q") + varint_field(3, TEN_MS) + varint_field(4, 3) + varint_field(10, 7)
    with pytest.raises(FormatError, match="twice"):
        SparkplugDecoder().parse(NDATA, length_field(2, one) + length_field(2, other) + length_field(2, one))
