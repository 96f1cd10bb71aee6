"""The mathematics of noiseless privacy: integers in, symbols and charges out. No I/O, clock or randomness.

What releases and charges a slot stands here by name. The theory around it is in modules of their own:

- :mod:`~gateway.privacy.information`: uncertain variables, their entropies, leakages and maximin information
- :mod:`~gateway.privacy.intervals`: exact unions of intervals, for the continuous ones
- :mod:`~gateway.privacy.channels`: zero-error capacity of small channels, with and without memory
- :mod:`~gateway.privacy.guarantees`: Theorems 1 to 8 of [NP] as bounds of a mechanism
- :mod:`~gateway.privacy.policies`, :mod:`~gateway.privacy.regions`: the optimal policies of [DP]
- :mod:`~gateway.privacy.hypothesis_tests`: non-stochastic hypothesis tests of [HT]

docs/theory.md is their text, docs/limits.md what they do not promise.
"""

from gateway.privacy import channels, guarantees, hypothesis_tests, information, intervals, policies, regions
from gateway.privacy.accounting import (
    MICROBITS_PER_BIT,
    Account,
    BoolArray,
    IntArray,
    levels_within,
    microbits,
    microbits_of,
)
from gateway.privacy.capacity import CapacityBound, capacity_bound
from gateway.privacy.codebooks import (
    MAX_CELLS,
    Codebook,
    Rounding,
    Shelf,
    blind_band,
    both_ends,
    from_json,
    merged,
    middle_cell,
    on_levels,
    to_json,
    uniform,
    with_missing_symbol,
)
from gateway.privacy.composition import (
    BudgetSpentError,
    Channel,
    CompositionError,
    Filter,
    Odometer,
    additive,
    coarsened_levels,
    composed,
    refined,
)
from gateway.privacy.fitting import fitted
from gateway.privacy.groups import (
    Calibration,
    Groups,
    Reach,
    certified_levels,
    feedback_levels,
    group_codebook,
    paper_levels,
    reach_in,
    reach_of,
)
from gateway.privacy.prf import keys_of, threshold
from gateway.privacy.release import MISSING, Closed, Missing, Policy, State, WhenSpent, close_slot

__all__ = [
    "MAX_CELLS",
    "MICROBITS_PER_BIT",
    "MISSING",
    "Account",
    "BoolArray",
    "BudgetSpentError",
    "Calibration",
    "CapacityBound",
    "Channel",
    "Closed",
    "Codebook",
    "CompositionError",
    "Filter",
    "Groups",
    "IntArray",
    "Missing",
    "Odometer",
    "Policy",
    "Reach",
    "Rounding",
    "Shelf",
    "State",
    "WhenSpent",
    "additive",
    "blind_band",
    "both_ends",
    "capacity_bound",
    "certified_levels",
    "channels",
    "close_slot",
    "coarsened_levels",
    "composed",
    "feedback_levels",
    "fitted",
    "from_json",
    "group_codebook",
    "guarantees",
    "hypothesis_tests",
    "information",
    "intervals",
    "keys_of",
    "levels_within",
    "merged",
    "microbits",
    "microbits_of",
    "middle_cell",
    "on_levels",
    "paper_levels",
    "policies",
    "reach_in",
    "reach_of",
    "refined",
    "regions",
    "threshold",
    "to_json",
    "uniform",
    "with_missing_symbol",
]
