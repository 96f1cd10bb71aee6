"""Recordings of simulated homes: readings through the production `close_slot` and renderer, a line per release."""

from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from gateway.checking import validated
from gateway.messages import Release, Renderer
from gateway.policy import PolicyDocument, document_of
from gateway.privacy import IntArray, State, close_slot
from simulators.households import DAY_MS, Households

START = date(2026, 1, 5)
START_MS = (START - date(1970, 1, 1)).days * DAY_MS
SLOT_MS = 1_800_000
SLOTS_PER_DAY = 48


def half_hours_mw(homes: Households, days: int) -> IntArray:
    """Return (homes, days · 48) mean power (mW) of each half hour."""
    painted = [homes.power_w(START + timedelta(days=day)) for day in range(days)]
    watts = np.concatenate(painted, axis=1, dtype=np.int64).reshape(len(homes.ids), -1, 30)
    return watts.sum(axis=2) * 1_000 // 30


def tables_of(
    ids: Sequence[str], release: dict[str, Any], groups: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """Return a configuration as tables."""
    return {
        "source": [{"topic": "m/{household}", "value": "/e", "unit": "Wh", "time": {"at": "/ts"}}],
        "release": release,
        "household": [{"id": name} for name in ids],
        "group": list(groups),
    }


def released(document: PolicyDocument, power_mw: IntArray) -> list[bytes]:
    """Return what a receiver records: topic, space, payload of every release."""
    policy, renderer = document.compile(), Renderer(document, document.compile())
    state, lines = State.initial(policy), []
    for slot, values in enumerate(power_mw.T):
        start_ms = START_MS + slot * SLOT_MS
        closed = close_slot(policy, state, start_ms, values)
        state = closed.state
        symbols = [*closed.symbols.tolist(), *closed.group_symbols.tolist()]
        release = Release(start_ms, symbols, closed.spent.tolist())
        lines += [b"%s %s\n" % (one.topic.encode(), one.payload) for one in renderer.render(release)]
    return lines


def recorded(path: Path, homes: Households, days: int, release: dict[str, Any], **more: Any) -> Path:  # noqa: ANN401
    """Write the recording of simulated homes under a release's fields; `groups` as tables."""
    document = document_of(validated(tables_of(homes.ids, release, **more)))
    path.write_bytes(b"".join(released(document, half_hours_mw(homes, days))))
    return path
