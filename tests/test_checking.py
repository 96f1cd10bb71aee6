"""A configuration is good, or all its faults are told at once: field, value, problem, remedy."""

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from gateway.checking import ConfigError, load, validated
from gateway.config import Config
from gateway.policy import document_of
from gateway.report import privacy_table
from gateway.rules import Fault, ledger_path

# Under load a first example may take its time.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

ROOT = Path(__file__).parent.parent
SOURCE = {"topic": "meters/{household}/reading", "value": "/e", "unit": "Wh", "time": {"at": "/ts"}}
GOOD: dict[str, Any] = {"source": [SOURCE], "household": [{"id": "h-1"}, {"id": "h-2"}]}
GROUP = {"name": "feeder", "members": ["h-*"], "epsilon": 3}


def faults(**tables: object) -> list[Fault]:
    """Return the faults of a good configuration with these tables instead."""
    with pytest.raises(ConfigError) as refused:
        validated({**GOOD, **tables})
    return refused.value.faults


def of_text(folder: Path, text: str) -> list[Fault]:
    path = folder / "noiseless.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        load(path)
    return refused.value.faults


def source(**fields: object) -> dict[str, object]:
    return {"source": [{**SOURCE, **fields}]}


def group(**fields: object) -> dict[str, object]:
    return {"group": [{"name": "feeder", "members": ["h-*"], **fields}]}


def test_one_source_and_one_household_are_enough_and_the_rest_has_defaults(tmp_path: Path) -> None:
    path = tmp_path / "noiseless.toml"
    path.write_text(
        '[[source]]\ntopic = "m/{household}"\nvalue = "/e"\nunit = "Wh"\ntime = { at = "/ts" }\n'
        '[[household]]\nid = "h-1"\n'
    )
    config = load(path)
    assert config.broker.address == ("127.0.0.1", 1883)
    assert config.slots.length == 30 * 60_000
    assert config.http.listen == "127.0.0.1:8080"
    report = privacy_table(config)
    assert report["households"][0]["levels"] == 4
    assert report["households"][0]["range_w"] == [0.0, 14_500.0]


def test_the_example_is_good_and_costs_166_bits_a_day() -> None:
    """48 slots of 2 bits alone and 3 in a group: 48·log2(1 + 3 + 7), of 168."""
    report = privacy_table(load(ROOT / "deploy" / "noiseless.toml"))
    rows = report["households"]
    assert sum(row["households"] for row in rows) == 3
    for row in rows:
        assert row["joint_levels"] == 11
        assert row["bits_per_day"] == pytest.approx(48 * math.log2(11), abs=1e-4)
        assert round(row["bits_per_day"], 2) == 166.05
        assert row["budget_bits"] == 168
        assert row["releases_until_spent"] == 48


