"""A ledger that cannot be used: refused at the start, and waited for while the gateway runs."""

import json
import os
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from brokers import Mosquitto
from gateways import Gateway, eventually, noiseless, roll
from service.conftest import GatewayFactory
from service.expecting import Grid, symbol_of
from service.watching import Watcher, publish

NAMES = ["h-0", "h-1", "h-2"]


def of_another_schema(ledger: Path) -> None:
    with closing(sqlite3.connect(ledger)) as db:
        db.execute("PRAGMA user_version = 99")


def no_database(ledger: Path) -> None:
    ledger.write_bytes(b"these are the notes of somebody else " * 100)


def of_another_application(ledger: Path) -> None:
    ledger.unlink()
    with closing(sqlite3.connect(ledger)) as db:
        db.execute("CREATE TABLE recipes (name TEXT)")


def damaged(ledger: Path) -> None:
    pages = bytearray(ledger.read_bytes())
    pages[4_096:] = b"\xa5" * (len(pages) - 4_096)
    ledger.write_bytes(pages)


def cut_short(ledger: Path) -> None:
    ledger.write_bytes(ledger.read_bytes()[:8_192])


@pytest.fixture(scope="module")
def good_ledger(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a ledger that is in order."""
    gateway = Gateway(tmp_path_factory.mktemp("good"), "mqtt://127.0.0.1:9", roll(*NAMES)).spawn()
    try:
        eventually("it is alive", lambda: gateway.status("/health/live") == 200)
        assert gateway.stop() == 0
    finally:
        gateway.end()
    return gateway.ledger.read_bytes()


@pytest.mark.parametrize(
    ("spoil", "problem", "remedy"),
    [
        (of_another_schema, "schema 99", "run the version that wrote it"),
        (no_database, "not a database", "name another file"),
        (of_another_application, "not a ledger", "name another file"),
        (damaged, "", "restore it from a backup"),
        (cut_short, "", "restore it from a backup"),
    ],
)
def test_a_ledger_that_is_no_good_is_refused_with_1_and_what_to_do(
    make_gateway: GatewayFactory,
    good_ledger: bytes,
    spoil: Callable[[Path], None],
    problem: str,
    remedy: str,
) -> None:
    gateway: Gateway = make_gateway(roll(*NAMES))
    gateway.ledger.write_bytes(good_ledger)
    spoil(gateway.ledger)
    assert gateway.spawn().wait() == 1
    said = gateway.logged
    assert problem in said
    assert remedy in said
    assert str(gateway.ledger) in said
    assert "Traceback" not in said
    if spoil is not of_another_application:
        budget = noiseless("budget", gateway.config)
        assert budget.returncode == 1
        assert "Traceback" not in budget.stderr


def test_a_ledger_that_another_process_has_is_refused_with_1(make_gateway: GatewayFactory) -> None:
    first: Gateway = make_gateway(roll(*NAMES), name="first").start()
    second: Gateway = make_gateway(
        roll(*NAMES),
        name="second",
        broker={"client_id": "second"},
        ledger={"url": f"sqlite:///{first.ledger}"},
    )
    assert second.spawn().wait() == 1
    assert "another process has it" in second.logged
    assert first.ready


def test_a_ledger_in_a_folder_that_is_not_there_is_a_bad_configuration(make_gateway: GatewayFactory) -> None:
    gateway: Gateway = make_gateway(roll(*NAMES), ledger={"url": "sqlite:///nowhere/noiseless.db"})
    assert gateway.spawn().wait() == 78
    assert "ledger.url" in gateway.logged
    assert "create" in gateway.logged


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB of the test's own."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"mounting is not permitted here: {mounted.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def fill(disk: Path) -> Path:
    """Leave no byte free, and return what takes the space; again, to take what a shortened log gave back."""
    filler = disk / "filler"
    with filler.open("ab", buffering=0) as out:
        for size in (65_536, 4_096, 1):
            try:
                while True:
                    out.write(b"\0" * size)
            except OSError:
                continue
    return filler


def test_a_read_only_ledger_is_refused_with_1(make_gateway: GatewayFactory, small_disk: Path) -> None:
    gateway: Gateway = make_gateway(
        roll(*NAMES), ledger={"url": f"sqlite:///{small_disk}/noiseless.db"}
    ).start()
    gateway.stop()
    file = small_disk / "noiseless.db"
    if os.geteuid() == 0:  # whom permissions do not stop
        subprocess.run(["mount", "--bind", str(file), str(file)], check=True)
        subprocess.run(["mount", "-o", "remount,ro,bind", str(file)], check=True)
    else:
        file.chmod(0o444)
    try:
        assert gateway.spawn().wait() == 1
    finally:
        if os.geteuid() == 0:
            subprocess.run(["umount", str(file)], check=True)
    assert "make the file and its folder writable" in gateway.logged


def test_a_full_disk_stops_releases_and_acknowledgements_and_costs_nothing_once_there_is_space(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher, small_disk: Path
) -> None:
    gateway: Gateway = make_gateway(
        roll(*NAMES),
        slots={"length": "1s", "grace": "400ms", "clock": "wall", "missing": "floor"},
        ledger={"url": f"sqlite:///{small_disk}/noiseless.db"},
    ).start()
    grid = Grid.running(1)

    def meters(first: int, stop: int) -> None:
        for slot in range(first, stop):
            grid.sleep_into(slot, 0.1)
            publish(mosquitto.port, [grid.reading(name, slot, varied(slot)) for name in NAMES])

    meters(1, 4)
    watcher.wait_for_slots(["household/h-0"], grid.starts(1, 3))
    filler = fill(small_disk)
    meters(4, 7)
    # The log that deletes raw readings is shortened about once a second: what it gives back is taken as well.
    eventually("it says so", lambda: fill(small_disk) == filler and "nothing is released" in gateway.logged)
    assert "free space on its disk" in gateway.logged
    assert gateway.status("/health/ready") == 503
    assert gateway.status("/health/live") == 200
    released = len(watcher.releases()["household/h-0"])
    meters(7, 9)
    assert len(watcher.releases()["household/h-0"]) == released
    assert gateway.operator_metrics()["noiseless_operator_unacknowledged"] >= 2 * len(NAMES)

    filler.unlink()
    eventually("it is ready again", lambda: gateway.ready)
    meters(int(time.time()) - grid.first_s + 1, int(time.time()) - grid.first_s + 3)
    releases = watcher.wait_for_slots(["household/h-0", "household/h-2"], grid.starts(1, 9))
    assert gateway.operator_metrics()["noiseless_operator_connections"] == 1
    for topic in ("household/h-0", "household/h-2"):
        assert [symbols_in(releases[topic][start]) for start in grid.starts(1, 9)] == [
            [expected(slot)] for slot in range(1, 9)
        ]


def varied(slot: int) -> int:
    return 3_600 * (1 + slot % 3)


def expected(slot: int) -> int:
    return symbol_of(varied(slot) * 1_000, 4)


def symbols_in(repeats: list[bytes]) -> list[int]:
    return [json.loads(one)["symbol"] for one in repeats]


def test_a_kill_while_the_disk_is_full_loses_no_reading_of_a_slot_that_could_not_be_closed(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher, small_disk: Path
) -> None:
    """Input may be acknowledged only once it, or the slot that used it, is durable."""
    gateway: Gateway = make_gateway(
        roll(*NAMES),
        slots={"length": "1s", "grace": "100ms", "clock": "wall", "missing": "floor"},
        # The slot is due between two commits.
        ledger={"url": f"sqlite:///{small_disk}/noiseless.db", "commit": "5s"},
    ).start()
    grid = Grid.running(1)
    watcher.wait_for_slots(["household/h-0"], grid.starts(1, 2))
    publish(mosquitto.port, [grid.reading(name, 2, 14_400) for name in NAMES])
    filler = fill(small_disk)
    eventually("it says so", lambda: "nothing is released" in gateway.logged)
    grid.sleep_into(7)
    unacknowledged = gateway.operator_metrics()["noiseless_operator_unacknowledged"]
    gateway.kill()
    filler.unlink()
    gateway.start()
    releases = watcher.wait_for_slots(["household/h-0"], grid.starts(1, 4))["household/h-0"]
    assert [symbols_in(releases[start]) for start in grid.starts(1, 4)] == [[0], [3], [0]]
    assert unacknowledged >= len(NAMES)


def test_a_kill_while_the_disk_is_full_loses_no_reading_of_an_open_slot(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher, small_disk: Path
) -> None:
    grid = Grid()
    gateway: Gateway = make_gateway(
        roll(*NAMES),
        slots={"missing": "floor"},
        ledger={"url": f"sqlite:///{small_disk}/noiseless.db"},
    ).start()
    filler = fill(small_disk)
    publish(mosquitto.port, [grid.reading("h-0", 0, 14_400)])
    eventually("it says so", lambda: "nothing is released" in gateway.logged)
    assert gateway.operator_metrics()["noiseless_operator_unacknowledged"] >= 1
    gateway.kill()
    filler.unlink()
    gateway.start()
    publish(mosquitto.port, [grid.reading(name, slot, 9_000) for slot in (0, 1) for name in NAMES[1:]])
    releases = watcher.wait_for_slots(["household/h-0"], grid.starts(0, 1))["household/h-0"]
    assert symbols_in(releases[grid.start(0)]) == [3]


def test_a_stop_while_the_disk_is_full_acknowledges_nothing_that_is_not_durable(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher, small_disk: Path
) -> None:
    grid = Grid()
    gateway: Gateway = make_gateway(
        roll(*NAMES),
        slots={"missing": "floor"},
        ledger={"url": f"sqlite:///{small_disk}/noiseless.db"},
    ).start()
    publish(mosquitto.port, [grid.reading(name, slot, 9_000) for slot in (0, 1) for name in NAMES])
    watcher.wait_for_slots(["household/h-0"], grid.starts(0, 1))
    eventually("all is durable", lambda: gateway.operator_metrics()["noiseless_operator_unacknowledged"] == 0)
    filler = fill(small_disk)
    publish(mosquitto.port, [grid.reading("h-0", 2, 14_400)])
    eventually("it says so", lambda: "nothing is released" in gateway.logged)
    gateway.signal(15)
    assert gateway.wait(15) == 0
    filler.unlink()
    gateway.start()
    publish(mosquitto.port, [grid.reading(name, slot, 9_000) for slot in (2, 3) for name in NAMES[1:]])
    releases = watcher.wait_for_slots(["household/h-0"], grid.starts(0, 3))["household/h-0"]
    assert [symbols_in(releases[start]) for start in grid.starts(0, 3)] == [[2], [2], [3]]
