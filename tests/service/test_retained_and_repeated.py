"""What a broker keeps or sends twice is never energy twice, whatever a meter tells."""

import json
import time

from brokers import Mosquitto
from gateways import Gateway, eventually
from service.conftest import GatewayFactory
from service.expecting import Grid
from service.telling import FINE, POWER, REGISTER, Street, watts_of
from service.watching import Message, Watcher, publish

LENGTH = 3_600
SLOTS = 4


def kept(message: Message) -> Message:
    return message._replace(retain=True)


def told(street: Street, meter: str, first: int, stop: int, watts: int = 600) -> list[Message]:
    """Return a register's readings, each five minutes of [first, stop) seconds."""
    return [
        street.register(meter, second, 47_900 + watts * second // 3_600) for second in range(first, stop, 300)
    ]


def test_a_retained_register_is_a_baseline_and_nothing_else(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    """As E2 (home-assistant/core#48206): the whole register was added at each start."""
    names = ["from-retained", "from-live", "kept-yesterday"]
    street = Street(names, [{**REGISTER, "meters": names, "gap": "10min"}], LENGTH)
    publish(
        mosquitto.port,
        [
            kept(street.register("from-retained", 0, 47_900)),
            kept(street.register("kept-yesterday", -86_400, 12_000)),
        ],
    )
    gateway: Gateway = make_gateway(**street.tables()).start()
    live = [message for name in names for message in told(street, name, 300, SLOTS * LENGTH + 600)]
    publish(mosquitto.port, [*live, *street.tick(0), *street.tick(SLOTS)])
    assert street.watts(watcher, "from-retained", SLOTS) == [600] * SLOTS
    assert street.watts(watcher, "from-live", SLOTS) == [600] * SLOTS
    assert street.watts(watcher, "kept-yesterday", SLOTS) == [600] * SLOTS
    assert gateway.operator_metrics()["stale_retained"] == 1


def test_a_retained_register_that_comes_again_at_each_start_changes_nothing(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    """As C1 (zigbee2mqtt#3496) and E2: a subscription brings the broker's last value again."""
    street = Street(["r"], [{**REGISTER, "meters": ["r"], "gap": "10min"}], LENGTH)
    gateway: Gateway = make_gateway(**street.tables()).start()
    publish(mosquitto.port, [*told(street, "r", 0, LENGTH + 600), *street.tick(0), *street.tick(1)])
    assert street.watts(watcher, "r", 1) == [600]
    gateway.stop()
    # Of a session that is new at the broker, to which it comes as kept. Wrong, and newer than all others.
    gateway.configure(broker={"client_id": "another"})
    publish(mosquitto.port, [kept(street.register("r", LENGTH + 900, 49_000))])
    gateway.start()
    eventually("it is counted", lambda: gateway.operator_metrics().get("stale_retained", 0) == 1)
    publish(mosquitto.port, [*told(street, "r", LENGTH + 900, SLOTS * LENGTH + 600), *street.tick(SLOTS)])
    assert street.watts(watcher, "r", SLOTS) == [600] * SLOTS


def test_a_meter_that_retains_all_it_says_is_as_good_as_any_over_restarts(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    street = Street(["r"], [{**REGISTER, "meters": ["r"], "gap": "10min"}], LENGTH)
    gateway: Gateway = make_gateway(**street.tables()).start()
    publish(mosquitto.port, street.tick(0))
    for slot in range(SLOTS):
        end = (slot + 1) * LENGTH + 600
        readings = told(street, "r", slot * LENGTH + 600 if slot else 0, end)
        publish(mosquitto.port, [*map(kept, readings), *street.tick(slot + 1)])
        assert street.watts(watcher, "r", slot + 1) == [600] * (slot + 1)
        gateway.kill()
        gateway.configure(broker={"client_id": f"session-{slot}"})
        gateway.start()


def test_every_reading_twice_and_the_whole_day_once_more_is_the_same_day(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    """As B1 (mosquitto#398), B4 (lf-edge/ekuiper#2083): a bridge or a meter sends again all that it has."""
    street = Street(["r", "p"], [{**REGISTER, "meters": ["r"]}, {**POWER, "meters": ["p"]}], LENGTH)
    registers = told(street, "r", 0, SLOTS * LENGTH + 600)
    samples = [street.power("p", second, second % 977) for second in range(0, SLOTS * LENGTH, 600)]
    gateway: Gateway = make_gateway(**street.tables()).start()
    publish(mosquitto.port, [*registers, *samples, *registers, *samples, *street.tick(0), *street.tick(2)])
    first = {name: street.watts(watcher, name, 2) for name in street.watched}
    publish(mosquitto.port, [*registers, *samples, *street.tick(SLOTS)])
    last = {name: street.watts(watcher, name, SLOTS) for name in street.watched}
    assert last["r"] == [600] * SLOTS
    assert {name: watts[:2] for name, watts in last.items()} == first
    releases = watcher.releases()["household/r"]
    assert [len(repeats) for repeats in releases.values()] == [1] * SLOTS
    counted = gateway.operator_metrics()
    assert counted["late"] == 2 * len(registers[: 2 * 12]) // 2 + len(samples[: 2 * 6])
    assert counted["repeated"] >= len(registers) + len(samples)


def test_a_retained_register_without_a_clock_is_no_baseline(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    """As E8 (Tasmota#13924): it may be of last week, and would make its energy today's, in one slot."""
    publish(mosquitto.port, [Message("meters/r/register", b'{"wh": 47000}', retain=True)])
    gateway: Gateway = make_gateway(
        household=[{"id": "r", **FINE}],
        source=[{**REGISTER, "meters": ["r"], "time": "arrival", "gap": "2s"}],
        slots={"length": "2s", "grace": "500ms", "clock": "wall", "missing": "symbol"},
    ).start()
    now = Grid.running(2)
    grid = Grid(2, now.first_s + 2)
    grid.sleep_into(0, 0.2)
    # A kilowatt, after 100 Wh that went through while nobody listened.
    began = time.time()
    while time.time() < grid.first_s + 6.4:
        wh = 47_100 + (time.time() - began) / 3.6
        publish(mosquitto.port, [Message("meters/r/register", json.dumps({"wh": wh}).encode())])
        time.sleep(0.3)
    releases = watcher.wait_for_slots(["household/r"], grid.starts(0, 3))["household/r"]
    watts = [watts_of(releases[start][0]) for start in grid.starts(0, 3)]
    assert all(watt is None or 700 < watt < 1_300 for watt in watts), watts
    assert watts[1] is not None
    assert gateway.operator_metrics()["stale_retained"] == 1
