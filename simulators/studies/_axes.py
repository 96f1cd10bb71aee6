"""Series out of a study's tables, and line styles that stay apart when printed in black and white."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simulators.studies.study import Table

_STYLES = ("o-", "s--", "^:", "D-.", "v-", "x:")
_GREYS = ("0.0", "0.25", "0.4", "0.5", "0.1", "0.35")


def values(table: Table, column: str, **where: object) -> list[float]:
    """Return the numbers of a column, of the rows in which the named other columns are as given."""
    place = table.columns.index(column)
    kept = {table.columns.index(name): wanted for name, wanted in where.items()}
    rows = (row for row in table.rows if all(row[at] == wanted for at, wanted in kept.items()))
    return [float(str(row[place])) for row in rows]


def panels(title: str, columns: int, rows: int = 1, width: float = 4.6) -> tuple[Figure, list[Axes]]:
    """Return a figure of so many panels, row by row, without a display."""
    figure = Figure(figsize=(width * columns, 3.7 * rows + 0.3), layout="constrained")
    figure.suptitle(title, fontsize=9)
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def draw(axes: Axes, number: int, x: Sequence[float], y: Sequence[float], label: str) -> None:
    """Draw a series; its number chooses marker, line style and grey."""
    place, every = number % len(_STYLES), max(1, len(x) // 12)
    style, grey = _STYLES[place], _GREYS[place]
    axes.plot(x, y, style, color=grey, label=label, linewidth=1.2, markersize=4, markevery=every)


def labelled(axes: Axes, x: str, y: str, legend: Literal["best", "lower left"] = "best") -> None:
    """Name both axes, lay a grid, and say, at a place of the legend's, what the lines are."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend(fontsize=7, loc=legend)
