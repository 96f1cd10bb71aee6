"""One [[source]], compiled: from a message's bytes to what its meters said. No user code runs."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

from gateway.source_table import Guard, SourceTable, TimeField
from gateway.sources.bindings import Binding, bound
from gateway.sources.formats import BirthNeeded, EmptyPayload, Find, FormatError
from gateway.sources.readings import Reason, RejectedError
from gateway.sources.times import ClockUnset, time_reader
from gateway.sources.values import amount_reader
from gateway.topics import TopicTemplate

_LONGEST_ID = 128
_MOST_METERS = 1_000
_SNAP = 20
_CAPTURE = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_NODE_LIFE = re.compile(r"spBv1\.0/[^/]+/N(?:BIRTH|DEATH)/[^/]+")
_FLAG = b"\x7e"


class Found(NamedTuple):
    """What a message says of one meter.

    Attributes:
        meter: its id, as it names itself.
        time_ms: UTC; of an interval its start; None where the arrival is the time.
        value: mW or mWh.
        serial: names the meter behind a register; 0 where the message does not.

    """

    meter: str
    time_ms: int | None
    value: int
    serial: int = 0


Reader = Callable[[bytes], Sequence[Found | Reason]]
"""From the payload of one topic to what its meters said; raises RejectedError where all of it is faulty."""


class RebirthWantedError(RejectedError):
    """Data of a Sparkplug node whose birth we missed; it can be asked for another.

    Attributes:
        group: of the node.
        node: its name.

    """

    def __init__(self, group: str, node: str) -> None:
        super().__init__(Reason.BIRTH_NEEDED)
        self.group = group
        self.node = node


class MessageMapping:
    """A [[source]] that messages can be read with.

    Args:
        source: the declaration.
        slot_ms: the slot's length, which is the interval's where the source does not say.

    """

    def __init__(self, source: SourceTable, slot_ms: int) -> None:
        self._source = source
        self._span_ms = source.interval or slot_ms
        self._template = TopicTemplate.parse(source.topic)
        self._format = bound(source)
        self._each = self._format.compile(source.each) if source.each is not None else None

    @property
    def filters(self) -> Sequence[str]:
        """The MQTT topic filters to subscribe to."""
        return self._format.filters(self._template.filter)

    def reader(self, topic: str) -> Reader | None:
        """Return what reads the messages of a topic; None for a topic that is not this source's."""
        matched = self._template.pattern.fullmatch(self._format.data_topic(topic))
        if matched is None:
            return self._listener(topic)
        read_item = self._item_reader(matched.groupdict())
        each, longest = self._each, self._source.max_bytes
        parse = _parser(self._format.parser(topic), [_STEPS[step] for step in self._source.steps])

        def read(payload: bytes) -> Sequence[Found | Reason]:
            if len(payload) > longest:
                raise RejectedError(Reason.TOO_LARGE)
            if not payload:
                raise RejectedError(Reason.EMPTY)  # the publisher cleared what the broker had kept
            document = parse(payload)
            return (read_item(document),) if each is None else list(_fan_out(document, each, read_item))

        return read

    def _listener(self, topic: str) -> Reader | None:
        """Return what takes note of a message that explains others and is no reading itself."""
        if self._source.format != "sparkplug" or not _NODE_LIFE.fullmatch(topic):
            return None
        parse = _parser(self._format.parser(topic), ())

        def listen(payload: bytes) -> Sequence[Found | Reason]:
            parse(payload)
            raise RejectedError(Reason.GUARD)

        return listen

    def _item_reader(self, captures: Mapping[str, str]) -> Callable[[object], Found]:
        source, find = self._source, _finder(self._format, fanned=self._each is not None)
        guards = [(find(address), _allowed(guard)) for address, guard in source.when.items()]
        amount = amount_reader(source, find, self._span_ms)
        meter = _meter_reader(source.candidates, captures, find)
        time = self._time_reader(find)
        serial = find(source.serial) if source.serial is not None else None

        def read(document: object) -> Found:
            try:
                for look, allowed in guards:
                    _guard(look, allowed, document)
                value = amount(document)
            except LookupError:
                raise RejectedError(Reason.MISSING_FIELD) from None
            number = _serial(serial, document) if serial is not None else 0
            return Found(meter(document), time(document), value, number)

        return read

    def _time_reader(self, find: Callable[[str], Find]) -> Callable[[object], int | None]:
        source = self._source
        if source.time == "arrival":
            return lambda _: None
        given = source.time if isinstance(source.time, TimeField) else self._format.time
        if given is None:
            return lambda _: None
        look, moment = find(given.at), time_reader(given.format, given.zone)
        if source.quantity != "interval":
            return lambda document: _moment(look, moment, document)
        span_ms = self._span_ms
        back = span_ms if source.stamp == "end" else 0
        return lambda document: _start(look, moment, document, back, span_ms)


def _moment(look: Find, moment: Callable[[object], int], document: object) -> int | None:
    """Return a reading's time; None where the meter has no clock, or none yet."""
    try:
        return moment(look(document))
    except (LookupError, ClockUnset):
        return None
    except ValueError:
        raise RejectedError(Reason.BAD_TIME) from None


