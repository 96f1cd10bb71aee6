"""Codebooks fitted to a public profile (theory A4): close to the best there is, and always a codebook."""

from __future__ import annotations

import os
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.planning import Option, read_profile
from gateway.planning.options import options
from gateway.privacy import MISSING, Codebook, IntArray, Rounding, both_ends, fitted, uniform

RANGE = (0, 14_500_000)
CARRYING = (Rounding.FEEDBACK, Rounding.DITHER)


def error(codebook: Codebook, values: IntArray) -> float:
    """Mean square error of the nearest level."""
    inside = np.clip(values, codebook.lower, codebook.upper)
    return float(np.mean((inside - codebook.values[codebook.encode(inside)]).astype(float) ** 2))


def skewed(seed: int, size: int, upper: int = RANGE[1]) -> IntArray:
    """Loads as homes have them: mostly small, a few large."""
    return np.clip(np.random.default_rng(seed).lognormal(12.5, 1.0, size), 0, upper).astype(np.int64)


def best(values: IntArray, levels: int) -> float:
    """The least mean square error of any levels: exact dynamic programming over the sorted values."""
    data = np.sort(values).astype(float)
    n = len(data)
    sums, squares = (np.concatenate(([0.0], np.cumsum(data**power))) for power in (1, 2))

    def cost(i: int, j: int) -> float:
        total = sums[j] - sums[i]
        return float(squares[j] - squares[i] - total * total / (j - i)) if j > i else 0.0

    costs = [cost(0, j) for j in range(n + 1)]
    for _ in range(levels - 1):
        costs = [min(costs[i] + cost(i, j) for i in range(j + 1)) for j in range(n + 1)]
    return max(costs[n], 0.0) / n


@pytest.mark.parametrize("levels", [2, 3, 4, 8, 16])
def test_a_fitted_codebook_is_far_better_than_a_uniform_one_on_skewed_loads(levels: int) -> None:
    public, private = skewed(1, 20_000), skewed(2, 20_000)
    made = fitted(public, *RANGE, levels)
    assert made.levels == levels
    assert error(made, private) < error(uniform(*RANGE, levels), private) / 9
    for rounding in CARRYING:
        carried = fitted(public, *RANGE, levels, rounding=rounding)
        assert error(carried, private) <= error(both_ends(*RANGE, levels, rounding), private)


def test_fitting_is_deterministic_and_the_order_of_the_profile_does_not_matter() -> None:
    values = skewed(3, 5_000)
    shuffled = np.random.default_rng(0).permutation(values)
    for rounding in Rounding:
        hashes = {fitted(one, *RANGE, 6, rounding=rounding).hash for one in (values, values.copy(), shuffled)}
        assert len(hashes) == 1


@pytest.mark.parametrize("rounding", CARRYING)
@pytest.mark.parametrize("levels", [2, 3, 5, 16])
def test_both_ends_stay_levels_for_feedback_and_dither(rounding: Rounding, levels: int) -> None:
    made = fitted(skewed(4, 3_000), -2_000, 9_000_000, levels, rounding=rounding)
    assert made.values[[0, -1]].tolist() == [-2_000, 9_000_000]
    assert made.rounding is rounding


@settings(max_examples=150, deadline=None)
@given(st.data(), st.integers(-1_000, 1_000), st.integers(2, 60), st.sampled_from(Rounding))
def test_any_profile_gives_rising_levels_inside_the_range(
    data: st.DataObject, lower: int, width: int, rounding: Rounding
) -> None:
    """All equal, two values, more levels than distinct values, ranges of a few mW, values beyond the range."""
    upper = lower + width
    levels = data.draw(st.integers(1 + (rounding is not Rounding.NEAREST), width))
    distinct = data.draw(st.lists(st.integers(lower - 5, upper + 5), min_size=1, max_size=5))
    values = data.draw(st.lists(st.sampled_from(distinct), min_size=1, max_size=60))
    made = fitted(np.array(values, np.int64), lower, upper, levels, rounding=rounding)
    assert made.levels == levels
    assert np.all(np.diff(made.values) > 0)
    assert lower <= made.values[0] <= made.values[-1] <= upper
    assert 0 <= made.leakage_bits() < 20


@pytest.mark.parametrize("where", ["lower", "upper", "middle"])
def test_a_profile_of_one_value_gets_a_level_there_and_a_leakage_that_can_be_shown(where: str) -> None:
    """As when all loads lie beyond the range, because kWh were meant and Wh written."""
    value = {"lower": -1, "upper": 20_000_000, "middle": 7_000_000}[where]
    made = fitted(np.full(50, value), *RANGE, 4)
    assert error(made, np.array([value])) == 0
    assert made.leakage_bits() > 2


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 1_000), min_size=1, max_size=40), st.integers(2, 5))
def test_the_error_is_never_more_than_that_of_a_uniform_start_but_for_rounding_to_whole_mw(
    values: list[int], levels: int
) -> None:
    profile = np.array(values) * 1_000
    made, start = fitted(profile, 0, 1_000_000, levels), uniform(0, 1_000_000, levels)
    # Levels are rounded to mW, once moved: half a mW each, and none below.
    assert np.sqrt(error(made, profile)) <= np.sqrt(error(start, profile)) + levels
    quantiles = np.unique(np.quantile(profile, (np.arange(levels) + 0.5) / levels))
    nearest = np.min(np.abs(profile[:, None] - quantiles[None, :]), axis=1)
    assert np.sqrt(error(made, profile)) <= np.sqrt(np.mean(nearest**2)) + levels


