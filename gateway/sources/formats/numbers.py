"""Numbers as text: one strict grammar, read exactly, and the format of payloads that are one number."""

from __future__ import annotations

import re
from fractions import Fraction

from gateway.sources.formats.documents import EmptyPayload, Find, Format, FormatError

_LONGEST = 64
_BLANKS = " \t\r\n"
_MOST_ZEROS = 400
_GRAMMAR = r"([+-]?)([0-9]+)(?:{}([0-9]+))?(?:[eE]([+-]?[0-9]{{1,3}}))?"
_NUMBERS = {mark: re.compile(_GRAMMAR.format(re.escape(mark))) for mark in (".", ",")}
_EITHER = re.compile(_GRAMMAR.format("[.,]"))


def number_of(text: str, decimal: str = ".") -> int | Fraction:
    """Return the exact value of a number as text.

    Args:
        text: a sign or none, digits, a fraction or none, an exponent of ten or none, all ASCII, at most
            64 characters; blanks around it are allowed.
        decimal: what separates the fraction, "." or ",".

    Raises:
        ValueError: the text is no such number.

    """
    found = _NUMBERS[decimal].fullmatch(text.strip(_BLANKS)) if len(text) <= _LONGEST else None
    if found is None:
        raise ValueError("not a number")
    sign, whole, fraction, exponent = found.groups()
    if fraction is None and exponent is None:
        return int(sign + whole)
    power = int(exponent or 0) - len(fraction or "")
    if abs(power) > _MOST_ZEROS:
        raise ValueError("not a number of this world")
    return _scaled(int(sign + whole + (fraction or "")), power)


def _scaled(digits: int, power: int) -> int | Fraction:
    if power >= 0:
        return digits * int(10**power)
    exact = Fraction(digits, 10**-power)
    return exact.numerator if exact.denominator == 1 else exact


def parse(payload: bytes) -> object:
    """Return a payload that is one number as its text, without the blanks around it.

    Both decimal signs pass: which one a source writes is declared where the value is read.
    """
    if not payload:
        raise EmptyPayload
    text = payload.strip(_BLANKS.encode()).decode("latin-1") if len(payload) <= _LONGEST else ""
    if not _EITHER.fullmatch(text):
        raise FormatError("not a number")
    return text


def whole(address: str) -> Find:
    """Return the look-up of the only address, ""."""
    if address:
        raise ValueError('a payload that is one number has no fields: write ""')
    return lambda document: document


FORMAT = Format(parse, whole)
