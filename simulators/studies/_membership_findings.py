"""The membership study's findings: sentences with the numbers of the rows, and with none of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations

from simulators.attackers.membership import ADVERSARIES
from simulators.studies._membership_game import CERTIFIED, OVER_ALL, PAPER, READINGS, UNPROTECTED
from simulators.studies._membership_rows import (
    BUDGET_LEVELS,
    CONNECTION,
    DAILY,
    HALF_HOURLY,
    OBSERVED,
    PAPER_POINTS,
    Row,
    bits_of,
    of,
)

NEAR_ZERO = 0.1
"""An advantage that the findings call near zero: right in 55 of 100 games."""
_BY_CORRELATION = "correlation"


def sentences(rows: Mapping[str, Sequence[Row]]) -> list[str]:
    """Return what the run found, in the order of the study's questions."""
    return [
        *(_unprotected(rows["readings"], size) for size in PAPER_POINTS),
        *(_paper_point(rows, size, bits) for size, bits in PAPER_POINTS.items()),
        *(_over_connection(rows["readings"], size, bits) for size, bits in PAPER_POINTS.items()),
        _no_bits(rows["readings"]),
        *(_reversals([*rows["readings"], *rows["half-hours"]], adversary) for adversary in ADVERSARIES),
        *(_length(rows["lengths"], series) for series in (DAILY, HALF_HOURLY)),
        *(_half_hours(rows["half-hours"], size) for size in _sizes(rows["half-hours"])),
        *(_budget(rows["budgets"], DAILY, k, "in the whole period") for k in BUDGET_LEVELS),
        *(_budget(rows["budgets"], HALF_HOURLY, k, "a day") for k in BUDGET_LEVELS),
    ]


def _unprotected(rows: Sequence[Row], size: int) -> str:
    bare = of(rows, homes_in_group=size, reading=UNPROTECTED)
    told = ", ".join(f"{row.adversary} {_value(row)}" for row in bare)
    return f"Unprotected, n = {size}, {bare[0].days} days: {told}."


def _paper_point(rows: Mapping[str, Sequence[Row]], size: int, bits: float) -> str:
    wanted = {"homes_in_group": size, "epsilon_bits": bits, "adversary": _BY_CORRELATION, "range": OBSERVED}
    found = [row for reading in READINGS for row in of(rows["readings"], reading=reading, **wanted)]
    found += [row for row in of(rows["whole-series"], **wanted) if row.k is not None]
    told = "; ".join(f"{row.reading} ({_cells(row)}) {_value(row)}" for row in found)
    near = [row.reading for row in found if row.advantage <= NEAR_ZERO]
    return (
        f"The paper's near-zero point n = {size}, ε = {bits:g}, by correlation, range {OBSERVED}: {told}."
        f" Near zero (≤ {NEAR_ZERO}): {', '.join(near) or 'none'}."
    )


def _over_connection(rows: Sequence[Row], size: int, bits: float) -> str:
    wanted = {"homes_in_group": size, "epsilon_bits": bits, "adversary": _BY_CORRELATION, "range": CONNECTION}
    found = of(rows, **wanted)
    told = "; ".join(
        f"{row.reading} {_value(row)} with an error of {row.error_percent:.0f} %" for row in found
    )
    return f"The same, n = {size}, ε = {bits:g}, over the range of the {CONNECTION}: {told} of the mean."


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
        when = "never past it" if past is None else f"past it with {_days(past)} ({_value(past)})"
        told.append(f"{reading}: {when}, {_value(mine[-1])} with {_days(mine[-1])}")
    return f"Length, {series}, n = 4, k = 4, with near zero up to {NEAR_ZERO}: {'; '.join(told)}."


def _half_hours(rows: Sequence[Row], size: int) -> str:
    mine = of(rows, homes_in_group=size, adversary=_BY_CORRELATION)
    (bare,) = of(mine, reading=UNPROTECTED)
    told = [f"k = {row.k} {_value(row)}" for row in of(mine, reading=CERTIFIED, range=OBSERVED) if row.k != 1]
    return (
        f"Half-hourly, n = {size}, {bare.days} days: unprotected {_value(bare)};"
        f" certified levels {', '.join(told)}."
    )


def _budget(rows: Sequence[Row], series: str, k: int, period: str) -> str:
    """Say how far a budget may go while no adversary is past near zero, and how wrong the release then is."""
    settings: dict[int, list[Row]] = {}
    for row in of(rows, series=series, k=k):
        settings.setdefault(row.releases, []).append(row)
    kept = None
    for played in settings.values():
        if max(row.advantage for row in played) > NEAR_ZERO:
            break
        kept = max(played, key=lambda row: row.advantage)
    if kept is None:
        least = next(iter(settings.values()))
        worst = max(least, key=lambda row: row.advantage)
        return (
            f"Budget, {series}, n = 4, k = {k}: none was small enough;"
            f" {bits_of(worst):g} bits {period} give {worst.adversary} {_value(worst)}."
        )
    return (
        f"Budget, {series}, n = 4, k = {k}: near zero for every adversary up to {bits_of(kept):g} bits {period},"
        f" {kept.releases} releases ({kept.adversary} {_value(kept)}); RMS error of a release"
        f" {kept.error_percent:.0f} % of the mean."
    )


def _value(row: Row) -> str:
    return f"{row.advantage:.2f} [{row.low:.2f}, {row.high:.2f}]"


def _days(row: Row) -> str:
    return "1 day" if row.days == 1 else f"{row.days} days"


def _cells(row: Row) -> str:
    cells = "1 cell" if row.cells == 1 else f"{row.cells} cells"
    return f"{row.releases} releases of {cells}" if row.releases < row.days else cells


def _sizes(rows: Sequence[Row]) -> list[int]:
    return list(dict.fromkeys(row.homes_in_group for row in rows))