# What is wrong, the field that is named, its value as shown, and words of the remedy.
FAULTS: list[tuple[dict[str, Any], str, object, str]] = [
    ({"broker": {"url": "127.0.0.1"}}, "broker.url", "127.0.0.1", "mqtt://HOST:PORT"),
    ({"broker": {"url": "mqtt://h:0"}}, "broker.url", "mqtt://h:0", "mqtt://HOST:PORT"),
    ({"broker": {"url": "mqtt://h:99999"}}, "broker.url", "mqtt://h:99999", "mqtt://HOST:PORT"),
    ({"broker": {"url": "mqtt://h/path"}}, "broker.url", "mqtt://h/path", "mqtt://HOST:PORT"),
    ({"broker": {"url": "mqtts://h/path"}}, "broker.url", "mqtts://h/path", "mqtts://HOST:PORT"),
    ({"broker": {"client_id": ""}}, "broker.client_id", "", "letters, digits"),
    ({"broker": {"client_id": "a/b"}}, "broker.client_id", "a/b", "letters, digits"),
    ({"broker": {"password_file": "/nowhere/x"}}, "broker.password_file", "/nowhere/x", "create the file"),
    ({"broker": {"port": 1883}}, "broker.port", 1883, "remove it, or correct its name"),
    ({"slots": {"length": "30"}}, "slots.length", "30", '"30min"'),
    ({"slots": {"length": "0s"}}, "slots.length", "0s", '"30min"'),
    ({"slots": {"length": "-1min"}}, "slots.length", "-1min", '"30min"'),
    ({"slots": {"length": "1500ms"}}, "slots.length", "1500ms", '"30min"'),
    ({"slots": {"grace": 2}}, "slots.grace", 2, "unit"),
    ({"slots": {"grace": "3661d"}}, "slots.grace", "3661d", '"30min"'),
    ({"slots": {"grace": "2 fortnights"}}, "slots.grace", "2 fortnights", "ms, s, min, h, d"),
    ({"slots": {"clock": "sun"}}, "slots.clock", "sun", "event"),
    ({"slots": {"missing": "zero"}}, "slots.missing", "zero", "hold, floor or symbol"),
    ({"slots": {"catch_up": []}}, "slots.catch_up", [], "unit"),
    ({"slots": {"skew": True}}, "slots.skew", True, "unit"),
    ({"slots": {"lenght": "1h"}}, "slots.lenght", "1h", "correct its name"),
    ({"release": {"epsilon": 0}}, "release.epsilon", 0, "bits per release"),
    ({"release": {"epsilon": -1}}, "release.epsilon", -1, "bits per release"),
    ({"release": {"epsilon": 21}}, "release.epsilon", 21, "bits per release"),
    ({"release": {"epsilon": "two"}}, "release.epsilon", "two", "bits per release"),
    ({"release": {"levels": 0}}, "release.levels", 0, "number of values"),
    ({"release": {"levels": 2.0}}, "release.levels", 2.0, "number of values"),
    ({"release": {"levels": True}}, "release.levels", True, "number of values"),
    ({"release": {"epsilon": 2, "levels": 4}}, "release.levels", 4, "keep one"),
    ({"release": {"range": ["1 kW", "0 W"]}}, "release.range", ["1 kW", "0 W"], "LOW < HIGH"),
    ({"release": {"range": ["0 W", "1 VA"]}}, "release.range.1", "1 VA", "kW"),
    ({"release": {"range": ["0 W"]}}, "release.range.1", None, ""),
    ({"release": {"range": 3}}, "release.range", 3, "LOW"),
    (
        {"release": {"codebook": "/nowhere/x"}},
        "release.codebook",
        "/nowhere/x",
        "noiseless plan --write FILE",
    ),
    ({"release": {"codebook": 3}}, "release.codebook", 3, "uniform"),
    ({"release": {"rounding": "random"}}, "release.rounding", "random", '"nearest"; "feedback"'),
    ({"release": {"rounding": "feedback", "levels": 1}}, "release.rounding", "feedback", "2 levels or more"),
    ({"release": {"rounding": "dither", "levels": 1}}, "release.rounding", "dither", "2 levels or more"),
    ({"release": {"levels": 2}, "slots": {"missing": "symbol"}}, "release.levels", 2, "levels = 3"),
    ({"release": {"levels": 5, "range": ["0 W", "3 mW"]}}, "release.levels", 5, "fewer levels"),
    ({"budget": {"window": "45min"}}, "budget.window", "45min", "30min"),
    ({"budget": {"bits": 0}}, "budget.bits", 0, "per household and window"),
    ({"budget": {"bits": "many"}}, "budget.bits", "many", "per household and window"),
    ({"budget": {"when_spent": "borrow"}}, "budget.when_spent", "borrow", "hold"),
    (
        {"budget": {"when_spent": "coarsen"}, "slots": {"missing": "symbol"}},
        "budget.when_spent",
        "coarsen",
        "hold",
    ),
    ({"source": []}, "source", None, "[[source]]"),
    (source(topic="meters/reading"), "source.0.topic", "meters/reading", "{household}"),
    (source(topic="m/#/{household}"), "source.0.topic", "m/#/{household}", "# at the end"),
    (source(meter="{house}"), "source.0.meter", "{house}", "capture it"),
    (source(topic="#", meter="=h-1"), "source.0.topic", "#", "output.topic"),
    (source(topic="noiseless/{household}"), "source.0.topic", "noiseless/{household}", "'noiseless'"),
    (source(format="xml"), "source.0.format", "xml", "json"),
    (source(value="e"), "source.0.value", "e", '"/'),
    (source(value=["/e", "/~2"]), "source.0.value", "/~2", '"/'),
    (source(value=[]), "source.0.value", None, "where the value stands"),
    (source(unit="kW"), "source.0.unit", "kW", "kWh"),
    (source(unit={"at": "u"}), "source.0.unit.at", "u", '"/'),
    (source(quantity="volume"), "source.0.quantity", "volume", "interval"),
    (source(interval="1h"), "source.0.interval", "1h", "30min"),
    (source(interval="7min"), "source.0.interval", "7min", "30min"),
    (source(interval="1s"), "source.0.interval", "1s", "at most 1000 parts"),
    (source(stamp="middle"), "source.0.stamp", "middle", "time stamps"),
    (source(time="/ts"), "source.0.time", "/ts", "at ="),
    (source(time={}), "source.0.time.at", None, "add it"),
    (source(meters=[]), "source.0.meters", [], "at least one"),
    (source(meters=["x-*"]), "source.0.meters", ["x-*"], "meters of the roll"),
    (source(topic="p1", meter="=x"), "source.0.meter", ["=x"], "meters of the roll"),
    (source(max_bytes=0), "source.0.max_bytes", 0, "longer payloads"),
    ({"source": [SOURCE, SOURCE]}, "source.1.meters", ["*"], "each source speak for its own"),
    ({"household": []}, "household", None, "[[household]]"),
    ({"household": [{"id": "h-1"}, {"id": "h-1"}]}, "household.1.id", "h-1", "keep one"),
    ({"household": [{"id": "h 1"}]}, "household.0.id", "h 1", "letters, digits"),
    ({"household": [{}]}, "household.0.id", None, "add it"),
    ({"household": [{"id": "h-1", "range": ["9 kW", "1 W"]}]}, "household.0.range", ["9 kW", "1 W"], "LOW <"),
    ({"household": [{"id": "h-1", "epsilon": 1, "levels": 2}]}, "household.0.levels", 2, "keep one"),
    (group(), "group.0.levels", None, "epsilon = 3, or levels = 8"),
    (group(epsilon=3, levels=8), "group.0.levels", 8, "epsilon = 3, or levels = 8"),
    (group(epsilon=3, query="max"), "group.0.query", "max", "mean"),
    (group(epsilon=3, rounding="dither"), "group.0.rounding", "dither", '"nearest", or "feedback"'),
    (group(epsilon=3, calibration="paper"), "group.0.calibration", "paper", '"certified"'),
    (group(epsilon=3, weights={"x-*": 2}), "group.0.weights", "x-*", "pattern"),
    (group(epsilon=3, members=["x-*"]), "group.0.members", "x-*", "pattern"),
    (group(epsilon=3, members=[]), "group.0.members", [], "at least one"),
    (group(epsilon=3, name="a/b"), "group.0.name", "a/b", "letters, digits"),
    ({"group": [GROUP, GROUP]}, "group.1.name", "feeder", "keep one"),
    (group(levels=4_194_304), "group.0.levels", 4_194_304, "smaller"),
    ({"ledger": {"url": "ledger.db"}}, "ledger.url", "ledger.db", "sqlite:///FILE"),
    ({"ledger": {"url": "sqlite:///"}}, "ledger.url", "sqlite:///", "sqlite:///FILE"),
    (
        {"ledger": {"url": "sqlite:////nowhere/x.db"}},
        "ledger.url",
        "sqlite:////nowhere/x.db",
        "create /nowhere",
    ),
    ({"ledger": {"commit": "0s"}}, "ledger.commit", "0s", '"1s"'),
    ({"http": {"listen": "8080"}}, "http.listen", "8080", "HOST:PORT"),
    ({"http": {"listen": "127.0.0.1:70000"}}, "http.listen", "127.0.0.1:70000", "HOST:PORT"),
    ({"http": {"token_file": "/nowhere/x"}}, "http.token_file", "/nowhere/x", "create the file"),
    ({"output": {"topic": "a/+"}}, "output.topic", "a/+", "without"),
    ({"output": {"topic": "$SYS"}}, "output.topic", "$SYS", "noiseless"),
    ({"output": {"topic": ""}}, "output.topic", "", "noiseless"),
    ({"outputs": {"topic": "x"}}, "outputs", {"topic": "x"}, "correct its name"),
    ({"household": [{"id": "h-1", "groups": ["g"]}]}, "household.0.groups", "g", 'name = "g"'),
    ({"household": [{"id": "h-1", "meters": [" a"]}]}, "household.0.meters.0", "(not shown)", "characters"),
    (
        {"household": [{"id": "h-1", "meters": ["a", ""]}]},
        "household.0.meters.1",
        "(not shown)",
        "characters",
    ),
    ({"household": [{"id": "h-1", "meters": ["a", "a"]}]}, "household.0.meters", "(not shown)", "keep one"),
    (
        {"household": [{"id": "h-1", "meters": "a"}, {"id": "h-2", "meters": ["b", "a"]}]},
        "household.1.meters",
        "(not shown)",
        "to one household",
    ),
    (
        {"household": [{"id": "h-1", "meters": "h-2"}, {"id": "h-2"}]},
        "household.1.meters",
        "(not shown)",
        "to one household",
    ),
    ({"group": [{"name": "g", "levels": 4}]}, "group.0.members", None, "in the groups of households"),
    ({"households_file": "/nowhere/x.csv"}, "households_file", "/nowhere/x.csv", "readable CSV file"),
    ({"households_file": "/nowhere/\0"}, "households_file", "/nowhere/\0", "readable CSV file"),
    ({"households_file": 3}, "households_file", 3, "a CSV file"),
    (
        {"output": {"pseudonyms": {"key_file": "/nowhere/x"}}},
        "output.pseudonyms.key_file",
        "/nowhere/x",
        "create the file",
    ),
    ({"output": {"pseudonyms": {"period": "1d"}}}, "output.pseudonyms.key_file", None, "add it"),
    ({"output": {"pseudonyms": "x"}}, "output.pseudonyms", "x", "key_file"),
]


