"""What Sparkplug BIRTH messages said, kept in bounds."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """Where a message belongs: an edge node, or a device of it ("" for the node itself)."""

    group: str
    node: str
    device: str


class Birth(NamedTuple):
    """One BIRTH message.

    Attributes:
        names: the metrics' names by alias.
        datatypes: Sparkplug's number of each metric's type, by name.
        session: the node's bdSeq, or None.

    """

    names: dict[int, str]
    datatypes: dict[str, int]
    session: object


class Births:
    """What the BIRTH messages of nodes and devices said; the node used longest ago is forgotten first.

    Args:
        most: how many metrics to keep in all; publishers are not trusted with more.

    """

    def __init__(self, most: int = 50_000) -> None:
        self._most = most
        self._held = 0
        self._nodes: dict[tuple[str, str], dict[str, Birth]] = {}

    def __len__(self) -> int:
        return self._held

    def of(self, place: Place) -> Birth | None:
        """Return the last birth of a place, or None."""
        devices = self._nodes.get(place[:2])
        birth = devices.get(place.device) if devices else None
        if devices is not None and birth is not None:
            del self._nodes[place[:2]]
            self._nodes[place[:2]] = devices
        return birth

    def add(self, place: Place, birth: Birth) -> None:
        """Keep a birth; a node's starts a new session, in which its devices are not born yet."""
        self.forget(place)  # so that nothing is counted twice
        devices = self._nodes.pop(place[:2], {})
        self._nodes[place[:2]] = devices
        devices[place.device] = birth
        self._held += _size(birth)
        while self._held > self._most:
            self._held -= sum(map(_size, self._nodes.pop(next(iter(self._nodes))).values()))

    def forget(self, place: Place) -> None:
        """Forget a device, or a node with its devices."""
        devices = self._nodes.get(place[:2], {})
        gone = [place.device] if place.device else list(devices)
        self._held -= sum(_size(devices.pop(device)) for device in gone if device in devices)
        if not devices:
            self._nodes.pop(place[:2], None)


def _size(birth: Birth) -> int:
    return 1 + len(birth.datatypes)
