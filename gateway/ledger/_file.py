"""The ledger's file: its lock, its schema, and its errors with what to do about them."""

from __future__ import annotations

import fcntl
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import IO

SCHEMA_VERSION = 2
_APPLICATION_ID = 0x6E6C6573
_DAMAGED = "restore it from a backup; moving it away begins a new one that knows no spent budgets"
_REMEDIES = {
    "full": "free space on its disk; nothing is released and input stays unacknowledged until then",
    "readonly": "make the file and its folder writable for the service's user",
    "locked": "end the other program that writes to it",
    "malformed": _DAMAGED,
    "not a database": "name another file in ledger.url",
    "unable to open": "create its folder, and make it readable and writable for the service's user",
}


class LedgerError(Exception):
    """The ledger cannot be used; it carries the remedy.

    Attributes:
        problem: what is wrong.
        remedy: what to do.
        fatal: whether it fails however often it is tried.

    """

    def __init__(self, path: Path, problem: str, remedy: str, *, fatal: bool = False) -> None:
        super().__init__(f"ledger {path}: {problem}; {remedy}")
        self.problem = problem
        self.remedy = remedy
        self.fatal = fatal


def prepare(db: sqlite3.Connection, path: Path) -> None:
    """Set the connection up, create the schema in an empty file, and check it in any other.

    Raises:
        LedgerError: the file is of another schema or damaged.
        sqlite3.Error: it cannot be read or written.

    """
    empty = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
    if not empty:
        # Before anything is changed: it may be another program's.
        check_schema(db, path)
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON", "foreign_keys = ON"):
        db.execute(f"PRAGMA {pragma}")
    if empty:
        schema = resources.files("gateway.ledger").joinpath("schema.sql").read_text(encoding="utf-8")
        marks = f"PRAGMA application_id = {_APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION};"
        db.executescript(f"BEGIN IMMEDIATE; {schema} {marks} COMMIT;")
    if db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
        raise LedgerError(path, "the file is damaged", _DAMAGED)
    # A write that changes nothing: a read-only file is found now, not at the first slot.
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def check_schema(db: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that is no ledger, or one of another schema.

    Raises:
        LedgerError: it is either.

    """
    application = db.execute("PRAGMA application_id").fetchone()[0]
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if application != _APPLICATION_ID:
        raise LedgerError(path, "the file is not a ledger of noiseless", "name another file in ledger.url")
    if version != SCHEMA_VERSION:
        raise LedgerError(
            path,
            f"it has schema {version}, this version reads {SCHEMA_VERSION}",
            "run the version that wrote it, or name another file in ledger.url",
        )


def locked(path: Path) -> IO[bytes]:
    """Return a lock that no other process has; the system frees it, however the process ends.

    Raises:
        LedgerError: another process has it, or the folder cannot be written.

    """
    try:
        lock = path.with_name(f"{path.name}-lock").open("ab")
    except OSError as error:
        raise LedgerError(path, error.strerror or "cannot be opened", _REMEDIES["unable to open"]) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise LedgerError(path, "another process has it", _REMEDIES["locked"]) from error
    return lock


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn the database's errors into a :class:`LedgerError` with a remedy."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        remedy = "start the service again: it goes on from what the ledger holds"
        raise LedgerError(path, str(error), remedy, fatal=True) from error
    except sqlite3.Error as error:
        problem = str(error)
        remedy = next(
            (text for word, text in _REMEDIES.items() if word in problem), "look into the system's log"
        )
        raise LedgerError(path, problem, remedy) from error
