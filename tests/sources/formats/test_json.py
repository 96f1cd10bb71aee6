"""JSON pointers lead where RFC 6901 says."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.sources.formats import FormatError, format_named

JSON = format_named("json")


def found(document: object, pointer: str) -> object:
    return JSON.compile(pointer)(JSON.parse(json.dumps(document).encode()))


RFC_6901: dict[str, Any] = {
    "foo": ["bar", "baz"],
    "": 0,
    "a/b": 1,
    "c%d": 2,
    "e^f": 3,
    "g|h": 4,
    "i\\j": 5,
    'k"l': 6,
    " ": 7,
    "m~n": 8,
}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", RFC_6901),
        ("/foo", ["bar", "baz"]),
        ("/foo/0", "bar"),
        ("/", 0),
        ("/a~1b", 1),
        ("/c%d", 2),
        ("/e^f", 3),
        ("/g|h", 4),
        ("/i\\j", 5),
        ('/k"l', 6),
        ("/ ", 7),
        ("/m~0n", 8),
    ],
)
def test_the_examples_of_rfc_6901_are_found(pointer: str, value: object) -> None:
    assert found(RFC_6901, pointer) == value


@pytest.mark.parametrize(
    ("pointer", "document"),
    [
        ("//", {"": {"": 5}}),
        ("/~01", {"~1": 5}),
        ("/~10", {"/0": 5}),
        ("/-1", {"-1": 5}),
        ("/-", {"-": 5}),
        ("/01", {"01": 5}),
        ("/0", {"0": 5}),
        ("/0", [5]),
        ("/0/v", [{"v": 5}]),
        ("/data/0/value", {"data": [{"value": 5}]}),
        ("/data/10", {"data": [0] * 10 + [5]}),
        ("/params/em:0/total", {"params": {"em:0": {"total": 5}}}),
        ("/a/b/c/d/0", {"a": {"b": {"c": {"d": [5]}}}}),
    ],
)
def test_keys_and_indices_are_told_apart_by_what_they_lead_into(pointer: str, document: object) -> None:
    assert found(document, pointer) == 5


@pytest.mark.parametrize(
    "token",
    ["-", "-1", "01", "00", "+1", " 1", "1 ", "1_0", "1.0", "１", "11", "", "x", "9" * 30, "9" * 5_000],
)
@pytest.mark.parametrize("outer", ["", "/e", "/e/f"])
def test_an_array_has_no_element_but_those_that_rfc_6901_counts(outer: str, token: str) -> None:
    array = list(range(11))
    document = {"": array, "/e": {"e": array}, "/e/f": {"e": {"f": array}}}[outer]
    with pytest.raises(LookupError):
        found(document, f"{outer}/{token}")


@pytest.mark.parametrize("document", [5, 0.5, "text", None, True, [], {}, {"e": {}}, {"e": "x"}, {"e": None}])
@pytest.mark.parametrize("pointer", ["/e/f", "/e/f/g", "/0/0", "/x"])
def test_a_pointer_into_what_has_no_such_member_finds_nothing(document: object, pointer: str) -> None:
    with pytest.raises(LookupError):
        found(document, pointer)


@given(st.lists(st.text(), max_size=4), st.integers())
def test_any_path_of_keys_is_found_by_its_escaped_pointer(path: list[str], value: int) -> None:
    document: object = value
    for key in reversed(path):
        document = {key: document}
    pointer = "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in path)
    assert JSON.compile(pointer)(document) == value


@pytest.mark.parametrize("pointer", ["energy", "energy/total", "~", "/~", "/a~2", "/a~/b"])
def test_what_is_no_pointer_is_answered_with_what_to_write(pointer: str) -> None:
    with pytest.raises(ValueError, match=r"write|stands only"):
        JSON.compile(pointer)


@pytest.mark.parametrize(
    "payload",
    [
        b" ",
        b"\0",
        b"\xff\xfe",
        '{"e":1}'.encode("utf-16"),
        b'{"e":1',
        b'{"e":1}}',
        b'{"e":"\xff"}',
        b'{"e":"\\ud800"}',
        b'{"Temperature":nan}',
        b"[NaN]",
        b"Infinity",
        b"1e400",
        b"00000000",
        b'{"s":"!E9E7\n"}',
        b"'1'",
        b"[" * 50_000 + b"]" * 50_000,
    ],
)
def test_what_is_not_one_json_document_in_utf_8_is_refused(payload: bytes) -> None:
    with pytest.raises(FormatError, match="not one JSON document"):
        JSON.parse(payload)


def test_of_a_repeated_key_the_last_counts() -> None:
    assert JSON.compile("/e")(JSON.parse(b'{"e":1,"e":2}')) == 2


def test_a_byte_order_mark_before_the_document_is_passed_over() -> None:
    assert format_named("json").parse(b'\xef\xbb\xbf{"e":1}') == {"e": 1}
