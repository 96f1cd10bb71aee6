"""Whose reading it is: the meter's id, and the number of the meter behind a register."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b

from gateway.sources.formats import Find
from gateway.sources.items import Item
from gateway.sources.readings import Reason, RejectedError

_LONGEST_ID = 128
_CAPTURE = re.compile(r"\{([a-z][a-z0-9_]*)\}")


def meter_named(candidates: Sequence[str], captures: Mapping[str, str]) -> str | None:
    """Return the meter that a topic alone names; None where its messages must be looked at."""
    first = _candidate(candidates[0], captures, _nowhere)
    return first if isinstance(first, str) and first else None


def meter_reader(
    candidates: Sequence[str], captures: Mapping[str, str], find: Callable[[str], Find]
) -> Callable[[object], str]:
    """Return what tells a document's meter: the first candidate that names one.

    Args:
        candidates: "{capture}", "/pointer" or "=constant", in order.
        captures: what the topic captured.
        find: compiles an address.

    """
    readers = [_candidate(text, captures, find) for text in candidates]
    if isinstance(fixed := readers[0], str) and fixed:
        return lambda _: fixed

    def meter(document: object) -> str:
        for reader in readers:
            found = reader if isinstance(reader, str) else reader(document)
            if found and len(found) <= _LONGEST_ID:
                return found
        raise RejectedError(Reason.NO_METER)

    return meter


def _candidate(
    text: str, captures: Mapping[str, str], find: Callable[[str], Find]
) -> str | Callable[[object], str]:
    """Return a meter's id where it is known, else what finds it; an empty text is no id."""
    if text.startswith("="):
        return text[1:]
    if "{key}" in text:
        return lambda item: _filled(text, {**captures, "key": item.key if isinstance(item, Item) else ""})
    if _CAPTURE.search(text):
        return _filled(text, captures)
    look = find(text)

    def found(document: object) -> str:
        try:
            value = look(document)
        except LookupError:
            return ""
        return _identity(value)

    return found


def _nowhere(_: str) -> Find:
    return lambda _: None


def _identity(value: object) -> str:
    """Return the text of an id: texts, whole numbers, and octets as ASCII or else hexadecimal."""
    if type(value) is bytes:
        return value.decode("ascii").strip() if value.isascii() else value.hex()
    if type(value) is str:
        return value.strip()
    return str(value) if type(value) is int else ""


def _filled(text: str, captures: Mapping[str, str]) -> str:
    return _CAPTURE.sub(lambda name: captures.get(name[1], ""), text)


def serial_of(look: Find, document: object) -> int:
    """Return a number for the meter's number: 63 bits of its hash, 0 where there is none."""
    try:
        value = look(document)
    except LookupError:
        return 0
    text = _identity(value)
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) >> 1 if text else 0
