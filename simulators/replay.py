"""`noiseless replay`: recorded data published to any broker, and a gateway's configuration that fits it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import aiomqtt
import numpy as np
from pydantic_core import PydanticCustomError

from gateway.clocks import utc_ms
from gateway.quantities import duration_ms, written_duration, written_time
from gateway.topics import TopicTemplate
from simulators._configuration import written_config
from simulators._uplink import Uplink, broker_address
from simulators.recorded import Form, Layout, Unit, read_recording
from simulators.recording import Recording
from simulators.timetable import FIELDS, Faults, Quantity, Timetable

_SLOTS_MS = (30 * 60_000, 15 * 60_000, 5 * 60_000, 60_000)
_MOST_PARTS = 1_000  # intervals that a slot may have
_GRACE_MS = 1_000  # on the event clock: what is in order needs no more
_WALL_GRACE_MS = 2 * 60_000
Report = Callable[[int, int], None]


@dataclass(frozen=True)
class Replay:
    """Which recording to publish, as what, to where, and how fast.

    `begin` and `until` are ISO 8601 times, in the file's zone where they say no offset. At speed 1 a recorded
    second takes a second; at speed 0 readings follow each other as fast as the broker takes them. With `now`
    the recording is moved so that it starts in the interval that is running. `slot_ms` is for the configuration.
    """

    file: Path
    url: str
    form: Form = field(default_factory=Form)
    topic: str = "meters/{household}/reading"
    quantity: Quantity = Quantity.INTERVAL
    speed: float = 0.0
    households: int | None = None
    begin: str | None = None
    until: str | None = None
    now: bool = False
    faults: Faults = field(default_factory=Faults)
    slot_ms: int | None = None

    @classmethod
    def parsed(
        cls,
        file: Path,
        url: str,
        *,
        quantity: str,
        layout: str | None,
        unit: str | None,
        interval: str | None,
        zone: str | None,
        stamp: str,
        lost: float,
        repeated: float,
        reordered: float,
        within: str,
        skew: str | None,
        seed: int,
        slot: str | None,
        **chosen: Any,  # noqa: ANN401 - the fields that need no parsing
    ) -> Self:
        """Return the replay of a command line's texts. ValueError for an unusable one, which it names."""
        form = Form(
            None if layout is None else Layout(_one_of("layout", layout, Layout)),
            None if unit is None else Unit(_one_of("unit", unit, Unit)),
            _duration_ms("interval", interval),
            zone,
            "end" if _one_of("stamp", stamp, ("start", "end")) == "end" else "start",
        )
        late_ms, skew_ms = _duration_ms("within", within) or 0, _duration_ms("skew", skew) or 0
        faults = Faults(lost, repeated, reordered, late_ms, skew_ms, seed)
        said = Quantity(_one_of("quantity", quantity, Quantity))
        slot_ms = _duration_ms("slot", slot)
        return cls(file, url, form, quantity=said, faults=faults, slot_ms=slot_ms, **chosen)

    @cached_property
    def recording(self) -> Recording:
        """The chosen part of the file. OSError, ValueError: it cannot be used."""
        whole = read_recording(self.file, self.form)
        chosen = whole.between(self.begin, self.until).of_first(self.households)
        interval = chosen.interval_ms
        return chosen.moved(utc_ms() // interval * interval - int(chosen.start_ms[0])) if self.now else chosen

    async def run(self, stop: asyncio.Event, report: Report) -> dict[str, Any]:
        """Publish until all is confirmed or `stop` is set, and return the summary.

        `report` is told how many of how many messages are done. OSError if the file cannot be read or the
        broker refuses us; ValueError for an unusable value.
        """
        began = time.monotonic()
        host, port = broker_address(self.url)
        topics = self._topics()
        table = Timetable.of(self.recording, self.quantity, self.faults)
        sender = _Sender(table, topics, FIELDS[self.quantity], self._clock(table), self.recording.interval_ms)
        uplink = Uplink(host, port, qos=1)
        sending = asyncio.create_task(sender.run(uplink, report, self.speed))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({sending, stopping}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if not sending.done():
                sending.cancel()
            await asyncio.wait({sending})
            if not sending.cancelled():
                sending.result()
        except (aiomqtt.MqttError, ExceptionGroup) as error:
            raise OSError(f"{self.url}: the broker refused the replay: {_first(error)}") from error
        finally:
            report(len(table), len(table))
            await uplink.close()
        return {**self._summary(table, sender.done, uplink), "seconds": round(time.monotonic() - began, 3)}

    def config(self) -> str:
        """Write a gateway's configuration that reads this replay. OSError, ValueError: the file, or it cannot."""
        recording, slot_ms = self.recording, self._config_slot_ms()
        wall = self.now and self.speed == 1
        grace = max(_WALL_GRACE_MS if wall else _GRACE_MS, self.faults.span_ms)
        return written_config(
            self.url,
            recording.households,
            slot_ms=slot_ms,
            slots={"grace": written_duration(grace), "clock": "wall" if wall else "event"},
            power_range='["0 W", "14.5 kW"]',
            source=self._source(recording.interval_ms, slot_ms),
        )

    def _source(self, interval_ms: int, slot_ms: int) -> dict[str, object]:
        unit = "W" if self.quantity is Quantity.POWER else "Wh"
        source: dict[str, object] = {"topic": self.topic, "value": f"/{FIELDS[self.quantity]}", "unit": unit}
        if self.quantity is not Quantity.INTERVAL:
            source["quantity"] = str(self.quantity)
        elif interval_ms != slot_ms:
            source["interval"] = written_duration(interval_ms)
        return source

    def _config_slot_ms(self) -> int:
        """Return the slot that a configuration has: a half hour or less that intervals fill, or the interval."""
        interval = self.recording.interval_ms
        filled = (slot for slot in _SLOTS_MS if slot % interval == 0 and slot // interval <= _MOST_PARTS)
        slot_ms = self.slot_ms or next(filled, interval)
        if self.quantity is Quantity.INTERVAL and (self.recording.start_ms % interval).any():
            raise ValueError("the recorded times do not lie on borders of their interval, aligned to UTC")
        return slot_ms

    def _topics(self) -> list[str]:
        template = TopicTemplate.parse(self.topic)
        if not template.captures or any(wild in self.topic for wild in "+#"):
            raise ValueError(f'--topic must contain "{{household}}", and no wildcard: got {self.topic!r}')
        return [self.topic.replace("{household}", household) for household in self.recording.households]

    def _clock(self, table: Timetable) -> Callable[[], float]:
        """Return simulated time in ms UTC; at speed 0 everything is due."""
        if not 0 <= self.speed < np.inf:
            raise ValueError(f"speed must be positive, or 0 for as fast as it can: got {self.speed}")
        if self.speed == 0:
            return lambda: np.inf
        if self.now and self.speed == 1:
            return utc_ms
        first, began = int(table.due_ms[0]), time.monotonic()
        return lambda: first + (time.monotonic() - began) * 1_000 * self.speed

    def _summary(self, table: Timetable, done: int, uplink: Uplink) -> dict[str, Any]:
        times = table.ts_ms[:done][~table.lost[:done]]
        return {
            "households": len(self.recording.households),
            "readings": uplink.readings,
            "lost": int(table.lost[:done].sum()),
            "repeated": uplink.repeated,
            "reordered": int(table.overtaken[:done].sum()),
            "first": written_time(int(times.min())) if len(times) else None,
            "last": written_time(int(times.max())) if len(times) else None,
        }


class _Sender:
    """Sends a timetable, one interval's messages after the other.

    All of an interval is confirmed before the next one's leave: the order between them holds even when a lost
    connection makes messages go out again.
    """

    def __init__(
        self, table: Timetable, topics: list[str], name: str, clock: Callable[[], float], interval_ms: int
    ) -> None:
        self.done = 0
        self._table, self._topics, self._name, self._clock = table, topics, name, clock
        step = table.due_ms // interval_ms
        self._borders = np.append(np.flatnonzero(np.diff(step)) + 1, len(table))

    async def run(self, uplink: Uplink, report: Report, speed: float) -> None:
        total = len(self._table)
        while self.done < total:
            last = await self._due(speed)
            await uplink.deliver(self._table.messages(self.done, last, self._topics, self._name), _at_once)
            self.done = last
            report(last, total)

    async def _due(self, speed: float) -> int:
        """Wait until something is due; return the end of what is due, and of its interval."""
        due_ms = self._table.due_ms
        # more than once, as a loop may wake a little early, and a reading must not come before its time
        while (ahead := due_ms[self.done] - self._clock()) > 0:  # noqa: ASYNC110 - a clock sets no event
            await asyncio.sleep(ahead / 1_000 / speed)
        border = self._borders[np.searchsorted(self._borders, self.done, side="right")]
        return int(min(border, np.searchsorted(due_ms, self._clock(), side="right")))


async def _at_once(_due_ms: float) -> None:
    """Wait for nothing: what is handed over is due."""


def _one_of(option: str, text: str, choices: Iterable[str]) -> str:
    names = [str(choice) for choice in choices]
    if text not in names:
        raise ValueError(f"--{option} {text}: write one of {', '.join(names)}")
    return text


def _duration_ms(option: str, text: str | None) -> int | None:
    try:
        return None if text is None else duration_ms(text)
    except PydanticCustomError as error:
        raise ValueError(f"--{option} {text}: {error.message()}") from None


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error
