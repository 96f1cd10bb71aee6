"""Who is in a group? Three adversaries of [NP] V-A, who hold homes' readings and see a group's releases.

Each scores how well a home fits a released series: who fits best is named. Series lie along the last axis, the
others are games or candidates, so that thousands are scored in one call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from gateway.privacy import BoolArray
from simulators.attackers.attack import Attack, AttackError, Learnt, Options
from simulators.attackers.known import Known, read_known
from simulators.attackers.recording import FloatArray, Recording, Released

_LEAST_SLOTS = 3  # a peak has neighbours
_LEAST_MEMBERS = 2  # of one, chance alone makes an advantage of half
_COLUMNS = ("kind", "name", "slots", "adversary", "named", "right", "advantage", "± by chance")

Adversary = Callable[[FloatArray, FloatArray], FloatArray]
"""Given (…, t) released values and (…, t) readings of a home in the same unit: (…) scores, more is likelier."""


def correlation(released: FloatArray, readings: FloatArray) -> FloatArray:
    """Score by Pearson's correlation; 0 where either series does not vary."""
    one, other = _centred(released), _centred(readings)
    lengths = np.sqrt(np.einsum("...t,...t->...", one, one) * np.einsum("...t,...t->...", other, other))
    together = np.einsum("...t,...t->...", one, other)
    scores: FloatArray = np.divide(together, lengths, out=np.zeros_like(together), where=lengths > 0)
    return scores


def squared_error(released: FloatArray, readings: FloatArray) -> FloatArray:
    """Score by the negative sum of squared differences."""
    apart = released - readings
    scores: FloatArray = -np.einsum("...t,...t->...", apart, apart)
    return scores


def common_peaks(released: FloatArray, readings: FloatArray) -> FloatArray:
    """Score by the number of slots that are peaks of both; a peak rises, and does not rise on."""
    together: BoolArray = _peaks(released) & _peaks(readings)
    return np.asarray(together.sum(axis=-1), np.float64)


ADVERSARIES: Mapping[str, Adversary] = MappingProxyType(
    {"correlation": correlation, "squared error": squared_error, "common peaks": common_peaks}
)
"""The paper's adversaries by name."""


def names_second(first: FloatArray, second: FloatArray, coins: BoolArray) -> BoolArray:
    """Return where the second candidate is named, given both scores; a tie is decided by the coin."""
    return np.where(first == second, coins, second > first)


class _Row(NamedTuple):
    """Whom an adversary names by one topic; None where it is not known who is right."""

    kind: str
    name: str
    slots: int
    adversary: str
    named: list[str]
    right: int | None
    advantage: float | None
    by_chance: float | None


def learn(recording: Recording, options: Options) -> Learnt:
    """Name the likeliest members of every group, and the home behind every household's topic.

    Scores use the slots that were released and are known of all homes. Where it is known who is in, the advantage
    is that of the game: of all pairs of a member and another home, how often the member fits better.

    Raises:
        AttackError: nothing is known, no slot of it was released, or the roll is not that of the recording.

    """
    if options.known is None:
        raise AttackError(
            "membership compares with consumption the attacker knows: give it with --known FILE"
        )
    _refuse_another_roll(recording, options)
    known = read_known(options.known, options.unit)
    rows: list[_Row] = []
    skipped = 0
    for released in (*recording.groups.values(), *recording.households.values()):
        together = _together(released, known)
        if together is None:
            skipped += 1
            continue
        truth = _members(released, options)
        for name, score in ADVERSARIES.items():
            found = _found(released, known, score(*together), truth)
            rows.append(_Row(released.kind, released.name, together[0].shape[-1], name, *found))
    if not rows:
        raise AttackError("no slot of the recording is in the known consumption of all homes")
    notes = [f"{len(known.homes)} candidate homes; as many are named as a group has members, likeliest first"]
    notes += _of_households(recording, rows, len(known.homes), asked=options.homes_at is not None)
    notes += [_of_group(group, len(known.homes)) for group in recording.groups.values()]
    if skipped:
        notes.append(
            f"{skipped} topics have fewer than {_LEAST_SLOTS} slots that are known of all homes: left out"
        )
    return Learnt(_COLUMNS, rows, notes)


def advantage(members: FloatArray, others: FloatArray) -> float:
    """Return 2·P − 1, P the share of (member, other) pairs in which the member's score is higher; ties count half."""
    apart = members[:, None] - others[None, :]
    return float(np.mean(np.sign(apart)))


def chance_deviation(members: int, others: int) -> float:
    """Return the standard deviation of the advantage where scores tell nothing (Mann and Whitney 1947), no ties."""
    return 2 * sqrt((members + others + 1) / (12 * members * others))


