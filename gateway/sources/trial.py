"""What messages would become: the mapping that the service uses, with words instead of counts."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.checking import ConfigError, load
from gateway.config import Config
from gateway.metering import Metering, metering_of
from gateway.quantities import written_duration, written_power, written_time
from gateway.source_table import SourceTable
from gateway.sources.mapping import Found, MessageMapping, Reader
from gateway.sources.readings import IGNORED, Reason, RejectedError

_WORDS: dict[Reason, str] = {
    Reason.UNKNOWN_TOPIC: "no [[source]] has this topic: compare it with {topics}",
    Reason.TOO_LARGE: "longer than {max_bytes} bytes, or more than 1,000 meters: raise max_bytes, or split the message",
    Reason.UNDECODABLE: "the payload is no {format}, or was damaged on the way: compare format and steps with it",
    Reason.MISSING_FIELD: "nothing stands at one of {wanted}: correct the address if something should",
    Reason.WRONG_TYPE: "what stands at {places} is no number (null, true, a table or a list of such): "
    "address the number itself, or take another field",
    Reason.UNDECLARED_UNIT: "the message's unit is none of {units}: correct unit, or quantity",
    Reason.IMPLAUSIBLE: "{bounds}; or correct unit or scale",
    Reason.NOT_A_NUMBER: 'the text is no number with the decimal sign "{decimal}": correct decimal or the address',
    Reason.SENTINEL: "the value is one that means: no value (sentinels); nothing to do",
    Reason.NO_METER: "nothing at {meters} names the meter: correct meter, or add another place to look",
    Reason.BIRTH_NEEDED: "its Sparkplug birth was not seen: the service asks for it; here, show the birth first",
    Reason.GUARD: "not what when asks for, or a message that only explains others; nothing to do",
    Reason.EMPTY: "an empty payload clears what the broker had kept; nothing to do",
    Reason.BAD_TIME: "what stands at {time} is no time, or could be two: correct time, add its format or its zone",
    Reason.MISALIGNED: "its time is no border of {interval}: correct interval, stamp or time",
    Reason.STALE_RETAINED: "the broker had kept it, and a power of unknown age says nothing; the next one counts",
}
_BASELINE = "baseline only: the broker had kept it; energy counts from the next reading on"
_UNITS = {"power": "W"}
_MILLI = 1_000
_ROLL = "household"


class Outcome(NamedTuple):
    """What one reading of a message would be.

    Attributes:
        action: "accept", "reject" for a fault, "ignore" for what is not meant for us.
        meter: its id, where it is known.
        quantity: "power", "register" or "interval", where there is a value.
        value: W or Wh.
        unit: "W" or "Wh".
        time: ISO 8601 UTC; None where the arrival is the time.
        reason: the metric's name of it, and what to do; None where all is well.

    """

    action: Literal["accept", "reject", "ignore"]
    meter: str | None = None
    quantity: str | None = None
    value: float | None = None
    unit: str | None = None
    time: str | None = None
    reason: str | None = None


class Trial:
    """The sources of a configuration, to try messages with; births are remembered from one to the next.

    Args:
        config: as :func:`load_for_trial` reads it; with an empty roll every meter is known.

    """

    def __init__(self, config: Config) -> None:
        slot_ms = config.slots.length
        self._tables = config.source
        self._slot_ms = slot_ms
        self._mappings = [MessageMapping(source, slot_ms) for source in config.source]
        # None: no roll yet, so every meter is known.
        self._metering = metering_of(config) if config.household else None

    def outcomes(self, topic: str, payload: bytes, *, retained: bool = False) -> list[Outcome]:
        """Return what a message would become, one entry per reading.

        Where several sources read the topic, what one of them accepts is all that counts, as in the service.
        """
        readers = [(i, mapping.reader(topic)) for i, mapping in enumerate(self._mappings)]
        rows = [self._read(i, read, payload, retained=retained) for i, read in readers if read is not None]
        if not rows:
            topics = ", ".join(source.topic for source in self._tables)
            reason = _said(Reason.UNKNOWN_TOPIC, _WORDS[Reason.UNKNOWN_TOPIC], topics=topics)
            return [Outcome("ignore", reason=reason)]
        told = [row for of_source in rows for row in of_source]
        accepted = [row for row in told if row.action == "accept"]
        return accepted if len(rows) > 1 and accepted else told

    def _read(self, i: int, read: Reader, payload: bytes, *, retained: bool) -> list[Outcome]:
        try:
            return [self._outcome(i, found, retained=retained) for found in read(payload)]
        except RejectedError as rejection:
            return [self._refusal(i, rejection.reason)]

    def _outcome(self, i: int, found: Found | Reason, *, retained: bool) -> Outcome:
        if not isinstance(found, Found):
            return self._refusal(i, found)
        source = self._tables[i]
        told = Outcome(
            "accept",
            found.meter,
            source.quantity,
            found.value / _MILLI,
            _UNITS.get(source.quantity, "Wh"),
            None if found.time_ms is None else written_time(found.time_ms),
        )
        if self._metering is not None and (reason := _unknown(self._metering, i, found.meter)):
            return told._replace(action="reject", reason=reason)
        if retained and source.quantity == "power":
            stale = _said(Reason.STALE_RETAINED, _WORDS[Reason.STALE_RETAINED])
            return told._replace(action="ignore", reason=stale)
        return told._replace(reason=_BASELINE) if retained and source.quantity == "register" else told

    def _refusal(self, i: int, reason: Reason) -> Outcome:
        action: Literal["reject", "ignore"] = "ignore" if reason in IGNORED else "reject"
        return Outcome(action, reason=_said(reason, _WORDS[reason], **self._facts(self._tables[i])))

    def _facts(self, source: SourceTable) -> dict[str, object]:
        """Return what the words name of a source."""
        at = [place or "the whole message" for place in (*source.value, *source.minus)] or ["the payload"]
        others = [source.each, getattr(source.unit, "at", None), getattr(source.time, "at", None)]
        return {
            "format": source.format.upper() if source.format in {"json", "csv", "p1"} else source.format,
            "places": ", ".join(at),
            "wanted": ", ".join([*at, *(place for place in others if place)]),
            "units": ", ".join(source.units),
            "bounds": _bounds(source),
            "max_bytes": source.max_bytes,
            "decimal": source.decimal,
            "meters": ", ".join(source.candidates),
            "time": getattr(source.time, "at", None) or "the format's own place",
            "interval": written_duration(source.interval or self._slot_ms),
        }


def load_for_trial(path: Path) -> Config:
    """Return a file's configuration; the roll may be empty, as it is before one knows the meters' ids.

    Raises:
        ConfigError: it has other faults.

    """
    try:
        return load(path)
    except ConfigError as error:
        others = [fault for fault in error.faults if (fault.field, fault.value) != (_ROLL, None)]
        if others or not error.faults:
            raise ConfigError(others or error.faults) from None
    return Config.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))


def show_outcomes(console: Console, told: Sequence[tuple[str, Outcome]]) -> None:
    """Print what messages would become, with their topics."""
    drawn = Table("topic", *Outcome._fields, title="What the messages would become", show_lines=True)
    for topic, outcome in told:
        drawn.add_row(*(Text("" if one is None else str(one)) for one in (topic, *outcome)))
    console.print(drawn)


def _unknown(metering: Metering, i: int, meter: str) -> str | None:
    """Return why the source is not the one that speaks for a meter; None if it is."""
    ids = metering.meters.ids
    if meter not in ids:
        words = "meter {meter} is on no household: add it to [[household]] meters"
    elif ids.index(meter) not in metering.served[i]:
        words = "meter {meter} is on the roll, but not among this source's meters: correct them"
    else:
        return None
    return _said(Reason.UNKNOWN_HOUSEHOLD, words, meter=meter)


def _bounds(source: SourceTable) -> str:
    if source.quantity == "register":
        return "below 0, or beyond what a register stands at: address a total that only grows"
    return f"more than limit = {written_power(source.limit)}: raise it if the connection carries more"


def _said(reason: Reason, words: str, **facts: object) -> str:
    return f"{reason.value}: {words.format(**facts)}"
