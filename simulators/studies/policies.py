"""The most private answer of a given accuracy: its regions, what it tells, and k-anonymity beside it ([DP])."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from math import log2

import numpy as np

from gateway.privacy.information import (
    JointRange,
    fano_best,
    fano_worst,
    leakage,
    maximin_information,
    relative_disarray,
)
from gateway.privacy.policies import (
    UniformPolicy,
    k_anonymous_release,
    leakage_privacy,
    maximin_privacy,
    quality,
    top_cell_radius,
)
from gateway.privacy.regions import MeanOfTwo, WeightedSquares
from simulators.studies._cells import radii
from simulators.studies._charts import values
from simulators.studies._policy_charts import draw_heights, draw_k_anonymity, draw_regions, draw_tradeoff
from simulators.studies.study import Progress, Result, Settings, Study, Table

QUERIES: Mapping[str, MeanOfTwo | WeightedSquares] = {
    "(x1 + x2)/2": MeanOfTwo(Fraction(-2), Fraction(2)),
    "x1² + 2·x2²": WeightedSquares(Fraction(1), Fraction(2), Fraction(2)),
}
"""[DP]'s linear and quadratic query, of two inputs in [−2, 2]."""

GAMMA = Fraction(2)
"""The quality of [DP]'s pictures: answers within 1/2 of the truth."""

HEIGHTS = (Fraction(100), Fraction(250))
"""The range of [DP] Example IV.2 (cm): the mean height of a few people."""

_SOURCE = "none: everything is computed from the definitions, with the queries of [DP] IV"
_RADIUS_CM = 10
_KS = (2, 4, 9)
_RECORDS = 9


def run(settings: Settings, progress: Progress) -> Result:
    """Compute regions, trade-offs, the example of heights, and what k-anonymous tables tell."""
    progress("regions", 0)
    side = 24 if settings.quick else 100
    tables = {"cells": _cells(), "regions": _regions(side), "boundaries": _boundaries(2 * side)}
    progress("trade-off", 0.2)
    tables["tradeoff"] = _tradeoff([Fraction(i, 2 if settings.quick else 8) for i in _gammas(settings)])
    tables["heights"] = _heights()
    progress("k-anonymity", 0.6)
    tables["kanonymity"] = _k_anonymity(64 if settings.quick else 512)
    progress("figures", 1)
    figures = {
        "regions": draw_regions(tables, GAMMA),
        "tradeoff": draw_tradeoff(tables["tradeoff"]),
        "heights": draw_heights(tables["heights"], _RADIUS_CM),
        "kanonymity": draw_k_anonymity(tables["kanonymity"]),
    }
    return Result(_SOURCE, tables, figures, _findings(tables))


STUDY = Study(
    "policies", "What does the most private answer of a given accuracy still tell?", "[DP] IV, V.1", run
)


def _gammas(settings: Settings) -> range:
    return range(1, 9) if settings.quick else range(2, 33)


def _cells() -> Table:
    rows = []
    for name, query in QUERIES.items():
        policy = UniformPolicy.of_quality(query.lower, query.upper, GAMMA)
        areas = policy.joint_range(query).x_measure or ()
        for cell, (output, area) in enumerate(zip(policy.outputs, areas, strict=True)):
            rows.append((name, cell, float(output), float(area), radii(query, policy)[cell]))
    return Table(("query", "cell", "output", "area", "radius"), rows)


def _regions(side: int) -> Table:
    middles = (np.arange(side) + 0.5) / side * 4 - 2
    x1, x2 = (axis.ravel() for axis in np.meshgrid(middles, middles))
    rows: list[tuple[object, ...]] = []
    for name, query in QUERIES.items():
        policy = UniformPolicy.of_quality(query.lower, query.upper, GAMMA)
        found = policy.regions(query, x1, x2)
        rows += [(name, *row) for row in zip(x1.tolist(), x2.tolist(), found.tolist(), strict=True)]
    return Table(("query", "x1", "x2", "cell"), rows)


