"""SenML packs [RFC 8428] in JSON and CBOR, addressed by resolved names: "urn:dev:mac:01/power|v".

"NAME" or "NAME|v" is the value, "NAME|s" the sum (the time integral: J for W), "NAME|t" the time in s UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BytesIO
from typing import NamedTuple, NoReturn

import cbor2
import msgspec

from gateway.sources.formats.documents import EmptyPayload, Find, Format, FormatError, Measured, Snapshots

_Number = int | float
_Record = dict[object, object]

_VERSION = 10
_LARGEST = 1e300
# A long base name would count once for every record.
_LONGEST_NAME = 256
# RFC 8428, table 4: the labels in CBOR.
_LABELS: dict[object, str] = {
    -1: "bver", -2: "bn", -3: "bt", -4: "bu", -5: "bv", -6: "bs",
    0: "n", 1: "u", 2: "v", 3: "vs", 4: "vb", 5: "s", 6: "t", 7: "ut", 8: "vd",
}  # fmt: skip
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9:./_-]*")
_INTEGRAL = {"mW": "mJ", "W": "J", "kW": "kJ", "MW": "MJ"}
# RFC 8428, 4.5.3: less than that is relative to now.
_RELATIVE_BELOW = 1 << 28
# A pack is an array of maps, and no field of a record holds a container.
_CBOR_DEPTH = 2
_BASES = frozenset({"bver", "bn", "bt", "bu", "bv", "bs"})
_VALUES = frozenset({"v", "vs", "vb", "vd", "s"})
_OTHERS = {"vs": str, "vb": bool, "vd": str | bytes}
_decode_json = msgspec.json.Decoder(list[dict[str, object]]).decode


class _Resolved(NamedTuple):
    """One record with its base fields applied; None is what it does not say."""

    value: object
    unit: str | None
    sum: _Number | None
    time: _Number


class _RefusedTags(Mapping[int, Callable[..., NoReturn]]):
    """Every tag of CBOR: SenML needs none, and big numbers and shared references are hazards."""

    def __getitem__(self, tag: int) -> Callable[..., NoReturn]:
        return _refuse

    def __iter__(self) -> Iterator[int]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _refuse(*_: object) -> NoReturn:
    raise FormatError("a CBOR tag")


_REFUSED_TAGS = _RefusedTags()


def parse(payload: bytes) -> object:
    """Return {name: record} of a pack, the base fields applied; where a name stands often, one for each time."""
    if not payload:
        raise EmptyPayload
    base: _Record = {}
    resolved: list[tuple[str, _Resolved]] = []
    for record in _records(payload):
        base.update((label, value) for label, value in record.items() if label in _BASES)
        if _VALUES.isdisjoint(record) and "bv" not in base and "bs" not in base:
            continue
        resolved.append((_name(base, record), _resolved(base, record)))
    document = dict(resolved)
    return document if len(document) == len(resolved) else Snapshots(_by_time(resolved))


def _by_time(resolved: Sequence[tuple[str, _Resolved]]) -> list[dict[str, _Resolved]]:
    moments: dict[_Number, dict[str, _Resolved]] = {}
    for name, record in resolved:
        moment = moments.setdefault(record.time, {})
        if name in moment:
            raise FormatError("a SenML name that stands twice at one time")
        moment[name] = record
    return list(moments.values())


def _records(payload: bytes) -> list[_Record]:
    records = _json(payload) if payload.lstrip(b" \t\r\n").startswith(b"[") else _cbor(payload)
    for record in records:
        version = record.get("bver", _VERSION)
        if type(version) is not int or version > _VERSION:
            raise FormatError("a later SenML version")
        if any(type(label) is str and label.endswith("_") for label in record):
            raise FormatError("a SenML field that must be understood")
    return records


def _json(payload: bytes) -> list[_Record]:
    try:
        return _decode_json(payload)  # type: ignore[return-value]  # text labels are labels
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise FormatError("not a SenML pack in JSON") from None


def _cbor(payload: bytes) -> list[_Record]:
    try:
        decoder = cbor2.CBORDecoder(
            BytesIO(payload),
            semantic_decoders=_REFUSED_TAGS,
            max_depth=_CBOR_DEPTH,
            allow_duplicate_keys=False,
        )
        pack = decoder.decode()
    except (cbor2.CBORDecodeError, UnicodeDecodeError, RecursionError):
        raise FormatError("not a SenML pack in CBOR") from None
    if not _at_end(decoder) or type(pack) is not list or any(type(record) is not dict for record in pack):
        raise FormatError("not a SenML pack in CBOR")
    return [_labelled(record) for record in pack]


def _at_end(decoder: cbor2.CBORDecoder) -> bool:
    try:
        decoder.read(1)
    except cbor2.CBORDecodeEOF:
        return True
    return False


def _labelled(record: _Record) -> _Record:
    # type(): True and 1.0 are equal to labels and are none.
    named = {
        _LABELS.get(label, label) if type(label) is int else label: field for label, field in record.items()
    }
    if len(named) != len(record):
        raise FormatError("a SenML field that stands twice")
    return named


def _name(base: _Record, record: _Record) -> str:
    stem, leaf = base.get("bn", ""), record.get("n", "")
    name = stem + leaf if isinstance(stem, str) and isinstance(leaf, str) else ""
    if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        raise FormatError("not a SenML name")
    return name


def _resolved(base: _Record, record: _Record) -> _Resolved:
    unit = record.get("u", base.get("bu"))
    if unit is not None and not isinstance(unit, str):
        raise FormatError("not a SenML unit")
    time = _added(base, record, "t") or 0
    return _Resolved(_value(base, record), unit, _added(base, record, "s"), time)


def _value(base: _Record, record: _Record) -> object:
    others = _OTHERS.keys() & record.keys()
    if not others:
        return _added(base, record, "v")
    label = others.pop()
    value = record[label]
    if others or "v" in record or not isinstance(value, _OTHERS[label]):
        raise FormatError("not a SenML value")
    return None if label == "vd" else value


def _added(base: _Record, record: _Record, field: str) -> _Number | None:
    """Return base + own field; what is not there adds nothing, and neither of them is None."""
    places = ((base, "b" + field), (record, field))
    numbers = [_number(holder[label]) for holder, label in places if label in holder]
    return _number(sum(numbers)) if numbers else None


def _number(field: object) -> _Number:
    # The comparison also refuses NaN, and integers that no float can be added to.
    if (type(field) is int or type(field) is float) and -_LARGEST <= field <= _LARGEST:
        return field
    raise FormatError("not a SenML number")


def field_of(address: str) -> Find:
    """Return the look-up of "NAME", "NAME|v", "NAME|s" or "NAME|t"."""
    name, bar, field = address.partition("|")
    look_up = _FIELDS.get(field) if bar else _measured
    if look_up is None or not _NAME.fullmatch(name):
        raise ValueError('a SenML address is a name with "|v", "|s" or "|t": write "urn:dev:mac:01/power|v"')
    return lambda document: look_up(document[name])


def _measured(record: _Resolved) -> object:
    if record.value is None:
        raise LookupError("no value")
    # Texts and truth values have no unit, whatever a base unit says.
    if record.unit is not None and (type(record.value) is int or type(record.value) is float):
        return Measured(record.value, record.unit)
    return record.value


def _summed(record: _Resolved) -> object:
    if record.sum is None or record.unit not in _INTEGRAL:
        raise LookupError("no sum of a power")
    return Measured(record.sum, _INTEGRAL[record.unit])


def _timed(record: _Resolved) -> object:
    if record.time < _RELATIVE_BELOW:
        raise LookupError("a time relative to now")
    return record.time


_FIELDS: dict[str, Callable[[_Resolved], object]] = {"v": _measured, "s": _summed, "t": _timed}

FORMAT = Format(parse, field_of)