def _start(look: Find, moment: Callable[[object], int], document: object, back: int, span_ms: int) -> int:
    """Return the border next to an interval's start that is at most a twentieth of the interval off."""
    try:
        start_ms = moment(look(document)) - back
    except LookupError:
        raise RejectedError(Reason.MISSING_FIELD) from None
    except ValueError:
        raise RejectedError(Reason.BAD_TIME) from None
    border = (start_ms + span_ms // 2) // span_ms * span_ms
    if abs(start_ms - border) * _SNAP > span_ms:
        raise RejectedError(Reason.MISALIGNED)
    return border


def _parser(
    parse: Callable[[bytes], object], steps: Sequence[Callable[[bytes], bytes]]
) -> Callable[[bytes], object]:
    def parsed(payload: bytes) -> object:
        try:
            for step in steps:
                payload = step(payload)
            return parse(payload)
        except EmptyPayload:
            raise RejectedError(Reason.EMPTY) from None
        except BirthNeeded as error:
            raise RebirthWantedError(error.group, error.node) from None
        except (FormatError, ValueError):
            raise RejectedError(Reason.UNDECODABLE) from None

    return parsed


def _unhexed(payload: bytes) -> bytes:
    return bytes.fromhex(payload.decode("ascii"))


def _unbased(payload: bytes) -> bytes:
    return base64.b64decode(b"".join(payload.split()), validate=True)


def _cut(payload: bytes) -> bytes:
    first, last = payload.find(_FLAG), payload.rfind(_FLAG)
    if first == last:
        raise FormatError("no frame between two bytes 7E")
    return payload[first : last + 1]


_STEPS = {"hex": _unhexed, "base64": _unbased, "cut7e": _cut}


class _Item(NamedTuple):
    """One of several meters in a message."""

    inside: object
    message: object
    key: str


def _fan_out(document: object, each: Find, read: Callable[[object], Found]) -> Iterator[Found | Reason]:
    try:
        items = each(document)
    except LookupError:
        raise RejectedError(Reason.MISSING_FIELD) from None
    if not isinstance(items, dict | list):
        raise RejectedError(Reason.WRONG_TYPE)
    if len(items) > _MOST_METERS:
        raise RejectedError(Reason.TOO_LARGE)
    pairs = items.items() if isinstance(items, dict) else enumerate(items)
    for key, inside in pairs:
        try:
            yield read(_Item(inside, document, str(key)))
        except RejectedError as rejection:
            yield rejection.reason


def _finder(form: Binding, *, fanned: bool) -> Callable[[str], Find]:
    """Return what compiles addresses; of a fanned message they are looked up in the item, then in the whole."""
    if not fanned:
        return form.compile

    def compiled(address: str) -> Find:
        look = form.compile(address)

        def inside_first(item: object) -> object:
            assert isinstance(item, _Item)
            try:
                return look(item.inside)
            except LookupError:
                return look(item.message)

        return inside_first

    return compiled


def _allowed(guard: Guard | list[Guard]) -> list[Guard]:
    return guard if isinstance(guard, list) else [guard]


def _guard(look: Find, allowed: Sequence[Guard], document: object) -> None:
    """Let through what a message must say; a message that does not say it is not meant for us."""
    try:
        found = look(document)
    except LookupError:
        raise RejectedError(Reason.GUARD) from None
    for wanted in allowed:
        # true is no 1, but a text may write a number.
        if (found == wanted and isinstance(found, bool) == isinstance(wanted, bool)) or found == str(wanted):
            return
    raise RejectedError(Reason.GUARD)


def _meter_reader(
    candidates: Sequence[str], captures: Mapping[str, str], find: Callable[[str], Find]
) -> Callable[[object], str]:
    readers = [_candidate(text, captures, find) for text in candidates]
    if isinstance(fixed := readers[0], str) and fixed:
        return lambda _: fixed

    def meter(document: object) -> str:
        for reader in readers:
            found = reader if isinstance(reader, str) else reader(document)
            if found and len(found) <= _LONGEST_ID:
                return found
        raise RejectedError(Reason.NO_METER)

    return meter


def _candidate(
    text: str, captures: Mapping[str, str], find: Callable[[str], Find]
) -> str | Callable[[object], str]:
    """Return a meter's id where it is known, else what finds it; an empty text is no id."""
    if text.startswith("="):
        return text[1:]
    if "{key}" in text:
        return lambda item: _filled(text, {**captures, "key": item.key if isinstance(item, _Item) else ""})
    if _CAPTURE.search(text):
        return _filled(text, captures)
    look = find(text)

    def found(document: object) -> str:
        try:
            value = look(document)
        except LookupError:
            return ""
        return _identity(value)

    return found


def _identity(value: object) -> str:
    """Return the text of an id: texts, whole numbers, and octets as ASCII or else hexadecimal."""
    if type(value) is bytes:
        return value.decode("ascii").strip() if value.isascii() else value.hex()
    if type(value) is str:
        return value.strip()
    return str(value) if type(value) is int else ""


def _filled(text: str, captures: Mapping[str, str]) -> str:
    return _CAPTURE.sub(lambda name: captures.get(name[1], ""), text)


def _serial(look: Find, document: object) -> int:
    """Return a number for the meter's number: 63 bits of its hash, 0 where there is none."""
    try:
        value = look(document)
    except LookupError:
        return 0
    text = _identity(value)
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) >> 1 if text else 0
