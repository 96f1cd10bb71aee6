"""Definition 1 ([NP]) by counting bytes: one household varies over all she can say, everything else is fixed.

Nothing here uses how levels are computed. Limits are what the configuration and the messages claim; outcomes
are counted over every integer of her range, beyond both ends, and her silence.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from gateway.messages import Release, Renderer
from gateway.policy import Book, Group, PolicyDocument
from gateway.privacy import MICROBITS_PER_BIT, MISSING, Closed, Missing, State, close_slot, microbits

SLOT_MS = 1_800_000
MONDAY_MS = 1_767_571_200_000
FAR = 10**18

Bytes = dict[str, bytes]


class Roll:
    """A small roll under one public policy, closed and rendered as the service does it."""

    def __init__(self, document: PolicyDocument) -> None:
        self.document = document
        self.policy = document.compile()
        self.renderer = Renderer(document, self.policy)
        self.books = [document.books[b] for b in document.book_of]
        self.own = [f"{document.topic}/household/{name}" for name in document.households]
        self.shared = [f"{document.topic}/group/{group.name}" for group in document.groups]

    def close(self, state: State, slot: int, values: Sequence[int]) -> tuple[Closed, Bytes]:
        start = MONDAY_MS + slot * SLOT_MS
        closed = close_slot(self.policy, state, start, np.array(values, np.int64))
        symbols = [*closed.symbols.tolist(), *closed.group_symbols.tolist()]
        messages = self.renderer.render(Release(start, symbols, closed.spent.tolist()))
        return closed, {message.topic: message.payload for message in messages}

    def after(self, history: Iterable[Sequence[int]]) -> State:
        state = State.initial(self.policy)
        for slot, values in enumerate(history):
            state = self.close(state, slot, values)[0].state
        return state

    def limits(self, household: int) -> dict[str, int]:
        """Her topics and what each may tell apart, as configured."""
        groups = zip(self.shared, self.document.groups, strict=True)
        return {self.own[household]: self.books[household].levels} | {
            topic: group.reach for topic, group in groups if household in group.members
        }

    def all_readings(self, household: int) -> list[int]:
        book = self.books[household]
        return [MISSING, -FAR, *range(book.lower - 2, book.upper + 3), FAR]


def roll_of(
    books: Sequence[tuple[int, int, int]],
    groups: Sequence[tuple[tuple[int, ...], int]] = (),
    *,
    missing: Missing = Missing.HOLD,
    budget: int | None = None,
    slots_per_window: int = 48,
    query: str = "sum",
) -> Roll:
    return Roll(
        PolicyDocument(
            topic="noiseless",
            slot_ms=SLOT_MS,
            window_ms=SLOT_MS * slots_per_window,
            missing=missing,
            budget=budget,
            books=tuple(Book(*book) for book in books),
            households=tuple(f"h-{i}" for i in range(len(books))),
            book_of=tuple(range(len(books))),
            groups=tuple(
                Group(f"g-{i}", members, "mean" if query == "mean" else "sum", reach)
                for i, (members, reach) in enumerate(groups)
            ),
        )
    )


def replaced(values: Sequence[int], household: int, reading: int) -> list[int]:
    return [*values[:household], reading, *values[household + 1 :]]


@lru_cache(maxsize=4_096)
def paid(outcomes: int, charge: int) -> bool:
    """Return whether log2(outcomes) ≤ charge / 10⁶, in integers."""
    return outcomes**MICROBITS_PER_BIT <= 1 << charge


def public_facts(closed: Closed, household: int) -> bytes:
    """Everything that decides later releases, except what she alone may have moved: her held value."""
    state = closed.state
    arrays = [
        closed.spent,
        closed.charges,
        closed.group_charges,
        state.households.window,
        state.households.spent,
        state.households.total,
        state.groups.window,
        state.groups.spent,
        state.groups.total,
        np.delete(state.held, household),
        state.residual,
        state.group_residual,
    ]
    return b"|".join(array.tobytes() for array in arrays)


def assert_promise(roll: Roll, state: State, slot: int, values: Sequence[int], household: int) -> int:
    """Count all outcomes of one household in one slot; return how many there are jointly."""
    runs = [
        roll.close(state, slot, replaced(values, household, reading))
        for reading in roll.all_readings(household)
    ]
    assert len({public_facts(closed, household) for closed, _ in runs}) == 1
    closed, messages = runs[0]
    spent, charge = bool(closed.spent[household]), int(closed.charges[household])
    limits = roll.limits(household)
    assert list(messages) == roll.own + roll.shared, "a release per topic, in the roll's order"
    for topic, payload in messages.items():
        seen = len({given_out[topic] for _, given_out in runs})
        said = json.loads(payload)
        assert seen <= (1 if spent else limits.get(topic, 1)), topic
        assert said.get("reach", limits.get(topic, said["levels"])) <= limits.get(topic, FAR), topic
        assert seen <= said.get("reach", said["levels"]), topic
    joint = len({tuple(given_out.values()) for _, given_out in runs})
    levels = int(roll.policy.levels[household])
    assert charge == (0 if spent else microbits(levels))
    assert joint <= (1 if spent else levels)
    assert paid(joint, charge)
    assert len({int(run.state.held[household]) for run, _ in runs}) <= len(
        {given_out[roll.own[household]] for _, given_out in runs}
    ), "what she leaves to the next slot is no more than what she has said"
    return joint


def others_at(
    roll: Roll, values: Sequence[int], household: int, members: Sequence[int], wanted: int
) -> list[int]:
    """Move the other members so that the group's sum is ``wanted`` while she is at her lower end."""
    others = [member for member in members if member != household]
    floors = {member: roll.books[member].lower for member in others}
    rest = wanted - roll.books[household].lower - sum(floors.values())
    moved = list(values)
    for member in others:
        width = roll.books[member].upper - floors[member]
        step = min(max(rest, 0), width)
        moved[member] = floors[member] + step
        rest -= step
    return moved


