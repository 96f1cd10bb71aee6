"""Intervals: a meter says how much energy went through in a fixed stretch of time.

All intervals of a slot are needed, also those of no energy: one that is not there makes the meter's value missing.
"""

from __future__ import annotations

import numpy as np

from gateway.meters import Meters
from gateway.privacy import MISSING, IntArray
from gateway.slots.exact import mean_mw, sums
from gateway.slots.held import Rows


def interval_means(rows: Rows, meters: Meters, slot_ms: int) -> IntArray:
    """Return (m,) mean powers (mW, rounded down) of one slot's intervals, MISSING for want of any."""
    there = sums(rows.meter, np.ones(len(rows.meter), np.int64), len(meters))
    needed = slot_ms // np.maximum(meters.span_ms, 1)
    return np.where(there == needed, mean_mw(sums(rows.meter, rows.value, len(meters)), slot_ms), MISSING)
