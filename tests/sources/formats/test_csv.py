"""A CSV record is addressed by column, counted from the front."""

import pytest

from gateway.sources.formats import FormatError, format_named


def found(payload: bytes, column: str, **options: str) -> object:
    csv = format_named("csv", **options)
    return csv.compile(column)(csv.parse(payload))


@pytest.mark.parametrize(
    ("payload", "column", "value"),
    [
        (b"10,11,12", "1", "11"),
        (b"10,11,12\r\n", "2", "12"),
        (b"100, 200 ,300,-65", "1", "200"),
        (b"10", "0", "10"),
        (b"10,,12", "1", ""),
        (b'"a,b",5', "0", "a,b"),
        (b'"a ""b""",5', "0", 'a "b"'),
        ("Zähler,5".encode(), "0", "Zähler"),
    ],
)
def test_a_column_is_a_text(payload: bytes, column: str, value: str) -> None:
    assert found(payload, column) == value


@pytest.mark.parametrize(
    ("separator", "payload"), [(";", b"1,5;2,5"), ("\t", b"1,5\t2,5"), ("|", b"1,5|2,5")]
)
def test_the_separator_is_declared(separator: str, payload: bytes) -> None:
    assert found(payload, "1", separator=separator) == "2,5"


def test_a_column_that_the_record_lacks_is_not_found() -> None:
    with pytest.raises(LookupError):
        found(b"10,11", "2")


@pytest.mark.parametrize(
    "payload",
    [
        b"\n",
        b"1,2\n3,4",
        b"1,2\r3,4",
        b"1,2\r\n3,4\r\n",
        b'1,"2',
        b'1,"2\n3",4',
        b'1,"2"x',
        b"\xff,1",
        b"," + b"x" * 200_000,
    ],
)
def test_what_is_not_one_record_is_refused(payload: bytes) -> None:
    with pytest.raises(FormatError):
        found(payload, "0")


@pytest.mark.parametrize("address", ["", "-1", "01", "+1", "1.0", "a", "/0", "１", "10000"])
def test_what_is_no_column_number_is_answered_with_what_to_write(address: str) -> None:
    with pytest.raises(ValueError, match='write "0"'):
        format_named("csv").compile(address)


@pytest.mark.parametrize("separator", ["", ", ", '"', "\n", "\r", "\0"])
def test_what_cannot_separate_is_no_separator(separator: str) -> None:
    with pytest.raises(ValueError, match="write"):
        format_named("csv", separator=separator)
