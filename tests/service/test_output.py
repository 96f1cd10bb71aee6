"""A broker of their own for those who receive: each side goes on while the other is down."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
from brokers import Mosquitto
from gateways import PATIENCE, Gateway, eventually, roll
from service.conftest import GatewayFactory
from service.expecting import Grid, symbol_of
from service.watching import Watcher, publish

GRID = Grid()
NAMES = ["h-0", "h-1", "h-2"]
TOPICS = [f"household/{name}" for name in NAMES]
CLOSED = "SELECT count(*) FROM slot"
WAITING = "SELECT count(*) FROM outbox"

Make = Callable[..., Gateway]


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    """The broker of readings; it keeps its sessions over restarts."""
    with Mosquitto(tmp_path / "readings", persistence=True) as broker:
        yield broker


@pytest.fixture
def receivers(tmp_path: Path) -> Iterator[Mosquitto]:
    """The broker of releases; it keeps its sessions over restarts."""
    with Mosquitto(tmp_path / "receivers", persistence=True) as broker:
        yield broker


@pytest.fixture
def receiver(tmp_path: Path, receivers: Mosquitto) -> Iterator[Watcher]:
    """Someone who receives, and sees everything at the broker of releases."""
    watching = Watcher(tmp_path, receivers.port, "#")
    yield watching
    watching.end()


@pytest.fixture
def make(make_gateway: GatewayFactory, receivers: Mosquitto) -> Make:
    """Make a gateway between the two; a reading that is lost shows, since it is not held."""

    def made(max_pending: int = 336, **slots: object) -> Gateway:
        return make_gateway(
            roll(*NAMES),
            output={"url": receivers.url, "max_pending": max_pending},
            slots={"missing": "floor", **slots},
        )

    return made


def varied(slot: int) -> int:
    """Return a power (W) whose symbol is another one in each slot, and never the lowest."""
    return 3_700 * (1 + slot % 3)


def publish_slots(port: int, first: int, stop: int, grid: Grid = GRID) -> None:
    publish(port, [grid.reading(name, slot, varied(slot)) for slot in range(first, stop) for name in NAMES])


def assert_released_once_in_order(receiver: Watcher, slots: list[str], first: int = 0) -> None:
    """Each topic has each slot with the right symbol, in order, and all copies of one are the same bytes."""
    releases = receiver.wait_for_slots(TOPICS, slots, patience=25)
    for topic in TOPICS:
        order = [
            json.loads(one.payload)["slot"] for one in receiver.seen if one.topic == f"noiseless/{topic}"
        ]
        assert all(earlier <= later for earlier, later in pairwise(order))
        assert all(len(set(releases[topic][slot])) == 1 for slot in slots)
        symbols = [json.loads(releases[topic][slot][0])["symbol"] for slot in slots]
        assert symbols == [symbol_of(varied(first + n) * 1_000, 4) for n in range(len(slots))]


def readiness(gateway: Gateway) -> dict[str, object]:
    answer = httpx.get(f"http://127.0.0.1:{gateway.port}/health/ready", trust_env=False)
    return dict(answer.json())


def test_releases_and_state_are_at_their_broker_and_readings_at_theirs(
    make: Make, mosquitto: Mosquitto, receiver: Watcher, tmp_path: Path
) -> None:
    (tmp_path / "inside").mkdir()
    inside = Watcher(tmp_path / "inside", mosquitto.port, "#")
    gateway = make().start()
    publish_slots(mosquitto.port, 0, 4)
    assert_released_once_in_order(receiver, GRID.starts(0, 3))
    assert readiness(gateway) == {
        "status": "ready",
        "subscribed": True,
        "output_connected": True,
        "ledger_writable": True,
    }
    assert gateway.stop() == 0
    receiver.wait("the farewell", lambda one: one.states() == ["online", "offline"])
    assert {one.topic for one in receiver.seen} == {
        *(f"noiseless/{topic}" for topic in TOPICS),
        "noiseless/state",
    }
    seen = {one.topic for one in inside.seen}
    inside.end()
    assert seen == {*(f"meters/{name}/reading" for name in NAMES), "noiseless/fence/noiseless"}


def test_the_input_flows_and_slots_close_while_the_output_is_down(
    make: Make, mosquitto: Mosquitto, receivers: Mosquitto, receiver: Watcher
) -> None:
    """As A10 (node-red#2864): what was published during an outage was dropped."""
    gateway = make().start()
    publish_slots(mosquitto.port, 0, 3)
    receiver.wait_for_slots(TOPICS, GRID.starts(0, 2))
    receivers.stop()
    eventually("it notices", lambda: not gateway.ready)
    publish_slots(mosquitto.port, 3, 12)
    eventually("the slots close", lambda: gateway.query(CLOSED) == 11)
    assert gateway.query(WAITING) == 9
    eventually(
        "all input is taken", lambda: gateway.operator_metrics()["noiseless_operator_unacknowledged"] == 0
    )
    assert gateway.operator_metrics()["noiseless_operator_outbox"] == 27
    assert gateway.operator_metrics()["noiseless_operator_outbox_slots"] == 9
    assert {name: readiness(gateway)[name] for name in ("subscribed", "output_connected")} == {
        "subscribed": True,
        "output_connected": False,
    }
    receivers.start()
    assert_released_once_in_order(receiver, GRID.starts(0, 11))
    eventually("nothing waits", lambda: gateway.query(WAITING) == 0)
    assert gateway.operator_metrics()["noiseless_operator_outbox"] == 0


def test_releases_that_wait_survive_a_kill(
    make: Make, mosquitto: Mosquitto, receivers: Mosquitto, receiver: Watcher
) -> None:
    gateway = make().start()
    receivers.stop()
    publish_slots(mosquitto.port, 0, 6)
    eventually("the slots close", lambda: gateway.query(CLOSED) == 5)
    gateway.kill()
    gateway.spawn()
    eventually("it runs", lambda: gateway.status("/health/live") == 200)
    assert gateway.operator_metrics()["noiseless_operator_outbox"] == 15
    publish_slots(mosquitto.port, 6, 9)
    eventually("more slots close", lambda: gateway.query(CLOSED) == 8)
    receivers.start()
    assert_released_once_in_order(receiver, GRID.starts(0, 8))


def test_what_was_decided_goes_out_while_the_input_is_down(
    make: Make, mosquitto: Mosquitto, receivers: Mosquitto, receiver: Watcher
) -> None:
    gateway = make().start()
    receivers.stop()
    publish_slots(mosquitto.port, 0, 6)
    eventually("the slots close", lambda: gateway.query(CLOSED) == 5)
    mosquitto.stop()
    receivers.start()
    assert_released_once_in_order(receiver, GRID.starts(0, 5))
    assert {name: readiness(gateway)[name] for name in ("subscribed", "output_connected")} == {
        "subscribed": False,
        "output_connected": True,
    }
    mosquitto.start()
    eventually("it is ready", lambda: gateway.ready)
    publish_slots(mosquitto.port, 6, 8)
    assert_released_once_in_order(receiver, GRID.starts(0, 7))


def test_both_are_down_and_come_back(
    make: Make, mosquitto: Mosquitto, receivers: Mosquitto, receiver: Watcher
) -> None:
    gateway = make().start()
    publish_slots(mosquitto.port, 0, 4)
    receiver.wait_for_slots(TOPICS, GRID.starts(0, 3))
    mosquitto.stop()
    receivers.stop()
    eventually("it notices", lambda: not gateway.ready)
    assert gateway.status("/health/live") == 200
    mosquitto.start()
    publish_slots(mosquitto.port, 4, 8)
    eventually("the slots close", lambda: gateway.query(CLOSED) == 7)
    receivers.start()
    assert_released_once_in_order(receiver, GRID.starts(0, 7))


def test_at_the_bound_no_slot_closes_and_input_stays_at_its_broker_until_there_is_room(
    make: Make, mosquitto: Mosquitto, receivers: Mosquitto, receiver: Watcher
) -> None:
    """Nothing is lost at the bound either, though the gateway is killed there."""
    gateway = make(max_pending=3).start()
    receivers.stop()
    publish_slots(mosquitto.port, 0, 20)
    eventually("the outbox is full", lambda: gateway.query(WAITING) == 3)
    eventually("input is held", lambda: "input waits at its broker" in gateway.logged)
    publish_slots(mosquitto.port, 20, 25)
    metrics = gateway.operator_metrics
    eventually("it came", lambda: metrics()["noiseless_operator_messages_total"] == 75)
    unacknowledged = metrics()["noiseless_operator_unacknowledged"]
    assert unacknowledged >= 15
    assert gateway.query(CLOSED) == 3
    gateway.kill()
    gateway.spawn()
    eventually("it runs", lambda: gateway.status("/health/live") == 200)
    eventually("it comes again", lambda: metrics()["noiseless_operator_messages_total"] >= 15)
    assert gateway.query(CLOSED) == 3
    receivers.start()
    assert_released_once_in_order(receiver, GRID.starts(0, 24))
    eventually("all input is taken", lambda: metrics()["noiseless_operator_unacknowledged"] == 0)
    assert gateway.query(CLOSED) == 24
    (said, *_) = [line for line in gateway.events() if line["event"] == "releases wait, no slot closes"]
    assert "output.max_pending" in str(said["remedy"])


def test_no_overdue_slot_closes_before_what_the_broker_kept_at_the_bound_is_in(
    make: Make, mosquitto: Mosquitto, receivers: Mosquitto, receiver: Watcher
) -> None:
    """One meter's readings of slots that are due lie behind more than a window of other messages."""
    gateway = make(max_pending=5).start()
    receivers.stop()
    publish(mosquitto.port, [GRID.reading(n, slot, varied(slot)) for slot in range(16) for n in NAMES[:2]])
    publish(mosquitto.port, [GRID.reading(NAMES[2], slot, varied(slot)) for slot in range(5, 8)])
    eventually("input is held", lambda: "input waits at its broker" in gateway.logged)
    pub = shutil.which("mosquitto_pub")
    assert pub is not None
    flood = [pub, "-p", str(mosquitto.port), "-q", "1", "-t", "meters/h-unknown/reading", "-l"]
    subprocess.run(flood, input=b"{}\n" * 30_000, check=True, timeout=PATIENCE)
    publish(mosquitto.port, [GRID.reading(NAMES[2], slot, varied(slot)) for slot in range(8, 15)])
    assert gateway.operator_metrics()["noiseless_operator_messages_total"] < 30_000
    receivers.start()
    releases = receiver.wait_for_slots(TOPICS, GRID.starts(0, 15))[TOPICS[2]]
    symbols = [json.loads(releases[slot][0])["symbol"] for slot in GRID.starts(5, 15)]
    assert symbols == [symbol_of(varied(slot) * 1_000, 4) for slot in range(5, 15)]


def test_stopping_while_the_output_is_down_keeps_what_waits(
    make: Make, mosquitto: Mosquitto, receivers: Mosquitto, receiver: Watcher
) -> None:
    gateway = make().start()
    receivers.stop()
    publish_slots(mosquitto.port, 0, 4)
    eventually("the slots close", lambda: gateway.query(CLOSED) == 3)
    assert gateway.stop() == 0
    receivers.start()
    gateway.start()
    assert_released_once_in_order(receiver, GRID.starts(0, 3))


def test_a_source_may_read_what_would_be_a_loop_at_one_broker(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, receivers: Mosquitto, receiver: Watcher
) -> None:
    source = {"topic": "noiseless/{household}/#", "value": "/energy_wh", "unit": "Wh", "time": {"at": "/ts"}}
    gateway: Gateway = make_gateway(roll(*NAMES), output={"url": receivers.url}, source=[source]).start()
    publish(
        mosquitto.port,
        [
            GRID.reading(name, slot, varied(slot))._replace(topic=f"noiseless/{name}/reading")
            for slot in range(4)
            for name in NAMES
        ],
    )
    assert_released_once_in_order(receiver, GRID.starts(0, 3))
    assert gateway.operator_metrics()["noiseless_operator_messages_total"] == 12
