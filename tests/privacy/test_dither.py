"""Public dither (theory A5): a fixed quantizer at every moment, exact on average over moments and households."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from privacy.tracing import Roll, Together, book, enumerated, said

from gateway.privacy import (
    MISSING,
    Codebook,
    Groups,
    IntArray,
    Missing,
    Policy,
    Rounding,
    Shelf,
    State,
    both_ends,
    close_slot,
    keys_of,
    microbits,
    on_levels,
    threshold,
)

DITHER = Rounding.DITHER
HALF_HOUR_MS = 1_800_000
MONDAY_MS = 1_767_571_200_000


@st.composite
def level_sets(draw: st.DrawFn) -> Codebook:
    lower, width = draw(st.integers(-50, 50)), draw(st.integers(2, 40))
    inner = draw(st.sets(st.integers(lower + 1, lower + width - 1), max_size=5))
    return on_levels(lower, lower + width, np.array(sorted({lower, lower + width} | inner), np.int64), DITHER)


def policy_of(
    codebook: Codebook, homes: int, missing: Missing = Missing.HOLD, *, same_key: bool = False
) -> Policy:
    keys = keys_of("seed", ["h"] * homes if same_key else map(str, range(homes)))
    return Policy.over(Shelf([codebook], np.zeros(homes, np.int64), keys), Groups([], []), missing=missing)


def released(policy: Policy, values: IntArray, moment: int) -> IntArray:
    return close_slot(policy, State.initial(policy), moment, values).state.held


def _u(keys: list[int], moment: int) -> list[int]:
    """Return the 32 bits of u, by asking for ⌊u·2³²⌋."""
    return [int(u) for u in threshold(np.array(keys, np.uint64), moment, np.full(len(keys), 1 << 32))]


# --- thresholds -----------------------------------------------------------------------------------------


@given(st.integers(0, 2**64 - 1), st.integers(-(2**62), 2**62), st.integers(0, 2**48 - 1))
def test_a_threshold_is_exactly_the_floor_of_u_times_the_gap(key: int, moment: int, gap: int) -> None:
    """In Python's integers, u in steps of 2⁻³², for gaps up to 281 MW."""
    (u,) = _u([key], moment)
    assert 0 <= u < 1 << 32
    assert threshold(np.array([key], np.uint64), moment, np.array([gap])).tolist() == [u * gap >> 32]


def test_u_is_spread_over_the_whole_unit_and_differs_between_households_and_slots() -> None:
    keys = keys_of("seed", (f"h-{i}" for i in range(500)))
    gap = np.full(500, 1 << 32)
    u = np.stack([threshold(keys, MONDAY_MS + slot * HALF_HOUR_MS, gap) for slot in range(200)]) / 2**32
    assert len(np.unique(u)) > 0.9999 * u.size
    standard = 1 / np.sqrt(12 * u.size)
    assert abs(u.mean() - 0.5) < 4 * standard
    assert np.abs(np.histogram(u, 20, (0, 1))[0] / u.size - 0.05).max() < 4 * np.sqrt(0.05 * 0.95 / u.size)
    for along in (u, u.T):
        neighbours = np.corrcoef(along[:-1].ravel(), along[1:].ravel())[0, 1]
        assert abs(neighbours) < 4 / np.sqrt(u.size)
    # Households' and slots' means spread like those of independent numbers, neither more nor less.
    for axis, count in ((0, 200), (1, 500)):
        assert u.mean(axis=axis).std() == pytest.approx(1 / np.sqrt(12 * count), rel=0.2)


def test_thresholds_depend_on_seed_and_name_and_on_nothing_else() -> None:
    one, again, other, renamed = (
        keys_of(seed, [name]).tolist() for seed, name in (("s", "a"), ("s", "a"), ("t", "a"), ("s", "b"))
    )
    assert one == again
    assert len({one[0], other[0], renamed[0]}) == 3
    assert keys_of("s", ["b", "a"]).tolist() == [renamed[0], one[0]], "a roll's order does not matter"


