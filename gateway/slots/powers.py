"""Power samples: a meter says what goes through at a moment.

A sample holds until the next one, the last one of a slot until its end, the first one also back to its start; but
none of these stretches counts for longer than the meter's ``gap_ms``. A slot of which less than half is covered so
is missing; else its value is the mean over what is covered. Samples of other slots say nothing about a slot.
"""

from __future__ import annotations

import numpy as np

from gateway.meters import Meters
from gateway.privacy import MISSING, IntArray
from gateway.slots.exact import starts, sums
from gateway.slots.held import Rows


def power_means(rows: Rows, meters: Meters, start_ms: int, slot_ms: int) -> IntArray:
    """Return (m,) mean powers (mW, rounded down) of one slot's samples, MISSING where too little is covered."""
    first = starts(rows.meter)
    until = np.full(len(rows.meter), start_ms + slot_ms)
    until[:-1] = np.where(first[1:], until[:-1], rows.time_ms[1:])
    gap = meters.gap_ms[rows.meter]
    holds = np.minimum(until - rows.time_ms, gap)
    holds += np.where(first, np.minimum(rows.time_ms - start_ms, gap), 0)
    # At most 10**10 mW over a day of 8.64 * 10**7 ms: within 64 bits.
    total = sums(rows.meter, rows.value * holds, len(meters))
    covered = sums(rows.meter, holds, len(meters))
    return np.where(2 * covered < slot_ms, MISSING, total // np.maximum(covered, 1))
