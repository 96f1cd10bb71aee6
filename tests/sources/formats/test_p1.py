"""P1 telegrams and D0 read-outs become registers with units, whole or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sources.formats.corpus import AUSTRIAN, BELGIAN, DSMR_2, DUTCH, READ_OUT, arc_bit_by_bit, telegram

from gateway.sources.formats import FormatError, Measured, format_named
from gateway.sources.formats.p1 import crc16

P1 = format_named("p1")


def found(payload: bytes, address: str) -> object:
    return P1.compile(address)(P1.parse(payload))


def one(value: str, code: str = "1-0:1.8.0") -> object:
    return found(telegram(f"{code}{value}"), code)


def refused(payload: bytes) -> str:
    with pytest.raises(FormatError) as refusal:
        P1.parse(payload)
    return refusal.value.reason


def test_the_check_sum_of_the_catalogue_of_crcs_is_found() -> None:
    """CRC-16/ARC: the check value of "123456789" is BB3D."""
    assert crc16(b"123456789") == arc_bit_by_bit(b"123456789") == 0xBB3D


@given(st.binary())
def test_the_check_sum_is_that_of_the_shift_register(octets: bytes) -> None:
    assert crc16(octets) == arc_bit_by_bit(octets)


@pytest.mark.parametrize(
    ("address", "value"),
    [
        ("ident", "XMX5LGF0000453094270"),
        ("0-0:1.0.0", "260312101500W"),
        ("0-0:96.1.1", "E0047000087654321"),
        ("1-0:1.8.1", Measured("004711.815", "kWh")),
        ("1-0:1.7.0", Measured("00.417", "kW")),
        ("0-0:96.14.0", "0001"),
        ("0-0:96.13.0", ""),
        ("0-1:24.2.1", Measured("00421.337", "m3")),
        ("1-0:1.8.1*255", Measured("004711.815", "kWh")),
    ],
)
def test_registers_of_a_dutch_telegram(address: str, value: object) -> None:
    assert found(telegram(*DUTCH), address) == value


def test_units_stay_as_the_meter_writes_them() -> None:
    payload = telegram(*AUSTRIAN)
    assert found(payload, "1-0:1.8.0") == Measured("001234567", "Wh")
    assert found(payload, "1-0:1.7.0") == Measured("000000310", "W")


def test_a_peak_with_its_time_is_the_peak() -> None:
    payload = telegram(*BELGIAN, header="FLU5\\253712345_A")
    assert found(payload, "1-0:1.6.0") == Measured("02.125", "kW")
    assert found(payload, "0-0:98.1.0") == Measured("03.500", "kW")
    assert found(payload, "0-1:24.2.3") == Measured("00052.125", "m3")
    assert found(payload, "0-0:96.1.4") == "50217"


def test_dsmr_2_has_no_check_sum_and_goes_on_in_the_next_line() -> None:
    payload = telegram(*DSMR_2, check=False)
    assert found(payload, "1-0:1.8.1") == Measured("00123.456", "kWh")
    assert found(payload, "0-1:24.3.0") == "00042.125"
    assert found(payload, "0-1:24.4.0") == "1"


def test_a_read_out_ends_at_its_mark_whatever_noise_follows() -> None:
    assert found(READ_OUT, "ident") == "ESY5Q3DB1024 V3.04"
    assert found(READ_OUT, "1-0:1.8.0") == Measured("00012345.6789012", "kWh")
    assert found(READ_OUT, "1-0:1.7.0") == Measured("000417.25", "W")
    assert found(READ_OUT, "0-0:96.1.255") == "1ESY1234567890"


def test_codes_without_medium_and_channel_are_registers_of_read_outs() -> None:
    payload = b"/ABC5METER\r\n\r\nF.F(00)\r\n1.8.0(001234.5*kWh)\r\n1.8.0*01(001200.0*kWh)\r\n!\r\n"
    assert found(payload, "1.8.0") == Measured("001234.5", "kWh")
    assert found(payload, "1.8.0*01") == Measured("001200.0", "kWh")
    assert found(payload, "F.F") == "00"


@pytest.mark.parametrize(
    ("hex_text", "number"),
    [
        ("4530303437303030303837363534333231", "E0047000087654321"),
        ("00000000000000", "\0" * 7),
        ("1ESY1234567890", "1ESY1234567890"),
        ("ADC3100000158491", "ADC3100000158491"),
        ("621848012D2C0B0C", "621848012D2C0B0C"),
        ("09610", "09610"),
        ("30052002", "30052002"),
        ("", ""),
    ],
)
def test_equipment_numbers_in_hex_of_readable_text_are_decoded(hex_text: str, number: str) -> None:
    assert one(f"({hex_text})", "0-0:96.1.1") == number
    assert one(f"({hex_text})", "0-1:96.1.0") == number
    assert one(f"({hex_text})", "0-0:42.0.0") == number


def test_other_registers_are_not_decoded() -> None:
    assert one("(5021)", "0-0:96.1.4") == "5021"
    assert one("(303132)", "0-0:96.13.0") == "303132"


@pytest.mark.parametrize("end", ["\n", "\r"])
def test_line_ends_may_have_changed_on_the_way(end: str) -> None:
    """The check sum is over what the meter sent, which ends its lines with CRLF."""
    assert found(telegram(*DUTCH, end=end), "1-0:1.8.1") == Measured("004711.815", "kWh")


def test_a_check_sum_may_lack_its_leading_zeros() -> None:
    short = next(
        payload
        for serial in range(1_000)
        if (payload := telegram(f"0-0:96.1.4({serial})")).partition(b"!")[2].startswith(b"0")
    )
    head, _, check = short.partition(b"!")
    assert P1.parse(head + b"!" + check.lstrip(b"0")) == P1.parse(short)
    assert P1.parse(head + b"!" + check.lower()) == P1.parse(short)


def test_a_telegram_in_hex_digits_is_that_telegram() -> None:
    payload = telegram(*DUTCH)
    assert P1.parse(payload.hex().encode()) == P1.parse(payload.hex().upper().encode()) == P1.parse(payload)


@given(st.integers(0, 2_000), st.integers(1, 255))
def test_one_wrong_byte_is_noticed(position: int, change: int) -> None:
    """A change may hit the check sum's case, or its absence; then the registers are right all the same."""
    payload = telegram(*DUTCH)
    position %= payload.index(b"!")
    changed = payload[:position] + bytes([payload[position] ^ change]) + payload[position + 1 :]
    try:
        assert P1.parse(changed) == P1.parse(payload)
    except FormatError:
        return


