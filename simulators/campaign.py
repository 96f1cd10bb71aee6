"""`noiseless simulate`: a fleet published to any broker, and a gateway's configuration that fits it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import aiomqtt
from pydantic_core import PydanticCustomError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from gateway.clocks import utc_ms
from gateway.quantities import duration_ms
from simulators._configuration import written_config
from simulators.fleet import Fleet, FleetProgress, Schedule
from simulators.households import Households

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
        publishing.cancel()
        try:
            # Told to stop it ends by being cancelled; an error is told all the same.
            await asyncio.wait({publishing})
            if not publishing.cancelled():
                publishing.result()
        except (aiomqtt.MqttError, ExceptionGroup) as error:
            raise OSError(f"{self.url}: the broker refused the fleet: {_first(error)}") from error
        return asdict(fleet.progress)

    def config(self) -> str:
        """Write a gateway's configuration that reads this fleet. ValueError as `slot_ms`."""
        return written_config(
            self.url,
            Households.draw(self.households, self.seed).ids,
            slot_ms=self.slot_ms,
            slots={"clock": "wall" if self.speed == 1 and self.start is None else "event"},
            power_range='["0 W", "4 kW"]',
            source={"topic": "meters/{household}/reading", "value": "/energy_wh", "unit": "Wh"},
        )


@contextmanager
def shown_progress(console: Console) -> Iterator[Report]:
    """Yield a report that draws a progress bar on a terminal, and is silent elsewhere."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("slots", total=None)
        yield lambda done: progress.update(
            task, completed=done.slots, description=f"{done.readings:,} readings, slots"
        )


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def _moment_ms(text: str) -> int:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"--start {text} has no offset: write it like 2026-01-05T00:00:00Z")
    return int(moment.timestamp() * 1_000)
