"""Slots, charges and releases: what was committed is there after any restart, what failed has not happened."""

import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from ledger.books import AB, SLOT_MS, START, accounts, book, document, readings, rows_of, sql

from gateway.ledger import Ledger, LedgerError
from gateway.messages import Renderer


def test_a_fresh_ledger_knows_nobody_and_begins_where_it_is_told(path: Path) -> None:
    with book(path) as one:
        assert one.standing.next_ms is None
        assert len(one.standing.readings) == 0
        assert one.state.households.total.tolist() == [0, 0]
        assert one.ledger.outbox() == []
        assert one.ledger.totals() == (0, 0, 0)
        one.begin()
    with book(path) as again:
        assert again.standing.next_ms == START


def test_a_slot_leaves_its_charges_its_releases_and_the_next_slot_behind(path: Path) -> None:
    with book(path) as one:
        release = one.begin().close_slot(500, 3_500)
        assert release.symbols[:2] == [0, 3]
        price = one.policy.price.tolist()
        assert one.ledger.totals() == (2, 1, sum(price))
        (pending,) = one.ledger.outbox()
        assert (pending.release, pending.sent, pending.epoch) == (release, 0, one.ledger.epoch)
    assert accounts(path)["a"] == (START, price[0], price[0], 500_000, 0)
    assert accounts(path)["b"] == (START, price[1], price[1], 3_500_000, 0)
    with book(path) as again:
        assert again.standing.next_ms == START + SLOT_MS
        assert again.state.households.spent.tolist() == price
        assert again.state.groups.total.tolist() == one.state.groups.total.tolist()
        assert again.state.held.tolist() == [500_000, 3_500_000]
        assert [one.release for one in again.ledger.outbox()] == [release]


def test_closing_and_opening_between_slots_changes_no_symbol_and_no_charge(tmp_path: Path) -> None:
    values = [(100, 3_900), (None, 2_000), (2_500, None), (1_500, 1_500)]
    with book(tmp_path / "whole.db") as one:
        one.begin()
        whole = [one.close_slot(*pair) for pair in values]
    pieces = []
    for i, pair in enumerate(values):
        with book(tmp_path / "pieces.db") as one:
            if i == 0:
                one.begin()
            pieces.append(one.close_slot(*pair))
    assert pieces == whole
    assert accounts(tmp_path / "pieces.db") == accounts(tmp_path / "whole.db")


def test_the_journal_gives_back_what_was_appended_in_its_order(path: Path) -> None:
    batches = [
        readings((0, START, 5), (1, START, 7)),
        readings((1, START + SLOT_MS, -(10**12))),
        readings((0, START, 5), (0, START, 2**62)),
    ]
    with book(path) as one:
        one.begin()
        for batch in batches:
            one.ledger.append(batch)
        one.ledger.append(readings())
    with book(path) as again:
        assert rows_of(again.standing.readings) == [row for batch in batches for row in rows_of(batch)]
        assert not again.standing.readings.retained.any()
    assert sql(path, "SELECT count(*) FROM journal") == [(3,)]


def test_the_journal_follows_households_that_move_on_the_roll(path: Path) -> None:
    with book(path) as one:
        one.begin()
        one.ledger.append(readings((0, START, 11), (1, START, 22)))
    with book(path, document("c", "b")) as other:
        assert rows_of(other.standing.readings) == [(1, START, 22)]
    with book(path, document("b", "c", "a")) as last:
        assert rows_of(last.standing.readings) == [(2, START, 11), (0, START, 22)]


def test_a_journal_row_goes_when_its_last_slot_closes_and_not_before(path: Path) -> None:
    with book(path) as one:
        one.begin()
        one.ledger.append(readings((0, START, 1)))
        one.ledger.append(readings((0, START, 2), (1, START + SLOT_MS, 3)))
        one.ledger.append(readings((0, START + 2 * SLOT_MS - 1, 4)))
        for left in (2, 0, 0):
            one.close_slot(1, 1)
            assert sql(path, "SELECT count(*) FROM journal") == [(left,)]


