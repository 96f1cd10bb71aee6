"""Sparkplug B payloads, addressed by metric names: "Meter/Power/Active", and "...|t" for the time in ms.

A DATA message may name its metrics by aliases that only the last BIRTH of the node or device explains, and
says a signed number's width only there. Nothing of Sparkplug is kept by the broker: a decoder that has not
seen the BIRTH asks for another one.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

from gateway.sources.formats import protobuf
from gateway.sources.formats.births import Birth, Births, Place
from gateway.sources.formats.documents import EmptyPayload, Find, FormatError, Snapshots

_Payload = tuple[int | None, list["_Metric"]]

_NAMESPACE = "spBv1.0"
_TYPES = frozenset({"NBIRTH", "DBIRTH", "NDATA", "DDATA", "NDEATH", "DDEATH"})
_LONGEST_NAME = 256
_MOST_IN_BIRTH = 5_000
_TIME = "|t"
_SESSION = "bdSeq"
# Sparkplug 3.0, 6.4.16: Int8 to Int64, by datatype, with their width in bits.
_SIGNED = {1: 8, 2: 16, 3: 32, 4: 64}
_BOOLEAN = 11


class BirthNeeded(FormatError):  # noqa: N818 - the payload is right; what explains it is not here
    """A message that only a BIRTH explains which has not been seen.

    Attributes:
        group: the group to ask for a rebirth.
        node: the edge node in it.

    """

    def __init__(self, place: Place) -> None:
        super().__init__("no Sparkplug birth for an alias or a number's type")
        self.group = place.group
        self.node = place.node


class _Metric(NamedTuple):
    """One metric as it stands in the payload; None is what it does not say."""

    name: str | None = None
    alias: int | None = None
    time_ms: int | None = None
    datatype: int | None = None
    null: bool = False
    value: object = None
    width: int = 0
    """The bits of the integer field that carried the value; 0 if none did."""


class SparkplugDecoder:
    """Sparkplug B messages of all topics of one subscription.

    Args:
        births: what is known of nodes and devices.

    """

    def __init__(self, births: Births | None = None) -> None:
        self._births = births if births is not None else Births()

    def parse(self, topic: str, payload: bytes) -> dict[str, object] | Snapshots:
        """Return {metric: value, metric + "|t": ms UTC}; a message of a death has no metrics.

        Where a metric stands often, as after an outage, there is one for each time.

        Raises:
            BirthNeeded: an alias, or a number without its type, whose birth has not been seen.
            FormatError: no Sparkplug message of a node or a device.

        """
        kind, place = _place(topic)
        if kind.endswith("BIRTH"):
            # Whatever the new one says: aliases of the one before mean something else from now on.
            self._births.forget(place)
        if not payload:
            raise EmptyPayload
        time_ms, metrics = _payload(payload)
        if kind.endswith("DEATH"):
            self._die(place, metrics)
            return {}
        if kind.endswith("BIRTH"):
            self._births.add(place, _birth(metrics))
        return self._document(place, time_ms, metrics)

    def _die(self, place: Place, metrics: list[_Metric]) -> None:
        """Forget a place; the will of a session before the present one says nothing about this one."""
        birth = self._births.of(place)
        session = _session(metrics)
        if birth and session is not None and birth.session not in {None, session}:
            return
        self._births.forget(place)

    def _document(
        self, place: Place, time_ms: int | None, metrics: list[_Metric]
    ) -> dict[str, object] | Snapshots:
        birth = self._births.of(place)
        said: list[tuple[str, int | None, object]] = []
        for metric in metrics:
            name = _named(metric, birth, place)
            if name.endswith(_TIME):
                raise FormatError("a Sparkplug metric with a reserved name")
            moment = time_ms if metric.time_ms is None else metric.time_ms
            said.append((name, moment, _value(metric, name, birth, place)))
        if len({name for name, _, _ in said}) == len(said):
            return _timed(said)
        moments: dict[int | None, list[tuple[str, int | None, object]]] = {}
        for one in said:
            moments.setdefault(one[1], []).append(one)
        return Snapshots([_timed(told) for told in moments.values()])


def _timed(said: Sequence[tuple[str, int | None, object]]) -> dict[str, object]:
    """Return what metrics say of one moment."""
    document: dict[str, object] = {}
    for name, moment, value in said:
        if name in document:
            raise FormatError("a Sparkplug metric that stands twice at one time")
        document[name] = value
        if moment is not None:
            document[name + _TIME] = moment
    return document


def _place(topic: str) -> tuple[str, Place]:
    levels = topic.split("/")
    if not 4 <= len(levels) <= 5 or levels[0] != _NAMESPACE or levels[2] not in _TYPES:  # noqa: PLR2004
        raise FormatError("not a Sparkplug topic of a node or a device")
    device = levels[4] if len(levels) == 5 else ""  # noqa: PLR2004 - namespace/group/type/node[/device]
    if levels[2].startswith("D") != bool(device) or len(topic) > 4 * _LONGEST_NAME:
        raise FormatError("not a Sparkplug topic of a node or a device")
    return levels[2], Place(levels[1], levels[3], device)


def _birth(metrics: list[_Metric]) -> Birth:
    if len(metrics) > _MOST_IN_BIRTH:
        raise FormatError("a Sparkplug birth of too many metrics")
    names: dict[int, str] = {}
    datatypes: dict[str, int] = {}
    for metric in metrics:
        if not metric.name or metric.datatype is None or metric.name in datatypes or metric.alias in names:
            raise FormatError("a Sparkplug birth with an unnamed, untyped or repeated metric")
        datatypes[metric.name] = metric.datatype
        if metric.alias is not None:
            names[metric.alias] = metric.name
    return Birth(names, datatypes, _session(metrics))


def _session(metrics: list[_Metric]) -> object:
    return next((metric.value for metric in metrics if metric.name == _SESSION), None)


def _named(metric: _Metric, birth: Birth | None, place: Place) -> str:
    if metric.name:
        return metric.name
    if metric.alias is None:
        raise FormatError("a Sparkplug metric without a name")
    if birth is None or metric.alias not in birth.names:
        raise BirthNeeded(place)
    return birth.names[metric.alias]


def _value(metric: _Metric, name: str, birth: Birth | None, place: Place) -> object:
    if metric.null:
        return None
    if not metric.width:
        return metric.value
    datatype = metric.datatype
    if datatype is None and birth is not None:
        datatype = birth.datatypes.get(name)
    if datatype is None:
        raise BirthNeeded(place)
    assert isinstance(metric.value, int)
    return _signed(metric.value, _SIGNED[datatype], metric.width) if datatype in _SIGNED else metric.value


def _signed(value: int, bits: int, width: int) -> int:
    """Return a two's complement number of some bits that travels in an unsigned field.

    Publishers write it in its own bits or extended to the field's.
    """
    low = value & ((1 << bits) - 1)
    signed = low - (1 << bits) if low >> (bits - 1) else low
    if value not in {low, signed & ((1 << width) - 1)}:
        raise FormatError("a Sparkplug number beyond its type")
    return signed


def _payload(payload: bytes) -> _Payload:
    time_ms: int | None = None
    metrics: list[_Metric] = []
    for number, wire, value in protobuf.fields(payload):
        if (number, wire) == (1, protobuf.VARINT):
            assert isinstance(value, int)
            time_ms = value
        elif (number, wire) == (2, protobuf.LENGTH):
            assert isinstance(value, bytes)
            metrics.append(_metric(value))
        elif number in {1, 2}:
            raise FormatError("not a Sparkplug payload")
    return time_ms, metrics


def _metric(message: bytes) -> _Metric:
    said: dict[str, object] = {}
    for number, wire, value in protobuf.fields(message):
        if number not in _FIELDS:
            continue
        label, expected, read = _FIELDS[number]
        if wire != expected:
            raise FormatError("not a Sparkplug metric")
        said[label] = read(value)
        if label == "value":
            said["width"] = _WIDTHS.get(number, 0)
    return _Metric(**said)  # type: ignore[arg-type]  # each reader returns its field's type


def _text(value: object) -> str:
    try:
        return bytes(value).decode()  # type: ignore[call-overload, no-any-return]  # the wire type says so
    except UnicodeDecodeError:
        raise FormatError("a Sparkplug text that is not UTF-8") from None


def _name(value: object) -> str:
    text = _text(value)
    if len(text) > _LONGEST_NAME:
        raise FormatError("a Sparkplug name that is too long")
    return text


def _float(layout: str) -> Callable[[object], float | None]:
    """Return the reader of a float; what is not finite is no value."""

    def read(value: object) -> float | None:
        (number,) = struct.unpack(layout, value)  # type: ignore[arg-type]  # the wire type says so
        return number if math.isfinite(number) else None

    return read


def _int(value: object) -> object:
    return value


_WIDTHS = {10: 32, 11: 64}
# Sparkplug B's Metric message: field number to what it is, its wire type, and its reader.
_FIELDS: dict[int, tuple[str, int, Callable[[object], object]]] = {
    1: ("name", protobuf.LENGTH, _name),
    2: ("alias", protobuf.VARINT, _int),
    3: ("time_ms", protobuf.VARINT, _int),
    4: ("datatype", protobuf.VARINT, _int),
    7: ("null", protobuf.VARINT, bool),
    # An int32 that some encoders widen to 64 bits is truncated as protobuf says.
    10: ("value", protobuf.VARINT, lambda value: value & 0xFFFFFFFF),  # type: ignore[operator]
    11: ("value", protobuf.VARINT, _int),
    12: ("value", protobuf.FIXED32, _float("<f")),
    13: ("value", protobuf.FIXED64, _float("<d")),
    14: ("value", protobuf.VARINT, bool),
    15: ("value", protobuf.LENGTH, _text),
}


def metric(address: str) -> Find:
    """Return the look-up of a metric's value, or with "|t" of its time."""
    if not address.removesuffix(_TIME):
        raise ValueError(
            'a Sparkplug address is a metric: write "Meter/Power/Active", or add "|t" for its time'
        )
    return lambda document: document[address]


def rebirth_request(group: str, node: str, now_ms: int) -> tuple[str, bytes]:
    """Return the (topic, payload) of the NCMD that asks an edge node, now, for its BIRTH messages again."""
    command = (
        protobuf.length_field(1, b"Node Control/Rebirth")
        + protobuf.varint_field(4, _BOOLEAN)
        + protobuf.varint_field(14, 1)
    )
    return f"{_NAMESPACE}/{group}/NCMD/{node}", protobuf.varint_field(1, now_ms) + protobuf.length_field(
        2, command
    )
