"""Reports are data first: what a configuration promises and what a ledger says, drawn without loss."""

import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from meters import meters_for
from rich.console import Console

from gateway.checking import ConfigError, validated
from gateway.config import Config
from gateway.ledger import Ledger, Statement, read_statement
from gateway.messages import Release
from gateway.policy import document_of
from gateway.privacy import close_slot
from gateway.report import budget_report, privacy_table, show_budget, show_faults, show_privacy
from gateway.rules import Fault

SLOT_MS = 30 * 60_000
START = 1_767_571_200_000
SOURCE = {"topic": "{household}", "value": "/e", "unit": "Wh", "time": {"at": "/ts"}}
BASE: dict[str, Any] = {
    "release": {"levels": 4, "range": ["0 W", "4 kW"]},
    "source": [SOURCE],
    "household": [{"id": "a"}, {"id": "b"}, {"id": "c", "levels": 8}],
    "group": [{"name": "g", "members": ["a", "b"], "levels": 4}],
}


def configured(**tables: object) -> Config:
    return validated({**BASE, **tables})


def drawn(show: Any, *arguments: object) -> str:  # noqa: ANN401 - one of the show_ functions
    console = Console(file=io.StringIO(), width=200, record=True)
    show(console, *arguments)
    return console.export_text()


def ledger(path: Path, config: Config, slots: int) -> Statement:
    """Return the statement of a ledger in which so many slots were closed."""
    document = document_of(config)
    policy = document.compile()
    one = Ledger(path)
    try:
        _, state, _, registers = one.enter(document, policy, *meters_for(document))
        if slots >= 0:
            one.begin(START)
        for i in range(slots):
            start_ms = START + i * SLOT_MS
            values = np.full(len(document.households), 1_000_000)
            closed = close_slot(policy, state, start_ms, values)
            symbols = np.concatenate((closed.symbols, closed.group_symbols)).tolist()
            release = Release(start_ms, symbols, closed.spent.tolist())
            one.close_slot(release, start_ms + SLOT_MS, closed, registers)
            state = closed.state
        return read_statement(path)
    finally:
        one.close()


def test_the_privacy_table_has_a_row_per_class_and_group() -> None:
    report = privacy_table(configured())
    assert report["ok"] is True
    assert (report["slot"], report["window"], report["slots_per_window"]) == ("30min", "1d", 48)
    rows = {row["households"]: row for row in report["households"]}
    assert rows.keys() == {1, 2}
    assert rows[1]["levels"] == rows[1]["joint_levels"] == 8
    assert rows[2]["levels"] == 4
    (group,) = report["groups"]
    assert (group["group"], group["members"], group["query"]) == ("g", 2, "sum")
    assert rows[2]["joint_levels"] == 4 + group["reach"] - 1
    assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_the_numbers_are_those_of_uniform_cells() -> None:
    report = privacy_table(configured(group=[], household=[{"id": "a"}]))
    (row,) = report["households"]
    assert row["range_w"] == [0, 4_000]
    assert row["epsilon"] == 2
    assert row["cell_w"] == 1_000
    assert row["worst_error_w"] == 500
    assert row["bits_per_day"] == 96
    assert row["budget_bits"] == 96
    assert row["releases_until_spent"] == 48


def test_a_budget_that_pays_for_fewer_slots_says_how_many() -> None:
    report = privacy_table(configured(budget={"bits": 20}, group=[], household=[{"id": "a"}]))
    assert report["households"][0]["releases_until_spent"] == 10


def test_a_release_of_one_level_costs_nothing_and_has_no_end() -> None:
    report = privacy_table(configured(group=[], household=[{"id": "a", "levels": 1}]))
    (row,) = report["households"]
    assert row["bits_per_day"] == 0
    assert row["releases_until_spent"] is None
    assert "no limit" in drawn(show_privacy, report)


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"slots": {"clock": "event"}}, "replay and simulation only"),
        ({"budget": {"bits": 1}}, "pays for no release"),
        ({"source": [{**SOURCE, "meters": ["a"]}]}, "2 meters, the first is b's"),
        ({"source": [{**SOURCE, "quantity": "register"}]}, "source.0.limit: up to 1 MW is believed"),
        ({"http": {"listen": "0.0.0.0:8080"}}, "open to the network"),
        ({}, "max_queued_messages"),
        ({}, "receivers of releases share it and must not read raw topics: set an ACL"),
        ({"output": {"url": "mqtt://127.0.0.1:1883"}}, "set an ACL"),
    ],
)
def test_what_is_allowed_but_risky_is_a_warning(tables: dict[str, Any], words: str) -> None:
    report = privacy_table(configured(**tables))
    assert any(words in warning for warning in report["warnings"])
    assert words in drawn(show_privacy, report)


def test_receivers_with_a_broker_of_their_own_need_no_acl_at_that_of_readings() -> None:
    report = privacy_table(configured(output={"url": "mqtt://127.0.0.1:1884"}))
    assert not any("ACL" in warning for warning in report["warnings"])
    assert any("max_queued_messages" in warning for warning in report["warnings"])


