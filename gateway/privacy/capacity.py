"""The zero-error capacity bound, tracked over time.

A deterministic release of k reachable outputs carries at most ``log2 k`` bits per use without error. With
memory, if from every public prefix at most ``k_t`` outputs follow, there are at most ``∏ k_t`` sequences, so
``C_T ≤ Σ log2 k_t / T`` ([NP] Thm 2, theory 2). Constant and budget-held releases have ``k_t = 1`` and count
zero; a substituted one counts fully, since her silence is one of her outputs.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.privacy.accounting import MICROBITS_PER_BIT, Account, IntArray

_MS_PER_HOUR = 3_600_000


@dataclass(frozen=True, slots=True)
class CapacityBound:
    """The bound for one class of households or one group.

    Attributes:
        bits_per_release: of the latest slot, jointly over the topics of one household.
        cumulative_bits: over all slots so far.
        bits_per_hour: over the budget window so far.

    """

    bits_per_release: float
    cumulative_bits: float
    bits_per_hour: float


def capacity_bound(account: Account, charges: IntArray, channels: IntArray, elapsed_ms: int) -> CapacityBound:
    """Return the bound of a class: that of its channel with the most.

    Args:
        account: the odometers after the latest slot.
        charges: micro-bits charged in that slot.
        channels: positions of the class's channels.
        elapsed_ms: from the start of the budget window to the end of the latest slot.

    """
    return CapacityBound(
        int(charges[channels].max()) / MICROBITS_PER_BIT,
        int(account.total[channels].max()) / MICROBITS_PER_BIT,
        int(account.spent[channels].max()) / MICROBITS_PER_BIT * _MS_PER_HOUR / elapsed_ms,
    )
