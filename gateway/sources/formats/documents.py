"""What a format is: bytes become a document, addresses are looked up in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Find = Callable[[Any], object]
"""From a document to the value at one address; raises LookupError where the document has none."""


class Measured(NamedTuple):
    """A value that says its own unit, as P1 registers and SenML records do.

    Attributes:
        number: the value, as a text where the format writes digits.
        unit: the unit as it stands in the payload.

    """

    number: int | float | str
    unit: str


class Snapshots(NamedTuple):
    """What one payload says of several moments.

    Attributes:
        documents: one for each moment, in the order of the payload.

    """

    documents: list[dict[str, Any]]


class FormatError(Exception):
    """A payload that is no document of the format; the text is public and holds nothing of the payload."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class EmptyPayload(FormatError):  # noqa: N818 - nothing is wrong with it: brokers clear kept messages so
    """A payload without a byte: the publisher cleared what the broker had kept."""

    def __init__(self) -> None:
        super().__init__("empty payload")


class Format(NamedTuple):
    """One payload format.

    Attributes:
        parse: from a payload to a document; raises FormatError and nothing else, whatever the bytes.
        compile: from an address to the function that looks it up; raises ValueError with what to write
            where the text is no address.

    """

    parse: Callable[[bytes], object]
    compile: Callable[[str], Find]
