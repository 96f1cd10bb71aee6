"""Array arithmetic is exact where plain products would leave 64 bits."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.slots.exact import energy_mwh, mean_mw, share


def array(value: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([value], np.int64)


@given(st.integers(-(10**15), 10**15), st.integers(500, 10**8))
def test_mean_power_is_rounded_down(energy: int, ms: int) -> None:
    assert mean_mw(array(energy), array(ms)).tolist() == [floor(Fraction(energy * 3_600_000, ms))]


@given(st.integers(0, 10**12), st.integers(0, 2 * 10**12))
@example(10**12, 2 * 10**12)
def test_energy_is_rounded_down(power: int, ms: int) -> None:
    assert energy_mwh(array(power), array(ms)).tolist() == [power * ms // 3_600_000]


@given(st.integers(0, 10**15), st.data())
def test_a_share_is_rounded_down(total: int, data: st.DataObject) -> None:
    """Also over gaps of many years."""
    whole = data.draw(st.integers(1, 10**4) | st.integers(2**31 - 2, 2**31 + 2) | st.integers(1, 10**13))
    part = data.draw(st.integers(0, whole))
    assert share(array(total), array(part), array(whole)).tolist() == [total * part // whole]
