"""Released bytes: a function of slot, symbol and public policy, and of nothing else.

Field order is fixed and numbers are written from the codebook's integers; nothing is computed from a reading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import compress, islice, repeat
from typing import NamedTuple

from gateway.mqtt import Publication
from gateway.policy import Group, PolicyDocument
from gateway.privacy import Codebook, Policy, Rounding, WhenSpent, merged
from gateway.pseudonyms import PseudonymKey, Pseudonyms

_NOT_RETAINED = repeat(False)  # noqa: FBT003 - a column of a table
_W = 1_000
COARSE_BITS = 32
_SYMBOL = (1 << COARSE_BITS) - 1
_MS_PER_MINUTE = 60_000


class Release(NamedTuple):
    """One slot's symbols, of the roll, then of the groups; ``spent`` and ``coarse`` of the roll only."""

    start_ms: int
    symbols: list[int]
    spent: list[bool]
    coarse: list[int] = []  # noqa: RUF012 - never changed; merged cells of the roll, empty where there are none


class _Tails(dict[int, bytes]):
    """What follows the slot in a message, by key; rendered when first asked for.

    The key is the symbol, or ``~symbol`` (negative) when her budget is spent; above 32 bits stands how many cells
    were merged.
    """

    def __init__(self, render: Callable[[int], str]) -> None:
        super().__init__()
        self._render = render

    def __missing__(self, key: int) -> bytes:
        fields = self._render(~key) + ',"spent":true' if key < 0 else self._render(key)
        tail = self[key] = f"{fields}}}".encode()
        return tail


class _Order(NamedTuple):
    """The order of publication: in it the positions on the roll, None for the roll's own; topics and tails of all."""

    homes: list[int] | None
    topics: list[str]
    tails: list[_Tails]

    def of_homes(self, column: list[int]) -> list[int]:
        """Return a column of the roll in this order."""
        return column if self.homes is None else [column[position] for position in self.homes]


class Renderer:
    """Renders the releases of one policy epoch.

    Households are published in the roll's order, then groups. With pseudonyms households are published in the
    order of these, so that a place in the order says no more than they do.

    Args:
        document: the epoch's public policy.
        policy: the same, compiled.
        key: of its pseudonyms; without it payloads can be had, but no publications.

    Raises:
        ValueError: the key is not the policy's.

    """

    def __init__(self, document: PolicyDocument, policy: Policy, key: PseudonymKey | None = None) -> None:
        self._slot_ms = document.slot_ms
        self._withhold = document.when_spent is WhenSpent.WITHHOLD
        books = [_Tails(_household_fields(book)) for book in policy.households.codebooks]
        self._tails = [books[b] for b in document.book_of]
        self._households = document.households
        self._roll = len(self._households)
        self._base = f"{document.topic}/household/"
        self._group_topics = [f"{document.topic}/group/{group.name}" for group in document.groups]
        if policy.groups.shelf is not None:
            pairs = zip(document.groups, policy.groups.shelf.codebooks, policy.reach.tolist(), strict=True)
            self._tails += [_Tails(_group_fields(group, book, reach)) for group, book, reach in pairs]
        self._named = document.pseudonyms is not None
        self._pseudonyms: Pseudonyms | None = None
        if key is not None:
            if document.pseudonyms is None or document.pseudonyms.key != key.fingerprint:
                raise ValueError("the key is not the policy's")
            self._pseudonyms = Pseudonyms(key, document.pseudonyms.period_ms)
        self._orders: dict[int, _Order] = {}

    def __len__(self) -> int:
        return len(self._tails)

    def render(self, release: Release, start: int = 0, stop: int | None = None) -> list[Publication]:
        """Return the messages ``start`` to ``stop`` of a slot, in the order of publication.

        Raises:
            ValueError: the policy has pseudonyms, and their key was not given.

        """
        head, order = self._head(release.start_ms), self._order(release.start_ms)
        keys = [~s if held else s for s, held in zip(release.symbols, release.spent, strict=False)]
        if release.coarse:
            keys = [key | cells << COARSE_BITS for key, cells in zip(keys, release.coarse, strict=True)]
        keys = order.of_homes(keys) + release.symbols[self._roll :]
        payloads = [
            head + tails[key] for tails, key in zip(order.tails[start:stop], keys[start:stop], strict=True)
        ]
        # _make over zip: no Python call per release.
        rows: Iterable[tuple[str, bytes, bool]] = zip(
            order.topics[start:stop], payloads, _NOT_RETAINED, strict=False
        )
        if self._withhold and any(release.spent):
            said = (key >= 0 for key in keys)
            rows = compress(rows, islice(said, start, None))
        return list(map(Publication._make, rows))

    def payload(self, place: int, start_ms: int, key: int) -> bytes:
        """Return the bytes of one release, by its place: the roll's, then the groups'; none where it is withheld."""
        if key < 0 and self._withhold:
            return b""
        return self._head(start_ms) + self._tails[place][key]

    def _order(self, start_ms: int) -> _Order:
        """Return the order of a slot; only the latest period's is kept."""
        period = 0 if self._pseudonyms is None else self._pseudonyms.period_of(start_ms)
        if period not in self._orders:
            self._orders = {period: self._made_order(start_ms)}
        return self._orders[period]

    def _made_order(self, start_ms: int) -> _Order:
        if not self._named:
            return _Order(None, self._topics(self._households), self._tails)
        if self._pseudonyms is None:
            raise ValueError("pseudonyms need their key")
        names = self._pseudonyms.of(start_ms, self._households)
        homes = sorted(range(self._roll), key=names.__getitem__)
        tails = [self._tails[home] for home in homes] + self._tails[self._roll :]
        return _Order(homes, self._topics(sorted(names)), tails)

    def _topics(self, names: Iterable[str]) -> list[str]:
        return [self._base + name for name in names] + self._group_topics

    def _head(self, start_ms: int) -> bytes:
        begin = datetime.fromtimestamp(start_ms / 1_000, UTC)
        minutes = _decimal(self._slot_ms, _MS_PER_MINUTE)
        return f'{{"slot":"{begin:%Y-%m-%dT%H:%M:%SZ}","minutes":{minutes},'.encode()


