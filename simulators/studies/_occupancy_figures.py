"""The figures of the study of occupancy, drawn from its tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from simulators.studies._hypotheses import BodyMass
from simulators.studies._occupancy_rows import ACTIVITY, Exact, Score
from simulators.studies._panels import BITS, STYLES, Panel, Point, draw_panels

_DATA = "half hours, range 0 to 14 kW, blind from 0 to 1 kW"


def draw_adversaries(scores: Sequence[Score]) -> Figure:
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
    return draw_panels(rows, f"Is anyone home? Releases of {_DATA}", "advantage", "blind guess")


def _panel(scores: Sequence[Score]) -> Panel:
    return Panel(
        f"{scores[0].data}\n{scores[0].adversary}",
        [Point(score.codebook, score.rounding, score.epsilon_bits, *score[-3:]) for score in scores],
        scores[0].advantage,
        0.0,
    )


def draw_decided(exact: Sequence[Exact]) -> Figure:
    """Draw what consistent tests decide, in outputs and in half hours, and the accuracy that it costs."""
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    panels = (
        ("performance_bits", "P(T), bits"),
        ("decided_share", "share of lived-in half hours proved"),
        ("rmse_w", "error of a release, RMS (W)"),
    )
    for axes, (column, label) in zip(figure.subplots(1, len(panels)), panels, strict=True):
        for kind in dict.fromkeys(row.codebook for row in exact):
            marker, line, colour = STYLES[kind, "nearest"]
            points = [(row.epsilon_bits, getattr(row, column)) for row in exact if row.codebook == kind]
            # Minus infinity, where no output decides, has no place on an axis.
            x, y = zip(*(point for point in points if np.isfinite(point[1])), strict=True)
            axes.plot(
                x, y, marker=marker, linestyle=line, color=colour, markersize=4, linewidth=1, label=kind
            )
        axes.set_ylabel(label)
        axes.set_xlabel(BITS, fontsize=8)
        axes.grid(visible=True, alpha=0.3)
    figure.axes[0].axline((0, 0), slope=1, color="dimgray", linestyle="-.", linewidth=1, label="P(T) = ε")
    figure.axes[0].legend(fontsize=8)
    figure.axes[2].set_yscale("log")
    figure.suptitle(f"Presence by consistent tests, nearest; simulated homes, {_DATA}", fontsize=10)
    return figure


def draw_body_mass(rows: Sequence[BodyMass]) -> Figure:
    """Draw the undecidable share of [HT]'s example against the band, of the range and of people."""
    figure = Figure(figsize=(5.4, 3.8), layout="constrained")
    axes = figure.subplots()
    axes.plot(
        [row.band_kg for row in rows],
        [row.undecidable_range for row in rows],
        "o-",
        color="black",
        label="of the range, exact",
    )
    people = [(row.band_kg, row.undecidable_people) for row in rows if row.undecidable_people is not None]
    if people:
        axes.plot(*zip(*people, strict=True), "s--", color="tab:blue", label="of people surveyed")
    axes.set_xlabel("band 1/ρ (kg)")
    axes.set_ylabel("undecidable share")
    axes.set_ylim(bottom=0)
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize=8)
    figure.suptitle("Body-mass index above 30 from a weight released by Theorem 3", fontsize=10)
    return figure
