"""Tables for people, all in one style."""

from __future__ import annotations

from collections.abc import Callable

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.table import Table

_TEXTS = frozenset({"class", "codebook", "group", "holds", "query", "rounding", "topic"})


def table(title: str, *headings: str) -> Table:
    """Return an empty table; numbers stand to the right."""
    drawn = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for heading in headings:
        drawn.add_column(heading, justify="left" if heading in _TEXTS else "right")
    return drawn


def cell(value: object) -> str:
    """Return a value as a table shows it."""
    if isinstance(value, list):
        return " to ".join(map(cell, value))
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if value is None:
        return "no limit"
    return escape(f"{value:,.8g}" if isinstance(value, float) else str(value))


def progress_bar(console: Console) -> Callable[[int, int], None]:
    """Return a report of (done, all) that draws a bar on a terminal and is silent elsewhere."""
    bar = Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    task = bar.add_task("")

    def report(done: int, total: int) -> None:
        bar.update(task, completed=done, total=total)
        bar.start() if done < total else bar.stop()

    return report
