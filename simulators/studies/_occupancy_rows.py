"""The rows of the study of occupancy: what its figures and findings are made from."""

from __future__ import annotations

from typing import NamedTuple

from gateway.privacy import Rounding
from simulators.studies._releases import BLIND, FITTED, UNIFORM

KINDS = (
    (UNIFORM, Rounding.NEAREST),
    (FITTED, Rounding.NEAREST),
    (BLIND, Rounding.NEAREST),
    (FITTED, Rounding.FEEDBACK),
)
FLEET = "simulated fleet"
ONE_RELEASE, ONE_DAY, UNTRAINED = "one release", "a day of releases", "a day, untrained"
ACTIVITY = "activity, one release"
SLOTS, SLOT_MINUTES = 48, 30


class Score(NamedTuple):
    """One row: what an adversary gains over a blind guess, with the 95 % interval over homes (or days)."""

    data: str
    adversary: str
    codebook: str
    rounding: str
    levels: int | None
    epsilon_bits: float | None
    advantage: float
    low: float
    high: float


class Exact(NamedTuple):
    """One row: what consistent tests of one release decide, and what the codebook costs in accuracy.

    Attributes:
        codebook: its kind; rounded to nearest.
        levels: k.
        epsilon_bits: log2 k.
        performance_bits: P(T) of the home where it is largest; −∞ where no output decides.
        undecided_range: the share of the range that is left open, mean over homes.
        decided_share: the share of half hours of lived-in days that are proved to be lived in.
        wrong_share: the same of empty days: 0, or the test is not consistent.
        rmse_w: root mean square error of a release (W).

    """

    codebook: str
    levels: int
    epsilon_bits: float
    performance_bits: float
    undecided_range: float
    decided_share: float
    wrong_share: float
    rmse_w: float
