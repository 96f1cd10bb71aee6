"""A-XDR structures become nested lists, addressed by position."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sources.formats.corpus import A_XDR, CLOCK

from gateway.sources.formats import FormatError, format_named

A_XDR_FORMAT = format_named("axdr")


def only(element: bytes) -> object:
    return A_XDR_FORMAT.compile("/0")(A_XDR_FORMAT.parse(b"\x02\x01" + element))


@pytest.mark.parametrize(
    ("address", "value"), [("/0", CLOCK), ("/1", 4_711_815), ("/2", -12), ("/3", b"30052002")]
)
def test_elements_are_found_by_position(address: str, value: object) -> None:
    assert A_XDR_FORMAT.compile(address)(A_XDR_FORMAT.parse(A_XDR)) == value


@pytest.mark.parametrize(
    ("element", "value"),
    [
        (b"\x00", None),
        (b"\x03\x01", True),
        (b"\x03\x00", False),
        (b"\x04\x0b\xff\xe0", b"\xff\xe0"),
        (b"\x05\xff\xff\xff\xff", -1),
        (b"\x06\xff\xff\xff\xff", 2**32 - 1),
        (b"\x09\x02\x00\xff", b"\x00\xff"),
        (b"\x09\x81\x02ab", b"ab"),
        (b"\x09\x82\x00\x02ab", b"ab"),
        (b"\x0a\x03KFM", "KFM"),
        (b"\x0c\x02\xc3\xa4", "ä"),
        (b"\x0f\x80", -128),
        (b"\x10\x80\x00", -(2**15)),
        (b"\x11\xff", 255),
        (b"\x12\xff\xff", 2**16 - 1),
        (b"\x14" + b"\xff" * 8, -1),
        (b"\x15" + b"\xff" * 8, 2**64 - 1),
        (b"\x16\x1e", 30),
        (b"\x17" + struct.pack(">f", 230.5), 230.5),
        (b"\x18" + struct.pack(">d", 230.1), 230.1),
        (b"\x18" + struct.pack(">d", float("nan")), None),
        (b"\x19" + CLOCK, CLOCK),
        (b"\x01\x02\x11\x01\x11\x02", [1, 2]),
        (b"\x02\x00", []),
    ],
)
def test_every_type_that_registers_have(element: bytes, value: object) -> None:
    found = only(element)
    assert found == value
    assert type(found) is type(value)


def encoded(tree: object) -> bytes:
    if isinstance(tree, list):
        return bytes([2, len(tree)]) + b"".join(map(encoded, tree))
    assert isinstance(tree, int)
    return b"\x14" + struct.pack(">q", tree)


@given(
    st.lists(
        st.recursive(
            st.integers(-(2**63), 2**63 - 1), lambda inner: st.lists(inner, max_size=4), max_leaves=8
        ).filter(lambda tree: depth(tree) < 8),
        max_size=5,
    )
)
def test_any_tree_of_numbers_comes_back(tree: list[object]) -> None:
    assert A_XDR_FORMAT.parse(encoded(tree)) == tree


def depth(tree: object) -> int:
    return 1 + max(map(depth, tree), default=0) if isinstance(tree, list) else 0


def test_positions_lead_into_structures_and_not_beyond() -> None:
    document = A_XDR_FORMAT.parse(b"\x02\x02\x02\x02\x11\x01\x11\x02\x11\x03")
    assert A_XDR_FORMAT.compile("/0/1")(document) == 2
    for address in ("/2", "/0/2", "/1/0", "/0/0/0"):
        with pytest.raises(LookupError):
            A_XDR_FORMAT.compile(address)(document)


@pytest.mark.parametrize(
    "payload",
    [
        A_XDR[:-1],
        A_XDR + b"\x00",
        b"\x11\x01",
        b"\x02",
        b"\x02\x80",
        b"\x02\x85\x00\x00\x00\x00\x01\x00",
        b"\x02\x01\x07\x00",
        b"\x02\x01\xff",
        b"\x02\x01\x0a\x01\xe4",
        b"\x02\x01\x0c\x01\xe4",
        b"\x02\x01" * 9 + b"\x00",
        b"\x7e\xa0\x79",
    ],
)
def test_what_is_not_one_whole_structure_is_refused(payload: bytes) -> None:
    with pytest.raises(FormatError):
        A_XDR_FORMAT.parse(payload)


@pytest.mark.parametrize("address", ["", "/", "0", "/-1", "/01", "/1/", "/a", "/１", "/10000"])
def test_what_is_no_position_is_answered_with_what_to_write(address: str) -> None:
    with pytest.raises(ValueError, match='write "/1"'):
        A_XDR_FORMAT.compile(address)
