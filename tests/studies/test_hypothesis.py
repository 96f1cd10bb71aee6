"""The study of one blurred question: the paper's numbers, exact shares beside counted ones, a survey's limits."""

from __future__ import annotations

import os
from math import log
from pathlib import Path

import numpy as np
import pytest
from quick_studies import quick_run

from simulators.studies import Result, Settings, study_named
from simulators.studies._charts import values
from simulators.studies._respondents import read, respondents_of
from simulators.studies.data import SURVEY, find

RECORDED = Path(os.environ.get("NOISELESS_DATA", Path(__file__).parents[3] / "shared" / "data"))


def run(settings: Settings) -> Result:
    return study_named("hypothesis").run(settings, lambda _what, _share: None)


@pytest.fixture(scope="module")
def result() -> Result:
    return quick_run("hypothesis").result


@pytest.mark.parametrize(("error", "golden"), [(10, -0.1252), (20, -0.2364)])
def test_the_performance_of_the_best_test_is_the_papers(result: Result, error: int, golden: float) -> None:
    table = result.tables["performance"]
    difference = values(table, "difference", error_cm=error)[0]
    assert round(difference, 4) == golden == values(table, "paper", error_cm=error)[0]
    assert difference == pytest.approx(log(150) - log(150 + 2 * error))
    assert values(table, "performance", error_cm=error)[0] == pytest.approx(log(150))


def test_an_exact_reading_decides_everything_and_errors_ever_less(result: Result) -> None:
    differences = values(result.tables["performance"], "difference")
    assert differences[0] == 0
    assert differences == sorted(differences, reverse=True)


@pytest.mark.parametrize(("band", "exact"), [(0.3, 148 / 50_000), (1.2, 584 / 50_000)])
def test_the_undecided_share_has_the_exact_values(result: Result, band: float, exact: float) -> None:
    assert values(result.tables["share"], "share", band_kg=band)[0] == exact


def test_accuracy_costs_privacy_and_counting_agrees(result: Result) -> None:
    table = result.tables["share"]
    rho, share, counted = (values(table, key) for key in ("rho", "share", "counted"))
    assert rho == sorted(rho, reverse=True)
    assert share == sorted(share)
    # 20,000 draws: a share is off by less than four standard deviations.
    deviations = [4 * (one * (1 - one) / 20_000) ** 0.5 for one in share]
    assert (np.abs(np.subtract(share, counted)) <= deviations).all()


def test_nothing_changes_without_a_band_and_never_by_more_than_it(result: Result) -> None:
    table = result.tables["shifts"]
    first = dict(zip(table.columns, table.rows[0], strict=True))
    moved = (
        "band_kg",
        "hidden",
        "mean_shift",
        "density_shift_weight",
        "density_shift_index",
        "largest_change",
    )
    assert [first[key] for key in moved] == [0] * 6
    band, change, shift, hidden = (
        values(table, key) for key in ("band_kg", "largest_change", "mean_shift", "hidden")
    )
    assert all(one <= most + 1e-9 for one, most in zip(change, band, strict=True))
    assert all(abs(one) <= share * most + 1e-9 for one, share, most in zip(shift, hidden, band, strict=True))
    assert hidden == sorted(hidden)


def test_no_more_of_a_histogram_moves_than_people_are_hidden(result: Result) -> None:
    table = result.tables["shifts"]
    for key in ("density_shift_weight", "density_shift_index"):
        assert (np.array(values(table, key)) <= np.array(values(table, "hidden")) + 1e-12).all()


def test_histograms_hold_everybody_and_the_hidden_stand_at_30(result: Result) -> None:
    for name in ("weights", "indices"):
        table = result.tables[name]
        assert [sum(values(table, column)) for column in table.columns[2:]] == pytest.approx([1, 1, 1])
    at_30 = values(result.tables["indices"], "released_15_kg", **{"from": 30})[0]
    assert at_30 >= values(result.tables["shifts"], "hidden", band_kg=15.0)[0]


def test_answers_that_are_missing_or_typed_wrongly_are_left_out_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "survey" / "responses.csv"
    path.parent.mkdir()
    path.write_text('"Height","Weight"\n163,48\n62,55\n180,\nNA,70\n190,95\n')
    people = read(path)
    assert people.heights.tolist() == [163, 190]
    assert people.weights.tolist() == [48, 95]
    assert people.name.startswith("2 of 5 respondents")
    assert "(2 without height or weight and 1 with a height below 100" in people.name
    assert respondents_of(Settings(tmp_path)).name == people.name


@pytest.mark.parametrize(
    ("text", "why"), [("Weight\n1\n", "every row needs"), ("Height,Weight\n62,1\n", "nobody")]
)
def test_a_file_that_is_no_such_survey_is_refused(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "survey.csv").write_text(text)
    with pytest.raises(ValueError, match=why):
        read(tmp_path / "survey.csv")


def test_without_the_survey_respondents_are_simulated_and_named_so(tmp_path: Path) -> None:
    people = respondents_of(Settings(tmp_path, quick=True, seed=4))
    assert people.name == "300 simulated respondents (responses is not in the folder given), seed 4"
    assert 20 < np.median(people.weights / (people.heights / 100) ** 2) < 24


def test_a_band_that_sees_one_hypothesis_hides_nothing_whatever_the_formula_says(result: Result) -> None:
    (row,) = result.tables["one-sided"].rows
    assert row[-2:] == (0.05, 0.0)


@pytest.mark.skipif(find(RECORDED, SURVEY) is None, reason="the survey is not here")
def test_the_survey_loses_31_answers_and_keeps_its_mean() -> None:
    found = run(Settings(RECORDED, quick=True))
    assert found.source.startswith("979 of 1,010 respondents")
    assert abs(values(found.tables["shifts"], "mean_shift", band_kg=5.0)[0]) < 0.1
