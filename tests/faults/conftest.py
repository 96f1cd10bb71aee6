"""Campaigns break connections on purpose, for the meters and the subscriber as well."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def quiet_clients() -> Iterator[None]:
    """Keep aiomqtt's and asyncio's complaints out of the report of a test that failed."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