@pytest.mark.parametrize(
    ("tables", "field", "value", "remedy"), FAULTS, ids=[f"{i}-{row[1]}" for i, row in enumerate(FAULTS)]
)
def test_a_fault_names_its_field_its_value_and_what_to_do(
    tables: dict[str, Any], field: str, value: object, remedy: str
) -> None:
    (fault,) = faults(**tables)
    assert fault.field == field
    assert fault.value == value
    assert remedy in fault.remedy
    assert fault.problem


@pytest.mark.parametrize(
    ("tables", "field", "value", "remedy"), FAULTS, ids=[f"{i}-{row[1]}" for i, row in enumerate(FAULTS)]
)
def test_a_fault_is_told_the_same_beside_a_good_group(
    tables: dict[str, Any], field: str, value: object, remedy: str
) -> None:
    """A group is good with epsilon alone, also while something else is wrong."""
    found = faults(**{"group": [GROUP], **tables})
    assert (field, value) in [(fault.field, fault.value) for fault in found]
    assert any(remedy in fault.remedy for fault in found)


def test_there_may_be_as_many_levels_as_milliwatts_in_the_range() -> None:
    """Both ends belong to it: 0 to 3 mW are four values."""
    config = validated({**GOOD, "release": {"levels": 4, "range": ["0 W", "3 mW"]}})
    assert document_of(config).compile().households.encode(np.array([0, 3])).tolist() == [0, 3]