def _household_fields(book: Codebook) -> Callable[[int], str]:
    def fields(key: int) -> str:
        cells, symbol = key >> COARSE_BITS, key & _SYMBOL
        if cells:
            return _symbol_fields(merged(book, cells), symbol, 1) + ',"coarse":true'
        return _symbol_fields(book, symbol, 1)

    return fields


def _group_fields(group: Group, book: Codebook, reach: int) -> Callable[[int], str]:
    divisor = len(group.members) if group.query == "mean" else 1
    facts = f',"members":{len(group.members)},"query":"{group.query}","reach":{reach}'
    return lambda symbol: _symbol_fields(book, symbol, divisor) + facts


def _symbol_fields(book: Codebook, symbol: int, divisor: int) -> str:
    low, high, value = _interval_w(book, symbol, divisor)
    rounding = "" if book.rounding is Rounding.NEAREST else f',"rounding":"{book.rounding}"'
    return (
        f'"symbol":{symbol},"levels":{book.levels},"between_w":[{low},{high}],'
        f'"value_w":{value},"codebook":"{book.hash}"{rounding}'
    )


def _interval_w(book: Codebook, symbol: int, divisor: int) -> tuple[str, str, str]:
    """Return the cell's ends and its value in W, as JSON.

    Outer ends are open, since readings beyond the range are clamped into the outer cells. A mean's ends are
    rounded outwards to the mW, so that "between" stays true.
    """
    if book.missing_symbol and symbol == 0:
        return "null", "null", "null"
    first, last = int(book.missing_symbol), book.levels - 1
    low, high = book.cell(symbol)
    value = (2 * int(book.values[symbol]) + divisor) // (2 * divisor)
    return (
        "null" if symbol == first else _watts(low // divisor),
        "null" if symbol == last else _watts(-(-high // divisor)),
        _watts(value),
    )


def _watts(mw: int) -> str:
    return _decimal(mw, _W)


def _decimal(numerator: int, denominator: int) -> str:
    """Return the shortest JSON number of an exact fraction that has one, else 12 digits."""
    whole, rest = divmod(abs(numerator), denominator)
    sign = "-" if numerator < 0 else ""
    digits = f"{rest * 10**12 // denominator:012d}".rstrip("0")
    return f"{sign}{whole}.{digits}" if digits else f"{sign}{whole}"
