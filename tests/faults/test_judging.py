"""The judge finds what is wrong: each test spoils one thing in the evidence of a calm campaign."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import aiomqtt
import pytest
from faults.judging import Evidence, Ledger, Roll, judge
from faults.watching import Subscriber, power_w
from faults.wiretap import Key, Wiretap
from service.expecting import Grid, group_symbol_of, price_of, symbol_of

SLOTS, SEED = 3, 5
ROLL = Roll({"h-0": 4, "h-1": 4}, {"all": ["h-0", "h-1"]})
GRID = Grid()
FIRST = Key("household/h-0", GRID.start(0))


class Balanced(Ledger):
    """A ledger at rest that charged `SLOTS` slots of two households."""

    def __init__(self, charged: int) -> None:
        super().__init__(Path())
        self._charged = charged

    @property
    def charged_microbits(self) -> int:
        return self._charged

    def complaints(self, length_ms: int) -> list[str]:  # type: ignore[override]
        assert length_ms == 60_000
        return []


LEDGER = Balanced(2 * SLOTS * price_of(4, [ROLL.reach]))


@pytest.fixture
def evidence() -> Evidence:
    subscriber, tap = Subscriber(0, ROLL.prices, connections=lambda: 1), Wiretap()
    for slot in range(SLOTS):
        powers = [GRID.power_mw(power_w(SEED, slot, name)) for name in ROLL.levels]
        symbols = [*(symbol_of(power, 4) for power in powers), group_symbol_of(powers, ROLL.reach)]
        for topic, symbol in zip(ROLL.topics, symbols, strict=True):
            key = Key(topic, GRID.start(slot))
            subscriber.first[key] = json.dumps({"slot": key.slot, "symbol": symbol}).encode()
            tap.published[key] = {subscriber.first[key]}
            tap.acknowledged.add(key)
    return Evidence(ROLL, GRID, SEED, SLOTS, subscriber, tap, broker_killed=False)


def other_symbol(payload: bytes) -> bytes:
    said = json.loads(payload)
    return json.dumps({**said, "symbol": (said["symbol"] + 1) % 4}).encode()


def lose(evidence: Evidence) -> None:
    del evidence.subscriber.first[FIRST]


def change_a_symbol(evidence: Evidence) -> None:
    evidence.subscriber.first[FIRST] = other_symbol(evidence.subscriber.first[FIRST])


def change_a_group(evidence: Evidence) -> None:
    key = Key("group/all", GRID.start(1))
    evidence.subscriber.first[key] = other_symbol(evidence.subscriber.first[key])


def mark_as_spent(evidence: Evidence) -> None:
    said = json.loads(evidence.subscriber.first[FIRST])
    evidence.subscriber.first[FIRST] = json.dumps({**said, "spent": True}).encode()


def repeat(evidence: Evidence) -> None:
    evidence.subscriber.unexplained.append(FIRST)


def see_other_bytes(evidence: Evidence) -> None:
    evidence.subscriber.differing.append((FIRST, b"other"))


def send_other_bytes(evidence: Evidence) -> None:
    evidence.tap.published[FIRST].add(b"other")


def release_a_stranger(evidence: Evidence) -> None:
    evidence.subscriber.first[Key("household/h-9", GRID.start(0))] = b'{"symbol": 0}'


def change_the_order(evidence: Evidence) -> None:
    evidence.subscriber.first[FIRST] = evidence.subscriber.first.pop(FIRST)


def leave_unacknowledged(evidence: Evidence) -> None:
    evidence.tap.acknowledged.remove(FIRST)


def test_what_is_right_has_no_fault(evidence: Evidence) -> None:
    verdict = judge(evidence, LEDGER)
    assert verdict.faults == []
    assert (verdict.slots, verdict.releases, verdict.substituted) == (SLOTS, 3 * SLOTS, 0)


@pytest.mark.parametrize(
    "spoil",
    [
        lose,
        change_a_symbol,
        change_a_group,
        mark_as_spent,
        repeat,
        see_other_bytes,
        send_other_bytes,
        release_a_stranger,
        change_the_order,
        leave_unacknowledged,
    ],
)
def test_one_wrong_thing_is_a_fault(evidence: Evidence, spoil: Callable[[Evidence], None]) -> None:
    spoil(evidence)
    assert judge(evidence, LEDGER).faults


def test_a_repeat_is_explained_by_a_new_connection_and_by_nothing_else() -> None:
    connections = 1
    subscriber = Subscriber(0, {FIRST.topic: 5}, connections=lambda: connections)
    payload = json.dumps({"slot": FIRST.slot, "symbol": 1}).encode()
    message = aiomqtt.Message(f"noiseless/{FIRST.topic}", payload, 1, retain=False, mid=1, properties=None)
    subscriber._take(message)
    connections = 2
    subscriber._take(message)
    assert (subscriber.repeats[FIRST], subscriber.unexplained, subscriber.released_microbits) == (1, [], 5)
    subscriber = Subscriber(0, {}, connections=lambda: connections)
    for _ in range(2):
        subscriber._take(message)
    assert subscriber.unexplained == [FIRST]


@pytest.mark.parametrize("off_by", [-1, 1])
def test_a_ledger_that_is_one_micro_bit_off_is_a_fault(evidence: Evidence, off_by: int) -> None:
    (fault,) = judge(evidence, Balanced(LEDGER.charged_microbits + off_by)).faults
    assert "charged" in fault


def test_a_release_that_a_killed_broker_took_is_not_the_gateways_fault(evidence: Evidence) -> None:
    evidence = replace(evidence, broker_killed=True)
    lose(evidence)
    assert judge(evidence, LEDGER).faults, "the broker never took it"
    evidence.tap.taken.add(FIRST)
    verdict = judge(evidence, LEDGER)
    assert (verdict.faults, verdict.releases_lost_by_broker) == ([], 1)


def test_an_acknowledged_reading_counts_even_if_the_broker_was_killed(evidence: Evidence) -> None:
    evidence = replace(evidence, broker_killed=True)
    # Held at the lower end, as if the reading had been lost.
    key = next(
        k for k, said in evidence.subscriber.first.items() if b'"symbol": 3' in said and "h-" in k.topic
    )
    changed = evidence.subscriber.first[key].replace(b'"symbol": 3', b'"symbol": 0')
    evidence.subscriber.first[key] = changed
    assert judge(evidence, LEDGER).faults
