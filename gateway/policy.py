"""The public policy: all that a release depends on beside readings, as one document.

An epoch is the time during which one document is in force. The ledger keeps every epoch's document, so that
releases decided under it are rendered byte for byte the same whatever the configuration says today.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fnmatch import filter as matching
from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from gateway.config import Config, GroupTable, HouseholdTable
from gateway.privacy import (
    MICROBITS_PER_BIT,
    Calibration,
    Codebook,
    Groups,
    IntArray,
    Missing,
    Policy,
    Reach,
    Rounding,
    Shelf,
    WhenSpent,
    both_ends,
    from_json,
    group_codebook,
    keys_of,
    uniform,
    with_missing_symbol,
)

DEFAULT_LEVELS = 4
DEFAULT_RANGE_MW = (0, 14_500_000)


class Book(msgspec.Struct, frozen=True, omit_defaults=True):
    """A household codebook: ``levels`` symbols over ``[lower, upper]`` mW.

    Attributes:
        lower: the range's lower end.
        upper: the range's upper end.
        levels: k, with the symbol for "no reading" where there is one.
        rounding: how a value finds its symbol.
        values: of the readings' symbols, where they come from a file; None for equally spaced ones.
        cuts: between them, likewise.

    """

    lower: int
    upper: int
    levels: int
    rounding: Rounding = Rounding.NEAREST
    values: tuple[int, ...] | None = None
    cuts: tuple[int, ...] | None = None

    def codebook(self, *, missing_symbol: bool) -> Codebook:
        """Return it compiled.

        Raises:
            ValueError: it does not fit its range or its rounding.

        """
        if self.values is not None:
            cuts, values = (np.array(column, np.int64) for column in (self.cuts, self.values))
            book = Codebook(self.lower, self.upper, cuts, values, rounding=self.rounding)
            return with_missing_symbol(book) if missing_symbol else book
        if self.rounding is Rounding.NEAREST:
            return uniform(self.lower, self.upper, self.levels, missing_symbol=missing_symbol)
        return both_ends(self.lower, self.upper, self.levels, self.rounding, missing_symbol=missing_symbol)


class Group(msgspec.Struct, frozen=True, omit_defaults=True):
    """A group query.

    Attributes:
        name: in its topic.
        members: positions on the roll.
        query: sum, or mean (the sum divided when it is written).
        reach: k that one member may reach.
        weights: public integers, one per member; None for ones.
        rounding: nearest or feedback.
        calibration: the rule for the number of cells; "paper" for studies only.

    """

    name: str
    members: tuple[int, ...]
    query: Literal["sum", "mean"]
    reach: int
    weights: tuple[int, ...] | None = None
    rounding: Rounding = Rounding.NEAREST
    calibration: Calibration = "certified"

    def codebook(self, books: Sequence[Book]) -> Codebook:
        """Return the codebook of the sum of members with these codebooks.

        Raises:
            ValueError: it does not fit.

        """
        lower, upper = (
            np.array(ends, np.int64) for ends in zip(*((b.lower, b.upper) for b in books), strict=True)
        )
        reach = Reach.of(lower, upper, self.weighted())
        return group_codebook(reach, self.reach, self.rounding, self.calibration)

    def weighted(self) -> IntArray:
        """Return (m,) the members' weights."""
        if self.weights is None:
            return np.ones(len(self.members), np.int64)
        return np.array(self.weights, np.int64)


class PseudonymTerms(msgspec.Struct, frozen=True):
    """That topics name households by pseudonyms.

    Attributes:
        period_ms: how long one lasts.
        key: the fingerprint of the secret key, which is kept in the ledger.

    """

    period_ms: int
    key: str


class PolicyDocument(msgspec.Struct, frozen=True, omit_defaults=True):
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
        seed: of dither's public thresholds.
        fresh_windows: whether feedback starts afresh in every budget window.
        when_spent: what a household releases when her budget is spent.
        pseudonyms: what names households in topics; None for their ids.

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
    seed: str = ""
    fresh_windows: bool = False
    when_spent: WhenSpent = WhenSpent.HOLD
    pseudonyms: PseudonymTerms | None = None

    def encode(self) -> bytes:
        """Return the document as JSON, the same for equal documents.

        Defaults are left out: a field that a later version adds does not make an earlier policy another one.
        """
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
        missing_symbol = self.missing is Missing.SYMBOL
        books = [book.codebook(missing_symbol=missing_symbol) for book in self.books]
        shelf = Shelf(books, np.array(self.book_of, np.int64), keys_of(self.seed, self.households))
        return Policy.over(
            shelf,
            self._compiled_groups(),
            missing=self.missing,
            budget=None if self.budget is None else np.full(len(shelf), self.budget, np.int64),
            slots_per_window=self.window_ms // self.slot_ms,
            window=self.window_ms,
            fresh_windows=self.fresh_windows,
            when_spent=self.when_spent,
        )

    def _compiled_groups(self) -> Groups:
        return Groups(
            [np.array(group.members, np.int64) for group in self.groups],
            [group.codebook([self.books[self.book_of[m]] for m in group.members]) for group in self.groups],
            [group.weighted() for group in self.groups],
        )


