"""Speed: a slot of 100,000 households closes in 50 ms, and twice as many take about twice as long."""

from __future__ import annotations

import time

import numpy as np
import pytest

from gateway.privacy import (
    MISSING,
    Groups,
    Policy,
    Reach,
    Rounding,
    Shelf,
    State,
    both_ends,
    close_slot,
    fitted,
    group_codebook,
    keys_of,
    uniform,
)

UPPER = 14_500_000
GROUP = 100
BOUND_S = 0.050


def policy_of(homes: int, rounding: Rounding, *, fit: bool = False) -> Policy:
    """Households of one codebook in groups of a hundred; groups carry where their members do."""
    if fit:
        book = fitted(np.random.default_rng(0).lognormal(12.5, 1, 5_000).astype(np.int64), 0, UPPER, 4)
    else:
        book = uniform(0, UPPER, 4) if rounding is Rounding.NEAREST else both_ends(0, UPPER, 4, rounding)
    shelf = Shelf([book], np.zeros(homes, np.int64), keys_of("speed", map(str, range(homes))))
    members = list(np.arange(homes).reshape(-1, GROUP))
    reach = Reach.of(np.zeros(GROUP, np.int64), np.full(GROUP, UPPER))
    cells = group_codebook(reach, 8, Rounding.FEEDBACK if rounding is Rounding.FEEDBACK else Rounding.NEAREST)
    return Policy.over(shelf, Groups(members, [cells], None, np.zeros(len(members), np.int64)), window=48)


def closing_s(policy: Policy, repeats: int = 9) -> float:
    """Return the best time of a slot, after two to warm up, with 2 % of the households silent."""
    homes, rng = len(policy.households), np.random.default_rng(1)
    values = rng.lognormal(12.5, 1, homes).astype(np.int64)
    values[rng.random(homes) < 0.02] = MISSING
    state, times = State.initial(policy), []
    for slot in range(repeats + 2):
        began = time.perf_counter()
        state = close_slot(policy, state, slot, values).state
        times.append(time.perf_counter() - began)
    return min(times[2:])


@pytest.mark.parametrize("rounding", Rounding)
def test_a_hundred_thousand_households_close_in_fifty_milliseconds(
    rounding: Rounding, capsys: pytest.CaptureFixture[str]
) -> None:
    took = closing_s(policy_of(100_000, rounding))
    with capsys.disabled():
        print(f"\n100,000 households, groups of {GROUP}, {rounding}: {took * 1e3:.1f} ms")  # noqa: T201
    assert took <= BOUND_S


def test_a_fitted_codebook_costs_no_more_time_than_a_uniform_one() -> None:
    assert closing_s(policy_of(100_000, Rounding.NEAREST, fit=True)) <= BOUND_S


@pytest.mark.parametrize("rounding", Rounding)
def test_the_time_of_a_slot_is_linear_in_households(
    rounding: Rounding, capsys: pytest.CaptureFixture[str]
) -> None:
    """From 50,000 to 400,000 at most twice the time per household: caches are small, nothing else grows."""
    per_home = {homes: closing_s(policy_of(homes, rounding)) / homes for homes in (50_000, 400_000)}
    with capsys.disabled():
        shown = ", ".join(f"{homes:,}: {took * 1e9:.0f} ns" for homes, took in per_home.items())
        print(f"\nper household, {rounding}: {shown}")  # noqa: T201
    assert per_home[400_000] <= 2.5 * per_home[50_000]
