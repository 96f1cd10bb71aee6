"""Intervals become one integer per household and slot, however they were ordered, repeated and batched."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise
from math import floor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slots.rolls import FAR, NEXT, SLOT_MS, START, Meter, put, taken
from slots.rolls import opened as opened_with

from gateway.meters import Quantity
from gateway.privacy import MISSING
from gateway.slots import OpenSlots
from gateway.sources import Readings, Reason
from gateway.sources.readings import Row

PART_MS = SLOT_MS // 3


def opened(*parts: int, slot_ms: int = SLOT_MS) -> OpenSlots:
    """Open slots of meters of so many intervals each, a household each."""
    return opened_with(*(Meter(Quantity.INTERVAL, slot_ms // one) for one in parts), slot_ms=slot_ms)


def expected_mw(energies: list[int | None], slot_ms: int) -> int:
    """Return the exact mean power of a slot's energies, rounded down; MISSING if one is not there."""
    known = [energy for energy in energies if energy is not None]
    return MISSING if len(known) < len(energies) else floor(Fraction(sum(known) * 3_600_000, slot_ms))


# --- values ------------------------------------------------------------------------------------------


def test_energy_becomes_mean_power() -> None:
    """250 Wh in half an hour are 500 W."""
    slots = opened(1)
    put(slots, Row(0, START, 250_000, False))
    assert taken(slots) == [[500_000]]


def test_a_slot_without_readings_is_missing_and_the_next_one_is_its_own() -> None:
    slots = opened(1, 1)
    put(slots, Row(1, START + SLOT_MS, 7, False))
    assert taken(slots, 3) == [[MISSING, MISSING], [MISSING, 14], [MISSING, MISSING]]
    assert slots.next_slot == NEXT + 3


def test_partial_coverage_is_missing() -> None:
    """Two of three intervals say nothing about the third."""
    slots = opened(3, 1, 3)
    put(slots, *[Row(0, START + part * PART_MS, 100, False) for part in (0, 2)])
    put(slots, Row(1, START, 300, False), *[Row(2, START + part * PART_MS, 100, False) for part in (2, 0, 1)])
    assert taken(slots) == [[MISSING, 600, 600]]


