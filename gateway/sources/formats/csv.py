"""One CSV record, addressed by column numbers from 0."""

from __future__ import annotations

import csv
import re

from gateway.sources.formats.documents import EmptyPayload, Find, Format, FormatError

_COLUMN = re.compile(r"0|[1-9][0-9]{0,3}")


def csv_format(separator: str = ",") -> Format:
    """Return the format of records whose fields a character separates.

    Raises:
        ValueError: the separator is not one character that can be one.

    """
    if len(separator) != 1 or separator in '"\r\n\0':
        raise ValueError('a separator is one character: write "," or ";" or a tab')
    return Format(lambda payload: _record(payload, separator), column)


def _record(payload: bytes, separator: str) -> list[str]:
    if not payload:
        raise EmptyPayload
    try:
        text = payload.decode()
        rows = list(csv.reader([text.rstrip("\r\n")], delimiter=separator, strict=True))
    except (UnicodeDecodeError, csv.Error):
        raise FormatError("not a CSV record in UTF-8") from None
    if len(rows) != 1 or not rows[0] or "\n" in text.rstrip("\r\n"):
        raise FormatError("not one CSV record")
    # Blanks around a field are layout; which end of the record is the last column may change.
    return [field.strip() for field in rows[0]]


def column(address: str) -> Find:
    """Return the look-up of a column, counted from the front."""
    if not _COLUMN.fullmatch(address):
        raise ValueError('a CSV column is its number from 0: write "0" for the first')
    index = int(address)
    return lambda document: document[index]
