"""What the tests of the link share: a quick back-off, and a broker under full control."""

from collections.abc import AsyncIterator

import pytest
from mqtt.fakes import FakeBroker

from gateway.mqtt import _backoff


@pytest.fixture(autouse=True)
def quick_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reconnect within hundredths of a second."""
    monkeypatch.setattr(_backoff, "FIRST", 0.02)
    monkeypatch.setattr(_backoff, "CEILING", 0.1)


@pytest.fixture
async def fake() -> AsyncIterator[FakeBroker]:
    async with FakeBroker() as broker:
        yield broker