def readings_of(book: Book) -> st.SearchStrategy[int]:
    inside = st.integers(book.lower - 5, book.upper + 5)
    return st.one_of(inside, inside, st.just(MISSING), st.sampled_from([-FAR, FAR, book.lower, book.upper]))


@st.composite
def documents(draw: st.DrawFn, most_households: int = 4, most_width: int = 20) -> PolicyDocument:
    missing = draw(st.sampled_from(Missing))
    n = draw(st.integers(2, most_households))
    books = []
    for _ in range(n):
        lower, width = draw(st.integers(-40, 40)), draw(st.integers(4, most_width))
        books.append(Book(lower, lower + width, draw(st.integers(2 + (missing is Missing.SYMBOL), 5))))
    groups = []
    for i in range(draw(st.integers(0, 3))):
        members = draw(st.sets(st.integers(0, n - 1), min_size=1))
        query = draw(st.sampled_from(["sum", "mean"]))
        groups.append(
            Group(
                f"g-{i}", tuple(sorted(members)), "sum" if query == "sum" else "mean", draw(st.integers(2, 5))
            )
        )
    return PolicyDocument(
        topic="out/here",
        slot_ms=SLOT_MS,
        window_ms=SLOT_MS * draw(st.integers(1, 4)),
        missing=missing,
        budget=draw(st.none() | st.integers(0, 12_000_000)),
        books=tuple(books),
        households=tuple(f"h-{i}" for i in range(n)),
        book_of=tuple(range(n)),
        groups=tuple(groups),
    )


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_one_reading_tells_at_most_what_is_charged_whatever_the_others_and_the_past(
    data: st.DataObject,
) -> None:
    """Per topic ≤ its levels, jointly ≤ the charge, nothing elsewhere; spent: one outcome, free."""
    roll = Roll(data.draw(documents()))
    vectors = st.tuples(*(readings_of(book) for book in roll.books))
    history = data.draw(st.lists(vectors, max_size=4))
    state, slot = roll.after(history), len(history)
    values = data.draw(vectors)
    event(f"spent: {bool(roll.close(state, slot, values)[0].spent.any())}")
    for household in range(len(roll.books)):
        assert_promise(roll, state, slot, values, household)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_one_reading_tells_at_most_what_is_charged_at_every_critical_total_of_the_others(
    data: st.DataObject,
) -> None:
    """The others place a group's cuts just below, at and just above her lower end: the worst they can do."""
    roll = Roll(data.draw(documents(most_households=3).filter(lambda document: document.groups)))
    vectors = st.tuples(*(readings_of(book) for book in roll.books))
    state = roll.after(data.draw(st.lists(vectors, max_size=2)))
    slot, values = int(data.draw(st.integers(2, 9))), data.draw(vectors)
    assert roll.policy.groups.shelf is not None
    pairs = list(zip(roll.document.groups, roll.policy.groups.shelf.codebooks, strict=True))
    group, book = data.draw(st.sampled_from(pairs))
    cut = int(data.draw(st.sampled_from(book.cuts.tolist())))
    for household in group.members:
        for beside in (-1, 0, 1):
            assert_promise(
                roll, state, slot, others_at(roll, values, household, group.members, cut + beside), household
            )


