"""Readings are durable before they are acknowledged, in the journal of a real ledger."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from gateway.checking import validated
from gateway.clocks import EventSchedule, Schedule, WallClock, WallSchedule
from gateway.intake import Intake
from gateway.ledger import Ledger, LedgerThread, Standing
from gateway.messages import Release
from gateway.metering import metering_of
from gateway.mqtt import Message
from gateway.policy import document_of
from gateway.privacy import MISSING, close_slot
from gateway.slots import OpenSlots, RegisterState
from gateway.sources import Sources
from gateway.telemetry import OperatorMetrics

SLOT_MS = 60_000
FIRST = 29_460_120
"""2026-01-05T10:00Z in minutes."""
HOMES = ["a", "b", "c"]


def reading(household: str, slot: int, wh: float = 1.0, *, retained: bool = False) -> Message:
    payload = b'{"e":%f,"ts":%d}' % (wh, slot * 60)
    return Message(f"m/{household}", payload, retained)


@dataclass
class Way:
    """An intake with its ledger, thread and metrics, on a clock that is set by hand."""

    path: Path
    event: bool = False
    now_ms: int = FIRST * SLOT_MS
    acknowledged: list[int] = field(default_factory=list)
    journaled_then: list[list[tuple[str, int, int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.config = validated(
            {
                "slots": {"length": "1min", "grace": "1s"},
                "budget": {"window": "1h"},
                "source": [{"topic": "m/{household}", "value": "/e", "unit": "Wh", "time": {"at": "/ts"}}],
                "household": [{"id": home} for home in HOMES],
            }
        )
        self.document = document_of(self.config)
        self.policy = self.document.compile()
        self.metrics = OperatorMetrics()
        metering = metering_of(self.config)
        self.meters = metering.meters
        sources = Sources(self.config.source, metering, SLOT_MS)
        clock = WallClock(lambda: self.now_ms)
        schedule: Schedule = WallSchedule(clock, SLOT_MS, 1_000, 5_000)
        if self.event:
            schedule = EventSchedule(self.meters, 3, SLOT_MS, 1_000)
        self.thread = LedgerThread(self.metrics.commit_seconds.observe)
        self.ledger = Ledger(self.path)
        blank = RegisterState.initial(len(HOMES)).packed()
        self.standing: Standing = self.ledger.enter(self.document, self.policy, self.meters, blank)
        self.intake = Intake(
            sources,
            meters=len(HOMES),
            schedule=schedule,
            ledger=self.ledger,
            thread=self.thread,
            metrics=self.metrics,
        )

    def open(self, next_slot: int = FIRST) -> OpenSlots:
        slots = OpenSlots(SLOT_MS, self.meters, len(HOMES), next_slot, RegisterState.initial(len(HOMES)))
        self.intake.open(slots)
        return slots

    def close_slot(self, slots: OpenSlots) -> None:
        """Close the first slot and commit it, as the service does."""
        self.intake.enter()
        taken = slots.take()
        closed = close_slot(self.policy, self.standing.state, FIRST * SLOT_MS, taken.values)
        release = Release(FIRST * SLOT_MS, closed.symbols.tolist(), closed.spent.tolist())
        self.ledger.close_slot(release, (FIRST + 1) * SLOT_MS, closed, taken.registers.packed())

    def acknowledge(self, sequence: int) -> None:
        """Take note of the number, and of what the file holds at this moment."""
        self.acknowledged.append(sequence)
        self.journaled_then.append(journal(self.path))

    def rejected(self, reason: str) -> float:
        return (
            self.metrics.registry.get_sample_value("noiseless_operator_rejected_total", {"reason": reason})
            or 0.0
        )

    def counted(self, name: str) -> float:
        return self.metrics.registry.get_sample_value(f"noiseless_operator_{name}") or 0.0

    def close(self) -> None:
        self.thread.shutdown()
        self.ledger.close()


@asynccontextmanager
async def way(path: Path, *, event: bool = False, now_ms: int = FIRST * SLOT_MS) -> AsyncIterator[Way]:
    one = Way(path, event, now_ms)
    try:
        yield one
    finally:
        one.close()


def journal(path: Path) -> list[tuple[str, int, int]]:
    """Return (household, slot, mWh) of all readings in a ledger's journal, read beside its owner."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
        names = dict(db.execute("SELECT position, name FROM place WHERE kind = 'meter'").fetchall())
        blobs = db.execute("SELECT readings FROM journal ORDER BY id").fetchall()
    tables = [np.frombuffer(blob, "<i8").reshape(5, -1)[:3] for (blob,) in blobs]
    return [
        (names[place], start // SLOT_MS, mwh)
        for table in tables
        for place, start, mwh in zip(*table.tolist(), strict=True)
    ]


async def test_what_is_acknowledged_was_journaled_by_then(tmp_path: Path) -> None:
    async with way(tmp_path / "l.db", now_ms=(FIRST + 1) * SLOT_MS) as one:
        one.open()
        one.intake.receive([reading("a", FIRST, 1), reading("b", FIRST, 2)], 2, hurry=False)
        assert one.acknowledged == []
        await one.intake.commit(one.acknowledge)
        one.intake.receive([reading("c", FIRST, 3)], 3, hurry=False)
        await one.intake.commit(one.acknowledge)
        assert one.acknowledged == [2, 3]
        first = [("a", FIRST, 1_000), ("b", FIRST, 2_000)]
        assert one.journaled_then == [first, [*first, ("c", FIRST, 3_000)]]
        assert one.counted("messages_total") == 3
        assert one.counted("readings_total") == 3


async def test_poison_and_strangers_are_acknowledged_and_counted(tmp_path: Path) -> None:
    """telegraf#13476: what cannot be parsed and is never acknowledged stops all input."""
    async with way(tmp_path / "l.db") as one:
        one.open()
        poison = [Message("m/a", b"{", False), reading("nobody", FIRST), Message("x", b"\0", False)]
        one.intake.receive(poison, 3, hurry=False)
        await one.intake.commit(one.acknowledge)
        assert one.acknowledged == [3]
        assert one.journaled_then == [[]]
        reasons = ("undecodable", "unknown_household", "unknown_topic")
        assert [one.rejected(reason) for reason in reasons] == [1, 1, 1]


async def test_a_repeat_is_acknowledged_and_not_journaled_again(tmp_path: Path) -> None:
    async with way(tmp_path / "l.db", now_ms=(FIRST + 1) * SLOT_MS) as one:
        one.open()
        for sequence in (1, 2, 3):
            one.intake.receive([reading("a", FIRST)], sequence, hurry=False)
            await one.intake.commit(one.acknowledge)
        assert one.acknowledged == [1, 2, 3]
        assert journal(tmp_path / "l.db") == [("a", FIRST, 1_000)]
        assert one.rejected("repeated") == 2


async def test_late_future_and_stale_readings_are_acknowledged_and_not_journaled(tmp_path: Path) -> None:
    async with way(tmp_path / "l.db", now_ms=(FIRST + 1) * SLOT_MS) as one:
        one.open()
        messages = [
            reading("a", FIRST - 1),
            reading("b", FIRST - 1, retained=True),
            reading("c", FIRST + 1),
        ]
        one.intake.receive(messages, 3, hurry=False)
        await one.intake.commit(one.acknowledge)
        assert one.acknowledged == [3]
        assert journal(tmp_path / "l.db") == []
        assert [one.rejected(reason) for reason in ("late", "stale_retained", "future")] == [1, 1, 1]


async def test_a_reading_whose_slot_was_committed_before_it_is_not_written_at_all(tmp_path: Path) -> None:
    async with way(tmp_path / "l.db", now_ms=(FIRST + 2) * SLOT_MS) as one:
        one.ledger.begin(FIRST * SLOT_MS)
        slots = one.open()
        one.intake.receive([reading("a", FIRST), reading("b", FIRST + 1)], 2, hurry=False)
        one.close_slot(slots)
        await one.intake.commit(one.acknowledge)
        assert one.acknowledged == [2]
        assert journal(tmp_path / "l.db") == [("b", FIRST + 1, 1_000)]


async def test_a_reading_whose_slot_closed_but_was_not_committed_is_written(tmp_path: Path) -> None:
    """It would otherwise be acknowledged and nowhere, if the process ended now."""
    async with way(tmp_path / "l.db", now_ms=(FIRST + 2) * SLOT_MS) as one:
        one.ledger.begin(FIRST * SLOT_MS)
        slots = one.open()
        one.intake.receive([reading("a", FIRST), reading("b", FIRST + 1)], 2, hurry=False)
        one.intake.enter()
        assert slots.take().values[0] != MISSING
        await one.intake.commit(one.acknowledge)
        assert one.acknowledged == [2]
        assert one.journaled_then == [[("a", FIRST, 1_000), ("b", FIRST + 1, 1_000)]]


async def test_nothing_received_is_nothing_to_acknowledge(tmp_path: Path) -> None:
    async with way(tmp_path / "l.db") as one:
        one.open()
        await one.intake.commit(one.acknowledge)
        assert one.acknowledged == []


async def test_readings_before_the_first_slot_is_known_are_journaled_and_enter_it_afterwards(
    tmp_path: Path,
) -> None:
    async with way(tmp_path / "l.db", event=True) as one:
        choosing = asyncio.create_task(one.intake.first_slot())
        one.intake.receive([reading("a", FIRST, 1)], 1, hurry=False)
        await one.intake.commit(one.acknowledge)
        assert one.journaled_then == [[("a", FIRST, 1_000)]]
        assert not choosing.done()
        one.intake.receive([reading("b", FIRST, 2), reading("c", FIRST - 5, 3)], 3, hurry=False)
        assert await asyncio.wait_for(choosing, 1) == FIRST
        slots = one.open()
        values = slots.take().values.tolist()
        assert values == [60_000, 120_000, MISSING]
        assert one.rejected("late") == 1


async def test_one_meter_fills_neither_memory_nor_journal_before_the_first_slot(tmp_path: Path) -> None:
    async with way(tmp_path / "l.db", event=True) as one:
        flood = [reading("a", FIRST + i) for i in range(3_000)]
        one.intake.receive([*flood[:2_000]], 2_000, hurry=False)
        one.intake.receive([*flood[2_000:], reading("b", FIRST)], 3_001, hurry=False)
        await one.intake.commit(one.acknowledge)
        assert one.acknowledged == [3_001]
        kept = journal(tmp_path / "l.db")
        assert sum(home == "a" for home, _, _ in kept) <= 1_000
        assert ("b", FIRST, 1_000) in kept


async def test_a_restart_replays_the_journal_into_the_same_values_without_journaling_again(
    tmp_path: Path,
) -> None:
    path = tmp_path / "l.db"
    now_ms = (FIRST + 2) * SLOT_MS
    async with way(path, now_ms=now_ms) as one:
        one.ledger.begin(FIRST * SLOT_MS)
        slots = one.open()
        one.intake.receive([reading("a", FIRST, 1), reading("b", FIRST, 2)], 2, hurry=False)
        await one.intake.commit(one.acknowledge)
        one.intake.receive([reading("a", FIRST, 5), reading("c", FIRST + 1, 4)], 4, hurry=False)
        await one.intake.commit(one.acknowledge)
        before = [slots.take().values.tolist(), slots.take().values.tolist()]
    async with way(path, now_ms=now_ms) as again:
        assert again.standing.next_ms == FIRST * SLOT_MS
        again.intake.replay(again.standing.readings)
        slots = again.open()
        written = journal(path)
        again.intake.receive([reading("a", FIRST, 1), reading("a", FIRST, 5)], 2, hurry=False)
        await again.intake.commit(again.acknowledge)
        assert journal(path) == written
        assert [slots.take().values.tolist(), slots.take().values.tolist()] == before


async def test_rows_of_a_closed_slot_are_not_replayed(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    async with way(path, now_ms=(FIRST + 2) * SLOT_MS) as one:
        one.ledger.begin(FIRST * SLOT_MS)
        slots = one.open()
        one.intake.receive([reading("a", FIRST, 1)], 1, hurry=False)
        await one.intake.commit(one.acknowledge)
        one.close_slot(slots)
    async with way(path) as again:
        assert again.standing.next_ms == (FIRST + 1) * SLOT_MS
        assert len(again.standing.readings) == 0


async def test_hurry_commits_long_before_the_next_time(tmp_path: Path) -> None:
    async with way(tmp_path / "l.db", now_ms=(FIRST + 1) * SLOT_MS) as one:
        one.open()
        committing = asyncio.create_task(one.intake.commit_every(3_600, one))  # type: ignore[arg-type]
        one.intake.receive([reading("a", FIRST)], 1, hurry=False)
        await asyncio.sleep(0.05)
        assert one.acknowledged == []
        one.intake.receive([reading("b", FIRST)], 2, hurry=True)
        async with asyncio.timeout(2):
            while not one.acknowledged:  # noqa: ASYNC110 - the acknowledgement sets no event
                await asyncio.sleep(0.005)
        committing.cancel()
        assert one.acknowledged == [2]
        assert one.journaled_then == [[("a", FIRST, 1_000), ("b", FIRST, 1_000)]]


async def test_a_commit_beside_one_that_cannot_write_acknowledges_nothing_of_it(tmp_path: Path) -> None:
    """A full disk, and then SIGTERM: the last commit must not acknowledge what the first still holds."""
    async with way(tmp_path / "l.db", now_ms=(FIRST + 1) * SLOT_MS) as one:
        one.open()
        with closing(sqlite3.connect(tmp_path / "l.db", isolation_level=None)) as other:
            one.ledger._db.execute("PRAGMA busy_timeout = 0")
            other.execute("BEGIN IMMEDIATE")
            one.intake.receive([reading("a", FIRST)], 1, hurry=False)
            failing = asyncio.create_task(one.intake.commit(one.acknowledge))
            async with asyncio.timeout(2):
                while one.thread.writable:  # noqa: ASYNC110 - the thread sets no event
                    await asyncio.sleep(0.005)
            last = asyncio.create_task(one.intake.commit(one.acknowledge))
            await asyncio.sleep(0.1)
            assert one.acknowledged == []
            other.execute("ROLLBACK")
        failing.cancel()
        last.cancel()
        await asyncio.gather(failing, last, return_exceptions=True)
