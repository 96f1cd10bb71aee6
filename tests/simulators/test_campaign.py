"""`noiseless simulate` publishes what it says, and writes a configuration that reads it."""

import asyncio
import json
import tomllib
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import aiomqtt
import pytest
from brokers import Mosquitto

from gateway.checking import validated
from gateway.clocks import utc_ms
from gateway.metering import metering_of
from gateway.report import privacy_table
from gateway.sources import Sources
from simulators.campaign import Campaign
from simulators.fleet import FleetProgress

START = "2026-01-05T06:00:00Z"
START_MS = 1_767_592_800_000


def campaign(url: str = "mqtt://127.0.0.1:1883", **fields: Any) -> Campaign:  # noqa: ANN401 - of Campaign
    chosen: dict[str, Any] = {
        "url": url,
        "households": 5,
        "speed": 0,
        "slot": "30min",
        "slots": 3,
        "start": START,
        "silent": 0,
        "repeated": 0,
        "seed": 1,
    }
    return Campaign(**{**chosen, **fields})


Heard = list[tuple[str, bytes]]


async def published(broker: Mosquitto, **fields: Any) -> tuple[dict[str, Any], Heard]:  # noqa: ANN401 - same
    """Run a campaign; return its summary, and what the broker heard."""
    heard: Heard = []
    async with aiomqtt.Client("127.0.0.1", broker.port, protocol=aiomqtt.ProtocolVersion.V5) as client:
        await client.subscribe("#", qos=1)
        summary = await campaign(broker.url, **fields).run(asyncio.Event(), lambda _: None)
        async with asyncio.timeout(5):
            await client.publish("end", b"", qos=1)
            async for message in client.messages:
                if str(message.topic) == "end":
                    break
                heard.append((str(message.topic), bytes(message.payload)))
    return summary, heard


async def test_every_household_speaks_once_a_slot_of_the_slots_start(mosquitto: Mosquitto) -> None:
    summary, heard = await published(mosquitto)
    assert summary == {
        "readings": 15,
        "slots": 3,
        "silent": 0,
        "repeated": 0,
        "last_slot_ms": START_MS + 2 * 1_800_000,
    }
    counted = Counter((topic, json.loads(payload)["ts"]) for topic, payload in heard)
    assert len(counted) == 15
    assert set(counted.values()) == {1}
    assert {ts for _, ts in counted} == {
        "2026-01-05T06:00:00Z",
        "2026-01-05T06:30:00Z",
        "2026-01-05T07:00:00Z",
    }


async def test_the_counts_of_faults_are_what_the_broker_heard(mosquitto: Mosquitto) -> None:
    summary, heard = await published(mosquitto, households=20, slots=5, silent=0.3, repeated=0.4)
    assert summary["readings"] + summary["silent"] == 100
    assert summary["silent"] > 0
    assert summary["repeated"] > 0
    counted = Counter((topic, payload) for topic, payload in heard)
    assert len(counted) == summary["readings"]
    assert counted.total() == summary["readings"] + summary["repeated"]
    assert set(counted.values()) == {1, 2}


async def test_the_same_seed_publishes_the_same_and_another_something_else(mosquitto: Mosquitto) -> None:
    runs = [(await published(mosquitto, seed=seed))[1] for seed in (1, 1, 2)]
    assert sorted(runs[0]) == sorted(runs[1]) != sorted(runs[2])


async def test_a_written_configuration_reads_all_that_is_published(mosquitto: Mosquitto) -> None:
    config = validated(tomllib.loads(campaign(mosquitto.url).config()))
    _, heard = await published(mosquitto)
    sources = Sources(config.source, metering_of(config), config.slots.length)
    readings, rejected = sources.decode([(topic, payload, False) for topic, payload in heard])
    assert not rejected
    assert len(readings) == 15
    assert set(readings.meter.tolist()) == set(range(5))
    assert config.broker.url == mosquitto.url


@pytest.mark.parametrize("slot", ["1s", "45s", "1min", "30min", "1h", "1d"])
@pytest.mark.parametrize("households", [1, 51, 120])
def test_a_written_configuration_is_good_and_names_the_whole_fleet(slot: str, households: int) -> None:
    config = validated(tomllib.loads(campaign(slot=slot, households=households).config()))
    report = privacy_table(config)
    assert sum(row["households"] for row in report["households"]) == households
    assert sum(row["members"] for row in report["groups"]) == households
    assert report["ok"]


@pytest.mark.parametrize("slot", ["7min", "50min", "7h", "36h"])
def test_a_written_configuration_is_good_for_slots_that_do_not_fill_a_day(slot: str) -> None:
    assert validated(tomllib.loads(campaign(slot=slot).config())).household


@pytest.mark.parametrize(
    ("speed", "start", "clock"),
    [(1, None, "wall"), (0, None, "event"), (60, None, "event"), (1, START, "event")],
)
def test_only_a_fleet_on_the_wall_clock_is_read_by_the_wall_clock(
    speed: float, start: str | None, clock: str
) -> None:
    text = campaign(speed=speed, start=start).config()
    assert tomllib.loads(text)["slots"]["clock"] == clock


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"slot": "soon"}, "--slot soon"),
        ({"slot": "30"}, "--slot 30"),
        ({"slot": "1500ms"}, "whole seconds"),
        ({"start": "2026-01-05T06:00:00"}, "--start 2026-01-05T06:00:00 has no offset"),
        ({"start": "yesterday"}, "yesterday"),
        ({"url": "nonsense"}, "mqtt://host:port"),
        ({"url": "mqtt://user:hunter2@host"}, "mqtt://host:port"),
        ({"silent": 2}, "silent"),
        ({"speed": -1}, "speed"),
    ],
)
async def test_an_unusable_value_is_named(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words) as refused:
        await campaign(**fields).run(asyncio.Event(), lambda _: None)
    assert "hunter2" not in str(refused.value)


async def test_a_campaign_without_end_stops_when_it_is_told(mosquitto: Mosquitto) -> None:
    stop = asyncio.Event()
    seen: list[FleetProgress] = []

    def report(progress: FleetProgress) -> None:
        seen.append(progress)
        if progress.slots == 3:
            stop.set()

    running = campaign(mosquitto.url, slots=None).run(stop, report)
    summary = await asyncio.wait_for(running, 10)
    assert summary["slots"] >= 3
    assert [progress.slots for progress in seen] == list(range(1, len(seen) + 1))


async def test_in_real_time_the_first_slot_is_the_one_that_is_running(mosquitto: Mosquitto) -> None:
    before = utc_ms()
    summary, heard = await published(mosquitto, speed=1, start=None, slot="1s", slots=2)
    first = min(json.loads(payload)["ts"] for _, payload in heard)
    first_ms = datetime.fromisoformat(first).astimezone(UTC).timestamp() * 1_000
    assert first_ms <= before < first_ms + 1_500
    assert summary["slots"] == 2
    assert summary["last_slot_ms"] == first_ms + 1_000


async def test_a_broker_that_is_not_there_yet_is_waited_for(mosquitto: Mosquitto) -> None:
    mosquitto.stop()
    running = asyncio.create_task(campaign(mosquitto.url).run(asyncio.Event(), lambda _: None))
    await asyncio.sleep(0.2)
    assert not running.done()
    await asyncio.to_thread(mosquitto.start)
    summary = await asyncio.wait_for(running, 10)
    assert summary["readings"] == 15