EXHAUSTIVE = {
    "sum of unequal ranges": (roll_of([(0, 7, 3), (-4, 4, 4), (10, 14, 3)], [((0, 1, 2), 3)]), [5, 6, 4]),
    "overlapping groups": (
        roll_of([(0, 6, 3), (-3, 3, 3), (2, 7, 5)], [((0, 1), 3), ((1, 2), 2), ((0, 1, 2), 4)]),
        [7, 7, 6],
    ),
    "a mean, silence at the floor": (
        roll_of([(0, 6, 2), (0, 6, 2), (0, 6, 2)], [((0, 1, 2), 3)], missing=Missing.FLOOR, query="mean"),
        [4, 4, 4],
    ),
    "silence is a symbol": (
        roll_of([(-5, 2, 4), (0, 8, 3), (0, 4, 3)], [((0, 1, 2), 4), ((0, 2), 2)], missing=Missing.SYMBOL),
        [8, 6, 6],
    ),
    "two bits a window, one home cannot afford a slot": (
        roll_of([(0, 7, 2), (0, 7, 4), (0, 7, 2)], [((0, 1), 2)], budget=2_000_000),
        [3, 1, 2],
    ),
}


@pytest.mark.parametrize("name", EXHAUSTIVE)
def test_one_reading_tells_at_most_what_is_charged_at_every_value_of_the_others(name: str) -> None:
    """Small enough for all combinations of the others' readings, from three states; the worst is counted."""
    roll, worst = EXHAUSTIVE[name]
    lowest, highest = [book.lower for book in roll.books], [book.upper for book in roll.books]
    states = [roll.after(history) for history in ([], [highest], [lowest, highest, [MISSING] * len(lowest)])]
    counted = [0] * len(lowest)
    for state, household in product(states, range(len(lowest))):
        sides = [range(book.lower, book.upper + 1) for book in roll.books]
        sides[household] = range(lowest[household], lowest[household] + 1)
        for values in product(*sides):
            joint = assert_promise(roll, state, 3, values, household)
            counted[household] = max(counted[household], joint)
    assert counted == worst


def test_a_spent_household_says_nothing_and_her_groups_stand_on_her_last_public_value() -> None:
    """A budget of one slot: from the second on she is a constant in all topics until the window turns."""
    roll = roll_of([(0, 10, 2), (0, 10, 2)], [((0, 1), 2)], budget=microbits(3), slots_per_window=4)
    state = roll.after([[10, 0]])
    for slot in (1, 2, 3):
        for household in (0, 1):
            assert assert_promise(roll, state, slot, [10, 0], household) == 1
    closed, messages = roll.close(state, 1, [0, 10])
    assert closed.spent.tolist() == [True, True]
    assert closed.charges.tolist() == [0, 0]
    assert closed.group_charges.tolist() == [0]
    assert [json.loads(messages[topic])["symbol"] for topic in roll.own] == [1, 0]
    assert all(json.loads(messages[topic])["spent"] is True for topic in roll.own)
    assert assert_promise(roll, state, 4, [10, 0], 0) > 1, "the window has turned"


