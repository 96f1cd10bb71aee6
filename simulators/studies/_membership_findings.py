"""The membership study's findings: sentences with the numbers of the rows, and with none of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations

from simulators.attackers.membership import ADVERSARIES
from simulators.studies._membership_game import CERTIFIED, OVER_ALL, PAPER, UNPROTECTED
from simulators.studies._membership_rows import (
    ABOVE,
    BUDGET_LEVELS,
    DAILY,
    HALF_HOURLY,
    NEAR,
    NEAR_ZERO,
    OBSERVED,
    PAPER_POINTS,
    UNDECIDED,
    Row,
    bits_of,
    by_releases,
    of,
    strongest,
    verdict,
)

_BY_CORRELATION = "correlation"


def sentences(rows: Mapping[str, Sequence[Row]]) -> list[str]:
    """Return what the run found, in the order of the study's questions."""
    return [
        *(_unprotected(rows["readings"], size) for size in PAPER_POINTS),
        *_paper_points(rows),
        _reproduced(rows),
        _no_bits(rows["readings"]),
        *(_reversals([*rows["readings"], *rows["half-hours"]], adversary) for adversary in ADVERSARIES),
        *(_length(rows["lengths"], series) for series in (DAILY, HALF_HOURLY)),
        *(_half_hours(rows["half-hours"], size) for size in _sizes(rows["half-hours"])),
        *(_budget(rows["budgets"], DAILY, k, "in the whole period") for k in BUDGET_LEVELS),
        *(_budget(rows["budgets"], HALF_HOURLY, k, "a day") for k in BUDGET_LEVELS),
        *(_stretches(rows["stretches"], k) for k in BUDGET_LEVELS),
    ]


def _unprotected(rows: Sequence[Row], size: int) -> str:
    bare = of(rows, homes_in_group=size, reading=UNPROTECTED)
    told = ", ".join(f"{row.adversary} {_value(row)}" for row in bare)
    return f"Unprotected, n = {size}, {bare[0].days} days: {told}."


def _at_paper_points(rows: Mapping[str, Sequence[Row]]) -> dict[tuple[str, str], list[list[Row]]]:
    """Return the rows of each reading and range: of all adversaries, for one of the paper's points after another."""
    found: dict[tuple[str, str], list[list[Row]]] = {}
    for size, bits in PAPER_POINTS.items():
        wanted = {"homes_in_group": size, "epsilon_bits": bits}
        every = [*of(rows["readings"], **wanted), *of(rows["whole-series"], **wanted)]
        for reading in dict.fromkeys((row.reading, row.range) for row in every):
            mine = [row for row in every if (row.reading, row.range) == reading]
            found.setdefault(reading, []).append(mine)
    return found


def _paper_points(rows: Mapping[str, Sequence[Row]]) -> list[str]:
    return [
        f"The paper's near-zero point n = {mine[0].homes_in_group}, ε = {mine[0].epsilon_bits:g};"
        f" {reading}, range {over} ({_cells(mine[0])}; RMS error {mine[0].error_percent:.0f} % of the mean):"
        f" {_each(mine)}: {verdict(mine)}."
        for (reading, over), points in _at_paper_points(rows).items()
        for mine in points
    ]


def _reproduced(rows: Mapping[str, Sequence[Row]]) -> str:
    """Say which readings are near zero at all points: for every adversary, or for the paper's first one only."""
    every, only = [], []
    for (reading, over), points in _at_paper_points(rows).items():
        if all(verdict(mine) == NEAR for mine in points):
            every.append(f"{reading}, range {over}")
        elif all(verdict(of(mine, adversary=_BY_CORRELATION)) == NEAR for mine in points):
            only.append(f"{reading}, range {over}")
    return (
        f"Near zero (interval up to {NEAR_ZERO}) at all of the paper's points:"
        f" for every adversary {'; '.join(every) or 'none'}. By correlation only: {'; '.join(only) or 'none'}."
    )


def _no_bits(rows: Sequence[Row]) -> str:
    told = [
        f"n = {row.homes_in_group} {_value(row)} with {_cells(row)}"
        for row in of(rows, reading=PAPER, range=OBSERVED, epsilon_bits=0.0, adversary=_BY_CORRELATION)
    ]
    chance = of(rows, reading=CERTIFIED, range=OBSERVED, epsilon_bits=0.0, adversary=_BY_CORRELATION)
    most = max(chance, key=lambda row: row.advantage)
    return (
        f"ε = 0 should tell nothing; Theorem 8 allows n cells for it: {'; '.join(told)}."
        f" Certified levels are one cell: {_value(most)} at most."
    )