@pytest.mark.parametrize("listen", ["127.0.0.1:1", "localhost:1", "[::1]:1", "127.8.9.1:1"])
def test_loopback_is_no_risk(listen: str) -> None:
    report = privacy_table(configured(http={"listen": listen}))
    assert not any("open to the network" in warning for warning in report["warnings"])


def test_the_table_shows_every_number_of_the_data() -> None:
    text = drawn(show_privacy, privacy_table(configured()))
    for number in ("0 to 4,000", "1,000", "500", "30min"):
        assert number in text
    assert f"{round(48 * math.log2(8), 6):,.8g}" in text


AWKWARD = ["[/x]", "[household]", "[[source]]", "[red]", "a\\[b", "[link=x]y", ":smile:"]


@pytest.mark.parametrize("text", AWKWARD)
def test_faults_are_shown_letter_by_letter(text: str) -> None:
    """Brackets are TOML's and the user's, never instructions to the terminal."""
    shown = drawn(show_faults, [Fault("field", text, f"problem {text}", f"remedy {text}")])
    assert f"problem {text}" in shown
    assert f"remedy {text}" in shown
    assert shown.count(text) == 3


def test_a_remedy_names_its_table_as_it_is_written_in_the_file() -> None:
    with pytest.raises(ConfigError) as refused:
        validated({"source": [SOURCE]})
    assert "[[household]]" in drawn(show_faults, refused.value.faults)


def test_budgets_of_all_households_are_told_by_class(tmp_path: Path) -> None:
    config = configured()
    statement = ledger(tmp_path / "l.db", config, 3)
    report = budget_report(statement)
    policy = document_of(config).compile()
    assert report["window_start_ms"] == START
    assert report["ledger_bits"] == int(policy.price.sum()) * 3 / 1e6
    rows = {row["households"]: row for row in report["classes"]}
    price = int(policy.price[0]) / 1e6
    assert rows[2]["spent_bits"] == dict.fromkeys(("min", "median", "max"), pytest.approx(3 * price))
    assert rows[2]["remaining_bits"]["min"] == pytest.approx(45 * price)
    assert rows[2]["releases_remaining"] == dict.fromkeys(("min", "median", "max"), 45)
    assert report["groups"] == [{"group": "g", "capacity_bits": 3 * int(policy.group_price[0]) / 1e6}]
    assert json.loads(json.dumps(report, allow_nan=False))
    assert "charged in all" in drawn(show_budget, report)


def test_the_budget_of_one_household_says_what_is_left(tmp_path: Path) -> None:
    report = budget_report(ledger(tmp_path / "l.db", configured(), 2), "c")
    assert report == {
        "household": "c",
        "spent_bits": 6.0,
        "capacity_bits": 6.0,
        "budget_bits": 144.0,
        "remaining_bits": 138.0,
        "bits_per_release": 3.0,
        "releases_remaining": 46,
    }
    assert "138" in drawn(show_budget, report)


def test_spend_of_an_earlier_window_is_not_spent_in_this_one(tmp_path: Path) -> None:
    report = budget_report(ledger(tmp_path / "l.db", configured(), 48), "c")
    assert report["spent_bits"] == 0
    assert report["capacity_bits"] == 144


def test_a_household_that_left_the_roll_is_known_without_a_budget(tmp_path: Path) -> None:
    ledger(tmp_path / "l.db", configured(), 2)
    smaller = configured(household=[{"id": "a"}, {"id": "b"}])
    statement = ledger(tmp_path / "l.db", smaller, -1)
    assert budget_report(statement, "c") == {"household": "c", "spent_bits": 6.0, "capacity_bits": 6.0}
    assert budget_report(statement)["ledger_bits"] > 6


def test_a_household_that_never_was_on_the_roll_is_a_key_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        budget_report(ledger(tmp_path / "l.db", configured(), 1), "x")


@pytest.mark.parametrize("slots", [-1, 0], ids=["before the first slot is known", "in the first slot"])
@pytest.mark.parametrize("household", [None, "a"])
def test_before_the_first_slot_nothing_is_spent(tmp_path: Path, slots: int, household: str | None) -> None:
    statement = ledger(tmp_path / "l.db", configured(), slots)
    report = budget_report(statement, household)
    if household is None:
        assert report["ledger_bits"] == 0
    else:
        assert report["spent_bits"] == 0
        assert report["releases_remaining"] == 48
    assert drawn(show_budget, report)


def test_a_lowered_budget_leaves_no_releases_rather_than_less_than_none(tmp_path: Path) -> None:
    ledger(tmp_path / "l.db", configured(), 10)
    lowered = configured(budget={"bits": 9})
    statement = ledger(tmp_path / "l.db", lowered, -1)
    assert budget_report(statement)["classes"][0]["releases_remaining"]["min"] == 0
    assert budget_report(statement, "c")["releases_remaining"] == 0
