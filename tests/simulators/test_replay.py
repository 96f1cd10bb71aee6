"""`noiseless replay` publishes a recording as it is, and a gateway's releases of it are those of its policy."""

import asyncio
import json
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiomqtt
import numpy as np
import pytest
from brokers import Mosquitto
from gateways import Gateway, noiseless
from service.watching import Watcher

from gateway.checking import load, validated
from gateway.metering import metering_of
from gateway.policy import document_of
from gateway.privacy import MISSING, IntArray, State, close_slot
from gateway.report import privacy_table
from gateway.sources import Sources
from simulators.recorded import Form, Unit
from simulators.recording import Recording
from simulators.replay import Replay
from simulators.timetable import Faults, Quantity, Timetable

START_MS = 1_767_571_200_000  # 2026-01-05T00:00:00Z
HALF_HOUR = 1_800_000
HOMES = [f"h-{i:02}" for i in range(8)]
Heard = list[tuple[str, dict[str, Any]]]


def written(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def week(slots: int = 336) -> IntArray:
    """Return (slots, homes) whole Wh, one in twenty not recorded."""
    rng = np.random.default_rng(7)
    energy = rng.integers(0, 9_000, (slots, len(HOMES)))
    return np.where(rng.random(energy.shape) < 0.05, MISSING, energy)


def csv_of(path: Path, energy_wh: IntArray, interval_ms: int = HALF_HOUR) -> Path:
    lines = [",".join(["time", *HOMES[: energy_wh.shape[1]]])]
    for row, values in enumerate(energy_wh.tolist()):
        cells = ["" if value == MISSING else str(value) for value in values]
        lines.append(",".join([written(START_MS + row * interval_ms), *cells]))
    path.write_text("\n".join(lines) + "\n")
    return path


async def published(broker: Mosquitto, replay: Replay) -> tuple[dict[str, Any], Heard]:
    """Run a replay; return its summary, and what the broker heard, in order."""
    heard: Heard = []
    async with aiomqtt.Client("127.0.0.1", broker.port, protocol=aiomqtt.ProtocolVersion.V5) as client:
        await client.subscribe("#", qos=1)
        summary = await replay.run(asyncio.Event(), lambda *_: None)
        async with asyncio.timeout(10):
            await client.publish("end", b"", qos=1)
            async for message in client.messages:
                if str(message.topic) == "end":
                    break
                assert isinstance(message.payload, bytes)
                heard.append((str(message.topic).split("/")[1], json.loads(message.payload)))
    return summary, heard


def released_by_the_policy(config: Path, values_mw: IntArray) -> dict[tuple[str, str], tuple[int, bool]]:
    """Return (symbol, spent) by topic and slot, straight from the pure core."""
    document = document_of(load(config))
    policy = document.compile()
    topics = [f"household/{name}" for name in document.households] + [
        f"group/{g.name}" for g in document.groups
    ]
    state, expected = State.initial(policy), {}
    for slot, values in enumerate(values_mw):
        start = START_MS + slot * document.slot_ms
        closed = close_slot(policy, state, start, values)
        state = closed.state
        symbols = [*closed.symbols.tolist(), *closed.group_symbols.tolist()]
        spent = [*closed.spent.tolist(), *[False] * len(document.groups)]
        for topic, symbol, held in zip(topics, symbols, spent, strict=True):
            expected[topic, written(start)] = (symbol, held)
    return expected


def seen_by(watcher: Watcher) -> dict[tuple[str, str], tuple[int, bool]]:
    """Return (symbol, spent) by topic and slot, as a receiver reads them; no release came twice."""
    seen = {}
    for topic, slots in watcher.releases().items():
        for slot, (payload,) in slots.items():
            release = json.loads(payload)
            seen[topic, slot] = (release["symbol"], release.get("spent", False))
    return seen


@pytest.fixture
def watcher(tmp_path: Path, mosquitto: Mosquitto) -> Iterator[Watcher]:
    watching = Watcher(tmp_path, mosquitto.port)
    yield watching
    watching.end()


@pytest.fixture
def made() -> Iterator[list[Gateway]]:
    """Gateways to end with the test."""
    gateways: list[Gateway] = []
    yield gateways
    for gateway in gateways:
        gateway.end()
        print(gateway.logged[-5_000:])  # noqa: T201 - shown when the test failed


def reading(config: Path, folder: Path, **changed: Any) -> Gateway:  # noqa: ANN401 - tables
    """Return a gateway with exactly this configuration, but for its HTTP port and what is changed."""
    tables = tomllib.loads(config.read_text())
    household = tables.pop("household")
    return Gateway(folder / "gateway", tables["broker"]["url"], household, **{**tables, **changed})


def test_releases_of_a_replayed_week_are_those_of_the_policy_on_the_recorded_values(
    tmp_path: Path, mosquitto: Mosquitto, watcher: Watcher, made: list[Gateway]
) -> None:
    """The last slot never closes: no later reading says that it is over."""
    energy = week()
    file, config = csv_of(tmp_path / "homes.csv", energy), tmp_path / "homes.toml"
    config.write_text(Replay(file, mosquitto.url).config())
    made.append(reading(config, tmp_path).start())
    ended = noiseless("replay", file, "--url", mosquitto.url, "--json")
    assert ended.returncode == 0, ended.stderr
    sent = int((energy != MISSING).sum())
    summary = json.loads(ended.stdout)
    assert summary.pop("seconds") > 0
    assert summary == {
        "households": 8,
        "readings": sent,
        "lost": 0,
        "repeated": 0,
        "reordered": 0,
        "first": "2026-01-05T00:00:00Z",
        "last": "2026-01-11T23:30:00Z",
    }
    expected = released_by_the_policy(config, np.where(energy == MISSING, MISSING, energy * 2_000)[:-1])
    assert len(expected) == 335 * 9
    topics = sorted({topic for topic, _ in expected})
    watcher.wait_for_slots(topics, [written(START_MS + slot * HALF_HOUR) for slot in range(335)], 60)
    metrics = made[0].operator_metrics()
    assert made[0].stop() == 0
    assert seen_by(watcher) == expected
    assert metrics["noiseless_operator_readings_total"] == sent
    assert metrics["noiseless_operator_substituted_total"] == int((energy[:-1] == MISSING).sum())


def test_releases_under_faults_are_those_of_the_policy_on_what_was_sent(
    tmp_path: Path, mosquitto: Mosquitto, watcher: Watcher, made: list[Gateway]
) -> None:
    """The written grace covers the lateness: nothing that was sent comes after its slot has closed."""
    slots = 96
    (tmp_path / "raw").mkdir()
    raw = Watcher(tmp_path / "raw", mosquitto.port, "meters/#")
    file, config = csv_of(tmp_path / "homes.csv", week(slots)), tmp_path / "homes.toml"
    faults = Faults(lost=0.1, repeated=0.2, reordered=0.3, within_ms=2 * HALF_HOUR, skew_ms=60_000, seed=3)
    replay = Replay(file, mosquitto.url, faults=faults)
    config.write_text(replay.config())
    made.append(reading(config, tmp_path).start())
    summary = asyncio.run(replay.run(asyncio.Event(), lambda *_: None))
    assert min(summary[name] for name in ("lost", "repeated", "reordered")) > 10

    raw.wait("all readings", lambda one: len(one.seen) == summary["readings"] + summary["repeated"])
    values = np.full((slots, len(HOMES)), MISSING)
    for _, topic, payload in raw.seen:
        said = json.loads(payload)
        start = int(datetime.fromisoformat(said["ts"]).timestamp() * 1_000)
        slot = round((start - START_MS) / HALF_HOUR)
        values[slot, HOMES.index(topic.split("/")[1])] = said["energy_wh"] * 2_000
    raw.end()
    assert int((values != MISSING).sum()) == summary["readings"]

    closing = slots - 3  # an hour of grace, two minutes for clocks that differ, and the one that says so
    expected = released_by_the_policy(config, values[:closing])
    topics = sorted({topic for topic, _ in expected})
    watcher.wait_for_slots(topics, [written(START_MS + slot * HALF_HOUR) for slot in range(closing)], 60)
    metrics = made[0].operator_metrics()
    assert made[0].stop() == 0
    assert seen_by(watcher) == expected
    assert metrics["repeated"] + metrics.get("late", 0) == summary["repeated"]


async def test_readings_come_in_the_order_of_time_across_homes_and_missing_ones_do_not(
    tmp_path: Path, mosquitto: Mosquitto
) -> None:
    energy = week(20)
    summary, heard = await published(mosquitto, Replay(csv_of(tmp_path / "homes.csv", energy), mosquitto.url))
    assert heard == [
        (HOMES[home], {"ts": written(START_MS + row * HALF_HOUR), "energy_wh": int(energy[row, home])})
        for row in range(20)
        for home in range(8)
        if energy[row, home] != MISSING
    ]
    assert summary["readings"] == len(heard)


async def test_power_is_the_mean_of_its_interval(tmp_path: Path, mosquitto: Mosquitto) -> None:
    file = csv_of(tmp_path / "homes.csv", np.array([[100], [7]]))
    _, heard = await published(mosquitto, Replay(file, mosquitto.url, quantity=Quantity.POWER))
    assert heard == [
        ("h-00", {"ts": "2026-01-05T00:00:00Z", "power_w": 200}),
        ("h-00", {"ts": "2026-01-05T00:30:00Z", "power_w": 14}),
    ]


async def test_a_register_is_the_running_total_at_the_ends_of_recorded_intervals(
    tmp_path: Path, mosquitto: Mosquitto
) -> None:
    file = csv_of(tmp_path / "homes.csv", np.array([[MISSING, 1], [100, 2], [MISSING, 3], [7, 4]]))
    _, heard = await published(mosquitto, Replay(file, mosquitto.url, quantity=Quantity.REGISTER))
    totals = {
        home: [(said["ts"][11:16], said["register_wh"]) for name, said in heard if name == home]
        for home in HOMES[:2]
    }
    assert totals == {
        "h-00": [("00:30", 0), ("01:00", 100), ("02:00", 107)],
        "h-01": [("00:00", 0), ("00:30", 1), ("01:00", 3), ("01:30", 6), ("02:00", 10)],
    }
    assert [said["ts"] for _, said in heard] == sorted(said["ts"] for _, said in heard)


def recorded(slots: int = 200, homes: int = 5) -> Recording:
    start = START_MS + np.arange(slots) * HALF_HOUR
    milli = np.arange(slots * homes).reshape(slots, homes)
    return Recording(start, tuple(HOMES[:homes]), milli, power=False, interval_ms=HALF_HOUR)


def test_lost_repeated_and_late_readings_are_as_many_as_was_asked_and_late_ones_within_their_bound() -> None:
    faults = Faults(lost=0.1, repeated=0.2, reordered=0.3, within_ms=5_400_000)
    table = Timetable.of(recorded(), Quantity.INTERVAL, faults)
    first = ~table.repetition
    assert Counter(table.milli[first].tolist()) == dict.fromkeys(range(1_000), 1)
    assert 70 < table.lost.sum() < 130
    assert 130 < table.repetition.sum() < 230
    assert not (table.lost & table.repetition).any()
    late = table.due_ms - (table.ts_ms + HALF_HOUR)
    assert (np.diff(table.due_ms) >= 0).all()
    assert late.min() == 0
    assert 250 < np.count_nonzero(late[first]) < 350
    assert late[first].max() <= 5_400_000
    assert late.max() <= 2 * 5_400_000
    latest, overtaken = 0, 0
    for ts in table.ts_ms[first & ~table.lost].tolist():
        overtaken += ts < latest
        latest = max(latest, ts)
    assert 0 < table.overtaken.sum() == overtaken


def test_a_homes_clock_is_off_by_the_same_whole_seconds_all_the_time_and_the_sending_is_not() -> None:
    plain = Timetable.of(recorded(), Quantity.INTERVAL, Faults())
    skewed = Timetable.of(recorded(), Quantity.INTERVAL, Faults(skew_ms=90_000))
    off = defaultdict(set)
    for home, by in zip(skewed.household.tolist(), (skewed.ts_ms - plain.ts_ms).tolist(), strict=True):
        off[home].add(by)
    assert all(len(by) == 1 for by in off.values())
    assert len({by for (by,) in off.values()}) > 1
    assert all(-90_000 <= by <= 90_000 and by % 1_000 == 0 for (by,) in off.values())
    assert (skewed.due_ms == plain.due_ms).all()


def test_the_same_seed_makes_the_same_faults_and_another_seed_others() -> None:
    tables = [
        Timetable.of(
            recorded(), Quantity.INTERVAL, Faults(0.1, 0.1, 0.1, 3_600_000, 60_000, seed)
        ).due_ms.tolist()
        for seed in (1, 1, 2)
    ]
    assert tables[0] == tables[1] != tables[2]


async def test_at_a_speed_readings_leave_as_their_intervals_end(tmp_path: Path, mosquitto: Mosquitto) -> None:
    file = csv_of(tmp_path / "homes.csv", np.ones((5, 3), np.int64))
    began = time.monotonic()
    summary, heard = await published(
        mosquitto, Replay(file, mosquitto.url, speed=18_000)
    )  # 0.1 s a half hour
    assert len(heard) == summary["readings"] == 15
    assert 0.4 <= time.monotonic() - began < 2


async def test_a_recording_can_be_moved_to_start_in_the_interval_that_is_running(
    tmp_path: Path, mosquitto: Mosquitto
) -> None:
    file = csv_of(tmp_path / "homes.csv", np.ones((2, 1), np.int64), interval_ms=1_000)
    before = time.time()
    replay = Replay(file, mosquitto.url, now=True, speed=1)
    _, heard = await published(mosquitto, replay)
    starts = [datetime.fromisoformat(said["ts"]).timestamp() for _, said in heard]
    assert starts[1] == starts[0] + 1
    assert starts[0] <= before + 1 <= time.time()
    assert validated(tomllib.loads(replay.config())).slots.clock == "wall"


@pytest.mark.parametrize(
    ("interval_ms", "slot_ms"),
    [(1_000, None), (60_000, None), (HALF_HOUR, None), (3_600_000, None), (60_000, 120_000)],
)
def test_a_written_configuration_is_good_and_reads_what_is_published(
    tmp_path: Path, interval_ms: int, slot_ms: int | None
) -> None:
    energy = week(60)
    # No home takes in a second what it takes in half an hour.
    energy = np.where(energy == MISSING, MISSING, energy * interval_ms // HALF_HOUR)
    replay = Replay(
        csv_of(tmp_path / "homes.csv", energy, interval_ms), "mqtt://127.0.0.1:1", slot_ms=slot_ms
    )
    config = validated(tomllib.loads(replay.config()))
    assert config.slots.length == (slot_ms or {1_000: 900_000}.get(interval_ms, max(HALF_HOUR, interval_ms)))
    assert privacy_table(config)["ok"]
    metering = metering_of(config)
    sources = Sources(config.source, metering, config.slots.length)
    table = Timetable.of(replay.recording, Quantity.INTERVAL, Faults())
    topics = [f"meters/{home}/reading" for home in HOMES]
    sent = [(m.topic, m.payload, False) for m in table.messages(0, len(table), topics, "energy_wh")]
    readings, rejected = sources.decode(sent, 0)
    assert not rejected
    assert set(metering.meters.span_ms.tolist()) == {interval_ms}
    row = (readings.time_ms - START_MS) // interval_ms
    assert (readings.value == 1_000 * energy[row, readings.meter]).all()


@pytest.mark.parametrize(
    ("quantity", "field", "unit"),
    [(Quantity.POWER, "/power_w", "W"), (Quantity.REGISTER, "/register_wh", "Wh")],
)
def test_a_written_configuration_names_the_quantity(
    tmp_path: Path, quantity: Quantity, field: str, unit: str
) -> None:
    replay = Replay(csv_of(tmp_path / "homes.csv", week(3)), "mqtt://127.0.0.1:1", quantity=quantity)
    (source,) = tomllib.loads(replay.config())["source"]
    assert source == {
        "topic": "meters/{household}/reading",
        "quantity": quantity,
        "value": field,
        "unit": unit,
        "time": {"at": "/ts"},
    }


async def test_a_broker_that_restarts_gets_everything_and_interval_after_interval(tmp_path: Path) -> None:
    halfway = asyncio.Event()

    def report(done: int, total: int) -> None:
        if 3 * done > total:
            halfway.set()

    with Mosquitto(tmp_path / "lasting", persistence=True) as broker:
        watcher = Watcher(tmp_path, broker.port, "meters/#")
        replay = Replay(csv_of(tmp_path / "homes.csv", week()), broker.url)
        running = asyncio.create_task(replay.run(asyncio.Event(), report))
        await halfway.wait()
        await asyncio.to_thread(broker.stop)
        await asyncio.to_thread(broker.start)
        summary = await asyncio.wait_for(running, 20)
        await asyncio.to_thread(
            watcher.wait, "all readings", lambda one: len(set(one.seen)) >= summary["readings"]
        )
        first_seen = [json.loads(payload)["ts"] for _, _, payload in dict.fromkeys(watcher.seen)]
        watcher.end()
    assert len(first_seen) == summary["readings"] == int((week() != MISSING).sum())
    assert first_seen == sorted(first_seen)


async def test_a_replay_stops_when_it_is_told_and_says_how_far_it_came(
    tmp_path: Path, mosquitto: Mosquitto
) -> None:
    stop = asyncio.Event()
    replay = Replay(csv_of(tmp_path / "homes.csv", week()), mosquitto.url)
    done: list[tuple[int, int]] = []

    def report(now: int, total: int) -> None:
        done.append((now, total))
        if now > 100:
            stop.set()

    summary = await asyncio.wait_for(replay.run(stop, report), 10)
    assert 100 < summary["readings"] < done[0][1]
    assert summary["last"] < "2026-01-11T23:30:00Z"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"url": "nonsense"}, "mqtt://host:port"),
        ({"topic": "meters/reading"}, "household"),
        ({"topic": "meters/{household}/#"}, "household"),
        ({"speed": -1}, "speed"),
        ({"speed": float("nan")}, "speed"),
        ({"begin": "yesterday"}, "yesterday"),
        ({"until": "2026-01-06"}, "--zone"),
        ({"begin": "2027-01-01T00:00Z"}, "nothing was recorded"),
    ],
)
async def test_an_unusable_value_is_named(tmp_path: Path, fields: dict[str, Any], words: str) -> None:
    file = csv_of(tmp_path / "homes.csv", week(3))
    with pytest.raises(ValueError, match=words):
        await Replay(**{"file": file, "url": "mqtt://127.0.0.1:1", **fields}).run(
            asyncio.Event(), lambda *_: None
        )


