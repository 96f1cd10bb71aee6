"""From what stands in a message to integer mW and mWh."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from gateway.source_table import MW_PER_UNIT, MWH_PER_UNIT, SourceTable, UnitField
from gateway.sources.formats import Find, Measured, number_of
from gateway.sources.readings import MAX_POWER_MW, MAX_REGISTER_MWH, Reason, RejectedError

_MS_PER_HOUR = 3_600_000
_LARGEST = 10**18
# Floats below are far from where their spacing is a whole unit.
_EXACT = 1e12

Amount = Callable[[object], int]
"""From a document to an amount in mW or mWh; raises RejectedError, or LookupError where it is not there."""


def amount_reader(source: SourceTable, find: Callable[[str], Find], span_ms: int) -> Amount:
    """Return what reads a source's amount: summed, less what is taken off, with its sign, and plausible.

    Args:
        source: the declaration.
        find: compiles an address.
        span_ms: the length of an interval.

    """
    sign = -1 if source.sign == "export" else 1
    number = _number_reader(source)
    plus = [(find(address), sign) for address in source.value or [""]]
    terms = plus + [(find(address), -sign) for address in source.minus]
    scale = _scale_reader(source, find)
    lowest, highest = _bounds(source, span_ms)

    def amount(document: object) -> int:
        factor = scale(document)
        total = 0
        for look, direction in terms:
            total += direction * number(look(document), factor)
        if not lowest <= total <= highest:
            raise RejectedError(Reason.IMPLAUSIBLE)
        return total

    def simple(document: object) -> int:
        value = look(document)
        # type(), not isinstance(): true and false are no numbers.
        if type(value) is float and -_EXACT < value < _EXACT:
            total = round(value * whole)
        elif type(value) is int:
            total = value * whole
        else:
            return amount(document)
        if not lowest <= total <= highest:
            raise RejectedError(Reason.IMPLAUSIBLE)
        return total

    fixed = scale(None) if not isinstance(source.unit, UnitField) and source.unit else None
    if fixed is None or fixed.denominator != 1 or len(terms) > 1 or source.sentinels:
        return amount
    look, whole = terms[0][0], fixed.numerator * sign
    return simple


def _scale_reader(source: SourceTable, find: Callable[[str], Find]) -> Callable[[object], Fraction | None]:
    """Return what tells the factor to mW or mWh; None where each value says its own unit."""
    unit, units = source.unit, source.units
    if unit is None:
        return lambda _: None
    if isinstance(unit, UnitField):
        look, factors = find(unit.at), {name: size * source.scale for name, size in units.items()}
        return lambda document: _factor(factors, look(document))
    factor: Fraction = units[unit] * source.scale
    return lambda _: factor


def _factor(factors: Mapping[str, Fraction], unit: object) -> Fraction:
    factor = factors.get(unit) if isinstance(unit, str) else None
    if factor is None:
        raise RejectedError(Reason.UNDECLARED_UNIT)
    return factor


def _number_reader(source: SourceTable) -> Callable[[object, Fraction | None], int]:
    sentinels, decimal = frozenset(map(float, source.sentinels)), source.decimal
    own = {name: size * source.scale for name, size in source.units.items()}

    def number(value: object, factor: Fraction | None) -> int:
        if isinstance(value, Measured):
            value, factor = value.number, _factor(own, value.unit)
        if type(value) is list and value:  # of nothing at all the sum would be a reading of 0
            return sum(number(part, factor) for part in value)
        exact = _exact(value, decimal)
        if sentinels and float(exact) in sentinels:
            raise RejectedError(Reason.SENTINEL)
        if factor is None:
            raise RejectedError(Reason.UNDECLARED_UNIT)
        return round(exact * factor)

    return number


def _exact(value: object, decimal: str) -> Fraction:
    if type(value) is str:
        try:
            exact = Fraction(number_of(value, decimal))
        except ValueError:
            raise RejectedError(Reason.NOT_A_NUMBER) from None
    elif type(value) is int:
        exact = Fraction(value)
    elif type(value) is float:
        # As it was written: 0.1 is a tenth.
        exact = Fraction(repr(value)) if abs(value) <= _LARGEST else Fraction(_LARGEST + 1)
    else:
        raise RejectedError(Reason.WRONG_TYPE)
    if abs(exact) > _LARGEST:
        raise RejectedError(Reason.IMPLAUSIBLE)
    return exact


def _bounds(source: SourceTable, span_ms: int) -> tuple[int, int]:
    if source.quantity == "register":
        return 0, MAX_REGISTER_MWH
    most = min(source.limit, MAX_POWER_MW)
    if source.quantity == "interval":
        most = most * span_ms // _MS_PER_HOUR
    return -most, most


assert set(MW_PER_UNIT).isdisjoint(MWH_PER_UNIT), "a unit says whether it is power or energy"
