"""Series out of a study's tables, and panels of lines that stay apart when they are printed in black and white."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simulators.studies.study import Table

BITS = "ε, bits per release"
_STYLES: tuple[tuple[str, str | tuple[int, tuple[int, ...]], str], ...] = (
    ("o", "-", "black"),
    ("s", "--", "tab:blue"),
    ("^", ":", "tab:red"),
    ("D", "-.", "tab:green"),
    ("v", (0, (5, 1, 1, 1, 1, 1)), "tab:purple"),
    ("x", (0, (1, 3)), "0.35"),
)
"""Marker, line and colour of a series: no two share marker or line."""
_LEAST_WIDTH = 6.4  # inches: a title and a legend have room in it
_LETTERS_PER_INCH = 13  # of a title


def values(table: Table, column: str, **where: object) -> list[float]:
    """Return the numbers of a column, of the rows in which the named other columns are as given."""
    place = table.columns.index(column)
    kept = {table.columns.index(name): wanted for name, wanted in where.items()}
    rows = (row for row in table.rows if all(row[at] == wanted for at, wanted in kept.items()))
    return [float(str(row[place])) for row in rows]


def panels(
    title: str, columns: int, rows: int = 1, width: float = 4.6, *, alike: bool = False
) -> tuple[Figure, list[Axes]]:
    """Return a figure of so many panels, row by row, without a display.

    Args:
        title: what is drawn, its data and parameters; wrapped to the figure's width.
        columns: panels beside each other.
        rows: panels below each other.
        width: of a panel (inches).
        alike: whether all share the upright axis.

    """
    across = max(width * columns, _LEAST_WIDTH)
    lines = [fill(line, round(across * _LETTERS_PER_INCH)) for line in title.split("\n")]
    height = 3.5 * rows + 0.2 * "\n".join(lines).count("\n") + 0.5
    figure = Figure(figsize=(across, height), layout="constrained")
    figure.suptitle("\n".join(lines), fontsize=9)
    return figure, list(figure.subplots(rows, columns, squeeze=False, sharey=alike).flat)


def draw(
    axes: Axes,
    number: int,
    x: Sequence[float],
    y: Sequence[float],
    label: str,
    *,
    ends: tuple[Sequence[float], Sequence[float]] | None = None,
) -> None:
    """Draw a series; its number chooses marker, line and colour.

    Args:
        axes: where.
        number: of the series in its figure.
        x: its places.
        y: its values.
        label: for the legend.
        ends: the lower and the upper ends of its intervals, drawn as bars.

    """
    marker, line, colour = _STYLES[number % len(_STYLES)]
    every = max(1, len(x) // 12)
    low, high = (y, y) if ends is None else ends
    away = np.maximum((np.subtract(y, low), np.subtract(high, y)), 0)
    axes.errorbar(
        x,
        y,
        None if ends is None else away,
        marker=marker,
        linestyle=line,
        color=colour,
        linewidth=1.2,
        elinewidth=0.7,
        capsize=2,
        markersize=4.5,
        markevery=every,
        label=label,
    )


def labelled(
    axes: Axes, x: str, y: str, legend: Literal["best", "lower left", "upper left"] | None = "best"
) -> None:
    """Name both axes, lay a grid, and say, at a place of the legend's, what the lines are; None for no legend."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(visible=True, which="both", alpha=0.3)
    if legend is not None:
        axes.legend(fontsize=7, loc=legend)


class Point(NamedTuple):
    """What came of a codebook, with its 95 % interval."""

    codebook: str
    rounding: str
    epsilon_bits: float | None
    value: float
    low: float
    high: float


class Panel(NamedTuple):
    """One panel: points, and the two levels between which they should lie."""

    title: str
    points: Sequence[Point]
    unprotected: float
    blind: float


SERIES = (
    ("uniform", "nearest"),
    ("fitted", "nearest"),
    ("blind band", "nearest"),
    ("fitted", "feedback"),
    ("uniform", "feedback"),
)
"""Codebooks and roundings in the order of their styles."""


def against_bits(rows: Sequence[Sequence[Panel]], title: str, label: str, blind: str) -> Figure:
    """Draw panels in rows, of curves against bits per release; all share the upright axis, and one legend.

    Args:
        rows: the panels.
        title: the data and their parameters.
        label: of the upright axis.
        blind: what a blind guess does, for the legend.

    """
    columns = max(map(len, rows))
    figure, grid = panels(f"{title}\nbars: 95 %", columns, len(rows), 3.3, alike=True)
    for place, axes in enumerate(grid):
        row, column = divmod(place, columns)
        if column < len(rows[row]):
            _against_bits(axes, rows[row][column], blind)
            labelled(axes, BITS, label if column == 0 else "", None)
        else:
            axes.set_axis_off()
    figure.legend(*grid[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    return figure


def _against_bits(axes: Axes, panel: Panel, blind: str) -> None:
    for number, key in enumerate(SERIES):
        points = [point for point in panel.points if point[:2] == key]
        if points:
            x = [float(point.epsilon_bits or 0) for point in points]
            ends = [point.low for point in points], [point.high for point in points]
            draw(axes, number, x, [point.value for point in points], ", ".join(key), ends=ends)
    axes.axhline(panel.unprotected, linestyle="-.", color="dimgray", linewidth=1, label="unprotected")
    axes.axhline(panel.blind, linestyle=(0, (1, 1)), color="dimgray", linewidth=1.5, label=blind)
    axes.set_ylim(-0.1, 1.05)
    axes.set_title(panel.title, fontsize=9)
