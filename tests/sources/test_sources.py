"""All sources together: topics to meters, messages to arrays, one household never harming another."""

import json
import tracemalloc
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.config import Config
from gateway.metering import metering_of
from gateway.sources import Reason, Sources

# Under load a first example may take its time.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

SLOT_MS = 30 * 60_000
TEN = 1_767_607_200_000
NOW = TEN + 12_345
GOOD = b'{"e":1.5,"ts":"2026-01-05T10:00:00Z"}'
Message = tuple[str, bytes, bool]


def sources(*tables: dict[str, Any], meters: tuple[str, ...] = ("a", "b", "c")) -> Sources:
    base = {"topic": "m/{household}", "value": "/e", "unit": "Wh", "time": {"at": "/ts"}}
    given = [{**base, **table} for table in tables or ({},)]
    config = Config.model_validate({"source": given, "household": [{"id": meter} for meter in meters]})
    return Sources(config.source, metering_of(config), SLOT_MS)


def decoded(found: Sources, *messages: Message) -> tuple[list[tuple[int, int, int, bool]], Counter[Reason]]:
    readings, rejected = found.decode(messages, NOW)
    columns = (readings.meter, readings.time_ms, readings.value, readings.retained)
    return list(zip(*(column.tolist() for column in columns), strict=True)), rejected


def test_readings_come_as_integer_arrays_in_the_order_of_arrival() -> None:
    readings, rejected = sources().decode([("m/b", GOOD, False), ("m/a", GOOD, True)], NOW)
    assert readings.meter.tolist() == [1, 0]
    assert readings.time_ms.tolist() == [TEN, TEN]
    assert readings.value.tolist() == [1_500, 1_500]
    assert readings.retained.tolist() == [False, True]
    assert readings.serial.tolist() == [0, 0]
    columns = (readings.meter, readings.time_ms, readings.value, readings.serial)
    assert {column.dtype.name for column in columns} == {"int64"}
    assert readings.retained.dtype.name == "bool"
    assert not rejected


def test_no_messages_are_no_readings() -> None:
    readings, rejected = sources().decode([], NOW)
    assert len(readings) == 0
    assert not rejected


def test_of_sources_that_share_a_topic_the_one_whose_meter_it_names_reads_it_and_says_what_is_wrong() -> None:
    both = sources({"meters": ["a"]}, {"meters": ["b"], "value": "/other"})
    rows, rejected = decoded(both, ("m/a", GOOD, False), ("m/b", GOOD, False), ("m/z", b"{", False))
    assert rows == [(0, TEN, 1_500, False)]
    assert rejected == {Reason.MISSING_FIELD: 1, Reason.UNKNOWN_HOUSEHOLD: 1}


def test_a_topic_of_no_source_is_unknown_and_a_meter_of_no_roll_is_an_unknown_household() -> None:
    rows, rejected = decoded(sources(), ("x/a", GOOD, False), ("m/z", GOOD, False), ("m/a/x", GOOD, False))
    assert rows == []
    assert rejected == {Reason.UNKNOWN_TOPIC: 2, Reason.UNKNOWN_HOUSEHOLD: 1}


def test_a_source_speaks_only_for_the_meters_of_its_patterns() -> None:
    found = sources({"topic": "old/{household}", "meters": ["a"]}, {"meters": ["b*", "c"]})
    rows, rejected = decoded(
        found, ("old/a", GOOD, False), ("old/b", GOOD, False), ("m/a", GOOD, False), ("m/c", GOOD, False)
    )
    assert [row[0] for row in rows] == [0, 2]
    assert rejected == {Reason.UNKNOWN_HOUSEHOLD: 2}


def test_a_topic_that_two_sources_share_goes_to_the_one_that_speaks_for_the_meter() -> None:
    found = sources({"meters": ["a"], "unit": "Wh"}, {"meters": ["b"], "unit": "kWh"})
    rows, _ = decoded(found, ("m/a", GOOD, False), ("m/b", GOOD, False))
    assert [row[2] for row in rows] == [1_500, 1_500_000]


def test_a_constant_meter_speaks_on_a_topic_that_names_none() -> None:
    found = sources({"topic": "p1/reading", "meter": "=b"})
    rows, rejected = decoded(found, ("p1/reading", GOOD, False), ("p1/other", GOOD, False))
    assert [row[0] for row in rows] == [1]
    assert rejected == {Reason.UNKNOWN_TOPIC: 1}


