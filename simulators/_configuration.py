"""A gateway's configuration that reads what a simulator publishes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from gateway.quantities import written_duration
from simulators.fleet import feeders

_DAY_MS = 86_400_000


def written_config(
    url: str,
    households: Sequence[str],
    *,
    slot_ms: int,
    slots: Mapping[str, str],
    power_range: str,
    source: Mapping[str, object],
) -> str:
    """Return the TOML of homes on their feeders, each release and each group at 3 bits.

    Args:
        url: the broker.
        households: the roll's ids.
        slot_ms: one slot.
        slots: what else [slots] says.
        power_range: of a release, as ``["0 W", "4 kW"]``.
        source: the fields of [[source]]; the time is at /ts.

    """
    lines = ["[broker]", f"url = {json.dumps(url)}", "[slots]", f'length = "{written_duration(slot_ms)}"']
    lines += [f'{name} = "{value}"' for name, value in slots.items()]
    # A day, or the whole slots next below it.
    window = written_duration(max(1, _DAY_MS // slot_ms) * slot_ms)
    lines += ["[budget]", f'window = "{window}"', "[release]", "epsilon = 3", f"range = {power_range}"]
    lines += ["[[source]]", *(f"{name} = {json.dumps(value)}" for name, value in source.items())]
    lines.append('time = { at = "/ts" }')
    for name, members in feeders(households).items():
        lines += ["[[group]]", f'name = "{name}"', f"members = {json.dumps(members)}", "epsilon = 3"]
    for household in households:
        lines += ["[[household]]", f'id = "{household}"']
    return "\n".join(lines) + "\n"
