"""[[source]]: one family of messages and how they become readings, declared."""

from __future__ import annotations

from difflib import get_close_matches
from fractions import Fraction
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, InstanceOf, PlainSerializer, model_validator

from gateway.config_base import AsList, Number, Table
from gateway.presets import PRESETS
from gateway.quantities import Duration, Energy, Power, refused
from gateway.topics import TopicTemplate

MWH_PER_UNIT: dict[str, Fraction] = {
    "mWh": Fraction(1),
    "Wh": Fraction(1_000),
    "kWh": Fraction(10**6),
    "MWh": Fraction(10**9),
    "J": Fraction(5, 18),
    "mJ": Fraction(5, 18_000),
    "kJ": Fraction(5_000, 18),
    "MJ": Fraction(5_000_000, 18),
    "Wmin": Fraction(1_000, 60),
}
"""Units of energy, in mWh."""

MW_PER_UNIT: dict[str, Fraction] = {
    "mW": Fraction(1),
    "W": Fraction(1_000),
    "kW": Fraction(10**6),
    "MW": Fraction(10**9),
}
"""Units of power, in mW."""

_TIME_FORMATS = ("auto", "s", "ms", "us", "ns", "iso", "dsmr", "cosem")
# Where a format itself says whose reading it is.
_OWN_IDS = {"p1": ["0-0:96.1.1", "ident"]}
_UNITLESS = ("p1", "senml")
_NEAREST = 5


def _template(text: str) -> str:
    try:
        TopicTemplate.parse(text)
    except ValueError:
        remedy = 'write one like "meters/{household}/reading"; + and # stand alone in a level, # at the end'
        raise refused("not a topic filter", remedy) from None
    return text


def _preset(name: str) -> str:
    if name not in PRESETS:
        near = get_close_matches(name, PRESETS, _NEAREST, cutoff=0)
        raise refused("no such preset", f"write one of {', '.join(near)}, or another of docs/sources")
    return name


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        raise refused("not a time zone", 'write one like "Europe/Amsterdam", or "UTC"') from None
    return name


def _time_format(name: str) -> str:
    if name not in _TIME_FORMATS and "%" not in name:
        raise refused(
            "not a time's format",
            f'write one of {", ".join(_TIME_FORMATS)}, or a pattern like "%Y-%m-%d %H:%M"',
        )
    return name


def _separator(text: str) -> str:
    if len(text) != 1 or text in '"\r\n\0':
        raise refused("not a character that can separate columns", 'write ",", ";" or a tab')
    return text


def _scale(value: object) -> Fraction:
    try:
        exact = Fraction(str(value)) if type(value) in {int, float, str} else None
    except (ValueError, ZeroDivisionError):
        exact = None
    if exact is None or not 0 < exact <= 10**9:
        raise refused("not a factor above 0 and up to 10^9", 'write a number, or a fraction like "1/60"')
    return exact


class TimeField(Table):
    """Where a message says its time."""

    at: str = Field(description='where it stands: a pointer like "/ts", or an address of the format')
    format: Annotated[str, AfterValidator(_time_format)] = Field(
        "auto",
        description='"auto": ISO 8601 with an offset, or s or ms since 1970; "s", "ms", "us", "ns"; "iso"; '
        '"dsmr" (S and W flags); "cosem"; or a pattern like "%d.%m.%Y %H:%M"',
    )
    zone: Annotated[str, AfterValidator(_zone)] | None = Field(
        None, description='of times without an offset, as "Europe/Vienna"; left out: such times are refused'
    )


class UnitField(Table):
    """Where a message says its unit."""

    at: str = Field(description='pointer to a unit\'s name, as "kWh"')


Unit = Literal["mW", "W", "kW", "MW", "mWh", "Wh", "kWh", "MWh", "J", "kJ", "MJ", "Wmin"]
Addresses = Annotated[list[str], AsList]
Guard = str | int | float | bool


