"""The membership study's figures: advantage over ε, adversaries, lengths and budgets, readable in black and white."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from simulators.studies._membership_game import CERTIFIED, LOCAL, OVER_ALL, PAPER, READINGS, UNPROTECTED
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

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STYLES = {
    UNPROTECTED: ("black", "x", ":"),
    PAPER: ("tab:red", "o", "-"),
    CERTIFIED: ("tab:blue", "s", "--"),
    OVER_ALL: ("tab:green", "^", "-."),
    LOCAL: ("tab:purple", "D", (0, (1, 1))),
    "correlation": ("tab:blue", "s", "--"),
    "squared error": ("tab:orange", "v", "-."),
    "common peaks": ("tab:red", "o", "-"),
    "k = 2": ("tab:green", "^", "-."),
    "k = 4": ("tab:blue", "s", "--"),
    "k = 8": ("tab:red", "o", "-"),
}
_BY_CORRELATION = "adversary: correlation; bars: 95 % over games"


def draw_all(rows: Mapping[str, Sequence[Row]], source: str) -> dict[str, Figure]:
    """Return every figure, drawn from the tables' rows."""
    return {
        "readings": _over_epsilon(rows["readings"], DAILY, source),
        "half-hours": _over_epsilon(rows["half-hours"], HALF_HOURLY, source),
        "adversaries": _adversaries(rows["readings"], source),
        "lengths": _lengths(rows["lengths"], source),
        "budgets": _budgets(rows["budgets"], source),
    }


def _over_epsilon(rows: Sequence[Row], series: str, source: str) -> Figure:
    sizes = [size for size in dict.fromkeys(row.homes_in_group for row in rows) if size in PAPER_POINTS]
    figure = Figure(figsize=(5 * len(sizes), 7.5), layout="constrained")
    figure.suptitle(
        f"Advantage over ε for each reading of the paper\n{series} energy: {source}\n{_BY_CORRELATION}",
        fontsize=9,
    )
    grid = figure.subplots(2, len(sizes), squeeze=False)
    for (across, kind), (along, size) in product(enumerate((OBSERVED, CONNECTION)), enumerate(sizes)):
        axes = grid[across][along]
        _one_size(axes, of(rows, homes_in_group=size, adversary="correlation"), kind)
        if series == DAILY:
            axes.plot(
                [PAPER_POINTS[size]], [0], "*", color="black", markersize=13, label="as the paper reports"
            )
        axes.set_title(f"n = {size}; range: {kind}", fontsize=9)
        _labelled(axes, "ε = log2 k, bits per release")
    grid[0][0].legend(fontsize=7)
    return figure


def _one_size(axes: Axes, rows: Sequence[Row], kind: str) -> None:
    for reading in dict.fromkeys(row.reading for row in rows if row.reading in READINGS):
        _line(axes, reading, [(row.epsilon_bits, row) for row in of(rows, range=kind, reading=reading)])
    (bare,) = of(rows, reading=UNPROTECTED)
    axes.axhspan(bare.low, bare.high, color="0.85")
    axes.axhline(bare.advantage, color="black", linestyle=":", label=UNPROTECTED)


def _adversaries(rows: Sequence[Row], source: str) -> Figure:
    figure = Figure(figsize=(10, 4.4), layout="constrained")
    figure.suptitle(
        f"Three adversaries, certified levels, daily energy: {source}\nbars: 95 % over games", fontsize=9
    )
    by_epsilon, by_size = figure.subplots(1, 2, sharey=True)
    certified = of(rows, reading=CERTIFIED, range=OBSERVED)
    for adversary in dict.fromkeys(row.adversary for row in rows):
        mine = of(certified, adversary=adversary)
        _line(by_epsilon, adversary, [(row.epsilon_bits, row) for row in of(mine, homes_in_group=4)])
        _line(by_size, adversary, [(row.homes_in_group, row) for row in of(mine, k=4)])
    bare = of(rows, reading=UNPROTECTED, adversary="correlation")
    _line(by_size, UNPROTECTED, [(row.homes_in_group, row) for row in bare], "unprotected, correlation")
    by_epsilon.set_title("n = 4", fontsize=9)
    by_size.set_title("k = 4, ε = 2", fontsize=9)
    _log2(by_size)
    _labelled(by_epsilon, "ε = log2 k, bits per release")
    _labelled(by_size, "n, homes in the group")
    by_size.legend(fontsize=8)
    return figure


def _lengths(rows: Sequence[Row], source: str) -> Figure:
    figure = Figure(figsize=(10, 4.4), layout="constrained")
    figure.suptitle(
        f"Advantage over the length of the series, n = 4, k = 4, range: {OBSERVED}\n{source}\n{_BY_CORRELATION}",
        fontsize=9,
    )
    for axes, series in zip(figure.subplots(1, 2, sharey=True), (DAILY, HALF_HOURLY), strict=True):
        for reading in (UNPROTECTED, PAPER, CERTIFIED, OVER_ALL):
            mine = of(rows, series=series, reading=reading, adversary="correlation")
            _line(axes, reading, [(row.days, row) for row in mine])
        _log2(axes)
        axes.set_title(f"{series} energy", fontsize=9)
        _labelled(axes, "days of the series")
        axes.legend(fontsize=8)
    return figure


def _budgets(rows: Sequence[Row], source: str) -> Figure:
    figure = Figure(figsize=(10, 4.4), layout="constrained")
    figure.suptitle(
        f"Advantage over a budget, n = 4, certified levels, range: {OBSERVED}\n{source}\n{_BY_CORRELATION}",
        fontsize=9,
    )
    daily, fine = figure.subplots(1, 2, sharey=True)
    for axes, series in ((daily, DAILY), (fine, HALF_HOURLY)):
        for k in BUDGET_LEVELS:
            mine = of(rows, series=series, adversary="correlation", k=k)
            _line(axes, f"k = {k}", [(bits_of(row), row) for row in mine])
        _log2(axes)
        axes.legend(fontsize=8)
    daily.set_title("daily energy, released on a few days of the period", fontsize=9)
    fine.set_title("half-hourly energy, the first half hours of each day", fontsize=9)
    _labelled(daily, "bits in the whole period")
    _labelled(fine, "bits a day")
    return figure


def _line(axes: Axes, style: str, points: Sequence[tuple[float | None, Row]], label: str = "") -> None:
    colour, marker, line = _STYLES[style]
    axes.errorbar(
        [float(x or 0) for x, _ in points],
        [row.advantage for _, row in points],
        yerr=(
            [max(0, row.advantage - row.low) for _, row in points],
            [max(0, row.high - row.advantage) for _, row in points],
        ),
        color=colour,
        marker=marker,
        linestyle=line,
        markersize=5,
        capsize=2,
        label=label or style,
    )


def _log2(axes: Axes) -> None:
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")


def _labelled(axes: Axes, across: str) -> None:
    axes.set_xlabel(across)
    axes.set_ylabel("Adv = 2·|P(right) − ½|")
    axes.set_ylim(-0.03, 1.03)
    axes.grid(visible=True, alpha=0.3)
