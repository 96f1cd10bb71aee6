"""Where registers stand is kept by meter, whoever is on today's roll and whatever else its meters tell."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from meters import interval_meters

from gateway.checking import validated
from gateway.ledger import Ledger
from gateway.messages import Release
from gateway.meters import Meters, Quantity
from gateway.policy import PolicyDocument, document_of
from gateway.privacy import MISSING, close_slot
from gateway.slots import RegisterState
from gateway.sources import Readings, Row

START = 1_767_571_200_000
SLOT_MS = 30 * 60_000


def document(*homes: str) -> PolicyDocument:
    source = {"topic": "{household}", "value": "/e", "unit": "Wh", "time": {"at": "/ts"}}
    roll = [{"id": home} for home in homes]
    levels = {"levels": 4, "range": ["0 W", "4 kW"]}
    return document_of(validated({"release": levels, "source": [source], "household": roll}))


def meters(homes: str, registers: str) -> Meters:
    quantity = [Quantity.REGISTER if home in registers else Quantity.INTERVAL for home in homes]
    return replace(interval_meters(tuple(homes), SLOT_MS), quantity=np.array(quantity, np.int64))


class Opened:
    """A ledger with a roll of one-letter households, some of whose meters are registers."""

    def __init__(self, path: Path, homes: str, registers: str) -> None:
        self.policy = document(*homes).compile()
        self.ledger = Ledger(path)
        blank = RegisterState.initial(len(homes)).packed()
        self.standing = self.ledger.enter(document(*homes), self.policy, meters(homes, registers), blank)
        self.registers = RegisterState.of(self.standing.registers)

    def close_slot(self, start_ms: int) -> None:
        """Close a slot in which nobody said anything, with the registers as they are here."""
        if self.standing.next_ms is None and start_ms == START:
            self.ledger.begin(START)
        closed = close_slot(
            self.policy, self.standing.state, start_ms, np.full(len(self.policy.price), MISSING)
        )
        release = Release(start_ms, closed.symbols.tolist(), closed.spent.tolist())
        self.ledger.close_slot(release, start_ms + SLOT_MS, closed, self.registers.packed())
        self.ledger.close()


def test_a_register_stands_where_it_stood_when_its_meter_comes_back_to_the_roll(tmp_path: Path) -> None:
    """As E1 (home-assistant/core#91449): the value was lower, or lost, after a restart."""
    first = Opened(tmp_path / "ledger", "abc", "abc")
    first.registers.time_ms[:] = START + 1, START + 2, START + 3
    first.registers.value_mwh[:] = 10, 20, 30
    first.close_slot(START)
    Opened(tmp_path / "ledger", "c", "c").close_slot(START + SLOT_MS)
    again = Opened(tmp_path / "ledger", "dcba", "dcba")
    assert again.registers.begun.tolist() == [False, True, True, True]
    assert again.registers.value_mwh[1:].tolist() == [30, 20, 10]
    assert again.registers.time_ms[1:].tolist() == [START + 3, START + 2, START + 1]
    again.ledger.close()


def test_a_meter_that_told_intervals_begins_with_nothing_when_it_tells_its_register(tmp_path: Path) -> None:
    """As E8 (Tasmota#13924): a register that began with zero, long ago, would make its first reading energy."""
    Opened(tmp_path / "ledger", "abc", "").close_slot(START)
    Opened(tmp_path / "ledger", "a", "a").close_slot(START + SLOT_MS)
    all_of_them = Opened(tmp_path / "ledger", "abc", "abc")
    assert all_of_them.registers.begun.tolist() == [False] * 3
    all_of_them.ledger.close()


def test_what_was_journaled_as_another_quantity_is_not_read_as_this_one(tmp_path: Path) -> None:
    first = Opened(tmp_path / "ledger", "ab", "a")
    first.ledger.begin(START)
    rows = [Row(0, START + 5, 47_900, retained=True, serial=7), Row(1, START, 500)]
    first.ledger.append(Readings.of(rows))
    first.ledger.close()
    same = Opened(tmp_path / "ledger", "ba", "a")
    there = same.standing.readings
    assert there.meter.tolist() == [1, 0]
    assert (there.value.tolist(), there.serial.tolist()) == ([47_900, 500], [7, 0])
    assert there.retained.tolist() == [True, False]
    same.ledger.close()
    other = Opened(tmp_path / "ledger", "ab", "b")
    assert len(other.standing.readings) == 0
    other.ledger.close()
