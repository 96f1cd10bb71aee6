"""The command line: exit codes, shapes for scripts, and no traceback whatever one types."""

import json
import re
import shlex
import time
from pathlib import Path
from typing import Any

import click
import pytest
import typer
from brokers import Mosquitto, free_port
from gateways import Gateway, eventually, noiseless, roll, toml
from meters import meters_for
from typer.testing import CliRunner

from gateway.checking import load
from gateway.cli import app
from gateway.ledger import Ledger
from gateway.policy import document_of
from gateway.roll import pseudonyms_of

ROOT = Path(__file__).parent.parent
SOURCE = {"topic": "m/{household}", "value": "/e", "unit": "Wh", "time": {"at": "/ts"}}
GOOD: dict[str, Any] = {"source": [SOURCE], "household": [{"id": "a"}, {"id": "b"}]}
COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return written(tmp_path)


def written(folder: Path, **tables: object) -> Path:
    path = folder / "noiseless.toml"
    path.write_text(toml({**GOOD, **tables}))
    return path


def invoked(*arguments: str | Path) -> tuple[int, str, str]:
    """Run a command that configures no logs in this process; what it raises is raised here."""
    result = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def strictly(text: str) -> Any:  # noqa: ANN401 - any JSON
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def entered(config: Path, *, begun: bool) -> None:
    """Make the ledger of a configuration."""
    loaded = load(config)
    document = document_of(loaded)
    ledger = Ledger(config.parent / "noiseless.db")
    ledger.enter(document, document.compile(), *meters_for(document))
    if begun:
        ledger.begin(1_767_571_200_000)
    ledger.close()


def test_the_commands_are_those_of_the_manual() -> None:
    assert COMMANDS == [
        "attack",
        "budget",
        "certify",
        "check",
        "demo",
        "plan",
        "replay",
        "run",
        "simulate",
        "sources",
        "study",
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_explains_a_command_with_an_example(command: str) -> None:
    code, text, _ = invoked(command, "--help")
    assert code == 0
    assert re.search(rf"Example:\s+noiseless\s+{command}\b", text)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_a_command_is_explained(command: str) -> None:
    parameters = typer.main.get_command(app).commands[command].params  # type: ignore[attr-defined]
    assert all(getattr(one, "help", "x") for one in parameters if isinstance(one, click.Option))


def test_the_example_of_help_is_a_call_that_is_understood() -> None:
    for command in COMMANDS:
        epilog = typer.main.get_command(app).commands[command].epilog  # type: ignore[attr-defined]
        words = shlex.split(epilog.removeprefix("Example: noiseless "))
        parsed = typer.main.get_command(app).commands[words[0]].make_context(words[0], words[1:])  # type: ignore[attr-defined]
        assert parsed.params or words[1] in typer.main.get_command(app).commands[words[0]].commands  # type: ignore[attr-defined]


def test_no_command_is_usage_and_help_shows_all_of_them() -> None:
    code, text, errors = invoked()
    assert code in (0, 2)
    assert all(command in text + errors for command in COMMANDS)


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["check"],
        ["check", "a", "b"],
        ["check", "--nonsense", "x"],
        ["demo", "--households", "0"],
        ["demo", "--households", "many"],
        ["demo", "--speed", "0"],
        ["simulate", "--silent", "2"],
        ["simulate", "--slots", "0"],
    ],
    ids=" ".join,
)
def test_what_is_not_understood_is_usage(arguments: list[str]) -> None:
    code, _, errors = invoked(*arguments)
    assert code == 2
    assert "Usage" in errors


def test_a_good_configuration_checks_with_0_as_data_or_as_a_table(config: Path) -> None:
    code, text, _ = invoked("check", config, "--json")
    report = strictly(text)
    assert code == 0
    assert report["ok"] is True
    assert report.keys() == {
        "ok",
        "slot",
        "window",
        "slots_per_window",
        "households",
        "groups",
        "sources",
        "warnings",
    }
    assert report["households"][0].keys() == {
        "class",
        "households",
        "range_w",
        "levels",
        "epsilon",
        "joint_levels",
        "cell_w",
        "worst_error_w",
        "bits_per_day",
        "budget_bits",
        "releases_until_spent",
    }
    code, text, _ = invoked("check", config)
    assert code == 0
    assert "worst error" in text


