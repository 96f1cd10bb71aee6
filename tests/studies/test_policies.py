"""The study of optimal policies: the papers' numbers, and balls around cells against a search."""

from __future__ import annotations

from fractions import Fraction
from math import inf, log2, pi

import numpy as np
import pytest
from quick_studies import quick_run

from gateway.privacy.policies import UniformPolicy, top_cell_radius
from gateway.privacy.regions import MeanOfTwo, WeightedSquares
from simulators.studies import Result
from simulators.studies._cells import radii
from simulators.studies._charts import values

MEAN, SQUARES = "(x1 + x2)/2", "x1² + 2·x2²"
LINEAR = MeanOfTwo(Fraction(-2), Fraction(2))
QUADRATIC = WeightedSquares(Fraction(1), Fraction(2), Fraction(2))


@pytest.fixture(scope="module")
def result() -> Result:
    return quick_run("policies").result


def test_the_linear_query_has_the_papers_four_answers(result: Result) -> None:
    assert values(result.tables["cells"], "output", query=MEAN) == [-1.5, -0.5, 0.5, 1.5]
    assert values(result.tables["cells"], "area", query=MEAN) == [2, 6, 6, 2]


def test_the_quadratic_query_has_the_papers_twelve_answers(result: Result) -> None:
    assert values(result.tables["cells"], "output", query=SQUARES) == [i + 0.5 for i in range(12)]
    assert sum(values(result.tables["cells"], "area", query=SQUARES)) == pytest.approx(16)


@pytest.mark.parametrize(
    ("name", "value"), [(MEAN, lambda a, b: (a + b) / 2), (SQUARES, lambda a, b: a * a + 2 * b * b)]
)
def test_every_point_lies_in_the_cell_of_its_answer(result: Result, name: str, value: object) -> None:
    """An answer is within half of the truth, and boundaries lie where the query has their value."""
    outputs = np.array(values(result.tables["cells"], "output", query=name))
    x1, x2, cell = (
        np.array(values(result.tables["regions"], key, query=name)) for key in ("x1", "x2", "cell")
    )
    assert callable(value)
    assert np.abs(outputs[cell.astype(int)] - value(x1, x2)).max() <= 0.5
    cut, x1, x2 = (
        np.array(values(result.tables["boundaries"], key, query=name)) for key in ("cut", "x1", "x2")
    )
    seen = ~np.isnan(x2)
    assert value(x1, x2)[seen] == pytest.approx(cut[seen])
    assert set(cut[seen]) == set((outputs[:-1] + outputs[1:]) / 2)


@pytest.mark.parametrize("name", [MEAN, SQUARES])
def test_better_answers_tell_more(result: Result, name: str) -> None:
    table = result.tables["tradeoff"]
    for rising in ("cells", "leakage", "maximin"):
        assert values(table, rising, query=name) == sorted(values(table, rising, query=name))
    best = values(table, "radius_best", query=name)
    assert best == sorted(best, reverse=True)


def test_one_cell_tells_nothing_of_either_input(result: Result) -> None:
    told = [
        values(result.tables["tradeoff"], key, query=MEAN, cells=1)
        for key in ("maximin", "leakage", "radius_best")
    ]
    assert [column[0] for column in told] == [0, 0, pytest.approx(2 * 2**0.5)]


def test_the_wanted_quality_is_kept_and_leakage_is_never_below_maximin(result: Result) -> None:
    table = result.tables["tradeoff"]
    columns = ("gamma", "quality", "cells", "maximin", "leakage", "privacy_maximin")
    for gamma, quality, cells, maximin, leakage, privacy in zip(
        *(values(table, key) for key in columns), strict=True
    ):
        assert quality >= gamma
        assert maximin == log2(cells) <= leakage + 1e-9
        assert privacy == (1 / maximin if maximin else inf)


def test_no_ball_is_smaller_than_its_volume_allows(result: Result) -> None:
    table = result.tables["tradeoff"]
    for ball, bound in (("radius_worst", "volume_bound_worst"), ("radius_best", "volume_bound_best")):
        assert (np.array(values(table, ball)) >= np.array(values(table, bound)) - 1e-9).all()


def test_three_bands_bound_the_worst_estimate_less_loosely_than_two(result: Result) -> None:
    """The middle one of three has an area of 80/9, more than half the square, so II.1 rises; the finding says so."""
    table = result.tables["tradeoff"]
    two, three = (values(table, "volume_bound_worst", query=MEAN, cells=cells)[0] for cells in (2, 3))
    assert [two, three] == pytest.approx([(8 / pi) ** 0.5, (80 / 9 / pi) ** 0.5])
    said = [finding for finding in result.findings if "no ball is smaller" in finding]
    assert f"II.1 rises from {two:.3f} at γ = 1 to {three:.3f} at 1.5;" in said[0]
    assert "II.1 never rises with γ" in said[1]


@pytest.mark.parametrize("query", [LINEAR, QUADRATIC])
@pytest.mark.parametrize("cells", [1, 2, 3, 4, 7])
def test_balls_are_the_smallest_that_a_search_finds(query: MeanOfTwo | WeightedSquares, cells: int) -> None:
    """On a grid of inputs and of centres: what is found is as large as the exact radius, up to the grid."""
    policy = UniformPolicy(query.lower, query.upper, cells)
    line = np.linspace(-2, 2, 161)
    x1, x2 = (axis.ravel() for axis in np.meshgrid(line, line))
    answers, centres = (
        query.value(x1, x2),
        np.stack(np.meshgrid(line[::8], line[::8]), axis=-1).reshape(-1, 2),
    )
    for (low, high), radius in zip(
        zip(policy.edges, policy.edges[1:], strict=False), radii(query, policy), strict=True
    ):
        inside = (answers >= float(low) - 1e-9) & (answers <= float(high) + 1e-9)
        points = np.stack([x1[inside], x2[inside]], axis=1)
        farthest = np.sqrt(((points[:, None] - centres[None]) ** 2).sum(axis=2)).max(axis=0)
        # Centres are 0.2 apart, so the best of them lies within 0.15 of the true one; points within 0.02.
        assert radius - 0.05 <= farthest.min() <= radius + 0.15


@pytest.mark.parametrize("cells", [2, 4, 7])
def test_the_top_band_has_the_radius_of_the_papers_example(cells: int) -> None:
    policy = UniformPolicy(LINEAR.lower, LINEAR.upper, cells)
    assert radii(LINEAR, policy)[-1] == pytest.approx(top_cell_radius(Fraction(4), 2, cells))


def test_ten_centimetres_are_kept_up_to_28_hundredths_for_two_people(result: Result) -> None:
    table = result.tables["heights"]
    kept = [row[0] for row in table.rows if row[2] == 2 and float(str(row[3])) >= 10]
    assert max(map(str, kept)) == "0.28"
    radius = [values(table, "top_cell_radius_cm", gamma=0.28, people=people)[0] for people in (2, 3)]
    assert [round(r, 1) for r in radius] == [10.1, 17.5]
    assert values(table, "cells", gamma=0.28, people=2) == [21]


def test_k_anonymity_tells_everything_at_every_resolution(result: Result) -> None:
    table = result.tables["kanonymity"]
    for k in (2, 4, 9):
        m, told, disarray = (
            values(table, key, release=f"{k}-anonymous") for key in ("values", "maximin", "disarray")
        )
        assert told == [log2(values) for values in m]
        assert disarray == [-bits for bits in told]
    assert max(values(table, "maximin", release="four cells")) == 2
    assert "I* = log m in 18 of the 18 cases run" in result.findings[-1]