def test_a_capture_may_stand_between_a_prefix_and_a_suffix() -> None:
    found = sources({"topic": "site/meter-{household}-v2/+/data"})
    rows, rejected = decoded(
        found,
        ("site/meter-a-v2/x/data", GOOD, False),
        ("site/meter-c-v2//data", GOOD, False),
        ("site/a/x/data", GOOD, False),
    )
    assert [row[0] for row in rows] == [0, 2]
    assert rejected == {Reason.UNKNOWN_TOPIC: 1}


def test_filters_are_subscribed_once_each_in_order() -> None:
    found = sources(
        {"topic": "m/x-{household}", "meters": ["a"]},
        {"topic": "n/#", "meter": "=c"},
        {"topic": "m/y-{household}", "meters": ["b"]},
    )
    assert found.filters == ["m/+", "n/#"]


def test_each_source_has_an_interval_of_its_own() -> None:
    found = sources({"meters": ["a"], "interval": "10min"}, {"meters": ["b"]})
    ten = b'{"e":1,"ts":"2026-01-05T10:10:00Z"}'
    rows, rejected = decoded(found, ("m/a", ten, False))
    assert rows == [(0, TEN + 600_000, 1_000, False)]
    assert not rejected
    rows, rejected = decoded(found, ("m/b", ten, False))
    assert rows == []
    assert rejected.total() == 1


def test_of_several_sources_that_cannot_use_a_message_one_reason_is_counted() -> None:
    found = sources({"meters": ["a"], "value": "/x"}, {"meters": ["b"]}, {"meters": ["c"]})
    _, rejected = decoded(found, ("m/z", GOOD, False))
    assert rejected.total() == 1


def test_a_reading_without_a_time_has_that_of_its_arrival() -> None:
    power = {"quantity": "power", "unit": "W"}
    found = sources({**power, "meters": ["a"], "time": None}, {**power, "meters": ["b"]})
    rows, _ = decoded(found, ("m/a", GOOD, False), ("m/b", GOOD, False), ("m/b", b'{"e":1.5}', False))
    assert rows == [(0, NOW, 1_500, False), (1, TEN, 1_500, False), (1, NOW, 1_500, False)]


def test_the_meters_number_stands_beside_its_reading() -> None:
    register = {"quantity": "register", "unit": "Wh", "serial": "/sn"}
    readings, _ = sources(register).decode(
        [("m/a", b'{"e":1,"sn":"A1"}', False), ("m/a", b'{"e":1,"sn":"A2"}', False), ("m/a", GOOD, False)],
        NOW,
    )
    assert len({*readings.serial.tolist()}) == 3
    assert readings.serial.tolist()[2] == 0


def test_all_meters_of_one_message_are_read_and_each_fault_is_counted() -> None:
    fanned = {"topic": "f/{feeder}", "each": "/m", "meter": "/id", "quantity": "register", "unit": "Wh"}
    payload = (
        b'{"ts":"2026-01-05T10:00:00Z","m":[{"id":"a","e":1},{"id":"z","e":1},{"id":"c"},{"id":"b","e":2}]}'
    )
    rows, rejected = decoded(sources(fanned), ("f/1", payload, True))
    assert rows == [(0, TEN, 1_000, True), (1, TEN, 2_000, True)]
    assert rejected == {Reason.UNKNOWN_HOUSEHOLD: 1, Reason.MISSING_FIELD: 1}


def test_nodes_whose_births_were_missed_are_asked_once_each() -> None:
    found = sources(
        {
            "preset": "sparkplug",
            "topic": "spBv1.0/+/DDATA/+/{meter}",
            "value": "P",
            "unit": "W",
            "quantity": "power",
            "time": None,
        }
    )
    by_alias = bytes.fromhex("12041001500a")
    _, rejected = decoded(found, *[(f"spBv1.0/g/DDATA/n{i % 2}/a", by_alias, False) for i in range(5)])
    assert rejected == {Reason.BIRTH_NEEDED: 5}
    assert found.wanted_rebirths() == [("g", "n0"), ("g", "n1")]
    assert found.wanted_rebirths() == []


def test_nodes_that_publishers_invent_are_not_all_asked() -> None:
    found = sources({"preset": "sparkplug", "value": "P", "unit": "W", "quantity": "power", "time": None})
    by_alias = bytes.fromhex("12041001500a")
    decoded(found, *[(f"spBv1.0/g/DDATA/n{i}/a", by_alias, False) for i in range(1_000)])
    assert len(found.wanted_rebirths()) <= 100