def test_what_is_longer_than_any_telegram_is_refused_before_it_is_summed() -> None:
    lines = [f"1-0:{high}.{low}.0(00001.000*kWh)" for high in range(100) for low in range(20)]
    assert refused(telegram(*lines)) == "longer than any P1 telegram"


def test_a_wrong_check_sum_is_refused() -> None:
    assert refused(telegram(*DUTCH).replace(b"00.417", b"00.917")) == "P1 check sum"


@pytest.mark.parametrize("closing", [b"!12345\r\n", b"!XYZ\r\n", b"!\xff\xff\r\n", b"!12 34\r\n"])
def test_something_else_than_a_check_sum_after_the_end_is_refused(closing: bytes) -> None:
    head = telegram(*AUSTRIAN, check=False).partition(b"!")[0]
    assert refused(head + closing) == "no P1 check sum after the end"


def test_a_telegram_that_starts_or_ends_elsewhere_is_refused() -> None:
    whole = telegram(*DUTCH)
    no_telegram = "no P1 telegram from its header to its end"
    assert refused(whole[5:]) == no_telegram
    assert refused(b"x" + whole) == no_telegram
    assert refused(whole.partition(b"!")[0]) == no_telegram
    assert refused(whole[30:] + whole[:30]) == no_telegram


def test_telegrams_mixed_into_each_other_are_refused() -> None:
    one, other = telegram(*AUSTRIAN, check=False), telegram(*DSMR_2, header="ISK5\\2M550E-1012", check=False)
    assert refused(one[:70] + other) == "a second P1 header in one payload"
    assert refused(one + other) == "a second P1 header in one payload"


def test_a_register_that_stands_twice_is_refused() -> None:
    twice = "a P1 register that stands twice"
    assert refused(telegram("1-0:1.8.0(1*kWh)", "1-0:1.8.0(2*kWh)")) == twice
    assert refused(telegram("1-0:1.8.0(1*kWh)", "1-0:1.8.0*255(1*kWh)")) == twice


@pytest.mark.parametrize(
    "line",
    ["1-0:1.8.0", "1-0:1.8.0(1*kWh", "1-0:1.8.0 1*kWh", "(1*kWh)", "ident(x)", "1-0:1.8.0((1*kWh))", "SML"],
)
def test_a_line_that_is_no_register_spoils_the_telegram(line: str) -> None:
    assert refused(telegram(line)) == "a P1 line that is no register"


def test_a_telegram_is_ascii() -> None:
    assert refused(telegram("1-0:1.8.0(\xb1*kWh)")) == "a P1 telegram that is not ASCII"


@pytest.mark.parametrize("address", ["", "/1", "power", "1-0:1.8.0(", "1-0:1.8.0 ", "Ident"])
def test_what_is_no_obis_code_is_answered_with_what_to_write(address: str) -> None:
    with pytest.raises(ValueError, match=r'write "1-0:1\.8\.0"'):
        P1.compile(address)
