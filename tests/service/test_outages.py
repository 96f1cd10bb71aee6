"""Brokers that are down, late, or restarted."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from brokers import Mosquitto
from gateways import PATIENCE, Gateway, eventually, roll
from service.conftest import GatewayFactory
from service.expecting import Grid, symbol_of
from service.watching import Watcher, publish

NAMES = ["h-0", "h-1", "h-2"]


def varied(slot: int) -> int:
    """Return a power (W) whose symbol is another one in each slot, so that holding the last would show."""
    return 3_600 * (1 + slot % 3)


def symbols(slots: int) -> list[int]:
    return [symbol_of(varied(slot) * 1_000, 4) for slot in range(slots)]


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    """A started mosquitto that keeps its sessions over restarts."""
    with Mosquitto(tmp_path / "mosquitto", persistence=True) as broker:
        yield broker


def test_without_a_broker_it_is_alive_and_not_ready_and_keeps_trying_until_there_is_one(
    make_gateway: GatewayFactory, mosquitto: Mosquitto
) -> None:
    """As A8 (lf-edge/ekuiper#3270): a sink that was down at the start stopped everything."""
    mosquitto.stop()
    gateway: Gateway = make_gateway(roll(*NAMES)).spawn()
    eventually("it answers", lambda: gateway.status("/health/live") == 200)
    assert gateway.status("/health/ready") == 503
    time.sleep(1)
    assert gateway.status("/health/live") == 200
    assert gateway.status("/health/ready") == 503
    mosquitto.start()
    eventually("it is ready", lambda: gateway.ready)
    assert gateway.stop() == 0


def test_a_broker_that_restarts_costs_no_release_and_no_reading_that_it_holds(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    """As A4 (telegraf#6232): after a restart of mosquitto no message came any more."""
    gateway: Gateway = make_gateway(
        roll(*NAMES), slots={"length": "1s", "grace": "2s", "clock": "wall", "missing": "floor"}
    ).start()
    grid = Grid.running(1)
    live = []
    for slot in range(1, 7):
        grid.sleep_into(slot, 0.2)
        if slot in (2, 4):
            mosquitto.stop()
            live.append(gateway.status("/health/live"))
            mosquitto.start()
        publish(mosquitto.port, [grid.reading(name, slot, varied(slot)) for name in NAMES])
    live.append(gateway.status("/health/live"))
    topics = [f"household/{name}" for name in NAMES]
    releases = watcher.wait_for_slots(topics, grid.starts(1, 7))
    assert live == [200] * 3
    for topic in topics:
        assert all(len(set(repeats)) == 1 for repeats in releases[topic].values())
        released = [json.loads(releases[topic][start][0])["symbol"] for start in grid.starts(1, 7)]
        assert released == symbols(7)[1:]
    assert "broker connected" in gateway.logged


def test_readings_that_the_broker_holds_for_a_stopped_gateway_survive_the_restart_of_the_broker(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    grid = Grid()
    gateway: Gateway = make_gateway(roll(*NAMES)).start()
    publish(mosquitto.port, [grid.reading(name, 0, varied(0)) for name in NAMES])
    gateway.kill()
    publish(
        mosquitto.port, [grid.reading(name, slot, varied(slot)) for slot in range(1, 20) for name in NAMES]
    )
    mosquitto.stop()
    mosquitto.start()
    gateway.start()
    releases = watcher.wait_for_slots(["household/h-0"], grid.starts(0, 19))["household/h-0"]
    assert [json.loads(repeats[0])["symbol"] for repeats in releases.values()] == symbols(19)


def test_no_overdue_slot_closes_before_a_long_backlog_is_in(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    """As A1 (lf-edge/ekuiper#3709): the reading that counts is the last of what the broker kept."""
    gateway: Gateway = make_gateway(
        roll(*NAMES),
        slots={"length": "2s", "grace": "500ms", "clock": "wall", "missing": "floor"},
        ledger={"commit": "500ms"},
    ).start()
    gateway.stop()
    now = Grid.running(2)
    # More than the broker sends without acknowledgement: the last come long after the session is resumed.
    pub = shutil.which("mosquitto_pub")
    assert pub is not None
    flood = [pub, "-p", str(mosquitto.port), "-q", "1", "-t", "meters/h-unknown/reading", "-l"]
    subprocess.run(flood, input=b"{}\n" * 25_000, check=True, timeout=PATIENCE)
    publish(mosquitto.port, [now.reading(name, 0, 9_000) for name in NAMES])
    now.sleep_into(1, 0.6)
    gateway.start()
    releases = watcher.wait_for_slots(["household/h-2"], now.starts(0, 1))
    assert json.loads(releases["household/h-2"][now.start(0)][0])["symbol"] == 2


def test_a_backlog_of_any_length_is_used_on_the_event_clock(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    """As D6 (lf-edge/ekuiper#530): a replay of the past must work, however fast it comes."""
    grid, days = Grid(3_600), 5
    gateway: Gateway = make_gateway(roll(*NAMES), slots={"length": "1h"}, budget={"window": "24h"}).start()
    gateway.stop()
    hours = days * 24
    publish(
        mosquitto.port, [grid.reading(name, hour, varied(hour)) for hour in range(hours) for name in NAMES]
    )
    gateway.start()
    topics = [f"household/{name}" for name in NAMES]
    releases = watcher.wait_for_slots(topics, grid.starts(0, hours - 1), patience=20)
    assert [json.loads(repeats[0])["symbol"] for repeats in releases["household/h-0"].values()] == symbols(
        hours - 1
    )