# --- one moment -----------------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(level_sets(), st.integers(0, 2**41))
def test_at_a_fixed_moment_a_household_s_release_is_a_rising_step_function_of_k_cells(
    codebook: Codebook, moment: int
) -> None:
    """Over every integer of the range and beyond: neighbours of the value only, levels stay where they are."""
    xs = np.arange(codebook.lower - 3, codebook.upper + 4)
    values = released(policy_of(codebook, len(xs), same_key=True), xs, moment)
    assert np.all(np.diff(values) >= 0)
    assert set(values.tolist()) <= set(codebook.values.tolist())
    for x, value in zip(np.clip(xs, codebook.lower, codebook.upper).tolist(), values.tolist(), strict=True):
        below = max(level for level in codebook.values.tolist() if level <= x)
        above = min(level for level in codebook.values.tolist() if level >= x)
        assert value in (below, above)


@settings(max_examples=40, deadline=None)
@given(level_sets(), st.integers(0, 2**41))
def test_it_goes_up_exactly_when_it_is_above_the_lower_level_by_more_than_the_threshold(
    codebook: Codebook, moment: int
) -> None:
    key = keys_of("seed", ["h"]).tolist()
    (u,) = _u(key, moment)
    xs = np.arange(codebook.lower, codebook.upper + 1)
    values = released(policy_of(codebook, len(xs), same_key=True), xs, moment).tolist()
    levels = codebook.values.tolist()
    for x, value in zip(xs.tolist(), values, strict=True):
        j = max(i for i, level in enumerate(levels) if level <= x)
        gap = levels[min(j + 1, len(levels) - 1)] - levels[j]
        assert value == levels[j + (x - levels[j] > u * gap >> 32)]


def test_channels_of_other_roundings_and_ranges_beside_dithered_ones_are_not_touched() -> None:
    """All books lie on one line: a dithered channel never looks into its neighbours' levels."""
    books = [book(-5, 9, 3), both_ends(0, 30, 4, DITHER), both_ends(-9, 4, 3, Rounding.FEEDBACK)]
    alone = [
        [
            int(close_slot(one, State.initial(one), moment, np.array([x])).symbols[0])
            for one in (
                Policy.over(Shelf([b], np.zeros(1, np.int64), keys_of("test", [str(i)])), Groups([], [])),
            )
            for moment in range(40)
            for x in range(-10, 32)
        ]
        for i, b in enumerate(books)
    ]
    roll = Roll(tuple(books))
    together = [
        roll.close(roll.start(), moment, [x] * 3).symbols.tolist()
        for moment in range(40)
        for x in range(-10, 32)
    ]
    assert [list(column) for column in zip(*together, strict=True)] == alone


def test_the_symbol_for_silence_is_said_of_silence_only_and_silence_is_never_dithered() -> None:
    roll = Roll((both_ends(0, 20, 3, DITHER),), missing=Missing.SYMBOL)
    for moment in range(50):
        assert roll.close(roll.start(), moment, [MISSING]).symbols.tolist() == [0]
        assert all(roll.close(roll.start(), moment, [x]).symbols[0] > 0 for x in range(-2, 23))


# --- over moments ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [(0, 1_000), (0, 150, 1_000), (0, 150, 151, 700, 1_000)])
def test_means_over_moments_are_exact_on_the_whole_range_ends_included(levels: tuple[int, ...]) -> None:
    """At every 25th value and next to both ends and all levels, within 4 standard errors of itself."""
    codebook = on_levels(0, 1_000, np.array(levels), DITHER)
    xs = np.unique([*range(0, 1_001, 25), *np.clip([a + s for a in levels for s in (-1, 0, 1)], 0, 1_000)])
    policy, moments = policy_of(codebook, len(xs)), 6_000
    state, total = State.initial(policy), np.zeros(len(xs), np.int64)
    for moment in range(moments):
        state = close_slot(policy, state, MONDAY_MS + moment * HALF_HOUR_MS, xs).state
        total += state.held
    below = codebook.values[np.searchsorted(codebook.values, xs, side="right") - 1]
    above = codebook.values[np.searchsorted(codebook.values, xs, side="left")]
    standard = np.sqrt((xs - below) * (above - xs) / moments)
    assert np.all(np.abs(total / moments - xs) <= 4 * standard + 1e-9)
    on_a_level = np.isin(xs, levels)
    assert np.array_equal(total[on_a_level], xs[on_a_level] * moments)


