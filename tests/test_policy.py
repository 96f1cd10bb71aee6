"""The policy document is all that is public: it survives the ledger, names itself, and sets the prices."""

from __future__ import annotations

import json
from decimal import Decimal
from hashlib import sha256
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.config import Config
from gateway.policy import (
    DEFAULT_LEVELS,
    DEFAULT_RANGE_MW,
    Book,
    Group,
    PolicyDocument,
    PseudonymTerms,
    document_of,
    members_of,
)
from gateway.privacy import MICROBITS_PER_BIT, Missing, Rounding, WhenSpent, keys_of, microbits

HALF_HOUR_MS, DAY_MS = 1_800_000, 86_400_000

PLAIN = PolicyDocument(
    topic="noiseless",
    slot_ms=HALF_HOUR_MS,
    window_ms=DAY_MS,
    missing=Missing.HOLD,
    budget=168_000_000,
    books=(Book(0, 14_500_000, 4), Book(-3_000_000, 8_000_000, 5)),
    households=("h-001", "h-002", "x"),
    book_of=(0, 1, 0),
    groups=(Group("feeder-12", (0, 1), "sum", 8),),
)

CHANGES: dict[str, Any] = {
    "topic": "elsewhere",
    "slot_ms": HALF_HOUR_MS // 2,
    "window_ms": 2 * DAY_MS,
    "missing": Missing.FLOOR,
    "budget": None,
    "books": (Book(0, 14_500_000, 4), Book(-3_000_000, 8_000_000, 6)),
    "households": ("h-001", "h-003", "x"),
    "book_of": (0, 1, 1),
    "groups": (Group("feeder-12", (0, 1), "mean", 8),),
    "seed": "another",
    "fresh_windows": True,
    "when_spent": WhenSpent.COARSEN,
    "pseudonyms": PseudonymTerms(DAY_MS, "0123"),
}

BOOK_CHANGES: dict[str, Any] = {
    "lower": -1,
    "upper": 14_500_001,
    "levels": 5,
    "rounding": Rounding.FEEDBACK,
    "values": (0, 1, 2, 3),
    "cuts": (1, 2, 3),
}

GROUP_CHANGES: dict[str, Any] = {
    "name": "f",
    "members": (0, 2),
    "query": "mean",
    "reach": 4,
    "weights": (1, 1),
    "rounding": Rounding.FEEDBACK,
    "calibration": "paper",
}


def config_of(**tables: Any) -> Config:  # noqa: ANN401 - as TOML gives it
    return Config.model_validate(tables)


