"""What a ledger says is read beside its owner, without a write."""

from pathlib import Path

import pytest
from ledger.books import AB, SLOT_MS, START, book

from gateway.ledger import Ledger, LedgerError, read_statement


def test_a_statement_is_read_beside_the_owner_and_without_a_write(path: Path) -> None:
    with book(path) as one:
        one.begin().close_slot(100, 3_900)
        statement = read_statement(path)
        assert statement.document == AB
        assert statement.next_ms == START + SLOT_MS
        assert statement.households == {"a": 0, "b": 1}
        assert statement.groups == {"g": 0}
        assert statement.balances.households[2].tolist() == one.policy.price.tolist()
        one.close_slot(100, 3_900)
        assert read_statement(path).next_ms == START + 2 * SLOT_MS


def test_no_ledger_is_no_statement_and_none_is_made(path: Path) -> None:
    with pytest.raises(LedgerError, match="there is none"):
        read_statement(path)
    assert not path.exists()


def test_a_ledger_that_was_never_entered_is_no_statement(path: Path) -> None:
    Ledger(path).close()
    with pytest.raises(LedgerError, match="nothing was entered"):
        read_statement(path)