def test_a_zero_reading_is_not_a_missing_one() -> None:
    slots = opened(2)
    put(slots, Row(0, START, 0, False), Row(0, START + SLOT_MS // 2, 0, False))
    assert taken(slots) == [[0]]


@settings(deadline=None)
@given(
    st.sampled_from([1_000, 7_000, 60_000, 900_000, SLOT_MS, 3_600_000, 86_400_000]),
    st.lists(
        st.lists(st.none() | st.integers(-(10**12), 10**12), min_size=1, max_size=5), min_size=1, max_size=4
    ),
)
def test_interval_energies_are_summed_exactly_and_rounded_down(
    slot_ms: int, homes: list[list[int | None]]
) -> None:
    """mW from mWh in rationals, negative (export) too, for any slot length."""
    homes = [energies if slot_ms % len(energies) == 0 else energies[:1] for energies in homes]
    slots = opened(*(len(energies) for energies in homes), slot_ms=slot_ms)
    rows: list[Row] = [
        Row(home, NEXT * slot_ms + part * (slot_ms // len(energies)), energy, False)
        for home, energies in enumerate(homes)
        for part, energy in enumerate(energies)
        if energy is not None
    ]
    assert put(slots, *rows).rejected == Counter()
    assert taken(slots) == [[expected_mw(energies, slot_ms) for energies in homes]]


def test_the_largest_sum_of_a_slot_fits() -> None:
    """A thousand intervals of 1 GWh each in one second."""
    slots = opened(1_000, slot_ms=1_000)
    put(slots, *[Row(0, NEXT * 1_000 + part, 10**12, False) for part in range(1_000)])
    assert taken(slots) == [[10**15 * 3_600]]


def test_negative_energy_is_export_and_rounds_towards_minus_infinity() -> None:
    slots = opened(1, 1, slot_ms=7_000)
    put(slots, Row(0, NEXT * 7_000, -1, False), Row(1, NEXT * 7_000, 1, False))
    assert taken(slots) == [[-515, 514]]  # 3,600,000 / 7,000 = 514.28…


def test_a_larger_energy_corrects_a_provisional_one_and_a_smaller_one_does_not() -> None:
    slots = opened(1)
    assert put(slots, Row(0, START, 100, False)).rejected == Counter()
    assert put(slots, Row(0, START, 250, False)).rejected == Counter()
    assert put(slots, Row(0, START, 180, False)).rejected == Counter({Reason.REPEATED: 1})
    assert taken(slots) == [[500]]


# --- order and repetition ----------------------------------------------------------------------------


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[Row], list[list[Row]]]:
    """Readings, and the same ones in another order, some twice, in other chunks; within every quota."""
    parts = (1, 3)
    rows: list[Row] = []
    for home, slot, _ in draw(
        st.lists(
            st.tuples(st.integers(0, 1), st.integers(NEXT, NEXT + 2), st.none()), unique=True, max_size=6
        )
    ):
        for part in range(parts[home]):
            energies = draw(st.lists(st.integers(-(10**6), 10**6), max_size=2))
            start = slot * SLOT_MS + part * (SLOT_MS // parts[home])
            rows += [Row(home, start, energy, draw(st.booleans())) for energy in energies]
    repeated = rows + [row for row in rows if draw(st.booleans())]
    shuffled = draw(st.permutations(repeated))
    borders = sorted(draw(st.sets(st.integers(0, len(shuffled)), max_size=5)) | {0, len(shuffled)})
    return rows, [shuffled[a:b] for a, b in pairwise(borders)]


@settings(max_examples=200, deadline=None)
@given(batches())
def test_order_repetition_and_batching_change_nothing(case: tuple[list[Row], list[list[Row]]]) -> None:
    """Theory A8: the same readings give the same value, so that a re-delivery repeats an output."""
    rows, chunks = case
    straight, mixed = opened(1, 3), opened(1, 3)
    put(straight, *rows)
    for chunk in chunks:
        put(mixed, *chunk)
    assert taken(straight, 3) == taken(mixed, 3)


@settings(deadline=None)
@given(batches())
def test_the_readings_that_changed_a_slot_are_enough_to_rebuild_it(
    case: tuple[list[Row], list[list[Row]]],
) -> None:
    """The journal keeps only `fresh` readings; replayed in one batch they give the same slots."""
    _, chunks = case
    live, restarted = opened(1, 3), opened(1, 3)
    restarted.put(Readings.joined([put(live, *chunk).fresh for chunk in chunks]), FAR)
    assert taken(live, 3) == taken(restarted, 3)


def test_repeats_in_one_batch_are_no_changes() -> None:
    """A re-delivered backlog in one batch must leave room for a correction, as it does one by one."""
    for size in (1, 8):
        slots = opened(1)
        for _ in range(8 // size):
            put(slots, *[Row(0, START, 100, False)] * size)
        assert put(slots, Row(0, START, 200, False)).rejected == Counter()
        assert taken(slots) == [[400]], f"repeats in batches of {size}"


def test_a_repeat_in_the_same_batch_is_counted_as_repeated() -> None:
    slots = opened(1)
    answer = put(slots, Row(0, START, 100, False), Row(0, START, 100, False))
    assert len(answer.fresh) == 1
    assert answer.rejected == Counter({Reason.REPEATED: 1})


# --- what is kept out --------------------------------------------------------------------------------


def test_a_reading_of_a_closed_slot_is_late() -> None:
    slots = opened(1)
    slots.take()
    answer = put(
        slots,
        Row(0, START, 1, False),
        Row(0, START + SLOT_MS - 1, 1, False),
        Row(0, START + SLOT_MS, 5, False),
    )
    assert answer.rejected == Counter({Reason.LATE: 2})
    assert answer.fresh.value.tolist() == [5]
    assert taken(slots) == [[10]]


def test_a_retained_reading_of_a_closed_slot_is_stale_not_late() -> None:
    """The broker hands it out at every subscription: that says nothing about the meter."""
    answer = put(opened(1), Row(0, START - 1, 1, True), Row(0, START - 1, 1, False))
    assert answer.rejected == Counter({Reason.STALE_RETAINED: 1, Reason.LATE: 1})


def test_a_retained_reading_of_an_open_slot_counts() -> None:
    slots = opened(1)
    assert put(slots, Row(0, START, 3, True)).rejected == Counter()
    assert taken(slots) == [[6]]


def test_an_interval_that_ends_after_the_horizon_is_not_believed_yet() -> None:
    """By each household's own interval length; one that ends at the horizon is."""
    slots = opened(1, 3)
    rows: list[Row] = [Row(0, START, 1, False), Row(1, START, 1, False), Row(1, START + PART_MS, 1, False)]
    answer = put(slots, *rows, horizon=START + PART_MS)
    assert answer.rejected == Counter({Reason.FUTURE: 2})
    assert answer.fresh.meter.tolist() == [1]
    assert put(slots, *rows, horizon=START + SLOT_MS).rejected == Counter({Reason.REPEATED: 1})


def test_a_future_reading_leaves_no_trace() -> None:
    slots = opened(1)
    put(slots, Row(0, START + 10**12, 1, False), horizon=START)
    assert slots._open == {}


def aligned(home: int, part: int, energy: int, retained: bool) -> Row:
    return Row(home, START + part * (PART_MS if home else SLOT_MS), energy, retained)


@settings(deadline=None)
@given(
    st.lists(
        st.builds(aligned, st.integers(0, 1), st.integers(-4, 6), st.integers(-3, 3), st.booleans()),
        max_size=12,
    ),
    st.integers(START, START + 2 * SLOT_MS),
)
def test_every_reading_is_fresh_or_counted_once(rows: list[Row], horizon: int) -> None:
    answer = put(opened(1, 3), *rows, horizon=horizon)
    assert len(answer.fresh) + answer.rejected.total() == len(rows)
    assert all(count > 0 for count in answer.rejected.values())


def test_a_late_reading_is_counted_once_while_the_clock_is_behind() -> None:
    """After a clock was set back, the horizon may lie before slots that closed already."""
    answer = put(opened(1), Row(0, START - SLOT_MS, 1, False), horizon=START - SLOT_MS)
    assert answer.rejected.total() == 1


def test_a_flood_of_corrections_is_cut_off() -> None:
    """64 changes per interval are believed, as of a meter that tells the energy so far; more would fill the journal."""
    slots = opened(1)
    answers = [put(slots, Row(0, START, energy, False)) for energy in range(1, 69)]
    assert [len(answer.fresh) for answer in answers] == [1] * 64 + [0] * 4
    assert answers[-1].rejected == Counter({Reason.QUOTA: 1})
    assert taken(slots) == [[128]]


def test_a_flood_in_one_batch_is_cut_off_too() -> None:
    """The journal takes no more from one meter because she was quick."""
    answer = put(opened(1), *[Row(0, START, energy, False) for energy in range(1_000)])
    assert len(answer.fresh) <= 64
    assert answer.rejected[Reason.QUOTA] >= 1_000 - 64 - answer.rejected[Reason.REPEATED]


def test_the_quota_is_per_slot_and_grows_with_the_intervals() -> None:
    slots = opened(3)
    answers = [put(slots, Row(0, START + PART_MS, energy, False)) for energy in range(200)]
    assert sum(len(answer.fresh) for answer in answers) == 3 * 64
    assert len(put(slots, Row(0, START + SLOT_MS, 1, False)).fresh) == 1


@pytest.mark.parametrize("together", [True, False])
def test_one_flooding_household_changes_nothing_for_the_others(together: bool) -> None:
    """Whether her thousand readings come in the others' batch or before it."""
    honest: list[Row] = [
        Row(home, START + part * (SLOT_MS // parts), 10 * home + part, False)
        for home, parts in ((0, 1), (2, 3))
        for part in range(parts)
    ]
    flood: list[Row] = [
        Row(1, START + 60_000 * (i % 60) - 10 * SLOT_MS * (i % 7 == 0), i, i % 2 == 0) for i in range(1_000)
    ]
    quiet, flooded = opened(1, 1, 3), opened(1, 1, 3)
    calm = put(quiet, *honest)
    if together:
        answer = put(flooded, *flood[:500], *honest, *flood[500:])
    else:
        put(flooded, *flood)
        answer = put(flooded, *honest)
    others = answer.fresh.where(answer.fresh.meter != 1)
    assert others.value.tolist() == calm.fresh.value.tolist()
    for before, after in zip(taken(quiet, 3), taken(flooded, 3), strict=True):
        assert (before[0], before[2]) == (after[0], after[2])


def test_an_empty_batch_changes_nothing() -> None:
    slots = opened(1)
    answer = put(slots)
    assert (len(answer.fresh), answer.rejected) == (0, Counter())
    assert taken(slots) == [[MISSING]]
