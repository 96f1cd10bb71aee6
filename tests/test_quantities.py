"""Quantities are read exactly, written so that they read back, and refused with a remedy."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from gateway.quantities import (
    MAX_DURATION_MS,
    MAX_POWER_MW,
    Duration,
    Power,
    duration_ms,
    power_mw,
    written_duration,
    written_power,
)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1ms", 1),
        ("1s", 1_000),
        ("30min", 1_800_000),
        ("30 min", 1_800_000),
        ("  1.5h ", 5_400_000),
        ("24h", 86_400_000),
        ("7d", 604_800_000),
        ("0.001s", 1),
        ("+2h", 7_200_000),
    ],
)
def test_durations_are_read(text: str, ms: int) -> None:
    assert duration_ms(text) == ms


@pytest.mark.parametrize(
    ("text", "mw"),
    [
        ("0 W", 0),
        ("14.5 kW", 14_500_000),
        ("14.5kW", 14_500_000),
        ("-3 kW", -3_000_000),
        ("0.001 W", 1),
        ("1 mW", 1),
        ("0.000001 kW", 1),
        ("1 MW", 10**9),
        ("1000 MW", MAX_POWER_MW),
        ("-1000 MW", -MAX_POWER_MW),
    ],
)
def test_powers_are_read(text: str, mw: int) -> None:
    """mW and MW are a billion apart: case matters."""
    assert power_mw(text) == mw


@pytest.mark.parametrize(
    "text",
    ["", "30", "min", "0s", "-1s", "0.5ms", "1.0001s", "30 Min", "1e3 s", "1,5h", "1h30min", 30, None, 1.5],
)
def test_what_is_no_duration_is_refused_with_a_remedy(text: object) -> None:
    with pytest.raises(PydanticCustomError) as refusal:
        duration_ms(text)
    assert '"30min"' in str((refusal.value.context or {})["remedy"])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "kW",
        "1 kw",
        "1 KW",
        "1 w",
        "0.5 mW",
        "0.0001 W",
        "1001 MW",
        "nan W",
        "inf kW",
        "1_0 W",
        "0x1 W",
        5,
        None,
    ],
)
def test_what_is_no_power_is_refused_with_a_remedy(text: object) -> None:
    with pytest.raises(PydanticCustomError) as refusal:
        power_mw(text)
    assert '"14.5 kW"' in str((refusal.value.context or {})["remedy"])


def test_a_power_finer_than_a_milliwatt_is_refused_however_little_finer() -> None:
    """Exact means exact, beyond 28 digits too."""
    with pytest.raises(PydanticCustomError):
        power_mw("1." + "0" * 40 + "1 W")


def test_a_duration_finer_than_a_millisecond_is_refused_however_little_finer() -> None:
    with pytest.raises(PydanticCustomError):
        duration_ms("1." + "0" * 40 + "1 s")


@given(st.integers(-MAX_POWER_MW, MAX_POWER_MW))
def test_a_written_power_reads_back(mw: int) -> None:
    assert power_mw(written_power(mw)) == mw


@given(st.integers(1, MAX_DURATION_MS))
@example(MAX_DURATION_MS)
def test_a_written_duration_reads_back(ms: int) -> None:
    assert duration_ms(written_duration(ms)) == ms


@pytest.mark.parametrize("text", ["3660d", "87840h", "316224000000ms"])
def test_ten_years_are_read_and_a_millisecond_more_is_refused(text: str) -> None:
    assert duration_ms(text) == MAX_DURATION_MS == 10 * 366 * 86_400_000
    with pytest.raises(PydanticCustomError, match="more than ten years") as refusal:
        duration_ms(written_duration(MAX_DURATION_MS + 1))
    assert '"30min"' in str((refusal.value.context or {})["remedy"])


@given(
    st.integers(-(10**6), 10**6),
    st.integers(0, 3),
    st.sampled_from([("mW", 0), ("W", 3), ("kW", 6), ("MW", 9)]),
)
def test_decimal_powers_are_exact_or_refused(digits: int, places: int, unit: tuple[str, int]) -> None:
    """Against integers: digits · 10^(unit − places) mW."""
    name, exponent = unit
    text = f"{Decimal(digits).scaleb(-places):f} {name}"
    numerator = digits * 10**exponent
    if numerator % 10**places or abs(numerator // 10**places) > MAX_POWER_MW:
        with pytest.raises(PydanticCustomError):
            power_mw(text)
    else:
        assert power_mw(text) == numerator // 10**places


@pytest.mark.parametrize(
    ("ms", "text"),
    [(1_800_000, "30min"), (86_400_000, "1d"), (5_400_000, "90min"), (1_500, "1500ms"), (7_200_000, "2h")],
)
def test_durations_are_written_in_the_largest_whole_unit(ms: int, text: str) -> None:
    assert written_duration(ms) == text


@pytest.mark.parametrize(
    ("mw", "text"),
    [
        (0, "0 W"),
        (14_500_000, "14.5 kW"),
        (-3_000_000, "-3 kW"),
        (1, "0.001 W"),
        (999_000, "999 W"),
        (1_234_567, "1234.567 W"),
        (100_000_000, "100 kW"),
        (10**12, "1000000 kW"),
    ],
)
def test_powers_are_written_without_exponents(mw: int, text: str) -> None:
    assert written_power(mw) == text


def test_models_read_and_write_them_with_units() -> None:
    assert TypeAdapter(Duration).validate_python("2min") == 120_000
    assert TypeAdapter(Duration).dump_python(120_000) == "2min"
    assert TypeAdapter(Power).validate_python("2 kW") == 2_000_000
    assert TypeAdapter(Power).dump_json(2_000_000) == b'"2 kW"'
    with pytest.raises(ValidationError, match="known unit"):
        TypeAdapter(Duration).validate_python(120_000)
