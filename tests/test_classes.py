"""Classes are a partition of the roll into households whose privacy is the same."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.classes import group_classes, household_classes
from gateway.policy import Book, Group, PolicyDocument
from gateway.privacy import Missing, microbits

BOOKS = (Book(0, 14_500_000, 4), Book(-500, 1_500, 2), Book(0, 14_500_000, 1))


def document(
    book_of: tuple[int, ...], *groups: Group, budget: int | None = None, slots: int = 48
) -> PolicyDocument:
    return PolicyDocument(
        topic="noiseless",
        slot_ms=1_800_000,
        window_ms=1_800_000 * slots,
        missing=Missing.HOLD,
        budget=budget,
        books=BOOKS,
        households=tuple(f"h-{i}" for i in range(len(book_of))),
        book_of=book_of,
        groups=groups,
    )


def test_households_of_one_codebook_and_one_price_are_a_class() -> None:
    public = document((0, 1, 0, 0), Group("g", (0, 2), "sum", 8), budget=168_000_000)
    classes = household_classes(public, public.compile())
    assert {one.label: one.positions.tolist() for one in classes} == {
        "4 levels of 0 W to 14.5 kW": [3],
        "4 levels of 0 W to 14.5 kW, 11 with groups": [0, 2],
        "2 levels of -0.5 W to 1.5 W": [1],
    }
    grouped = next(one for one in classes if one.positions.tolist() == [0, 2])
    assert (grouped.levels, grouped.price, grouped.budget) == (11, microbits(11), 168_000_000)
    assert grouped.codebook.levels == 4
    assert grouped.releases_per_window == 48


def test_a_class_without_a_price_never_runs_out() -> None:
    public = document((2,), budget=5)
    (only,) = household_classes(public, public.compile())
    assert only.price == 0
    assert only.releases_per_window is None


def test_a_budget_below_one_release_pays_for_none() -> None:
    public = document((0,), budget=1_999_999)
    assert household_classes(public, public.compile())[0].releases_per_window == 0


def test_groups_are_described_one_by_one() -> None:
    groups = (Group("b", (0, 2), "mean", 3), Group("a", (1,), "sum", 2))
    public = document((0, 1, 0), *groups)
    policy = public.compile()
    described = group_classes(public, policy)
    assert [(one.label, one.position, one.group) for one in described] == [
        ("group b", 0, groups[0]),
        ("group a", 1, groups[1]),
    ]
    assert [(one.reach, one.price) for one in described] == [(3, microbits(3)), (2, microbits(2))]
    assert [(one.codebook.lower, one.codebook.upper) for one in described] == [(0, 29_000_000), (-500, 1_500)]


def test_a_roll_without_groups_has_no_group_classes() -> None:
    public = document((0, 1))
    assert group_classes(public, public.compile()) == []


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 2), min_size=1, max_size=8),
    st.lists(st.tuples(st.sets(st.integers(0, 7), min_size=1), st.integers(2, 4)), max_size=3),
    st.none() | st.integers(0, 10**9),
)
def test_classes_partition_the_roll_and_describe_every_member(
    book_of: list[int], groups: list[tuple[set[int], int]], budget: int | None
) -> None:
    """Each household is in exactly one class, whose label no other class has."""
    chosen = [(tuple(sorted(m for m in members if m < len(book_of))), k) for members, k in groups]
    public = document(
        tuple(book_of),
        *(Group(f"g-{i}", members, "sum", k) for i, (members, k) in enumerate(chosen) if members),
        budget=budget,
    )
    policy = public.compile()
    classes = household_classes(public, policy)
    everyone = np.concatenate([one.positions for one in classes])
    assert sorted(everyone.tolist()) == list(range(len(book_of)))
    assert len({one.label for one in classes}) == len(classes)
    for one in classes:
        for position in one.positions.tolist():
            assert one.codebook is policy.households.codebooks[book_of[position]]
            assert one.levels == policy.levels[position]
            assert one.price == policy.price[position]
            assert one.budget == policy.budget[position]