def households(n: int, **fields: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    return [{"id": f"h-{i:03}", **fields} for i in range(1, n + 1)]


names = st.text('abcdefgh-0123456789äß"\\', min_size=1, max_size=8)


@st.composite
def documents(draw: st.DrawFn) -> PolicyDocument:
    points = st.none() | st.lists(st.integers(-99, 10**12), max_size=3).map(tuple)
    lower, upper, levels = st.integers(-99, 0), st.integers(1, 10**12), st.integers(2, 9)
    rounding = st.sampled_from(Rounding)
    books = draw(
        st.lists(st.builds(Book, lower, upper, levels, rounding, points, points), min_size=1, max_size=5)
    )
    roll = draw(st.lists(names, min_size=1, max_size=5))
    members = st.sets(st.integers(0, len(roll) - 1), min_size=1).map(lambda chosen: tuple(sorted(chosen)))
    query = st.sampled_from(["sum", "mean"])
    weights = st.none() | st.lists(st.integers(-9, 9), min_size=1, max_size=5).map(tuple)
    calibration = st.sampled_from(["certified", "paper"])
    groups = st.builds(Group, names, members, query, st.integers(1, 9), weights, rounding, calibration)
    return PolicyDocument(
        topic=draw(names),
        slot_ms=draw(st.integers(1, DAY_MS)),
        window_ms=draw(st.integers(1, 10**12)),
        missing=draw(st.sampled_from(Missing)),
        budget=draw(st.none() | st.integers(0, 10**15)),
        books=tuple(books),
        households=tuple(roll),
        book_of=tuple(draw(st.integers(0, len(books) - 1)) for _ in roll),
        groups=tuple(draw(st.lists(groups, max_size=3))),
        seed=draw(st.just("") | names),
        fresh_windows=draw(st.booleans()),
        pseudonyms=draw(st.none() | st.builds(PseudonymTerms, st.integers(1, 10**12), names)),
    )


@settings(deadline=None)
@given(documents())
def test_a_document_survives_its_json_form(document: PolicyDocument) -> None:
    restored = PolicyDocument.decode(document.encode())
    assert restored == document
    assert restored.encode() == document.encode()
    assert restored.fingerprint == document.fingerprint
    assert isinstance(restored.missing, Missing)
    assert all(isinstance(one.rounding, Rounding) for one in (*restored.books, *restored.groups))


@settings(deadline=None)
@given(documents(), documents())
def test_documents_have_one_fingerprint_exactly_when_they_are_equal(
    one: PolicyDocument, other: PolicyDocument
) -> None:
    assert (one.fingerprint == other.fingerprint) == (one == other)


def test_all_fields_are_covered_by_the_changes() -> None:
    assert set(CHANGES) == set(PolicyDocument.__struct_fields__)
    assert set(BOOK_CHANGES) == set(Book.__struct_fields__)
    assert set(GROUP_CHANGES) == set(Group.__struct_fields__)


@pytest.mark.parametrize("field", CHANGES)
def test_any_changed_field_is_another_policy(field: str) -> None:
    changed = msgspec.structs.replace(PLAIN, **{field: CHANGES[field]})
    assert changed.fingerprint != PLAIN.fingerprint


@pytest.mark.parametrize("field", GROUP_CHANGES)
def test_any_changed_field_of_a_group_is_another_policy(field: str) -> None:
    group = msgspec.structs.replace(PLAIN.groups[0], **{field: GROUP_CHANGES[field]})
    assert msgspec.structs.replace(PLAIN, groups=(group,)).fingerprint != PLAIN.fingerprint


@pytest.mark.parametrize("field", BOOK_CHANGES)
def test_any_changed_field_of_a_codebook_is_another_policy(field: str) -> None:
    book = msgspec.structs.replace(PLAIN.books[0], **{field: BOOK_CHANGES[field]})
    assert msgspec.structs.replace(PLAIN, books=(book, PLAIN.books[1])).fingerprint != PLAIN.fingerprint


def test_a_fingerprint_is_stable() -> None:
    """Ledgers of earlier versions name their epochs by it."""
    assert PLAIN.fingerprint[:16] == "1050658eb9eede9c"


def test_a_document_from_before_there_was_any_rounding_means_the_same() -> None:
    """Releases decided under it are still to be rendered, byte for byte."""
    new = ("seed", "fresh_windows", "rounding", "values", "cuts", "weights", "calibration")

    def aged(value: Any) -> Any:  # noqa: ANN401 - any JSON
        if isinstance(value, dict):
            return {name: aged(inner) for name, inner in value.items() if name not in new}
        return [aged(inner) for inner in value] if isinstance(value, list) else value

    earlier = msgspec.json.encode(aged(json.loads(PLAIN.encode())))
    assert sha256(earlier).hexdigest()[:16] == "1050658eb9eede9c"
    assert PolicyDocument.decode(earlier) == PLAIN


@pytest.mark.parametrize(
    "broken", [b"", b"{}", b"[]", PLAIN.encode()[:-2], PLAIN.encode().replace(b"hold", b"guess")]
)
def test_a_damaged_document_is_refused(broken: bytes) -> None:
    with pytest.raises((msgspec.DecodeError, msgspec.ValidationError)):
        PolicyDocument.decode(broken)


@pytest.mark.parametrize(
    ("start_ms", "window"),
    [(0, 0), (DAY_MS - 1, 0), (DAY_MS, DAY_MS), (3 * DAY_MS + 5, 3 * DAY_MS), (-1, -DAY_MS)],
)
def test_a_slot_belongs_to_the_window_of_its_start(start_ms: int, window: int) -> None:
    """Aligned to UTC."""
    assert PLAIN.window_of(start_ms) == window


# --- prices ------------------------------------------------------------------------------------------


def test_a_day_costs_what_the_design_says() -> None:
    """48 slots of 2 bits alone and 3 in a group cost 48·log2(1 + 3 + 7) = 166.1 bits; 168 afford them all."""
    document = document_of(
        config_of(
            release={"epsilon": 2, "range": ["0 W", "14.5 kW"]},
            budget={"window": "24h", "bits": 168},
            household=households(12),
            group=[{"name": "feeder-12", "members": ["h-0*"], "epsilon": 3}],
        )
    )
    policy = document.compile()
    assert policy.levels.tolist() == [11] * 12
    assert policy.price.tolist() == [microbits(11)] * 12
    assert round(48 * int(policy.price[0]) / MICROBITS_PER_BIT, 1) == 166.1
    assert policy.budget.tolist() == [168_000_000] * 12
    assert int(policy.budget[0]) // int(policy.price[0]) == 48


def test_without_a_budget_a_window_costs_what_its_slots_cost() -> None:
    policy = document_of(config_of(household=households(3))).compile()
    assert policy.price.tolist() == [2_000_000] * 3
    assert policy.budget.tolist() == [48 * 2_000_000] * 3


@given(st.integers(1, 10**15))
def test_a_budget_written_to_the_microbit_is_exactly_that(microbits_: int) -> None:
    """Up to the largest that the configuration takes; 10⁶ times 1.1 in doubles is a little more."""
    bits = float(Decimal(microbits_).scaleb(-6))
    assert document_of(config_of(household=households(1), budget={"bits": bits})).budget == microbits_


@pytest.mark.parametrize(("bits", "budget"), [(0.0000014, 1), (0.0000016, 2), (1.1, 1_100_000)])
def test_a_finer_budget_is_rounded_to_the_nearest_microbit(bits: float, budget: int) -> None:
    assert document_of(config_of(household=households(1), budget={"bits": bits})).budget == budget


def test_without_a_budget_none_is_in_the_document() -> None:
    assert document_of(config_of(household=households(1))).budget is None


def test_prices_are_by_what_each_household_takes_part_in() -> None:
    """Her own levels, plus one less than the reach of each of her groups."""
    policy = PLAIN.compile()
    assert policy.reach.tolist() == [8]
    assert policy.levels.tolist() == [4 + 7, 5 + 7, 4]
    assert policy.group_price.tolist() == [3_000_000]
    assert policy.missing is Missing.HOLD


def test_a_missing_symbol_is_one_of_the_levels() -> None:
    """k stays what is charged; k − 1 cells are left for readings."""
    policy = msgspec.structs.replace(PLAIN, missing=Missing.SYMBOL).compile()
    assert [book.levels for book in policy.households.codebooks] == [4, 5]
    assert all(book.missing_symbol for book in policy.households.codebooks)
    assert policy.levels.tolist() == [11, 12, 4]


def test_a_codebook_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        msgspec.structs.replace(PLAIN, books=(Book(0, 3, 9), Book(0, 9, 2))).compile()


def test_a_very_long_window_still_compiles() -> None:
    """Ten years of the shortest slots at the most bits; its price may not overflow."""
    document = document_of(
        config_of(
            household=households(1),
            slots={"length": "1s"},
            release={"epsilon": 20},
            budget={"window": "3660d"},
        )
    )
    assert document.compile().budget.tolist() == [86_400 * 3_660 * 20_000_000]


@pytest.mark.parametrize(
    ("window", "problem"),
    [
        ("3661d", "more than ten years"),
        ("1000000000d", "more than ten years"),
        ("9999999999999999d", "not a number with a known unit"),
    ],
)
def test_a_window_that_is_too_long_to_count_is_refused_by_name(window: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as refusal:
        config_of(household=households(1), budget={"window": window})
    assert "budget.window" in str(refusal.value)


# --- from the configuration --------------------------------------------------------------------------


def test_a_household_overrides_the_release_table_which_overrides_the_defaults() -> None:
    document = document_of(
        config_of(
            release={"levels": 5},
            household=[
                {"id": "a"},
                {"id": "b", "levels": 3},
                {"id": "c", "range": ["-1 kW", "1 kW"]},
                {"id": "d", "epsilon": 3, "range": ["0 W", "1 W"]},
            ],
        )
    )
    assert [document.books[b] for b in document.book_of] == [
        Book(*DEFAULT_RANGE_MW, 5),
        Book(*DEFAULT_RANGE_MW, 3),
        Book(-1_000_000, 1_000_000, 5),
        Book(0, 1_000, 8),
    ]
    plain = document_of(config_of(household=[{"id": "a"}]))
    assert plain.books == (Book(*DEFAULT_RANGE_MW, DEFAULT_LEVELS),)


def test_equal_households_share_a_codebook_and_the_roll_keeps_its_order() -> None:
    roll = [{"id": name, "levels": levels} for name, levels in (("z", 7), ("a", 2), ("m", 7), ("b", 2))]
    document = document_of(config_of(household=roll))
    assert document.households == ("z", "a", "m", "b")
    assert len(document.books) == 2
    assert [document.books[b].levels for b in document.book_of] == [7, 2, 7, 2]


def test_everything_public_in_the_configuration_is_in_the_document() -> None:
    document = document_of(
        config_of(
            output={"topic": "city/out"},
            slots={"length": "15min", "missing": "symbol"},
            budget={"window": "7d", "bits": 12.5, "fresh_feedback": True, "when_spent": "withhold"},
            release={"rounding": "dither", "seed": "2026"},
            household=households(2),
            group=[
                {"name": "g", "members": ["*"], "query": "mean", "levels": 5},
                {
                    "name": "w",
                    "members": ["*"],
                    "levels": 6,
                    "weights": {"h-002": -3},
                    "rounding": "feedback",
                    "calibration": "paper",
                },
            ],
        )
    )
    assert json.loads(document.encode()) == {
        "topic": "city/out",
        "slot_ms": 900_000,
        "window_ms": 7 * DAY_MS,
        "missing": "symbol",
        "budget": 12_500_000,
        "books": [
            {
                "lower": 0,
                "upper": 14_500_000,
                "levels": 4,
                "rounding": "dither",
            }
        ],
        "households": ["h-001", "h-002"],
        "book_of": [0, 0],
        "groups": [
            {
                "name": "g",
                "members": [0, 1],
                "query": "mean",
                "reach": 5,
            },
            {
                "name": "w",
                "members": [0, 1],
                "query": "sum",
                "reach": 6,
                "weights": [1, -3],
                "rounding": "feedback",
                "calibration": "paper",
            },
        ],
        "seed": "2026",
        "fresh_windows": True,
        "when_spent": "withhold",
    }


def test_the_seed_is_the_topic_unless_told_and_decides_the_keys() -> None:
    plain = document_of(config_of(household=households(2), output={"topic": "city/out"}))
    assert plain.seed == "city/out"
    told = document_of(config_of(household=households(2), release={"seed": "x"}))
    assert told.seed == "x"
    keys = told.compile().households.keys.tolist()
    assert keys == keys_of("x", ["h-001", "h-002"]).tolist()
    assert set(keys).isdisjoint(plain.compile().households.keys.tolist())


def test_the_policy_knows_the_windows_of_its_document() -> None:
    policy = msgspec.structs.replace(PLAIN, fresh_windows=True).compile()
    assert policy.fresh_windows
    assert not PLAIN.compile().fresh_windows
    assert [policy.window_of(start) for start in (-1, 0, DAY_MS - 1, DAY_MS)] == [-DAY_MS, 0, 0, DAY_MS]


@pytest.mark.parametrize(
    ("patterns", "positions"),
    [
        (["*"], (0, 1, 2, 3, 4)),
        (["h-0*"], (0, 1, 3)),
        (["h-00?"], (0, 1)),
        (["h-00[2-9]"], (1,)),
        (["h-*", "h-001"], (0, 1, 3)),
        (["x", "h-001"], (0, 2)),
        (["H-001"], ()),
        (["h-00"], ()),
        ([], ()),
    ],
)
def test_patterns_name_members_once_in_the_rolls_order(
    patterns: list[str], positions: tuple[int, ...]
) -> None:
    """Case matters, and a pattern matches whole ids."""
    assert members_of(patterns, ["h-001", "h-002", "x", "h-010", "X"]) == positions