def test_a_silent_household_is_the_same_number_in_all_her_topics() -> None:
    """Under "hold" her last symbol's value, under "floor" and "symbol" her lower end."""
    sums = {}
    for missing in Missing:
        # Her own cuts after the missing symbol's are at 0, 50; the pair's sum has a cell per mW or two.
        roll = roll_of([(0, 100, 3), (0, 100, 3)], [((0, 1), 90)], missing=missing)
        state = roll.after([[100, 0]])
        heard = {x: roll.close(state, 1, [x, 0])[1][roll.shared[0]] for x in range(101)}
        quiet = roll.close(state, 1, [MISSING, 0])[1]
        sums[missing] = [x for x, payload in heard.items() if payload == quiet[roll.shared[0]]]
        if missing is Missing.HOLD:
            held = int(roll.close(state, 1, [100, 0])[0].state.held[0])
            assert held in sums[missing]
            assert quiet[roll.own[0]] == roll.close(state, 1, [held, 0])[1][roll.own[0]]
    assert 0 in sums[Missing.FLOOR]
    assert 0 in sums[Missing.SYMBOL]
    assert 0 not in sums[Missing.HOLD]


# --- over several slots ------------------------------------------------------------------------------


def key_of(state: State) -> bytes:
    arrays = [
        state.households.window,
        state.households.spent,
        state.groups.spent,
        state.held,
        state.residual,
        state.group_residual,
    ]
    return b"|".join(array.tobytes() for array in arrays)


def reachable(
    rolls: Sequence[Roll], others: Sequence[Sequence[int]], household: int, alphabet: Sequence[int]
) -> tuple[set[tuple[bytes, ...]], list[int], list[int]]:
    """All output sequences of one household's traces over all topics, and the charges and levels per slot."""
    frontier: dict[tuple[tuple[bytes, ...], bytes], State] = {((), b""): State.initial(rolls[0].policy)}
    charges, levels = [], []
    for slot, (roll, values) in enumerate(zip(rolls, others, strict=True)):
        following = {}
        charged: set[int] = set()
        for (seen, _), state in frontier.items():
            for reading in alphabet:
                closed, messages = roll.close(state, slot, replaced(values, household, reading))
                charged.add(int(closed.charges[household]))
                said = (*seen, b"".join(messages.values()))
                following[said, key_of(closed.state)] = closed.state
        assert len(charged) == 1, "a charge never depends on a reading"
        charges += charged
        levels.append(int(roll.policy.levels[household]) if charges[-1] else 1)
        frontier = following
    return {said for said, _ in frontier}, charges, levels


def assert_sequences_paid(
    rolls: Sequence[Roll], others: Sequence[Sequence[int]], household: int, alphabet: Sequence[int]
) -> int:
    sequences, charges, levels = reachable(rolls, others, household, alphabet)
    assert charges == [microbits(k) for k in levels]
    assert len(sequences) <= prod(levels)
    return len(sequences)


@st.composite
def small_documents(draw: st.DrawFn) -> PolicyDocument:
    missing = draw(st.sampled_from(Missing))
    levels = 3 if missing is Missing.SYMBOL else 2
    n = draw(st.integers(1, 2))
    groups = draw(st.lists(st.just(tuple(range(n))), max_size=1))
    return PolicyDocument(
        topic="out",
        slot_ms=SLOT_MS,
        window_ms=SLOT_MS * draw(st.integers(1, 4)),
        missing=missing,
        budget=draw(st.none() | st.integers(500_000, 7_000_000)),
        books=tuple(Book(lower, lower + 3, levels) for lower in (-1, 2)[:n]),
        households=("a", "b")[:n],
        book_of=tuple(range(n)),
        groups=tuple(Group("g", members, "sum", 2) for members in groups),
    )


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_all_traces_of_a_household_give_at_most_the_product_of_the_charged_levels(
    data: st.DataObject,
) -> None:
    """With silence, budgets that run out on the way, and windows that turn."""
    roll = Roll(data.draw(small_documents()))
    slots = data.draw(st.integers(3, 4))
    others = data.draw(
        st.lists(st.tuples(*(readings_of(book) for book in roll.books)), min_size=slots, max_size=slots)
    )
    book = roll.books[0]
    alphabet = [MISSING, *range(book.lower, book.upper + 1)]
    assert_sequences_paid([roll] * slots, others, 0, alphabet)


