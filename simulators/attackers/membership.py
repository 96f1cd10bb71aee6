"""Who is in a group? Three adversaries of [NP] V-A, who hold homes' readings and see a group's releases.

Each scores how well a home fits a released series: who fits best is named. Series lie along the last axis, the
others are games or candidates, so that thousands are scored in one call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from gateway.privacy import BoolArray
from simulators.attackers.attack import Attack, AttackError, Learnt, Options
from simulators.attackers.known import Known, read_known
from simulators.attackers.recording import FloatArray, Recording, Released

_LEAST_SLOTS = 3  # a peak has neighbours
_COLUMNS = ("kind", "name", "slots", "adversary", "named", "right", "advantage")

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


def learn(recording: Recording, options: Options) -> Learnt:
    """Name the likeliest members of every group, and the home behind every household's topic.

    Scores use the slots that were released and are known of all homes. Where it is known who is in, the advantage
    is that of the game: of all pairs of a member and another home, how often the member fits better.

    Raises:
        AttackError: nothing is known, or no slot of it was released.

    """
    if options.known is None:
        raise AttackError(
            "membership compares with consumption the attacker knows: give it with --known FILE"
        )
    known = read_known(options.known, options.unit)
    rows: list[tuple[object, ...]] = []
    skipped = 0
    for released in (*recording.groups.values(), *recording.households.values()):
        together = _together(released, known)
        if together is None:
            skipped += 1
            continue
        truth = _members(released, options)
        for name, score in ADVERSARIES.items():
            found = _found(released, known, score(*together), truth)
            rows.append((released.kind, released.name, together[0].shape[-1], name, *found))
    if not rows:
        raise AttackError("no slot of the recording is in the known consumption of all homes")
    notes = [f"{len(known.homes)} candidate homes; as many are named as a group has members, likeliest first"]
    notes += [_of_households(rows, name, len(known.homes)) for name in ADVERSARIES if recording.households]
    notes += [_of_group(group, len(known.homes)) for group in recording.groups.values()]
    if skipped:
        notes.append(
            f"{skipped} topics have fewer than {_LEAST_SLOTS} slots that are known of all homes: left out"
        )
    return Learnt(_COLUMNS, rows, notes)


def advantage(members: FloatArray, others: FloatArray) -> float:
    """Return 2·|P − ½|, P the share of (member, other) pairs in which the member's score is higher; ties count half."""
    apart = members[:, None] - others[None, :]
    return abs(float(np.mean(np.sign(apart))))


def _of_group(group: Released, homes: int) -> str:
    named = min(group.members, homes)
    right = named * min(group.members / homes, 1)
    return f"group {group.name}: a blind guess of {named} homes is right for {right:.1f} of them"


def _of_households(rows: Sequence[tuple[object, ...]], adversary: str, homes: int) -> str:
    right = [row[-2] for row in rows if row[0] == "household" and row[3] == adversary]
    known = [one for one in right if one is not None]
    return (
        f"{adversary} names the home behind {known.count(1)} of {len(known)} households' topics;"
        f" a blind guess, behind {len(known) / homes:.1f}"
    )


def _found(
    released: Released, known: Known, scores: FloatArray, truth: frozenset[str]
) -> tuple[list[str], int | None, float | None]:
    """Return whom the scores name, how many of them are in, and the advantage; None where that is not known."""
    best = np.argsort(-scores, kind="stable")[: released.members]
    named = [known.homes[home] for home in best]
    inside = np.array([home in truth for home in known.homes])
    if inside.all() or not inside.any():
        return named, None, None
    right = sum(home in truth for home in named)
    return named, right, round(advantage(scores[inside], scores[~inside]), 4)


def _members(released: Released, options: Options) -> frozenset[str]:
    if released.kind == "household":
        return frozenset({released.name})
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


ATTACK = Attack("membership", "Who is in a group, for someone who knows homes' consumption", learn)
