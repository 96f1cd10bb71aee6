"""The figures of the study of occupancy, drawn from its tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from simulators.studies._charts import BITS, SERIES, Panel, Point, against_bits, draw, labelled, panels
from simulators.studies._occupancy_rows import ACTIVITY, Exact, Score

_DECIDED = (
    ("performance_bits", "P(T), bits"),
    ("decided_share", "share of lived-in half hours proved"),
    ("rmse_w", "error of a release, RMS (W)"),
)


def draw_adversaries(scores: Sequence[Score], source: str) -> Figure:
    """Draw a panel for each data set and adversary: its advantage against bits per release."""
    pairs = list(dict.fromkeys(score[:2] for score in scores))
    rows = [
        [
            _panel([score for score in scores if score[:2] == pair])
            for pair in pairs
            if (pair[1] == ACTIVITY) == real
        ]
        for real in (False, True)
    ]
    return against_bits(rows, f"Is anyone home?\n{source}", "advantage", "blind guess")


def _panel(scores: Sequence[Score]) -> Panel:
    return Panel(
        f"{scores[0].data}\n{scores[0].adversary}",
        [Point(score.codebook, score.rounding, score.epsilon_bits, *score[-3:]) for score in scores],
        scores[0].advantage,
        0.0,
    )


def draw_decided(exact: Sequence[Exact], source: str) -> Figure:
    """Draw what consistent tests decide, in outputs and in half hours, and the accuracy that it costs."""
    figure, grid = panels(
        f"Presence by consistent tests, rounded to nearest\n{source}", len(_DECIDED), 1, 3.6
    )
    for axes, (column, label) in zip(grid, _DECIDED, strict=True):
        for number, (kind, _) in enumerate(SERIES[:3]):
            points = [
                (row.epsilon_bits, float(getattr(row, column))) for row in exact if row.codebook == kind
            ]
            # Minus infinity, where no output decides, has no place on an axis.
            x, y = zip(*(point for point in points if np.isfinite(point[1])), strict=True)
            draw(axes, number, x, y, kind)
        labelled(axes, BITS, label, None)
    grid[0].axline((0, 0), slope=1, color="dimgray", linestyle="-.", linewidth=1, label="P(T) = ε")
    grid[0].legend(fontsize=7)
    grid[2].set_yscale("log")
    return figure