def test_check_connects_to_nothing_and_makes_no_ledger(config: Path) -> None:
    invoked("check", config)
    assert [path.name for path in config.parent.iterdir()] == ["noiseless.toml"]


@pytest.mark.parametrize("command", ["check", "budget"])
def test_a_bad_configuration_ends_with_78_and_every_fault(tmp_path: Path, command: str) -> None:
    config = written(tmp_path, broker={"url": "x"}, slots={"length": 3})
    code, text, _ = invoked(command, config, "--json")
    assert code == 78
    report = strictly(text)
    assert report["ok"] is False
    assert {fault["field"] for fault in report["faults"]} == {"broker.url", "slots.length"}
    assert all(fault.keys() == {"field", "value", "problem", "remedy"} for fault in report["faults"])
    code, text, errors = invoked(command, config)
    assert code == 78
    assert text == ""
    assert "broker.url" in errors
    assert "slots.length" in errors


@pytest.mark.parametrize(
    "text",
    ["a = nan", "[release]\nepsilon = nan", "[budget]\nbits = inf", "a = 2026-01-05", "a = 10:00:00"],
)
def test_faults_are_strict_json_whatever_the_value(tmp_path: Path, text: str) -> None:
    path = tmp_path / "noiseless.toml"
    path.write_text(text)
    code, output, _ = invoked("check", path, "--json")
    assert code == 78
    assert strictly(output)["faults"]


@pytest.mark.parametrize("topic", ["a/[/b]", "[/]", "x[bold]{household}{", "[[source]]"])
def test_brackets_in_a_bad_value_are_shown_as_they_are(tmp_path: Path, topic: str) -> None:
    path = written(tmp_path, source=[{**SOURCE, "topic": topic}])
    code, _, errors = invoked("check", path)
    assert code == 78
    assert topic in errors


@pytest.mark.parametrize("name", ["missing.toml", "[/x].toml", "."])
def test_a_configuration_that_is_not_there_ends_with_78(tmp_path: Path, name: str) -> None:
    for command in ("check", "budget"):
        code, _, errors = invoked(command, tmp_path / name)
        assert code == 78
        assert "name a readable file" in errors


def test_run_refuses_a_bad_configuration_with_78(tmp_path: Path) -> None:
    ended = noiseless("run", written(tmp_path, slots={"length": 3}))
    assert ended.returncode == 78
    assert "slots.length" in ended.stderr


def test_without_a_ledger_the_budget_says_what_to_do(config: Path) -> None:
    code, text, errors = invoked("budget", config)
    assert code == 1
    assert text == ""
    assert "start the service once" in errors


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("household", [[], ["a"]], ids=["all", "one"])
def test_the_budget_is_told_for_all_and_for_one_from_the_first_moment(
    config: Path, begun: bool, household: list[str]
) -> None:
    entered(config, begun=begun)
    code, text, _ = invoked("budget", config, *household, "--json")
    assert code == 0
    report = strictly(text)
    if household:
        assert report["household"] == "a"
        assert report["spent_bits"] == 0
        assert report["releases_remaining"] == 48
    else:
        assert report.keys() == {"window_start_ms", "ledger_bits", "classes", "groups"}
        assert report["classes"][0]["households"] == 2
    assert invoked("budget", config, *household)[0] == 0


