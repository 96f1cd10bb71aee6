"""`noiseless study` and `noiseless attack` as they are typed: files, exit codes, reasons."""

import csv
import json
import os
import subprocess
from pathlib import Path

import pytest
from gateways import NOISELESS, noiseless, toml
from recordings import START_MS, half_hours_mw, recorded, tables_of
from typer.testing import CliRunner

from gateway.checking import load
from gateway.cli import app
from gateway.roll import pseudonyms_of
from simulators.attackers.registry import ATTACKS
from simulators.households import Households
from simulators.studies import NAMES, Settings
from simulators.studies.data import half_hourly_homes

NO_DATA = {"NOISELESS_DATA": None}
HOMES = Households.draw(5, seed=1)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    out = tmp_path_factory.mktemp("studies") / "new" / "results"
    command = [NOISELESS, "study", "hypothesis", "--quick", "--out", str(out), "--json"]
    environment = {name: value for name, value in os.environ.items() if name != "NOISELESS_DATA"}
    return out, subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env=environment
    )


def test_a_study_writes_figures_tables_and_findings(
    done: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    out, process = done
    assert process.returncode == 0, process.stderr
    (report,) = json.loads(process.stdout)["studies"]
    files = {Path(path) for path in report["files"]}
    assert files == set(out.iterdir())
    assert {path.suffix for path in files} == {".png", ".svg", ".csv", ".md"}
    assert (out / "hypothesis-shifts.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "hypothesis-shifts.svg").read_text().startswith("<?xml")
    with (out / "hypothesis-shifts.csv").open() as file:
        assert next(csv.reader(file))[:3] == ["band_kg", "hidden", "hidden_below"]
    assert report["form"] == "quick"
    assert "simulated respondents" in report["source"]


def test_the_findings_of_the_file_are_those_of_the_report(
    done: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    out, process = done
    (report,) = json.loads(process.stdout)["studies"]
    text = (out / "hypothesis.md").read_text()
    assert all(f"- {finding}\n" in text for finding in report["findings"])
    assert report["source"] in text


def test_a_folder_without_the_data_set_is_said_and_simulated_homes_are_used(tmp_path: Path) -> None:
    settings = Settings(tmp_path, quick=True)
    assert "sgsc50 is not in the folder given" in half_hourly_homes(settings, days=1).source


@pytest.mark.parametrize(
    ("arguments", "reasons"),
    [
        (["nonsense", "--out", "x"], [*NAMES, "all"]),
        (["membership"], ["--out"]),
        (["membership", "--out", "x", "--data", "/nowhere-at-all"], ["is no folder"]),
        (["membership", "--out", "x", "--seed", "-1"], ["--seed"]),
    ],
)
def test_a_study_that_is_not_understood_is_usage(arguments: list[str], reasons: list[str]) -> None:
    result = CliRunner().invoke(app, ["study", *arguments])
    assert result.exit_code == 2
    assert all(reason in result.stderr for reason in reasons)


def test_an_output_folder_that_cannot_be_made_is_a_failure_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    arguments = ["study", "membership", "--quick", "--out", str(tmp_path / "file" / "out")]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 1
    assert "study membership" in result.stderr
    assert "Not a directory" in result.stderr


def test_a_folder_that_cannot_be_written_in_is_said_before_the_study_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simulators.studies.os.access", lambda *_: False)
    result = CliRunner().invoke(app, ["study", "membership", "--out", str(tmp_path / "new")], env=NO_DATA)
    assert result.exit_code == 1
    assert "cannot write in" in result.stderr


def test_a_folder_without_any_data_set_is_usage_and_names_them(tmp_path: Path) -> None:
    arguments = ["study", "trips", "--quick", "--out", str(tmp_path / "out"), "--data", str(tmp_path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "sgsc50_*" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("study", "file"),
    [
        ("membership", "sgsc50_1.csv.xz"),
        ("disaggregation", "ukdale_house2_1.csv.xz"),
        ("occupancy", "ideal_house65_1.csv.xz"),
        ("trips", "nyc_yellow_1.csv"),
        ("hypothesis", "responses.csv"),
    ],
)
def test_a_damaged_file_of_data_is_a_failure_that_names_it(tmp_path: Path, study: str, file: str) -> None:
    for content in (b"\xfd7zXZ\x00 cut off", b"\xff\xfe", b""):
        for name in {file, "ukdale_house2_1.csv.xz", "ideal_house65_1.csv.xz"}:
            (tmp_path / name).write_bytes(content)
        arguments = ["study", study, "--quick", "--out", str(tmp_path / "out"), "--data", str(tmp_path)]
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert result.exit_code == 1
        assert "damaged, or not the data set" in result.stderr


def test_one_damaged_data_set_does_not_keep_the_other_studies_from_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simulators.studies.NAMES", ("hypothesis", "policies"))
    data = tmp_path / "data"
    data.mkdir()
    (data / "responses.csv").write_bytes(b"\0\1\2")
    arguments = ["study", "all", "--quick", "--data", str(data), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 1
    assert "study hypothesis" in result.stderr
    assert (tmp_path / "out" / "policies.md").exists()


@pytest.mark.parametrize(("module", "package"), [("matplotlib", "matplotlib"), ("sklearn", "scikit-learn")])
def test_without_its_libraries_a_study_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, package: str
) -> None:
    monkeypatch.setattr("gateway.cli.terminal.find_spec", lambda name: None if name == module else True)
    result = CliRunner().invoke(app, ["study", "membership", "--out", str(tmp_path)], env=NO_DATA)
    assert result.exit_code == 1
    assert f"{package} missing" in result.stderr
    assert "noiseless[studies]" in result.stderr


def test_an_attack_tells_what_it_learnt_as_a_table_or_as_data(tmp_path: Path) -> None:
    recording = recorded(tmp_path / "recording.txt", HOMES, 14, {"levels": 8, "range": ["0 W", "4 kW"]})
    with recording.open("ab") as file:
        file.write(b'noiseless/state {"state":"online"}\n')
    process = noiseless("attack", "routine", recording)
    assert process.returncode == 0, process.stderr
    assert "h-0003" in process.stdout
    assert "1 other lines" in process.stdout
    report = json.loads(noiseless("attack", "routine", recording, "--json").stdout)
    assert report["recording"] == {
        "releases": 5 * 14 * 48,
        "households": 5,
        "groups": 0,
        "spent": 0,
        "coarse": 0,
        "repeated": 0,
        "of_another_slot_length": 0,
        "other_lines": 1,
    }
    assert [row["household"] for row in report["learnt"]] == list(HOMES.ids)


def test_membership_uses_the_configuration_to_tell_how_often_it_is_right(tmp_path: Path) -> None:
    group = {"name": "feeder", "members": list(HOMES.ids[:2]), "epsilon": 3}
    recording = recorded(tmp_path / "recording.txt", HOMES, 2, {"epsilon": 2}, groups=[group])
    config, known = tmp_path / "noiseless.toml", tmp_path / "known.csv"
    config.write_text(toml(tables_of(HOMES.ids, {"epsilon": 2}, [group])))
    lines = [
        f"2026-01-05T{at // 2:02d}:{at % 2 * 30:02d},{at % 5},{at % 7},{at},{at % 3},{at % 2}"
        for at in range(48)
    ]
    known.write_text("\n".join([",".join(("time", *HOMES.ids)), *lines]))
    process = noiseless("attack", "membership", recording, "--known", known, "--config", config, "--json")
    assert process.returncode == 0, process.stderr
    first = json.loads(process.stdout)["learnt"][0]
    assert (first["kind"], first["name"], first["slots"]) == ("group", "feeder", 48)
    assert first["right"] is not None


def test_an_attack_that_is_not_understood_is_usage_and_lists_the_attacks(tmp_path: Path) -> None:
    recording = tmp_path / "recording.txt"
    recording.touch()
    result = CliRunner().invoke(app, ["attack", "nonsense", str(recording)])
    assert result.exit_code == 2
    assert all(name in result.stderr for name in ATTACKS)
    missing = CliRunner().invoke(app, ["attack", "routine", str(tmp_path / "none")], catch_exceptions=False)
    assert missing.exit_code == 2
    assert "RECORDING" in missing.stderr


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["routine", "RECORDING", "--known", "RECORDING"], "--known"),
        (["occupancy", "RECORDING", "--config", "RECORDING"], "--config"),
        (["routine", "RECORDING", "--unit", "Wh"], "--unit"),
        (["disaggregation", "RECORDING", "--config", "RECORDING"], "--config"),
        (["membership", "RECORDING", "--known", "RECORDING", "--unit", "J"], "--unit"),
        (["disaggregation", "RECORDING", "--unit", "W"], "--unit"),
        (["membership", "RECORDING", "--known", "NONE"], "--known"),
    ],
)
def test_options_that_an_attack_does_not_use_or_cannot_are_usage(
    tmp_path: Path, arguments: list[str], option: str
) -> None:
    recording = tmp_path / "recording.txt"
    recording.touch()
    paths = {"RECORDING": str(recording), "NONE": str(tmp_path / "none")}
    result = CliRunner().invoke(app, ["attack", *(paths.get(word, word) for word in arguments)])
    assert result.exit_code == 2
    assert option in result.stderr


def test_with_pseudonyms_the_configurations_key_tells_who_is_right(tmp_path: Path) -> None:
    recording = recorded(tmp_path / "recording.txt", HOMES, 2, {"levels": 16, "range": ["0 W", "4 kW"]})
    config, known = tmp_path / "noiseless.toml", tmp_path / "known.csv"
    (tmp_path / "key").write_text("0123456789abcdef" * 4)
    (tmp_path / "key").chmod(0o600)
    tables = tables_of(HOMES.ids, {"levels": 16, "range": ["0 W", "4 kW"]})
    config.write_text(toml(tables | {"output": {"pseudonyms": {"key_file": "key", "period": "30d"}}}))
    of_topic = pseudonyms_of(load(config), START_MS)
    lines = recording.read_bytes()
    for pseudonym, home in of_topic.items():
        lines = lines.replace(home.encode(), pseudonym.encode())
    recording.write_bytes(lines)
    watts = half_hours_mw(HOMES, 1).T / 1_000
    rows = [
        f"2026-01-05T{at // 2:02d}:{at % 2 * 30:02d},{','.join(map(str, w))}" for at, w in enumerate(watts)
    ]
    known.write_text("\n".join([",".join(("time", *HOMES.ids)), *rows]))
    process = noiseless(
        "attack", "membership", recording, "--known", known, "--unit", "W", "--config", config, "--json"
    )
    assert process.returncode == 0, process.stderr
    for row in json.loads(process.stdout)["learnt"]:
        assert row["right"] == int(row["named"] == [of_topic[row["name"]]])


@pytest.mark.parametrize("name", ATTACKS)
def test_an_empty_recording_is_a_failure_with_a_reason(tmp_path: Path, name: str) -> None:
    recording = tmp_path / "recording.txt"
    recording.touch()
    result = CliRunner().invoke(app, ["attack", name, str(recording)], catch_exceptions=False)
    assert result.exit_code == 1
    assert f"attack {name}" in result.stderr
