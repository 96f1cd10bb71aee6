"""JSON in UTF-8, addressed by RFC 6901 pointers."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from gateway.sources.formats.documents import EmptyPayload, Find, Format, FormatError

_decode = msgspec.json.Decoder().decode
_BOM = b"\xef\xbb\xbf"
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_STRAY_TILDE = re.compile(r"~(?![01])")

_Step = tuple[str, int | None]
"""One token: the key in an object, and the index in an array if the token is one."""


def parse(payload: bytes) -> object:
    """Return the JSON document; NaN, infinities and numbers beyond a double are none."""
    try:
        # Some write a byte order mark before it.
        return _decode(payload.removeprefix(_BOM))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        if not payload:
            raise EmptyPayload from None
        raise FormatError("not one JSON document in UTF-8") from None


def pointer(address: str) -> Find:
    """Return the look-up of an RFC 6901 pointer; "" is the whole document."""
    steps = [_step(token) for token in _tokens(address)]
    if not steps:
        return _whole
    if len(steps) == 1:
        return _one(steps[0])
    if len(steps) == 2:  # noqa: PLR2004 - most pointers have one or two tokens
        return _two(steps[0], steps[1])
    return lambda document: _follow(document, steps)


def _tokens(address: str) -> list[str]:
    if address and not address.startswith("/"):
        raise ValueError('a JSON pointer starts with "/": write "/energy/total"')
    if _STRAY_TILDE.search(address):
        raise ValueError('in a JSON pointer "~" stands only in "~0" (for "~") and "~1" (for "/")')
    return [token.replace("~1", "/").replace("~0", "~") for token in address.split("/")[1:]]


def _step(token: str) -> _Step:
    """Return a token with its array index; RFC 6901 knows no signs, no leading zeros, no other digits."""
    return token, int(token) if _INDEX.fullmatch(token) else None


def _whole(document: object) -> object:
    return document


# Objects first: a list answers a text key with TypeError and takes the general way.
def _one(step: _Step) -> Find:
    key, steps = step[0], (step,)

    def find(document: Any) -> object:  # noqa: ANN401 - what JSON holds
        try:
            return document[key]
        except TypeError:
            return _follow(document, steps)

    return find


def _two(first: _Step, second: _Step) -> Find:
    outer, inner, steps = first[0], second[0], (first, second)

    def find(document: Any) -> object:  # noqa: ANN401 - what JSON holds
        try:
            return document[outer][inner]
        except TypeError:
            return _follow(document, steps)

    return find


def _follow(document: object, steps: tuple[_Step, ...] | list[_Step]) -> object:
    for key, index in steps:
        if type(document) is dict:
            document = document[key]
        elif type(document) is list and index is not None:
            document = document[index]
        else:
            raise LookupError("no such member")
    return document


FORMAT = Format(parse, pointer)
