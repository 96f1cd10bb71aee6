"""Bad input: counted under its reason, never quoted, and the stream goes on."""

import json
import signal
from collections import Counter

from brokers import Mosquitto
from gateways import eventually, roll
from service.conftest import GatewayFactory
from service.expecting import Grid, symbol_of
from service.spoiling import MARKER, spoilt
from service.watching import Message, Watcher, publish

GRID = Grid()
NAMES = ["h-1", "h-2", "h-3", "h-4"]
SOURCE = {
    "topic": "meters/{household}/reading",
    "value": "/energy_wh",
    "unit": {"at": "/unit"},
    "time": {"at": "/ts"},
    "max_bytes": 200_000,
}
WATTS = 9_000


def reading(household: str, slot: int, watts: int = WATTS) -> Message:
    message = GRID.reading(household, slot, watts)
    return message._replace(payload=message.payload.replace(b"{", b'{"unit": "Wh", ', 1))


def symbols(watcher: Watcher, household: str, slots: int) -> list[int]:
    releases = watcher.wait_for_slots([f"household/{household}"], GRID.starts(0, slots))
    return [json.loads(releases[f"household/{household}"][one][0])["symbol"] for one in GRID.starts(0, slots)]


def test_every_kind_of_bad_message_is_counted_under_its_reason_and_changes_no_release(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    """As G4 (telegraf#13476): there, unparsable messages were never acknowledged and the stream stopped."""
    gateway = make_gateway(roll(*NAMES), source=[SOURCE]).start()
    publish(mosquitto.port, [reading(name, 0) for name in NAMES])
    publish(mosquitto.port, [reading(name, 1) for name in NAMES[1:]])
    watcher.wait_for_slots(["household/h-1"], GRID.starts(0, 1))

    bad = spoilt(GRID, 1, "h-1")
    for one in bad:
        publish(mosquitto.port, [one.message])
    expected = Counter(one.reason for one in bad)
    eventually("all are counted", lambda: sum_of(gateway.operator_metrics(), expected) >= len(bad))
    counted = gateway.operator_metrics()
    assert {reason: counted.get(reason, 0) for reason in expected} == dict(expected)

    publish(mosquitto.port, [reading(name, slot) for slot in (1, 2, 3) for name in NAMES])
    assert symbols(watcher, "h-1", 3) == [symbol_of(GRID.power_mw(WATTS), 4)] * 3
    assert MARKER not in gateway.logged
    assert "meters/" not in gateway.logged
    assert gateway.operator_metrics()["noiseless_operator_connections"] == 1


def sum_of(counted: dict[str, float], reasons: Counter[str]) -> float:
    return sum(counted.get(reason, 0) for reason in reasons)


def test_a_meter_that_only_sends_rubbish_still_has_a_release_in_every_slot(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    make_gateway(roll(*NAMES), source=[SOURCE]).start()
    for slot in range(6):
        rubbish = [one.message for one in spoilt(GRID, slot, "h-4") if len(one.message.payload) < 10_000]
        publish(mosquitto.port, [*rubbish, *(reading(name, slot) for name in NAMES[:3])])
    assert symbols(watcher, "h-4", 5) == [0] * 5
    assert symbols(watcher, "h-1", 5) == [2] * 5


def test_a_repeat_is_counted_and_changes_nothing(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    gateway = make_gateway(roll(*NAMES), source=[SOURCE]).start()
    for _ in range(3):
        publish(mosquitto.port, [reading(name, 0) for name in NAMES])
        eventually(
            "they are counted", lambda: gateway.operator_metrics()["noiseless_operator_unacknowledged"] == 0
        )
    assert gateway.operator_metrics()["repeated"] == 8
    publish(mosquitto.port, [reading(name, 1) for name in NAMES])
    assert symbols(watcher, "h-1", 1) == [2]


def test_a_flood_of_changes_of_one_meter_does_not_fill_the_journal(
    make_gateway: GatewayFactory, mosquitto: Mosquitto
) -> None:
    gateway = make_gateway(roll(*NAMES), source=[SOURCE]).start()
    publish(mosquitto.port, [reading(name, 0) for name in NAMES])
    eventually(
        "they are in", lambda: gateway.operator_metrics()["noiseless_operator_readings_total"] >= len(NAMES)
    )
    # While it sleeps the flood piles up, to be read at once.
    gateway.signal(signal.SIGSTOP)
    publish(mosquitto.port, [reading("h-1", 1, step * 3) for step in range(1, 4_001)])
    gateway.signal(signal.SIGCONT)
    eventually("all is in", lambda: gateway.operator_metrics()["noiseless_operator_messages_total"] >= 4_004)
    eventually("all is durable", lambda: gateway.operator_metrics()["noiseless_operator_unacknowledged"] == 0)
    journaled = gateway.query("SELECT sum(length(readings)) / 40 FROM journal")
    assert journaled < 100
    counted = gateway.operator_metrics()
    # Of what comes in one batch only the largest counts.
    assert counted["repeated"] + counted.get("quota", 0) > 3_900


def test_a_stale_retained_reading_is_counted_apart_and_one_of_an_open_slot_is_used(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    """As C1 (zigbee2mqtt#3496): old state was taken for new after a restart."""
    gateway = make_gateway(roll(*NAMES), source=[SOURCE]).start()
    publish(mosquitto.port, [reading(name, slot) for slot in (0, 1, 2) for name in NAMES[2:]])
    watcher.wait_for_slots(["household/h-1"], GRID.starts(0, 2))
    gateway.stop()
    # A session that is new at the broker: what is published while ours waits comes as any other message.
    gateway.configure(broker={"client_id": "another"})
    publish(
        mosquitto.port, [reading("h-1", 0)._replace(retain=True), reading("h-2", 2)._replace(retain=True)]
    )
    gateway.start()
    eventually("it is counted", lambda: gateway.operator_metrics().get("stale_retained", 0) >= 1)
    publish(mosquitto.port, [reading(name, 3) for name in NAMES[2:]])
    assert symbols(watcher, "h-1", 3) == [0, 0, 0]
    assert symbols(watcher, "h-2", 3) == [0, 0, 2]
