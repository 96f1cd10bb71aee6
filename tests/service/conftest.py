"""Fixtures of the black-box tests: gateways and subscribers that end with their test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from brokers import Mosquitto
from gateways import Gateway, Table, Tables
from service.watching import Watcher

GatewayFactory = Callable[..., Gateway]


@pytest.fixture
def make_gateway(tmp_path: Path, mosquitto: Mosquitto) -> Iterator[GatewayFactory]:
    """Make gateways at the test's broker; none outlives the test."""
    made: list[Gateway] = []

    def make(
        household: list[Table], *, name: str = "gateway", url: str | None = None, **tables: Tables
    ) -> Gateway:
        gateway = Gateway(tmp_path / name, url or mosquitto.url, household, **tables)
        made.append(gateway)
        return gateway

    yield make
    for gateway in made:
        gateway.end()
        print(gateway.logged[-5_000:])  # noqa: T201 - shown when the test failed


@pytest.fixture
def watcher(tmp_path: Path, mosquitto: Mosquitto) -> Iterator[Watcher]:
    """Subscribe to all releases at the test's broker."""
    watching = Watcher(tmp_path, mosquitto.port)
    yield watching
    watching.end()
