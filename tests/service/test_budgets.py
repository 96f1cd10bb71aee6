"""A spent budget: the last symbol repeats, marked, for nothing, until the window turns."""

import json

import pytest
from brokers import Mosquitto
from gateways import Gateway, eventually, roll
from service.conftest import GatewayFactory
from service.expecting import Grid, group_symbol_of, price_of, symbol_of
from service.watching import Watcher, publish

GRID = Grid()
NAMES = ["h-0", "h-1", "h-2", "h-3"]
REACH = 8
WINDOW = 5


def watts(slot: int, household: int) -> int:
    return (slot * 4_320 + household * 1_560 + 600) % 14_400


@pytest.mark.parametrize("restarts", [False, True])
def test_a_spent_budget_repeats_the_last_symbol_for_nothing_until_the_window_turns(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher, restarts: bool
) -> None:
    slots = 2 * WINDOW + 1
    gateway: Gateway = make_gateway(
        # h-3 pays more for each slot, so hers is spent one slot earlier than the others'.
        [*roll(*NAMES[:3]), *roll(NAMES[3], levels=8)],
        group=[{"name": "all", "members": ["*"], "levels": REACH}],
        budget={"window": f"{WINDOW}min", "bits": price_of(4, [REACH]) * 3 / 1e6},
    ).start()
    topics = [*(f"household/{name}" for name in NAMES), "group/all"]
    for slot in range(slots + 1):
        publish(mosquitto.port, [GRID.reading(name, slot, watts(slot, i)) for i, name in enumerate(NAMES)])
        if restarts and slot:
            watcher.wait_for_slots(topics, GRID.starts(0, slot))
            if slot % 3 == 0:
                gateway.kill()
                gateway.start()
    releases = watcher.wait_for_slots(topics, GRID.starts(0, slots))

    charged, held = 0, [0] * len(NAMES)
    for slot in range(slots):
        payloads = {topic: set(releases[topic][GRID.start(slot)]) for topic in topics}
        assert all(len(repeats) == 1 for repeats in payloads.values())
        said = {topic: json.loads(repeats.pop()) for topic, repeats in payloads.items()}
        powers = []
        for i, name in enumerate(NAMES):
            levels, paid = (8, 2) if i == 3 else (4, 3)
            spent = slot % WINDOW >= paid
            power = held[i] if spent else GRID.power_mw(watts(slot, i))
            assert said[f"household/{name}"].get("spent", False) is spent
            assert said[f"household/{name}"]["symbol"] == symbol_of(power, levels), (slot, name)
            held[i] = round(said[f"household/{name}"]["value_w"] * 1_000)
            powers.append(power)
            charged += 0 if spent else price_of(levels, [REACH])
        assert said["group/all"]["symbol"] == group_symbol_of(powers, REACH), slot
        assert "spent" not in said["group/all"]
    assert gateway.query("SELECT sum(charged_microbits) FROM slot") == charged


def test_a_budget_that_pays_for_nothing_still_releases_every_slot(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    gateway: Gateway = make_gateway(roll(*NAMES), budget={"window": "1h", "bits": 0.5}).start()
    publish(mosquitto.port, [GRID.reading(name, slot, 14_400) for slot in range(4) for name in NAMES])
    releases = watcher.wait_for_slots([f"household/{NAMES[0]}"], GRID.starts(0, 3))
    for of in releases.values():
        said = [json.loads(one) for (one,) in of.values()]
        assert [(one["symbol"], one["spent"]) for one in said] == [(0, True)] * 3
    assert gateway.query("SELECT sum(charged_microbits) FROM slot") == 0


def test_merged_cells_spend_the_rest_and_withheld_releases_are_not_there(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    """Three slots in full, then what is left buys 3 merged cells of 4, then her last symbol for free; or silence."""
    rest = price_of(3, [])
    budget = {
        "window": f"{WINDOW}min",
        "bits": (price_of(4, [REACH]) * 3 + rest) / 1e6,
        "when_spent": "coarsen",
    }
    group = [{"name": "all", "members": ["*"], "levels": REACH}]
    gateway: Gateway = make_gateway(roll(*NAMES), group=group, budget=budget).start()
    topic = f"household/{NAMES[0]}"
    for slot in range(WINDOW + 1):
        publish(mosquitto.port, [GRID.reading(name, slot, watts(slot, i)) for i, name in enumerate(NAMES)])
    releases = watcher.wait_for_slots([topic], GRID.starts(0, WINDOW))
    said = [json.loads(releases[topic][GRID.start(slot)][0]) for slot in range(WINDOW)]
    assert [one["levels"] for one in said] == [4, 4, 4, 3, 4]
    assert [one.get("coarse", False) for one in said] == [False] * 3 + [True, False]
    assert [one.get("spent", False) for one in said] == [False] * 4 + [True]
    low, high = said[3]["between_w"]
    used = GRID.power_mw(watts(3, 0)) / 1_000
    assert (low or 0) <= used
    assert high is None or used < high
    paid = len(NAMES) * (3 * price_of(4, [REACH]) + rest)
    assert gateway.query("SELECT sum(charged_microbits) FROM slot") == paid

    gateway.stop()
    gateway.configure(group=group, budget={**budget, "when_spent": "withhold"})
    gateway.start()
    for slot in range(WINDOW + 1, 2 * WINDOW + 2):
        publish(mosquitto.port, [GRID.reading(name, slot, watts(slot, i)) for i, name in enumerate(NAMES)])
    group_releases = watcher.wait_for_slots(["group/all"], GRID.starts(0, 2 * WINDOW + 1))["group/all"]
    assert GRID.start(2 * WINDOW - 1) in group_releases
    eventually("nothing waits", lambda: gateway.operator_metrics()["noiseless_operator_outbox"] == 0)
    seen = watcher.releases()[topic]
    assert [GRID.start(slot) in seen for slot in range(WINDOW, 2 * WINDOW + 1)] == [True] * 3 + [
        False
    ] * 2 + [True]
