"""All sources together: topics to households, messages to arrays, one household never harming another."""

import json
import tracemalloc
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.config import SourceTable
from gateway.sources import Reason, Sources

# Under load a first example may take its time.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

SLOT_MS = 30 * 60_000
TEN = 1_767_607_200_000
GOOD = b'{"e":1.5,"ts":"2026-01-05T10:00:00Z"}'
Message = tuple[str, bytes, bool]


def sources(*tables: dict[str, Any], households: tuple[str, ...] = ("a", "b", "c")) -> Sources:
    base = {"topic": "m/{household}", "value": "/e", "unit": "Wh", "time": {"at": "/ts"}}
    models = [SourceTable.model_validate({**base, **table}) for table in tables or ({},)]
    return Sources(models, households, SLOT_MS)


def decoded(found: Sources, *messages: Message) -> tuple[list[tuple[int, int, int, bool]], Counter[Reason]]:
    readings, rejected = found.decode(messages)
    columns = (readings.household, readings.start_ms, readings.energy_mwh, readings.retained)
    return list(zip(*(column.tolist() for column in columns), strict=True)), rejected


def test_readings_come_as_integer_arrays_in_the_order_of_arrival() -> None:
    readings, rejected = sources().decode([("m/b", GOOD, False), ("m/a", GOOD, True)])
    assert readings.household.tolist() == [1, 0]
    assert readings.start_ms.tolist() == [TEN, TEN]
    assert readings.energy_mwh.tolist() == [1_500, 1_500]
    assert readings.retained.tolist() == [False, True]
    assert {readings.household.dtype.name, readings.start_ms.dtype.name, readings.energy_mwh.dtype.name} == {
        "int64"
    }
    assert not rejected


def test_no_messages_are_no_readings() -> None:
    readings, rejected = sources().decode([])
    assert len(readings) == 0
    assert not rejected


def test_a_topic_of_no_source_is_unknown_and_one_of_no_household_is_an_unknown_household() -> None:
    rows, rejected = decoded(sources(), ("x/a", GOOD, False), ("m/z", GOOD, False), ("m/a/x", GOOD, False))
    assert rows == []
    assert rejected == {Reason.UNKNOWN_TOPIC: 2, Reason.UNKNOWN_HOUSEHOLD: 1}


def test_a_source_speaks_only_for_the_households_of_its_patterns() -> None:
    found = sources({"topic": "old/{household}", "households": ["a"]}, {"households": ["b*", "c"]})
    rows, rejected = decoded(
        found, ("old/a", GOOD, False), ("old/b", GOOD, False), ("m/a", GOOD, False), ("m/c", GOOD, False)
    )
    assert [row[0] for row in rows] == [0, 2]
    assert rejected == {Reason.UNKNOWN_HOUSEHOLD: 2}


def test_a_topic_that_two_sources_share_goes_to_the_one_that_speaks_for_the_household() -> None:
    found = sources({"households": ["a"], "unit": "Wh"}, {"households": ["b"], "unit": "kWh"})
    rows, _ = decoded(found, ("m/a", GOOD, False), ("m/b", GOOD, False))
    assert [row[2] for row in rows] == [1_500, 1_500_000]


def test_a_constant_household_speaks_on_a_topic_that_names_none() -> None:
    found = sources({"topic": "p1/reading", "household": "b"})
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
        {"topic": "m/x-{household}", "households": ["a"]},
        {"topic": "n/#", "household": "c"},
        {"topic": "m/y-{household}", "households": ["b"]},
    )
    assert found.filters == ["m/+", "n/#"]


def test_parts_say_how_many_intervals_fill_each_households_slot() -> None:
    found = sources({"households": ["a"], "interval": "10min"}, {"households": ["b"]})
    assert found.parts.tolist() == [3, 1, 1]
    ten = b'{"e":1,"ts":"2026-01-05T10:10:00Z"}'
    rows, rejected = decoded(found, ("m/a", ten, False), ("m/b", ten, False))
    assert rows == [(0, TEN + 600_000, 1_000, False)]
    assert rejected == {Reason.MISALIGNED: 1}


def test_every_reason_is_counted_by_itself() -> None:
    payloads = {
        Reason.TOO_LARGE: b" " * 70_000,
        Reason.UNDECODABLE: b"{",
        Reason.MISSING_FIELD: b"{}",
        Reason.WRONG_TYPE: b'{"e":null,"u":"Wh","ts":1}',
        Reason.UNDECLARED_UNIT: b'{"e":1,"u":"J","ts":1}',
        Reason.IMPLAUSIBLE: b'{"e":1e300,"u":"Wh","ts":1}',
        Reason.BAD_TIME: b'{"e":1,"u":"Wh","ts":"x"}',
        Reason.MISALIGNED: b'{"e":1,"u":"Wh","ts":"2026-01-05T10:15:00Z"}',
    }
    rows, rejected = decoded(
        sources({"unit": {"at": "/u"}}),
        *[("m/a", payload, False) for payload in payloads.values()],
        ("nowhere", b"", False),
        ("m/nobody", b"", False),
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
            found.decode([(topic.encode().decode(), payload, retained)])
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return kept


def test_topics_that_publishers_invent_are_forgotten_again() -> None:
    found = sources({"topic": "m/{household}/#"})
    batches = [("m/a/" + f"{i:0100}", GOOD, False) for i in range(10_100)]
    once = kept_bytes(found, batches)
    again = kept_bytes(found, [(f"{topic}-again", payload, kept) for topic, payload, kept in batches])
    assert again < 1.2 * once
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
    found.decode(messages[:1])
    assert kept_bytes(found, messages) < 100_000


def test_a_filter_that_ends_in_all_levels_hears_the_parent_level_too() -> None:
    """MQTT 5, 4.7.1.2: "sport/tennis/player1/#" receives "sport/tennis/player1"."""
    found = sources({"topic": "m/{household}/#"})
    rows, rejected = decoded(found, ("m/a", GOOD, False), ("m/b/x/y", GOOD, False))
    assert not rejected
    assert [row[0] for row in rows] == [0, 1]
