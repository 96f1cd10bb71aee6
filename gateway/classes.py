"""Classes of households: those of one codebook and one price, for whom privacy is the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gateway.policy import Group, PolicyDocument
from gateway.privacy import Codebook, IntArray, Policy
from gateway.quantities import written_power


@dataclass(frozen=True, eq=False)
class HouseholdClass:
    """Households that share a codebook, the joint levels with their groups, and the budget.

    Attributes:
        label: a public name, for tables and metrics.
        positions: on the roll.
        codebook: their own.
        levels: joint outputs per slot.
        price: micro-bits per slot.
        budget: micro-bits per window.

    """

    label: str
    positions: IntArray
    codebook: Codebook
    levels: int
    price: int
    budget: int

    @property
    def releases_per_window(self) -> int | None:
        """How many slots the budget pays for; None where they cost nothing."""
        return self.budget // self.price if self.price else None


@dataclass(frozen=True, eq=False)
class GroupClass:
    """One group.

    Attributes:
        label: a public name.
        position: among the groups.
        group: its query.
        codebook: of its sum.
        reach: outputs that one member reaches.
        price: micro-bits of that.

    """

    label: str
    position: int
    group: Group
    codebook: Codebook
    reach: int
    price: int


def household_classes(document: PolicyDocument, policy: Policy) -> list[HouseholdClass]:
    """Return the roll's classes, each household in one."""
    keys = np.stack((np.array(document.book_of, np.int64), policy.levels, policy.budget), axis=1)
    distinct, member_of = np.unique(keys, axis=0, return_inverse=True)
    order = np.argsort(member_of.ravel(), kind="stable")
    borders = np.searchsorted(member_of.ravel()[order], np.arange(len(distinct) + 1))
    return [
        _household_class(policy, order[start:stop], int(book))
        for (book, _, _), start, stop in zip(distinct.tolist(), borders[:-1], borders[1:], strict=True)
    ]


def group_classes(document: PolicyDocument, policy: Policy) -> list[GroupClass]:
    """Return the groups."""
    books = policy.groups.shelf.codebooks if policy.groups.shelf else ()
    prices = zip(policy.reach.tolist(), policy.group_price.tolist(), strict=True)
    return [
        GroupClass(f"group {group.name}", i, group, book, reach, price)
        for i, (group, book, (reach, price)) in enumerate(zip(document.groups, books, prices, strict=True))
    ]


def _household_class(policy: Policy, positions: IntArray, book: int) -> HouseholdClass:
    one = int(positions[0])
    codebook = policy.households.codebooks[book]
    levels = int(policy.levels[one])
    span = f"{written_power(codebook.lower)} to {written_power(codebook.upper)}"
    joint = "" if levels == codebook.levels else f", {levels} with groups"
    return HouseholdClass(
        f"{codebook.levels} levels of {span}{joint}",
        positions,
        codebook,
        levels,
        int(policy.price[one]),
        int(policy.budget[one]),
    )
