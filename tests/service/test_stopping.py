"""A clean stop, and what follows it."""

import json
import shutil
import signal
import subprocess
import time

from brokers import Mosquitto
from gateways import Gateway, eventually, roll
from service.conftest import GatewayFactory
from service.expecting import Grid
from service.watching import Watcher, publish

GRID = Grid()
NAMES = ["h-0", "h-1", "h-2"]


def test_sigterm_drains_says_offline_and_ends_with_0_and_the_session_goes_on_collecting(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    """As A5 (node-red/node-red#3452): an unsubscribing stop lost what came before the next start."""
    gateway: Gateway = make_gateway(roll(*NAMES), ledger={"commit": "1h"}).start()
    publish(mosquitto.port, [GRID.reading(name, slot, 9_000) for slot in (0, 1) for name in NAMES])
    watcher.wait_for_slots(["household/h-0"], GRID.starts(0, 1))
    began = time.monotonic()
    assert gateway.stop() == 0
    assert time.monotonic() - began < 3
    watcher.wait("offline is said", lambda seen: seen.states()[-1:] == ["offline"])
    assert gateway.query("SELECT count(*) FROM journal") == 1, "readings of the open slot are durable"
    assert gateway.query("SELECT count(*) FROM outbox") == 0

    publish(mosquitto.port, [GRID.reading(name, slot, 13_200) for slot in (2, 3) for name in NAMES])
    gateway.start()
    releases = watcher.wait_for_slots(["household/h-0"], GRID.starts(0, 3))["household/h-0"]
    assert [json.loads(one)["symbol"] for (one,) in releases.values()] == [2, 2, 3]
    assert watcher.states() == ["online", "offline", "online"]


def test_the_state_is_retained_for_who_comes_later(
    make_gateway: GatewayFactory, mosquitto: Mosquitto
) -> None:
    gateway: Gateway = make_gateway(roll(*NAMES)).start()
    assert retained_state(mosquitto.port) == '1 {"state":"online"}'
    assert gateway.stop() == 0
    assert retained_state(mosquitto.port) == '1 {"state":"offline"}'


def retained_state(port: int) -> str:
    sub = shutil.which("mosquitto_sub")
    assert sub is not None
    command = [sub, "-p", str(port), "-t", "noiseless/state", "-C", "1", "-F", "%r %p"]
    return subprocess.run(command, check=True, timeout=5, capture_output=True, text=True).stdout.strip()


def test_sigterm_while_readings_pour_in_loses_and_doubles_nothing(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    gateway: Gateway = make_gateway(roll(*NAMES)).start()
    slots = 60
    for part in range(3):
        first = part * slots // 3
        publish(
            mosquitto.port,
            [GRID.reading(name, first + i, 60 * (first + i)) for i in range(slots // 3) for name in NAMES],
        )
        assert gateway.stop() == 0
        gateway.start()
    releases = watcher.wait_for_slots([f"household/{name}" for name in NAMES], GRID.starts(0, slots - 1))
    assert all(len(repeats) == 1 for of in releases.values() for repeats in of.values())


def test_sighup_does_not_end_it(make_gateway: GatewayFactory) -> None:
    """As H3 (Mic92/dotfiles#5894): a SIGHUP killed the process."""
    gateway: Gateway = make_gateway(roll(*NAMES)).start()
    gateway.signal(signal.SIGHUP)
    eventually("it says what it does", lambda: "nothing to reload" in gateway.logged)
    assert gateway.ready
    assert gateway.stop() == 0


def test_an_address_that_is_taken_ends_it_with_1_and_says_which(
    make_gateway: GatewayFactory,
) -> None:
    first: Gateway = make_gateway(roll(*NAMES), name="first").start()
    listen = f"127.0.0.1:{first.port}"
    second: Gateway = make_gateway(
        roll(*NAMES), name="second", broker={"client_id": "second"}, http={"listen": listen}
    ).spawn()
    assert second.wait() == 1
    assert listen in second.logged
    assert "Traceback" not in second.logged
