"""A plan as a table, and as a plot by matplotlib (the extra ``studies``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from gateway.planning.options import Option
from gateway.tables import cell, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {"uniform": "tab:gray", "fitted": "tab:blue"}
_MARKS = {"nearest": "o-", "feedback": "s--", "dither": "^:"}


def show_plan(console: Console, report: dict[str, Any], written: Path | None) -> None:
    """Print a plan: every option, the one it would choose, and what that costs in privacy."""
    headings = ("k", "ε", "bits/day", "RMS error W", "worst error W", "bill error %", "leakage bits")
    drawn = table(report["title"], "codebook", "rounding", *headings)
    for row in report["options"]:
        drawn.add_row(*map(cell, row.values()), style="bold green" if row == report["chosen"] else None)
    console.print(drawn)
    if report["chosen"] is not None:
        row = report["chosen"]
        console.print(
            f"chosen: {row['codebook']}, {row['rounding']}, {row['levels']} levels", style="bold green"
        )
    for note in report["notes"]:
        console.print(Text.assemble(("note ", "yellow"), note), soft_wrap=True)
    if written is not None:
        console.print(Text(f'wrote {written}: use it with codebook = "{written.name}"'))


def draw_plan(candidates: Sequence[Option], chosen: Option | None, title: str, path: Path) -> None:
    """Write a plot of error and bill error over bits per release; the format is the file's ending.

    Raises:
        ImportError: matplotlib is not installed.

    """
    import matplotlib as mpl  # noqa: PLC0415 - an extra

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, (errors, bills) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    _draw(errors, candidates, "rmse_w", "error of one release, RMS (W)")
    _draw(bills, candidates, "bill_error_percent", "four weeks' energy, error (%)")
    if chosen is not None:
        row = chosen.row()
        for axes, column in ((errors, "rmse_w"), (bills, "bill_error_percent")):
            if row[column] is not None:
                axes.plot(
                    [row["epsilon"]], [row[column]], "*", color="tab:red", markersize=14, label="chosen"
                )
    errors.legend(fontsize=8)
    figure.suptitle(title, fontsize=10)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _draw(axes: Axes, candidates: Sequence[Option], column: str, label: str) -> None:
    series: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for option in candidates:
        row = option.row()
        if isinstance(row[column], int | float):
            key = (option.kind, option.codebook.rounding.value)
            series.setdefault(key, []).append((float(str(row["epsilon"])), float(str(row[column]))))
    for (kind, rounding), points in series.items():
        style, colour = _MARKS.get(rounding, "x-"), _COLOURS.get(kind, "tab:green")
        axes.plot(*zip(*sorted(points), strict=True), style, color=colour, label=f"{kind}, {rounding}")
    axes.set_yscale("log")
    axes.set_xlabel("ε, bits per release")
    axes.set_ylabel(label)
    axes.grid(visible=True, which="both", alpha=0.3)
