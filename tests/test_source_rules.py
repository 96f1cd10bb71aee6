"""What the fields of a [[source]] must be to each other: every fault has its field, value and remedy."""

from typing import Any

import pytest

from gateway.checking import ConfigError, validated

ROLL = [{"id": "h-1"}, {"id": "h-2"}]
GOOD: dict[str, Any] = {
    "topic": "meters/{household}/reading",
    "value": "/wh",
    "unit": "Wh",
    "time": {"at": "/ts"},
}
POWER = {"quantity": "power", "unit": "W"}
REGISTER = {"quantity": "register", "unit": "kWh"}


def table(**fields: object) -> dict[str, Any]:
    """Return the good source with some fields changed; None leaves one out."""
    return {name: value for name, value in {**GOOD, **fields}.items() if value is not None}


def faults(*sources: dict[str, Any], **others: object) -> list[tuple[str, object, str, str]]:
    try:
        validated({"source": list(sources), "household": ROLL, **others})
    except ConfigError as error:
        return [tuple(fault) for fault in error.faults]  # type: ignore[misc]
    return []


def test_the_good_sources_have_no_fault() -> None:
    assert not faults(table())
    assert not faults(table(**POWER, time=None))
    assert not faults(table(**REGISTER, gap="5min", gaps="missing", modulus="100000 kWh", serial="/sn"))
    assert not faults(table(each="/meters", meter="{household}-{key}", meters=["*"]))


