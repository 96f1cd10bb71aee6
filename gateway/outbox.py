"""Decided slots that the receivers' broker does not have: how many they are, and room for more."""

from __future__ import annotations

import asyncio


class Outbox:
    """Counts what lies in the ledger's outbox, for the two who work at its ends.

    Args:
        most: slots at which no further one is decided.
        slots: slots in it now.
        releases: releases in it now.

    """

    def __init__(self, most: int, slots: int = 0, releases: int = 0) -> None:
        self.most = most
        self.slots = slots
        self.releases = releases
        self._changed = asyncio.Event()

    @property
    def full(self) -> bool:
        """Whether no further slot may be decided."""
        return self.slots >= self.most

    @property
    def relieved(self) -> bool:
        """Whether it is half empty again, so that it will not be full again at once."""
        return 2 * self.slots <= self.most

    def add(self, releases: int) -> None:
        """Note a slot that was decided, and is durable."""
        self.slots += 1
        self.releases += releases
        self._notify()

    def sent(self, releases: int) -> None:
        """Note releases that the broker has."""
        self.releases -= releases

    def delivered(self) -> None:
        """Note that the broker has all releases of a slot."""
        self.slots -= 1
        self._notify()

    async def filled(self) -> None:
        """Return when there is something in it."""
        while not self.slots:
            await self._changed.wait()

    async def emptied(self) -> None:
        """Return when there is nothing in it."""
        while self.slots:
            await self._changed.wait()

    async def changed(self, patience: float) -> None:
        """Return at the next change, or after ``patience`` seconds."""
        try:
            await asyncio.wait_for(self._changed.wait(), patience)
        except TimeoutError:
            return

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
