"""Raw readings leave no trace: not in the ledger's files once their slot is closed, never in the logs."""

import json

from brokers import Mosquitto
from gateways import Gateway, eventually, roll
from service.conftest import GatewayFactory
from service.expecting import Grid
from service.watching import Message, Watcher, publish

# As an int64 it is nowhere by chance.
MWH = 0x35_79_42
PATTERN = MWH.to_bytes(8, "little")
NAMES = [f"h-{i:03}" for i in range(300)]
SOURCE = {
    "topic": "meters/{household}/reading",
    "value": "/energy_wh",
    "unit": "Wh",
    "time": {"at": "/ts"},
    "limit": "10 MW",
}


def traces(gateway: Gateway) -> int:
    """Return how often the readings of h-007 stand in the ledger's files."""
    files = gateway.directory.glob("noiseless.db*")
    return sum(file.read_bytes().count(PATTERN) for file in files)


def readings(grid: Grid, slot: int, marked: int) -> list[Message]:
    text = f'{{"ts": "{grid.start(slot)}", "energy_wh": %s}}'
    energies = [MWH / 1_000 if i % marked == 7 else i + 0.5 for i in range(len(NAMES))]
    return [
        Message(f"meters/{name}/reading", (text % energy).encode())
        for name, energy in zip(NAMES, energies, strict=True)
    ]


def test_a_raw_reading_is_gone_from_the_ledgers_files_after_its_slot(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    gateway: Gateway = make_gateway(
        roll(*NAMES), source=[SOURCE], slots={"length": "2s", "grace": "500ms", "clock": "wall"}
    ).start()
    grid = Grid.running(2)
    grid.sleep_into(1, 0.1)
    publish(mosquitto.port, readings(grid, 1, marked=10))
    eventually("it is journaled", lambda: traces(gateway) >= len(NAMES) // 10)
    watcher.wait_for_slots([f"household/{NAMES[-1]}"], grid.starts(1, 2))
    eventually("it is gone", lambda: traces(gateway) == 0, patience=2.2)
    gateway.kill()
    assert traces(gateway) == 0


def test_a_stop_after_the_slot_leaves_no_raw_reading_behind(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    grid = Grid()
    gateway: Gateway = make_gateway(roll(*NAMES), source=[SOURCE]).start()
    publish(mosquitto.port, readings(grid, 0, marked=10))
    eventually("it is journaled", lambda: traces(gateway) > 0)
    publish(mosquitto.port, readings(grid, 1, marked=1_000))
    watcher.wait_for_slots([f"household/{NAMES[-1]}"], grid.starts(0, 1))
    assert gateway.stop() == 0
    assert traces(gateway) <= 1


def test_every_line_of_the_log_is_json_and_none_holds_a_reading(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    grid = Grid()
    gateway: Gateway = make_gateway(roll(*NAMES[:4])).start()
    for slot in range(4):
        secret = [
            Message(
                f"meters/{name}/reading", f'{{"ts":"{grid.start(slot)}","energy_wh":77.34{slot}}}'.encode()
            )
            for name in NAMES[:4]
        ]
        publish(mosquitto.port, [*secret, Message("meters/h-secret/reading", b'{"energy_wh": 77.34')])
    watcher.wait_for_slots([f"household/{NAMES[0]}"], grid.starts(0, 3))
    gateway.kill()
    gateway.start()
    assert gateway.stop() == 0
    events = list(gateway.events())
    assert {"broker connected", "slot closed", "stopping", "stopped"} <= {one["event"] for one in events}
    assert all({"event", "level", "timestamp"} <= set(one) for one in events)
    for word in ("77.34", "7734", "h-secret", "meters", NAMES[0], "energy", json.dumps("symbol")):
        assert word not in gateway.logged, word
