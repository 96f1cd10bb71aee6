"""Boxes, the crowds in them, and who is found: counted against the definitions."""

from __future__ import annotations

from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.privacy import IntArray
from simulators.attackers.trips import (
    Area,
    boxed,
    crowds,
    expected_unique_share,
    guessed_share,
    levels_of_budget,
    most_unique_share,
    outputs,
    unique_share,
)

SMALL = Area(0, 3, 10, 13)
pairs = st.lists(st.tuples(*[st.integers(0, 1)] * 4), min_size=1, max_size=9)


def every_trip(area: Area) -> IntArray:
    return np.array(list(product(*(range(low, high + 1) for low, high in area.ranges))))


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_one_trip_reaches_as_many_pairs_of_boxes_as_four_releases_may(levels: int) -> None:
    reached = np.unique(boxed(every_trip(SMALL), SMALL, levels), axis=0)
    assert len(reached) == outputs(levels) == levels**4


@pytest.mark.parametrize("bits", [0, 1, 3.9, 4, 6.34, 10, 19, 48])
def test_a_budget_buys_the_most_levels_that_four_coordinates_can_pay(bits: float) -> None:
    levels = levels_of_budget(bits)
    assert levels**4 <= 2**bits < (levels + 1) ** 4


def test_trips_that_leave_the_area_are_clamped_to_it() -> None:
    outside = np.array([[-9, 99, 1, 11]])
    assert boxed(outside, SMALL, 3).tolist() == boxed(np.array([[0, 13, 1, 11]]), SMALL, 3).tolist()


def test_a_box_is_as_high_as_its_share_of_the_area() -> None:
    """A minute of latitude is a nautical mile, 1,853 m; at 60° north one of longitude is half of it."""
    height, width = Area(59_500_000, 60_500_000, 0, 1_000_000).box_metres(60)
    assert height == pytest.approx(1_853, abs=1)
    assert width == pytest.approx(1_853 / 2, abs=1)


@given(pairs)
def test_a_crowd_is_everybody_with_the_same_pair(trips: list[tuple[int, ...]]) -> None:
    crowd = crowds(np.array(trips))
    assert crowd.tolist() == [trips.count(trip) for trip in trips]
    assert unique_share(crowd) == pytest.approx(sum(trips.count(trip) == 1 for trip in trips) / len(trips))
    # Who draws one of those that fit is right once for every distinct pair, over all trips.
    assert guessed_share(crowd) == pytest.approx(len(set(trips)) / len(trips))


@settings(max_examples=40, deadline=None)
@given(pairs, st.integers(1, 9))
def test_the_share_in_a_part_is_the_mean_over_all_parts(trips: list[tuple[int, ...]], among: int) -> None:
    among = min(among, len(trips))
    shares = [
        unique_share(crowds(np.array([trips[i] for i in part])))
        for part in combinations(range(len(trips)), among)
    ]
    assert expected_unique_share(crowds(np.array(trips)), among) == pytest.approx(np.mean(shares))


@pytest.mark.parametrize("among", [0, 4])
def test_a_part_has_at_least_one_trip_and_at_most_all(among: int) -> None:
    with pytest.raises(ValueError, match="at least one, at most all"):
        expected_unique_share(np.array([1, 2, 2]), among)


@pytest.mark.parametrize(("boxes", "trips"), list(product(range(1, 5), range(1, 6))))
def test_the_most_unique_trips_are_reached_and_never_exceeded(boxes: int, trips: int) -> None:
    every = [crowds(np.array(placed)[:, None]) for placed in product(range(boxes), repeat=trips)]
    assert most_unique_share(boxes, trips) == max(unique_share(crowd) for crowd in every)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 1_000)] * 4), min_size=2, max_size=40))
def test_twice_the_levels_never_hide_a_trip_that_was_unique(trips: list[tuple[int, ...]]) -> None:
    """Boxes of twice the levels lie inside the others, so crowds only shrink."""
    area = Area(0, 1_000, 0, 1_000)
    crowd = [crowds(boxed(np.array(trips), area, 2**power)) for power in range(9)]
    assert all((finer <= coarser).all() for coarser, finer in pairwise(crowd))
