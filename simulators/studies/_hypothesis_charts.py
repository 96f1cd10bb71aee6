"""The pictures of :mod:`simulators.studies.hypothesis`, from its tables alone."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simulators.studies._charts import draw, labelled, panels, values
from simulators.studies.study import Table

_HATCHES = ("", "////", "....")
_FILLS = ("0.85", "0.6", "1.0")


def draw_performance(table: Table) -> Figure:
    """Draw the exact performance of the best tests over the reading error, with the paper's numbers."""
    figure, (axes,) = panels(
        "[HT] III: taller than 150 cm? Heights 100 to 250 cm, read with an error; exact arithmetic, no recorded data",
        1,
    )
    draw(axes, 0, values(table, "error_cm"), values(table, "difference"), "P(T) − h0(Y), exact")
    reported = [row for row in table.rows if row[4] != ""]
    x, y = ([float(str(row[at])) for row in reported] for at in (0, 4))
    axes.plot(x, y, "s", color="0.3", fillstyle="none", markersize=10, label="as the paper reports")
    labelled(axes, "largest error, ± cm", "nats")
    return figure


def draw_shares(table: Table) -> Figure:
    """Draw ε against ρ."""
    figure, (axes,) = panels(
        "[HT] IV: is a body-mass index above 30? All weights to 200 kg and heights to 250 cm, no recorded data",
        1,
    )
    rho = values(table, "rho")
    draw(axes, 0, rho, values(table, "share"), "ε: share of inputs left undecided, exact")
    axes.plot(rho, values(table, "counted"), "x", color="0.3", markersize=9, label="counted, evenly drawn")
    draw(axes, 1, rho, values(table, "share_at_170_cm"), "at a known height of 170 cm")
    axes.set_xscale("log")
    axes.set_yscale("log")
    labelled(axes, "ρ, 1/kg: released weights are within 1/ρ", "share of inputs")
    return figure


def draw_histograms(tables: Mapping[str, Table], about: str) -> Figure:
    """Draw weights and body-mass indices as answered and as released."""
    figure, axes = panels(f"Body-mass index of 30, before and after the release\n{about}", 2, width=5.2)
    _bars(axes[0], tables["weights"])
    labelled(axes[0], "weight, kg", "share of people")
    _bars(axes[1], tables["indices"])
    labelled(axes[1], "body-mass index, kg/m²", "share of people")
    return figure


def _bars(axes: Axes, table: Table) -> None:
    names = table.columns[2:]
    for number, name in enumerate(names):
        lows, highs = values(table, "from"), values(table, "to")
        width = (highs[0] - lows[0]) / len(names)
        left, share = [low + number * width for low in lows], values(table, name)
        label = name.replace("_", " ").replace("released", "released, 1/ρ =")
        fill, hatch = _FILLS[number], _HATCHES[number]
        axes.bar(left, share, width, 0, align="edge", ec="0", lw=0.4, fc=fill, hatch=hatch, label=label)


def draw_shifts(table: Table, about: str) -> Figure:
    """Draw how many are hidden, and how far mean and histograms move, over the band."""
    title = f"Body-mass index of 30: what the release changes, over its band 1/ρ\n{about}"
    figure, (left, right) = panels(title, 2, width=5.2)
    band = values(table, "band_kg")
    shares = {
        "hidden": "released as the threshold",
        "density_shift_weight": "density shift, weights in bins of 5 kg",
        "density_shift_index": "density shift, indices in bins of 1",
    }
    for number, (key, label) in enumerate(shares.items()):
        draw(left, number, band, values(table, key), label)
    labelled(left, "1/ρ, kg", "share of people")
    draw(right, 0, band, values(table, "mean_shift"), "mean weight released − answered")
    labelled(right, "1/ρ, kg", "kg")
    return figure
