"""What a study is: a run with a seed, whose rows, figures and findings are written side by side."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Progress = Callable[[str, float], None]
"""Told what a study is at, and which share of it is done (0 to 1)."""


@dataclass(frozen=True)
class Settings:
    """How a study runs.

    Attributes:
        data: the folder of recorded data sets; None for the simulated fleet.
        quick: the short form, for a first look and for tests.
        seed: of every random choice.

    """

    data: Path | None
    quick: bool = False
    seed: int = 1


class Table(NamedTuple):
    """Rows as they are written to CSV: every figure is drawn from them, and from nothing else."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[object, ...]]


class Result(NamedTuple):
    """What a run of a study found.

    Attributes:
        source: the data that it ran on, in words.
        tables: by a short name; written as CSV.
        figures: by a short name; written as PNG and SVG.
        findings: sentences with the numbers of this run, Markdown.

    """

    source: str
    tables: Mapping[str, Table]
    figures: Mapping[str, Figure]
    findings: Sequence[str]


class Study(NamedTuple):
    """A study that ``noiseless study`` knows.

    Attributes:
        name: on the command line.
        title: what it asks, in one line.
        paper: where it comes from, as ``[NP] V-A``.
        run: does it.

    """

    name: str
    title: str
    paper: str
    run: Callable[[Settings, Progress], Result]


def write(study: Study, settings: Settings, result: Result, out: Path) -> list[Path]:
    """Write a run's figures, tables and findings below ``out``, and return the files.

    Raises:
        OSError: they cannot be written.

    """
    from matplotlib import rc_context  # noqa: PLC0415 - an extra, and slow to load

    out.mkdir(parents=True, exist_ok=True)
    written = [_write_table(table, out / f"{study.name}-{name}.csv") for name, table in result.tables.items()]
    for name, figure in result.figures.items():
        for suffix in ("png", "svg"):
            path = out / f"{study.name}-{name}.{suffix}"
            # Without a date and with a fixed salt of its ids: the same run writes the same bytes.
            with rc_context({"svg.hashsalt": study.name}):
                figure.savefig(path, dpi=150, metadata={"Date": None} if suffix == "svg" else None)
            written.append(path)
    findings = out / f"{study.name}.md"
    findings.write_text(_text(study, settings, result), encoding="utf-8")
    return [*written, findings]


def _write_table(table: Table, path: Path) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.columns)
        writer.writerows(table.rows)
    return path


def _text(study: Study, settings: Settings, result: Result) -> str:
    form = "Quick form" if settings.quick else "Full form"
    lines = [
        f"# {study.title}",
        "",
        f"{study.paper}. {form}, seed {settings.seed}. Data: {result.source}.",
        "",
    ]
    lines += [f"- {finding}" for finding in result.findings]
    return "\n".join(lines) + "\n"
