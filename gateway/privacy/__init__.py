"""The mathematics of noiseless privacy: integers in, symbols and charges out. No I/O, clock or randomness."""

from gateway.privacy.accounting import (
    MICROBITS_PER_BIT,
    Account,
    BoolArray,
    IntArray,
    levels_within,
    microbits,
)
from gateway.privacy.capacity import CapacityBound, capacity_bound
from gateway.privacy.codebooks import MAX_CELLS, Codebook, Shelf, uniform
from gateway.privacy.groups import Groups, certified_levels, group_codebook, reach_of
from gateway.privacy.release import MISSING, Closed, Missing, Policy, State, close_slot

__all__ = [
    "MAX_CELLS",
    "MICROBITS_PER_BIT",
    "MISSING",
    "Account",
    "BoolArray",
    "CapacityBound",
    "Closed",
    "Codebook",
    "Groups",
    "IntArray",
    "Missing",
    "Policy",
    "Shelf",
    "State",
    "capacity_bound",
    "certified_levels",
    "close_slot",
    "group_codebook",
    "levels_within",
    "microbits",
    "reach_of",
    "uniform",
]
