"""Whatever bytes arrive, a format gives a document or says why not, quickly and in bounds."""

import time
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sources.formats.corpus import PAYLOADS

from gateway.sources.formats import (
    FORMATS,
    EmptyPayload,
    FormatError,
    Measured,
    SparkplugDecoder,
    format_named,
    sparkplug_metric,
)

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

ADDRESSES = {
    "json": ["", "/meter/power/0", "/1.8.0", "/ts/x/y", "/0"],
    "number": [""],
    "csv": ["0", "2", "9999"],
    "p1": ["ident", "1-0:1.8.1", "0-1:24.2.1"],
    "senml": ["m1/power", "m1/power|v", "m1/power|s", "urn:dev:mac:01/power|t"],
    "axdr": ["/0", "/1/2"],
    "sparkplug": ["Meter/Power", "Meter/Power|t"],
}
VALUES: dict[str, tuple[type, ...]] = {
    "json": (int, float, str, list, dict),
    "number": (str,),
    "csv": (str,),
    "p1": (Measured, str),
    "senml": (Measured, int, float, str),
    "axdr": (int, float, str, bytes, list),
    "sparkplug": (int, float, str),
}
NAMES = sorted(ADDRESSES)
EVERY_PAYLOAD = [payload for name in NAMES for payload in PAYLOADS[name]]


def parser(name: str) -> Callable[[bytes], object]:
    if name != "sparkplug":
        return format_named(name).parse
    decoder = SparkplugDecoder()
    return lambda payload: decoder.parse("spBv1.0/plant/DDATA/edge1/meter7", payload)


def parsed(name: str, payload: bytes) -> object:
    """The document, or the reason why there is none."""
    try:
        return parser(name)(payload)
    except FormatError as refusal:
        return refusal


def assert_read_or_refused(name: str, payload: bytes) -> None:
    compiled = sparkplug_metric if name == "sparkplug" else format_named(name).compile
    document = parsed(name, payload)
    if isinstance(document, FormatError):
        assert 0 < len(document.reason) < 80
        return
    for address in ADDRESSES[name]:
        try:
            found = compiled(address)(document)
        except LookupError:
            continue
        assert found is None or isinstance(found, VALUES[name])


def test_every_format_but_the_one_that_needs_topics_has_its_name() -> None:
    assert set(FORMATS) == set(NAMES) - {"sparkplug"}


@pytest.mark.parametrize("name", ["JSON", "xml", ""])
def test_an_unknown_format_is_answered_with_the_known_ones(name: str) -> None:
    with pytest.raises(ValueError, match="json, number, csv, p1, senml, axdr"):
        format_named(name)


def test_an_option_that_a_format_does_not_have_is_an_error() -> None:
    with pytest.raises(TypeError):
        format_named("json", separator=";")


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_payload_is_a_cleared_topic_in_every_format(name: str) -> None:
    with pytest.raises(EmptyPayload):
        parser(name)(b"")


@pytest.mark.parametrize("name", [name for name in NAMES if name != "sparkplug"])
def test_each_format_reads_its_own_payloads(name: str) -> None:
    for payload in PAYLOADS[name]:
        format_named(name).parse(payload)


@pytest.mark.parametrize("name", NAMES)
def test_each_format_reads_or_refuses_the_payloads_of_every_other(name: str) -> None:
    for payload in EVERY_PAYLOAD:
        assert_read_or_refused(name, payload)


@pytest.mark.parametrize("name", NAMES)
def test_a_payload_cut_anywhere_is_read_or_refused(name: str) -> None:
    for payload in PAYLOADS[name]:
        for length in range(len(payload)):
            assert_read_or_refused(name, payload[:length])


@pytest.mark.parametrize("name", NAMES)
@unhurried
@given(payload=st.binary(max_size=200))
def test_random_bytes_are_read_or_refused(name: str, payload: bytes) -> None:
    assert_read_or_refused(name, payload)


@st.composite
def mutated(draw: st.DrawFn, name: str) -> bytes:
    """A payload of the format with some of its bytes replaced, dropped, added or moved."""
    payload = draw(st.sampled_from(PAYLOADS[name]))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(payload)))
        end = draw(st.integers(start, min(len(payload), start + 8)))
        other = draw(st.binary(max_size=4) | st.sampled_from(EVERY_PAYLOAD))
        payload = payload[:start] + other + payload[end:]
    return payload


@pytest.mark.parametrize("name", NAMES)
@unhurried
@given(data=st.data())
def test_payloads_with_changed_bytes_are_read_or_refused(name: str, data: st.DataObject) -> None:
    assert_read_or_refused(name, data.draw(mutated(name)))


HUGE = {
    "brackets": b"[" * 60_000,
    "objects": b'{"a":' * 12_000,
    "digits": b"9" * 60_000,
    "a number's exponent": b"1e999999999",
    "commas": b"," * 60_000,
    "a quote": b'"' + b"x" * 60_000,
    "a header": b"/" * 60_000,
    "registers": b"/XMX5LG\r\n\r\n" + b"1-0:1.8.1(1*kWh)\r\n" * 3_000 + b"!\r\n",
    "parentheses": b"/XMX5LG\r\n\r\n1-0:1.8.1" + b"(1)" * 5_000 + b"x\r\n!\r\n",
    "blank lines": b"/XMX5LG\r\n\r\n1-0:1.8.1(1)" + b"\r\n" * 5_000 + b"x\r\n!\r\n",
    "CBOR arrays": b"\x81" * 60_000,
    "endless CBOR arrays": b"\x9f" * 60_000,
    "a CBOR array of 2**63": b"\x9b\x7f" + b"\xff" * 7 + b"\xa0" * 100,
    "a CBOR text of 2**63": b"\x81\xa1\x00\x7b\x7f" + b"\xff" * 7,
    "a CBOR big number": b"\x81\xa1\x02\xc2\x59\xea\x60" + b"\xff" * 60_000,
    "a CBOR shared reference": b"\x81\xd8\x1c\x81\xd8\x1d\x00",
    "CBOR keys of one hash": b"\x81\xb9\x20\x00"
    + b"".join(
        b"\x8d" + bytes(0x20 | (key >> bit & 1) for bit in range(13)) + b"\x00" for key in range(1 << 13)
    )[:60_000],
    "A-XDR structures": b"\x02\x01" * 30_000,
    "A-XDR lengths": b"\x01\x84\xff\xff\xff\xff" * 10_000,
    "an A-XDR string of 2**32": b"\x02\x01\x09\x84\xff\xff\xff\xff",
    "a protobuf number": b"\x08" + b"\xff" * 60_000,
    "a protobuf length": b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
    "empty protobuf messages": b"\x12\x00" * 30_000,
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", HUGE)
def test_no_payload_of_sixty_kilobytes_takes_long_or_much_memory(name: str, case: str) -> None:
    started = time.process_time()
    assert_read_or_refused(name, HUGE[case])
    assert time.process_time() - started < 1
    tracemalloc.start()
    try:
        assert_read_or_refused(name, HUGE[case])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 30_000_000
