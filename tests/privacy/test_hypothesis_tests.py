"""No test of a private yes-or-no question is right more often than a consistent one; shares are exact."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import inf, isclose, log, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.privacy.hypothesis_tests import (
    blinded,
    consistent_test,
    outputs_by_hypothesis,
    performance_bits,
    performance_nats,
    privacy_nats,
    right_outputs,
    undecidable_share,
    undecidable_share_under_square,
    undecided_bits,
)
from gateway.privacy.intervals import Interval, closed

games = st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=14)
BMI, WEIGHT, HEIGHT = Fraction(3, 1000), Fraction(200), Fraction(250)


@settings(max_examples=60, deadline=None)
@given(games)
def test_consistent_tests_are_the_best_there_are(inputs: list[tuple[bool, int]]) -> None:
    """Against every test there is: right at y when all inputs that lead to y have the hypothesis it says."""
    given_p0, given_p1 = outputs_by_hypothesis(inputs)
    outputs = sorted(given_p0 | given_p1)

    def right(says: dict[int, bool]) -> int:
        return sum(all(holds == says[y] for holds, other in inputs if other == y) for y in outputs)

    every = [dict(zip(outputs, says, strict=True)) for says in product((False, True), repeat=len(outputs))]
    best = max(right(says) for says in every)
    chosen = right_outputs(consistent_test(given_p0, given_p1), given_p0, given_p1)
    assert len(chosen) == best
    assert chosen == given_p0 ^ given_p1
    assert performance_bits(given_p0, given_p1) == (log2(best) if best else -inf)
    assert undecided_bits(given_p0, given_p1) == (log2(len(outputs)) - log2(best) if best else inf)


@settings(deadline=None)
@given(games)
def test_a_test_is_right_only_where_nothing_contradicts_it(inputs: list[tuple[bool, int]]) -> None:
    given_p0, given_p1 = outputs_by_hypothesis(inputs)
    always_p1 = dict.fromkeys(given_p0 | given_p1, True)
    assert right_outputs(always_p1, given_p0, given_p1) == given_p1 - given_p0


@pytest.mark.parametrize(("error", "golden"), [(10, log(150) - log(170)), (20, log(150) - log(190))])
def test_golden_heights_with_an_error(error: int, golden: float) -> None:
    """Heights 100..250 with an error of ±10 or ±20, H: above 150: −0.1252 and −0.2364 ([HT])."""
    given_p0 = [closed(100 - error, 150 + error)]
    given_p1 = [Interval(Fraction(150 - error), Fraction(250 + error), closed_low=False, closed_high=True)]
    everything = log(150 + 2 * error)
    assert isclose(performance_nats(given_p0, given_p1) - everything, golden)
    assert isclose(privacy_nats(given_p0, given_p1), -golden)
    assert round(golden, 4) == {10: -0.1252, 20: -0.2364}[error]


def test_where_nothing_is_decided_the_performance_is_minus_infinity() -> None:
    same = [closed(0, 1)]
    assert performance_nats(same, same) == -inf
    assert privacy_nats(same, same) == inf


def test_identical_outputs_hide_everything_and_distinct_ones_nothing() -> None:
    assert undecided_bits({1, 2}, {1, 2}) == inf
    assert undecided_bits({1}, {2}) == 0
    assert undecided_bits({1, 2, 3}, {3, 4}) == log2(4) - log2(3)


# --- Theorem 3's policy ----------------------------------------------------------------------------------


def test_the_policy_reports_the_threshold_within_the_band_and_is_accurate_to_it() -> None:
    values, thresholds = np.linspace(0, 100, 401), np.linspace(20, 60, 401)
    released = blinded(values, thresholds, 5)
    near = np.abs(values - thresholds) <= 5
    assert near.any()
    assert not near.all()
    assert np.array_equal(released[near], thresholds[near])
    assert np.array_equal(released[~near], values[~near])
    assert np.abs(released - values).max() <= 5


@settings(max_examples=150, deadline=None)
@given(st.integers(-3, 15), st.integers(0, 8), st.integers(1, 12))
def test_the_undecidable_share_is_counted(threshold: int, band: int, upper: int) -> None:
    """On a grid of [0, upper]: the share of values whose release may come from the other hypothesis."""
    grid = [Fraction(i, 40) for i in range(40 * upper + 1)]
    released = [Fraction(threshold) if abs(x - threshold) <= band else x for x in grid]
    given_p0, given_p1 = outputs_by_hypothesis(
        (x >= threshold, y) for x, y in zip(grid, released, strict=True)
    )
    undecided = sum(y in given_p0 & given_p1 for y in released)
    share = undecidable_share(Fraction(0), Fraction(upper), Fraction(threshold), Fraction(band))
    assert abs(Fraction(undecided, len(grid)) - share) <= Fraction(2, len(grid))


def summed_share(
    band: Fraction, height: Fraction = HEIGHT, weight: Fraction = WEIGHT, strips: int = 2_000
) -> float:
    """The share by strips of equal height, each strip with the one-dimensional rule, at its middle."""
    middles = [height * (2 * i + 1) / (2 * strips) for i in range(strips)]
    shares = [undecidable_share(Fraction(0), weight, BMI * x2**2, band) for x2 in middles]
    return float(sum(shares) / strips)


@pytest.mark.parametrize(
    ("band", "exact"),
    [
        # 2·band·250 less ∫₀ᵗ (band − g), t = √(band/BMI): 10, 20 and 100
        (Fraction(3, 10), Fraction(150 - 2, 50_000)),
        (Fraction(12, 10), Fraction(600 - 16, 50_000)),
        (Fraction(0), Fraction(0)),
    ],
)
def test_the_body_mass_example_is_a_fraction_where_its_roots_are(band: Fraction, exact: Fraction) -> None:
    share = undecidable_share_under_square(BMI, WEIGHT, HEIGHT, band)
    assert share == exact
    assert isinstance(share, Fraction)


@pytest.mark.parametrize(
    "band", [Fraction(1), Fraction(5), Fraction(10), Fraction(20), Fraction(150), Fraction(400)]
)
def test_the_body_mass_example_agrees_with_strips(band: Fraction) -> None:
    """Bands that are clipped at weight 0, at 200 kg, at both, and that cover everything."""
    share = float(undecidable_share_under_square(BMI, WEIGHT, HEIGHT, band))
    assert isclose(share, summed_share(band), rel_tol=1e-5)


def test_heights_whose_threshold_no_weight_reaches_hide_nothing() -> None:
    """Up to 400 cm the threshold runs to 480 kg: beyond 200 kg everybody is below it."""
    share = float(undecidable_share_under_square(BMI, WEIGHT, Fraction(400), Fraction(30)))
    assert isclose(share, summed_share(Fraction(30), Fraction(400)), rel_tol=1e-3)
    wide = float(undecidable_share_under_square(BMI, WEIGHT, Fraction(800), Fraction(30)))
    assert isclose(wide, share / 2)


@pytest.mark.parametrize(
    "call",
    [
        lambda: undecidable_share(Fraction(1), Fraction(1), Fraction(0), Fraction(0)),
        lambda: undecidable_share(Fraction(0), Fraction(1), Fraction(0), Fraction(-1)),
        lambda: undecidable_share_under_square(BMI, WEIGHT, Fraction(0), Fraction(1)),
        lambda: undecidable_share_under_square(BMI, WEIGHT, HEIGHT, Fraction(-1)),
    ],
)
def test_what_makes_no_sense_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="band"):
        call()
