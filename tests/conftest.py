"""Fixtures shared by all tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from brokers import Mosquitto


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    """A started mosquitto of the test's own, without persistence."""
    with Mosquitto(tmp_path / "mosquitto") as broker:
        yield broker
