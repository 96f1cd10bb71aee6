"""What a household releases when her budget is spent: her last symbol, merged cells, or nothing (theory A9)."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from gateway.audit import certify
from gateway.messages import Release, Renderer
from gateway.policy import Book, Group, PolicyDocument
from gateway.privacy import (
    MISSING,
    Closed,
    IntArray,
    Missing,
    Policy,
    Rounding,
    State,
    WhenSpent,
    close_slot,
    merged,
    microbits,
    uniform,
)

HOMES = ("a", "b", "c")


def document(**changes: object) -> PolicyDocument:
    plain: dict[str, object] = {
        "topic": "noiseless",
        "slot_ms": 1_000,
        "window_ms": 8_000,
        "missing": Missing.HOLD,
        "budget": microbits(11) * 2 + microbits(3),
        "books": (Book(0, 40, 4),),
        "households": HOMES,
        "book_of": (0, 0, 0),
        "groups": (Group("g", (0, 1, 2), "sum", 8),),
        "when_spent": WhenSpent.COARSEN,
    }
    return PolicyDocument(**(plain | changes))  # type: ignore[arg-type]


def closed_slots(policy: Policy, slots: list[list[int]]) -> list[Closed]:
    state, found = State.initial(policy), []
    for slot, values in enumerate(slots):
        found.append(close_slot(policy, state, slot * 1_000, np.array(values, np.int64)))
        state = found[-1].state
    return found


def test_a_budget_pays_full_slots_then_merged_cells_then_nothing() -> None:
    """Two slots at 11 joint levels, then 3 merged cells from the rest, then her last symbol for free."""
    slots = closed_slots(document().compile(), [[5, 15, 35]] * 5)
    assert [one.charges.tolist() for one in slots] == [
        *[[microbits(11)] * 3] * 2,
        [microbits(3)] * 3,
        *[[0] * 3] * 2,
    ]
    assert [one.coarse.tolist() for one in slots] == [[0] * 3, [0] * 3, [3] * 3, [0] * 3, [0] * 3]
    assert [one.spent.tolist() for one in slots] == [[False] * 3] * 3 + [[True] * 3] * 2


def test_all_her_cells_stay_where_what_is_left_pays_for_them_but_not_for_her_groups() -> None:
    slots = closed_slots(document(budget=microbits(11) + microbits(4)).compile(), [[5, 15, 35], [15, 35, 5]])
    assert slots[1].coarse.tolist() == [4, 4, 4]
    assert slots[1].symbols.tolist() == [1, 3, 0]
    assert slots[1].group_symbols.tolist() == slots[0].group_symbols.tolist()


def test_merged_cells_follow_the_reading_and_groups_use_the_constant() -> None:
    policy = document().compile()
    before = closed_slots(policy, [[5, 5, 5]] * 2)
    for values in product((0, 12, 25, 39), repeat=3):
        third = close_slot(policy, before[-1].state, 2_000, np.array(values, np.int64))
        assert third.symbols.tolist() == merged(uniform(0, 40, 4), 3).encode(np.array(values)).tolist()
        assert third.group_symbols.tolist() == before[-1].group_symbols.tolist()


def test_what_is_held_after_merged_cells_is_the_value_that_was_published() -> None:
    policy = document().compile()
    slots = closed_slots(policy, [[5, 15, 35]] * 4)
    assert slots[2].state.held.tolist() == merged(uniform(0, 40, 4), 3).values[slots[2].symbols].tolist()
    assert slots[3].state.held.tolist() == slots[2].state.held.tolist()


def test_the_window_turns_back_to_all_cells() -> None:
    slots = closed_slots(document().compile(), [[5, 15, 35]] * 10)
    assert slots[8].coarse.tolist() == [0, 0, 0]
    assert slots[8].charges.tolist() == [microbits(11)] * 3


@pytest.mark.parametrize("levels", [2, 3, 4, 5, 7, 8, 16])
def test_merged_cells_are_unions_of_whole_cells_and_stand_for_one_of_their_values(levels: int) -> None:
    book = uniform(-13, 400, levels)
    everything = np.arange(-13, 401)
    for cells in range(1, levels + 1):
        coarse = merged(book, cells)
        pairs = set(zip(book.encode(everything).tolist(), coarse.encode(everything).tolist(), strict=True))
        assert len(pairs) == levels, "a cell lies in one merged cell"
        assert coarse.levels == cells
        assert set(coarse.values.tolist()) <= set(book.values.tolist())
        assert {one for _, one in pairs} == set(range(cells))


@pytest.mark.parametrize("cells", [0, 5])
def test_cells_do_not_merge_into_more_or_none(cells: int) -> None:
    with pytest.raises(ValueError, match="do not merge"):
        merged(uniform(0, 40, 4), cells)


def test_the_choice_of_merged_cells_never_depends_on_a_reading() -> None:
    policy = document().compile()
    paths = [closed_slots(policy, [[value, 5, 5]] * 6) for value in (0, 17, 39, MISSING)]
    counts = [
        [(one.coarse.tolist(), one.charges.tolist(), one.spent.tolist()) for one in path] for path in paths
    ]
    assert all(one == counts[0] for one in counts)


def test_sequences_stay_within_what_was_charged() -> None:
    """Over a window: full, full, merged, constant; counted over all paths of one household, silence included."""
    policy = document(books=(Book(0, 8, 2),), budget=microbits(9) + microbits(2)).compile()
    policy_levels = int(policy.levels[0])
    seen = set()
    for path in product((0, 3, 8, MISSING), repeat=4):
        slots = closed_slots(policy, [[one, 4, 4] for one in path])
        seen.add(tuple((s.symbols[0], s.coarse[0], *s.group_symbols.tolist()) for s in slots))
        charged = sum(int(s.charges[0]) for s in slots)
    assert policy_levels == 9
    assert len(seen) > 4
    assert microbits(len(seen)) <= charged


GOOD = {
    "merged cells": document(),
    "merged cells alone": document(groups=(), budget=microbits(4) + microbits(3)),
    "merged cells, the floor for silence": document(missing=Missing.FLOOR),
    "merged cells after feedback": document(books=(Book(0, 40, 4, Rounding.FEEDBACK),)),
    "merged cells after dither": document(books=(Book(0, 40, 4, Rounding.DITHER),)),
    "merged cells and a group with feedback": document(
        groups=(Group("g", (0, 1, 2), "sum", 8, rounding=Rounding.FEEDBACK),)
    ),
    "withheld": document(when_spent=WhenSpent.WITHHOLD),
}


@pytest.mark.parametrize("name", GOOD)
def test_certified(name: str) -> None:
    assert certify(GOOD[name]).holds


def _group_sees_her(policy: Policy, state: State, start: int, values: IntArray) -> Closed:
    """Her merged release is paid for, her part in the group is not."""
    closed = close_slot(policy, state, start, values)
    shelf, groups = policy.households, policy.groups
    assert groups.shelf is not None
    present = np.clip(np.where(values == MISSING, state.held, values), shelf.lower, shelf.upper)
    everyone = groups.shelf.encode(groups.sums(present))
    return replace(
        closed, group_symbols=np.where(groups.any_member(closed.coarse > 0), everyone, closed.group_symbols)
    )


def _one_cell_more(policy: Policy, state: State, start: int, values: IntArray) -> Closed:
    closed = close_slot(policy, state, start, values)
    ladder = policy.ladder[np.maximum(closed.coarse - 2, 0)]
    return replace(closed, charges=np.where(closed.coarse > 1, ladder, closed.charges))


@pytest.mark.parametrize("mutant", [_group_sees_her, _one_cell_more])
def test_code_that_breaks_the_promise_of_merged_cells_is_caught(mutant: object) -> None:
    assert not certify(document(), close=mutant).holds  # type: ignore[arg-type]


def test_a_merged_release_says_its_cells_and_that_groups_do_without_her() -> None:
    terms = document()
    policy = terms.compile()
    renderer = Renderer(terms, policy)
    (release,) = renderer.render(Release(0, [2, 0, 1, 4], [False] * 3, [3, 0, 0]), 0, 1)
    said = json.loads(release.payload)
    book = merged(uniform(0, 40, 4), 3)
    assert (said["symbol"], said["levels"], said["coarse"], said["codebook"]) == (2, 3, True, book.hash)
    assert said["between_w"] == [book.cell(2)[0] / 1_000, None]
    assert "spent" not in said


def test_withheld_releases_are_the_spent_ones_and_no_other() -> None:
    terms = document(when_spent=WhenSpent.WITHHOLD)
    renderer = Renderer(terms, terms.compile())
    release = Release(0, [2, 0, 1, 4], [False, True, False])
    everything = [one.topic for one in renderer.render(release)]
    assert everything == ["noiseless/household/a", "noiseless/household/c", "noiseless/group/g"]
    pieces = [one.topic for start in range(4) for one in renderer.render(release, start, start + 1)]
    assert pieces == everything


def test_a_symbol_for_silence_cannot_be_merged() -> None:
    with pytest.raises(ValueError, match="silence"):
        document(missing=Missing.SYMBOL).compile()
