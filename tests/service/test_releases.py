"""Readings in, releases out: the right bytes, one per household, group and slot."""

import json
import shutil
import subprocess

from brokers import Mosquitto
from gateways import roll
from service.conftest import GatewayFactory
from service.expecting import Grid, group_symbol_of, symbol_of
from service.watching import Watcher, publish

GRID = Grid()


def test_a_reading_published_by_mosquitto_pub_comes_out_of_mosquitto_sub_as_the_right_bytes(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    make_gateway(roll("h-001")).start()
    pub = shutil.which("mosquitto_pub")
    assert pub is not None
    for minute in (0, 1):
        payload = f'{{"ts":"2026-01-01T00:0{minute}:00Z","energy_wh":100}}'
        subprocess.run(
            [pub, "-p", str(mosquitto.port), "-q", "1", "-t", "meters/h-001/reading", "-m", payload],
            check=True,
            timeout=5,
        )
    releases = watcher.wait_for_slots(["household/h-001"], ["2026-01-01T00:00:00Z"])
    codebook = json.loads(releases["household/h-001"]["2026-01-01T00:00:00Z"][0])["codebook"]
    assert releases == {
        "household/h-001": {
            "2026-01-01T00:00:00Z": [
                b'{"slot":"2026-01-01T00:00:00Z","minutes":1,"symbol":1,"levels":4,'
                b'"between_w":[3625,7250],"value_w":5437.5,"codebook":"%s"}' % codebook.encode()
            ]
        }
    }
    assert len(codebook) == 6


def test_every_household_and_group_has_exactly_one_right_release_per_slot_in_the_order_of_the_roll(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    slots, names = 30, [f"h-{i:02}" for i in range(9)]
    gateway = make_gateway(
        roll(*names[:6]) + roll(*names[6:], levels=9),
        group=[
            {"name": "all", "members": ["*"], "levels": 8},
            {"name": "few", "members": ["h-00", "h-01"], "query": "mean", "epsilon": 2},
        ],
    ).start()
    watts = {
        (slot, i): (slot * 977 + i * 2_741) % 16_000 // 60 * 60 for slot in range(slots + 1) for i in range(9)
    }
    publish(mosquitto.port, [GRID.reading(names[i], slot, watts[slot, i]) for slot, i in watts])
    topics = [*(f"household/{name}" for name in names), "group/all", "group/few"]
    releases = watcher.wait_for_slots(topics, GRID.starts(0, slots))
    assert gateway.stop() == 0

    assert {
        topic: {slot: len(repeats) for slot, repeats in of.items()} for topic, of in releases.items()
    } == {topic: dict.fromkeys(GRID.starts(0, slots), 1) for topic in topics}
    released = [
        one.topic.removeprefix("noiseless/") for one in watcher.seen if '"slot"' in one.payload.decode()
    ]
    assert released == topics * slots
    for slot in range(slots):
        powers = [GRID.power_mw(watts[slot, i]) for i in range(9)]
        symbols = {topic: json.loads(releases[topic][GRID.start(slot)][0])["symbol"] for topic in topics}
        assert symbols == {
            **{f"household/{name}": symbol_of(powers[i], 4 if i < 6 else 9) for i, name in enumerate(names)},
            "group/all": group_symbol_of(powers, 8),
            "group/few": group_symbol_of(powers[:2], 4),
        }
