"""Exact integer arithmetic on arrays, where a plain product could leave 64 bits."""

from __future__ import annotations

import numpy as np

from gateway.privacy import BoolArray, IntArray

_MS_PER_HOUR = 3_600_000
# Below it a remainder times a part stays within 62 bits.
_SMALL = 2**31


def mean_mw(energy_mwh: IntArray, ms: IntArray | int) -> IntArray:
    """Return the mean power (mW, rounded down) of energies (mWh) over times (ms, positive)."""
    return energy_mwh // ms * _MS_PER_HOUR + energy_mwh % ms * _MS_PER_HOUR // ms


def energy_mwh(power_mw: IntArray, ms: IntArray) -> IntArray:
    """Return the energy (mWh, rounded down) of powers (mW, up to 10**12) over times (ms, up to 2 * 10**12)."""
    return power_mw // _MS_PER_HOUR * ms + power_mw % _MS_PER_HOUR * ms // _MS_PER_HOUR


def share(total: IntArray, part: IntArray, whole: IntArray) -> IntArray:
    """Return ``total * part // whole``, where ``0 <= part <= whole`` and ``whole`` is positive."""
    shares = total // whole * part
    small = whole < _SMALL
    shares[small] += total[small] % whole[small] * part[small] // whole[small]
    for one in np.flatnonzero(~small):
        shares[one] = int(total[one]) * int(part[one]) // int(whole[one])
    return shares


def sums(meter: IntArray, values: IntArray, meters: int) -> IntArray:
    """Return (meters,) the sum of each meter's values; 0 where she has none."""
    total = np.zeros(meters, np.int64)
    np.add.at(total, meter, values)
    return total


def starts(meter: IntArray) -> BoolArray:
    """Return where another meter begins, in rows that stand meter by meter."""
    first = np.ones(len(meter), np.bool_)
    first[1:] = meter[1:] != meter[:-1]
    return first


def ends(meter: IntArray) -> BoolArray:
    """Return where a meter ends, in rows that stand meter by meter."""
    last = np.ones(len(meter), np.bool_)
    last[:-1] = meter[1:] != meter[:-1]
    return last


def latest(chosen: BoolArray) -> IntArray:
    """Return for each row the position of the latest chosen row up to it; the first row must be chosen."""
    rows: IntArray = np.maximum.accumulate(np.where(chosen, np.arange(len(chosen)), 0))
    return rows