@pytest.mark.parametrize("fields", [{"lost": 2}, {"repeated": -1}, {"reordered": 0.5}])
def test_unusable_faults_are_refused(fields: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"share|late"):
        Faults(**fields)  # type: ignore[arg-type]


def test_times_beside_the_borders_of_utc_make_no_configuration(tmp_path: Path) -> None:
    file = csv_of(tmp_path / "homes.csv", week(3), interval_ms=HALF_HOUR)
    file.write_text(file.read_text().replace("Z,", "+05:45,"))
    with pytest.raises(ValueError, match="borders"):
        Replay(file, "mqtt://127.0.0.1:1", Form(unit=Unit.WH)).config()


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--quantity", "volume", "interval, power, register"),
        ("--layout", "tall", "wide, long"),
        ("--unit", "J", "Wh, kWh, W, kW"),
        ("--stamp", "middle", "start, end"),
        ("--interval", "often", "--interval often"),
        ("--within", "later", "--within later"),
        ("--lost", "2", "--lost"),
        ("--zone", "Atlantis", "no zone 'Atlantis'"),
        ("--write-config", "{folder}/nowhere/x.toml", "nowhere"),
        ("--url", "mqtt://user:hunter2@127.0.0.1", "mqtt://host:port"),
    ],
)
def test_the_command_ends_with_a_word_about_an_unusable_option(
    tmp_path: Path, option: str, value: str, words: str
) -> None:
    file = csv_of(tmp_path / "homes.csv", week(3))
    file.write_text(file.read_text().replace("Z,", ","))
    zone = [] if option == "--zone" else ["--zone", "UTC"]
    ended = noiseless("replay", file, *zone, option, value.replace("{folder}", str(tmp_path)))
    assert ended.returncode in (1, 2)
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "hunter2" not in ended.stderr


def test_a_file_that_is_not_there_ends_the_command_with_a_word_about_it(tmp_path: Path) -> None:
    ended = noiseless("replay", tmp_path / "nothing.csv")
    assert ended.returncode == 1
    assert "nothing.csv" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_broker_that_refuses_the_replay_ends_it_with_a_word_about_it(tmp_path: Path) -> None:
    with Mosquitto(tmp_path, config_lines=["allow_anonymous false"]) as broker:
        ended = noiseless("replay", csv_of(tmp_path / "homes.csv", week(3)), "--url", broker.url)
    assert ended.returncode == 1
    assert "refused the replay" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_configuration_that_the_command_writes_passes_check(tmp_path: Path, mosquitto: Mosquitto) -> None:
    file, path = csv_of(tmp_path / "homes.csv", week(3)), tmp_path / "homes.toml"
    ended = noiseless("replay", file, "--url", mosquitto.url, "--write-config", path)
    assert ended.returncode == 0, ended.stderr
    assert noiseless("check", path).returncode == 0
