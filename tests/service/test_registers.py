"""Meters that tell a running total: what goes through is found between readings, and nothing is made up."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from brokers import Mosquitto
from gateways import Gateway
from service.conftest import GatewayFactory
from service.telling import REGISTER, Street, assert_close, means_of_register
from service.watching import Message, Watcher, publish

LENGTH = 3_600
SLOTS = 6
LAST = SLOTS * LENGTH + 600


def stood(watts: int, every: int, start_wh: int = 47_900, first: int = 0) -> list[tuple[int, int]]:
    """Return (second, Wh) of a register that moves evenly, told every so many seconds."""
    return [
        (second, start_wh + watts * (second - first) // 3_600) for second in range(first, LAST + 1, every)
    ]


def uneven(seed: int) -> list[tuple[int, int]]:
    """Return (second, Wh) at uneven times, three to eight minutes apart, from 0 on and beyond the last slot."""
    dice = random.Random(seed)
    moments, total, told = [0], 12_345, []
    while moments[-1] < LAST:
        moments.append(moments[-1] + dice.randrange(180, 500))
    for second in moments:
        told.append((second, total))
        total += dice.randrange(60)
    return told


def dropped(told: list[tuple[int, int]], begin: int, end: int) -> list[tuple[int, int]]:
    return [(second, wh) for second, wh in told if not begin < second < end]


def replaced(told: list[tuple[int, int]], wrong: dict[int, int]) -> list[tuple[int, int]]:
    return [(second, wrong.get(second, wh)) for second, wh in told]


STEADY = stood(600, 300)
RESET_S = 2 * LENGTH + 900
GAP = (LENGTH + 600, 4 * LENGTH + 1_800)
TOLD: dict[str, list[tuple[int, int]]] = {
    "steady": STEADY,
    "uneven-1": uneven(1),
    "uneven-2": uneven(2),
    "whole-kwh": [(second, wh // 1_000 * 1_000) for second, wh in stood(1_000, 60)],
    "reset": [(s, wh if s < RESET_S else 600 * (s - RESET_S) // 3_600) for s, wh in STEADY],
    "glitch": replaced(STEADY, {RESET_S: 41_200}),
    "glitch-up": replaced(STEADY, {RESET_S: 9_999_999}),
    "glitch-at-the-border": replaced(STEADY, {3 * LENGTH - 300: 0, 3 * LENGTH: 0}),
    "no-link": replaced(STEADY, {s: 0 for s, _ in STEADY if LENGTH + 1_500 <= s < 2 * LENGTH}),
    "rollover": [(second, wh % 50_000) for second, wh in stood(1_200, 300, start_wh=47_900)],
    "replaced": [(s, wh if s < RESET_S else 90_000 + 600 * (s - RESET_S) // 3_600) for s, wh in STEADY],
    "spread": dropped(STEADY, *GAP),
    "missing": dropped(STEADY, *GAP),
}
GAPPED = ["missing"]
ROLLING = ["rollover"]
PLAIN = [name for name in TOLD if name not in (*GAPPED, *ROLLING)]
GIVEN = {**REGISTER, "serial": "/serial", "gap": "10min"}
SOURCES = [
    {**GIVEN, "meters": PLAIN},
    {**GIVEN, "meters": GAPPED, "gaps": "missing"},
    {**GIVEN, "meters": ROLLING, "modulus": "50 kWh"},
]
Watts = dict[str, list[int | None]]


def messages(street: Street) -> list[Message]:
    """Return what all meters tell, in the order of time."""
    found = []
    for name, told in TOLD.items():
        for second, wh in told:
            serial = {"serial": "old" if second < RESET_S else "new"} if name == "replaced" else {}
            found.append((second, street.register(name, second, wh, **serial)))
    return [message for _, message in sorted(found, key=lambda one: one[0])]


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Watts, dict[str, float]]]:
    """What a gateway released of all meters, and what it counted for its operator."""
    street = Street(list(TOLD), SOURCES, LENGTH)
    directory: Path = tmp_path_factory.mktemp("registers")
    with Mosquitto(directory / "mosquitto") as broker:
        watcher = Watcher(directory, broker.port)
        tables = street.tables()
        gateway = Gateway(directory / "gateway", broker.url, tables.pop("household"), **tables)  # type: ignore[arg-type]  # what the factory's tables are
        try:
            gateway.start()
            publish(broker.port, [*messages(street), *street.tick(0), *street.tick(SLOTS)])
            yield {name: street.watts(watcher, name, SLOTS) for name in TOLD}, gateway.operator_metrics()
        finally:
            gateway.end()
            watcher.end()


@pytest.mark.parametrize("name", ["steady", "uneven-1", "uneven-2"])
def test_a_slot_is_what_the_register_moved_between_its_borders(
    released: tuple[Watts, dict[str, float]], name: str
) -> None:
    assert_close(released[0][name], means_of_register(TOLD[name], LENGTH, SLOTS))


def test_a_register_of_whole_kwh_loses_nothing(released: tuple[Watts, dict[str, float]]) -> None:
    """A step of one kWh comes in the slot in which it is shown; all slots together have all steps."""
    watts = [watt or 0 for watt in released[0]["whole-kwh"]]
    assert abs(sum(watts) - 1_000 * SLOTS) <= 1_000
    assert all(0 <= watt <= 2_000 for watt in watts)


def test_a_register_that_starts_again_from_zero_loses_no_energy_and_is_never_negative(
    released: tuple[Watts, dict[str, float]],
) -> None:
    """As E4 (home-assistant/core#178137), E7 (ha-hildebrandglow-dcc#84): a large negative jump; a lost reading."""
    # Within the five minutes before the reset, of which the register kept nothing.
    watts = released[0]["reset"]
    assert watts[:2] == watts[3:5] == [600, 600]
    assert watts[2] is not None
    assert 545 <= watts[2] <= 600


@pytest.mark.parametrize("name", ["glitch", "glitch-up", "glitch-at-the-border", "no-link"])
def test_readings_that_the_next_ones_belie_are_counted_and_change_nothing(
    released: tuple[Watts, dict[str, float]], name: str
) -> None:
    """As E4, E8 (Tasmota#13924): 47.9, 41.2, 47.9; a spike; zeros of a bridge while its link is down."""
    assert released[0][name] == released[0]["steady"] == [600] * SLOTS


def test_what_was_belied_is_counted_for_the_operator(released: tuple[Watts, dict[str, float]]) -> None:
    no_link = sum(1 for second, wh in TOLD["no-link"] if wh == 0)
    assert released[1]["implausible"] == 1 + 1 + 2 + no_link


def test_a_register_goes_on_across_its_modulus(released: tuple[Watts, dict[str, float]]) -> None:
    assert released[0]["rollover"] == [1_200] * SLOTS


def test_a_meter_with_another_serial_is_another_register(released: tuple[Watts, dict[str, float]]) -> None:
    """What it stood at before it hung here is nobody's energy."""
    assert released[0]["replaced"] == [600] * SLOTS


def test_the_energy_of_a_gap_is_spread_evenly_or_missing(released: tuple[Watts, dict[str, float]]) -> None:
    """As E3 (home-assistant/core#99382): after an outage all of it came at once."""
    assert released[0]["spread"] == [600] * SLOTS
    assert released[0]["missing"] == [None if slot in (1, 2, 3) else 600 for slot in range(SLOTS)]


def test_three_kills_and_three_stops_in_the_middle_change_no_byte(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    """As E1 (core#91449, #54932, #72943), E2 (core#48206), E8: lost, added again, or a spike after a restart."""
    names = [name for name in TOLD if name != "spread"]
    street = Street(
        names, [{**one, "meters": [n for n in one["meters"] if n in names]} for one in SOURCES], LENGTH
    )
    tables = street.tables()
    often: Gateway = make_gateway(
        **tables, name="often", broker={"client_id": "often"}, output={"topic": "often"}
    )
    never: Gateway = make_gateway(**tables, name="never", broker={"client_id": "never"})
    seen = Watcher(often.directory, mosquitto.port, "often/#")
    told = [one for one in messages(street) if one.topic.split("/")[1] in names]
    starts = [f"2026-01-01T{slot:02}:00:00Z" for slot in range(SLOTS)]
    topics = [f"household/{name}" for name in (*names, *street.ticking)]
    try:
        never.start()
        often.start()
        # All is there before a slot is due: what each becomes is settled, however long it takes.
        for part in range(3):
            publish(mosquitto.port, told[part * len(told) // 3 : (part + 1) * len(told) // 3])
            interrupted(often, kindly=part == 1)
        publish(mosquitto.port, street.tick(0))
        for slot in range(1, SLOTS + 1):
            publish(mosquitto.port, street.tick(slot))
            seen.wait_for_slots(topics, starts[:slot], below="often")
            if slot % 2:
                interrupted(often, kindly=slot != 3)
        expected = watcher.wait_for_slots(topics, starts)
        actual = seen.wait_for_slots(topics, starts, below="often")
    finally:
        seen.end()
    assert {topic: {slot: set(repeats) for slot, repeats in of.items()} for topic, of in actual.items()} == {
        topic: {slot: set(repeats) for slot, repeats in of.items()} for topic, of in expected.items()
    }
    assert all(len(set(repeats)) == 1 for of in actual.values() for repeats in of.values())
    assert street.watts(watcher, "steady", SLOTS) == [600] * SLOTS


def interrupted(gateway: Gateway, *, kindly: bool) -> None:
    if kindly:
        assert gateway.stop() == 0
    else:
        gateway.kill()
    gateway.start()


def wild(dice: random.Random) -> list[tuple[int, float]]:
    """Return (second, Wh) of a register that does everything: rests, falls, leaps, starts again, says zero."""
    wh, told = 47_900.0, []
    for second in range(0, LAST, 120):
        wh += dice.choice([0, 10, 20, 20, 40])
        if dice.random() < 0.02:
            wh = dice.choice([0, wh - 6_700, wh + 6_700, wh - 1, 41_200, 999_999_999])
        wh = max(wh, 0)
        if dice.random() < 0.7:
            told.append(
                (second, wh if dice.random() < 0.95 else dice.choice([0, wh - 100, wh + 9_000, 1e12]))
            )
    return [(second, max(stood, 0)) for second, stood in told]


def test_nothing_that_a_register_can_say_is_negative_and_the_slots_go_on(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    """As E4 (home-assistant/core#178137): a fall was taken for energy that came back."""
    dice = random.Random(3)
    names = [f"wild-{i:02}" for i in range(24)]
    street = Street(
        names,
        [
            {**REGISTER, "meters": ["wild-0*"]},
            {**REGISTER, "meters": ["wild-1*"], "gaps": "missing", "modulus": "100 kWh", "limit": "50 kW"},
            {**REGISTER, "meters": ["wild-2*"], "serial": "/serial"},
        ],
        LENGTH,
    )
    gateway: Gateway = make_gateway(**street.tables()).start()
    told = [
        street.register(name, second, wh, serial=dice.choice(["a", "a", "a", "a", "b", ""]))
        for name in names
        for second, wh in wild(dice)
    ]
    dice.shuffle(told)
    publish(mosquitto.port, [*told, *street.tick(0), *street.tick(SLOTS)])
    watts = [watt for name in names for watt in street.watts(watcher, name, SLOTS)]
    assert min(watt for watt in watts if watt is not None) >= 0
    assert len({watt for watt in watts if watt}) > len(names)
    assert gateway.operator_metrics()["implausible"] > 50
