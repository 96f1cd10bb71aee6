"""`noiseless simulate`: a fleet published to any broker, and a gateway's configuration that fits it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import aiomqtt
from pydantic_core import PydanticCustomError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from gateway.clocks import utc_ms
from gateway.quantities import duration_ms, written_duration
from simulators.fleet import Fleet, FleetProgress, Schedule, feeders
from simulators.households import Households

_DAY_MS = 86_400_000
Report = Callable[[FleetProgress], None]


@dataclass(frozen=True)
class Campaign:
    """What to publish, to where, and how fast.

    `slot` is a duration like "30min", `start` an ISO 8601 time with an offset (by default now). At speed 1
    simulated time is the wall clock's; at speed 0 slots follow each other as fast as the broker takes them.
    """

    url: str
    households: int
    speed: float
    slot: str
    slots: int | None
    start: str | None
    silent: float
    repeated: float
    seed: int

    @property
    def slot_ms(self) -> int:
        """The slot's length. ValueError if it is not a duration."""
        try:
            return duration_ms(self.slot)
        except PydanticCustomError as error:
            raise ValueError(f"--slot {self.slot}: {error.message()}") from None

    async def run(self, stop: asyncio.Event, report: Report) -> dict[str, Any]:
        """Publish until done or stopped. ValueError for an unusable value."""
        now = utc_ms()
        begin = now if self.start is None else _moment_ms(self.start)
        schedule = Schedule(begin // self.slot_ms * self.slot_ms, self.speed, self.slot_ms)
        homes = Households.draw(self.households, self.seed)
        fleet = Fleet(
            homes, url=self.url, schedule=schedule, silent=self.silent, repeated=self.repeated, seed=self.seed
        )
        # In real time the first slot is the one that is running, not one that begins with the program.
        clock = utc_ms if self.speed == 1 and self.start is None else None
        publishing = asyncio.create_task(fleet.run(slots=self.slots, progress=report, clock=clock))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({publishing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not publishing.done():
            publishing.cancel()
        try:
            await asyncio.gather(publishing, return_exceptions=stop.is_set())
        except (aiomqtt.MqttError, ExceptionGroup) as error:
            raise OSError(f"{self.url}: the broker refused the fleet: {_first(error)}") from error
        return asdict(fleet.progress)

    def _window_ms(self) -> int:
        """Return the budget window: a day, or the whole slots next below it."""
        return max(1, _DAY_MS // self.slot_ms) * self.slot_ms

    def config(self) -> str:
        """Write a gateway's configuration that reads this fleet. ValueError as `slot_ms`."""
        homes = Households.draw(self.households, self.seed)
        clock = "wall" if self.speed == 1 and self.start is None else "event"
        lines = [
            "[broker]",
            f"url = {json.dumps(self.url)}",
            "[slots]",
            f'length = "{written_duration(self.slot_ms)}"',
            f'clock = "{clock}"',
            "[budget]",
            f'window = "{written_duration(self._window_ms())}"',
            "[release]",
            "epsilon = 3",
            'range = ["0 W", "4 kW"]',
            "[[source]]",
            'topic = "meters/{household}/reading"',
            'value = "/energy_wh"',
            'unit = "Wh"',
            'time = { at = "/ts" }',
        ]
        for name, members in feeders(homes.ids).items():
            lines += ["[[group]]", f'name = "{name}"', f"members = {json.dumps(members)}", "epsilon = 3"]
        for household in homes.ids:
            lines += ["[[household]]", f'id = "{household}"']
        return "\n".join(lines) + "\n"


def show_progress(console: Console) -> Report:
    """Return a report that draws a progress bar on a terminal, and is silent elsewhere."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    task = progress.add_task("slots", total=None)
    progress.start()

    def report(done: FleetProgress) -> None:
        progress.update(task, completed=done.slots, description=f"{done.readings:,} readings, slots")

    return report


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def _moment_ms(text: str) -> int:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"--start {text} has no offset: write it like 2026-01-05T00:00:00Z")
    return int(moment.timestamp() * 1_000)
