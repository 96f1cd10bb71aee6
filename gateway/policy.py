"""The public policy: all that a release depends on beside readings, as one document.

An epoch is the time during which one document is in force. The ledger keeps every epoch's document, so that
releases decided under it are rendered byte for byte the same whatever the configuration says today.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fnmatch import filter as matching
from math import ceil
from typing import Literal

import msgspec
import numpy as np

from gateway.config import Config, GroupTable, HouseholdTable
from gateway.privacy import (
    MICROBITS_PER_BIT,
    Codebook,
    Groups,
    Missing,
    Policy,
    Shelf,
    group_codebook,
    uniform,
)

DEFAULT_LEVELS = 4
DEFAULT_RANGE_MW = (0, 14_500_000)


class Book(msgspec.Struct, frozen=True, order=True):
    """A household codebook: ``levels`` symbols over ``[lower, upper]`` mW."""

    lower: int
    upper: int
    levels: int


class Group(msgspec.Struct, frozen=True):
    """A group query; ``members`` are positions on the roll, ``reach`` what one of them may reach."""

    name: str
    members: tuple[int, ...]
    query: Literal["sum", "mean"]
    reach: int


class PolicyDocument(msgspec.Struct, frozen=True):
    """Everything public that decides symbols, charges and bytes.

    Attributes:
        topic: what releases are published below.
        slot_ms: one slot.
        window_ms: one budget window, a multiple of ``slot_ms``.
        missing: the substitution rule.
        budget: micro-bits per household and window; None for what the window's slots cost.
        books: the distinct household codebooks.
        households: the roll's ids, in the order of release.
        book_of: each household's codebook.
        groups: the group queries.

    """

    topic: str
    slot_ms: int
    window_ms: int
    missing: Missing
    budget: int | None
    books: tuple[Book, ...]
    households: tuple[str, ...]
    book_of: tuple[int, ...]
    groups: tuple[Group, ...]

    def encode(self) -> bytes:
        """Return the document as JSON, the same for equal documents."""
        return msgspec.json.encode(self)

    @classmethod
    def decode(cls, document: bytes) -> PolicyDocument:
        """Return the document of its JSON form."""
        return msgspec.json.decode(document, type=cls)

    @property
    def fingerprint(self) -> str:
        """The content hash that names an epoch's policy."""
        return hashlib.sha256(self.encode()).hexdigest()

    def window_of(self, start_ms: int) -> int:
        """Return the start (ms) of the budget window that a slot beginning at ``start_ms`` belongs to."""
        return start_ms // self.window_ms * self.window_ms

    def compile(self) -> Policy:
        """Return the policy as arrays for ``close_slot``.

        Raises:
            ValueError: a codebook does not fit its range.

        """
        shelf = Shelf([self.codebook(book) for book in self.books], np.array(self.book_of, np.int64))
        members = [np.array(group.members, np.int64) for group in self.groups]
        books = [
            group_codebook(shelf.lower[m], shelf.upper[m], group.reach)
            for m, group in zip(members, self.groups, strict=True)
        ]
        budget = None if self.budget is None else np.full(len(shelf), self.budget, np.int64)
        slots = self.window_ms // self.slot_ms
        return Policy.over(
            shelf, Groups(members, books), missing=self.missing, budget=budget, slots_per_window=slots
        )

    def codebook(self, book: Book) -> Codebook:
        """Return the codebook of one household class."""
        missing_symbol = self.missing is Missing.SYMBOL
        return uniform(book.lower, book.upper, book.levels, missing_symbol=missing_symbol)


def document_of(config: Config) -> PolicyDocument:
    """Return the public part of a configuration that :mod:`gateway.checking` found good."""
    chosen = [_book(config, household) for household in config.household]
    books = sorted(set(chosen))
    place = {book: i for i, book in enumerate(books)}
    ids = tuple(household.id for household in config.household)
    bits = config.budget.bits
    return PolicyDocument(
        topic=config.output.topic,
        slot_ms=config.slots.length,
        window_ms=config.budget.window,
        missing=config.slots.missing,
        budget=None if bits is None else ceil(bits * MICROBITS_PER_BIT),
        books=tuple(books),
        households=ids,
        book_of=tuple(place[book] for book in chosen),
        groups=tuple(_group(group, ids) for group in config.group),
    )


def members_of(patterns: Sequence[str], ids: Sequence[str]) -> tuple[int, ...]:
    """Return the positions of the households that any pattern matches, in the roll's order."""
    named = {name for pattern in patterns for name in matching(ids, pattern)}
    return tuple(position for position, name in enumerate(ids) if name in named)


def _book(config: Config, household: HouseholdTable) -> Book:
    levels = household.chosen_levels or config.release.chosen_levels or DEFAULT_LEVELS
    lower, upper = household.range or config.release.range or DEFAULT_RANGE_MW
    return Book(lower, upper, levels)


def _group(group: GroupTable, ids: Sequence[str]) -> Group:
    return Group(group.name, members_of(group.members, ids), group.query, group.reach)