def document_of(config: Config) -> PolicyDocument:
    """Return the public part of a configuration that :mod:`gateway.checking` found good."""
    chosen = [book_of(config, household) for household in config.household]
    books = sorted(set(chosen), key=msgspec.json.encode)
    place = {book: i for i, book in enumerate(books)}
    ids = tuple(household.id for household in config.household)
    bits, named = config.budget.bits, config.output.pseudonyms
    return PolicyDocument(
        topic=config.output.topic,
        slot_ms=config.slots.length,
        window_ms=config.budget.window,
        missing=config.slots.missing,
        budget=None if bits is None else round(bits * MICROBITS_PER_BIT),
        books=tuple(books),
        households=ids,
        book_of=tuple(place[book] for book in chosen),
        groups=_groups(config, ids),
        seed=config.release.seed or config.output.topic,
        fresh_windows=config.budget.fresh_feedback,
        when_spent=config.budget.when_spent,
        pseudonyms=None if named is None else PseudonymTerms(named.period, named.key_file.fingerprint),
    )


def members_of(patterns: Sequence[str], ids: Sequence[str]) -> tuple[int, ...]:
    """Return the positions of the households that any pattern matches, in the roll's order."""
    place = _places(tuple(ids))
    found = {place[pattern] for pattern in patterns if pattern in place}
    for pattern in patterns:
        if any(wild in pattern for wild in "*?["):
            found.update(place[name] for name in matching(ids, pattern))
    return tuple(sorted(found))


@lru_cache(maxsize=4)
def _places(ids: tuple[str, ...]) -> dict[str, int]:
    """Return each household's position; a roll is asked for its members many times."""
    return {name: position for position, name in enumerate(ids)}


def book_of(config: Config, household: HouseholdTable) -> Book:
    """Return a household's codebook: what her table says, else [release], else the defaults.

    Raises:
        OSError: her codebook file cannot be read.
        ValueError: it is not a codebook file.

    """
    levels = household.chosen_levels or config.release.chosen_levels
    ends = household.range or config.release.range
    rounding = household.rounding or config.release.rounding
    file = household.codebook or config.release.codebook
    if file not in (None, "uniform"):
        return _book_of_file(Path(file), rounding, missing_symbol=config.slots.missing is Missing.SYMBOL)
    lower, upper = ends or DEFAULT_RANGE_MW
    return Book(lower, upper, levels or DEFAULT_LEVELS, rounding or Rounding.NEAREST)


def _book_of_file(path: Path, rounding: Rounding | None, *, missing_symbol: bool) -> Book:
    book = read_codebook(path, path.stat().st_mtime_ns)
    return Book(
        book.lower,
        book.upper,
        book.levels + missing_symbol,
        rounding or book.rounding,
        tuple(book.values.tolist()),
        tuple(book.cuts.tolist()),
    )


@lru_cache(maxsize=64)
def read_codebook(path: Path, _modified: int) -> Codebook:
    """Return a codebook file's content; a roll names the same file many times.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not a codebook file.

    """
    return from_json(path.read_text(encoding="utf-8"))


def _groups(config: Config, ids: Sequence[str]) -> tuple[Group, ...]:
    joined: dict[str, set[int]] = {group.name: set() for group in config.group}
    for position, household in enumerate(config.household):
        for name in household.groups:
            joined.setdefault(name, set()).add(position)
    return tuple(_group(group, ids, joined[group.name]) for group in config.group)


def _group(group: GroupTable, ids: Sequence[str], joined: set[int]) -> Group:
    members = tuple(sorted(joined.union(members_of(group.members, ids))))
    weights = None
    if group.weights:
        weight_of = {
            i: weight for pattern, weight in group.weights.items() for i in members_of([pattern], ids)
        }
        weights = tuple(weight_of.get(member, 1) for member in members)
    return Group(
        group.name,
        members,
        group.query,
        group.reach,
        weights,
        group.rounding or Rounding.NEAREST,
        group.calibration,
    )
