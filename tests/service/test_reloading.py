"""SIGHUP: what is in flight outlives a new configuration, and each field's fate is told."""

import json
import signal
from pathlib import Path

from brokers import Mosquitto
from gateways import Gateway, eventually, roll
from service.conftest import GatewayFactory
from service.expecting import Grid, price_of, symbol_of
from service.watching import Message, Watcher, publish

GRID = Grid()
NAMES = ["h-0", "h-1", "h-2"]


def reload(gateway: Gateway, said: str) -> None:
    """Send SIGHUP, and wait for a further line of the log that says so."""
    before = gateway.logged.count(said)
    gateway.signal(signal.SIGHUP)
    eventually(said, lambda: gateway.logged.count(said) > before)
    eventually("it is ready", lambda: gateway.ready)


def events(gateway: Gateway, name: str) -> list[str]:
    return [str(event["field"]) for event in gateway.events() if event["event"] == name]


def test_nothing_is_lost_doubled_or_forgotten_when_the_levels_change_in_the_middle_of_a_slot(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    gateway: Gateway = make_gateway(roll(*NAMES), budget={"window": "1h", "bits": 20}).start()
    publish(mosquitto.port, [GRID.reading(name, slot, 14_400) for slot in range(4) for name in NAMES])
    watcher.wait_for_slots(["household/h-2"], GRID.starts(0, 3))
    # Slot 3 is open, and its readings are in the journal only.
    eventually(
        "they are durable", lambda: gateway.operator_metrics()["noiseless_operator_unacknowledged"] == 0
    )
    gateway.configure(household=roll(*NAMES, levels=16))
    reload(gateway, "broker connected")
    publish(mosquitto.port, [GRID.reading(name, slot, 7_500) for slot in range(4, 9) for name in NAMES])
    releases = watcher.wait_for_slots([f"household/{name}" for name in NAMES], GRID.starts(0, 8))
    for of in releases.values():
        assert all(len(repeats) == 1 for repeats in of.values())
        said = [json.loads(of[start][0]) for start in GRID.starts(0, 8)]
        assert [one["levels"] for one in said] == [4] * 3 + [16] * 5
        assert said[3]["symbol"] == symbol_of(GRID.power_mw(14_400), 16)
        # 3 slots of 2 bits and 3 of 4: the 2 that are left pay for no more.
        assert [one.get("spent", False) for one in said] == [False] * 6 + [True] * 2
    assert gateway.query("SELECT sum(charged_microbits) FROM slot") == 3 * 3 * (price_of(4) + price_of(16))
    assert events(gateway, "reloaded") == ["household"]
    assert gateway.stop() == 0


def test_a_file_with_faults_changes_nothing_and_they_are_told(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    gateway: Gateway = make_gateway(roll(*NAMES)).start()
    good = gateway.config.read_text()
    gateway.config.write_text(good.replace('"h-1"', '"EMH/1"'))
    reload(gateway, "not reloaded")
    assert events(gateway, "not reloaded") == ["household.1.id"]
    # It may be a meter's number in the wrong place.
    assert "EMH/1" not in gateway.logged
    publish(mosquitto.port, [GRID.reading(name, slot, 0) for slot in range(3) for name in NAMES])
    watcher.wait_for_slots(["household/h-1"], GRID.starts(0, 2))
    assert gateway.operator_metrics()["noiseless_operator_connections"] == 1


def test_another_ledger_or_client_id_needs_a_restart_and_the_rest_applies(
    make_gateway: GatewayFactory, tmp_path: Path
) -> None:
    gateway: Gateway = make_gateway(roll(*NAMES)).start()
    gateway.configure(
        ledger={"url": f"sqlite:///{tmp_path}/other.db", "commit": "300ms"}, broker={"client_id": "other"}
    )
    reload(gateway, "broker connected")
    assert set(events(gateway, "needs a restart")) == {"ledger.url", "broker.client_id"}
    assert events(gateway, "reloaded") == ["ledger.commit"]
    assert not (tmp_path / "other.db").exists()
    reload(gateway, "nothing to reload")


def test_a_configuration_that_cannot_run_gives_way_to_the_one_before(
    make_gateway: GatewayFactory,
) -> None:
    other: Gateway = make_gateway(roll(*NAMES), name="other", broker={"client_id": "other"}).start()
    gateway: Gateway = make_gateway(roll(*NAMES), name="this").start()
    port = gateway.port
    gateway.configure(http={"listen": f"127.0.0.1:{other.port}"})
    gateway.signal(signal.SIGHUP)
    eventually("it says so", lambda: "back to the one before" in gateway.logged)
    gateway.port = port
    eventually("it is ready", lambda: gateway.ready)
    assert gateway.stop() == 0


def test_many_reloads_take_no_memory(make_gateway: GatewayFactory) -> None:
    """As G3 (ekuiper#3667): memory grew with each update."""
    gateway: Gateway = make_gateway(roll(*NAMES)).start()
    sizes = []
    for step in range(40):
        gateway.configure(slots={"length": "1min", "grace": f"{step + 2}s", "clock": "event"})
        reload(gateway, "broker connected")
        sizes.append(gateway.operator_metrics()["process_resident_memory_bytes"])
    assert sizes[-1] - sizes[10] < 3_000_000


def test_a_filter_that_left_the_configuration_is_unsubscribed_and_the_rest_goes_on(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    """The broker keeps subscriptions in the session: messages that nobody wants would come for ever."""
    source = {"value": "/energy_wh", "unit": "Wh", "time": {"at": "/ts"}}
    old = {"topic": "old/{household}", "meters": ["h-1"], **source}
    new = {"topic": "meters/{household}/reading", "meters": ["h-0", "h-2"], **source}
    gateway: Gateway = make_gateway(roll(*NAMES), source=[new, old]).start()
    publish(mosquitto.port, [reading("h-1")])
    eventually("it came", lambda: gateway.operator_metrics()["noiseless_operator_messages_total"] == 1)
    gateway.configure(source=[{**new, "meters": ["*"]}])
    reload(gateway, "broker connected")
    publish(mosquitto.port, [reading("h-1"), GRID.reading("h-0", 0, 0)])
    eventually("hers came", lambda: gateway.operator_metrics()["noiseless_operator_readings_total"] == 1)
    assert gateway.operator_metrics()["noiseless_operator_messages_total"] == 1
    publish(mosquitto.port, [GRID.reading(name, slot, 0) for slot in range(3) for name in NAMES])
    watcher.wait_for_slots(["household/h-1"], GRID.starts(0, 2))


def reading(household: str) -> Message:
    return GRID.reading(household, 0, 0)._replace(topic=f"old/{household}")
