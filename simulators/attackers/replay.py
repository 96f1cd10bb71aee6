"""Readings as the gateway would release them: every slot is closed by the production ``close_slot``."""

from __future__ import annotations

import numpy as np

from gateway.privacy import Groups, IntArray, Policy, Shelf, State, close_slot
from simulators.attackers.recording import FloatArray


def released_w(shelf: Shelf, series_mw: IntArray) -> FloatArray:
    """Return (T, n) the values (W) released for (T, n) mean powers (mW, or ``MISSING``).

    The roll has no group, holds what is missing, and has budget for every slot.

    Args:
        shelf: the codebooks of the n columns.
        series_mw: slot after slot.

    """
    policy = Policy.over(shelf, Groups([], []))
    state, released = State.initial(policy), np.empty(series_mw.shape, np.int64)
    for slot, values in enumerate(series_mw):
        state = close_slot(policy, state, slot, values).state
        released[slot] = state.held
    return released / 1000