def test_with_pseudonyms_check_says_so_and_a_budget_is_found_by_todays(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("correct horse battery staple")
    config = written(tmp_path, output={"pseudonyms": {"key_file": "key", "period": "3650d"}})
    assert strictly(invoked("check", config, "--json")[1])["pseudonyms"] == "3650d"
    assert "pseudonyms, new ones every 3650d" in invoked("check", config)[1]
    entered(config, begun=True)
    behind = pseudonyms_of(load(config), time.time_ns() // 1_000_000)
    assert sorted(behind.values()) == ["a", "b"]
    for pseudonym, household in behind.items():
        assert invoked("budget", config, pseudonym, "--json") == invoked(
            "budget", config, household, "--json"
        )


@pytest.mark.parametrize("name", ["x", "[/x]", "[bold]"])
def test_the_budget_of_a_stranger_names_her_and_the_table_to_look_into(config: Path, name: str) -> None:
    entered(config, begun=True)
    code, _, errors = invoked("budget", config, name)
    assert code == 1
    assert name in errors
    assert "[[household]]" in errors


def test_a_file_that_is_no_ledger_ends_with_1_and_a_remedy(config: Path) -> None:
    (config.parent / "noiseless.db").write_bytes(b"x" * 9_000)
    code, _, errors = invoked("budget", config)
    assert code == 1
    assert "name another file in ledger.url" in errors
    ended = noiseless("run", config)
    assert ended.returncode == 1
    assert "name another file in ledger.url" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_log_level_that_is_none_is_usage(config: Path) -> None:
    ended = noiseless("run", config, "--log-level", "loud")
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr


def test_run_says_that_its_http_address_is_taken(tmp_path: Path, mosquitto: Mosquitto) -> None:
    config = written(tmp_path, broker={"url": mosquitto.url}, http={"listen": f"127.0.0.1:{mosquitto.port}"})
    ended = noiseless("run", config)
    assert ended.returncode == 1
    assert f"cannot listen on 127.0.0.1:{mosquitto.port}" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["simulate", "--url", "nonsense"],
        ["simulate", "--url", "mqtt://127.0.0.1:99999"],
        ["simulate", "--slot", "soon"],
        ["simulate", "--slot", "1ms"],
        ["simulate", "--start", "yesterday"],
        ["simulate", "--start", "2026-01-05T00:00:00"],
        ["simulate", "--seed", "-1"],
        ["simulate", "--slot", "soon", "--write-config", "{folder}/x.toml"],
        ["simulate", "--write-config", "{folder}/nowhere/x.toml"],
        ["demo", "--headless", "--seed", "-1"],
        ["demo", "--headless", "--speed", "nan"],
        ["demo", "--headless", "--speed", "inf"],
        ["demo", "--headless", "--seconds", "nan"],
    ],
    ids=" ".join,
)
def test_an_unusable_value_ends_with_a_word_about_it(tmp_path: Path, arguments: list[str]) -> None:
    ended = noiseless(*[one.replace("{folder}", str(tmp_path)) for one in arguments])
    assert ended.returncode in (1, 2)
    assert ended.stderr.strip()
    assert "Traceback" not in ended.stderr


def test_a_broker_that_refuses_the_fleet_ends_it_with_a_word_about_it(tmp_path: Path) -> None:
    with Mosquitto(tmp_path, config_lines=["allow_anonymous false"]) as broker:
        ended = noiseless(
            "simulate", "--url", broker.url, "--households", "2", "--slots", "1", "--speed", "0"
        )
    assert ended.returncode == 1
    assert ended.stderr.strip()
    assert "Traceback" not in ended.stderr


def test_simulate_tells_what_it_published_as_json(mosquitto: Mosquitto) -> None:
    options = ["--households", "7", "--slots", "3", "--speed", "0", "--start", "2026-01-05T00:00:00Z"]
    ended = noiseless("simulate", "--url", mosquitto.url, *options, "--json")
    assert ended.returncode == 0
    assert strictly(ended.stdout) == {
        "readings": 21,
        "slots": 3,
        "silent": 0,
        "repeated": 0,
        "last_slot_ms": 1_767_571_200_000 + 2 * 1_800_000,
    }


@pytest.mark.parametrize("slot", ["30min", "7min"])
def test_a_configuration_that_simulate_writes_is_good(tmp_path: Path, slot: str) -> None:
    path = tmp_path / "fleet.toml"
    options = ["--households", "3", "--slots", "1", "--slot", slot, "--speed", "0", "--write-config", path]
    with Mosquitto(tmp_path) as broker:
        ended = noiseless("simulate", "--url", broker.url, *options)
    assert ended.returncode == 0
    assert invoked("check", path)[0] == 0


def test_an_unreachable_broker_does_not_end_the_service(tmp_path: Path) -> None:
    """ekuiper#3270: a gateway starts before its broker does."""
    gateway = Gateway(tmp_path, f"mqtt://127.0.0.1:{free_port()}", roll("a")).spawn()
    try:
        eventually("it answers", lambda: gateway.status("/health/live") == 200)
        assert gateway.status("/health/ready") == 503
        assert gateway.stop() == 0
    finally:
        gateway.end()
