"""The wire format of protocol buffers, as far as Sparkplug needs it: fields of one message in order."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.sources.formats.documents import FormatError

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_WIDTHS = {FIXED64: 8, FIXED32: 4}
_LONGEST_VARINT = 10
_MORE = 0x80
_UINT64 = (1 << 64) - 1


def fields(message: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Yield (field number, wire type, value): an int for varints, bytes for everything else.

    Raises:
        FormatError: the bytes are no message.

    """
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        number, wire = key >> 3, key & 7
        if not number:
            raise FormatError("a protobuf field without a number")
        if wire == VARINT:
            value, position = _varint(message, position)
            yield number, wire, value
            continue
        length, position = _length(message, position, wire)
        if length > len(message) - position:
            raise FormatError("a protobuf message that ends early")
        yield number, wire, message[position : position + length]
        position += length


def _length(message: bytes, position: int, wire: int) -> tuple[int, int]:
    if wire == LENGTH:
        return _varint(message, position)
    if wire not in _WIDTHS:
        raise FormatError("a protobuf wire type that is out of use")
    return _WIDTHS[wire], position


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift, octet in enumerate(message[position : position + _LONGEST_VARINT]):
        value |= (octet & ~_MORE) << 7 * shift
        if octet < _MORE:
            return value & _UINT64, position + shift + 1
    raise FormatError("a protobuf number that does not end")


def varint_field(number: int, value: int) -> bytes:
    """Return one varint field, encoded."""
    return _encoded(number << 3 | VARINT) + _encoded(value)


def length_field(number: int, value: bytes) -> bytes:
    """Return one length-delimited field, encoded."""
    return _encoded(number << 3 | LENGTH) + _encoded(len(value)) + value


def _encoded(value: int) -> bytes:
    octets = bytearray()
    while value >= _MORE:
        octets.append(value & 0x7F | _MORE)
        value >>= 7
    octets.append(value)
    return bytes(octets)
