"""What a meter can do wrong, each with the reason under which it must be counted."""

import json
from typing import NamedTuple

from service.expecting import Grid
from service.watching import Message

MARKER = "h-XYZZY"
"""Stands in every bad payload, and in a topic: it must show up nowhere."""


class Spoilt(NamedTuple):
    """A message that is no reading of an open slot, and why."""

    reason: str
    message: Message


def spoilt(grid: Grid, slot: int, household: str) -> list[Spoilt]:
    """Return messages of a household during a slot, none of which may change a release."""
    start = grid.start(slot)
    topic = f"meters/{household}/reading"

    def fields(**changes: object) -> bytes:
        reading = {"ts": start, "energy_wh": 9, "unit": "Wh", "note": MARKER} | changes
        return json.dumps({name: value for name, value in reading.items() if value is not ...}).encode()

    payloads = {
        "empty": [b""],
        "undecodable": [
            b"{" + MARKER.encode(),
            b'{"note":"' + MARKER.encode() + b'\xff\xfe"}',
            b"[" * 100_000,
            b'{"a":' * 20_000,
            fields().replace(b": 9", b": NaN"),
            fields().replace(b": 9", b": 1e999"),
            fields() + b"{}",
        ],
        "too_large": [fields(note=MARKER + "x" * 1_000_000)],
        "missing_field": [
            b"{}",
            b"null",
            b"7",
            json.dumps([MARKER]).encode(),
            json.dumps(MARKER).encode(),
            fields(energy_wh=...),
            fields(ts=...),
            fields(unit=...),
        ],
        "wrong_type": [fields(energy_wh=value) for value in (None, True, [True], [], {"wh": 9})],
        "not_a_number": [fields(energy_wh=value) for value in ("", "9 Wh", "0x9", "1_0", MARKER)],
        "implausible": [fields(energy_wh=value) for value in (1e300, -1e300, 10**17, -(10**17))],
        "undeclared_unit": [fields(unit=value) for value in (MARKER, "kW", "wh", 1, None)],
        "bad_time": [
            fields(ts=value)
            for value in (start.removesuffix("Z"), MARKER, "", None, True, -1, 1e30, [start], "24:00")
        ]
        + [fields(ts=value) for value in ("0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", 0)]
        + [fields(ts="9999-12-31T00:00:00Z")],
        "misaligned": [fields(ts=start.replace(":00Z", ":30Z"))],
        "future": [fields(ts="2099-12-31T00:00:00Z"), fields(ts=grid.start(slot + 1_000_000))],
        "late": [fields(ts="2001-02-03T00:00:00Z"), fields(ts=1_000_000_020)],
    }
    found = [Spoilt(reason, Message(topic, payload)) for reason, many in payloads.items() for payload in many]
    found.append(Spoilt("unknown_household", Message(f"meters/{MARKER}/reading", fields())))
    found.append(Spoilt("unknown_topic", Message("meters//reading", fields())))
    return found