@pytest.mark.parametrize("missing", Missing)
def test_a_change_of_policy_on_the_way_does_not_multiply_what_she_can_say(missing: Missing) -> None:
    """A held value is read in today's codebook: her range moves, shrinks and grows under it."""
    symbol = missing is Missing.SYMBOL
    before = roll_of([(0, 9, 2 + symbol), (0, 9, 3)], [((0, 1), 2)], missing=missing, budget=9_000_000)
    after = roll_of([(4, 7, 2 + symbol), (0, 9, 3)], [((0, 1), 2)], missing=missing, budget=9_000_000)
    wider = roll_of([(-6, 30, 3 + symbol), (0, 9, 3)], [((0, 1), 3)], missing=missing, budget=9_000_000)
    alphabet = [MISSING, -7, 0, 3, 5, 6, 9, 31]
    for rolls in (
        [before, after, after, before],
        [before, before, wider, wider],
        [wider, after, wider, before],
    ):
        assert assert_sequences_paid(rolls, [(0, 4)] * 4, 0, alphabet) > 4


def test_a_change_of_the_missing_rule_keeps_a_held_silence_inside_the_range() -> None:
    """The last symbol said "missing"; under "hold" it becomes the lower end."""
    symbol = roll_of([(0, 9, 3)], missing=Missing.SYMBOL)
    hold = roll_of([(0, 9, 3)], missing=Missing.HOLD)
    state = symbol.close(State.initial(symbol.policy), 0, [MISSING])[0].state
    assert json.loads(hold.close(state, 1, [MISSING])[1][hold.own[0]])["symbol"] == 0
    assert_sequences_paid([symbol, symbol, hold, hold], [(0,)] * 4, 0, [MISSING, *range(10)])


def sequences_if_held_slots_were_free(slots: int, charged_slots: int) -> int:
    """The tempting rule that theory A1 refutes: silence repeats the last symbol and costs nothing."""
    sequences = set()
    for trace in product((None, 0, 1), repeat=slots):
        held, left, said = 0, charged_slots, []
        for reading in trace:
            if reading is not None and left:
                held, left = reading, left - 1
            said.append(held)
        sequences.add(tuple(said))
    return len(sequences)


def test_silence_is_charged_like_speech_or_two_bits_would_say_37_things() -> None:
    """Theory A1's counterexample: 8 slots, k = 2, a budget of 2 bits. Free silence: 37 sequences. Ours: 4."""
    assert sequences_if_held_slots_were_free(slots=8, charged_slots=2) == 37
    roll = roll_of([(0, 3, 2)], budget=2_000_000)
    sequences, charges, _ = reachable([roll] * 8, [(0,)] * 8, 0, [MISSING, 0, 1, 2, 3])
    assert charges == [1_000_000, 1_000_000, 0, 0, 0, 0, 0, 0]
    assert len(sequences) == 4


def test_a_budget_binds_again_in_every_window() -> None:
    """Two charged slots per window of four, three windows: 2² sequences each, however late she speaks."""
    roll = roll_of([(0, 3, 2)], budget=2_000_000, slots_per_window=4)
    sequences, charges, _ = reachable([roll] * 12, [(0,)] * 12, 0, [MISSING, 0, 3])
    assert charges == [1_000_000, 1_000_000, 0, 0] * 3
    assert len(sequences) == 4**3
