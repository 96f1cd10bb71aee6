"""A network that fails without a word: half-open connections, a link that goes down, loss and delay."""

import asyncio
import itertools
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
from brokers import Mosquitto
from faults.relay import Relay
from gateways import NOISELESS, Gateway, eventually, roll
from service.expecting import Grid, symbol_of
from service.watching import Watcher, publish, publish_from

GRID = Grid()
NAMES = ["h-0", "h-1", "h-2", "h-3"]
TOPICS = [f"household/{name}" for name in NAMES]
KEEP_ALIVE_S = 10
"""The least that mosquitto accepts."""


def watts(slot: int) -> int:
    return (slot * 4_320) % 14_400


def assert_right(releases: dict[str, dict[str, list[bytes]]], slots: int) -> None:
    for topic in TOPICS:
        assert list(releases[topic]) == GRID.starts(0, slots)
        assert all(len(set(repeats)) == 1 for repeats in releases[topic].values())
        said = [json.loads(repeats[0])["symbol"] for repeats in releases[topic].values()]
        assert said == [symbol_of(GRID.power_mw(watts(slot)), 4) for slot in range(slots)]


async def test_a_half_open_connection_is_noticed_by_the_gateway_and_costs_nothing(tmp_path: Path) -> None:
    with Mosquitto(tmp_path / "mosquitto", config_lines=[f"max_keepalive {KEEP_ALIVE_S}"]) as broker:
        watcher = await asyncio.to_thread(Watcher, tmp_path, broker.port)
        async with Relay(broker.port) as relay:
            url = f"mqtt://127.0.0.1:{relay.port}"
            gateway = Gateway(tmp_path / "gateway", url, roll(*NAMES))
            try:
                await asyncio.to_thread(gateway.start)
                for slot in range(6):
                    if slot == 3:
                        relay.strand()
                    readings = [GRID.reading(name, slot, watts(slot)) for name in NAMES]
                    await publish_from(broker.port, readings)
                releases = await asyncio.to_thread(
                    watcher.wait_for_slots, TOPICS, GRID.starts(0, 5), 4 * KEEP_ALIVE_S
                )
                assert relay.connections == 2
                assert "nothing came from the broker" in gateway.logged
                assert_right(releases, 5)
                assert await asyncio.to_thread(gateway.stop) == 0
            finally:
                gateway.end()
                watcher.end()


class Namespace:
    """A network of its own, joined to ours by one pair of interfaces."""

    _numbers = itertools.count()

    def __init__(self) -> None:
        number = next(self._numbers)
        self.name = f"noiseless-{os.getpid()}-{number}"
        self._ours = f"nl{os.getpid() % 100_000}.{number}"
        # Addresses for measurements between networks (RFC 2544): no real one has them.
        self.broker, self.gateway = "198.18.77.1", "198.18.77.2"

    def link(self, state: str) -> None:
        """Take the link `up` or `down`; nobody is told."""
        _run("ip", "link", "set", self._ours, state)

    def impair(self, *netem: str) -> None:
        """Delay or lose packets from now on, in both directions."""
        for inside in ([], ["ip", "netns", "exec", self.name]):
            device = self._ours if not inside else "gateway"
            _run(*inside, "tc", "qdisc", "replace", "dev", device, "root", "netem", *netem)

    def command(self, executable: str, directory: Path) -> str:
        """Return a program that runs another one in here."""
        script = directory / "inside"
        script.write_text(f'#!/bin/sh\nexec ip netns exec {self.name} {executable} "$@"\n')
        script.chmod(0o755)
        return str(script)

    def __enter__(self) -> Self:
        routes = _run("ip", "route", "show", "match", self.broker).splitlines()
        if taken := [route for route in routes if not route.startswith("default")]:
            pytest.skip(f"{self.broker} has a route already: {taken[0]}")
        _run("ip", "netns", "add", self.name)
        try:
            peer = ["peer", "name", "gateway", "netns", self.name]
            _run("ip", "link", "add", self._ours, "type", "veth", *peer)
            _run("ip", "address", "add", f"{self.broker}/30", "dev", self._ours)
            self.link("up")
            inside = ["ip", "-n", self.name]
            _run(*inside, "address", "add", f"{self.gateway}/30", "dev", "gateway")
            for device in ("gateway", "lo"):
                _run(*inside, "link", "set", device, "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        # Deleting one end deletes the pair.
        subprocess.run(["ip", "link", "delete", self._ours], check=False, capture_output=True)
        _run("ip", "netns", "delete", self.name)


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, timeout=10, text=True).stdout


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    """A network namespace, or a reason why there is none."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    if shutil.which("ip") is None:
        pytest.skip("network namespaces need iproute2: apt-get install iproute2")
    try:
        with Namespace() as made:
            yield made
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespaces here: {error.stderr.strip()}")


@pytest.fixture
def remote(
    namespace: Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Gateway, Mosquitto]]:
    """A gateway in the namespace, and its broker outside."""
    with Mosquitto(tmp_path / "mosquitto") as probe:
        port = probe.port
    lines = [f"listener {port} {namespace.broker}"]
    with Mosquitto(tmp_path / "outside", config_lines=lines) as broker:
        monkeypatch.setattr("gateways.NOISELESS", namespace.command(NOISELESS, tmp_path))
        gateway = Gateway(tmp_path / "gateway", f"mqtt://{namespace.broker}:{port}", roll(*NAMES)).spawn()
        try:
            eventually("it is connected", lambda: '"broker connected"' in gateway.logged)
            yield gateway, broker
        finally:
            gateway.end()


def test_a_link_that_goes_down_and_comes_back_costs_nothing(
    namespace: Namespace, remote: tuple[Gateway, Mosquitto], tmp_path: Path
) -> None:
    gateway, broker = remote
    watcher = Watcher(tmp_path, broker.port)
    for slot in range(8):
        publish(broker.port, [GRID.reading(name, slot, watts(slot)) for name in NAMES])
        if slot in (2, 5):
            namespace.link("down")
            publish(broker.port, [GRID.reading(name, slot, watts(slot)) for name in NAMES])
            time.sleep(1.5)
            namespace.link("up")
    releases = watcher.wait_for_slots(TOPICS, GRID.starts(0, 7), patience=30)
    watcher.end()
    assert_right(releases, 7)
    assert gateway.stop() == 0


def test_loss_and_delay_cost_nothing(
    namespace: Namespace, remote: tuple[Gateway, Mosquitto], tmp_path: Path
) -> None:
    gateway, broker = remote
    try:
        namespace.impair("delay", "40ms", "20ms", "loss", "5%", "duplicate", "2%")
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"loss and delay need tc and the kernel's netem: {error}")
    watcher = Watcher(tmp_path, broker.port)
    for slot in range(20):
        publish(broker.port, [GRID.reading(name, slot, watts(slot)) for name in NAMES])
    releases = watcher.wait_for_slots(TOPICS, GRID.starts(0, 19), patience=30)
    watcher.end()
    assert_right(releases, 19)
    assert gateway.stop() == 0