def test_the_share_of_thresholds_that_go_up_is_exact_to_the_last_of_u_s_32_bits() -> None:
    """Counted without enumerating 2³²: ⌊u·gap⌋ < offset  ⇔  u < offset/gap, so ⌈2³²·offset/gap⌉ of them."""
    for gap, offset in ((7, 3), (1_000, 999), (4_833_333, 1), (14_500_000, 7_250_000)):
        least = -(-(offset << 32) // gap)
        assert (least - 1) * gap >> 32 < offset <= least * gap >> 32
        assert abs(least / 2**32 - offset / gap) < 2**-32


def test_errors_of_a_thousand_homes_add_like_the_root_of_their_number() -> None:
    """All at the same power, the worst case for nearest: rms √n·√(p(1−p))·d, not n·error."""
    homes, gap, x = 1_000, 1_000_000, 300_000
    policy = policy_of(both_ends(0, 4 * gap, 5, DITHER), homes)
    values = np.full(homes, x)
    errors = np.array(
        [
            int(released(policy, values, MONDAY_MS + slot * HALF_HOUR_MS).sum()) - homes * x
            for slot in range(400)
        ]
    )
    rms = float(np.sqrt(np.mean(errors.astype(float) ** 2)))
    independent = np.sqrt(homes * 0.3 * 0.7) * gap
    assert rms == pytest.approx(independent, rel=0.15)
    assert rms < homes * x / 15, "nearest would be off by 300 W in every home"
    common = policy_of(both_ends(0, 4 * gap, 5, DITHER), homes, same_key=True)
    shared = [int(released(common, values, slot).sum()) - homes * x for slot in range(50)]
    assert np.sqrt(np.mean(np.square(np.array(shared, float)))) > 20 * independent, "one common shift"


# --- privacy --------------------------------------------------------------------------------------------

ROLLS = {
    "alone": Roll((book(0, 12, 4, DITHER),)),
    "with nearest groups": Roll(
        (book(0, 12, 3, DITHER), book(0, 9, 2)), (Together((0, 1), 4), Together((0,), 3))
    ),
    "weights": Roll(
        (book(-6, 6, 3, DITHER), book(0, 9, 2, DITHER)),
        (Together((0, 1), 3, weights=(-2, 1)), Together((0, 1), 3)),
    ),
    "silence has a symbol": Roll(
        (book(0, 9, 3, DITHER), book(0, 9, 2, DITHER)), (Together((0, 1), 4),), missing=Missing.SYMBOL
    ),
    "silence is the floor": Roll(
        (book(0, 9, 3, DITHER), book(0, 9, 2)), (Together((0, 1), 4),), missing=Missing.FLOOR
    ),
}


@pytest.mark.parametrize("name", ROLLS)
def test_dithered_releases_and_groups_merge_their_cuts_on_one_line(name: str) -> None:
    """Theory A2 holds with dither: 1 + Σ(k − 1) outputs, at every moment, total of the others and held value."""
    roll = ROLLS[name]
    most = 0
    own = roll.policy.households.codebooks[0].levels
    refined = own + sum(int(k) - 1 for k in roll.policy.reach)
    assert int(roll.policy.levels[0]) == refined
    others = range(-1, 11) if len(roll.books) > 1 else (0,)
    for history, moment, other in product(([], [9], [5]), range(25), others):
        state = roll.after(*([reading, 3][: len(roll.books)] for reading in history))
        outcomes = {
            said(roll.close(state, 1_000 + moment, [reading, other][: len(roll.books)]))
            for reading in roll.alphabet(0)
        }
        most = max(most, len(outcomes))
        assert len(outcomes) <= refined
    assert most >= own


def test_all_traces_with_dither_say_at_most_what_is_charged_and_nothing_once_spent() -> None:
    for missing in Missing:
        roll = Roll(
            (book(0, 7, 2, DITHER), book(0, 7, 2)),
            (Together((0, 1), 3),),
            missing=missing,
            budget=(2 * microbits(4 + (missing is Missing.SYMBOL)), 99_000_000),
            window=3,
        )
        traces = enumerated(roll, [[0, slot] for slot in range(5)])
        assert traces.spent == [False, False, True, False, False]


def test_a_held_value_of_another_policy_is_dithered_by_public_thresholds_and_then_rests() -> None:
    """She is spent and holds 7, no level of today's codebook: the first symbol is public, all others repeat it."""
    before, after = Roll((book(0, 14, 1),)), Roll((book(0, 20, 3, DITHER),), budget=(0,))
    state = before.after([3])
    assert state.held.tolist() == [7]
    for start in range(30):
        first = after.close(state, start, [0])
        later = first.state
        for slot in range(1, 5):
            closed = after.close(later, start + slot, [20])
            assert closed.symbols.tolist() == first.symbols.tolist()
            later = closed.state
