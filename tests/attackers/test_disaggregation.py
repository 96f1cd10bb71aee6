"""The attackers on appliances do what they say, against exhaustive search and definitions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulators.attackers.disaggregation import (
    CombinatorialOptimisation,
    WindowClassifier,
    always_on_score,
    best_threshold,
    clustered,
    f_score,
    learnt_states,
    windows,
)

homes = st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=3), min_size=1, max_size=4)
booleans = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30)


@given(homes, st.lists(st.integers(-10, 170), min_size=1, max_size=20))
def test_the_guessed_combination_is_that_of_an_exhaustive_search(
    states: list[list[int]], released: list[int]
) -> None:
    attacker = CombinatorialOptimisation({str(n): [float(s) for s in mine] for n, mine in enumerate(states)})
    guessed = np.column_stack(list(attacker.guess(released).values()))
    every = [sum(combination) for combination in product(*states)]
    for value, combination in zip(released, guessed.tolist(), strict=True):
        assert all(power in mine for power, mine in zip(combination, states, strict=True))
        nearest = min(abs(total - value) for total in every)
        # Of two at the same distance, the lower sum.
        assert sum(combination) == min(total for total in every if abs(total - value) == nearest)


def test_of_combinations_with_the_same_sum_the_first_is_taken() -> None:
    attacker = CombinatorialOptimisation({"kettle": [0.0, 2000.0], "oven": [0.0, 2000.0]})
    guess = attacker.guess([2000.0])
    assert (guess["kettle"].item(), guess["oven"].item()) == (0, 2000)


@pytest.mark.parametrize("states", [{}, {"kettle": [0.0], "oven": []}])
def test_no_appliance_and_one_without_states_are_refused(states: dict[str, list[float]]) -> None:
    with pytest.raises(ValueError, match="at least one state"):
        CombinatorialOptimisation(states)


def test_states_are_off_and_the_centres_of_what_was_on() -> None:
    power = np.array([0, 3, 20, 99, 101, 1990, 2010, 0])
    np.testing.assert_allclose(learnt_states(power, 2, seed=1), [0, 100, 2000])
    np.testing.assert_allclose(learnt_states(np.zeros(9), 2, seed=1), [0])
    np.testing.assert_allclose(clustered(np.array([7, 7, 7]), 3, seed=1), [7])


def test_appliances_that_add_up_are_taken_apart_again() -> None:
    rng = np.random.default_rng(5)
    kettle, heater = 2000 * (rng.random(4000) < 0.05), 700 * (rng.random(4000) < 0.3)
    total = (kettle + heater + 100).astype(np.int64)
    appliances = {"kettle": kettle.astype(np.int64), "heater": heater.astype(np.int64)}
    attacker = CombinatorialOptimisation.trained(appliances, total, seed=1)
    assert attacker.score(appliances, total) == 1
    assert set(attacker.on(total)) == {"kettle", "heater"}


def test_one_released_value_leads_to_one_guess() -> None:
    attacker = CombinatorialOptimisation({"kettle": [0.0, 2000.0], "rest": [100.0, 300.0]})
    assert len(np.unique(attacker.guess(np.full(50, 7000.0))["kettle"])) == 1


@given(booleans)
def test_the_f_score_is_the_harmonic_mean_of_precision_and_recall(pairs: list[tuple[bool, bool]]) -> None:
    guessed, on = np.array(pairs).T
    hits = sum(1 for said, truth in pairs if said and truth)
    expected = 0.0
    if hits:
        precision, recall = hits / guessed.sum(), hits / on.sum()
        expected = 2 / (1 / precision + 1 / recall)
    assert f_score(guessed, on) == pytest.approx(expected)


@given(st.lists(st.booleans(), min_size=1, max_size=40))
def test_always_saying_on_is_the_best_guess_that_looks_at_nothing(truth: list[bool]) -> None:
    on = np.array(truth)
    always = always_on_score(float(on.mean()))
    assert f_score(np.ones(len(on), np.bool_), on) == pytest.approx(always)
    assert f_score(np.zeros(len(on), np.bool_), on) <= always


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=25))
def test_the_threshold_is_the_best_of_all_thresholds(rows: list[tuple[int, bool]]) -> None:
    likely, on = np.array([row[0] / 5 for row in rows]), np.array([row[1] for row in rows])
    best = max(f_score(likely >= threshold, on) for threshold in np.unique(likely))
    assert f_score(likely >= best_threshold(likely, on), on) == pytest.approx(best)


def test_windows_hold_the_release_its_neighbours_and_two_means() -> None:
    series = np.random.default_rng(2).integers(0, 9, 200).astype(np.float64)
    features = windows(series)
    for place in (0, 3, 100, 199):
        assert features[place, 0] == series[place]
        near = [series[min(max(place + shift, 0), 199)] for shift in range(-5, 6)]
        assert sorted(features[place, :11]) == sorted(near)
        for column, half in ((-2, 7), (-1, 30)):
            assert features[place, column] == pytest.approx(
                series[max(place - half, 0) : place + half + 1].mean()
            )


def test_the_classifier_learns_what_a_release_and_its_neighbours_show() -> None:
    """On for ten minutes each hour, seen as a step of 500 W over a load that wanders by 300 W."""
    rng = np.random.default_rng(3)
    on = np.arange(6000) % 60 < 10
    released = 500.0 * on + rng.integers(0, 300, 6000)
    known = np.ones(3000, np.bool_)
    classifier = WindowClassifier.trained(released[:3000], on[:3000], known, seed=1)
    assert f_score(classifier.says(released[3000:]), on[3000:]) > 0.95


def test_from_one_value_the_classifier_learns_no_more_than_to_guess_blindly() -> None:
    on = np.random.default_rng(4).random(4000) < 0.2
    same = np.full(4000, 7000.0)
    classifier = WindowClassifier.trained(same, on, np.ones(4000, np.bool_), seed=1)
    assert f_score(classifier.says(same), on) == pytest.approx(always_on_score(on.mean()))


def test_minutes_that_were_not_recorded_teach_nothing() -> None:
    """Where nothing was recorded the labels are the wrong way round."""
    rng = np.random.default_rng(6)
    on, known = rng.random(4000) < 0.3, rng.random(4000) < 0.5
    classifier = WindowClassifier.trained(np.where(on, 900.0, 100.0), np.where(known, on, ~on), known, seed=1)
    assert f_score(classifier.says(np.where(on, 900.0, 100.0)), on) > 0.99


def test_what_was_never_on_is_never_said_to_be_on() -> None:
    never = np.zeros(400, np.bool_)
    classifier = WindowClassifier.trained(np.arange(400.0), never, np.ones(400, np.bool_), seed=1)
    assert not classifier.says(np.arange(400.0)).any()
