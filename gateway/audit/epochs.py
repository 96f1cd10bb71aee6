"""Whether a slot can be charged twice: once under each of two policies (theory A8)."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec
import numpy as np

from gateway.ledger import Ledger, LedgerError
from gateway.messages import Release
from gateway.meters import Meters
from gateway.policy import PolicyDocument
from gateway.privacy import MISSING, Policy, State, close_slot

_NO_REGISTERS = np.zeros((0, 0), np.int64)


def charged_once(document: PolicyDocument, ledger_type: type[Ledger] = Ledger) -> bool:
    """Return whether a ledger refuses a slot again after the policy changed, and remembers what was spent.

    Charges keyed by policy epoch would let a slot speak twice: 4 and 4 levels say 6 things for the price of 4.
    """
    other = msgspec.structs.replace(document, seed=f"{document.seed}, changed")
    with tempfile.TemporaryDirectory(prefix="noiseless-certify-") as folder:
        ledger = ledger_type(Path(folder) / "ledger.db")
        try:
            return _refuses(ledger, document, other)
        finally:
            ledger.close()


def _refuses(ledger: Ledger, document: PolicyDocument, other: PolicyDocument) -> bool:
    policy = document.compile()
    state = ledger.enter(document, policy, Meters.none(), _NO_REGISTERS).state
    ledger.begin(0)
    spent = _close(ledger, policy, state, document.slot_ms)
    again = ledger.enter(other, other.compile(), Meters.none(), _NO_REGISTERS)
    if not np.array_equal(again.state.households.spent, spent.households.spent):
        return False
    try:
        _close(ledger, other.compile(), again.state, document.slot_ms)
    except LedgerError:
        return True
    return False


def _close(ledger: Ledger, policy: Policy, state: State, slot_ms: int) -> State:
    closed = close_slot(policy, state, 0, np.full(len(policy.households), MISSING))
    symbols = np.concatenate((closed.symbols, closed.group_symbols)).tolist()
    ledger.close_slot(Release(0, symbols, closed.spent.tolist()), slot_ms, closed, _NO_REGISTERS)
    return closed.state
