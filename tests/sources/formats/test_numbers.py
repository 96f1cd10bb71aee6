"""Numbers as text are read exactly, or not at all."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.sources.formats import FormatError, format_named, number_of

NUMBER = format_named("number")

NO_NUMBERS = [
    "nan", "NaN", "inf", "-Infinity", "None", "unavailable", "off", "0x10", "1_000", "1 000", "1.", ".5", "+", "--1",
    "1e", "1e1.5", "1-0:1.8.0", "240216083001W", "002N7.0", "1.355\tRate too high", "03.06.2026, 13:27:06", "1,234.5",
    "1.234.567", "١٢", "１", "²", "1\x00", "\xa01", "1;2", '"1"', "{}", " ", "9" * 65, "1e9999",
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-0", 0),
        ("0002", 2),
        ("+5", 5),
        (" 230\r\n", 230),
        ("0.563", Fraction(563, 1000)),
        ("-1.50", Fraction(-3, 2)),
        ("63068.772", Fraction(63_068_772, 1000)),
        ("410009.500000", Fraction(820_019, 2)),
        ("2.0", 2),
        ("1e3", 1000),
        ("1.5E+3", 1500),
        ("25e-1", Fraction(5, 2)),
        ("1e400", 10**400),
        ("9" * 64, int("9" * 64)),
    ],
)
def test_a_number_is_read_exactly(text: str, value: int | Fraction) -> None:
    assert number_of(text) == value


def test_a_whole_number_is_an_int() -> None:
    assert [type(number_of(text)) for text in ("2", "2.0", "20e-1", "2.5")] == [int, int, int, Fraction]


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**12), max_value=10**12))
def test_every_decimal_is_read_as_what_it_is(number: Decimal) -> None:
    assert number_of(f"{number:f}") == Fraction(number)
    assert number_of(f"{number:f}".replace(".", ","), ",") == Fraction(number)


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a number"):
        number_of(text)
    with pytest.raises(FormatError, match="not a number"):
        NUMBER.parse(text.encode())


@pytest.mark.parametrize("text", ["1e999", "1e-999", "0.1e-400"])
def test_a_number_beyond_every_quantity_is_refused_before_it_is_computed(text: str) -> None:
    with pytest.raises(ValueError, match="not a number"):
        number_of(text)


def test_which_decimal_sign_counts_is_declared_where_the_value_is_read() -> None:
    text = NUMBER.compile("")(NUMBER.parse(b"2,32"))
    assert text == "2,32"
    assert number_of("2,32", ",") == Fraction(232, 100)
    with pytest.raises(ValueError, match="not a number"):
        number_of("2,32")
    with pytest.raises(ValueError, match="not a number"):
        number_of("2.32", ",")


def test_the_document_is_the_text_without_the_blanks_around_it() -> None:
    assert NUMBER.compile("")(NUMBER.parse(b" \t-1.5e3\r\n")) == "-1.5e3"


@pytest.mark.parametrize("address", ["/", "0", "value"])
def test_a_number_has_no_fields(address: str) -> None:
    with pytest.raises(ValueError, match='write ""'):
        NUMBER.compile(address)
