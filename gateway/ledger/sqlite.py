"""The ledger in SQLite: journal, charges, balances and outbox in one file, one transaction per slot.

Every method blocks until its effect is durable (WAL, ``synchronous=FULL``); the service calls them from one
thread. After an error nothing of the call has happened.
"""

from __future__ import annotations

import sqlite3
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gateway.ledger._file import LedgerError, explained, locked, prepare
from gateway.ledger.balance import Balances
from gateway.messages import Release
from gateway.meters import Meters, Quantity
from gateway.policy import PolicyDocument
from gateway.privacy import MISSING, Closed, IntArray, Policy, State
from gateway.pseudonyms import PseudonymKey
from gateway.sources import Readings

_INT64 = np.dtype("<i8")
_SYMBOL = np.dtype("<u4")
_JOURNALED = 5
_WIPE_EVERY_S = 1.0
_BUSY_MS = 5_000


class Standing(NamedTuple):
    """Where a roll stands when the service starts.

    Attributes:
        next_ms: the next slot's start; None in a new ledger.
        state: the accounts and held values of the roll.
        readings: the journal's readings of open slots.
        registers: (columns, m) where each meter's register stands.

    """

    next_ms: int | None
    state: State
    readings: Readings
    registers: IntArray


class PendingRelease(NamedTuple):
    """A slot that was decided under ``epoch`` and is not yet wholly acknowledged by the broker."""

    epoch: int
    release: Release
    sent: int