def test_a_study_may_look_at_what_must_not_be_run() -> None:
    """Theorem 8's calibration; every other fault is one for studies too."""
    papers = {**GOOD, **group(epsilon=3, calibration="paper")}
    assert validated(papers, studies=True).group[0].calibration == "paper"
    for tables, field, _, _ in FAULTS:
        if field != "group.0.calibration":
            with pytest.raises(ConfigError) as refused:
                validated({**papers, **tables}, studies=True)
            assert field in [fault.field for fault in refused.value.faults]


def test_all_faults_of_all_tables_are_told_at_once() -> None:
    found = faults(
        broker={"url": "nonsense", "client_id": "a b", "keepalive": 5},
        slots={"length": "soon", "missing": "zero"},
        release={"range": ["2 W", "1 W"]},
        source=[{**SOURCE, "unit": "ell", "value": "e"}, {"topic": "x/{household}"}],
        household=[{"id": "h 1"}, {"id": "h-2", "levels": 0}],
        http={"listen": "nowhere"},
        nonsense=1,
    )
    assert {fault.field for fault in found} == {
        "broker.url",
        "broker.client_id",
        "broker.keepalive",
        "slots.length",
        "slots.missing",
        "release.range",
        "source.0.unit",
        "source.0.value",
        "source.1.value",
        "source.1.time",
        "household.0.id",
        "household.1.levels",
        "http.listen",
        "nonsense",
    }
    assert len(found) == 14