def untouched_by(path: Path, action: Callable[[], object]) -> LedgerError:
    """Return the error of an action, after which the file says what it said before."""
    tables = ("epoch", "place", "journal", "slot", "outbox", "balance")
    before = [sql(path, f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables]
    with pytest.raises(LedgerError) as failed:
        action()
    assert [sql(path, f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables] == before
    return failed.value


def test_a_slot_cannot_be_charged_twice(path: Path) -> None:
    with book(path) as one:
        one.begin()
        one.ledger.append(readings((0, START + SLOT_MS, 1)))
        release, closed = one.decided(100, 200)
        one.ledger.close_slot(release, START + SLOT_MS, closed, one.registers)
        error = untouched_by(
            path, lambda: one.ledger.close_slot(release, START + 5 * SLOT_MS, closed, one.registers)
        )
        assert isinstance(error.__cause__, sqlite3.IntegrityError)
        assert error.remedy
        one.state, one.next_ms = closed.state, START + SLOT_MS
        one.close_slot(1, 1)
    price = AB.compile().price[0]
    assert accounts(path)["a"][2] == 2 * price


def test_a_slot_cannot_be_charged_twice_after_its_release_was_delivered_either(path: Path) -> None:
    with book(path) as one:
        one.begin()
        release, closed = one.decided(100, 200)
        one.ledger.close_slot(release, START + SLOT_MS, closed, one.registers)
        one.ledger.delivered(START)
        untouched_by(path, lambda: one.ledger.close_slot(release, START + SLOT_MS, closed, one.registers))


def fill(one: Ledger) -> None:
    """Let the file grow no further, as on a full disk."""
    pages = one._db.execute("PRAGMA page_count").fetchone()[0]
    one._db.execute(f"PRAGMA max_page_count = {pages}")


def test_on_a_full_disk_nothing_of_a_slot_happens_and_it_closes_when_there_is_room(path: Path) -> None:
    wide = document(*[f"h-{i}" for i in range(2_000)])
    with book(path, wide) as one:
        one.begin()
        fill(one.ledger)
        release, closed = one.decided(*[2_000] * 2_000)
        error = untouched_by(
            path, lambda: one.ledger.close_slot(release, START + SLOT_MS, closed, one.registers)
        )
        assert "full" in error.problem
        assert "free space" in error.remedy
        untouched_by(path, lambda: one.ledger.append(readings(*[(0, START, i) for i in range(5_000)])))
        one.ledger._db.execute("PRAGMA max_page_count = 1000000")
        assert one.close_slot(*[2_000] * 2_000) == release
    assert accounts(path)["h-0"][1] == wide.compile().price[0]


def test_the_outbox_is_in_order_of_slots_and_remembers_how_far_each_came(path: Path) -> None:
    with book(path) as one:
        one.begin()
        releases = [one.close_slot(100 * i, 4_000 - 100 * i) for i in range(4)]
        one.ledger.sent(START + SLOT_MS, 2)
        one.ledger.delivered(START)
        one.ledger.delivered(START + 2 * SLOT_MS)
    with book(path) as again:
        assert again.ledger.waiting() == (2, 4)
        left = again.ledger.outbox()
        assert again.ledger.oldest() == left[0]
        assert [pending.release for pending in left] == [releases[1], releases[3]]
        assert [pending.sent for pending in left] == [2, 0]
        again.ledger.delivered(START + SLOT_MS)
        again.ledger.delivered(START + 3 * SLOT_MS)
        assert again.ledger.outbox() == []
        assert again.ledger.oldest() is None
        assert again.ledger.waiting() == (0, 0)
        assert again.ledger.totals()[:2] == (8, 4)


def test_the_outbox_keeps_whose_budget_was_spent(path: Path) -> None:
    homes = [f"h-{i}" for i in range(11)]
    roll = document(*homes[:-1], "x", budget={"bits": 5}, household=[{"id": home} for home in homes])
    with book(path, roll) as one:
        one.begin()
        marks = [one.close_slot(*[1_000] * 11).spent for _ in range(3)]
    assert marks == [[False] * 11, [False] * 11, [True] * 11]
    with book(path, roll) as again:
        assert [pending.release.spent for pending in again.ledger.outbox()] == marks
    assert sql(path, "SELECT held FROM slot ORDER BY start_ms") == [(0,), (0,), (11,)]


def test_the_same_policy_continues_its_epoch_and_a_changed_one_begins_another(path: Path) -> None:
    changed = document("a", "b", release={"levels": 8, "range": ["0 W", "4 kW"]})
    epochs = []
    for policy in (AB, AB, changed, AB, AB):
        with book(path, policy) as one:
            epochs.append(one.ledger.epoch)
            assert one.ledger.document(one.ledger.epoch) == policy
    assert epochs == [1, 1, 2, 3, 3]


def test_releases_of_an_old_epoch_are_rendered_to_the_same_bytes_under_a_new_one(path: Path) -> None:
    with book(path) as one:
        one.begin()
        release = one.close_slot(500, 3_500)
        before = Renderer(AB, AB.compile()).render(release)
    changed = document("b", "c", release={"levels": 16, "range": ["-1 kW", "9 kW"]}, output={"topic": "new"})
    with book(path, changed) as again:
        (pending,) = again.ledger.outbox()
        assert pending.epoch != again.ledger.epoch
        old = again.ledger.document(pending.epoch)
        after = Renderer(old, old.compile()).render(pending.release)
    assert after == before
    assert [publication.topic for publication in after] == [
        "out/household/a",
        "out/household/b",
        "out/group/g",
    ]


def test_who_leaves_the_roll_and_returns_finds_her_spend_as_she_left_it(path: Path) -> None:
    with book(path) as one:
        one.begin()
        for _ in range(3):
            one.close_slot(100, 3_900)
    left = accounts(path)["a"]
    with book(path, document("c", "b")) as other:
        assert other.state.households.spent.tolist() == [0, one.state.households.spent[1]]
        other.close_slot(1_000, 2_000)
    assert accounts(path)["a"] == left
    with book(path) as again:
        assert again.state.households.spent.tolist()[0] == left[1]
        assert again.state.held.tolist()[0] == left[3]
        again.close_slot(100, 100)
    assert accounts(path)["a"][1] == left[1] + AB.compile().price[0]


def test_a_group_that_leaves_and_returns_keeps_its_capacity(path: Path) -> None:
    with book(path) as one:
        one.begin().close_slot(1, 1)
        total = one.state.groups.total.tolist()
    with book(path, document("a", "b")) as other:
        other.close_slot(1, 1)
    with book(path) as again:
        assert again.state.groups.total.tolist() == total


def test_a_policy_change_within_a_window_keeps_what_was_spent_in_it(path: Path) -> None:
    with book(path) as one:
        one.begin()
        for _ in range(5):
            one.close_slot(100, 200)
        spent = one.state.households.spent.tolist()
    with book(path, document("a", "b", release={"levels": 2, "range": ["0 W", "9 kW"]})) as again:
        assert again.state.households.spent.tolist() == spent
        assert again.state.households.window.tolist() == [START, START]


@pytest.mark.parametrize(
    ("lengths", "slots"),
    [(["24h", "1h"], 1), (["1h", "24h"], 5), (["24h", "1h", "24h"], 5), (["1h", "2h"], 1)],
)
def test_windows_of_another_length_forget_no_spend(path: Path, lengths: list[str], slots: int) -> None:
    """Five slots were charged from midnight on; the last window knows those that lie in it, and no other."""
    group = [{"name": "g", "members": ["a"], "levels": 4}]
    for i, length in enumerate(lengths):
        with book(path, document("a", budget={"window": length, "bits": 96}, group=group)) as one:
            if i == 0:
                one.begin()
                for _ in range(5):
                    one.close_slot(100)
            window = one.document.window_of(START + 5 * SLOT_MS)
            spent, groups = (account.spent_in(window) for account in (one.state.households, one.state.groups))
            assert i == 0 or spent[0] > 0
    assert spent.tolist() == [slots * one.policy.price[0]]
    assert groups.tolist() == [slots * one.policy.group_price[0]]
    assert one.state.households.total.tolist() == [5 * one.policy.price[0]]


hours = st.sampled_from([1, 2, 3, 4, 6, 8, 12, 24, 48])


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(hours, min_size=2, max_size=4), st.lists(st.integers(0, 6), min_size=3, max_size=3))
@example([24, 1], [14, 3, 3])
@example([1, 24], [14, 3, 3])
@example([24, 1, 24], [14, 3, 3])
def test_changed_windows_know_exactly_what_was_spent_in_the_new_window(
    lengths: list[int], counts: list[int]
) -> None:
    """While every slot can be paid: neither is a spend forgotten nor one of an earlier window counted."""
    starts: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        for length, count in zip(lengths, [*counts, 0], strict=False):
            hourly = document("a", slots={"length": "1h"}, budget={"window": f"{length}h"})
            with book(Path(folder) / "noiseless.db", hourly) as one:
                start = one.next_ms or one.begin().next_ms
                assert start is not None
                now = hourly.window_of(start)
                paid = sum(now <= start for start in starts) * one.policy.price[0]
                assert one.state.households.spent_in(now).tolist() == [paid]
                for _ in range(count):
                    release = one.close_slot(100)
                    assert release.spent == [False]
                    starts.append(release.start_ms)
                assert one.state.households.total.tolist() == [len(starts) * one.policy.price[0]]


def test_windows_of_another_length_count_slots_that_repeated_a_symbol_as_paid(path: Path) -> None:
    """The rows of slots do not say who was held, so the most is taken: two of five were charged."""
    with book(path, document("a", budget={"bits": 5})) as one:
        one.begin()
        assert [one.close_slot(100).spent for _ in range(5)] == [[False]] * 2 + [[True]] * 3
    price = one.policy.price[0]
    with book(path, document("a", budget={"bits": 5, "window": "12h"})) as again:
        assert again.state.households.spent_in(START).tolist() == [5 * price]
        assert again.state.households.total.tolist() == [2 * price]
        assert again.close_slot(100).spent == [True]


def test_windows_of_another_length_count_each_slot_at_the_price_of_its_epoch(path: Path) -> None:
    """Two slots at 2 bits, three at 4, and "c" only in the last epoch but one."""
    release = {"range": ["0 W", "4 kW"]}
    with book(path, document("a", "b", release={**release, "levels": 4})) as one:
        one.begin()
        for _ in range(2):
            one.close_slot(100, 100)
    with book(path, document("c", "a", release={**release, "levels": 16})) as two:
        for _ in range(3):
            two.close_slot(100, 100)
    with book(path, document("a", "b", "c", "d", budget={"window": "12h"})) as last:
        spent = last.state.households.spent_in(START).tolist()
    assert spent == [2 * 2_000_000 + 3 * 4_000_000, 2 * 2_000_000, 3 * 4_000_000, 0]


def test_who_is_off_the_roll_while_windows_change_finds_her_spend_when_they_change_back(path: Path) -> None:
    with book(path, document("a", "b")) as one:
        one.begin()
        for _ in range(5):
            one.close_slot(100, 100)
    with book(path, document("b", budget={"window": "1h"})) as other:
        other.close_slot(100)
    with book(path, document("b", "a")) as again:
        spent = again.state.households.spent_in(START).tolist()
        assert again.state.households.total.tolist() == spent
    assert spent == [6 * again.policy.price[0], 5 * again.policy.price[1]]


SECRET_START = START + 12_345
SECRET_MWH = 0x5EC2E7_0123


def traces(path: Path) -> int:
    """Count where a reading's bytes still stand in the ledger's files."""
    needle = SECRET_MWH.to_bytes(8, "little")
    return sum(file.read_bytes().count(needle) for file in path.parent.glob(path.name + "*"))


def test_a_raw_reading_leaves_the_files_once_its_slot_has_closed(path: Path) -> None:
    with book(path) as one:
        one.begin()
        for _ in range(3):
            one.ledger.append(readings((0, SECRET_START, SECRET_MWH)))
        assert traces(path) > 0
        time.sleep(1.05)
        one.close_slot(100, 100)
        one.ledger.wipe()
        assert traces(path) == 0


def test_raw_readings_of_slots_that_close_in_quick_succession_leave_the_files_too(path: Path) -> None:
    """About a second after a slot closes, says the manual; not when the next one does."""
    with book(path) as one:
        one.begin()
        one.ledger.append(readings((0, SECRET_START + SLOT_MS, SECRET_MWH)))
        time.sleep(1.05)
        for _ in range(2):
            one.close_slot(100, 100)
            one.ledger.wipe()
        time.sleep(1.05)
        # What the service does while no slot closes: journal the readings that come, and wipe.
        one.ledger.append(readings((0, START + 2 * SLOT_MS, 1)))
        one.ledger.wipe()
        assert traces(path) == 0


def test_files_are_wiped_only_when_a_slot_closed_since_and_at_most_once_a_second(path: Path) -> None:
    """A checkpoint costs a write to the disk, and nothing is deleted but by a closing slot."""
    log = path.with_name(path.name + "-wal")
    with book(path) as one:
        one.begin()
        time.sleep(1.05)
        one.ledger.append(readings((0, START, 1)))
        one.ledger.wipe()
        assert log.stat().st_size > 0
        one.close_slot(100, 100)
        one.ledger.wipe()
        assert log.stat().st_size == 0
        one.close_slot(100, 100)
        one.ledger.wipe()
        assert log.stat().st_size > 0
        time.sleep(1.05)
        one.ledger.wipe()
        assert log.stat().st_size == 0


def test_a_raw_reading_leaves_the_files_when_the_ledger_is_closed(path: Path) -> None:
    with book(path) as one:
        one.begin()
        one.ledger.append(readings((0, SECRET_START, SECRET_MWH)))
        one.close_slot(100, 100)
    assert traces(path) == 0
