"""The durable side: readings in flight, charges, and releases that wait to be published."""

from gateway.ledger._file import SCHEMA_VERSION, LedgerError
from gateway.ledger.awaited import LedgerThread
from gateway.ledger.balance import Balances
from gateway.ledger.reading import Statement, read_statement
from gateway.ledger.sqlite import Ledger, PendingRelease, Standing

__all__ = [
    "SCHEMA_VERSION",
    "Balances",
    "Ledger",
    "LedgerError",
    "LedgerThread",
    "PendingRelease",
    "Standing",
    "Statement",
    "read_statement",
]