# ruff: noqa: E501 - a fault is a line
# One row: the fields that differ, the faulty field, its value as shown, the problem, and words of the remedy.
FAULTY = {
    "no meter in the topic": ({"topic": "p1/raw"}, "topic", "p1/raw", "does not say whose readings", "put {household}"),
    "a capture that is none": ({"meter": "{gateway}"}, "meter", "{gateway}", "captures no gateway", 'topic = "meters/{gateway}"'),
    "a key without each": ({"meter": "{key}"}, "meter", "{key}", "captures no key", "capture it"),
    "a number with an address": ({"format": "number", **POWER, "time": None}, "value", ["/wh"], "the payload is the number", "leave it out"),
    "no value": ({"value": None}, "value", None, "it is needed", 'as "/energy"'),
    "lists in another format": ({"format": "csv", "value": "0", "time": {"at": "1"}, "each": "0"}, "each", "0", "csv has no lists", "leave it out"),
    "no unit": ({"unit": None}, "unit", None, "it is needed", "write one of mWh, Wh"),
    "a unit that p1 says": ({"format": "p1", "value": "1-0:1.8.0", "time": None, **REGISTER}, "unit", "kWh", "p1 values say their unit", "leave it out"),
    "energy for power": ({"quantity": "power", "unit": "kWh"}, "unit", "kWh", "is no unit of power", "write one of mW, W, kW, MW"),
    "power for a register": ({"quantity": "register", "unit": "W"}, "unit", "W", "is no unit of energy", "register readings are energy"),
    "a register less another": ({**REGISTER, "minus": "/out"}, "minus", ["/out"], "a register of the difference would fall", "read power samples"),
    "a register of export": ({**REGISTER, "sign": "export"}, "sign", "export", "registers of export", "import alone"),
    "a gap longer than a slot": ({**REGISTER, "gap": "1h"}, "gap", "1h", "would pile up", "at most 30min"),
    "a gap of intervals": ({"gap": "5min"}, "gap", "300000", "means nothing for interval readings", "leave it out"),
    "gaps of power": ({**POWER, "gaps": "missing"}, "gaps", "missing", "only for register readings", "leave it out"),
    "a modulus of power": ({**POWER, "modulus": "1 kWh"}, "modulus", "1000000", "only for register readings", "leave it out"),
    "a serial of power": ({**POWER, "serial": "/sn"}, "serial", "/sn", "only for register readings", "leave it out"),
    "an interval of power": ({**POWER, "interval": "5min"}, "interval", "300000", "only for interval readings", "leave it out"),
    "a stamp of registers": ({**REGISTER, "stamp": "end"}, "stamp", "end", "only for interval readings", "leave it out"),
    "an interval without time": ({"time": None}, "time", None, "it is needed", 'time = { at = "/ts" }'),
    "an interval at its arrival": ({"time": "arrival"}, "time", "arrival", "an interval is known by its time", 'at = "/ts"'),
    "a bad value": ({"value": "wh"}, "value", "wh", "not an address in json", 'starts with "/"'),
    "a bad minus": ({"minus": "wh"}, "minus", "wh", "not an address in json", 'starts with "/"'),
    "a bad guard": ({"when": {"~": 1}}, "when", "~", "not an address in json", 'starts with "/"'),
    "a bad unit's place": ({"unit": {"at": "u"}}, "unit.at", "u", "not an address in json", 'starts with "/"'),
    "a bad time's place": ({"time": {"at": "ts"}}, "time.at", "ts", "not an address in json", 'starts with "/"'),
    "a pattern without a zone": ({"time": {"at": "/ts", "format": "%d.%m.%Y %H:%M"}}, "time.format", "%d.%m.%Y %H:%M", "no way to read a time", 'zone = "Europe/Amsterdam"'),
    "a pattern of half a time": ({"time": {"at": "/ts", "format": "%H:%M", "zone": "UTC"}}, "time.format", "%H:%M", "no way to read a time", 'write one like "%d.%m.%Y'),
    "a pattern that is none": ({"time": {"at": "/ts", "format": "%Q", "zone": "UTC"}}, "time.format", "%Q", "no way to read a time", 'write one like "%d.%m.%Y'),
    "a bad each": ({"each": "x"}, "each", "x", "not an address in json", 'starts with "/"'),
    "a bad serial": ({**REGISTER, "serial": "x"}, "serial", "x", "not an address in json", 'starts with "/"'),
    "a bad meter": ({"meter": "id"}, "meter", "id", "not an address in json", 'starts with "/"'),
    "a bad column": ({"format": "csv", "value": "a", "time": {"at": "1"}}, "value", "a", "not an address in csv", 'write "0"'),
    "a bad OBIS code": ({"format": "p1", "value": "energy", "unit": None, "time": None, "quantity": "register"}, "value", "energy", "not an address in p1", 'write "1-0:1.8.0"'),
    "a bad position": ({"format": "axdr", "value": "1", "time": {"at": "/0"}}, "value", "1", "not an address in axdr", 'write "/1"'),
    "an interval longer than the slot": ({"interval": "1h"}, "interval", "1h", "does not fill a slot", "use 30min"),
    "an interval that does not fit": ({"interval": "7min"}, "interval", "7min", "does not fill a slot", "use 30min"),
    "too many intervals": ({"interval": "1s"}, "interval", "1s", "does not fill a slot", "at most 1000 parts"),
    "our own releases": ({"topic": "noiseless/household/{household}"}, "topic", "noiseless/household/{household}", "would read our own releases", "output.topic is 'noiseless'"),
    "nobody's meters": ({"meters": ["x-*"]}, "meters", ["x-*"], "matches no meter of the roll", "h-0*"),
    "nobody's constant": ({"meter": "=x"}, "meter", ["=x"], "matches no meter of the roll", "h-0*"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTY)
def test_a_fault_names_its_field_value_and_remedy(name: str) -> None:
    fields, field, value, problem, remedy = FAULTY[name]
    (fault,) = faults(table(**fields))
    assert fault[0] == f"source.0.{field}"
    assert fault[1] == value
    assert problem in fault[2]
    assert remedy in fault[3]


def test_there_must_be_a_source() -> None:
    (fault,) = faults()
    assert fault[:3] == ("source", None, "there is no source of readings")
    assert "a preset and a topic" in fault[3]


def test_times_of_arrival_do_not_move_an_event_clock() -> None:
    (fault,) = faults(table(**POWER, time=None), slots={"clock": "event"})
    assert fault[:3] == ("source.0.time", None, "times of arrival do not move an event clock")
    assert 'slots.clock = "wall"' in fault[3]
    assert not faults(table(**POWER), slots={"clock": "event"})


def test_a_meter_has_one_source() -> None:
    (fault,) = faults(table(meters="h-1"), table(topic="old/{household}"))
    assert fault[:3] == ("source.1.meters", ["*"], "a meter of h-1 already has source 0: each has one")
    assert 'meters = ["h-0*"]' in fault[3]
    assert not faults(table(meters="h-1"), table(topic="old/{household}", meters="h-2"))
    assert not faults(table(topic="p1/a", meter="=h-1"), table(topic="p1/b", meter="=h-2"))


@pytest.mark.parametrize(
    ("topic", "loop"),
    [
        ("{household}/+/+", True),
        ("{household}/household/+", True),
        ("noiseless/+/h-{household}", True),
        ("noiseless/{household}", True),
        ("{household}/state", True),
        ("{household}/#", True),
        ("noiseless/fence/{household}", True),
        ("{household}/sensor/energy/state", False),
        ("{household}/status/em:0", False),
        ("{household}/raw", False),
        ("{household}/+/+/+", False),
        ("noiseless/meters/{household}", False),
        ("noiseless/household/{household}/reading", False),
    ],
)
def test_a_topic_is_a_loop_only_where_it_hears_what_we_publish(topic: str, loop: bool) -> None:
    assert [fault[2] for fault in faults(table(topic=topic))] == ["would read our own releases"] * loop


def test_a_gap_is_no_longer_than_a_slot() -> None:
    (fault,) = faults(table(**POWER, gap="31min"))
    assert fault[:2] == ("source.0.gap", "31min")
    assert "write at most 30min" in fault[3]
    assert not faults(table(**POWER, gap="30min"))


def test_a_telegram_names_its_meter_itself() -> None:
    assert not faults({"preset": "p1", "topic": "p1/raw"})


def test_two_brokers_make_no_loop() -> None:
    assert not faults(table(topic="{household}/#"), output={"url": "mqtt://127.0.0.1:1884"})


def test_two_faults_of_one_source_are_both_shown() -> None:
    found = faults(table(value="wh", interval="7min"))
    assert {fault[0] for fault in found} == {"source.0.value", "source.0.interval"}


def test_what_a_preset_says_is_checked_with_what_its_user_adds() -> None:
    (fault,) = faults({"preset": "tasmota", "topic": "tele/{household}/SENSOR", "quantity": "power"})
    assert fault[:3] == ("source.0.unit", "kWh", "is no unit of power")
    (fault,) = faults({"preset": "tasmoda", "topic": "tele/{household}/SENSOR", **POWER, "value": "/x"})
    assert fault[:3] == ("source.0.preset", "tasmoda", "no such preset")
    assert "tasmota-power" in fault[3]


FIELDS = {
    "scale": [0, -1, "1/0", "x", True, 1e10],
    "unit": ["GWh", "kwh", 5],
    "decimal": [";", ""],
    "separator": ["", ",,", '"', "\n", "\0"],
    "steps": ["gzip", ["hex", "rot13"]],
    "format": ["xml"],
    "quantity": ["energy"],
    "sign": ["out"],
    "limit": ["10 kWh", 5],
    "modulus": ["100000", "0 kWh"],
    "gap": ["0s", "5"],
    "time": ["now", {"at": 5}, {"at": "/ts", "zone": "Mars/Olympus"}, {"at": "/ts", "format": "unix"}],
    "topic": ["", "a/#/b", "a/x+", "$SYS/{household}"],
    "max_bytes": [0, 1.5, "1"],
    "meters": [[]],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field in FIELDS for value in FIELDS[field]])
def test_a_value_that_a_field_cannot_hold_is_its_fault(field: str, value: object) -> None:
    found = faults(table(**{field: value}))
    assert found
    assert all(fault[0].startswith(f"source.0.{field}") and fault[3] for fault in found)
