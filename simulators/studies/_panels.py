"""Panels of curves against bits per release, told apart by marker and line where there is no colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

STYLES = {
    ("uniform", "nearest"): ("o", "-", "black"),
    ("fitted", "nearest"): ("s", "-", "tab:blue"),
    ("blind band", "nearest"): ("^", ":", "tab:red"),
    ("uniform", "feedback"): ("v", "--", "tab:orange"),
    ("fitted", "feedback"): ("D", "--", "tab:green"),
}
"""Marker, line and colour of each codebook and rounding."""
BITS = "ε, bits per release"


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


def draw_panels(rows: Sequence[Sequence[Panel]], title: str, label: str, blind: str) -> Figure:
    """Draw panels in rows; all share their axes.

    Args:
        rows: the panels.
        title: the data and their parameters.
        label: of the upright axis.
        blind: what a blind guess does, for the legend.

    """
    columns = max(map(len, rows))
    figure = Figure(figsize=(3.1 * columns + 0.6, 2.9 * len(rows) + 1.0), layout="constrained")
    grid = figure.subplots(len(rows), columns, squeeze=False, sharex=True, sharey=True)
    for axes, panels in zip(grid, rows, strict=True):
        for place, one in enumerate(axes):
            if place < len(panels):
                _draw(one, panels[place], blind)
            else:
                one.set_axis_off()
        axes[0].set_ylabel(label)
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
    figure.suptitle(title, fontsize=10, wrap=True)
    return figure


def _draw(axes: Axes, panel: Panel, blind: str) -> None:
    for key, (marker, line, colour) in STYLES.items():
        points = [point for point in panel.points if point[:2] == key]
        if not points:
            continue
        value, low, high = (np.array([point[place] for point in points]) for place in (3, 4, 5))
        axes.errorbar(
            np.array([point.epsilon_bits for point in points], np.float64),
            value,
            yerr=np.maximum((value - low, high - value), 0),
            marker=marker,
            linestyle=line,
            color=colour,
            markersize=4,
            linewidth=1,
            elinewidth=0.5,
            label=", ".join(key),
        )
    axes.axhline(panel.unprotected, linestyle="-.", color="dimgray", linewidth=1, label="unprotected")
    axes.axhline(panel.blind, linestyle=(0, (1, 1)), color="dimgray", linewidth=1.5, label=blind)
    axes.set_ylim(-0.1, 1.05)
    axes.set_xlabel(BITS, fontsize=8)
    axes.set_title(panel.title, fontsize=9)
    axes.grid(visible=True, alpha=0.3)
