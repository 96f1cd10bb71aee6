"""The attacks of ``noiseless attack``, by name: a module of an attack makes an ``ATTACK``, and is named here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rich.console import Console
from rich.text import Text

from gateway.policy import PolicyDocument
from gateway.tables import cell, table
from simulators.attackers import appliances, membership, quiet, routine
from simulators.attackers.attack import Attack, Options
from simulators.attackers.recording import Recording, read_recording

_SHOWN = 30

ATTACKS: Mapping[str, Attack] = MappingProxyType(
    {attack.name: attack for attack in (membership.ATTACK, routine.ATTACK, quiet.ATTACK, appliances.ATTACK)}
)
"""Every attack, in the order of the manual."""


def carry_out(name: str, path: Path, options: Options) -> dict[str, Any]:
    """Run an attack on a recording, and return a report of it.

    Raises:
        KeyError: there is none of that name.
        OSError: the recording cannot be read.
        AttackError: the attack lacks something.

    """
    attack, recording = ATTACKS[name], read_recording(path)
    learnt = attack.learn(recording, options)
    return {
        "attack": name,
        "title": attack.title,
        "recording": {
            "releases": recording.releases,
            "households": len(recording.households),
            "groups": len(recording.groups),
            "spent": recording.spent,
            "coarse": recording.coarse,
            "repeated": recording.repeated,
            "of_another_slot_length": recording.other_length,
            "other_lines": recording.other,
        },
        "learnt": [dict(zip(learnt.columns, row, strict=True)) for row in learnt.rows],
        "notes": [*learnt.notes, *_left_out(recording)],
    }


def _left_out(recording: Recording) -> list[str]:
    if not recording.other_length:
        return []
    return [
        f"{recording.other_length:,} releases are of slots that are not as long as most of their topic's: left out"
    ]


def members_of(document: PolicyDocument) -> dict[str, frozenset[str]]:
    """Return the households of each group of a public policy."""
    return {
        group.name: frozenset(document.households[member] for member in group.members)
        for group in document.groups
    }


def show_learnt(console: Console, report: dict[str, Any]) -> None:
    """Print what an attack learnt: its first rows, and its notes."""
    rows = report["learnt"]
    drawn = table(report["title"], *rows[0])
    for row in rows[:_SHOWN]:
        drawn.add_row(*map(_shown, row.values()))
    console.print(drawn)
    if len(rows) > _SHOWN:
        console.print(Text(f"and {len(rows) - _SHOWN} more: all of them with --json"))
    for note in report["notes"]:
        console.print(Text.assemble(("note ", "yellow"), note), soft_wrap=True)
    counted = (f"{count:,} {what.replace('_', ' ')}" for what, count in report["recording"].items())
    console.print(Text(f"recording: {', '.join(counted)}"), soft_wrap=True)


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(cell, value))
    return "" if value is None else cell(value)
