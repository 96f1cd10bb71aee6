"""The tests of presence do what they say, against every test there is."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulators.attackers.occupancy import DayTest, SlotTest, advantage, day_features, quiet_days

rows = st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=2, max_size=25).filter(
    lambda listed: len({empty for _, empty in listed}) == 2
)


@given(rows)
def test_no_test_of_one_release_is_better_where_it_was_learnt(listed: list[tuple[int, bool]]) -> None:
    """Against every function from the released values to "empty" or "home"."""
    values, empty = np.array([float(value) for value, _ in listed]), np.array([e for _, e in listed])
    time = np.zeros(len(listed), np.int64)
    seen = sorted(set(values.tolist()))
    best = max(
        advantage(np.array([says[seen.index(value)] for value in values.tolist()]), empty)
        for says in product((False, True), repeat=len(seen))
    )
    assert advantage(SlotTest.learnt(values, time, empty).empty(values, time), empty) == pytest.approx(best)


def test_the_same_release_may_mean_something_else_at_another_time() -> None:
    values, time = np.full(4, 500.0), np.array([0, 0, 1, 1])
    empty = np.array([True, False, True, False])
    values[[0, 3]] = 100
    says = SlotTest.learnt(values, time, empty).empty(np.array([100.0, 100.0]), np.array([0, 1]))
    assert says.tolist() == [True, False]


def test_a_release_never_seen_says_home() -> None:
    test = SlotTest.learnt(np.array([100.0, 900.0]), np.zeros(2, np.int64), np.array([True, False]))
    assert test.empty(np.array([50.0, 100.0, 5000.0]), np.zeros(3, np.int64)).tolist() == [False, True, False]


@given(rows)
def test_the_advantage_is_twice_the_balanced_accuracy_less_one(listed: list[tuple[int, bool]]) -> None:
    said, empty = np.array([value > 1 for value, _ in listed]), np.array([e for _, e in listed])
    by_kind = [np.mean(said[empty]), np.mean(~said[~empty])]
    assert advantage(said, empty) == pytest.approx(2 * np.mean(by_kind) - 1)


@pytest.mark.parametrize("empty", [np.ones(3, np.bool_), np.zeros(3, np.bool_)])
def test_an_advantage_needs_both_kinds(empty: np.typing.NDArray[np.bool_]) -> None:
    with pytest.raises(ValueError, match="others"):
        advantage(empty, empty)


def days_of_homes() -> tuple[np.typing.NDArray[np.float64], np.typing.NDArray[np.bool_]]:
    """40 homes of 30 days; empty ones draw their own base load, others cook in the evening."""
    rng = np.random.default_rng(8)
    empty = rng.random((40, 30)) < 0.1
    days = rng.uniform(80, 250, (40, 1, 1)) + rng.uniform(0, 30, (40, 30, 48))
    days[..., 36:40] += np.where(empty, 0, rng.uniform(200, 2000, (40, 30)))[..., None]
    return days, empty


def test_a_test_of_days_finds_the_empty_ones_of_homes_it_never_saw() -> None:
    days, empty = days_of_homes()
    known = np.ones((20, 30), np.bool_)
    test = DayTest.learnt(days[:20], empty[:20], known, seed=1)
    assert advantage(test.empty(days[20:]).ravel(), empty[20:].ravel()) > 0.9


def test_where_all_days_look_alike_a_test_of_days_gains_nothing() -> None:
    days, empty = days_of_homes()
    same = np.full_like(days, 7000.0)
    test = DayTest.learnt(same[:20], empty[:20], np.ones((20, 30), np.bool_), seed=1)
    assert advantage(test.empty(same[20:]).ravel(), empty[20:].ravel()) == 0


def test_a_test_of_days_is_not_learnt_from_one_kind() -> None:
    days, _ = days_of_homes()
    nobody_away = np.zeros((40, 30), np.bool_)
    with pytest.raises(ValueError, match="empty days"):
        DayTest.learnt(days, nobody_away, ~nobody_away, seed=1)


def test_days_are_described_as_they_are_and_against_the_homes_median() -> None:
    days, _ = days_of_homes()
    features = day_features(days)
    assert features.shape == (40, 30, 14)
    np.testing.assert_allclose(features[3, 4, 0], days[3, 4].mean())
    np.testing.assert_allclose(features[3, 4, 7], days[3, 4].mean() - np.median(days[3].mean(axis=1)))


def test_a_quiet_day_stands_out_without_training_and_none_does_where_all_are_alike() -> None:
    days, empty = days_of_homes()
    assert advantage(quiet_days(days).ravel(), empty.ravel()) > 0.8
    np.testing.assert_array_equal(quiet_days(days)[5], quiet_days(days[5]))
    assert not quiet_days(np.full((30, 48), 7000.0)).any()
