"""Payloads of every format with values of their own, in the shapes that meters and bridges send."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import cbor2


def arc_bit_by_bit(octets: bytes) -> int:
    """CRC16/ARC from its definition: a shift register that is fed one bit after the other."""
    register = 0
    for octet in octets:
        for place in range(8):
            carry = register & 1 ^ octet >> place & 1
            register = register >> 1 ^ (0xA001 if carry else 0)
    return register


def telegram(
    *lines: str, header: str = "XMX5LGF0000453094270", end: str = "\r\n", check: bool = True
) -> bytes:
    """A P1 telegram of some lines with its check sum, which is always that of CRLF line ends."""
    text = "\r\n".join([f"/{header}", "", *lines, "!"]).encode("latin-1")
    closing = b"%04X" % arc_bit_by_bit(text) if check else b""
    return text.replace(b"\r\n", end.encode()) + closing + end.encode()


DUTCH = (
    "1-3:0.2.8(50)",
    "0-0:1.0.0(260312101500W)",
    "0-0:96.1.1(4530303437303030303837363534333231)",
    "1-0:1.8.1(004711.815*kWh)",
    "1-0:1.8.2(003207.250*kWh)",
    "1-0:2.8.1(000017.000*kWh)",
    "0-0:96.14.0(0001)",
    "1-0:1.7.0(00.417*kW)",
    "1-0:2.7.0(00.000*kW)",
    "1-0:99.97.0(1)(0-0:96.7.19)(251231040812W)(0000000244*s)",
    "0-0:96.13.0()",
    "1-0:32.7.0(231.5*V)",
    "0-1:24.1.0(003)",
    "0-1:96.1.0(4730303738353030313233343536373839)",
    "0-1:24.2.1(260312101000W)(00421.337*m3)",
)
BELGIAN = (
    "0-0:96.1.4(50217)",
    "0-0:96.1.1(3153414731323334353637383930)",
    "0-0:1.0.0(260712134500S)",
    "1-0:1.8.1(000120.001*kWh)",
    "1-0:1.6.0(260709134500S)(02.125*kW)",
    "0-0:98.1.0(2)(1-0:1.6.0)(1-0:1.6.0)(260601000000S)(260523192500S)(03.500*kW)(260501000000S)(05.250*kW)",
    "0-1:24.2.3(260712134000S)(00052.125*m3)",
)
AUSTRIAN = ("0-0:1.0.0(260106155014W)", "1-0:1.8.0(001234567*Wh)", "1-0:1.7.0(000000310*W)")
DSMR_2 = (
    "0-0:96.1.1(00000000000000)",
    "1-0:1.8.1(00123.456*kWh)",
    "1-0:1.7.0(0000.31*kW)",
    "0-1:24.3.0(160312190000)(00)(60)(1)(0-1:24.2.1)(m3)",
    "(00042.125)",
    "0-1:24.4.0(1)",
)
READ_OUT = (
    b"/ESY5Q3DB1024 V3.04\r\n\r\n1-0:0.0.0*255(0271234567890)\r\n1-0:1.8.0*255(00012345.6789012*kWh)\r\n"
    b"1-0:1.7.0*255(000417.25*W)\r\n0-0:96.1.255*255(1ESY1234567890)\r\n!\r\n  12345678\r\n"
    + b"\xff" * 32
    + b"\r\n"
)


def varint(value: int) -> bytes:
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def field(number: int, value: float | bytes | str, layout: str = "") -> bytes:
    """One protobuf field: text and bytes with their length, a float by its struct layout, else a varint."""
    if isinstance(value, str | bytes):
        octets = value.encode() if isinstance(value, str) else value
        return varint(number << 3 | 2) + varint(len(octets)) + octets
    if layout:
        return varint(number << 3 | (5 if layout == "<f" else 1)) + struct.pack(layout, value)
    return varint(number << 3) + varint(int(value))


def metric(
    *, name: str = "", alias: int | None = None, datatype: int | None = None, rest: bytes = b""
) -> bytes:
    """One Sparkplug metric; its value and whatever else stands in it come encoded."""
    parts = [field(1, name) if name else b"", b"" if alias is None else field(2, alias)]
    return b"".join([*parts, b"" if datatype is None else field(4, datatype), rest])


def sparkplug(*metrics: bytes, time_ms: int | None = 1_767_607_200_000) -> bytes:
    """One Sparkplug payload."""
    time = b"" if time_ms is None else field(1, time_ms)
    return time + b"".join(field(2, entry) for entry in metrics) + field(3, 7)


BIRTH = sparkplug(
    metric(name="Meter/Power", alias=2, datatype=3, rest=field(10, 0)),
    metric(name="Meter/Energy", alias=3, datatype=10, rest=field(13, 0.0, "<d")),
)
CLOCK = bytes.fromhex("07ea0105010a0000ff800000")
A_XDR = b"\x02\x04\x09\x0c" + CLOCK + b"\x06" + struct.pack(">I", 4_711_815) + b"\x0f\xf4\x09\x0830052002"

PAYLOADS: dict[str, Sequence[bytes]] = {
    "json": [
        b'{"ts":"2026-01-05T10:00:00Z","meter":{"power":[298,7,0]},"1.8.0":4711}',
        b"190",
        b"[1,2]",
        b"null",
    ],
    "number": [b"0002", b" 563.25\r\n", b"-1.5E3", b"2,32"],
    "csv": [b"10,11,12", b'"a",2,-65\r\n'],
    "p1": [
        telegram(*DUTCH),
        telegram(*BELGIAN, header="FLU5\\253712345_A"),
        telegram(*AUSTRIAN),
        telegram(*DSMR_2, check=False),
        READ_OUT,
        telegram(*DUTCH).hex().encode(),
    ],
    "senml": [
        b'[{"bn":"urn:dev:mac:01/","bt":1767607200,"n":"power","u":"W","v":310.5,"s":7200},{"n":"import","u":"kWh","v":4711.8}]',
        cbor2.dumps(
            [{-2: "m1/", -3: 1_767_607_200, 0: "power", 1: "W", 2: 310.5}, {0: "import", 1: "Wh", 2: 4711}]
        ),
    ],
    "axdr": [A_XDR, b"\x02\x00"],
    "sparkplug": [BIRTH, sparkplug(metric(alias=2, rest=field(10, 2**32 - 12)))],
}
