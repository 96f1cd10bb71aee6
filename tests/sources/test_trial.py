"""What messages would become is told in plain words, from the very mapping that the service uses."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gateway.cli import app
from gateway.config import Config
from gateway.quantities import written_time
from gateway.sources.readings import Reason
from gateway.sources.trial import Outcome, Trial

POWER = {"topic": "m/{household}", "value": "/w", "unit": "W", "quantity": "power"}
TOPIC = "m/h-1"
ROLL = [{"id": "h-1"}, {"id": "h-2"}]
GOOD = b'{"w":5.5,"ts":"2026-01-05T10:00:00Z"}'
CONFIG = """
[[source]]
topic = "m/{household}"
value = "/w"
unit = "W"
quantity = "power"
"""


def outcomes(
    payload: bytes, *sources: dict[str, Any], topic: str = TOPIC, roll: object = (), retained: bool = False
) -> list[Outcome]:
    config = Config.model_validate({"source": sources or [POWER], "household": roll})
    return Trial(config).outcomes(topic, payload, retained=retained)


def only(payload: bytes, *sources: dict[str, Any], **others: Any) -> Outcome:  # noqa: ANN401 - see above
    (outcome,) = outcomes(payload, *sources, **others)
    return outcome


def test_a_reading_has_its_meter_quantity_value_unit_and_time() -> None:
    timed = {**POWER, "time": {"at": "/ts"}}
    assert only(GOOD, timed) == Outcome("accept", "h-1", "power", 5.5, "W", "2026-01-05T10:00:00Z")
    assert only(GOOD) == Outcome("accept", "h-1", "power", 5.5, "W")


def test_without_a_roll_every_meter_is_known() -> None:
    assert only(GOOD, topic="m/anyone").action == "accept"


def test_a_meter_of_no_household_is_refused_by_name_with_what_it_said() -> None:
    found = only(GOOD, topic="m/h-9", roll=ROLL)
    assert found[:5] == ("reject", "h-9", "power", 5.5, "W")
    assert found.reason == ("unknown_household: meter h-9 is on no household: add it to [[household]] meters")


def test_a_meter_of_another_source_is_refused_with_where_to_look() -> None:
    found = only(GOOD, {**POWER, "meters": ["h-2"]}, roll=ROLL)
    assert found.action == "reject"
    assert found.reason is not None
    assert "h-1 is on the roll, but not among this source's meters" in found.reason


def test_power_that_the_broker_had_kept_is_ignored_and_a_register_is_a_baseline() -> None:
    stale = only(GOOD, retained=True)
    assert stale[:4] == ("ignore", "h-1", "power", 5.5)
    assert stale.reason is not None
    assert stale.reason.startswith("stale_retained: ")
    register = only(GOOD, {**POWER, "quantity": "register", "unit": "Wh"}, retained=True)
    assert register.action == "accept"
    assert register.reason is not None
    assert register.reason.startswith("baseline only: ")
    interval = only(
        GOOD, {**POWER, "quantity": "interval", "unit": "Wh", "time": {"at": "/ts"}}, retained=True
    )
    assert (interval.action, interval.reason) == ("accept", None)


def test_a_topic_of_no_source_is_ignored_and_the_topics_are_named() -> None:
    found = only(GOOD, topic="elsewhere")
    assert found.action == "ignore"
    assert found.reason == "unknown_topic: no [[source]] has this topic: compare it with m/{household}"


def test_of_two_sources_of_a_topic_the_one_that_can_use_it_is_told() -> None:
    both = ({**POWER, "meters": ["h-2"]}, {**POWER, "meters": ["h-1"], "unit": "kW"})
    assert [one.value for one in outcomes(GOOD, *both, roll=ROLL)] == [5_500]
    assert [one.action for one in outcomes(b"{", *both, roll=ROLL)] == ["reject", "reject"]


SAID = {
    Reason.TOO_LARGE: (b" " * 70_000, {}, "max_bytes"),
    Reason.UNDECODABLE: (b"{", {}, "no JSON"),
    Reason.MISSING_FIELD: (b"{}", {}, "/w"),
    Reason.WRONG_TYPE: (b'{"w":null}', {}, "/w"),
    Reason.UNDECLARED_UNIT: (b'{"w":1,"u":"var"}', {"unit": {"at": "/u"}}, "mW, W, kW, MW"),
    Reason.IMPLAUSIBLE: (b'{"w":20000}', {"limit": "17 kW"}, "limit = 17 kW"),
    Reason.NOT_A_NUMBER: (b'{"w":"1,5"}', {}, "decimal"),
    Reason.SENTINEL: (b'{"w":-1}', {"sentinels": -1}, "sentinels"),
    Reason.NO_METER: (b'{"w":1,"id":""}', {"meter": "/id"}, "/id"),
    Reason.GUARD: (b'{"w":1}', {"when": {"/k": 1}}, "when"),
    Reason.EMPTY: (b"", {}, "clears"),
    Reason.BAD_TIME: (b'{"w":1,"ts":"2026-01-05T10:00:00"}', {"time": {"at": "/ts"}}, "zone"),
    Reason.MISALIGNED: (
        b'{"w":1,"ts":"2026-01-05T10:10:00Z"}',
        {"quantity": "interval", "unit": "Wh", "time": {"at": "/ts"}},
        "30min",
    ),
}


@pytest.mark.parametrize("reason", SAID, ids=str)
def test_a_reason_has_the_metrics_name_and_says_what_to_do(reason: Reason) -> None:
    payload, fields, word = SAID[reason]
    found = only(payload, {**POWER, **fields})
    assert found.action in {"reject", "ignore"}
    assert found[1:6] == (None,) * 5
    assert found.reason is not None
    assert found.reason.startswith(f"{reason.value}: ")
    assert word in found.reason


@pytest.mark.parametrize(
    ("moment_ms", "text"),
    [
        (1_767_607_200_000, "2026-01-05T10:00:00Z"),
        (1_767_607_200_080, "2026-01-05T10:00:00.080Z"),
        (978_307_200_001, "2001-01-01T00:00:00.001Z"),
    ],
)
def test_a_time_is_written_with_milliseconds_where_there_are_some(moment_ms: int, text: str) -> None:
    assert written_time(moment_ms) == text


def invoked(folder: Path, *arguments: str, config: str = CONFIG, stdin: bytes = b"") -> tuple[int, str, str]:
    (folder / "noiseless.toml").write_text(config)
    (folder / "message").write_bytes(GOOD)
    words = ["sources", "test", str(folder / "noiseless.toml"), *arguments]
    done = CliRunner().invoke(app, words, input=stdin, catch_exceptions=False)
    return done.exit_code, done.stdout, done.stderr


def test_the_command_prints_one_json_object_per_reading(tmp_path: Path) -> None:
    message = ("--payload-file", str(tmp_path / "message"))
    code, out, _ = invoked(tmp_path, "--topic", TOPIC, *message, "--topic", "m/h-2", *message, "--json")
    assert code == 0
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["meter"] for line in lines] == ["h-1", "h-2"]
    assert list(lines[0]) == ["action", "meter", "quantity", "value", "unit", "time", "reason"]


def test_the_command_draws_a_table_with_the_topic(tmp_path: Path) -> None:
    code, out, _ = invoked(tmp_path, "--topic", TOPIC, "--payload-file", str(tmp_path / "message"))
    assert code == 0
    assert TOPIC in out
    assert "accept" in out
    assert "5.5" in out


def test_a_payload_may_come_from_the_standard_input(tmp_path: Path) -> None:
    code, out, _ = invoked(tmp_path, "--topic", TOPIC, "--payload-file", "-", "--json", stdin=b'{"w":[1,2]}')
    assert code == 0
    assert json.loads(out)["value"] == 3


def test_a_bad_configuration_is_78_and_shows_its_faults(tmp_path: Path) -> None:
    arguments = ("--topic", TOPIC, "--payload-file", str(tmp_path / "message"))
    code, _, errors = invoked(tmp_path, *arguments, config=CONFIG.replace('"W"', '"Wh"'))
    assert code == 78
    assert "source.0.unit" in errors
    code, out, _ = invoked(tmp_path, *arguments, "--json", config="[[household]]\nid = 'h-1'\n")
    assert code == 78
    assert [fault["field"] for fault in json.loads(out)["faults"]] == ["source"]
    code, _, _ = invoked(tmp_path, *arguments, config="nonsense")
    assert code == 78


def test_a_file_that_cannot_be_read_is_1_and_files_without_topics_are_usage(tmp_path: Path) -> None:
    code, _, errors = invoked(tmp_path, "--topic", TOPIC, "--payload-file", str(tmp_path / "nothing"))
    assert code == 1
    assert "nothing" in errors
    code, _, _ = invoked(tmp_path, "--topic", TOPIC, "--topic", TOPIC, "--payload-file", "-")
    assert code == 2
    assert invoked(tmp_path, "--topic", TOPIC)[0] == 2
