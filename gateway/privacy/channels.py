"""Zero-error capacity of small channels, exactly: a release seen as a code that one household might send.

A channel is an (inputs, outputs) boolean matrix of which output can follow which input. Two inputs are
confusable when they share an output; a zero-error code has no confusable words (Shannon 1956; [NP] II).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import log2, prod

import numpy as np

from gateway.privacy.accounting import BoolArray, IntArray
from gateway.privacy.information import bits

MAX_WORDS = 128
"""The search is exponential: words of inputs, over all uses, that it accepts."""


def confusability(channel: BoolArray) -> BoolArray:
    """Return the (m, m) graph of distinct inputs that share an output.

    Raises:
        ValueError: an input has no output.

    """
    if not channel.any(axis=1).all():
        raise ValueError("every input of a channel has at least one output")
    shared = (channel.astype(np.int64) @ channel.T.astype(np.int64)) > 0
    return shared & ~np.eye(len(channel), dtype=np.bool_)


def strong_product(one: BoolArray, other: BoolArray) -> BoolArray:
    """Return the confusability graph of two uses: pairs whose parts are each equal or confusable."""
    closed = np.kron(_with_loops(one), _with_loops(other))
    return closed & ~np.eye(len(closed), dtype=np.bool_)


def _with_loops(graph: BoolArray) -> BoolArray:
    return graph | np.eye(len(graph), dtype=np.bool_)


def independence_number(graph: BoolArray) -> int:
    """Return the size of the largest set of vertices without an edge: exact, by branch and bound on bitsets.

    Raises:
        ValueError: more than ``MAX_WORDS`` vertices.

    """
    if len(graph) > MAX_WORDS:
        raise ValueError(f"{len(graph)} words: at most {MAX_WORDS} are searched; use fewer inputs or uses")
    closed = [sum(1 << int(v) for v in np.flatnonzero(row)) for row in _with_loops(graph)]
    return _largest((1 << len(graph)) - 1, closed)


def _largest(candidates: int, closed: Sequence[int]) -> int:
    """Return the independence number of the graph induced on ``candidates``."""
    if not candidates:
        return 0
    degrees = {v: (closed[v] & candidates).bit_count() - 1 for v in _members(candidates)}
    loneliest = min(degrees, key=degrees.__getitem__)
    if degrees[loneliest] <= 1:  # some largest set holds it
        return 1 + _largest(candidates & ~closed[loneliest], closed)
    busiest = max(degrees, key=degrees.__getitem__)
    with_it = 1 + _largest(candidates & ~closed[busiest], closed)
    return max(with_it, _largest(candidates & ~(1 << busiest), closed))


def _members(bitset: int) -> Iterator[int]:
    while bitset:
        lowest = bitset & -bitset
        yield lowest.bit_length() - 1
        bitset ^= lowest


def zero_error_code(channel: BoolArray, uses: int = 1) -> int:
    """Return the most words of ``uses`` inputs that no output confuses.

    Raises:
        ValueError: fewer than one use, or more words than ``MAX_WORDS``.

    """
    if uses < 1 or len(channel) ** uses > MAX_WORDS:
        raise ValueError(f"{uses} uses of {len(channel)} inputs: at least one, and at most {MAX_WORDS} words")
    graph = single = confusability(channel)
    for _ in range(uses - 1):
        graph = strong_product(graph, single)
    return independence_number(graph)


def zero_error_rate(channel: BoolArray, uses: int = 1) -> float:
    """Return what ``uses`` uses reach, in bits per use: a lower bound of the zero-error capacity."""
    return log2(zero_error_code(channel, uses)) / uses


def cover_bound(channel: BoolArray, weights: Sequence[Fraction] | None = None) -> float:
    """Return an upper bound of the zero-error capacity in bits per use, by a fractional clique cover.

    Words of a code have disjoint outputs. So if the outputs of every input weigh at least 1 together, a code
    has at most as many words as all outputs weigh; over several uses weights multiply. Equal weights
    ``1 / min_x|⟦Y|x⟧|``, the default, give ``L(Y;X)``.

    Raises:
        ValueError: the weights are not as many as outputs, negative, or cover some input by less than 1.

    """
    outputs = channel.shape[1]
    fewest = max(1, int(channel.sum(axis=1).min()))
    given = [Fraction(1, fewest)] * outputs if weights is None else list(weights)
    if len(given) != outputs or min(given) < 0 or any(_weight(row, given) < 1 for row in channel):
        raise ValueError("weights cover every input by at least 1, none negative, one per output")
    reachable = np.logical_or.reduce(channel, axis=0)
    return bits(_weight(reachable, given))


def _weight(chosen: BoolArray, weights: Sequence[Fraction]) -> Fraction:
    """Return what the chosen outputs weigh together."""
    return sum((weights[y] for y in np.flatnonzero(chosen).tolist()), Fraction(0))


def deterministic_capacity(outputs: IntArray) -> float:
    """Return the zero-error capacity of a function, given the output of each input: exactly, in bits per use.

    Inputs are confusable just when their outputs are equal, so codes of n uses have ``reachable outputs^n``
    words and no more.
    """
    return log2(len(np.unique(outputs)))


@dataclass(frozen=True, eq=False)
class Machine:
    """A release with memory: a finite state that inputs move.

    Attributes:
        following: (states, inputs) the next state.
        output: (states, inputs) the symbol released.
        start: the public state before the first input.

    Raises:
        ValueError: the arrays differ in shape, or a state leads outside.

    """

    following: IntArray
    output: IntArray
    start: int = 0

    def __post_init__(self) -> None:
        states = len(self.following)
        if self.following.shape != self.output.shape or not self.following.size:
            raise ValueError("a machine needs the next state and the output of every state and input")
        named = [self.start, *self.following.ravel().tolist()]
        if not 0 <= min(named) <= max(named) < states:
            raise ValueError(f"next states lie between 0 and {states - 1}")

    def followers(self, believed: frozenset[int]) -> dict[int, frozenset[int]]:
        """Return the outputs that can come next and the states each would leave possible.

        Args:
            believed: the states that are possible after the outputs so far.

        """
        rows = sorted(believed)
        symbols, states = self.output[rows].ravel().tolist(), self.following[rows].ravel().tolist()
        after: dict[int, set[int]] = {}
        for symbol, state in zip(symbols, states, strict=True):
            after.setdefault(symbol, set()).add(state)
        return {symbol: frozenset(reached) for symbol, reached in after.items()}


def output_sequences(machine: Machine, length: int) -> int:
    """Return how many output sequences of ``length`` there are, exactly; log2 of it bounds what was said."""
    return _over_prefixes(machine, length, sum)


def branching_bound(machine: Machine, length: int) -> int:
    """Return ``max over paths ∏ k_t``, k_t the outputs that can follow each public prefix ([NP] Thm 2).

    There are at most that many output sequences. The product along one path alone, which is what an odometer
    shows, is no such bound when k_t depends on the symbols (theory A9).
    """
    return _over_prefixes(machine, length, lambda below: len(below) * max(below))


def path_product(machine: Machine, outputs: Sequence[int]) -> int:
    """Return ``∏ k_t`` along one sequence of outputs: what an odometer has counted at its end.

    Raises:
        ValueError: the machine cannot release that sequence.

    """
    believed = frozenset({machine.start})
    counts: list[int] = []
    for symbol in outputs:
        after = machine.followers(believed)
        if symbol not in after:
            raise ValueError(f"output {symbol} cannot follow the {len(counts)} before it")
        counts.append(len(after))
        believed = after[symbol]
    return prod(counts)


def _over_prefixes(machine: Machine, length: int, combine: Callable[[list[int]], int]) -> int:
    """Fold the tree of output prefixes from its leaves, 1 each; equal beliefs have equal subtrees."""

    @cache
    def below(believed: frozenset[int], remaining: int) -> int:
        if remaining == 0:
            return 1
        return combine([below(states, remaining - 1) for states in machine.followers(believed).values()])

    return below(frozenset({machine.start}), length)
