"""The fleet publishes what its schedule says, seen by an independent subscriber through a real broker."""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from collections import Counter
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import aiomqtt
import numpy as np
import pytest
import uvloop
from aiomqtt.exceptions import MqttConnectError
from brokers import Mosquitto

from simulators.fleet import Fleet, FleetProgress, Schedule, feeders, wall_clock
from simulators.households import Households

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

START_MS = 1_767_607_200_000  # 2026-01-05T10:00:00Z
SLOT_MS = 1_800_000
FAST = Schedule(START_MS, math.inf, SLOT_MS)
EVERYTHING = "meters/+/reading"


class Received:
    """What a subscriber saw: payloads by topic, and when (monotonic seconds) each came."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, bytes, float]] = []

    def pairs(self) -> Counter[tuple[str, str]]:
        """Count the messages of each (topic, slot)."""
        return Counter((topic, json.loads(payload)["ts"]) for topic, payload, _ in self.messages)

    async def until(self, count: int) -> None:
        async with asyncio.timeout(10):
            while len(self.messages) < count:  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    async def settled(self, count: int) -> None:
        """Wait for `count` messages and a little longer, so that one too many would be seen."""
        await self.until(count)
        await asyncio.sleep(0.1)
        assert len(self.messages) == count


@asynccontextmanager
async def subscriber(mosquitto: Mosquitto, topic: str = EVERYTHING) -> AsyncIterator[Received]:
    received = Received()

    async def read(client: aiomqtt.Client) -> None:
        with suppress(aiomqtt.MqttError):  # a lost subscription shows as missing messages
            async for message in client.messages:
                assert isinstance(message.payload, bytes)
                assert (message.qos, message.retain) == (1, False)
                received.messages.append((str(message.topic), message.payload, time.monotonic()))

    async with aiomqtt.Client("127.0.0.1", mosquitto.port) as client:
        await client.subscribe(topic, qos=1)
        reading = asyncio.create_task(read(client))
        try:
            yield received
        finally:
            reading.cancel()
            await asyncio.wait([reading])
    if not reading.cancelled():
        reading.result()


def stamp(slot: int, start_ms: int = START_MS, slot_ms: int = SLOT_MS) -> str:
    return datetime.fromtimestamp((start_ms + slot * slot_ms) / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def topic_of(household: str) -> str:
    return f"meters/{household}/reading"


async def test_every_household_reports_every_slot_once(mosquitto: Mosquitto) -> None:
    homes = Households.draw(30, seed=1)
    async with subscriber(mosquitto) as received:
        done = await Fleet(homes, url=mosquitto.url, schedule=FAST).run(slots=6)
        await received.settled(180)
    assert received.pairs() == {(topic_of(home), stamp(slot)): 1 for home in homes.ids for slot in range(6)}
    assert done == FleetProgress(
        readings=180, slots=6, silent=0, repeated=0, last_slot_ms=START_MS + 5 * SLOT_MS
    )


async def test_payloads_are_the_slots_energy_to_a_tenth_of_a_watt_hour(mosquitto: Mosquitto) -> None:
    homes = Households.draw(20, seed=2)
    async with subscriber(mosquitto) as received:
        await Fleet(homes, url=mosquitto.url, schedule=FAST).run(slots=2)
        await received.settled(40)
    energy = {
        (topic_of(home), stamp(slot)): value
        for slot in range(2)
        for home, value in zip(homes.ids, homes.energy_wh(START_MS + slot * SLOT_MS, SLOT_MS), strict=True)
    }
    for topic, payload, _ in received.messages:
        assert re.fullmatch(rb'\{"ts":"2026-01-05T1\d:[03]0:00Z","energy_wh":\d+\.\d\}', payload)
        reading = json.loads(payload)
        assert abs(reading["energy_wh"] - energy[topic, reading["ts"]]) <= 0.05 + 1e-9


async def test_readings_leave_shortly_after_the_simulated_end_of_their_slot(mosquitto: Mosquitto) -> None:
    schedule = Schedule(START_MS, 4500, SLOT_MS)  # a slot takes 0.4 s
    began = time.monotonic()
    clock = wall_clock(schedule, began)
    async with subscriber(mosquitto) as received:
        await Fleet(Households.draw(40, seed=1), url=mosquitto.url, schedule=schedule).run(
            slots=3, clock=clock
        )
        await received.settled(120)
    ends = {stamp(slot): began + 0.4 * (slot + 1) for slot in range(3)}
    late = np.array([came - ends[json.loads(payload)["ts"]] for _, payload, came in received.messages])
    assert late.min() >= 0
    assert np.median(late) < 0.2
    assert late.max() < 0.4


async def test_households_spread_their_reports_over_a_tenth_of_a_slot(mosquitto: Mosquitto) -> None:
    schedule = Schedule(START_MS, 60, 60_000)  # a slot takes 1 s, its reports up to 0.1 s
    async with subscriber(mosquitto) as received:
        await Fleet(Households.draw(50, seed=1), url=mosquitto.url, schedule=schedule).run(slots=1)
        await received.settled(50)
    times = [came for _, _, came in received.messages]
    assert 0.04 < max(times) - min(times) < 0.5


async def test_a_silent_share_of_the_readings_is_never_sent(mosquitto: Mosquitto) -> None:
    homes = Households.draw(50, seed=1)
    fleet = Fleet(homes, url=mosquitto.url, schedule=FAST, silent=0.2, seed=5)
    async with subscriber(mosquitto) as received:
        done = await fleet.run(slots=20)
        await received.settled(done.readings)
    assert done.readings + done.silent == 1000
    assert 150 < done.silent < 250
    expected = Counter[tuple[str, str]]()
    for slot in range(20):
        silent, _ = fleet.faults(START_MS + slot * SLOT_MS)
        for home, quiet in zip(homes.ids, silent, strict=True):
            if not quiet:
                expected[topic_of(home), stamp(slot)] = 1
    assert received.pairs() == expected


async def test_a_repeated_share_of_the_readings_is_sent_twice_with_the_same_bytes(
    mosquitto: Mosquitto,
) -> None:
    fleet = Fleet(
        Households.draw(50, seed=1), url=mosquitto.url, schedule=FAST, silent=0.1, repeated=0.3, seed=5
    )
    async with subscriber(mosquitto) as received:
        done = await fleet.run(slots=20)
        await received.settled(done.readings + done.repeated)
    twice = [pair for pair, count in received.pairs().items() if count == 2]
    assert len(twice) == done.repeated
    assert 200 < done.repeated < 340
    assert set(received.pairs().values()) == {1, 2}
    assert len({(topic, payload) for topic, payload, _ in received.messages}) == done.readings


async def test_the_same_seed_makes_the_same_faults_and_another_seed_others(mosquitto: Mosquitto) -> None:
    homes = Households.draw(200, seed=1)

    def faults(seed: int) -> tuple[list[bool], list[bool]]:
        fleet = Fleet(homes, url=mosquitto.url, schedule=FAST, silent=0.3, repeated=0.3, seed=seed)
        silent, repeated = fleet.faults(START_MS)
        return silent.tolist(), repeated.tolist()

    assert faults(1) == faults(1)
    assert faults(1) != faults(2)


async def test_several_clients_share_the_households(mosquitto: Mosquitto) -> None:
    homes = Households.draw(31, seed=1)
    async with subscriber(mosquitto) as received:
        done = await Fleet(homes, url=mosquitto.url, schedule=FAST, clients=3).run(slots=4)
        await received.settled(124)
    assert done.readings == 124
    assert received.pairs() == {(topic_of(home), stamp(slot)): 1 for home in homes.ids for slot in range(4)}


async def test_the_topic_is_chosen_by_the_caller(mosquitto: Mosquitto) -> None:
    fleet = Fleet(
        Households.draw(2, seed=1), url=mosquitto.url, topic="site/{household}/energy/state", schedule=FAST
    )
    async with subscriber(mosquitto, "site/#") as received:
        await fleet.run(slots=1)
        await received.settled(2)
    assert {topic for topic, _, _ in received.messages} == {
        "site/h-0001/energy/state",
        "site/h-0002/energy/state",
    }


async def test_progress_is_told_after_each_slot(mosquitto: Mosquitto) -> None:
    told: list[FleetProgress] = []
    fleet = Fleet(Households.draw(5, seed=1), url=mosquitto.url, schedule=FAST)
    done = await fleet.run(slots=3, progress=told.append)
    assert [(step.slots, step.readings) for step in told] == [(1, 5), (2, 10), (3, 15)]
    assert told[-1] == done == fleet.progress


async def test_a_second_run_goes_on_where_the_first_ended(mosquitto: Mosquitto) -> None:
    fleet = Fleet(Households.draw(5, seed=1), url=mosquitto.url, schedule=FAST)
    async with subscriber(mosquitto) as received:
        await fleet.run(slots=1)
        done = await fleet.run(slots=1)
        await received.settled(10)
    assert done.slots == 2
    assert {slot for _, slot in received.pairs()} == {stamp(0), stamp(1)}


async def test_without_a_number_of_slots_it_runs_until_cancelled(mosquitto: Mosquitto) -> None:
    fleet = Fleet(Households.draw(5, seed=1), url=mosquitto.url, schedule=FAST)
    running = asyncio.create_task(fleet.run())
    async with asyncio.timeout(10):
        while fleet.progress.slots < 20:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert fleet.progress.readings >= 100


async def test_what_was_not_confirmed_is_sent_again_after_the_broker_returns(mosquitto: Mosquitto) -> None:
    homes = Households.draw(100, seed=1)
    schedule = Schedule(START_MS, 9000, SLOT_MS)  # a slot takes 0.2 s
    fleet = Fleet(homes, url=mosquitto.url, schedule=schedule, clients=2)
    running = asyncio.create_task(fleet.run(slots=8))
    async with subscriber(mosquitto) as before:
        await before.until(150)  # within the second slot
        await asyncio.to_thread(mosquitto.kill)
    await asyncio.sleep(0.1)  # what the broker had confirmed is counted by now
    held_back = fleet.progress.slots
    await asyncio.sleep(0.4)  # two more slots end
    assert fleet.progress.slots == held_back < 6
    await asyncio.to_thread(mosquitto.start)
    async with subscriber(mosquitto) as after:
        done = await asyncio.wait_for(running, 20)
        await asyncio.sleep(0.2)
    assert (done.readings, done.slots, done.repeated) == (800, 8, 0)
    assert len(before.pairs()) >= 150
    assert stamp(7) in {slot for _, slot in after.pairs()}


async def test_a_broker_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    mosquitto = Mosquitto(tmp_path)
    fleet = Fleet(Households.draw(3, seed=1), url=mosquitto.url, schedule=FAST)
    running = asyncio.create_task(fleet.run(slots=1))
    await asyncio.sleep(0.2)
    assert not running.done()
    with mosquitto:
        assert (await asyncio.wait_for(running, 10)).readings == 3


async def test_a_broker_that_refuses_the_connection_ends_the_run(tmp_path: Path) -> None:
    with Mosquitto(tmp_path, config_lines=["allow_anonymous false"]) as mosquitto:
        fleet = Fleet(Households.draw(3, seed=1), url=mosquitto.url, schedule=FAST, clients=2)
        with pytest.raises(MqttConnectError):
            await fleet.run(slots=1)


@asynccontextmanager
async def cut_line(port: int, *, cuts: int, every: int) -> AsyncIterator[int]:
    """Relay to a broker's port, cutting the first `cuts` connections after `every` bytes were sent."""
    connections = 0

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: float) -> None:
        passed = 0
        while passed < limit and (data := await reader.read(1000)):
            writer.write(data)
            passed += len(data)

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        from_broker, to_broker = await asyncio.open_connection("127.0.0.1", port)
        back = asyncio.create_task(pump(from_broker, writer, math.inf))
        await pump(reader, to_broker, every if connections <= cuts else math.inf)
        back.cancel()
        to_broker.close()
        writer.close()

    async with await asyncio.start_server(relay, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
    assert connections > cuts


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_nothing_is_lost_when_the_connection_breaks_between_readings(
    mosquitto: Mosquitto, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    homes = Households.draw(60, seed=1)

    async def scenario() -> tuple[FleetProgress, Received]:
        async with (
            subscriber(mosquitto) as received,
            cut_line(mosquitto.port, cuts=4, every=3000) as port,
        ):
            done = await Fleet(homes, url=f"mqtt://127.0.0.1:{port}", schedule=FAST).run(slots=5)
            await asyncio.sleep(0.1)
        return done, received

    with asyncio.Runner(loop_factory=new_loop) as runner:
        done, received = runner.run(scenario())
    assert (done.readings, done.slots, done.repeated) == (300, 5, 0)
    assert set(received.pairs()) == {(topic_of(home), stamp(slot)) for home in homes.ids for slot in range(5)}
    assert len({(topic, payload) for topic, payload, _ in received.messages}) == 300


def test_it_runs_under_uvloop(mosquitto: Mosquitto) -> None:
    async def scenario() -> Received:
        async with subscriber(mosquitto) as received:
            await Fleet(
                Households.draw(50, seed=1), url=mosquitto.url, schedule=Schedule(START_MS, 9000, SLOT_MS)
            ).run(slots=4)
            await received.settled(200)
        return received

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        received = runner.run(scenario())
    assert set(received.pairs().values()) == {1}
    assert len(received.pairs()) == 200


def test_the_wall_clock_runs_at_the_schedules_speed_from_its_anchor() -> None:
    schedule = Schedule(START_MS, 900, SLOT_MS)
    early = wall_clock(schedule, time.monotonic() - 2)
    assert 0 <= early() - (START_MS + SLOT_MS) < 900 * 500
    first = wall_clock(schedule)()
    assert 0 <= first - START_MS < 900 * 500


@pytest.mark.parametrize("speed", [0, math.inf])
def test_as_fast_as_it_can_has_no_clock(speed: float) -> None:
    schedule = Schedule(START_MS, speed, SLOT_MS)
    assert not schedule.paced
    with pytest.raises(ValueError, match="has no clock"):
        wall_clock(schedule)


@pytest.mark.parametrize(
    ("start_ms", "speed", "slot_ms", "fault"),
    [
        (START_MS + 1000, 1, SLOT_MS, "start_ms"),
        (START_MS, -1, SLOT_MS, "speed"),
        (START_MS, math.nan, SLOT_MS, "speed"),
        (START_MS, 1, 0, "slot_ms"),
        (START_MS, 1, 1500, "slot_ms"),
    ],
)
def test_a_schedule_off_its_slots_is_refused(start_ms: int, speed: float, slot_ms: int, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        Schedule(start_ms, speed, slot_ms)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"url": "http://127.0.0.1:1883"}, "mqtt://host:port"),
        ({"url": "mqtt://user:secret@127.0.0.1"}, "mqtt://host:port"),
        ({"url": "mqtt://"}, "mqtt://host:port"),
        ({"topic": "meters/reading"}, "household"),
        ({"silent": 1.5}, "silent"),
        ({"repeated": -0.1}, "repeated"),
        ({"clients": 0}, "client"),
        ({"qos": 3}, "qos"),
    ],
)
def test_a_fleet_that_cannot_work_is_refused_and_says_what_to_change(
    change: dict[str, object], fault: str
) -> None:
    arguments: dict[str, object] = {"url": "mqtt://127.0.0.1:1883", "schedule": FAST} | change
    with pytest.raises(ValueError, match=fault) as refused:
        Fleet(Households.draw(1, seed=1), **arguments)  # type: ignore[arg-type]
    assert "secret" not in str(refused.value)


def test_feeders_are_blocks_of_neighbours() -> None:
    ids = Households.draw(120, seed=1).ids
    assert {name: len(block) for name, block in feeders(ids).items()} == {
        "feeder-01": 50,
        "feeder-02": 50,
        "feeder-03": 20,
    }
    assert sum(feeders(ids).values(), ()) == ids
    assert list(feeders(ids, size=1))[-1] == "feeder-120"
    assert feeders([]) == {}
    with pytest.raises(ValueError, match="size=0"):
        feeders(ids, size=0)
