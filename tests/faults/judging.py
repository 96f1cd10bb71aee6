"""Whether a campaign's releases are what they must be: plain integers and plain SQL, no code of the gateway."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from faults.watching import Subscriber, power_w
from faults.wiretap import Key, Wiretap
from service.expecting import RANGE_MW, Grid, group_symbol_of, price_of, symbol_of

WINDOW_SLOTS = 10


@dataclass(frozen=True)
class Roll:
    """Households with their levels; groups of `reach` with their members; a budget that lasts for most slots."""

    levels: Mapping[str, int]
    groups: Mapping[str, Sequence[str]]
    reach: int = 8

    @classmethod
    def of(cls, households: int) -> "Roll":
        """Return a roll in which each household is in one of two groups, and every third has 8 levels."""
        names = [f"h-{i % 2}{i:02}" for i in range(households)]
        groups = {f"feeder-{half}": [n for n in names if n.startswith(f"h-{half}")] for half in (0, 1)}
        return cls({name: 8 if i % 3 == 0 else 4 for i, name in enumerate(names)}, groups)

    @property
    def budget_microbits(self) -> int:
        """Eight slots of ten for four levels, seven for eight."""
        return price_of(4, [self.reach]) * 8

    @property
    def prices(self) -> dict[str, int]:
        """Return what a release costs (micro-bits), by topic of the household."""
        return {f"household/{name}": price_of(levels, [self.reach]) for name, levels in self.levels.items()}

    @property
    def topics(self) -> list[str]:
        """Return everything that is released in each slot."""
        return [*(f"household/{name}" for name in self.levels), *(f"group/{name}" for name in self.groups)]

    def tables(self) -> dict[str, object]:
        """Return the configuration."""
        return {
            "household": [{"id": name, "levels": levels} for name, levels in self.levels.items()],
            "group": [
                {"name": name, "members": list(members), "levels": self.reach}
                for name, members in self.groups.items()
            ],
            "budget": {"window": f"{WINDOW_SLOTS}min", "bits": self.budget_microbits / 1e6},
        }


@dataclass
class Verdict:
    """What came out. Everything in `faults` is the gateway's fault and must be empty."""

    slots: int = 0
    releases: int = 0
    repeats: int = 0
    readings: int = 0
    readings_lost_by_broker: int = 0
    releases_lost_by_broker: int = 0
    substituted: int = 0
    spent: int = 0
    charged_microbits: int = 0
    released_microbits: int = 0
    faults: list[str] = field(default_factory=list)


