"""The promise, from outside: what leaves says no more about one household than was charged for her."""

import json
from collections.abc import Iterator

import pytest
from brokers import Mosquitto
from gateways import Gateway, roll
from service.conftest import GatewayFactory
from service.expecting import Grid, price_of, symbol_of, without_slot
from service.spoiling import spoilt
from service.watching import Message, Watcher, publish

GRID = Grid()
LEVELS = 4
VICTIM = "h-0"
OTHERS = [f"h-{i}" for i in range(1, 7)]
WATTS = {name: 2_100 * i + 600 for i, name in enumerate(OTHERS)}
GROUPS = [
    {"name": "street", "members": ["*"], "levels": 8},
    {"name": "pair", "members": [VICTIM, OTHERS[3]], "query": "mean", "levels": 5},
    {"name": "others", "members": OTHERS, "levels": 6},
]
SWEPT = 900


def others(slot: int) -> list[Message]:
    return [GRID.reading(name, slot, watts) for name, watts in WATTS.items()]


def swept_watts(slot: int) -> int:
    """Return -3 kW to 17.4 kW: past both ends of the range, in steps of less than any cell."""
    return -3_000 + slot * 20_400 // (SWEPT - 1) // 60 * 60


def abuse(first: int) -> Iterator[list[Message]]:
    """Yield what else a meter may do in one slot: lie about time, flood, correct, repeat, break."""
    slot = first
    for one in spoilt(GRID, 0, VICTIM):
        yield [
            spoilt_now.message for spoilt_now in spoilt(GRID, slot, VICTIM) if spoilt_now.reason == one.reason
        ]
        slot += 1
    for ahead in (1, 2, 47, 1_000, 2_879, 100_000, -1, -2, -500):
        yield [GRID.reading(VICTIM, slot + ahead, 14_400)]
        slot += 1
    for watts in (0, 3_600, 14_400):
        yield [GRID.reading(VICTIM, slot, watts)] * 5
        yield [GRID.reading(VICTIM, slot + 1, watts), GRID.reading(VICTIM, slot + 1, 14_460 - watts)]
        yield [GRID.reading(VICTIM, slot + 2, step * 120) for step in range(100)]
        yield [GRID.reading(VICTIM, slot + 3, watts)._replace(retain=True)]
        yield []
        slot += 5


def victim(slots: int) -> list[list[Message]]:
    """Return her messages in each slot: the sweep, silence between, then every abuse."""
    sweep = [[GRID.reading(VICTIM, slot, swept_watts(slot))] if slot % 10 else [] for slot in range(SWEPT)]
    rest = list(abuse(SWEPT))
    assert len(sweep) + len(rest) <= slots
    return [*sweep, *rest, *([[]] * (slots - len(sweep) - len(rest)))]


@pytest.mark.parametrize("missing", ["hold", "floor", "symbol"])
def test_while_one_meter_does_anything_her_topics_say_no_more_than_was_charged_and_the_others_nothing(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher, missing: str
) -> None:
    slots = 1_010
    gateway = make_gateway(
        roll(VICTIM, *OTHERS, levels=LEVELS),
        group=GROUPS,
        slots={"missing": missing},
    ).start()
    hers = victim(slots)
    half = SWEPT // 2
    publish(mosquitto.port, [m for slot in range(half) for m in (*hers[slot], *others(slot))])
    # A restart in the middle, with retained messages waiting for it, one of them for an open slot.
    gateway.stop()
    retained = [GRID.reading(VICTIM, half - 1, 14_400), GRID.reading(VICTIM, 3, 14_400)]
    for one in retained:
        publish(mosquitto.port, [one._replace(retain=True)])
    gateway.start()
    publish(mosquitto.port, [m for slot in range(half, slots) for m in (*others(slot), *hers[slot])])

    topics = [
        *(f"household/{name}" for name in (VICTIM, *OTHERS)),
        *(f"group/{one['name']}" for one in GROUPS),
    ]
    starts = GRID.starts(0, slots - 1)
    releases = watcher.wait_for_slots(topics, starts, patience=60)
    gateway.stop()
    assert all(list(releases[topic]) == starts for topic in topics), (
        "a slot came twice, never, or out of order"
    )
    said = {topic: [without_slot(releases[topic][start][0]) for start in starts] for topic in topics}

    reach = {one["name"]: json.loads(said[f"group/{one['name']}"][0])["reach"] for one in GROUPS}
    assert reach["street"] <= 8
    assert reach["pair"] <= 5
    assert len(set(said[f"household/{VICTIM}"])) == LEVELS
    assert 2 < len(set(said["group/street"])) <= reach["street"]
    assert 2 < len(set(said["group/pair"])) <= reach["pair"]
    for topic in (*(f"household/{name}" for name in OTHERS), "group/others"):
        assert len(set(said[topic])) == 1, topic
    joint = set(zip(*said.values(), strict=True))
    hers_charged = LEVELS + reach["street"] - 1 + reach["pair"] - 1
    assert LEVELS < len(joint) <= hers_charged
    assert charged_in_one_slot(gateway) == charged_for(reach)

    if missing != "symbol":
        symbols = [json.loads(one)["symbol"] for one in said[f"household/{VICTIM}"]]
        for slot in (one for one in range(half - 1) if one % 10):
            assert symbols[slot] == symbol_of(GRID.power_mw(swept_watts(slot)), LEVELS), slot


def charged_in_one_slot(gateway: Gateway) -> int:
    assert gateway.query("SELECT count(DISTINCT charged_microbits) FROM slot") == 1
    charged: int = gateway.query("SELECT max(charged_microbits) FROM slot")
    return charged


def charged_for(reach: dict[str, int]) -> int:
    """Return what one slot of the whole roll costs."""
    street, pair, rest = reach["street"], reach["pair"], reach["others"]
    hers = price_of(LEVELS, [street, pair])
    paired = price_of(LEVELS, [street, pair, rest])
    return hers + paired + (len(OTHERS) - 1) * price_of(LEVELS, [street, rest])
