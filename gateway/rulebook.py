"""How rules between the fields of a configuration are written down, and what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from gateway.config import Config

NOT_SHOWN = "(not shown)"
"""Stands for a value that must not be seen."""


class Fault(NamedTuple):
    """One fault of a configuration: where, what, and what to do."""

    field: str
    value: object
    problem: str
    remedy: str


Check = Callable[[Config], Iterator[Fault]]


class Rule(NamedTuple):
    """A check, and the fields that must be free of other faults for it to make sense."""

    check: Check
    reads: frozenset[str]
    for_running: bool = False


class RuleBook(list[Rule]):
    """Rules, in the order in which they are checked."""

    def rule(self, *reads: str, for_running: bool = False) -> Callable[[Check], Check]:
        """Return the decorator that enters a check of the fields ``reads``."""

        def enter(check: Check) -> Check:
            self.append(Rule(check, frozenset(reads), for_running))
            return check

        return enter