def _boundaries(points: int) -> Table:
    rows: list[tuple[object, ...]] = []
    for name, query in QUERIES.items():
        policy = UniformPolicy.of_quality(query.lower, query.upper, GAMMA)
        for cut in policy.edges[1:-1]:
            # The ends of an ellipse lie between two points of a grid: without them its arcs would not meet.
            ends = np.array([-1, 1]) * min(2.0, abs(float(cut)) ** 0.5) * (1 - 1e-12)
            x1 = np.sort(np.concatenate((np.linspace(-2, 2, points + 1), ends)))
            for branch, x2 in enumerate(query.boundary(cut, x1)):
                pairs = zip(x1.tolist(), x2.tolist(), strict=True)
                rows += [(name, float(cut), branch, *pair) for pair in pairs]
    return Table(("query", "cut", "branch", "x1", "x2"), rows)


def _tradeoff(gammas: Sequence[Fraction]) -> Table:
    rows = [_told(name, query, gamma) for name, query in QUERIES.items() for gamma in gammas]
    told = ("leakage", "maximin", "privacy_leakage", "privacy_maximin")
    errors = ("radius_worst", "volume_bound_worst", "radius_best", "volume_bound_best")
    return Table(("query", "gamma", "cells", "quality", *told, *errors), rows)


def _told(name: str, query: MeanOfTwo | WeightedSquares, gamma: Fraction) -> tuple[object, ...]:
    policy = UniformPolicy.of_quality(query.lower, query.upper, gamma)
    joint, balls = policy.joint_range(query), radii(query, policy)
    told = (leakage(joint), maximin_information(joint), leakage_privacy(joint), maximin_privacy(joint))
    errors = (max(balls), fano_worst(joint, 2), min(balls), fano_best(joint, 2))
    return (name, float(gamma), policy.cells, quality(policy.worst_error), *told, *errors)


def _heights() -> Table:
    low, high = HEIGHTS
    rows = []
    for hundredths in range(5, 41):
        gamma = Fraction(hundredths, 100)
        cells = UniformPolicy.of_quality(low, high, gamma).cells
        rows += [(float(gamma), cells, n, top_cell_radius(high - low, n, cells)) for n in (1, 2, 3)]
    return Table(("gamma", "cells", "people", "top_cell_radius_cm"), rows)


def _k_anonymity(finest: int) -> Table:
    """Return what a table tells of one record's value, which takes m values while all others are fixed.

    Beside it the optimal policy that answers the value itself, in [0, 1], with four cells.
    """
    rows: list[tuple[object, ...]] = []
    policy = UniformPolicy(Fraction(0), Fraction(1), 4)
    for m in (2**power for power in range(1, finest.bit_length())):
        grid = [Fraction(j, m) for j in range(m)]
        releases: dict[str, list[Hashable]] = {
            f"{k}-anonymous": [_table_with(value, k) for value in grid] for k in _KS
        }
        releases["four cells"] = [policy.cell(value) for value in grid]
        for name, released in releases.items():
            pairs = JointRange.of_map(released)
            joint = JointRange(pairs.possible, (Fraction(1, m),) * m)
            rows.append((name, m, maximin_information(joint), leakage(joint), relative_disarray(joint)))
    return Table(("release", "values", "maximin", "leakage", "disarray"), rows)


def _table_with(value: Fraction, k: int) -> Hashable:
    others = [Fraction(i, _RECORDS - 2) for i in range(_RECORDS - 1)]
    half = _RECORDS // 2
    return k_anonymous_release(range(_RECORDS), [*others[:half], value, *others[half:]], k)


def _findings(tables: Mapping[str, Table]) -> list[str]:
    return [
        *(_about_cells(tables["cells"], name) for name in QUERIES),
        *(_about_tradeoff(tables["tradeoff"], name) for name in QUERIES),
        *(_about_bounds(tables["tradeoff"], name) for name in QUERIES),
        _about_heights(tables["heights"]),
        _about_k_anonymity(tables["kanonymity"]),
    ]