class Ledger:
    """The ledger's file, read beside or after the service."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def charged_microbits(self) -> int:
        """The sum over all slots; 0 while there is no ledger."""
        return (
            self._number("SELECT ifnull(sum(charged_microbits), 0) FROM slot") if self._path.exists() else 0
        )

    def complaints(self, length_ms: int) -> Iterator[str]:
        """Yield what is wrong at rest: slots left out, releases that wait, a damaged file."""
        span = f"(max(start_ms) - min(start_ms)) / {length_ms} + 1 - count(*)"
        if left_out := self._number(f"SELECT {span} FROM slot"):
            yield f"the ledger leaves out {left_out} slots"
        if waiting := self._number("SELECT count(*) FROM outbox"):
            yield f"the releases of {waiting} slots were never published"
        if self._number("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"):
            yield "the ledger's file is damaged"

    def waiting(self) -> int:
        """Return how many slots are not wholly published."""
        return self._number("SELECT count(*) FROM outbox")

    def _number(self, sql: str) -> int:
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True, timeout=10)) as db:
            (number,) = db.execute(sql).fetchone()
            return int(number)


@dataclass(frozen=True)
class Evidence:
    """All that is known about a campaign when it is over."""

    roll: Roll
    grid: Grid
    seed: int
    slots: int
    subscriber: Subscriber
    tap: Wiretap
    broker_killed: bool


def judge(evidence: Evidence, ledger: Ledger) -> Verdict:
    """Return what came out of a campaign that is at rest."""
    subscriber, tap = evidence.subscriber, evidence.tap
    verdict = Verdict(
        slots=evidence.slots,
        releases=len(subscriber.first),
        repeats=subscriber.repeats.total(),
        readings=evidence.slots * len(evidence.roll.levels),
        charged_microbits=ledger.charged_microbits,
    )
    faults = verdict.faults
    faults += [f"{key} was released with different bytes" for key, _ in subscriber.differing]
    faults += [f"{key} was sent with different bytes" for key, said in tap.published.items() if len(said) > 1]
    faults += ledger.complaints(evidence.grid.length_s * 1_000)
    faults += [f"{key} was repeated without a reconnect" for key in subscriber.unexplained]
    faults += _order(subscriber)
    said = _said(evidence, verdict)
    _SymbolCheck(evidence, said, verdict).run()
    if verdict.released_microbits != verdict.charged_microbits:
        faults.append(
            f"charged {verdict.charged_microbits}, released {verdict.released_microbits} micro-bits"
        )
    return verdict


def _order(subscriber: Subscriber) -> Iterator[str]:
    latest: dict[str, str] = {}
    for topic, slot in subscriber.first:
        if slot < latest.get(topic, ""):
            yield f"{topic} of {slot} came after that of {latest[topic]}"
        latest[topic] = max(slot, latest.get(topic, ""))


def _said(evidence: Evidence, verdict: Verdict) -> dict[Key, dict[str, object]]:
    """Return every release that was due; a broker that died may have taken it and told nobody."""
    said = {}
    for slot in evidence.grid.starts(0, evidence.slots):
        for topic in evidence.roll.topics:
            key = Key(topic, slot)
            payload = evidence.subscriber.first.get(key)
            if payload is None and evidence.broker_killed and key in evidence.tap.taken:
                verdict.releases_lost_by_broker += 1
                payload = next(iter(evidence.tap.published[key]))
            if payload is None:
                verdict.faults.append(f"{key} is lost")
            else:
                said[key] = json.loads(payload)
    beyond = evidence.subscriber.first.keys() - said.keys()
    verdict.faults += [f"{key} should not be there" for key in beyond]
    return said


class _Account:
    """One household: what she has spent, and the value of her last symbol."""

    def __init__(self, levels: int, reach: int, budget: int) -> None:
        self.levels = levels
        self.price = price_of(levels, [reach])
        self._budget = budget
        self._spent = self.held_mw = 0

    def charge(self, slot: int) -> bool:
        """Pay for a slot if it can be paid; windows begin at midnight."""
        if slot % WINDOW_SLOTS == 0:
            self._spent = 0
        paid = self._spent + self.price <= self._budget
        self._spent += self.price if paid else 0
        return paid

    def hold(self, symbol: object) -> None:
        """Remember the middle of the cell that was released."""
        if isinstance(symbol, int):
            self.held_mw = (2 * symbol + 1) * RANGE_MW[1] // (2 * self.levels)


class _SymbolCheck:
    """Works out, slot after slot, what every release must say."""

    def __init__(
        self, evidence: Evidence, said: Mapping[Key, Mapping[str, object]], verdict: Verdict
    ) -> None:
        self._evidence, self._said, self._verdict = evidence, said, verdict
        roll = self._roll = evidence.roll
        self._accounts = {
            name: _Account(levels, roll.reach, roll.budget_microbits) for name, levels in roll.levels.items()
        }

    def run(self) -> None:
        for slot in range(self._evidence.slots):
            start = self._evidence.grid.start(slot)
            powers = {
                name: self._check_household(slot, Key(f"household/{name}", start)) for name in self._accounts
            }
            for group, members in self._roll.groups.items():
                self._check_group(Key(f"group/{group}", start), [powers[name] for name in members])

    def _check_group(self, key: Key, powers: Sequence[int | None]) -> None:
        known = [power for power in powers if power is not None]
        if key not in self._said or len(known) < len(powers):
            return
        expected = group_symbol_of(known, self._roll.reach)
        if self._said[key]["symbol"] != expected:
            self._verdict.faults.append(f"{key} is {self._said[key]['symbol']}, not {expected}")

    def _check_household(self, slot: int, key: Key) -> int | None:
        """Check one release and return the power that her groups used; None if that cannot be known."""
        verdict, name, said = self._verdict, key.topic.removeprefix("household/"), self._said.get(key, {})
        account = self._accounts[name]
        held, paid = account.held_mw, account.charge(slot)
        measured = self._evidence.grid.power_mw(power_w(self._evidence.seed, slot, name))
        verdict.released_microbits += account.price if paid else 0
        verdict.spent += not paid
        durable = self._durable(key)
        possible = ([held] if not paid or not durable else []) + ([measured] if paid else [])
        symbols, symbol = {symbol_of(power, account.levels) for power in possible}, said.get("symbol")
        if symbol not in symbols or said.get("spent", False) is paid:
            verdict.faults.append(f"{key} says {said}, not one of {symbols} with spent {not paid}")
        verdict.substituted += paid and symbol != symbol_of(measured, account.levels)
        account.hold(symbol)
        return possible[0] if len(possible) == 1 else None

    def _durable(self, key: Key) -> bool:
        """Return whether the gateway acknowledged a reading, which only a broker that dies can prevent."""
        if key in self._evidence.tap.acknowledged:
            return True
        self._verdict.readings_lost_by_broker += 1
        if not self._evidence.broker_killed:
            self._verdict.faults.append(f"the reading of {key} was never acknowledged")
        return False