def test_every_reason_is_counted_by_itself() -> None:
    payloads = {
        Reason.TOO_LARGE: b" " * 70_000,
        Reason.UNDECODABLE: b"{",
        Reason.MISSING_FIELD: b'{"k":1}',
        Reason.WRONG_TYPE: b'{"e":null,"u":"Wh","ts":1}',
        Reason.UNDECLARED_UNIT: b'{"e":1,"u":"m3","ts":1}',
        Reason.IMPLAUSIBLE: b'{"e":1e300,"u":"Wh","ts":1}',
        Reason.BAD_TIME: b'{"e":1,"u":"Wh","ts":"x"}',
        Reason.EMPTY: b"",
        Reason.NOT_A_NUMBER: b'{"e":"x","u":"Wh","ts":1}',
        Reason.SENTINEL: b'{"e":-99,"u":"Wh","ts":1}',
        Reason.GUARD: b'{"e":1,"u":"Wh","ts":1}'.replace(b"1}", b'1,"k":5}'),
        Reason.MISALIGNED: b'{"e":1,"u":"Wh","ts":"2026-01-05T10:15:00Z"}',
    }
    rows, rejected = decoded(
        sources({"unit": {"at": "/u"}, "sentinels": -99, "when": {"/k": 1}}),
        *[("m/a", payload.replace(b'"ts"', b'"k":1,"ts"'), False) for payload in payloads.values()],
        ("nowhere", b"", False),
        ("m/nobody", b'{"e":1,"k":1,"u":"Wh","ts":"2026-01-05T10:00:00Z"}', False),
    )
    assert rows == []
    assert rejected == dict.fromkeys([*payloads, Reason.UNKNOWN_TOPIC, Reason.UNKNOWN_HOUSEHOLD], 1)


bad = st.tuples(
    st.sampled_from(["m/a", "m/nobody", "m/", "m", "", "m/a/", "\0", "m/\ud800"]),
    st.binary()
    | st.just(b"[" * 60_000)
    | st.builds(json.dumps, st.dictionaries(st.text(), st.integers())).map(str.encode),
    st.booleans(),
)


@unhurried
@given(st.lists(bad, max_size=6), st.lists(bad, max_size=6))
def test_bad_messages_never_touch_another_households_reading_in_the_same_batch(
    before: list[Message], after: list[Message]
) -> None:
    rows, rejected = decoded(sources(), *before, ("m/b", GOOD, False), *after)
    assert (1, TEN, 1_500, False) in rows
    assert [row for row in rows if row[0] == 1] == [(1, TEN, 1_500, False)]
    assert len(rows) + rejected.total() == len(before) + len(after) + 1


@pytest.mark.parametrize("topic", ["m/a", "m/a/x"])
def test_a_topic_decodes_the_same_however_often_it_comes(topic: str) -> None:
    found = sources()
    first = decoded(found, (topic, GOOD, False))
    for _ in range(3):
        assert decoded(found, (topic, GOOD, False)) == first


def kept_bytes(found: Sources, messages: list[Message]) -> int:
    tracemalloc.start()
    try:
        for topic, payload, retained in messages:
            # As from the wire: every topic is a text of its own.
            found.decode([(topic.encode().decode(), payload, retained)], NOW)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return kept


def test_topics_that_publishers_invent_are_forgotten_again() -> None:
    found = sources({"topic": "m/{household}/#"})
    batches = [("m/a/" + f"{i:0100}", GOOD, False) for i in range(10_100)]
    once = kept_bytes(found, batches)
    again = kept_bytes(found, [(f"{topic}-again", payload, kept) for topic, payload, kept in batches])
    # Ten thousand and a hundred topics would take ten times as much.
    assert max(once, again) < 1_500_000
    assert decoded(found, ("m/b/x", GOOD, False))[0] == [(1, TEN, 1_500, False)]


def test_long_topics_that_publishers_invent_take_little_memory() -> None:
    """A topic may have 65,535 bytes: ten thousand of them would be most of a Raspberry Pi's memory."""
    found = sources({"topic": "m/{household}/#"})
    messages = [(f"m/a/{i:060000}", GOOD, False) for i in range(300)]
    assert kept_bytes(found, messages) < 15_000_000


def test_unknown_topics_are_not_remembered() -> None:
    found = sources()
    messages = [(f"x/{i:01000}", GOOD, False) for i in range(2_000)]
    messages += [(f"m/{i:01000}", GOOD, False) for i in range(2_000)]
    found.decode(messages[:1], NOW)
    assert kept_bytes(found, messages) < 100_000


def test_a_filter_that_ends_in_all_levels_hears_the_parent_level_too() -> None:
    """MQTT 5, 4.7.1.2: "sport/tennis/player1/#" receives "sport/tennis/player1"."""
    found = sources({"topic": "m/{household}/#"})
    rows, rejected = decoded(found, ("m/a", GOOD, False), ("m/b/x/y", GOOD, False))
    assert not rejected
    assert [row[0] for row in rows] == [0, 1]
