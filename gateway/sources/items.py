"""Several meters in one message: a list or an object of them, each an item of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from gateway.sources.bindings import Binding
from gateway.sources.formats import Find, Snapshots
from gateway.sources.readings import Reason, RejectedError

_T = TypeVar("_T")
_MOST_METERS = 1_000


class Item(NamedTuple):
    """One of several meters in a message."""

    inside: object
    message: object
    key: str


def fan_out(document: object, each: Find, read: Callable[[object], _T]) -> Iterator[_T | Reason]:
    """Yield what is read of each item, or why it is none.

    Raises:
        RejectedError: there is no list or object of items, or too long a one.

    """
    try:
        items = each(document)
    except LookupError:
        raise RejectedError(Reason.MISSING_FIELD) from None
    if not isinstance(items, dict | list):
        raise RejectedError(Reason.WRONG_TYPE)
    if len(items) > _MOST_METERS:
        raise RejectedError(Reason.TOO_LARGE)
    pairs = items.items() if isinstance(items, dict) else enumerate(items)
    for key, inside in pairs:
        try:
            yield read(Item(inside, document, str(key)))
        except RejectedError as rejection:
            yield rejection.reason


def moments(snapshots: Snapshots, read: Callable[[object], _T]) -> Iterator[_T | Reason]:
    """Yield what is read at each moment, or why it is none; moments at which nothing is said do not count.

    Raises:
        RejectedError: nothing is said at any of them, or there are too many.

    """
    if len(snapshots.documents) > _MOST_METERS:
        raise RejectedError(Reason.TOO_LARGE)
    silent = 0
    for document in snapshots.documents:
        try:
            yield read(document)
        except RejectedError as rejection:
            if rejection.reason is Reason.MISSING_FIELD:
                silent += 1
            else:
                yield rejection.reason
    if silent == len(snapshots.documents):
        raise RejectedError(Reason.MISSING_FIELD)


def finder(form: Binding, *, fanned: bool) -> Callable[[str], Find]:
    """Return what compiles addresses; of a fanned message they are looked up in the item, then in the whole."""
    if not fanned:
        return form.compile

    def compiled(address: str) -> Find:
        look = form.compile(address)

        def inside_first(item: object) -> object:
            assert isinstance(item, Item)
            try:
                return look(item.inside)
            except LookupError:
                return look(item.message)

        return inside_first

    return compiled


def own_finder(form: Binding, *, fanned: bool) -> Callable[[str], Find]:
    """Return what compiles the addresses of what is a meter's own: of a fanned message, in its item only."""
    if not fanned:
        return form.compile

    def compiled(address: str) -> Find:
        look = form.compile(address)
        return lambda item: look(item.inside)

    return compiled