def test_faults_between_fields_are_told_beside_faults_of_fields() -> None:
    found = faults(
        broker={"url": "nonsense"},
        budget={"window": "45min"},
        source=[{**SOURCE, "interval": "7min"}],
        household=[{"id": "h-1"}, {"id": "h-1"}],
        http={"token_file": "/nowhere/token"},
        ledger={"url": "sqlite:////nowhere/x.db"},
    )
    assert {fault.field for fault in found} == {
        "broker.url",
        "budget.window",
        "source.0.interval",
        "household.1.id",
        "http.token_file",
        "ledger.url",
    }


def test_what_was_broken_causes_no_further_faults() -> None:
    """A household with a bad id is still one: the roll is not empty, and her group not unknown."""
    found = faults(household=[{"id": "h 1"}], group=[{"name": "g", "members": ["h*"], "levels": 4}])
    assert [fault.field for fault in found] == ["household.0.id"]


def test_a_fault_that_many_households_share_is_told_once() -> None:
    found = faults(
        release={"levels": 2},
        slots={"missing": "symbol"},
        household=[{"id": f"h-{i}"} for i in range(100)],
    )
    assert [fault.field for fault in found] == ["release.levels"]


WRONG_TYPES: list[tuple[dict[str, Any], str]] = [
    (tables, field)
    for table in ("broker", "slots", "release", "budget", "ledger", "http", "output")
    for tables, field in [({table: wrong}, table) for wrong in (3, "x", True, 1.5, [], [{}], [1])]
] + [
    (tables, field)
    for table in ("source", "household", "group")
    for tables, field in [
        ({table: 3}, table),
        ({table: "x"}, table),
        ({table: {}}, table),
        ({table: True}, table),
        ({table: [3]}, f"{table}.0"),
        ({table: ["x"]}, f"{table}.0"),
        ({table: [[]]}, f"{table}.0"),
    ]
]


@pytest.mark.parametrize(("tables", "field"), WRONG_TYPES, ids=json.dumps)
def test_a_table_of_the_wrong_type_is_a_fault_of_that_table(tables: dict[str, Any], field: str) -> None:
    assert field in [fault.field for fault in faults(**tables)]


@pytest.mark.parametrize(
    "tables",
    [
        {"release": {"epsilon": True}},
        {"release": {"epsilon": "2"}},
        {"budget": {"bits": True}},
        {"budget": {"bits": "168"}},
        source(max_bytes=True),
        source(max_bytes="100"),
        source(max_bytes=100.0),
        group(epsilon=True),
        group(epsilon="3"),
        {"household": [{"id": "h-1", "epsilon": True}]},
    ],
    ids=str,
)
def test_truth_values_and_texts_are_no_numbers(tables: dict[str, Any]) -> None:
    assert len(faults(**tables)) == 1


def test_a_table_in_double_brackets_by_mistake_is_a_fault(tmp_path: Path) -> None:
    assert "broker" in [fault.field for fault in of_text(tmp_path, '[[broker]]\nurl = "mqtt://h"\n')]


@pytest.mark.parametrize(
    "tables",
    [
        {"slots": {"length": "9" * 40 + "h"}, "budget": {"window": "9" * 40 + "h"}},
        {"slots": {"length": "9" * 4_400 + "h"}},
        {"slots": {"grace": "9" * 30 + "d"}},
        {"slots": {"skew": "9" * 30 + "d"}},
        {"budget": {"window": "1000000000000000h"}},
        {"ledger": {"commit": "1000000000000d"}},
    ],
    ids=["length", "endless length", "grace", "skew", "window", "commit"],
)
def test_a_time_that_64_bits_or_a_timer_cannot_count_is_a_fault(tables: dict[str, Any]) -> None:
    assert {fault.field.partition(".")[0] for fault in faults(**tables)} & set(tables)


