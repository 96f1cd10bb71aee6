"""The study of disaggregation, in its quick form on simulated homes: the shape that must hold."""

from __future__ import annotations

from itertools import pairwise

import pytest
from quick_studies import quick_run

from simulators.studies import Result
from simulators.studies._disaggregation_rows import CLASSIFIER, MEAN, OPTIMISATION, Chance, Score, Trial


@pytest.fixture(scope="module")
def result() -> Result:
    return quick_run("disaggregation").result


@pytest.fixture(scope="module")
def scores(result: Result) -> list[Score]:
    return [Score(*row) for row in result.tables["scores"].rows]  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def trials(result: Result) -> list[Trial]:
    return [Trial(*row) for row in result.tables["cuts"].rows]  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def blind(result: Result) -> dict[tuple[str, str], float]:
    chances = [Chance(*row) for row in result.tables["chance"].rows]  # type: ignore[arg-type]
    return {(chance.home, chance.appliance): chance.always_on_f for chance in chances}


def test_one_level_leaves_blind_guesses(scores: list[Score], blind: dict[tuple[str, str], float]) -> None:
    """Always on or always off is all that can be made of one value."""
    at_zero = [score for score in scores if score.levels == 1 and score.appliance != MEAN]
    assert {score.attacker for score in at_zero} == {OPTIMISATION, CLASSIFIER}
    for score in at_zero:
        always = blind[score.home, score.appliance]
        assert score.f_score <= always + 1e-9
        assert score.least == 0 or score.f_score == pytest.approx(always), (
            "never at some cut, or always on at all"
        )


def test_the_classifier_sees_no_less_with_more_levels_within_its_error(scores: list[Score]) -> None:
    curves: dict[tuple[str, str, str], list[Score]] = {}
    for score in scores:
        if (score.appliance, score.attacker) == (MEAN, CLASSIFIER) and score.levels is not None:
            curves.setdefault((score.home, score.codebook, score.rounding), []).append(score)
    assert len(curves) == 4
    for curve in curves.values():
        assert all(later.f_high >= earlier.f_low for earlier, later in pairwise(curve))
        assert curve[-1].f_low > curve[0].f_high, "16 levels show more than the fewest"


def test_many_fitted_levels_are_as_good_as_readings_within_the_error(scores: list[Score]) -> None:
    means = [score for score in scores if (score.appliance, score.attacker) == (MEAN, CLASSIFIER)]
    for raw in (score for score in means if score.levels is None):
        finest = [s for s in means if (s.home, s.codebook, s.levels) == (raw.home, "fitted", 16)]
        assert len(finest) == 2
        assert all(score.f_high >= raw.f_low - 0.05 for score in finest)


def test_unprotected_appliances_are_found_far_more_often_than_blindly(
    scores: list[Score], blind: dict[tuple[str, str], float]
) -> None:
    raw = [score for score in scores if score.levels is None and score.appliance == MEAN]
    assert len(raw) == 2
    assert all(score.f_low > 2 * blind[score.home, MEAN] for score in raw)


def test_intervals_hold_their_scores(scores: list[Score]) -> None:
    assert all(0 <= score.f_low <= score.f_high <= 1 for score in scores)
    assert all(score.f_low - 0.1 <= score.f_score <= score.f_high + 0.1 for score in scores)


def test_findings_say_the_numbers_of_the_tables(result: Result, scores: list[Score]) -> None:
    text = "\n".join(result.findings)
    for score in scores:
        if score.levels is None and score.appliance == MEAN:
            expected = f"{score.home}, {score.attacker}: mean F-score {score.f_score:.2f} ({score.f_low:.2f}"
            assert expected in text


def test_a_score_is_the_mean_over_cuts_of_attackers_trained_anew(
    trials: list[Trial], scores: list[Score]
) -> None:
    assert len({trial.first_attacked for trial in trials}) == 2
    for score in scores:
        if score.appliance == MEAN:
            of = (score.home, *score[2:6])
            each = [trial.f_score for trial in trials if trial[:5] == of]
            assert len(each) == score.cuts == 2
            assert sum(each) / 2 == pytest.approx(score.f_score)
            assert (min(each), max(each)) == (score.least, score.most)


def test_a_codebook_is_said_to_beat_readings_only_if_its_whole_interval_does(
    result: Result, scores: list[Score]
) -> None:
    for attacker in (OPTIMISATION, CLASSIFIER):
        mine = [score for score in scores if (score.attacker, score.appliance) == (attacker, MEAN)]
        raw = next(score for score in mine if score.levels is None)
        above = [score for score in mine if score.f_low > raw.f_high]
        expected = f"lies above that of the readings for {len(above)} of {len(mine) - 1} codebooks"
        said = [finding for finding in result.findings if f"{attacker}: the interval" in finding]
        assert [expected in finding for finding in said] == [True]
