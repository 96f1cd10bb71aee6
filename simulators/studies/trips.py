"""How many taxi trips are still alone in their pair of boxes, and what more trips would change ([NP] V-C)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import log2, log10
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from gateway.privacy import IntArray
from simulators.attackers.trips import (
    boxed,
    crowds,
    expected_unique_share,
    guessed_share,
    levels_of_budget,
    most_unique_share,
    outputs,
    unique_share,
)
from simulators.studies._charts import draw, labelled, panels, values
from simulators.studies._city import CITY, Source, source_of
from simulators.studies.study import Progress, Result, Settings, Study, Table

PAPER_TRIPS = 1_000_000
"""How many trips the paper had."""

_HALF = 0.5
_FEWEST, _TO_TEN = 20, 4


class Boxes(NamedTuple):
    """What one number of levels does to all trips."""

    levels: int
    bits: float
    crowd: IntArray


def run(settings: Settings, progress: Progress) -> Result:
    """Put all trips into finer and finer boxes, and count.

    Raises:
        OSError: the recorded trips cannot be read.
        ValueError: they are no trips, or too few to see what their number does.

    """
    source = source_of(settings)
    if len(source.trips) < _FEWEST * 100:
        raise ValueError(
            f"{len(source.trips):,} trips: the study needs {_FEWEST * 100:,}, two factors of ten"
        )
    every = []
    kinds = _levels(quick=settings.quick)
    for done, levels in enumerate(kinds):
        progress(f"{levels} levels a coordinate", done / len(kinds))
        crowd = crowds(boxed(source.trips, CITY, levels))
        every.append(Boxes(levels, log2(outputs(levels)), crowd))
    tables = {
        "uniqueness": _uniqueness(every, unique_share(crowds(source.trips))),
        "number": _numbers(every),
    }
    tables["half"] = _half_points(tables["number"])
    progress("figures", 1)
    figures = {
        "uniqueness": _draw_uniqueness(source, tables["uniqueness"], tables["number"]),
        "number": _draw_numbers(source, tables["number"], tables["half"]),
    }
    return Result(source.name, tables, figures, _findings(source, tables))


STUDY = Study(
    "trips", "How many trips stay unique when starts and ends are released in boxes?", "[NP] V-C", run
)


def _levels(*, quick: bool) -> list[int]:
    """Return the levels of each coordinate for budgets of 0 bits and more, each once."""
    budgets = range(0, 49, 4) if quick else [step / 2 for step in range(97)]
    return sorted({levels_of_budget(bits) for bits in budgets})


def _sizes(trips: int) -> list[int]:
    """Return part sizes, four to a factor of ten, down to twenty."""
    steps = int(_TO_TEN * log10(trips / _FEWEST))
    return sorted({round(trips * 10 ** (-step / _TO_TEN)) for step in range(steps + 1)})


def _uniqueness(every: Sequence[Boxes], exact: float) -> Table:
    rows = []
    for levels, bits, crowd in every:
        box = CITY.box_metres(levels)
        measured = (unique_share(crowd), guessed_share(crowd), exact)
        rows.append((levels, bits, *box, *measured, most_unique_share(outputs(levels), len(crowd))))
    columns = ("levels", "epsilon", "box_height_m", "box_width_m")
    return Table((*columns, "unique", "guessed", "unique_unprotected", "unique_at_most"), rows)


def _numbers(every: Sequence[Boxes]) -> Table:
    sizes = _sizes(len(every[0].crowd))
    rows = [
        (levels, bits, among, expected_unique_share(crowd, among))
        for levels, bits, crowd in every
        for among in sizes
    ]
    return Table(("levels", "epsilon", "trips", "unique"), rows)


def _half_points(numbers: Table) -> Table:
    """Return the ε at which half of the trips are unique, measured, and carried on by a straight line.

    The line runs through the last factor of ten. The same rule, applied a factor of ten earlier, predicts
    what is then measured: that says what the line is worth.
    """
    sizes = sorted({int(size) for size in values(numbers, "trips")})
    measured = [(size, half) for size in sizes if (half := _half(numbers, size)) is not None]
    most = sizes[-1]
    if most not in dict(measured):
        raise ValueError("in the finest boxes fewer than half of the trips are unique: too many occur twice")
    foretold = _line(measured, most / 100, most / 10, most)
    ahead = _line(measured, most / 10, most, PAPER_TRIPS)
    rows: list[tuple[object, ...]] = [(size, half, "measured") for size, half in measured]
    rows += [(most, foretold, "predicted from a tenth"), (PAPER_TRIPS, ahead, "extrapolated")]
    return Table(("trips", "epsilon_half", "kind"), rows)


def _half(numbers: Table, size: int) -> float | None:
    bits, unique = (values(numbers, column, trips=size) for column in ("epsilon", "unique"))
    for (low, before), (high, after) in pairwise(zip(bits, unique, strict=True)):
        if before < _HALF <= after:
            return low + (high - low) * (_HALF - before) / (after - before)
    return None


def _line(points: Sequence[tuple[int, float]], low: float, high: float, at: float) -> float:
    near = [(log10(size), half) for size, half in points if low * 0.99 <= size <= high * 1.01]
    slope, offset = np.polyfit([size for size, _ in near], [half for _, half in near], 1)
    return float(slope * log10(at) + offset)


def _draw_uniqueness(source: Source, table: Table, numbers: Table) -> Figure:
    figure, (axes,) = panels(f"Unique trips over ε, for all four coordinates together\n{source.name}", 1)
    sizes, most = sorted({int(size) for size in values(numbers, "trips")}), len(source.trips)
    for number, among in enumerate(sizes[::-_TO_TEN]):
        bits, unique = (values(numbers, column, trips=among) for column in ("epsilon", "unique"))
        draw(axes, number, bits, unique, f"unique among {among:,}")
    bits = values(table, "epsilon")
    bound = values(table, "unique_at_most")
    axes.plot(bits, bound, "-", color="0.7", linewidth=4, zorder=1, label=f"unique at most, of {most:,}")
    draw(axes, 5, bits, values(table, "guessed"), f"right guess among {most:,}")
    labelled(axes, "ε, bits per trip", "share of trips")
    return figure


def _draw_numbers(source: Source, numbers: Table, half: Table) -> Figure:
    figure, (left, right) = panels(
        f"Unique trips over their number\n{source.name}; parts of them, exact mean over all parts", 2
    )
    wanted = [levels for levels in (4, 8, 16, 32, 64) if levels in values(numbers, "levels")]
    for number, levels in enumerate(wanted):
        trips, unique = (values(numbers, column, levels=levels) for column in ("trips", "unique"))
        bits = values(numbers, "epsilon", levels=levels)[0]
        draw(left, number, trips, unique, f"ε = {bits:.0f} bits")
    labelled(left, "number of trips", "share of unique trips")
    for kind, mark in (("measured", "o-"), ("predicted from a tenth", "x"), ("extrapolated", "*")):
        points = [values(half, column, kind=kind) for column in ("trips", "epsilon_half")]
        right.plot(*points, mark, color="0.0", markersize=8, fillstyle="none", label=kind)
    labelled(right, "number of trips", "ε at which half are unique, bits")
    for axes in (left, right):
        axes.set_xscale("log")
    return figure


def _findings(source: Source, tables: Mapping[str, Table]) -> list[str]:
    return [*_about_bits(source, tables["uniqueness"]), *_about_numbers(source, tables["half"])]


def _about_bits(source: Source, table: Table) -> list[str]:
    rows = [dict(zip(table.columns, map(float, map(str, row)), strict=True)) for row in table.rows]
    first, most = rows[0], len(source.trips)
    reached = [next((row for row in rows if row["unique"] >= share), rows[-1]) for share in (0.01, 0.5, 0.99)]
    least = f"At ε = 0 {first['unique']:.0%} of {most:,} trips are unique, and a guess is right once in"
    return [
        f"{least} {1 / first['guessed']:,.0f}; as recorded, {first['unique_unprotected']:.2%} are unique.",
        *(
            f"{row['unique']:.1%} are unique at ε = {row['epsilon']:.1f} bits, in boxes of"
            f" {row['box_height_m']:,.0f} m by {row['box_width_m']:,.0f} m; a guess is right for"
            f" {row['guessed']:.1%}."
            for row in reached
        ),
    ]


def _about_numbers(source: Source, half: Table) -> list[str]:
    sizes, bits = (values(half, column, kind="measured") for column in ("trips", "epsilon_half"))
    foretold = values(half, "epsilon_half", kind="predicted from a tenth")[0]
    ahead = values(half, "epsilon_half", kind="extrapolated")[0]
    most, paper, sure = f"{len(source.trips):,}", f"{PAPER_TRIPS:,}", log2(PAPER_TRIPS / 100)
    return [
        (
            f"Half of the trips are unique at ε = {bits[0]:.1f} bits among {sizes[0]:,.0f}, and at"
            f" {bits[-1]:.1f} bits among {most}: more trips hide each other, so finer boxes are needed to tell"
            " them apart."
        ),
        (
            f"Extrapolation, not a measurement: the line through the last factor of ten reaches {ahead:.1f} bits"
            f" at {paper} trips. The same rule a factor of ten earlier predicts {foretold:.1f} bits for {most},"
            f" where {bits[-1]:.1f} are measured."
        ),
        (
            f"Without any extrapolation: every unique trip needs a pair of boxes of its own, so of {paper} trips"
            f" at most 1% are unique at ε = {sure:.1f} bits, whatever the city."
        ),
        (
            "The promise is about one trip: k⁴ pairs at most. That a trip is not unique is no part of it, and a"
            " second trip of the same person costs ε again."
        ),
    ]
