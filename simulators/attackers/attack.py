"""What an attack is: someone who holds a recording of releases, and what he makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from simulators.attackers.recording import Recording


class AttackError(ValueError):
    """The attack cannot be run on what it was given."""


@dataclass(frozen=True)
class Options:
    """What an attacker has beside the recording.

    Attributes:
        known: a CSV of consumption that he is assumed to know; None for nothing.
        unit: of its numbers: Wh or kWh, or W for mean power.
        members: the public roll, for telling how often he is right: households by group; empty if unknown.
        homes_at: of a time (ms UTC), the households by the names that their topics have then; None if unknown, and
            topics are taken to have the households' own names.

    """

    known: Path | None = None
    unit: str = "Wh"
    members: Mapping[str, frozenset[str]] = field(default_factory=dict)
    homes_at: Callable[[int], Mapping[str, str]] | None = None


class Learnt(NamedTuple):
    """What an attack learnt.

    Attributes:
        columns: names of the columns, with their units.
        rows: one per finding; None where he learnt nothing.
        notes: sentences: what it amounts to, and what was left out.

    """

    columns: tuple[str, ...]
    rows: Sequence[tuple[object, ...]]
    notes: Sequence[str]


class Attack(NamedTuple):
    """An attack that ``noiseless attack`` knows.

    Attributes:
        name: on the command line.
        title: what it asks, in one line.
        learn: does it; raises :class:`AttackError` where it lacks something.
        uses: the options of the command that it looks at.

    """

    name: str
    title: str
    learn: Callable[[Recording, Options], Learnt]
    uses: tuple[str, ...] = ()