def test_on_small_samples_the_error_is_within_a_few_percent_of_the_best_there_is() -> None:
    """120 cases of 40 skewed loads and 2 to 4 levels, against exact dynamic programming."""
    ratios = {}
    for seed, levels in product(range(100, 140), (2, 3, 4)):
        values = skewed(seed, 40)
        ratios[seed, levels] = error(fitted(values, *RANGE, levels), values) / best(values, levels)
    assert min(ratios.values()) >= 1 - 1e-9
    off = {case: round(ratio, 3) for case, ratio in ratios.items() if ratio > 1.05}
    assert not off, f"{len(off)} of {len(ratios)}, the worst {max(off.values())} times the least error"


def test_with_both_ends_the_levels_between_them_are_close_to_the_best_too() -> None:
    """Every pair of inner levels on a small range, by enumeration."""
    for seed in range(8):
        values = np.clip(np.random.default_rng(seed).lognormal(2, 0.7, 40), 0, 40).astype(np.int64)
        made = fitted(values, 0, 40, 4, rounding=Rounding.FEEDBACK)
        least = min(
            float(
                np.mean(
                    np.min(np.abs(values[:, None] - np.array([0, *inner, 40])), axis=1).astype(float) ** 2
                )
            )
            for inner in combinations(range(1, 40), 2)
        )
        assert least <= error(made, values) <= 1.1 * least + 0.5


def test_empty_profiles_and_levels_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        fitted(np.zeros(0, np.int64), *RANGE, 4)
    for levels in (0, 12):
        with pytest.raises(ValueError, match="do not fit"):
            fitted(np.array([1]), 0, 10, levels)
    for rounding in CARRYING:
        with pytest.raises(ValueError, match="two levels"):
            fitted(np.array([1]), 0, 10, 1, rounding=rounding)


# --- the claim, on real homes -------------------------------------------------------------------------------

DATA = Path(os.environ.get("NOISELESS_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
HOMES = DATA / "sgsc50" / "sgsc50_2012-07_2013-06_halfhourly_wh.csv.xz"


@pytest.fixture(scope="module")
def measured() -> dict[tuple[str, Rounding], Option]:
    """All kinds of codebooks of 4 levels over 0 to 14 kW: fitted on 25 homes, tried on 25 others."""
    if not HOMES.exists():
        pytest.skip(f"{HOMES} is not here: set NOISELESS_DATA to the folder that holds sgsc50")
    profile = read_profile(HOMES, "Wh", 1_800_000)
    assert profile.power.shape == (17_520, 50)
    found = options(profile, 0, 14_000_000, [4])
    return {(option.kind, option.codebook.rounding): option for option in found}


def test_on_real_homes_fitted_levels_divide_the_error_by_seven(
    measured: dict[tuple[str, Rounding], Option],
) -> None:
    """2 bits per half hour, 0–7,000 Wh, the first half of the homes public, the second half tried."""
    plain, made = (measured[kind, Rounding.NEAREST] for kind in ("uniform", "fitted"))
    assert plain.codebook.levels == made.codebook.levels == 4
    assert plain.rmse_w / made.rmse_w >= 7


def test_on_real_homes_feedback_keeps_four_weeks_of_energy_within_a_thousandth(
    measured: dict[tuple[str, Rounding], Option],
) -> None:
    """Against several times the energy itself with the papers' uniform quantizer."""
    assert (measured["fitted", Rounding.FEEDBACK].bill_percent or 100) <= 0.1
    assert (measured["uniform", Rounding.NEAREST].bill_percent or 0) > 300


def test_the_error_on_real_homes_is_the_best_there_is_to_a_thousandth() -> None:
    """Lloyd's answer against the exact optimum on the public homes' distinct values."""
    if not HOMES.exists():
        pytest.skip(f"{HOMES} is not here: set NOISELESS_DATA to the folder that holds sgsc50")
    fit, _ = read_profile(HOMES, "Wh", 1_800_000).halves()
    known = fit.power[fit.power != MISSING]
    values, counts = np.unique(known // 1_000, return_counts=True)
    weights, sums, squares = (
        np.concatenate(([0.0], np.cumsum(counts * values.astype(float) ** power))) for power in (0, 1, 2)
    )
    costs = None
    for _ in range(4):
        following = np.zeros(len(values) + 1)
        for j in range(1, len(values) + 1):
            i = np.arange(1 if costs is None else j)
            total = sums[j] - sums[i]
            spread = squares[j] - squares[i] - total**2 / (weights[j] - weights[i])
            following[j] = (spread + (0 if costs is None else costs[i])).min()
        costs = following
    assert costs is not None
    optimum = costs[-1] / weights[-1] * 1e6
    assert optimum * (1 - 1e-9) <= error(fitted(known, 0, 14_000_000, 4), known) <= optimum * 1.001
