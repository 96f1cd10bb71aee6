"""DSMR P1 telegrams and IEC 62056-21 D0 read-outs, addressed by OBIS codes and "ident".

Registers stand as "1-0:1.8.1(001842.492*kWh)". The check sum is CRC16/ARC from "/" to "!" [DSMR P1 5.0.2,
5.2]; DSMR 2.2 and D0 have none. Bridges add line noise after the end, change line ends on the way or pass
the telegram as hex digits; they also cut and mix telegrams, which is refused.
"""

from __future__ import annotations

import re

from gateway.sources.formats.documents import EmptyPayload, Find, Format, FormatError, Measured

_HEADER = re.compile(rb"/([^\r\n!/]{4,80})[\r\n]")
_ANY_HEADER = re.compile(rb"/[A-Za-z]{3}[^)*\r\n]")
_END = re.compile(rb"[\r\n](!)")
_CHECK = re.compile(rb"([0-9A-Fa-f]{0,4})[ \t\0]*(?:[\r\n]|\Z)")
_LINE_END = re.compile(rb"\r\n|\r|\n")
_HEX_TELEGRAM = re.compile(rb"2[Ff](?:[0-9A-Fa-f]{2})+")
_BLANKS = b" \t\r\n\0"
# DSMR telegrams are a few kB; the check sum of more is work for nothing.
_LONGEST = 16_384
_OBIS = r"(?:[0-9]{1,3}-[0-9]{1,3}:)?[0-9A-Z]{1,3}\.[0-9A-Z]{1,3}(?:\.[0-9]{1,3})?(?:[*&][0-9]{1,3})?"
# Values may go on in the next line: DSMR 2.2 writes gas so.
_REGISTER = re.compile(rf"({_OBIS})((?:\([^()\r\n]*\)[ \t\r\n]*)+)")
_VALUE = re.compile(r"\(([^()]*)\)")
_ADDRESS = re.compile(_OBIS)
_MBUS = re.compile(r"0-[1-9][0-9]?:24\.")
_EQUIPMENT = re.compile(r"0-[0-9]{1,2}:(?:96\.1\.[01]|42\.0\.0)")
_ARC = 0xA001


def _arc(octet: int) -> int:
    for _ in range(8):
        octet = octet >> 1 ^ (_ARC if octet & 1 else 0)
    return octet


_CRC = [_arc(octet) for octet in range(256)]


def crc16(octets: bytes) -> int:
    """Return CRC16/ARC (polynomial 0x8005 reflected, start 0)."""
    crc, table = 0, _CRC
    for octet in octets:
        crc = crc >> 8 ^ table[(crc ^ octet) & 0xFF]
    return crc


def parse(payload: bytes) -> object:
    """Return {OBIS code: Measured or text, "ident": header} of one telegram; "*255" is left off the codes.

    Of several values, M-Bus channels keep the last with a unit, other registers the first; without any unit
    the last and the first. Equipment numbers in hex are decoded.
    """
    if not payload:
        raise EmptyPayload
    telegram = payload.strip(_BLANKS)
    if len(telegram) > 2 * _LONGEST:
        raise FormatError("longer than any P1 telegram")
    if _HEX_TELEGRAM.fullmatch(telegram):
        telegram = bytes.fromhex(telegram.decode())
    header = _HEADER.match(telegram)
    end = _END.search(telegram)
    if header is None or end is None:
        raise FormatError("no P1 telegram from its header to its end")
    _check(telegram[: end.end()], telegram[end.end() :])
    if _ANY_HEADER.search(telegram, 1):
        raise FormatError("a second P1 header in one payload")
    return _document(header[1], telegram[header.end() : end.start(1)])


def _check(telegram: bytes, rest: bytes) -> None:
    found = _CHECK.match(rest)
    if found is None:
        raise FormatError("no P1 check sum after the end")
    if not found[1]:
        return
    expected = int(found[1], 16)
    if crc16(telegram) != expected and crc16(_LINE_END.sub(b"\r\n", telegram)) != expected:
        raise FormatError("P1 check sum")


def _document(ident: bytes, body: bytes) -> dict[str, Measured | str]:
    try:
        text = body.strip(_BLANKS).decode("ascii")
        document: dict[str, Measured | str] = {"ident": ident.decode("ascii").strip()}
    except UnicodeDecodeError:
        raise FormatError("a P1 telegram that is not ASCII") from None
    position = 0
    while position < len(text):
        found = _REGISTER.match(text, position)
        if found is None:
            raise FormatError("a P1 line that is no register")
        position = found.end()
        code = found[1].removesuffix("*255")
        if code in document:
            raise FormatError("a P1 register that stands twice")
        document[code] = _value(code, _VALUE.findall(found[2]))
    return document


def _value(code: str, values: list[str]) -> Measured | str:
    measured = [value for value in values if "*" in value] or values
    value = measured[-1] if _MBUS.match(code) else measured[0]
    number, star, unit = value.partition("*")
    if star:
        return Measured(number, unit)
    return _equipment(value) if _EQUIPMENT.fullmatch(code) else value


def _equipment(number: str) -> str:
    """Return an equipment number, decoded if it is hex of printable ASCII or of nothing but NUL."""
    try:
        octets = bytes.fromhex(number)
    except ValueError:
        return number
    decoded = octets.decode("latin-1")
    printable = decoded.isascii() and decoded.isprintable()
    return decoded if printable or not any(octets) else number


def register(address: str) -> Find:
    """Return the look-up of an OBIS code as the telegram writes it, or of "ident", the header."""
    if address != "ident" and not _ADDRESS.fullmatch(address):
        raise ValueError('a P1 address is an OBIS code or "ident": write "1-0:1.8.0"')
    code = address.removesuffix("*255")
    return lambda document: document[code]


FORMAT = Format(parse, register)
