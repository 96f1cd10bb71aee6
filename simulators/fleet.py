"""A fleet of simulated meters: one energy reading per household and slot, published over MQTT 5."""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from simulators._uplink import Message, Uplink, broker_address

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from simulators._activities import BoolArray
    from simulators.households import Households

_SPREAD = 0.1  # of a slot: meters report within this time after its end ...
_SPREAD_MAX_MS = 60_000  # ... and no later than this, well inside the usual grace of a couple of minutes


@dataclass(frozen=True)
class Schedule:
    """An accelerated clock: from `start_ms` (UTC, on a slot's border), a wall second runs `speed` seconds.

    A speed of 0 or infinity means as fast as it can: no clock, slot after slot. ValueError if a value is
    unusable.
    """

    start_ms: int
    speed: float
    slot_ms: int

    def __post_init__(self) -> None:
        if self.slot_ms <= 0 or self.slot_ms % 1000:
            raise ValueError(f"slot_ms must be whole seconds: got {self.slot_ms}")
        if self.start_ms % self.slot_ms:
            raise ValueError(f"start_ms must be a multiple of slot_ms ({self.slot_ms}): got {self.start_ms}")
        if not self.speed >= 0:
            raise ValueError(f"speed must be positive, or 0 for as fast as it can: got {self.speed}")

    @property
    def paced(self) -> bool:
        """Whether there is a clock to keep to."""
        return 0 < self.speed < math.inf

    def slot_start(self, number: int) -> int:
        """Start (ms UTC) of the slot of this number, counted from 0."""
        return self.start_ms + number * self.slot_ms


def wall_clock(schedule: Schedule, anchor: float | None = None) -> Callable[[], int]:
    """Make a clock of simulated time (ms UTC) that showed `start_ms` at `anchor`.

    The anchor is a reading of `time.monotonic()`; by default the time of the call. ValueError if the schedule
    has no clock (speed 0 or infinite).
    """
    if not schedule.paced:
        raise ValueError("a schedule that runs as fast as it can has no clock: give a finite speed above 0")
    began = time.monotonic() if anchor is None else anchor
    per_second = 1000 * schedule.speed

    def simulated_ms() -> int:
        return schedule.start_ms + math.floor((time.monotonic() - began) * per_second)

    return simulated_ms


def feeders(ids: Sequence[str], size: int = 50) -> dict[str, tuple[str, ...]]:
    """Put households on feeders ("feeder-01", ...) of `size` in the order given; the last may have fewer."""
    if size < 1:
        raise ValueError(f"a feeder needs at least one household: got size={size}")
    blocks = [tuple(ids[first : first + size]) for first in range(0, len(ids), size)]
    digits = max(2, len(str(len(blocks))))
    return {f"feeder-{number:0{digits}d}": block for number, block in enumerate(blocks, start=1)}


@dataclass(frozen=True)
class FleetProgress:
    """What a fleet has done so far.

    `readings` are the (household, slot) pairs that the broker confirmed, `repeated` the second copies that it
    confirmed beyond these. `slots` are complete: every reading confirmed, or kept back on purpose (`silent`
    counts these pairs); `last_slot_ms` is the start (ms UTC) of the last of them.
    """

    readings: int
    slots: int
    silent: int
    repeated: int
    last_slot_ms: int | None