class SourceTable(Table):
    """One family of messages and how they become readings."""

    preset: Annotated[str, AfterValidator(_preset)] | None = Field(
        None, description="what a known device or bridge sends; the fields beside it come first"
    )
    topic: Annotated[str, AfterValidator(_template)] = Field(
        description="a topic; {household} or another {name} captures a part of a level, + is one level: "
        '"meters/{household}/reading"'
    )
    format: Literal["json", "number", "csv", "p1", "senml", "sparkplug", "axdr"] = Field(
        "json", description='"json", "number", "csv", "p1", "senml", "sparkplug" or "axdr"'
    )
    steps: Annotated[list[Literal["hex", "base64", "cut7e"]], AsList] = Field(
        [], description='before the format: "hex", "base64", "cut7e" (from the first to the last byte 7E)'
    )
    separator: Annotated[str, AfterValidator(_separator)] = Field(
        ",", description="what stands between the columns of csv"
    )
    each: str | None = Field(
        None,
        description="pointer to a list or an object of meters in one message; values and serial then start in "
        "each of them, other pointers there or else at the message; {key} is its name or number",
    )
    when: dict[str, Guard | list[Guard]] = Field(
        {}, description='messages that count: { "/Type" = "IDM" }, or a list of values; others are ignored'
    )
    value: Addresses = Field(
        [],
        description="where the value stands: a pointer, or a list of them that is summed; "
        'with format = "number" it is left out',
    )
    minus: Addresses = Field([], description="pointers whose values are taken off, as export from import")
    unit: Unit | UnitField | None = Field(
        None,
        description='W, kW, mW, MW, Wh, kWh, mWh, MWh, J, kJ, MJ or Wmin; or { at = "/unit" }; left out where '
        "the format says it (p1, senml)",
    )
    scale: Annotated[InstanceOf[Fraction], BeforeValidator(_scale), PlainSerializer(str)] = Field(
        Fraction(1), description='the value times this is in the unit: 10, 0.001 or "1/60"'
    )
    sign: Literal["import", "export"] = Field(
        "import", description='what a positive value is; "export" turns the sign'
    )
    decimal: Literal[".", ","] = Field(".", description="the decimal sign of numbers in texts")
    sentinels: Annotated[list[Number], AsList] = Field(
        [], description="numbers that mean: no value, as the message writes them"
    )
    limit: Power = Field(
        10**9, description="the most power, in or out, that the connection carries; more is not believed"
    )
    quantity: Literal["interval", "power", "register"] = Field(
        "interval",
        description='"interval": the energy of one interval; "power": samples; "register": a running total',
    )
    interval: Duration | None = Field(
        None, description="the interval's length, the slot's or a part of it; left out: the slot's"
    )
    stamp: Literal["start", "end"] = Field("start", description="which end of the interval the time stamps")
    gap: Duration | None = Field(
        None,
        description="power and registers: two readings further apart leave a gap; left out: half a slot",
    )
    gaps: Literal["spread", "missing"] = Field(
        "spread", description='registers: the energy of a gap is "spread" evenly over it, or "missing"'
    )
    modulus: Energy | None = Field(
        None, description='registers: where they start again from 0, as "100000 kWh"; left out: nowhere'
    )
    serial: str | None = Field(
        None, description="registers: where the meter's number stands; another one is a replaced meter"
    )
    time: TimeField | Literal["arrival"] | None = Field(
        None,
        description='{ at = "/ts" }, with format and zone where needed; "arrival"; left out: what the format '
        "says (sparkplug, senml), else arrival",
    )
    meter: Addresses = Field(
        [],
        description='whose reading it is: the first that is there of "{capture}", "/pointer", "=constant"; '
        "left out: the topic's {household} or {meter}, else its first capture, else a telegram's own id",
    )
    meters: Annotated[list[str], AsList] = Field(
        ["*"], min_length=1, description="patterns of the meters that this source speaks for"
    )
    max_bytes: int = Field(
        65_536,
        ge=1,
        le=1_000_000,
        strict=True,
        description="longer payloads are kept out; past 1 MiB the broker drops them before we see them",
    )

    @model_validator(mode="before")
    @classmethod
    def _expanded(cls, given: object) -> object:
        """Fill in what the preset says; a preset that does not exist is a fault of its field."""
        if isinstance(given, dict) and isinstance(name := given.get("preset"), str):
            return {**PRESETS.get(name, {}), **given}
        return given

    @property
    def units(self) -> dict[str, Fraction]:
        """The units that fit the quantity, in mW or mWh."""
        return MW_PER_UNIT if self.quantity == "power" else MWH_PER_UNIT

    @property
    def candidates(self) -> list[str]:
        """Where the meter's id is looked for, in order."""
        captures = TopicTemplate.parse(self.topic).captures
        named = [name for name in ("household", "meter") if name in captures] or captures[:1]
        own = [f"{{{name}}}" for name in named[:1]] or _OWN_IDS.get(self.format, [])
        return self.meter or own

    @property
    def says_unit(self) -> bool:
        """Whether the format's values carry their units."""
        return self.format in _UNITLESS
