"""Another policy on the same ledger: no spend is forgotten, no slot comes twice."""

import json
import signal

from brokers import Mosquitto
from gateways import Gateway, eventually, noiseless, roll
from service.conftest import GatewayFactory
from service.expecting import Grid, price_of, symbol_of
from service.watching import Watcher, publish

GRID = Grid()


def spent_bits(gateway: Gateway, household: str) -> int:
    return round(
        json.loads(noiseless("budget", gateway.config, household, "--json").stdout)["spent_bits"] * 1e6
    )


def test_levels_and_roll_may_change_and_the_window_s_spend_stays(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    budget = {"window": "1h", "bits": 20}
    gateway: Gateway = make_gateway(roll("h-0", "h-1", "h-2"), budget=budget).start()
    # Three slots at 2 bits.
    publish(mosquitto.port, [GRID.reading(f"h-{i}", slot, 14_400) for slot in range(4) for i in range(3)])
    watcher.wait_for_slots(["household/h-2"], GRID.starts(0, 3))
    gateway.stop()
    assert spent_bits(gateway, "h-1") == 3 * price_of(4)

    # h-1 leaves, h-3 comes, all pay 4 bits: three more slots fit into the 20 bits, then h-0's are spent.
    gateway.configure(household=roll("h-3", "h-0", "h-2", levels=16))
    gateway.start()
    publish(mosquitto.port, [GRID.reading(f"h-{i}", slot, 7_500) for slot in range(3, 9) for i in (0, 2, 3)])
    watcher.wait_for_slots(["household/h-0"], GRID.starts(0, 8))
    assert gateway.stop() == 0

    # h-1 comes back with what she spent before, and pays 8 bits.
    gateway.configure(household=roll("h-1", levels=256))
    gateway.start()
    publish(mosquitto.port, [GRID.reading("h-1", slot, 7_500) for slot in range(8, 12)])
    releases = watcher.wait_for_slots(["household/h-1"], [*GRID.starts(0, 3), *GRID.starts(8, 11)])
    assert gateway.stop() == 0

    said = {
        topic.removeprefix("household/"): [
            (of[start][0], json.loads(of[start][0])) if start in of else None for start in GRID.starts(0, 11)
        ]
        for topic, of in releases.items()
    }
    assert all(len(repeats) == 1 for of in releases.values() for repeats in of.values())

    def shape(household: str) -> list[tuple[int, bool] | None]:
        return [one and (one[1]["levels"], one[1].get("spent", False)) for one in said[household]]

    first, second = [(4, False)] * 3, [(16, False)] * 3
    assert shape("h-0") == [*first, *second, (16, True), (16, True), None, None, None]
    assert shape("h-2") == shape("h-0")
    assert shape("h-3") == [*[None] * 3, *[(16, False)] * 5, *[None] * 3]
    assert shape("h-1") == [*first, *[None] * 5, (256, False), (256, True), (256, True)]
    # Slot 3 was open at the change: its reading came before, its release after.
    symbols = [one[1]["symbol"] for one in said["h-0"][3:6] if one]
    assert symbols == [symbol_of(power, 16) for power in (14_400_000, 7_500_000, 7_500_000)]

    charged = 9 * price_of(4) + 2 * 3 * price_of(16) + 5 * price_of(16) + price_of(256)
    assert gateway.query("SELECT sum(charged_microbits) FROM slot") == charged
    assert gateway.query("SELECT count(*) FROM epoch") == 3
    assert spent_bits(gateway, "h-0") == 3 * price_of(4) + 3 * price_of(16)
    assert spent_bits(gateway, "h-1") == 3 * price_of(4) + price_of(256)


def test_a_shorter_or_longer_window_does_not_give_spent_bits_back(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    gateway: Gateway = make_gateway(roll("h-0"), budget={"window": "1h", "bits": 4}).start()
    last = 0
    for window in ("1h", "10min", "2h", "20min"):
        gateway.configure(budget={"window": window, "bits": 4})
        if gateway.process is None:
            gateway.start()
        publish(mosquitto.port, [GRID.reading("h-0", slot, 14_400) for slot in range(last, last + 3)])
        last += 2
        releases = watcher.wait_for_slots(["household/h-0"], GRID.starts(0, last))["household/h-0"]
        gateway.stop()
    # All eight slots lie in the first ten minutes: two were paid for, whatever the windows are called.
    assert [json.loads(one).get("spent", False) for (one,) in releases.values()] == [False] * 2 + [True] * 6
    assert gateway.query("SELECT sum(charged_microbits) FROM slot") == 2 * price_of(4)


def test_the_same_policy_again_is_the_same_epoch(make_gateway: GatewayFactory) -> None:
    gateway: Gateway = make_gateway(roll("h-0", "h-1"))
    for _ in range(3):
        gateway.start()
        assert gateway.stop() == 0
    assert gateway.query("SELECT count(*) FROM epoch") == 1


def test_a_slot_decided_under_the_old_policy_is_published_in_its_words_after_the_change(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    gateway: Gateway = make_gateway(roll("h-0", "h-1")).start()
    publish(mosquitto.port, [GRID.reading(f"h-{i}", slot, 14_400) for slot in range(2) for i in range(2)])
    watcher.wait_for_slots(["household/h-1"], GRID.starts(0, 1))
    eventually("all is published", lambda: gateway.query("SELECT count(*) FROM outbox") == 0)
    # The gateway sleeps while its readings come in, the broker while they are decided.
    gateway.signal(signal.SIGSTOP)
    publish(mosquitto.port, [GRID.reading(f"h-{i}", 2, 14_400) for i in range(2)])
    broker = mosquitto._process
    assert broker is not None
    broker.send_signal(signal.SIGSTOP)
    try:
        gateway.signal(signal.SIGCONT)
        eventually("it is decided", lambda: gateway.query("SELECT count(*) FROM outbox") == 1)
        gateway.kill()
    finally:
        broker.send_signal(signal.SIGCONT)
    gateway.configure(household=roll("h-1", "h-2", levels=2))
    gateway.start()
    eventually("the outbox is empty", lambda: gateway.query("SELECT count(*) FROM outbox") == 0)
    releases = watcher.wait_for_slots(["household/h-0", "household/h-1"], GRID.starts(0, 2))
    for name in ("h-0", "h-1"):
        repeats = releases[f"household/{name}"][GRID.start(1)]
        assert len(repeats) in (1, 2)
        assert len(set(repeats)) == 1
        assert json.loads(repeats[0])["levels"] == 4
    assert "household/h-2" not in releases