def _reversals(rows: Sequence[Row], adversary: str) -> str:
    """Say whether fewer levels ever helped an adversary, beyond the intervals of both."""
    mine = [row for row in of(rows, adversary=adversary) if row.k is not None]
    pairs = [
        (coarse, fine)
        for coarse, fine in permutations(mine, 2)
        if _curve(coarse) == _curve(fine) and (coarse.k or 0) < (fine.k or 0) and coarse.low > fine.high
    ]
    if not pairs:
        return f"More levels never gave {adversary} less, beyond the intervals."
    coarse, fine = max(pairs, key=lambda pair: pair[0].low - pair[1].high)
    curves = len({_curve(coarse) for coarse, _ in pairs})
    return (
        f"More levels gave {adversary} less, beyond the intervals, on {curves} of {len(set(map(_curve, mine)))}"
        f" curves; most for {coarse.series} energy, n = {coarse.homes_in_group}, range {coarse.range},"
        f" {coarse.reading}: {_value(coarse)} with k = {coarse.k}, {_value(fine)} with k = {fine.k}."
    )


def _curve(row: Row) -> tuple[str, int, str, str]:
    return row.series, row.homes_in_group, row.range, row.reading


def _length(rows: Sequence[Row], series: str) -> str:
    told = []
    for reading in (UNPROTECTED, PAPER, CERTIFIED, OVER_ALL):
        mine = of(rows, series=series, reading=reading, adversary=_BY_CORRELATION)
        past = next((row for row in mine if row.low > NEAR_ZERO), None)
        when = "never above" if past is None else f"above with {_days(past)} ({_value(past)})"
        told.append(f"{reading}: {when}, {_value(mine[-1])} with {_days(mine[-1])}")
    return (
        f"Length, {series}, n = 4, k = 4, by correlation; above is an interval that begins above {NEAR_ZERO}:"
        f" {'; '.join(told)}."
    )


def _half_hours(rows: Sequence[Row], size: int) -> str:
    mine = of(rows, homes_in_group=size, adversary=_BY_CORRELATION)
    (bare,) = of(mine, reading=UNPROTECTED)
    told = [f"k = {row.k} {_value(row)}" for row in of(mine, reading=CERTIFIED, range=OBSERVED) if row.k != 1]
    return (
        f"Half-hourly, n = {size}, {bare.days} days: unprotected {_value(bare)};"
        f" certified levels {', '.join(told)}."
    )


def _budget(rows: Sequence[Row], series: str, k: int, period: str) -> str:
    """Say which budgets are near zero for every adversary, which are above, and which the games leave open."""
    judged: dict[str, list[Row]] = {}
    for played in by_releases(of(rows, series=series, k=k)):
        judged.setdefault(verdict(played), []).append(strongest(played))
    told = []
    for kind in (NEAR, UNDECIDED, ABOVE):
        found = judged.get(kind, [])
        if not found:
            told.append(f"{kind} with none")
            continue
        telling = found[0] if kind == ABOVE else found[-1]
        told.append(
            f"{kind} with {', '.join(f'{bits_of(row):g}' for row in found)} ({bits_of(telling):g}:"
            f" {telling.adversary} {_value(telling)}, RMS error {telling.error_percent:.0f} % of the mean)"
        )
    return f"Budget, {series}, n = 4, k = {k}, bits {period}, every adversary: {'; '.join(told)}."


def _stretches(rows: Sequence[Row], k: int) -> str:
    """Say what as many releases tell at other hours of the day."""
    told = []
    for hours in dict.fromkeys(row.hours for row in rows):
        mine = of(rows, hours=hours, k=k)
        error = mine[0].error_percent
        told.append(f"{hours} h {_each(mine)}: {verdict(mine)}, RMS error {error:.0f} % of the mean")
    each_day = rows[0].releases // rows[0].days
    return f"{each_day} half hours of every day, n = 4, k = {k}: {'; '.join(told)}."


def _each(rows: Sequence[Row]) -> str:
    return ", ".join(f"{row.adversary} {_value(row)}" for row in rows)


def _value(row: Row) -> str:
    return f"{row.advantage:.2f} [{row.low:.2f}, {row.high:.2f}]"


def _days(row: Row) -> str:
    return "1 day" if row.days == 1 else f"{row.days} days"


def _cells(row: Row) -> str:
    cells = "1 cell" if row.cells == 1 else f"{row.cells} cells"
    return f"{row.releases} releases of {cells}" if row.releases < row.days else cells


def _sizes(rows: Sequence[Row]) -> list[int]:
    return list(dict.fromkeys(row.homes_in_group for row in rows))
