"""Public pseudo-random numbers: a function of a seed, a household and a moment, the same for everybody.

Nothing here is secret. The thresholds of dither (theory A5) must only be uniform and unrelated between
households and slots; whoever knows the seed knows them, and noiseless privacy holds all the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from gateway.privacy.accounting import IntArray

KeyArray = npt.NDArray[np.uint64]
_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def keys_of(seed: str, names: Iterable[str]) -> KeyArray:
    """Return one 64-bit key per name, by SHA-256 of seed and name."""
    digests = (hashlib.sha256(f"{seed}\0{name}".encode()).digest() for name in names)
    return np.array([int.from_bytes(digest[:8], "little") for digest in digests], np.uint64)


def threshold(keys: KeyArray, moment: int, gap: IntArray) -> IntArray:
    """Return (n,) integers ``⌊u·gap⌋`` with u uniform on [0, 1) in steps of 2⁻³², from key and moment."""
    u = _mixed(keys ^ np.uint64(_mixed_int(moment & _MASK))) >> np.uint64(32)
    wide = gap.astype(np.uint64)
    high, low = wide >> np.uint64(16), wide & np.uint64(0xFFFF)
    # (gap·u) >> 32 without leaving 64 bits, for gaps below 2^48.
    scaled: KeyArray = (high * u + (low * u >> np.uint64(16))) >> np.uint64(16)
    return scaled.astype(np.int64)


def _mixed(x: KeyArray) -> KeyArray:
    """Return the finalizer of SplitMix64 (Steele, Lea, Flood 2014), element by element."""
    x = x + np.uint64(_GOLDEN)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _mixed_int(moment: int) -> int:
    return int(_mixed(np.array([moment], np.uint64))[0])