SECRET = "hunter2"


@pytest.mark.parametrize(
    "tables",
    [
        {"broker": {"url": f"mqtt://user:{SECRET}@host"}},
        {"broker": {"url": f"mqtts://user:{SECRET}@host"}},
        {"broker": {"url": f"http://user:{SECRET}@host"}},
        {"broker": {"url": f"mqtt://user:{SECRET}@host:port"}},
        {"broker": {"url": f"mqtt://{SECRET}@host"}},
        {"broker": f"mqtt://user:{SECRET}@host"},
        {"broker": {"url": f"mqtt://user:a/{SECRET}@host"}},
        {"broker": {"url": f"user:{SECRET}@host"}},
        {"broker": {"url": [f"mqtt://user:{SECRET}@host"]}},
        {"broker": {"url": {"password": SECRET}}},
        {"http": {"token": [SECRET]}},
        {"nonsense": [{"deep": {"api_key": SECRET}}]},
        {"mqtt": {"url": "mqtt://host", "credentials": SECRET}},
        {"broker": {"password": SECRET}},
        {"http": {"token": SECRET}},
        {"ledger": {"url": f"postgresql://user:{SECRET}@host/db"}},
        {"output": {"url": f"mqtt://user:{SECRET}@host"}},
    ],
    ids=str,
)
def test_credentials_are_never_shown(tables: dict[str, Any]) -> None:
    found = faults(**tables)
    assert found
    assert SECRET not in str(found)
    with pytest.raises(ConfigError) as refused:
        validated({**GOOD, **tables})
    assert SECRET not in str(refused.value)


def test_relative_paths_lie_beside_the_file_wherever_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "password").write_text("x")
    (tmp_path / "etc" / "token").write_text("x")
    path = tmp_path / "etc" / "noiseless.toml"
    path.write_text(
        '[broker]\npassword_file = "password"\n[http]\ntoken_file = "token"\n'
        '[ledger]\nurl = "sqlite:///my.db"\n'
        '[[source]]\ntopic = "m/{household}"\nvalue = "/e"\nunit = "Wh"\ntime = { at = "/ts" }\n'
        '[[household]]\nid = "h-1"\n'
    )
    monkeypatch.chdir(tmp_path)
    for name in (path, Path("etc/noiseless.toml")):
        config = load(name)
        assert config.broker.password_file == tmp_path / "etc" / "password"
        assert config.http.token_file == tmp_path / "etc" / "token"
        assert ledger_path(config) == tmp_path / "etc" / "my.db"


def test_the_default_ledger_lies_beside_the_file_and_an_absolute_one_where_it_says(tmp_path: Path) -> None:
    rest = (
        '[[source]]\ntopic = "m/{household}"\nvalue = "/e"\nunit = "Wh"\ntime = { at = "/ts" }\n'
        '[[household]]\nid = "h-1"\n'
    )
    path = tmp_path / "a.toml"
    path.write_text(rest)
    assert ledger_path(load(path)) == tmp_path / "noiseless.db"
    path.write_text(f'[ledger]\nurl = "sqlite:///{tmp_path}/elsewhere.db"\n{rest}')
    assert ledger_path(load(path)) == tmp_path / "elsewhere.db"


def test_a_folder_is_no_file_for_a_password_or_a_token(tmp_path: Path) -> None:
    found = faults(broker={"password_file": str(tmp_path)}, http={"token_file": str(tmp_path)})
    assert {fault.field for fault in found} == {"broker.password_file", "http.token_file"}


@pytest.mark.parametrize(
    "text",
    [
        "= 1",
        "[broker",
        "a = 1\na = 2",
        "a = 2026-13-45",
        "\0",
        "a = " + "9" * 5_000,
        "a = " + "[" * 20_000,
        "a = " + "{a=" * 20_000,
        "[" + "a." * 20_000 + "b]\nc = 1",
    ],
    ids=["key", "bracket", "twice", "date", "nul", "digits", "lists", "tables", "dots"],
)
def test_what_is_not_toml_is_a_fault_of_the_file(tmp_path: Path, text: str) -> None:
    found = of_text(tmp_path, text)
    assert found[0].remedy


