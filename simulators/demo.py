"""The demo: an embedded broker, a simulated fleet, the gateway, and a witness, in one process."""

from __future__ import annotations

import asyncio
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.checking import validated
from gateway.clocks import WallClock
from gateway.config import Config
from gateway.ledger import read_statement
from gateway.mqtt.embedded import EmbeddedBroker
from gateway.report import budget_report
from gateway.service import Gateway
from simulators.fleet import Fleet, Schedule, feeders
from simulators.households import Households
from simulators.witness import Witness

SLOT_MS = 30 * 60_000
_START_MS = 1_767_592_800_000  # Monday 2026-01-05 06:00 UTC: people wake up
_GRACE_MS = 2 * 60_000
_WALL_GRACE_S = 1.0
_PATIENCE_S = 20.0


class DemoClock:
    """Simulated ms UTC: stands until it is started, then runs `speed` times as fast, up to its end."""

    def __init__(self, start_ms: int, speed: float, end_ms: int | None) -> None:
        self._start_ms, self._speed, self._end_ms = start_ms, speed, end_ms
        self._began: float | None = None

    def start(self) -> None:
        """Let time run."""
        self._began = time.monotonic()

    def __call__(self) -> int:
        """Return the time."""
        if self._began is None:
            return self._start_ms
        now = self._start_ms + int((time.monotonic() - self._began) * 1_000 * self._speed)
        return now if self._end_ms is None else min(now, self._end_ms)


@dataclass
class Demo:
    """One run of the demo.

    `seconds` of wall time run `speed` times as fast; None runs until stopped. `silent` and `repeated` are the
    shares of readings that meters keep back or send twice.
    """

    households: int = 200
    speed: float = 900.0
    seconds: float | None = None
    seed: int = 1
    silent: float = 0.02
    repeated: float = 0.01
    witness: Witness = field(default_factory=Witness)

    def __post_init__(self) -> None:
        self.homes = Households.draw(self.households, self.seed)
        self.groups = feeders(self.homes.ids)
        self.slots = (
            None if self.seconds is None else max(1, int(self.seconds * self.speed * 1_000) // SLOT_MS)
        )
        self.grace_ms = max(_GRACE_MS, int(_WALL_GRACE_S * self.speed * 1_000))
        end_ms = None if self.slots is None else _START_MS + self.slots * SLOT_MS + self.grace_ms + 1
        self.clock = DemoClock(_START_MS, self.speed, end_ms)
        self.fleet: Fleet | None = None
        self.gateway: Gateway | None = None
        self.metrics_url = ""

    async def run(self, stop: asyncio.Event, started: Callable[[], None] | None = None) -> dict[str, Any]:
        """Run to the end, or until `stop` is set, and return the summary."""
        began = time.monotonic()
        async with AsyncExitStack() as parts:
            folder = Path(parts.enter_context(tempfile.TemporaryDirectory(prefix="noiseless-demo-")))
            broker = await parts.enter_async_context(EmbeddedBroker(0))
            config = self._config(broker.url, folder)
            gateway = self.gateway = Gateway(config, WallClock(self.clock, self.speed))
            schedule = Schedule(_START_MS, self.speed, SLOT_MS)
            self.fleet = Fleet(
                self.homes, url=broker.url, schedule=schedule, silent=self.silent, repeated=self.repeated
            )
            ending = asyncio.Event()
            async with asyncio.TaskGroup() as tasks:
                serving = tasks.create_task(gateway.run(ending))
                subscribed = asyncio.Event()
                watching = tasks.create_task(self.witness.watch(broker.url, subscribed))
                await subscribed.wait()
                await self._until(lambda: all(gateway.readiness().values()))
                self.clock.start()
                if started is not None:
                    started()
                await self._publish_until(stop)
                await self._until(lambda: self._missing() <= 0)
                ending.set()
                await serving
                watching.cancel()
            return self._summary(folder / "noiseless.db", time.monotonic() - began)

    async def _publish_until(self, stop: asyncio.Event) -> None:
        assert self.fleet is not None
        publishing = asyncio.create_task(self.fleet.run(slots=self.slots, clock=self.clock))
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait({publishing, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not publishing.done():
            publishing.cancel()
        await asyncio.gather(publishing, return_exceptions=stop.is_set())

    async def _until(self, done: Callable[[], bool]) -> None:
        """Return when `done` holds, or after a while: the summary then says what is missing."""
        patience = time.monotonic() + max(_PATIENCE_S, 2 * self.grace_ms / 1_000 / self.speed)
        while not done() and time.monotonic() < patience:  # noqa: ASYNC110 - counts of three parties, no event
            await asyncio.sleep(0.05)

    def _missing(self) -> int:
        assert self.fleet is not None
        slots = self.fleet.progress.slots
        return slots * (self.households + len(self.groups)) - len(self.witness.payloads)

    def _config(self, url: str, folder: Path) -> Config:
        with _free_port() as port:
            self.metrics_url = f"http://127.0.0.1:{port}/metrics"
        return validated(
            {
                "broker": {"url": url},
                "slots": {"length": f"{SLOT_MS}ms", "grace": f"{self.grace_ms}ms"},
                "release": {"epsilon": 3, "range": ["0 W", "4 kW"]},
                "budget": {"window": "24h", "bits": 190},
                "source": [
                    {
                        "topic": "meters/{household}/reading",
                        "value": "/energy_wh",
                        "unit": "Wh",
                        "time": {"at": "/ts"},
                    }
                ],
                "household": [{"id": household} for household in self.homes.ids],
                "group": [
                    {"name": name, "members": list(members), "epsilon": 3}
                    for name, members in self.groups.items()
                ],
                "ledger": {"url": f"sqlite:///{folder / 'noiseless.db'}", "commit": "200ms"},
                "http": {"listen": f"127.0.0.1:{port}"},
            }
        )

    def _summary(self, ledger: Path, seconds: float) -> dict[str, Any]:
        assert self.fleet is not None
        progress, witness = self.fleet.progress, self.witness
        ledger_bits = budget_report(read_statement(ledger))["ledger_bits"]
        released, expected = witness.count("household"), self.households * progress.slots
        return {
            "households": self.households,
            "groups": len(self.groups),
            "slots_closed": len(witness.slots()),
            "readings": progress.readings,
            "household_releases": released,
            "group_releases": witness.count("group"),
            "expected_household_releases": expected,
            "lost": max(0, expected - released),
            "doubled": len(witness.doubled),
            "repeated": witness.repeated,
            "ledger_bits": ledger_bits,
            "released_bits": witness.released_bits(self.groups),
            "capacity_bits_per_release": ledger_bits / released if released else 0.0,
            "seconds": round(seconds, 3),
        }


@contextmanager
def _free_port() -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        yield probe.getsockname()[1]