def _about_cells(table: Table, name: str) -> str:
    outputs, areas = (values(table, column, query=name) for column in ("output", "area"))
    most = log2(sum(areas) / min(areas))
    return (
        f"`{name}` with γ = {GAMMA}: {len(outputs)} cells that answer {outputs[0]:g} to {outputs[-1]:g},"
        f" so I* = {log2(len(outputs)):.3f} bits. Areas run from {min(areas):.3f} to {max(areas):.3f} of"
        f" {sum(areas):.0f}, so L0 = {most:.3f} bits."
    )


def _about_tradeoff(table: Table, name: str) -> str:
    def ends(key: str) -> str:
        column = values(table, key, query=name)
        first, last = (f"{column[at]:.2f}" for at in (0, -1))
        return first if first == last else f"{first} to {last}"

    return (
        f"`{name}`, γ from {ends('gamma')}: I* goes from {ends('maximin')} bits, L0 from {ends('leakage')}. The best"
        f" estimate of both inputs is off by {ends('radius_worst')} at the vaguest answer (the largest volume alone"
        f" says {ends('volume_bound_worst')} or more) and by {ends('radius_best')} at the sharpest (the least"
        f" volume: {ends('volume_bound_best')})."
    )


def _about_bounds(table: Table, name: str) -> str:
    """Say whether the balls keep to the bounds by volume, and where a bound rises with γ instead of falling."""
    pairs = (("radius_worst", "volume_bound_worst", "II.1"), ("radius_best", "volume_bound_best", "II.2"))
    gamma = values(table, "gamma", query=name)
    held, courses = 0, []
    for ball, bound, theorem in pairs:
        radius, least = values(table, ball, query=name), values(table, bound, query=name)
        held += sum(r >= b - 1e-9 for r, b in zip(radius, least, strict=True))
        rises = [i for i in range(1, len(least)) if least[i] > least[i - 1] + 1e-9]
        listed = ", ".join(
            f"{least[i - 1]:.3f} at γ = {gamma[i - 1]:g} to {least[i]:.3f} at {gamma[i]:g}" for i in rises
        )
        courses.append(f"{theorem} " + (f"rises from {listed}" if rises else "never rises with γ"))
    return (
        f"`{name}`: no ball is smaller than its volume allows in {held} of {2 * len(gamma)} cases;"
        f" {'; '.join(courses)}."
    )


def _about_heights(table: Table) -> str:
    pair = [values(table, key, people=2) for key in ("gamma", "top_cell_radius_cm")]
    enough = max(gamma for gamma, radius in zip(*pair, strict=True) if radius >= _RADIUS_CM)
    at = dict(
        zip(
            values(table, "people", gamma=enough),
            values(table, "top_cell_radius_cm", gamma=enough),
            strict=True,
        )
    )
    listed = ", ".join(f"{radius:.1f} cm for n = {people:.0f}" for people, radius in at.items())
    return (
        f"Mean height of two people: the top cell's ball keeps a radius of {_RADIUS_CM} cm up to γ = {enough:g},"
        f" and at that γ the radius is {listed}: it depends on n (theory E7)."
    )


def _about_k_anonymity(table: Table) -> str:
    finest = max(values(table, "values"))
    rows = [row for row in table.rows if row[1] == finest]
    told = {str(row[0]): (float(str(row[2])), float(str(row[4]))) for row in rows}
    listed = "; ".join(
        f"{name} I* = {bits:g}, d0 = {disarray:g} bits" for name, (bits, disarray) in told.items()
    )
    anonymous = [row for row in table.rows if "anonymous" in str(row[0])]
    full = sum(row[2] == log2(int(str(row[1]))) for row in anonymous)
    return (
        f"Of one record with {finest:.0f} possible values: {listed}. A k-anonymous table has I* = log m in {full} of"
        f" the {len(anonymous)} cases run, whatever m and k: no bound, so +∞ for a real value (Prop. V.1; d0 = −∞)."
    )