class Fleet:
    """Meters of `households`, publishing `{"ts":"2026-01-05T10:00:00Z","energy_wh":123.4}` after each slot.

    `ts` is the slot's start. Of all (household, slot) pairs the share `silent` is not sent; of the others the
    share `repeated` is sent twice. Both are drawn from `seed` and the slot alone. `clients` connections share
    the households. ValueError if a value is unusable.
    """

    def __init__(
        self,
        households: Households,
        *,
        url: str,
        topic: str = "meters/{household}/reading",
        schedule: Schedule,
        silent: float = 0.0,
        repeated: float = 0.0,
        qos: int = 1,
        seed: int = 0,
        clients: int = 1,
    ) -> None:
        for name, share in (("silent", silent), ("repeated", repeated)):
            if not 0 <= share <= 1:
                raise ValueError(f"{name} is a share between 0 and 1: got {share}")
        if "{household}" not in topic:
            raise ValueError(f'the topic must contain "{{household}}": got {topic!r}')
        if qos not in {0, 1, 2}:
            raise ValueError(f"qos must be 0, 1 or 2: got {qos}")
        if clients < 1:
            raise ValueError(f"a fleet needs at least one client: got {clients}")
        host, port = broker_address(url)
        self.schedule = schedule
        self._households = households
        self._silent, self._repeated, self._seed = silent, repeated, seed
        self._topics = [topic.replace("{household}", household) for household in households.ids]
        self._uplinks = [Uplink(host, port, qos) for _ in range(clients)]
        spread = min(_SPREAD * schedule.slot_ms, _SPREAD_MAX_MS)
        delays = np.random.default_rng([seed]).uniform(0, spread, (2, len(households.ids)))
        # of each household's reading and of its repetition: a meter keeps its place among the others
        self._delays = np.sort(delays, axis=0)
        self._clock: Callable[[], int] | None = None
        self._slots = self._kept_back = 0

    @property
    def progress(self) -> FleetProgress:
        """What has been done so far; also of use after `run` was cancelled."""
        return FleetProgress(
            readings=sum(uplink.readings for uplink in self._uplinks),
            slots=self._slots,
            silent=self._kept_back,
            repeated=sum(uplink.repeated for uplink in self._uplinks),
            last_slot_ms=self.schedule.slot_start(self._slots - 1) if self._slots else None,
        )

    def faults(self, slot_ms: int) -> tuple[BoolArray, BoolArray]:
        """Tell which households are silent, and which send twice, in the slot that starts at `slot_ms`."""
        rng = np.random.default_rng([self._seed, slot_ms // 1000])
        draws = rng.random((2, len(self._topics)))
        silent = draws[0] < self._silent
        return silent, (draws[1] < self._repeated) & ~silent

    async def run(
        self,
        *,
        slots: int | None = None,
        progress: Callable[[FleetProgress], None] | None = None,
        clock: Callable[[], int] | None = None,
    ) -> FleetProgress:
        """Publish this many further slots (or until cancelled); `progress` is called after each.

        `clock` gives simulated ms, by default a `wall_clock` from the first call on. While the broker is
        away, readings wait, and go out when it returns. aiomqtt.exceptions.MqttConnectError if it refuses the
        connection.
        """
        if self.schedule.paced:
            self._clock = clock or self._clock or wall_clock(self.schedule)
        last = math.inf if slots is None else self._slots + slots
        try:
            while self._slots < last:
                await self._publish(self.schedule.slot_start(self._slots))
                if progress is not None:
                    progress(self.progress)
        finally:
            for uplink in self._uplinks:
                await uplink.close()
        return self.progress

    async def _publish(self, slot_ms: int) -> None:
        # in a thread: a new day of a large fleet takes long enough to hold up whatever else runs in this loop
        messages, silent = await asyncio.to_thread(self._messages, slot_ms)
        try:
            async with asyncio.TaskGroup() as group:
                for uplink, share in zip(self._uplinks, messages, strict=True):
                    group.create_task(uplink.deliver(share, self._until))
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from failures
        self._slots += 1
        self._kept_back += silent

    def _messages(self, slot_ms: int) -> tuple[list[list[Message]], int]:
        """Write each client's messages of a slot in the order of their times, and count the silent meters."""
        length = self.schedule.slot_ms
        energy = self._households.energy_wh(slot_ms, length).tolist()
        silent, twice = self.faults(slot_ms)
        due_ms = (self._delays + (slot_ms + length)).tolist()
        ts = datetime.fromtimestamp(slot_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        shares: list[list[Message]] = [[] for _ in self._uplinks]
        for repetition, sends in enumerate((~silent, twice)):
            for meter in np.flatnonzero(sends).tolist():
                payload = b'{"ts":"%b","energy_wh":%.1f}' % (ts.encode(), energy[meter])
                message = Message(due_ms[repetition][meter], self._topics[meter], payload, bool(repetition))
                shares[meter % len(shares)].append(message)
        for share in shares:
            share.sort()
        return shares, int(silent.sum())

    async def _until(self, time_ms: float) -> None:
        # more than once, as a loop may wake a little early, and a reading must not come before its slot's end
        while self._clock is not None and (ahead := time_ms - self._clock()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(ahead / 1000 / self.schedule.speed)
