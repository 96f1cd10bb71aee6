"""Quantities as people write them: "30min", "14.5 kW". Parsed exactly, into integer ms and mW."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer
from pydantic_core import PydanticCustomError

_MS = {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_MW = {"mW": 1, "W": 1_000, "kW": 1_000_000, "MW": 1_000_000_000}
_MWH = {"Wh": 1_000, "kWh": 1_000_000, "MWh": 1_000_000_000}
_NUMBER = re.compile(r"\s*([+-]?[0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([A-Za-z]+)\s*")
MAX_POWER_MW = 10**12
MAX_ENERGY_MWH = 10**15
MAX_DURATION_MS = 10 * 366 * 86_400_000


def refused(problem: str, remedy: str, field: str | None = None) -> PydanticCustomError:
    """Return the error that a validator raises.

    Args:
        problem: what is wrong with the value.
        remedy: what to write instead.
        field: the field to correct, where the validator is a table's.

    """
    return PydanticCustomError("refused", "{problem}", {"problem": problem, "remedy": remedy, "field": field})


def duration_ms(text: object) -> int:
    """Return the milliseconds of a text like ``"30min"``.

    Raises:
        PydanticCustomError: not a text, no unit, or not a positive whole number of ms.

    """
    exact = _scaled(text, _MS, 'a time with a unit, like "30min", "2h" or "1s"')
    if exact <= 0 or exact != int(exact) or exact > MAX_DURATION_MS:
        problem = "not a positive whole number of milliseconds, or more than ten years"
        raise refused(problem, 'write a time like "30min", "2h" or "1s"')
    return int(exact)


def power_mw(text: object) -> int:
    """Return the milliwatts of a text like ``"14.5 kW"``.

    Raises:
        PydanticCustomError: not a text, no unit, finer than 1 mW, or beyond 1 GW.

    """
    exact = _scaled(text, _MW, 'a power with a unit, like "14.5 kW" or "0 W"')
    if exact != int(exact) or abs(exact) > MAX_POWER_MW:
        raise refused("finer than 1 mW, or beyond 1 GW", 'write a power like "14.5 kW" or "0 W"')
    return int(exact)


def energy_mwh(text: object) -> int:
    """Return the milliwatt-hours of a text like ``"100000 kWh"``.

    Raises:
        PydanticCustomError: not a text, no unit, not a positive whole number of mWh, or beyond 1 TWh.

    """
    exact = _scaled(text, _MWH, 'an energy with a unit, like "100000 kWh"')
    if exact <= 0 or exact != int(exact) or exact > MAX_ENERGY_MWH:
        raise refused("not a positive whole number of mWh, or beyond 1 TWh", 'write one like "100000 kWh"')
    return int(exact)


def _scaled(text: object, units: dict[str, int], wanted: str) -> Decimal:
    found = _NUMBER.fullmatch(text) if isinstance(text, str) else None
    if found is None or found[2] not in units:
        raise refused("not a number with a known unit", f"write {wanted}; units: {', '.join(units)}")
    return Decimal(found[1]) * units[found[2]]


def written_duration(ms: int) -> str:
    """Return the shortest exact text of a duration in ms."""
    unit = next(name for name, size in reversed(_MS.items()) if ms % size == 0)
    return f"{ms // _MS[unit]}{unit}"


def written_power(mw: int) -> str:
    """Return an exact text of a power in mW, in W or kW."""
    unit = "kW" if mw and mw % 100_000 == 0 and abs(mw) >= _MW["kW"] else "W"
    return f"{(Decimal(mw) / _MW[unit]).normalize():f} {unit}"


def written_time(moment_ms: int) -> str:
    """Return ms since 1970 as ISO 8601 UTC, with ms where there are some."""
    moment = datetime.fromtimestamp(moment_ms // 1_000, UTC).replace(microsecond=moment_ms % 1_000 * 1_000)
    text = moment.isoformat(timespec="milliseconds" if moment_ms % 1_000 else "seconds")
    return text.replace("+00:00", "Z")


Duration = Annotated[int, BeforeValidator(duration_ms), PlainSerializer(written_duration)]
"""A duration in ms, written with a unit."""

Energy = Annotated[int, BeforeValidator(energy_mwh)]
"""An energy in mWh, written with a unit."""

Power = Annotated[int, BeforeValidator(power_mw), PlainSerializer(written_power)]
"""A power in mW, written with a unit."""
