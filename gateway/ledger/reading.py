"""What a ledger says, read beside the running service and without writing to it."""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from gateway.ledger._file import LedgerError, check_schema, explained
from gateway.ledger.balance import Balances
from gateway.policy import PolicyDocument


class Statement(NamedTuple):
    """Where all accounts stand.

    Attributes:
        document: the public policy in force.
        balances: the accounts of all places.
        households: the households' places.
        groups: the groups' places.
        next_ms: the next slot's start; None before the first.

    """

    document: PolicyDocument
    balances: Balances
    households: dict[str, int]
    groups: dict[str, int]
    next_ms: int | None


def read_statement(path: Path) -> Statement:
    """Return what a ledger says.

    Raises:
        LedgerError: there is no ledger, it is of another schema, or nothing was entered yet.

    """
    if not path.exists():
        raise LedgerError(path, "there is none", "start the service once, or name the right configuration")
    with explained(path), closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
        check_schema(db, path)
        db.execute("BEGIN")
        document = db.execute("SELECT document FROM epoch ORDER BY id DESC LIMIT 1").fetchone()
        if document is None:
            raise LedgerError(path, "nothing was entered yet", "start the service once")
        rows = {kind: (next_ms, blob) for kind, next_ms, blob in db.execute("SELECT * FROM balance")}
        households, groups = (_places(db, kind) for kind in ("household", "group"))
    balances = Balances.unpack(rows["household"][1], rows["group"][1]) if rows else Balances.none()
    balances = balances.padded(len(households), len(groups))
    next_ms = rows["household"][0] if rows else None
    return Statement(
        PolicyDocument.decode(zlib.decompress(document[0])), balances, households, groups, next_ms
    )


def _places(db: sqlite3.Connection, kind: str) -> dict[str, int]:
    return dict(db.execute("SELECT name, position FROM place WHERE kind = ?", (kind,)).fetchall())