def _refuse_another_roll(recording: Recording, options: Options) -> None:
    for name, group in recording.groups.items():
        listed = options.members.get(name)
        if listed is not None and len(listed) != group.members:
            raise AttackError(
                f"group {name} has {len(listed)} members in the configuration and {group.members} in the recording:"
                " give the configuration that was in force"
            )


def _of_group(group: Released, homes: int) -> str:
    named = min(group.members, homes)
    right = named * min(group.members / homes, 1)
    return f"group {group.name}: a blind guess of {named} homes is right for {right:.1f} of them"


def _of_households(recording: Recording, rows: Sequence[_Row], homes: int, *, asked: bool) -> list[str]:
    mine = [row for row in rows if row.kind == "household"]
    if not mine:
        return []
    if all(row.right is None for row in mine):
        missing = "no topic is one of its households that is a candidate" if asked else "give --config"
        notes = [f"households' topics: not known who is right: {missing}"]
    else:
        notes = [
            _rightly(name, [row.right for row in mine if row.adversary == name], homes)
            for name in ADVERSARIES
        ]
    for name in ADVERSARIES:
        again = _linked(recording, [row for row in mine if row.adversary == name])
        if again:
            notes.append(
                f"{name} gives {again} homes several topics of different times:"
                " where it is right, that links the periods of a pseudonym"
            )
    return notes


def _rightly(adversary: str, right: Sequence[int | None], homes: int) -> str:
    known = [one for one in right if one is not None]
    unknown = len(right) - len(known)
    return (
        f"{adversary} names the home behind {known.count(1)} of {len(known)} households' topics;"
        f" a blind guess, behind {len(known) / homes:.1f}"
        + (f"; of {unknown} more it is not known who is right" if unknown else "")
    )


def _linked(recording: Recording, rows: Sequence[_Row]) -> int:
    """Return how many homes are named for topics that follow each other, as a household's pseudonyms do."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for row in rows:
        start_ms = recording.households[row.name].start_ms
        spans.setdefault(row.named[0], []).append((int(start_ms[0]), int(start_ms[-1])))
    return sum(max(start for start, _ in of) > min(end for _, end in of) for of in spans.values())


def _found(
    released: Released, known: Known, scores: FloatArray, truth: frozenset[str]
) -> tuple[list[str], int | None, float | None, float | None]:
    """Return whom the scores name, how many of them are in, the advantage, and what chance makes of it."""
    best = np.argsort(-scores, kind="stable")[: released.members]
    named = [known.homes[home] for home in best]
    inside = np.array([home in truth for home in known.homes])
    if inside.all() or not inside.any():
        return named, None, None, None
    right, members = sum(home in truth for home in named), int(inside.sum())
    if members < _LEAST_MEMBERS:
        return named, right, None, None
    gained = advantage(scores[inside], scores[~inside])
    return named, right, round(gained, 4), round(chance_deviation(members, len(inside) - members), 4)


def _members(released: Released, options: Options) -> frozenset[str]:
    if released.kind == "household":
        if options.homes_at is None:
            return frozenset({released.name})
        home = options.homes_at(int(released.start_ms[0])).get(released.name)
        return frozenset() if home is None else frozenset({home})
    return options.members.get(released.name, frozenset())


def _together(released: Released, known: Known) -> tuple[FloatArray, FloatArray] | None:
    """Return (1, t) released and (homes, t) known values (W) of the slots that both have; None if too few."""
    if released.minutes != known.minutes:
        return None
    of_both, at_released, at_known = np.intersect1d(released.start_ms, known.start_ms, return_indices=True)
    values, power = released.per_home_w[at_released], known.power_w[:, at_known]
    whole = np.isfinite(values) & np.isfinite(power).all(axis=0) & ~released.spent[at_released]
    if len(of_both) < _LEAST_SLOTS or np.count_nonzero(whole) < _LEAST_SLOTS:
        return None
    return values[None, whole], power[:, whole]


def _centred(series: FloatArray) -> FloatArray:
    centred: FloatArray = series - series.mean(axis=-1, keepdims=True)
    # What a mean of equal numbers is off by is not a variation: without this, a constant would correlate.
    centred[np.ptp(series, axis=-1) == 0] = 0
    return centred


def _peaks(series: FloatArray) -> BoolArray:
    inner = series[..., 1:-1]
    peaks: BoolArray = (inner > series[..., :-2]) & (inner >= series[..., 2:])
    return peaks


ATTACK = Attack(
    "membership",
    "Who is in a group, for someone who knows homes' consumption",
    learn,
    ("known", "unit", "config"),
)
