"""One [[source]], compiled: from a message's bytes to what its meters said. No user code runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from gateway.source_table import Guard, SourceTable, TimeField
from gateway.sources.bindings import Binding, bound
from gateway.sources.formats import Find, Snapshots
from gateway.sources.identity import meter_named, meter_reader, serial_of
from gateway.sources.items import fan_out, finder, moments, own_finder
from gateway.sources.parsing import parser_after
from gateway.sources.readings import Reason, RejectedError
from gateway.sources.times import ClockUnset, time_reader
from gateway.sources.values import amount_reader
from gateway.topics import TopicTemplate

_SNAP = 20


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


Own = tuple[int, int | None, int]
"""A meter's value, time and serial, as in :class:`Found`."""

PayloadReader = Callable[[bytes], Own]
"""From a payload that is of one meter to what it says; raises RejectedError."""


class MessageMapping:
    """A [[source]] that messages can be read with.

    Args:
        source: the declaration.
        slot_ms: the slot's length, which is the interval's where the source does not say.

    """

    def __init__(self, source: SourceTable, slot_ms: int) -> None:
        self._template = TopicTemplate.parse(source.topic)
        self._format = bound(source)
        # One document of one meter in each payload, whatever the topic.
        self._plain = source.each is None and self._format.plain
        self._steps = source.steps
        self._longest = source.max_bytes
        self._candidates = source.candidates
        self._each = self._format.compile(source.each) if source.each is not None else None
        self._find = finder(self._format, fanned=self._each is not None)
        self._read_own = _own_reader(source, self._format, self._find, source.interval or slot_ms)
        # Once for all topics: thousands of meters share one memory of the times they write.
        self._read_payload = self._payload_reader(parser_after(self._format.parser(""), self._steps))

    @property
    def filters(self) -> Sequence[str]:
        """The MQTT topic filters to subscribe to."""
        return self._format.filters(self._template.filter)

    def named(self, topic: str) -> str | None:
        """Return the meter that a topic names; None where it names none, or its messages must be looked at."""
        matched = self._template.pattern.fullmatch(self._format.data_topic(topic))
        return (
            None
            if matched is None or self._each is not None
            else meter_named(self._candidates, matched.groupdict())
        )

    @property
    def read_alone(self) -> PayloadReader | None:
        """The quick way to read what is of the one meter that a topic names; None where it takes more."""
        return self._read_payload if self._plain else None

    def reader(self, topic: str) -> Reader | None:
        """Return what reads the messages of a topic; None for a topic that is not this source's."""
        matched = self._template.pattern.fullmatch(self._format.data_topic(topic))
        if matched is None:
            return self._listener(topic)
        meter, own = meter_reader(self._candidates, matched.groupdict(), self._find), self._read_own
        each, admitted = self._each, self._admitted
        parse = parser_after(self._format.parser(topic), self._steps)

        def read_item(document: object) -> Found:
            value, time_ms, serial = own(document)
            return Found(meter(document), time_ms, value, serial)

        def read(payload: bytes) -> Sequence[Found | Reason]:
            document = parse(admitted(payload))
            if each is not None:
                return list(fan_out(document, each, read_item))
            if isinstance(document, Snapshots):
                return list(moments(document, read_item))
            return (read_item(document),)

        return read

    def _payload_reader(self, parse: Callable[[bytes], object]) -> PayloadReader:
        own, longest, admitted = self._read_own, self._longest, self._admitted

        def read(payload: bytes) -> Own:
            if not 0 < len(payload) <= longest:
                admitted(payload)
            return own(parse(payload))

        return read

    def _admitted(self, payload: bytes) -> bytes:
        if len(payload) > self._longest:
            raise RejectedError(Reason.TOO_LARGE)
        if not payload:
            raise RejectedError(Reason.EMPTY)  # the publisher cleared what the broker had kept
        return payload

    def _listener(self, topic: str) -> Reader | None:
        """Return what takes note of a message that explains others and is no reading itself."""
        if not self._format.explains(topic):
            return None
        parse = parser_after(self._format.parser(topic))

        def listen(payload: bytes) -> Sequence[Found | Reason]:
            parse(payload)
            raise RejectedError(Reason.GUARD)

        return listen


def _own_reader(
    source: SourceTable, form: Binding, find: Callable[[str], Find], span_ms: int
) -> Callable[[object], Own]:
    """Return what reads a meter's value, time and serial; raises RejectedError."""
    find_own = own_finder(form, fanned=source.each is not None)
    guards = [(find(address), _allowed(guard)) for address, guard in source.when.items()]
    amount = amount_reader(source, find_own, find, span_ms)
    time = _time_reader(source, form, find, span_ms)
    serial = find_own(source.serial) if source.serial is not None else None

    def read(document: object) -> Own:
        try:
            for look, allowed in guards:
                _guard(look, allowed, document)
            value = amount(document)
        except LookupError:
            raise RejectedError(Reason.MISSING_FIELD) from None
        return value, time(document), serial_of(serial, document) if serial is not None else 0

    return read


def _time_reader(
    source: SourceTable, form: Binding, find: Callable[[str], Find], span_ms: int
) -> Callable[[object], int | None]:
    given = source.time if isinstance(source.time, TimeField) else form.time
    if source.time == "arrival" or given is None:
        return lambda _: None
    look, moment = find(given.at), time_reader(given.format, given.zone)
    if source.quantity != "interval":
        return lambda document: _moment(look, moment, document)
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
