"""An open ledger under a small policy, and what stands in its file."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from meters import meters_for

from gateway.checking import validated
from gateway.ledger import Ledger, Standing, read_statement
from gateway.messages import Release
from gateway.policy import PolicyDocument, document_of
from gateway.privacy import MISSING, Closed, State, close_slot
from gateway.sources import Readings

SLOT_MS = 30 * 60_000
START = 1_767_571_200_000
"""2026-01-05T00:00Z, the start of a day's window."""


def document(*homes: str, **tables: Any) -> PolicyDocument:  # noqa: ANN401 - any TOML
    return document_of(
        validated(
            {
                "release": {"levels": 4, "range": ["0 W", "4 kW"]},
                "source": [{"topic": "{household}", "value": "/e", "unit": "Wh", "time": {"at": "/ts"}}],
                "household": [{"id": home} for home in homes],
                "output": {"topic": "out"},
                **tables,
            }
        )
    )


AB = document("a", "b", group=[{"name": "g", "members": ["*"], "levels": 4}])


class Book:
    """An open ledger with its state, closing slots as the service does."""

    def __init__(self, path: Path, policy: PolicyDocument = AB) -> None:
        self.document = policy
        self.policy = policy.compile()
        self.ledger = Ledger(path)
        self.standing: Standing = self.ledger.enter(policy, self.policy, *meters_for(policy))
        self.registers = self.standing.registers
        self.state: State = self.standing.state
        self.next_ms = self.standing.next_ms

    def begin(self, start_ms: int = START) -> "Book":
        self.ledger.begin(start_ms)
        self.next_ms = start_ms
        return self

    def decided(self, *values_w: float | None) -> tuple[Release, Closed]:
        assert self.next_ms is not None
        values = np.array([MISSING if w is None else round(w * 1_000) for w in values_w], np.int64)
        closed = close_slot(self.policy, self.state, self.next_ms, values)
        symbols = np.concatenate((closed.symbols, closed.group_symbols)).tolist()
        return Release(self.next_ms, symbols, closed.spent.tolist()), closed

    def close_slot(self, *values_w: float | None) -> Release:
        release, closed = self.decided(*values_w)
        assert self.next_ms is not None
        self.ledger.close_slot(release, self.next_ms + self.document.slot_ms, closed, self.registers)
        self.state, self.next_ms = closed.state, self.next_ms + self.document.slot_ms
        return release


@contextmanager
def book(path: Path, policy: PolicyDocument = AB) -> Iterator[Book]:
    one = Book(path, policy)
    try:
        yield one
    finally:
        one.ledger.close()


def readings(*rows: tuple[int, int, int]) -> Readings:
    return Readings.of([(meter, start, energy, False, 0) for meter, start, energy in rows])


def rows_of(found: Readings) -> list[tuple[int, int, int]]:
    columns = (found.meter, found.time_ms, found.value)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def sql(path: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
        return db.execute(query).fetchall()


def accounts(path: Path) -> dict[str, tuple[int, ...]]:
    """Return each household's window, spent, total, held and what is left over, from the file."""
    statement = read_statement(path)
    columns = statement.balances.households.T.tolist()
    return {name: tuple(columns[place]) for name, place in statement.households.items()}
