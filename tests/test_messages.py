"""Released bytes: golden, valid, true, and a function of slot, symbol, spent and public policy alone."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.messages import Release, Renderer
from gateway.policy import Book, Group, PolicyDocument
from gateway.privacy import Missing, Policy

TEN_O_CLOCK_MS = 1_767_607_200_000  # 2026-01-05T10:00:00Z
HALF_HOUR_MS = 1_800_000
RANGE = (0, 14_500_000)


def document(
    books: tuple[Book, ...] = (Book(*RANGE, 4),),
    groups: tuple[Group, ...] = (),
    *,
    households: int | None = None,
    missing: Missing = Missing.HOLD,
    slot_ms: int = HALF_HOUR_MS,
) -> PolicyDocument:
    n = households or len(books)
    return PolicyDocument(
        topic="noiseless",
        slot_ms=slot_ms,
        window_ms=86_400_000,
        missing=missing,
        budget=None,
        books=books,
        households=tuple(f"h-{i:03}" for i in range(1, n + 1)),
        book_of=tuple(i % len(books) for i in range(n)),
        groups=groups,
    )


def rendered(
    public: PolicyDocument, symbols: list[int], spent: list[bool] | None = None, **at: int
) -> list[Any]:
    release = Release(at.get("start_ms", TEN_O_CLOCK_MS), symbols, spent or [False] * len(public.households))
    return Renderer(public, public.compile()).render(release)


def test_a_household_release_is_these_bytes() -> None:
    (message,) = rendered(document(), [1])
    assert message.topic == "noiseless/household/h-001"
    assert message.payload == (
        b'{"slot":"2026-01-05T10:00:00Z","minutes":30,"symbol":1,"levels":4,'
        b'"between_w":[3625,7250],"value_w":5437.5,"codebook":"3addca"}'
    )
    assert message.retain is False


def test_a_spent_release_says_so_at_its_end_and_is_else_the_same() -> None:
    """Public: it depends on counts only."""
    (message,) = rendered(document(), [1])
    (spent,) = rendered(document(), [1], [True])
    assert spent.payload == message.payload[:-1] + b',"spent":true}'
    assert rendered(document(), [0], [True])[0].payload.endswith(b'"codebook":"3addca","spent":true}')


def test_outer_cells_are_open() -> None:
    """Readings beyond the range are clamped into them, so their outer end would be a lie."""
    payloads = [rendered(document(), [symbol])[0].payload for symbol in range(4)]
    assert b'"between_w":[null,3625],"value_w":1812.5,' in payloads[0]
    assert b'"between_w":[10875,null],"value_w":12687.5,' in payloads[3]


def test_a_single_cell_is_open_at_both_ends() -> None:
    assert (
        b'"between_w":[null,null],"value_w":7250,' in rendered(document((Book(*RANGE, 1),)), [0])[0].payload
    )


def test_a_missing_symbol_has_no_cell_and_the_lowest_readings_no_lower_end() -> None:
    public = document((Book(*RANGE, 5),), missing=Missing.SYMBOL)
    missing, lowest, _, _, highest = (rendered(public, [symbol])[0].payload for symbol in range(5))
    assert b'"symbol":0,"levels":5,"between_w":[null,null],"value_w":null,' in missing
    assert b'"symbol":1,"levels":5,"between_w":[null,3625],"value_w":1812.5,' in lowest
    assert b'"symbol":4,"levels":5,"between_w":[10875,null],"value_w":12687.5,' in highest


def test_a_group_release_is_these_bytes() -> None:
    """Four homes of 14.5 kW, reach 8: q = (8 − 1)·4 = 28 cells over 58 kW."""
    public = document(households=4, groups=(Group("feeder-12", (0, 1, 2, 3), "sum", 8),))
    *_, message = rendered(public, [0, 0, 0, 0, 3])
    hash_ = public.compile().groups.shelf.codebooks[0].hash  # type: ignore[union-attr]
    assert message.topic == "noiseless/group/feeder-12"
    assert message.payload == (
        b'{"slot":"2026-01-05T10:00:00Z","minutes":30,"symbol":3,"levels":28,'
        b'"between_w":[6214.286,8285.715],"value_w":7250,"codebook":"%s",'
        b'"members":4,"query":"sum","reach":8}' % hash_.encode()
    )


def test_a_mean_release_is_the_sum_by_the_number_of_members() -> None:
    public = document(households=4, groups=(Group("street", (0, 1, 2, 3), "mean", 2),))
    *_, message = rendered(public, [0, 0, 0, 0, 1])
    hash_ = public.compile().groups.shelf.codebooks[0].hash  # type: ignore[union-attr]
    assert message.payload == (
        b'{"slot":"2026-01-05T10:00:00Z","minutes":30,"symbol":1,"levels":4,'
        b'"between_w":[3625,7250],"value_w":5437.5,"codebook":"%s",'
        b'"members":4,"query":"mean","reach":2}' % hash_.encode()
    )


def test_a_group_is_never_marked_spent() -> None:
    public = document(households=2, groups=(Group("g", (0, 1), "sum", 2),))
    *_, message = rendered(public, [0, 0, 1], [True, True])
    assert b"spent" not in message.payload


def test_releases_come_in_the_rolls_order_then_the_groups() -> None:
    public = document(households=2, groups=(Group("b", (0, 1), "sum", 2), Group("a", (1,), "mean", 2)))
    assert [message.topic for message in rendered(public, [0, 0, 0, 0])] == [
        "noiseless/household/h-001",
        "noiseless/household/h-002",
        "noiseless/group/b",
        "noiseless/group/a",
    ]


@pytest.mark.parametrize(
    ("slot_ms", "start_ms", "head"),
    [
        (1_000, 0, b'{"slot":"1970-01-01T00:00:00Z","minutes":0.016666666666,'),
        (90_000, 90_000, b'{"slot":"1970-01-01T00:01:30Z","minutes":1.5,'),
        (900_000, TEN_O_CLOCK_MS, b'{"slot":"2026-01-05T10:00:00Z","minutes":15,'),
        (86_400_000, 1_709_164_800_000, b'{"slot":"2024-02-29T00:00:00Z","minutes":1440,'),
    ],
)
def test_a_message_begins_with_its_slot(slot_ms: int, start_ms: int, head: bytes) -> None:
    (message,) = rendered(document(slot_ms=slot_ms), [0], start_ms=start_ms)
    assert message.payload.startswith(head + b'"symbol":0,')


def test_negative_and_odd_powers_are_written_exactly() -> None:
    """Down to the milliwatt, without exponents or trailing zeros."""
    public = document((Book(-1_001, 5, 3),))
    assert [json.loads(rendered(public, [s])[0].payload)["between_w"] for s in range(3)] == [
        [None, -0.665],
        [-0.665, -0.33],
        [-0.33, None],
    ]
    assert b'"between_w":[-0.665,-0.33],"value_w":-0.498,' in rendered(public, [1])[0].payload
    assert b'"between_w":[1000000,null]' in rendered(document((Book(0, 2 * 10**9, 2),)), [1])[0].payload


@st.composite
def rolls(draw: st.DrawFn) -> PolicyDocument:
    missing = draw(st.sampled_from(Missing))
    books = []
    for _ in range(draw(st.integers(1, 3))):
        lower, width = draw(st.integers(-(10**7), 10**7)), draw(st.integers(6, 10**7))
        books.append(Book(lower, lower + width, draw(st.integers(2, 6))))
    homes = draw(st.integers(len(books), 5))
    groups = []
    for i in range(draw(st.integers(0, 2))):
        members = tuple(sorted(draw(st.sets(st.integers(0, homes - 1), min_size=1))))
        groups.append(
            Group(f"g-{i}", members, draw(st.sampled_from(["sum", "mean"])), draw(st.integers(2, 5)))
        )  # type: ignore[arg-type]
    return document(tuple(books), tuple(groups), households=homes, missing=missing)


def levels_of(policy: Policy) -> list[int]:
    own = [policy.households.codebooks[b].levels for b in policy.households.book_of.tolist()]
    return own + [book.levels for book in (policy.groups.shelf.codebooks if policy.groups.shelf else ())]


@settings(deadline=None)
@given(rolls(), st.data())
def test_chunks_are_the_whole_and_every_message_is_json(public: PolicyDocument, data: st.DataObject) -> None:
    policy = public.compile()
    symbols = [data.draw(st.integers(0, levels - 1)) for levels in levels_of(policy)]
    spent = data.draw(
        st.lists(st.booleans(), min_size=len(public.households), max_size=len(public.households))
    )
    release = Release(TEN_O_CLOCK_MS, symbols, spent)
    renderer = Renderer(public, policy)
    whole = renderer.render(release)
    assert len(whole) == len(renderer) == len(symbols)
    middle = data.draw(st.integers(0, len(whole)))
    assert renderer.render(release, 0, middle) + renderer.render(release, middle) == whole
    assert renderer.render(release, middle, middle) == []
    assert Renderer(public, public.compile()).render(release) == whole, (
        "another process writes the same bytes"
    )
    for message, symbol, levels in zip(whole, symbols, levels_of(policy), strict=True):
        said = json.loads(message.payload)
        assert (said["symbol"], said["levels"]) == (symbol, levels)
        assert b" " not in message.payload


def test_what_was_rendered_before_changes_nothing() -> None:
    """Bytes are cached by symbol: neither order nor other slots may show."""
    public = document(households=2)
    renderer = Renderer(public, public.compile())
    for symbols, spent in [([0, 1], [True, False]), ([3, 0], [False, True]), ([0, 0], [False, False])] * 2:
        fresh = Renderer(public, public.compile())
        release = Release(TEN_O_CLOCK_MS, symbols, spent)
        assert renderer.render(release) == fresh.render(release)
        later = Release(TEN_O_CLOCK_MS + HALF_HOUR_MS, symbols, spent)
        assert [m.payload[33:] for m in renderer.render(later)] == [
            m.payload[33:] for m in fresh.render(release)
        ]


def test_different_symbols_give_different_bytes() -> None:
    """Else a release would say less than it is charged for, and "spent" would be ambiguous."""
    payloads = {rendered(document(), [s], [spent])[0].payload for s in range(4) for spent in (False, True)}
    assert len(payloads) == 8


def between(payload: bytes) -> tuple[Fraction | None, Fraction | None, Fraction]:
    said = json.loads(payload, parse_float=Decimal, parse_int=Decimal)
    low, high = (None if end is None else Fraction(end) for end in said["between_w"])
    return low, high, Fraction(said["value_w"])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-30, 30), st.integers(4, 20)), min_size=1, max_size=5),
    st.integers(2, 5),
    st.sampled_from(["sum", "mean"]),
)
def test_between_contains_the_true_answer_of_every_sum(
    homes: list[tuple[int, int]], reach: int, query: str
) -> None:
    """In rationals: a mean's ends are rounded outwards, and by less than a milliwatt."""
    books = tuple(Book(low, low + width, 2) for low, width in homes)
    group = Group("g", tuple(range(len(homes))), "mean" if query == "mean" else "sum", reach)
    public = document(books, (group,))
    policy = public.compile()
    assert policy.groups.shelf is not None
    (book,) = policy.groups.shelf.codebooks
    renderer, n = Renderer(public, policy), len(homes) if query == "mean" else 1
    for total in range(book.lower, book.upper + 1):
        symbol = sum(total >= cut for cut in book.cuts.tolist())
        release = Release(TEN_O_CLOCK_MS, [0] * len(homes) + [symbol], [False] * len(homes))
        low, high, value = between(renderer.render(release)[-1].payload)
        answer = Fraction(total, 1_000 * n)
        assert low is None or low <= answer
        assert high is None or answer <= high
        cell_low, cell_high = (Fraction(end, 1_000 * n) for end in book.cell(symbol))
        assert low is None or cell_low - Fraction(1, 1_000) < low <= cell_low
        assert high is None or cell_high <= high < cell_high + Fraction(1, 1_000)
        assert (low is None) == (symbol == 0)
        assert (high is None) == (symbol == book.levels - 1)
        assert abs(value - Fraction(int(book.values[symbol]), 1_000 * n)) <= Fraction(1, 2_000)