class Ledger:
    """An open ledger; one process at a time.

    Args:
        path: the file; it is created where there is none.

    Raises:
        LedgerError: another process has it, it is of another schema, corrupt, or cannot be written.

    """

    def __init__(self, path: Path) -> None:
        # By its real name, so that a link to it is not another ledger.
        path = self._path = path.resolve()
        with ExitStack() as opened:
            self._lock = opened.enter_context(locked(path))
            with explained(path):
                self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
                opened.callback(self._db.close)
                prepare(self._db, path)
            opened.pop_all()
        self._balances = Balances.none()
        self._next_ms: int | None = None
        self._epoch = 0
        self._homes = self._groups = self._meters = self._quantities = np.zeros(0, np.int64)
        self._registers = np.zeros((0, 0), np.int64)
        self._wiped_at = time.monotonic()
        self._unwiped = False

    def close(self) -> None:
        """Close the file and let other processes have it."""
        self._db.close()
        self._lock.close()

    def enter(
        self, document: PolicyDocument, policy: Policy, meters: Meters, registers: IntArray
    ) -> Standing:
        """Continue under a public policy; a changed one starts an epoch and forgets no spend.

        Args:
            document: the policy.
            policy: the same, compiled.
            meters: the roll's.
            registers: (columns, m) what stands for meters that were never seen.

        """
        with self._transaction():
            self._load()
            self._homes = self._places("household", document.households)
            self._groups = self._places("group", [group.name for group in document.groups])
            self._meters = self._places("meter", meters.ids)
            self._quantities = meters.quantity
            self._registers = self._widened(registers)
            self._balances = self._balances.widened(State.initial(policy), self._homes, self._groups)
            self._begin_epoch(document)
        state = self._balances.state(self._homes, self._groups)
        return Standing(self._next_ms, state, self._replayed(), self._registers[:, self._meters])

    def begin(self, start_ms: int) -> None:
        """Let the slot that starts at ``start_ms`` be the first."""
        with self._transaction():
            self._save(self._balances, start_ms)
        self._next_ms = start_ms

    def former_filters(self, filters: Sequence[str]) -> list[str]:
        """Remember what is subscribed to, and return what once was and is no more."""
        with self._transaction():
            self._db.executemany(
                "INSERT OR IGNORE INTO subscription VALUES (?)", [(name,) for name in filters]
            )
            known = [name for (name,) in self._db.execute("SELECT filter FROM subscription ORDER BY filter")]
        return [name for name in known if name not in filters]

    def append(self, readings: Readings) -> None:
        """Journal a batch of readings as one row."""
        if len(readings):
            with self._transaction():
                self._db.execute(
                    "INSERT INTO journal (last_ms, readings) VALUES (?, ?)", self._packed(readings)
                )

    def close_slot(self, release: Release, next_ms: int, closed: Closed, registers: IntArray) -> None:
        """Charge a slot, put its releases into the outbox and keep the registers, in one transaction."""
        stands = self._registers
        if self._counting:
            stands = stands.copy()
            stands[:, self._meters] = registers
        balances = self._balances.after(closed.state, self._homes, self._groups)
        counts = (len(closed.symbols), len(closed.group_symbols), int(np.count_nonzero(closed.spent)))
        symbols, spent = np.array(release.symbols, _SYMBOL).tobytes(), np.packbits(closed.spent).tobytes()
        with self._transaction():
            row = (release.start_ms, self._epoch, *counts, int(closed.charges.sum()))
            self._db.execute("INSERT INTO slot VALUES (?, ?, ?, ?, ?, ?)", row)
            waiting = (release.start_ms, symbols, spent, np.array(release.coarse, _SYMBOL).tobytes())
            self._db.execute("INSERT INTO outbox VALUES (?, ?, ?, ?, 0)", waiting)
            self._save(balances, next_ms)
            self._save_registers(stands)
            self._db.execute("DELETE FROM journal WHERE last_ms < ?", (next_ms,))
        self._balances, self._next_ms, self._unwiped = balances, next_ms, True
        self._registers = stands

    def wipe(self) -> None:
        """Carry the deletion of raw readings from the log into the file, at most once a second."""
        if not self._unwiped or time.monotonic() - self._wiped_at < _WIPE_EVERY_S:
            return
        with explained(self._path):
            # A reader beside us must not stop the ledger: what it still sees is wiped next time.
            self._db.execute("PRAGMA busy_timeout = 0")
            try:
                busy = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            finally:
                self._db.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
        self._unwiped, self._wiped_at = bool(busy), time.monotonic()

    def outbox(self) -> list[PendingRelease]:
        """Return the releases that are not yet wholly acknowledged, in order."""
        return self._pending(-1)

    def oldest(self) -> PendingRelease | None:
        """Return the first slot that is not yet wholly acknowledged."""
        return next(iter(self._pending(1)), None)

    def waiting(self) -> tuple[int, int]:
        """Return how many slots, and releases, are not yet acknowledged."""
        query = (
            "SELECT count(*), ifnull(sum(households + groups - sent), 0)"
            " FROM outbox JOIN slot USING (start_ms)"
        )
        with explained(self._path):
            slots, releases = self._db.execute(query).fetchone()
        return slots, releases

    def sent(self, start_ms: int, count: int) -> None:
        """Remember that the broker has the first ``count`` releases of a slot."""
        with self._transaction():
            self._db.execute("UPDATE outbox SET sent = ? WHERE start_ms = ?", (count, start_ms))

    def delivered(self, start_ms: int) -> None:
        """Remember that the broker has all releases of a slot."""
        with self._transaction():
            self._db.execute("DELETE FROM outbox WHERE start_ms = ?", (start_ms,))

    @property
    def next_ms(self) -> int | None:
        """The start of the next slot, as committed; None before the first is known."""
        return self._next_ms

    @property
    def epoch(self) -> int:
        """The policy epoch in force."""
        return self._epoch

    def document(self, epoch: int) -> PolicyDocument:
        """Return an epoch's public policy."""
        with explained(self._path):
            row = self._db.execute("SELECT document FROM epoch WHERE id = ?", (epoch,)).fetchone()
        return PolicyDocument.decode(zlib.decompress(row[0]))

    def keep_key(self, key: PseudonymKey | None) -> None:
        """Keep the key of pseudonyms, before ``enter``; forget those that name no release which still waits."""
        with self._transaction():
            epochs = self._db.execute(
                "SELECT DISTINCT epoch FROM outbox JOIN slot USING (start_ms)"
            ).fetchall()
            terms = [self.document(epoch).pseudonyms for (epoch,) in epochs]
            needed = {one.key for one in terms if one is not None}
            if key is not None:
                needed.add(key.fingerprint)
                row = (key.fingerprint, key.secret)
                self._db.execute("INSERT OR IGNORE INTO pseudonym_key VALUES (?, ?)", row)
            for (known,) in self._db.execute("SELECT fingerprint FROM pseudonym_key").fetchall():
                if known not in needed:
                    self._db.execute("DELETE FROM pseudonym_key WHERE fingerprint = ?", (known,))

    def key(self, fingerprint: str) -> PseudonymKey:
        """Return a key of pseudonyms.

        Raises:
            LedgerError: it was never kept.

        """
        query = "SELECT secret FROM pseudonym_key WHERE fingerprint = ?"
        with explained(self._path):
            row = self._db.execute(query, (fingerprint,)).fetchone()
        if row is None:
            remedy = "restore the ledger from a backup: what waits can only be named by it"
            raise LedgerError(self._path, "a key of pseudonyms is missing", remedy, fatal=True)
        return PseudonymKey(row[0])

    def totals(self) -> tuple[int, int, int]:
        """Return household releases, group releases and micro-bits charged, over all slots."""
        sums = ", ".join(
            f"ifnull(sum({column}), 0)" for column in ("households", "groups", "charged_microbits")
        )
        with explained(self._path):
            households, groups, charged = self._db.execute(f"SELECT {sums} FROM slot").fetchone()  # noqa: S608
        return households, groups, charged

    def _load(self) -> None:
        rows = dict(self._db.execute("SELECT kind, columns FROM balance").fetchall())
        if rows:
            self._balances = Balances.unpack(rows["household"], rows["group"])
            self._next_ms = self._db.execute("SELECT next_ms FROM balance LIMIT 1").fetchone()[0]

    def _save(self, balances: Balances, next_ms: int) -> None:
        rows = zip(("household", "group"), (next_ms, next_ms), balances.pack(), strict=True)
        self._db.executemany("INSERT OR REPLACE INTO balance VALUES (?, ?, ?)", rows)

    def _places(self, kind: str, names: Sequence[str]) -> IntArray:
        known = dict(
            self._db.execute(
                "SELECT name, position FROM place WHERE kind = ? ORDER BY position", (kind,)
            ).fetchall()
        )
        new = [(kind, len(known) + i, name) for i, name in enumerate(n for n in names if n not in known)]
        self._db.executemany("INSERT INTO place VALUES (?, ?, ?)", new)
        known.update((name, position) for _, position, name in new)
        return np.array([known[name] for name in names], np.int64)

    def _begin_epoch(self, document: PolicyDocument) -> None:
        latest = self._db.execute("SELECT id, fingerprint FROM epoch ORDER BY id DESC LIMIT 1").fetchone()
        if latest is not None and latest[1] == document.fingerprint:
            self._epoch = latest[0]
            return
        if latest is not None and self._next_ms is not None:
            self._balances = self._carried_over(document, self.document(latest[0]), self._next_ms)
            self._save(self._balances, self._next_ms)
        row = (document.fingerprint, zlib.compress(document.encode()))
        query = "INSERT INTO epoch (fingerprint, document) VALUES (?, ?)"
        self._epoch = self._db.execute(query, row).lastrowid or 0

    def _carried_over(self, new: PolicyDocument, old: PolicyDocument, next_ms: int) -> Balances:
        """Return the balances for a changed policy: no spend is forgotten, feedback starts afresh."""
        balances = self._balances.without_residuals()
        if new.window_ms == old.window_ms:
            return balances
        # Windows of another length: what was spent since the new one began, if every slot was paid for.
        window = new.window_of(next_ms)
        homes, groups = (
            np.zeros(balances.households.shape[1], np.int64),
            np.zeros(balances.groups.shape[1], np.int64),
        )
        query = "SELECT epoch, count(*) FROM slot WHERE start_ms >= ? GROUP BY epoch"
        for epoch, slots in self._db.execute(query, (window,)).fetchall():
            document = self.document(epoch)
            policy = document.compile()
            homes[self._places("household", document.households)] += slots * policy.price
            groups[self._places("group", [group.name for group in document.groups])] += (
                slots * policy.group_price
            )
        return balances.carried_over(window, homes, groups)

    @property
    def _counting(self) -> bool:
        """Whether there are registers on the roll: one without has nothing to keep of them."""
        return bool(np.any(self._quantities == Quantity.REGISTER))

    def _save_registers(self, registers: IntArray) -> None:
        if self._counting:
            blob = registers.astype(_INT64).tobytes()
            self._db.execute("INSERT OR REPLACE INTO register VALUES (0, ?)", (blob,))

    def _widened(self, blank: IntArray) -> IntArray:
        """Return the registers of every meter ever seen, with ``blank`` for those that are new."""
        places = self._db.execute("SELECT count(*) FROM place WHERE kind = 'meter'").fetchone()[0]
        # Meters that are not on the roll, and those that came after the row was written, said nothing yet.
        wide = np.full((len(blank), places), MISSING, np.int64)
        wide[:, self._meters] = blank
        for (blob,) in self._db.execute("SELECT columns FROM register").fetchall():
            known = np.frombuffer(blob, _INT64).reshape(len(blank), -1)
            wide[:, : known.shape[1]] = known
        return wide

    def _packed(self, readings: Readings) -> tuple[int, bytes]:
        kind = 2 * self._quantities[readings.meter] + readings.retained
        columns = (self._meters[readings.meter], readings.time_ms, readings.value, readings.serial, kind)
        return int(readings.time_ms.max()), np.stack(columns).astype(_INT64).tobytes()

    def _replayed(self) -> Readings:
        """Return the journal's readings of today's meters, in their order.

        A meter that says something else since, as its register instead of its power, begins anew.
        """
        with explained(self._path):
            blobs = self._db.execute("SELECT readings FROM journal ORDER BY id").fetchall()
        tables = [np.frombuffer(blob, _INT64).reshape(_JOURNALED, -1) for (blob,) in blobs]
        table = np.concatenate(tables, axis=1) if tables else np.zeros((_JOURNALED, 0), np.int64)
        today = np.full(self._registers.shape[1], -1, np.int64)
        today[self._meters] = np.arange(len(self._meters))
        meter, quantity = today[table[0]], table[4] // 2
        there = meter >= 0
        there[there] = self._quantities[meter[there]] == quantity[there]
        retained = (table[4] % 2).astype(np.bool_)
        return Readings(meter, table[1], table[2], retained, table[3]).where(there)

    def _pending(self, most: int) -> list[PendingRelease]:
        query = (
            "SELECT start_ms, epoch, households, symbols, spent, coarse, sent FROM outbox JOIN slot USING (start_ms)"
            " ORDER BY start_ms LIMIT ?"
        )
        with explained(self._path):
            rows = self._db.execute(query, (most,)).fetchall()
        return [_pending(row) for row in rows]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with explained(self._path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise


def _pending(row: tuple[int, int, int, bytes, bytes, bytes, int]) -> PendingRelease:
    start_ms, epoch, households, symbols, spent, coarse, sent = row
    marks = np.unpackbits(np.frombuffer(spent, np.uint8), count=households).astype(np.bool_)
    columns = (np.frombuffer(column, _SYMBOL).tolist() for column in (symbols, coarse))
    release = Release(start_ms, next(columns), marks.tolist(), next(columns))
    return PendingRelease(epoch, release, sent)
