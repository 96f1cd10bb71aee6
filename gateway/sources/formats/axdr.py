"""A bare A-XDR structure (DLMS data without a frame), addressed by positions: "/1", "/0/2".

The encoding is that of IEC 62056-5-3 and IEC 61334-6: a tag, a length where the type has one, big-endian
octets. Octet strings stay bytes, since only the mapping knows whether they hold a clock or a text.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable

from gateway.sources.formats.documents import EmptyPayload, Find, Format, FormatError

_DEEPEST = 8
_LONG_FORM = 0x80
_WIDEST_LENGTH = 4
_POSITIONS = re.compile(r"(?:/(?:0|[1-9][0-9]{0,3}))+")
_COLLECTIONS = frozenset({1, 2})
_FIXED = {
    3: struct.Struct(">?"),
    5: struct.Struct(">i"),
    6: struct.Struct(">I"),
    15: struct.Struct(">b"),
    16: struct.Struct(">h"),
    17: struct.Struct(">B"),
    18: struct.Struct(">H"),
    20: struct.Struct(">q"),
    21: struct.Struct(">Q"),
    22: struct.Struct(">B"),
    23: struct.Struct(">f"),
    24: struct.Struct(">d"),
    25: struct.Struct(">12s"),
    26: struct.Struct(">5s"),
    27: struct.Struct(">4s"),
}
_TEXTS: dict[int, Callable[[bytes], bytes | str]] = {
    9: bytes,
    10: lambda octets: octets.decode("ascii"),
    12: bytes.decode,
}


class _Octets:
    """The payload and how far it has been read."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._next = 0

    def __len__(self) -> int:
        return len(self._payload) - self._next

    def take(self, count: int) -> bytes:
        if count > len(self):
            raise FormatError("A-XDR data ends early")
        self._next += count
        return self._payload[self._next - count : self._next]

    def length(self) -> int:
        first = self.take(1)[0]
        if first < _LONG_FORM:
            return first
        width = first - _LONG_FORM
        if not 1 <= width <= _WIDEST_LENGTH:
            raise FormatError("not an A-XDR length")
        return int.from_bytes(self.take(width))


def parse(payload: bytes) -> object:
    """Return the nested lists of a structure or an array: int, float, bool, str, bytes and None in them."""
    if not payload:
        raise EmptyPayload
    if payload[0] not in _COLLECTIONS:
        raise FormatError("not an A-XDR structure")
    octets = _Octets(payload)
    document = _data(octets, _DEEPEST)
    if len(octets):
        raise FormatError("bytes after the A-XDR structure")
    return document


def _data(octets: _Octets, deeper: int) -> object:
    tag = octets.take(1)[0]
    if tag == 0:
        return None
    if tag in _COLLECTIONS:
        return _collection(octets, deeper)
    if tag in _FIXED:
        return _fixed(octets, _FIXED[tag])
    if tag in _TEXTS:
        return _text(octets, tag)
    if tag == 4:  # noqa: PLR2004 - bit-string: the length counts bits
        return octets.take(-(-octets.length() // 8))
    raise FormatError("an A-XDR type that no register has")


def _collection(octets: _Octets, deeper: int) -> list[object]:
    count = octets.length()
    if not deeper:
        raise FormatError("A-XDR data nested too deep")
    # A count beyond the payload ends with it: the shortest element is one octet.
    return [_data(octets, deeper - 1) for _ in range(count)]


def _fixed(octets: _Octets, layout: struct.Struct) -> object:
    (value,) = layout.unpack(octets.take(layout.size))
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _text(octets: _Octets, tag: int) -> bytes | str:
    try:
        return _TEXTS[tag](octets.take(octets.length()))
    except UnicodeDecodeError:
        raise FormatError("an A-XDR text in another alphabet") from None


def positions(address: str) -> Find:
    """Return the look-up of a position, "/1" for the second element, "/0/2" for the third of the first."""
    if not _POSITIONS.fullmatch(address):
        raise ValueError('an A-XDR address is positions from 0: write "/1", or "/0/2" inside a structure')
    path = [int(position) for position in address.split("/")[1:]]

    def find(document: object) -> object:
        for position in path:
            if type(document) is not list:
                raise LookupError("no such element")
            document = document[position]
        return document

    return find


FORMAT = Format(parse, positions)
