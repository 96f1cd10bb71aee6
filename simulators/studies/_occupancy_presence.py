"""What one release decides about presence, exactly, from what is possible alone ([HT])."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gateway.privacy import BoolArray, Codebook
from gateway.privacy.hypothesis_tests import consistent_test, performance_bits


class Presence(NamedTuple):
    """What one release decides about presence, from what is possible alone.

    Attributes:
        performance_bits: ``P(T)`` of the best tests; −∞ when no output decides.
        decides: (k,) whether each symbol proves that somebody is home.
        undecided_range: the share of the range whose readings leave it open.

    """

    performance_bits: float
    decides: BoolArray
    undecided_range: float


def presence(book: Codebook, empty: tuple[int, int]) -> Presence:
    """Return what the best test of "is anyone home?" decides at each output, rounded to nearest.

    Empty, a home draws a power in ``empty``; with people in it, that or anything above. So no output proves
    that nobody is home, and those that an empty home cannot give prove that somebody is.

    Args:
        book: the codebook.
        empty: the least and the largest power of the empty home (mW), in the codebook's range.

    """
    low, high = book.encode(np.array(empty)).tolist()
    away, home = set(range(low, high + 1)), set(range(low, book.levels))
    test = consistent_test(away, home)
    decides = np.array([test.get(symbol) is True for symbol in range(book.levels)])
    width = book.cell(high)[1] - empty[0]
    return Presence(performance_bits(away, home), decides, width / (book.upper - empty[0]))
