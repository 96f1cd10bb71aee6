"""The membership study's figures: advantage over ε, adversaries, lengths and budgets, readable in black and white."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simulators.attackers.membership import ADVERSARIES
from simulators.studies._charts import draw, labelled, panels
from simulators.studies._membership_game import CERTIFIED, OVER_ALL, PAPER, READINGS, UNPROTECTED
from simulators.studies._membership_rows import (
    BUDGET_LEVELS,
    CONNECTION,
    DAILY,
    HALF_HOURLY,
    NEAR_ZERO,
    OBSERVED,
    PAPER_POINTS,
    Row,
    bits_of,
    by_releases,
    of,
    strongest,
)

_BARE = 5  # the style of what is not quantized
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
    title = f"Advantage over ε for each reading of the paper\n{series} energy: {source}\n{_BY_CORRELATION}"
    figure, grid = panels(title, len(sizes), 2, 5)
    for axes, (kind, size) in zip(grid, product((OBSERVED, CONNECTION), sizes), strict=True):
        _one_size(axes, of(rows, homes_in_group=size, adversary="correlation"), kind)
        if series == DAILY:
            axes.plot(
                [PAPER_POINTS[size]], [0], "*", color="black", markersize=13, label="the paper: near zero"
            )
        axes.set_title(f"n = {size}; range: {kind}", fontsize=9)
        _finished(axes, "ε = log2 k, bits per release", legend=False)
    grid[0].legend(fontsize=7)
    return figure


def _one_size(axes: Axes, rows: Sequence[Row], kind: str) -> None:
    for number, reading in enumerate(READINGS):
        mine = of(rows, range=kind, reading=reading)
        if mine:
            _line(axes, number, [(row.epsilon_bits, row) for row in mine], reading)
    (bare,) = of(rows, reading=UNPROTECTED)
    axes.axhspan(bare.low, bare.high, color="0.85")
    axes.axhline(bare.advantage, color="black", linestyle=":", label=UNPROTECTED)


def _adversaries(rows: Sequence[Row], source: str) -> Figure:
    about = f"The paper's three adversaries, certified levels, range: {OBSERVED}"
    title = f"{about}, daily energy: {source}\nbars: 95 % over games"
    figure, (by_epsilon, by_size) = panels(title, 2, 1, 5, alike=True)
    certified = of(rows, reading=CERTIFIED, range=OBSERVED)
    for number, adversary in enumerate(ADVERSARIES):
        mine = of(certified, adversary=adversary)
        four = of(mine, homes_in_group=4)
        _line(by_epsilon, number, [(row.epsilon_bits, row) for row in four], adversary)
        _line(by_size, number, [(row.homes_in_group, row) for row in of(mine, k=4)], adversary)
    bare = of(rows, reading=UNPROTECTED, adversary="correlation")
    _line(by_size, _BARE, [(row.homes_in_group, row) for row in bare], "unprotected, correlation")
    by_epsilon.set_title("n = 4", fontsize=9)
    by_size.set_title("k = 4, ε = 2", fontsize=9)
    _log2(by_size)
    _finished(by_epsilon, "ε = log2 k, bits per release", legend=False)
    _finished(by_size, "n, homes in the group", legend=False)
    figure.legend(*by_size.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
    return figure


def _lengths(rows: Sequence[Row], source: str) -> Figure:
    title = f"Advantage over the length of the series, n = 4, k = 4, range: {OBSERVED}\n{source}\n{_BY_CORRELATION}"
    figure, grid = panels(title, 2, 1, 5, alike=True)
    shown = ((0, PAPER), (1, CERTIFIED), (2, OVER_ALL), (_BARE, UNPROTECTED))
    for axes, series in zip(grid, (DAILY, HALF_HOURLY), strict=True):
        for number, reading in shown:
            mine = of(rows, series=series, reading=reading, adversary="correlation")
            _line(axes, number, [(row.days, row) for row in mine], reading)
        _log2(axes)
        axes.set_title(f"{series} energy", fontsize=9)
        _finished(axes, "days of the series")
    return figure


def _budgets(rows: Sequence[Row], source: str) -> Figure:
    title = (
        f"Advantage over a budget, n = 4, certified levels, range: {OBSERVED}\n{source}\n"
        "adversary: at each point the strongest of four; bars: its 95 % over games"
    )
    figure, grid = panels(title, 2, 1, 5, alike=True)
    shown = (
        (DAILY, "daily energy, released on a few days of the period", "bits in the whole period"),
        (HALF_HOURLY, "half-hourly energy, the first half hours of each day", "bits a day"),
    )
    for axes, (series, about, across) in zip(grid, shown, strict=True):
        for number, k in enumerate(BUDGET_LEVELS):
            mine = [strongest(played) for played in by_releases(of(rows, series=series, k=k))]
            _line(axes, number, [(bits_of(row), row) for row in mine], f"k = {k}")
        axes.axhline(NEAR_ZERO, color="dimgray", linestyle="--", linewidth=1, label=f"{NEAR_ZERO}: near zero")
        _log2(axes)
        axes.set_title(about, fontsize=9)
        _finished(axes, across, legend=axes is grid[0])
    return figure


def _line(axes: Axes, number: int, points: Sequence[tuple[float | None, Row]], label: str) -> None:
    x, y = [float(x or 0) for x, _ in points], [row.advantage for _, row in points]
    draw(axes, number, x, y, label, ends=([row.low for _, row in points], [row.high for _, row in points]))


def _log2(axes: Axes) -> None:
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")


def _finished(axes: Axes, across: str, *, legend: bool = True) -> None:
    labelled(axes, across, "Adv = 2·|P(right) − ½|", "best" if legend else None)
    axes.set_ylim(-0.03, 1.03)
