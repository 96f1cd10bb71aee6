"""A long backlog, and a kill while it is being read."""

import json
import random
import time
from pathlib import Path

from brokers import Mosquitto
from gateways import Gateway, roll
from service.expecting import Grid, group_symbol_of, symbol_of
from service.watching import Watcher, publish

READINGS, KILLS = 30_000, 3
NAMES = [f"h-{i:02}" for i in range(30)]
SLOTS = READINGS // len(NAMES)
LENGTH_S = 3_600


def test_a_gateway_killed_while_it_reads_a_backlog_of_30000_readings_loses_none(
    tmp_path: Path, mosquitto: Mosquitto
) -> None:
    """As A6 (empicano/aiomqtt#345): clients that acknowledge before they have worked lose what they held."""
    dice, grid = random.Random(3), Grid(LENGTH_S)
    watts = {(slot, name): dice.randrange(0, 14_400, 60) for slot in range(SLOTS) for name in NAMES}
    gateway = Gateway(
        tmp_path / "gateway",
        mosquitto.url,
        roll(*NAMES),
        group=[{"name": "all", "members": ["*"], "levels": 8}],
        slots={"length": "1h"},
        budget={"window": "24h"},
    )
    watcher = Watcher(tmp_path, mosquitto.port)
    try:
        gateway.start()
        gateway.stop()
        publish(mosquitto.port, (grid.reading(name, slot, of) for (slot, name), of in watts.items()))
        for killed in range(KILLS):
            read_before = rows(gateway)
            gateway.spawn()
            watcher.wait("it reads", lambda _, before=read_before: rows(gateway) > before)
            time.sleep(dice.uniform(0.0, 0.2))
            gateway.kill()
            assert killed or rows(gateway) < SLOTS - 1, "the kill came too late to be in the middle"
        gateway.start()
        topics = [*(f"household/{name}" for name in NAMES), "group/all"]
        releases = watcher.wait_for_slots(topics, grid.starts(0, SLOTS - 1), patience=60)
        assert gateway.stop() == 0
    finally:
        watcher.end()
        gateway.end()
    wrong = 0
    for slot in range(SLOTS - 1):
        powers = {name: grid.power_mw(watts[slot, name]) for name in NAMES}
        expected = {f"household/{name}": symbol_of(power, 4) for name, power in powers.items()}
        expected["group/all"] = group_symbol_of(list(powers.values()), 8)
        for topic, symbol in expected.items():
            said = set(releases[topic][grid.start(slot)])
            wrong += {json.loads(one)["symbol"] for one in said} != {symbol} or len(said) > 1
    assert wrong == 0


def rows(gateway: Gateway) -> int:
    """Return how far the ledger has come: closed slots, and batches of the journal."""
    return gateway.query("SELECT (SELECT count(*) FROM slot) + (SELECT count(*) FROM journal)")
