"""Killed at any moment, the gateway goes on as if nothing had happened."""

import asyncio
import json
import random
import threading
import time
from collections.abc import Iterable

from brokers import Mosquitto
from gateways import Gateway, eventually, roll
from service.conftest import GatewayFactory
from service.expecting import Grid, group_symbol_of, price_of, symbol_of
from service.watching import Message, Watcher, publish, publish_from

Releases = dict[str, dict[str, list[bytes]]]


def in_background(work: Iterable[Message], port: int, *, pause: float, burst: int) -> threading.Thread:
    thread = threading.Thread(target=lambda: asyncio.run(publish_from(port, work, pause, burst)), daemon=True)
    thread.start()
    return thread


def test_twenty_kills_lose_nothing_double_nothing_and_charge_what_was_released(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    """As A6 (empicano/aiomqtt#345), B4 and I3: acked too early, re-sent differently, spend forgotten."""
    grid, dice, slots = Grid(), random.Random(20), 100
    names = [f"h-{i:03}" for i in range(200)]
    levels = {name: 8 if i % 5 == 0 else 4 for i, name in enumerate(names)}
    reach = 8
    tables = {
        "household": [{"id": name, "levels": levels[name]} for name in names],
        "group": [{"name": f"feeder-{i}", "members": [f"h-{i}*"], "levels": reach} for i in (0, 1)],
        # In each window of ten slots the budget lasts for seven or eight.
        "budget": {"window": "10min", "bits": price_of(4, [reach]) * 8 / 1e6},
    }
    killed = make_gateway(**tables, name="killed", broker={"client_id": "killed"}, output={"topic": "killed"})
    steady = make_gateway(
        **tables, name="steady", broker={"client_id": "steady"}, output={"topic": "noiseless"}
    )
    everything = Watcher(mosquitto.directory, mosquitto.port, "killed/#")
    try:
        killed.start()
        steady.start()
        readings = (
            grid.reading(name, slot, dice.randrange(0, 15_000, 60)) for slot in range(slots) for name in names
        )
        fleet = in_background(readings, mosquitto.port, pause=0.1, burst=200)
        for _ in range(20):
            time.sleep(dice.uniform(0.05, 1.4))
            killed.kill()
            killed.spawn()
        fleet.join()
        topics = [*(f"household/{name}" for name in names), "group/feeder-0", "group/feeder-1"]
        starts = grid.starts(0, slots - 1)
        expected = watcher.wait_for_slots(topics, starts, patience=30)
        actual = everything.wait_for_slots(topics, starts, patience=30, below="killed")
        eventually("the last start is ready", lambda: killed.ready)
        assert killed.stop() == 0
    finally:
        everything.end()

    assert as_released_once(actual) == as_released_once(expected)
    assert all(list(of) == starts for of in actual.values())
    price = {name: price_of(levels[name], [reach]) for name in names}
    released = sum(
        price[name]
        for name in names
        for one in actual[f"household/{name}"].values()
        if not json.loads(one[0]).get("spent")
    )
    everything_costs = sum(price.values()) * len(starts)
    assert killed.query("SELECT sum(charged_microbits) FROM slot") == released < everything_costs


def as_released_once(releases: Releases) -> dict[str, dict[str, bytes]]:
    """Return one release per topic and slot; all repeats must be byte for byte the same."""
    for topic, of in releases.items():
        for slot, repeats in of.items():
            assert len(set(repeats)) == 1, f"{topic} of {slot} was released with different bytes"
    return {topic: {slot: repeats[0] for slot, repeats in of.items()} for topic, of in releases.items()}


def test_readings_published_while_the_gateway_is_dead_are_in_their_slots_after_the_restart(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    """As A1 (lf-edge/ekuiper#3709): what was published during a restart was lost."""
    dice, slots, length = random.Random(4), 6, 2
    names = [f"h-{i}" for i in range(10)]
    gateway: Gateway = make_gateway(
        roll(*names),
        group=[{"name": "all", "members": ["*"], "levels": 8}],
        slots={"length": f"{length}s", "grace": "500ms", "clock": "wall"},
    ).start()
    now = Grid.running(length)
    grid = Grid(length, now.first_s + length)
    watts = {(slot, name): dice.randrange(0, 14_400, 900) for slot in range(slots) for name in names}

    def meters() -> None:
        for slot in range(slots):
            for name in names:
                grid.sleep_into(slot, (int(name[2:]) + 1) * length / 10 + 0.1)
                publish(mosquitto.port, [grid.reading(name, slot, watts[slot, name])])

    fleet = threading.Thread(target=meters, daemon=True)
    fleet.start()
    for outage in (0.1, 2.8, 0.6, 1.5):
        time.sleep(dice.uniform(0.8, 1.6))
        gateway.kill()
        time.sleep(outage)
        gateway.start()
    fleet.join()
    topics = [*(f"household/{name}" for name in names), "group/all"]
    releases = as_released_once(watcher.wait_for_slots(topics, grid.starts(0, slots)))
    for slot in range(slots):
        powers = [grid.power_mw(watts[slot, name]) for name in names]
        expected = {
            f"household/{name}": symbol_of(power, 4) for name, power in zip(names, powers, strict=True)
        }
        expected["group/all"] = group_symbol_of(powers, 8)
        symbols = {topic: json.loads(of[grid.start(slot)])["symbol"] for topic, of in releases.items()}
        assert symbols == expected, grid.start(slot)
    starts = list(releases["group/all"])
    before = starts.index(grid.start(0))
    assert starts == grid.starts(-before, len(starts) - before), "a slot is missing, or out of order"
