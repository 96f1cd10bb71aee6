"""SIGHUP: the gateway drains and goes on under the new configuration, in the same process.

Ledger, journal, outbox and the broker's session outlive it, so nothing is lost, released twice or forgotten: it is
the way of every restart, only quicker. A configuration with faults changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from gateway.checking import ConfigError, load
from gateway.config import Config
from gateway.ledger import LedgerError
from gateway.service import Gateway

_log = structlog.get_logger()
# Another ledger would not know what was spent; another client id would leave the broker's backlog behind.
_NEEDS_RESTART = frozenset({"ledger.url", "broker.client_id"})


@dataclass
class Requests:
    """What signals ask for."""

    stop: asyncio.Event = field(default_factory=asyncio.Event)
    reload: asyncio.Event = field(default_factory=asyncio.Event)


async def serve(path: Path, config: Config, requests: Requests) -> None:
    """Run the gateway until it is asked to stop, and anew whenever it is asked to reload.

    Raises:
        LedgerError: the ledger cannot be used.
        SessionTakenOver: another client uses the client id.
        OSError: the HTTP address cannot be listened on.

    """
    previous: Config | None = None
    while True:
        try:
            changed = await _until_changed(path, config, requests)
        except (LedgerError, OSError) as error:
            if previous is None:
                raise
            _log.error("the new configuration does not run, back to the one before", error=str(error))
            config, previous = previous, None
            continue
        if changed is None:
            return
        config, previous = changed, config
        _log.info("going on with the new configuration")


async def _until_changed(path: Path, config: Config, requests: Requests) -> Config | None:
    """Run until there is another configuration, which is returned, or nothing more to do."""
    ending = asyncio.Event()
    running = asyncio.create_task(Gateway(config).run(ending))
    asked = [asyncio.create_task(event.wait()) for event in (requests.stop, requests.reload)]
    changed = None
    try:
        while changed is None and not requests.stop.is_set():
            await asyncio.wait([running, *asked], return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                break
            if requests.reload.is_set():
                requests.reload.clear()
                asked[1] = asyncio.create_task(requests.reload.wait())
                changed = _changed(path, config)
    finally:
        ending.set()
        for task in asked:
            task.cancel()
        await running
    return changed


def _changed(path: Path, config: Config) -> Config | None:
    """Return the file's configuration, saying per field what applies; None if it changes nothing or has faults."""
    try:
        new = load(path)
    except ConfigError as error:
        for fault in error.faults:
            # The value may be a meter's number, the problem may name a household: check shows them.
            _log.error("not reloaded", field=fault.field, remedy=f"see noiseless check {path}")
        return None
    pinned = {"ledger": {"url": config.ledger.url}, "broker": {"client_id": config.broker.client_id}}
    kept = new.model_copy(
        update={table: getattr(new, table).model_copy(update=fields) for table, fields in pinned.items()}
    )
    for name in _differences(config.model_dump(), new.model_dump()):
        if name in _NEEDS_RESTART:
            _log.warning("needs a restart", field=name)
        else:
            _log.info("reloaded", field=name)
    if kept == config:
        _log.info("nothing to reload")
        return None
    return kept


def _differences(old: object, new: object, name: str = "") -> Iterator[str]:
    """Yield the names of the fields that differ; of lists as a whole."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict[Any, Any].fromkeys([*old, *new]):
            yield from _differences(old.get(key), new.get(key), f"{name}.{key}" if name else str(key))
    elif old != new:
        yield name
