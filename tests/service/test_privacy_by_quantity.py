"""The promise, from outside, for meters that tell power or a register: whatever one does, only her topics say it."""

import json
import random
from collections.abc import Iterator

import pytest
from brokers import Mosquitto
from gateways import Gateway, roll
from service.conftest import GatewayFactory
from service.expecting import MIDNIGHT, Grid, without_slot
from service.telling import POWER, REGISTER, iso
from service.test_privacy import GROUPS, LEVELS, OTHERS, VICTIM, charged_for, charged_in_one_slot, others
from service.watching import Message, Watcher, publish

GRID = Grid()
SLOTS = 320
INTERVALS = {
    "topic": "meters/{meter}/reading",
    "value": "/energy_wh",
    "unit": "Wh",
    "time": {"at": "/ts"},
    "meters": OTHERS,
}
SOURCES = {
    "power": {**POWER, "meters": [VICTIM], "limit": "100 kW"},
    "register": {**REGISTER, "meters": [VICTIM], "serial": "/serial", "modulus": "100 kWh"},
    "missing": {**REGISTER, "meters": [VICTIM], "gaps": "missing", "gap": "20s", "limit": "1 MW"},
}


def at(slot: int, second: float, **fields: object) -> bytes:
    return json.dumps({"ts": iso(MIDNIGHT + slot * 60 + second), **fields}).encode()


def samples(slot: int, dice: random.Random) -> Iterator[bytes]:
    """Yield what a meter tells of power in a slot: level and times vary, and so does whether it tells at all."""
    watts = -3_000 + slot * 20_400 // SLOTS
    for _ in range(dice.choice([0, 1, 2, 6, 6, 20])):
        yield at(slot, dice.randrange(60_000) / 1_000, w=watts + dice.choice([0, 0, 500, -500, 90_000]))


def totals(slot: int, dice: random.Random) -> Iterator[bytes]:
    """Yield what a meter tells of its register in a slot: it moves, rests, falls, leaps, and is replaced."""
    wh = slot * slot / 5
    for _ in range(dice.choice([0, 1, 2, 6, 6, 20])):
        second = dice.randrange(60_000) / 1_000
        wrong = dice.choice([0, 0, 0, 0, 0, -5_000, 7_000, 10**9, None])
        stood = 0 if wrong is None else max(wh + second * slot / 150 + wrong, 0)
        yield at(slot, second, wh=round(stood, 3), serial=dice.choice(["a", "a", "a", "b", ""]))


def told(kind: str, slot: int, dice: random.Random) -> list[Message]:
    """Return all her messages of a slot: truth, repeats, other days, rubbish, some of it retained."""
    one = samples if kind == "power" else totals
    payloads = list(one(slot, dice))
    payloads += dice.sample(payloads, min(len(payloads), 2))
    if slot % 7 == 3:
        payloads += one(slot + dice.choice([1, 2, 50, 1_000, 2_879, 100_000, -1, -2, -500]), dice)
    if slot % 11 == 5:
        payloads += [b"", b"{", b"[]", b'{"ts": 0, "w": 1, "wh": 1}', at(slot, 9, w="9", wh="1e3"), b"\xff"]
    if slot % 50 == 20:
        payloads += [at(slot, step / 20, w=step, wh=step) for step in range(1_000)]
    dice.shuffle(payloads)
    topic = f"meters/{VICTIM}/{'power' if kind == 'power' else 'register'}"
    return [Message(topic, payload, retain=dice.random() < 0.1) for payload in payloads]


@pytest.mark.parametrize("kind", list(SOURCES))
def test_whatever_one_meter_tells_only_her_topics_say_it_and_no_more_than_is_charged(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher, kind: str
) -> None:
    """Beside a gateway to which she never says anything: what else leaves both is the same, byte for byte."""
    dice = random.Random(f"a trace of {kind}")
    tables = {
        "household": roll(VICTIM, *OTHERS, levels=LEVELS),
        "group": GROUPS,
        "slots": {"missing": "floor"},
    }
    speaking: Gateway = make_gateway(**tables, source=[SOURCES[kind], INTERVALS]).start()
    silent: Gateway = make_gateway(
        **tables,
        name="silent",
        source=[{**SOURCES[kind], "topic": "nowhere/{meter}"}, INTERVALS],
        broker={"client_id": "silent"},
        output={"topic": "silent"},
        release={"seed": "noiseless"},
    ).start()
    without_her = Watcher(silent.directory, mosquitto.port, "silent/#")
    half = SLOTS // 2
    publish(mosquitto.port, [m for s in range(half) for m in (*told(kind, s, dice), *others(s))])
    speaking.kill()
    speaking.start()
    publish(mosquitto.port, [m for s in range(half, SLOTS) for m in (*told(kind, s, dice), *others(s))])
    topics = [
        *(f"household/{name}" for name in (VICTIM, *OTHERS)),
        *(f"group/{one['name']}" for one in GROUPS),
    ]
    starts = GRID.starts(0, SLOTS - 1)
    try:
        releases = watcher.wait_for_slots(topics, starts, patience=60)
        same = without_her.wait_for_slots(topics, starts, patience=60, below="silent")
    finally:
        without_her.end()

    assert all(list(releases[topic]) == starts for topic in topics), "a slot came twice, or out of order"
    assert all(len(set(repeats)) == 1 for of in releases.values() for repeats in of.values())
    said = {topic: [without_slot(releases[topic][start][0]) for start in starts] for topic in topics}
    reach = {one["name"]: json.loads(said[f"group/{one['name']}"][0])["reach"] for one in GROUPS}
    assert 2 < len(set(said[f"household/{VICTIM}"])) <= LEVELS
    assert 2 < len(set(said["group/street"])) <= reach["street"]
    assert 2 < len(set(said["group/pair"])) <= reach["pair"]
    joint = set(zip(*said.values(), strict=True))
    assert LEVELS < len(joint) <= LEVELS + reach["street"] - 1 + reach["pair"] - 1
    assert charged_in_one_slot(speaking) == charged_in_one_slot(silent) == charged_for(reach)

    for topic in (*(f"household/{name}" for name in OTHERS), "group/others"):
        assert {slot: of[0] for slot, of in releases[topic].items()} == {
            slot: of[0] for slot, of in same[topic].items()
        }, topic
    assert speaking.public_metrics() == silent.public_metrics()
    for word in (VICTIM, "meters/", "nowhere", '"wh"'):
        assert word not in speaking.logged
