"""Zero-error codes by exhaustive search, and how many sequences a release with memory has."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import isclose, log2, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.privacy import BoolArray, IntArray
from gateway.privacy.channels import (
    MAX_WORDS,
    Machine,
    branching_bound,
    confusability,
    cover_bound,
    deterministic_capacity,
    independence_number,
    output_sequences,
    path_product,
    strong_product,
    zero_error_code,
    zero_error_rate,
)
from gateway.privacy.information import JointRange, leakage, maximin_information, symmetrised_leakage

PENTAGON = np.eye(5, dtype=np.bool_) | np.roll(np.eye(5, dtype=np.bool_), 1, axis=1)
"""Five inputs, each followed by its own output or the next (Shannon); its capacity is log2 √5 (Lovász)."""
PENTAGON_CAPACITY = log2(5) / 2


def bools(rows: list[list[bool]]) -> BoolArray:
    return np.array(rows, np.bool_)


def rows_of(width: int) -> st.SearchStrategy[list[bool]]:
    return st.lists(st.booleans(), min_size=width, max_size=width).filter(any)


channels = st.integers(1, 5).flatmap(lambda n: st.lists(rows_of(n), min_size=1, max_size=5)).map(bools)


def largest_code(channel: BoolArray, uses: int) -> int:
    """By definition: over all sets of words, the largest whose sets of output words are disjoint."""
    outputs = [frozenset(np.flatnonzero(row).tolist()) for row in channel]
    heard = [set(product(*word)) for word in product(outputs, repeat=uses)]
    for size in range(len(heard), 1, -1):
        if any(
            len(set().union(*code)) == sum(len(said) for said in code) for code in combinations(heard, size)
        ):
            return size
    return 1


@settings(max_examples=80, deadline=None)
@given(channels)
def test_codes_are_as_large_as_any_set_of_distinguishable_words(channel: BoolArray) -> None:
    assert zero_error_code(channel) == largest_code(channel, 1)


@settings(max_examples=40, deadline=None)
@given(st.lists(rows_of(3), min_size=1, max_size=3).map(bools))
def test_codes_of_two_uses_too(channel: BoolArray) -> None:
    assert zero_error_code(channel, 2) == largest_code(channel, 2) >= zero_error_code(channel) ** 2


def all_subsets_best(n: int, edges: set[tuple[int, int]]) -> int:
    """The largest subset of n vertices that holds no edge, trying all of them."""
    pairs = [(1 << a) | (1 << b) for a, b in edges]
    return max(chosen.bit_count() for chosen in range(1 << n) if all(chosen & pair != pair for pair in pairs))


def graph_of(n: int, edges: set[tuple[int, int]]) -> BoolArray:
    graph = np.zeros((n, n), np.bool_)
    for a, b in edges:
        graph[a, b] = graph[b, a] = True
    return graph


def test_the_independence_number_is_that_of_all_subsets() -> None:
    rng = np.random.default_rng(6)
    for _ in range(400):
        n, share = int(rng.integers(1, 9)), rng.random()
        edges = {pair for pair in combinations(range(n), 2) if rng.random() < share}
        assert independence_number(graph_of(n, edges)) == all_subsets_best(n, edges)


def test_a_vertex_of_two_neighbours_need_not_be_in_any_largest_set() -> None:
    """Vertices of one neighbour may be taken at once; with two, as here, that would lose a word."""
    edges = {(2, 3), (0, 4), (3, 4), (2, 5), (3, 5), (0, 6), (2, 6)}
    assert independence_number(graph_of(7, edges)) == all_subsets_best(7, edges) == 4


def test_the_pentagon_says_more_in_two_uses_than_twice_in_one() -> None:
    assert zero_error_code(PENTAGON) == 2
    assert zero_error_code(PENTAGON, 2) == 5
    assert zero_error_rate(PENTAGON, 2) == PENTAGON_CAPACITY > zero_error_rate(PENTAGON)


def test_the_pentagons_capacity_lies_below_its_fractional_clique_cover() -> None:
    """Halves on the five outputs cover every input once: log2 5/2, which is L_s0 too; all outputs: log2 5."""
    assert cover_bound(PENTAGON) == cover_bound(PENTAGON, [Fraction(1, 2)] * 5) == log2(5) - 1
    assert symmetrised_leakage(JointRange(PENTAGON)) == cover_bound(PENTAGON) > PENTAGON_CAPACITY
    assert cover_bound(PENTAGON, [Fraction(1)] * 5) == log2(5)
    assert cover_bound(PENTAGON, [Fraction(w) for w in (1, 0, 1, 1, 0)]) == log2(3)
    assert maximin_information(JointRange(PENTAGON)) == 0


@settings(max_examples=120, deadline=None)
@given(channels)
def test_no_code_of_two_uses_exceeds_the_cover_bound(channel: BoolArray) -> None:
    assert zero_error_rate(channel) <= zero_error_rate(channel, 2) <= cover_bound(channel) + 1e-12
    reachable = channel[:, channel.any(axis=0)]
    assert cover_bound(reachable) == leakage(JointRange(reachable).swapped)


@settings(max_examples=60, deadline=None)
@given(channels)
def test_codes_never_exceed_the_leakage_over_all_input_ranges(channel: BoolArray) -> None:
    """Proposition 2: C ≤ sup L_s0, the supremum over ranges of the input; a code is such a range."""
    assert zero_error_rate(channel, 2) <= best_leakage(channel) + 1e-12


def best_leakage(channel: BoolArray) -> float:
    inputs = range(len(channel))
    chosen = [channel[list(some)] for size in inputs for some in combinations(inputs, size + 1)]
    return max(symmetrised_leakage(JointRange(part[:, part.any(axis=0)])) for part in chosen)


def test_proposition_2_needs_the_supremum_over_input_ranges() -> None:
    """Two clean inputs among eight that reach both outputs: one bit per use, though L_s0 of all is 0.15."""
    channel = bools([[True, False], [False, True], *[[True, True]] * 8])
    assert zero_error_rate(channel) == 1 == best_leakage(channel)
    assert isclose(symmetrised_leakage(JointRange(channel)), log2(10 / 9))


@settings(deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=9))
def test_a_function_has_exactly_the_capacity_of_its_outputs(outputs: list[int]) -> None:
    channel = np.array(outputs)[:, np.newaxis] == np.arange(5)
    capacity = deterministic_capacity(np.array(outputs))
    assert capacity == zero_error_rate(channel) == log2(len(set(outputs)))
    assert isclose(cover_bound(channel), capacity)
    if len(outputs) <= 6:
        assert isclose(zero_error_rate(channel, 2), capacity)


def test_a_product_is_confusable_when_each_part_may_be() -> None:
    graph = confusability(PENTAGON)
    double = strong_product(graph, graph)
    for (a, b), (c, d) in product(product(range(5), repeat=2), repeat=2):
        may = all(x == y or graph[x, y] for x, y in ((a, c), (b, d)))
        assert double[5 * a + b, 5 * c + d] == (may and (a, b) != (c, d))


def test_channels_without_outputs_and_searches_without_end_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one output"):
        confusability(bools([[True], [False]]))
    with pytest.raises(ValueError, match="at most 128 words"):
        zero_error_code(PENTAGON, 4)
    with pytest.raises(ValueError, match="use fewer inputs"):
        independence_number(np.zeros((MAX_WORDS + 1,) * 2, np.bool_))


@pytest.mark.parametrize(
    "weights", [[Fraction(1, 2)] * 4, [Fraction(1, 3)] * 5, [Fraction(2), Fraction(-1)] * 2]
)
def test_weights_that_are_no_cover_are_refused(weights: list[Fraction]) -> None:
    with pytest.raises(ValueError, match="cover every input"):
        cover_bound(PENTAGON, weights)


# --- memory ------------------------------------------------------------------------------------------


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    states, inputs = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    table = st.lists(st.integers(0, 99), min_size=states * inputs, max_size=states * inputs)

    def drawn(below: int) -> IntArray:
        return np.array(draw(table), np.int64).reshape(states, inputs) % below

    return Machine(drawn(states), drawn(draw(st.integers(1, 4))))


def every_run(machine: Machine, length: int) -> set[tuple[int, ...]]:
    """Feed all inputs and collect what is released."""
    seen = set()
    for inputs in product(range(machine.output.shape[1]), repeat=length):
        state, said = machine.start, []
        for given_input in inputs:
            said.append(int(machine.output[state, given_input]))
            state = int(machine.following[state, given_input])
        seen.add(tuple(said))
    return seen


@settings(max_examples=150, deadline=None)
@given(machines(), st.integers(0, 5))
def test_sequences_are_counted_exactly_and_never_exceed_the_branching_bound(
    machine: Machine, length: int
) -> None:
    sequences = every_run(machine, length)
    assert output_sequences(machine, length) == len(sequences)
    products = {said: counted_product(said, sequences) for said in sequences}
    assert {said: path_product(machine, said) for said in sequences} == products
    assert branching_bound(machine, length) == max(products.values()) >= len(sequences)
    assert sum(Fraction(1, paths) for paths in products.values()) == 1, "Kraft, with equality"


def counted_product(said: tuple[int, ...], sequences: set[tuple[int, ...]]) -> int:
    """∏ k_t along a sequence, k_t counted over all sequences that begin like it."""
    return prod(len({other[t] for other in sequences if other[:t] == said[:t]}) for t in range(len(said)))


def test_an_odometer_read_along_one_path_is_no_bound() -> None:
    """Theory A9: nine leaves, but one path counted a single bit. The largest product, 16, bounds them."""
    inputs = np.arange(8)
    following = np.stack([np.where(inputs == 0, 1, 2), np.full(8, 1), np.full(8, 2)])
    output = np.stack([np.minimum(inputs, 1), np.zeros(8, np.int64), inputs])
    machine = Machine(following, output)
    assert output_sequences(machine, 2) == 9
    assert log2(path_product(machine, [0, 0])) == 1 < log2(9)
    assert branching_bound(machine, 2) == path_product(machine, [1, 5]) == 16


def test_free_held_slots_would_reach_37_sequences_instead_of_4() -> None:
    """Theory A1: 8 slots of k = 2 with 2 bits, if only slots in which she spoke were charged."""

    def state(left: int, held: int) -> int:
        return 2 * left + held

    moves = [[(left - (said is not None and left > 0), said) for said in (None, 0, 1)] for left in (0, 1, 2)]
    following, output = np.zeros((6, 3), np.int64), np.zeros((6, 3), np.int64)
    for left, held in product(range(3), range(2)):
        for i, (after, said) in enumerate(moves[left]):
            symbol = held if said is None or left == 0 else said
            output[state(left, held), i] = symbol
            following[state(left, held), i] = state(after, symbol)
    assert output_sequences(Machine(following, output, state(2, 0)), 8) == 37


def test_a_long_horizon_is_counted_without_listing_it() -> None:
    machine = Machine(np.array([[0, 0]]), np.array([[0, 1]]))
    assert output_sequences(machine, 100) == branching_bound(machine, 100) == 1 << 100


def test_machines_that_lead_nowhere_are_refused() -> None:
    with pytest.raises(ValueError, match="every state and input"):
        Machine(np.zeros((1, 2), np.int64), np.zeros((1, 3), np.int64))
    for following, start in ([[1]], 0), ([[-1]], 0), ([[0]], 1):
        with pytest.raises(ValueError, match="between 0 and 0"):
            Machine(np.array(following), np.array([[0]]), start)
    with pytest.raises(ValueError, match="cannot follow"):
        path_product(Machine(np.array([[0]]), np.array([[7]])), [7, 8])
