"""The certifier's bench and its critical points, against the whole roll and against all points."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.audit import certify
from gateway.audit.bench import Bench, Trials, seats_of
from gateway.audit.criticals import critical_totals, residual_interval
from gateway.policy import Book, Group, PolicyDocument
from gateway.privacy import MISSING, Missing, Rounding, State, close_slot

SLOT_MS = 1_000
ROUNDINGS = st.sampled_from([Rounding.NEAREST, Rounding.FEEDBACK])


@st.composite
def documents(draw: st.DrawFn, most_width: int = 7) -> PolicyDocument:
    """Two or three homes on small ranges in up to two groups, with weights, any rounding and any rule."""
    missing = draw(st.sampled_from(Missing))
    n = draw(st.integers(2, 3))
    books = []
    for _ in range(n):
        lower, width = draw(st.integers(-3, 3)), draw(st.integers(3, most_width))
        levels = draw(st.integers(2, 3)) + (missing is Missing.SYMBOL)
        books.append(Book(lower, lower + width, levels, draw(st.sampled_from(Rounding))))
    groups = []
    for i in range(draw(st.integers(0, 2))):
        members = tuple(sorted(draw(st.sets(st.integers(0, n - 1), min_size=1))))
        weights = draw(st.none() | st.tuples(*(st.sampled_from([-2, -1, 1, 2]) for _ in members)))
        groups.append(Group(f"g-{i}", members, "sum", draw(st.integers(2, 3)), weights, draw(ROUNDINGS)))
    return PolicyDocument(
        topic="t",
        slot_ms=SLOT_MS,
        window_ms=SLOT_MS * 4,
        missing=missing,
        budget=draw(st.none() | st.integers(0, 20_000_000)),
        books=tuple(books),
        households=tuple(f"h-{i}" for i in range(n)),
        book_of=tuple(range(n)),
        groups=tuple(groups),
    )


def compiles(document: PolicyDocument) -> bool:
    try:
        document.compile()
    except ValueError:
        return False
    return True


small = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@small
@given(st.data(), documents().filter(compiles))
def test_a_trial_says_what_the_whole_roll_would_say(data: st.DataObject, document: PolicyDocument) -> None:
    """Her own symbol, her groups' and her charge: with one stand-in per group for all other members."""
    policy = document.compile()
    one = data.draw(st.integers(0, len(document.households) - 1))
    bench = Bench(policy, one, close_slot)
    values = [data.draw(st.integers(book.lower, book.upper)) for book in document.books]
    values[one] = data.draw(st.integers(values[one] - 9, values[one] + 9) | st.just(MISSING))
    held = int(data.draw(st.sampled_from(bench.codebook.values.tolist())))
    own = (
        data.draw(st.integers(*residual_interval(bench.codebook)))
        if bench.codebook.rounding is Rounding.FEEDBACK
        else 0
    )
    kept = [
        data.draw(st.integers(*residual_interval(seat.codebook)))
        if seat.codebook.rounding is Rounding.FEEDBACK else 0
        for seat in bench.seats
    ]  # fmt: skip
    spent = data.draw(st.sampled_from([0, int(policy.budget[one])]))
    start = SLOT_MS * data.draw(st.integers(0, 9))

    state = State.initial(policy)
    residual, group_residual, holding = state.residual.copy(), state.group_residual.copy(), state.held.copy()
    residual[one], holding[one] = own, held
    group_residual[[seat.group for seat in bench.seats]] = kept
    window, paid = np.full_like(holding, policy.window_of(start)), np.zeros_like(holding)
    paid[one] = spent
    accounts = replace(state.households, window=window, spent=paid)
    # The others can always pay: what they hold back is not hers to say.
    rich = replace(policy, budget=np.where(np.arange(len(window)) == one, policy.budget, 1 << 60))
    whole = close_slot(
        rich,
        replace(state, households=accounts, held=holding, residual=residual, group_residual=group_residual),
        start,
        np.array(values),
    )
    totals = []
    for seat in bench.seats:
        group = document.groups[seat.group]
        weights = dict(zip(group.members, group.weighted().tolist(), strict=True))
        totals.append(sum(weight * values[m] for m, weight in weights.items() if m != one))
        assert seat.others[0] <= totals[-1] <= seat.others[1]
    trials = Trials(
        np.array([values[one]]),
        np.array(totals, np.int64).reshape(-1, 1),
        np.array([held]),
        np.array([own]),
        np.array(kept, np.int64).reshape(-1, 1),
    )
    outcome = bench.run(trials, spent=spent, start=start)
    groups = [seat.group for seat in bench.seats]
    assert outcome.symbols[:, 0].tolist() == [int(whole.symbols[one]), *whole.group_symbols[groups].tolist()]
    assert outcome.residual[0, 0] == whole.state.residual[one]
    assert outcome.residual[1:, 0].tolist() == whole.state.group_residual[groups].tolist()
    assert (outcome.charges[0], outcome.spent[0]) == (whole.charges[one], whole.spent[one])


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents(most_width=5).filter(compiles))
def test_counting_at_critical_points_finds_all_that_counting_everywhere_finds(
    document: PolicyDocument,
) -> None:
    """Every integer of hers, every total of the others, every residual: no topic has more, nor all together."""
    document = replace_budget(document)
    certificate = certify(document)
    assert certificate.holds, certificate
    policy = document.compile()
    for one in certificate.classes:
        household = document.households.index(one.household)
        bench = Bench(policy, household, close_slot)
        book, seats = bench.codebook, bench.seats
        spaces = [
            range(*shifted(residual_interval(each))) if each.rounding is Rounding.FEEDBACK else range(1)
            for each in (book, *(seat.codebook for seat in seats))
        ]
        readings = [MISSING, *range(book.lower, book.upper + 1)]
        combined = np.array(list(product(readings, *spaces)), np.int64).T
        n = combined.shape[1]
        held = np.full(n, int(book.values[-1]))
        sides = [range(seat.others[0], seat.others[1] + 1) for seat in seats]
        rows = list(product(*sides))
        for totals in rows[:: max(1, len(rows) // 60)]:
            spread = np.repeat(np.array(totals, np.int64).reshape(-1, 1), n, axis=1)
            outcome = bench.run(
                Trials(combined[0], spread, held, combined[1], combined[2:]), spent=0, start=0
            )
            seen = [len(np.unique(symbols)) for symbols in outcome.symbols]
            assert all(count <= topic.distinct for count, topic in zip(seen, one.topics, strict=True))
            assert len(np.unique(outcome.symbols, axis=1).T) <= one.joint


def replace_budget(document: PolicyDocument) -> PolicyDocument:
    """Return the document without a budget: she can always pay."""
    return PolicyDocument(
        **{name: getattr(document, name) for name in document.__struct_fields__} | {"budget": None}
    )


def shifted(interval: tuple[int, int]) -> tuple[int, int]:
    return interval[0], interval[1] + 1


@pytest.mark.parametrize("weight", [-3, -1, 1, 2])
def test_critical_totals_put_a_cut_just_below_at_and_above_each_end_of_her_contribution(weight: int) -> None:
    document = PolicyDocument(
        topic="t", slot_ms=1, window_ms=1, missing=Missing.HOLD, budget=None, books=(Book(-2, 9, 2),),
        households=("a", "b", "c"), book_of=(0, 0, 0), groups=(Group("g", (0, 1, 2), "sum", 4, (weight, 1, 1)),),
    )  # fmt: skip
    policy = document.compile()
    (seat,) = seats_of(policy, 0)
    totals = set(critical_totals(seat, policy.households.codebooks[0]).tolist())
    assert (min(totals), max(totals)) == seat.others == (-4, 18)
    for cut, end, beside in product(seat.codebook.cuts.tolist(), (-2 * weight, 9 * weight), (-1, 0, 1)):
        wanted = cut - end + beside
        assert wanted in totals or not -4 <= wanted <= 18
