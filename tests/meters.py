"""Meters for tests, without a configuration."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gateway.meters import Meters, Quantity
from gateway.policy import PolicyDocument
from gateway.privacy import IntArray


def interval_meters(ids: Sequence[str], slot_ms: int) -> Meters:
    """Return one meter per household that says the energy of whole slots."""
    n = len(ids)
    return Meters(
        tuple(ids),
        np.arange(n),
        np.full(n, int(Quantity.INTERVAL)),
        np.full(n, slot_ms),
        np.full(n, slot_ms // 2),
        np.full(n, 10**9),
        np.zeros(n, np.int64),
        np.ones(n, np.bool_),
    )


def no_registers(n: int) -> IntArray:
    """Return the register columns of ``n`` meters that have none."""
    return np.zeros((0, n), np.int64)


def meters_for(document: PolicyDocument) -> tuple[Meters, IntArray]:
    """Return what a ledger is entered with: a meter per household, none with a register."""
    ids = document.households
    return interval_meters(ids, document.slot_ms), no_registers(len(ids))