def test_bytes_that_are_no_text_are_a_fault_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "noiseless.toml"
    path.write_bytes(b'a = "\xff"')
    with pytest.raises(ConfigError, match="not TOML"):
        load(path)


@pytest.mark.parametrize("name", ["missing.toml", ".", "noiseless.toml/x"])
def test_a_file_that_cannot_be_read_is_a_fault_with_its_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "noiseless.toml").write_text("")
    with pytest.raises(ConfigError) as refused:
        load(tmp_path / name)
    (fault,) = refused.value.faults
    assert fault.field == str(tmp_path / name)
    assert "readable" in fault.remedy


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_without_permission_is_a_fault_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "noiseless.toml"
    path.write_text("")
    path.chmod(0)
    with pytest.raises(ConfigError, match="denied"):
        load(path)


def fields(model: Any) -> Iterator[str]:  # noqa: ANN401 - a class of pydantic's
    for name, field in model.model_fields.items():
        yield name
        inner = [field.annotation, *getattr(field.annotation, "__args__", ())]
        for table in inner:
            if hasattr(table, "model_fields"):
                yield from fields(table)


names = st.sampled_from([*dict.fromkeys(fields(Config)), "nonsense", "[/x]"])
durations = ["30min", "1h", "1ms", "24h", "9999999999999999999999999999999999999999h"]
words = [
    "",
    "h-1",
    "h-*",
    "*",
    "symbol",
    "event",
    "mean",
    "Wh",
    "embedded",
    "[",
    "{",
    "/e",
    "0 W",
    "1 kW",
    "-5 kW",
]
addresses = ["m/{household}", "m/+/#", "#", "mqtt://h", "sqlite:///x", "127.0.0.1:0"]
texts = st.sampled_from([*durations, *words, *addresses])
values = st.recursive(
    st.booleans()
    | st.integers(-3, 2**23)
    | st.integers()
    | st.floats()
    | texts
    | st.text(max_size=5)
    | st.datetimes(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=5),
    max_leaves=10,
)


def table_of(model: Any) -> st.SearchStrategy[dict[str, Any]]:  # noqa: ANN401 - a class of pydantic's
    optional = dict.fromkeys(model.model_fields, texts | values)
    return st.fixed_dictionaries({}, optional={**optional, "nonsense": values})


def any_tables() -> st.SearchStrategy[dict[str, Any]]:
    optional: dict[str, st.SearchStrategy[Any]] = {"nonsense": values}
    for name, field in Config.model_fields.items():
        inner = getattr(field.annotation, "__args__", None)
        model = inner[0] if inner else field.annotation
        if not issubclass(model, BaseModel):
            optional[name] = texts | values
            continue
        one = table_of(model)
        optional[name] = values | (st.lists(one | values, max_size=3) if inner else one)
    return st.fixed_dictionaries({}, optional=optional)


@unhurried
@given(any_tables())
@example({"broker": [{}]})
@example({"broker": {"url": "x"}, "group": [GROUP]})
@example({**GOOD, "group": [{**GROUP, "levels": 4}]})
@example({**GOOD, "slots": {"length": "9" * 40 + "h"}, "budget": {"window": "9" * 40 + "h"}})
def test_any_toml_at_all_is_a_good_configuration_or_a_list_of_faults(raw: dict[str, Any]) -> None:
    try:
        config = validated(raw)
    except ConfigError as refused:
        told = refused.faults
    else:
        assert config.household
        assert config.source
        return
    assert told
    assert all(fault.field and fault.problem and fault.remedy for fault in told)


@pytest.mark.parametrize("tables", [row[0] for row in FAULTS[:20]], ids=str)
def test_a_configuration_is_left_as_it_was_given(tables: dict[str, Any]) -> None:
    raw = {**GOOD, **tables}
    before = repr(raw)
    with pytest.raises(ConfigError):
        validated(raw)
    assert repr(raw) == before
