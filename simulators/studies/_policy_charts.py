"""The pictures of :mod:`simulators.studies.policies`, from its tables alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter, StrMethodFormatter

from simulators.studies._charts import draw, labelled, panels, values
from simulators.studies.study import Table


def draw_regions(tables: Mapping[str, Table], gamma: Fraction) -> Figure:
    """Draw the cells of each query in the plane of its two inputs."""
    figure, axes = panels(
        f"Regions of the optimal policy of two inputs in [−2, 2], γ = {gamma}: answers within 1/{gamma}", 2
    )
    for name, panel in zip(_names(tables["cells"]), axes, strict=True):
        cell = np.array(values(tables["regions"], "cell", query=name))
        side = round(len(cell) ** 0.5)
        shade = (cell % 2).reshape(side, side)
        panel.imshow(shade, cmap="Greys", vmin=0, vmax=4, origin="lower", extent=(-2, 2, -2, 2))
        for cut in dict.fromkeys(values(tables["boundaries"], "cut", query=name)):
            for branch in dict.fromkeys(values(tables["boundaries"], "branch", query=name, cut=cut)):
                at = {"query": name, "cut": cut, "branch": int(branch)}
                x1, x2 = (values(tables["boundaries"], column, **at) for column in ("x1", "x2"))
                panel.plot(x1, x2, "-", color="0.0", linewidth=0.8)
        outputs = values(tables["cells"], "output", query=name)
        panel.set_title(f"{name}: {len(outputs)} cells, {outputs[0]:g} to {outputs[-1]:g}", fontsize=9)
        panel.set_xlabel("x1")
        panel.set_ylabel("x2")
    return figure


def draw_tradeoff(table: Table) -> Figure:
    """Draw what is told, and how closely the inputs are known, over the wanted quality."""
    figure, axes = panels(
        "Optimal policies of two inputs in [−2, 2] over the wanted quality γ = 1/(worst error)", 2, 2
    )
    told = {"leakage": "L0(X;Y), by area", "maximin": "I*(X;Y) = log q"}
    errors = {
        "radius_worst": "largest ball around a cell",
        "volume_bound_worst": "bound by the largest volume (II.1)",
        "radius_best": "smallest ball around a cell",
        "volume_bound_best": "bound by the least volume (II.2)",
    }
    for column, name in enumerate(_names(table)):
        gamma = values(table, "gamma", query=name)
        for panel, shown in ((axes[column], told), (axes[column + 2], errors)):
            for number, (key, label) in enumerate(shown.items()):
                _steps(panel, number, gamma, values(table, key, query=name), label)
        labelled(axes[column], "γ", "bits")
        axes[column + 2].set_ylim(min(values(table, "volume_bound_best", query=name)) / 4, 4)
        labelled(axes[column + 2], "γ", "worst error of the best estimate", "lower left")
        _plain_logarithm(axes[column + 2])
        axes[column].set_title(name, fontsize=9)
    return figure


def draw_heights(table: Table, wanted: float) -> Figure:
    """Draw how closely the top cell pins the heights down, for one to three people."""
    figure, (axes,) = panels("Mean height of n people, 100 to 250 cm: radius of the top cell", 1)
    for number, people in enumerate((1, 2, 3)):
        gamma, radius = (values(table, column, people=people) for column in ("gamma", "top_cell_radius_cm"))
        _steps(axes, number, gamma, radius, f"n = {people}")
    axes.axhline(wanted, color="0.6", linewidth=2, label=f"{wanted:g} cm")
    axes.axvline(22 / 75, color="0.0", linewidth=1, linestyle=(0, (1, 3)), label="γ = 22/75, as printed")
    _plain_logarithm(axes)
    labelled(axes, "γ, 1/cm", "smallest ball around the inputs, cm")
    return figure


def draw_k_anonymity(table: Table) -> Figure:
    """Draw what one record tells over how many values it can have."""
    figure, (axes,) = panels(
        "One of nine records varies, all others fixed (the k-anonymous lines coincide)", 1
    )
    for number, name in enumerate(_names(table)):
        points = [values(table, column, release=name) for column in ("values", "maximin")]
        draw(axes, number, points[0], points[1], name)
    axes.set_xscale("log", base=2)
    axes.set_xticks(sorted(set(values(table, "values"))))
    axes.xaxis.set_major_formatter(ScalarFormatter())
    labelled(axes, "values that the record can have, m", "I*, bits")
    return figure


def _names(table: Table) -> list[str]:
    return list(dict.fromkeys(str(row[0]) for row in table.rows))


def _steps(axes: Axes, number: int, gamma: Sequence[float], y: Sequence[float], label: str) -> None:
    """Draw a function of the number of cells, ⌈γ·width/2⌉: it jumps just after a γ, and is flat up to the next."""
    draw(axes, number, gamma, y, label)
    axes.get_lines()[-1].set_drawstyle("steps-pre")


def _plain_logarithm(axes: Axes) -> None:
    """Make the upright axis logarithmic, with plain numbers on it."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
