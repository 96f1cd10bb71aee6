"""The documents say what the code does: every field, default, command, link and example."""

import json
import os
import re
import shlex
import tomllib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import typer
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from gateway.checking import load
from gateway.cli import app
from gateway.config import Config, HouseholdTable, Release
from gateway.messages import Release as Slot
from gateway.messages import Renderer
from gateway.policy import DEFAULT_LEVELS, DEFAULT_RANGE_MW, Book, document_of
from gateway.quantities import duration_ms, power_mw
from gateway.sources import Readings, Reason, Sources
from gateway.telemetry import OperatorMetrics

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")])
README = (ROOT / "README.md").read_text()
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text()
OPERATION = (ROOT / "docs" / "operation.md").read_text()


def tables() -> dict[str, type[BaseModel]]:
    """Return every table of the configuration by its heading."""
    found: dict[str, type[BaseModel]] = {}
    for name, field in Config.model_fields.items():
        inner = getattr(field.annotation, "__args__", None)
        model: Any = inner[0] if inner else field.annotation
        found[f"[[{name}]]" if inner else f"[{name}]"] = model
    return found


def documented(heading: str) -> dict[str, tuple[str, str]]:
    """Return (default, meaning) of each field in a heading's table."""
    section = CONFIGURATION.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*) \|$", section, re.MULTILINE)
    return {name: (default, meaning) for name, default, meaning in rows}


TABLES = tables()
ROLL = {"household": [{"id": "h-1"}]}


@pytest.mark.parametrize("heading", TABLES)
def test_every_field_of_a_table_is_documented_and_no_other(heading: str) -> None:
    assert set(documented(heading)) == set(TABLES[heading].model_fields)


def test_every_documented_table_exists() -> None:
    assert set(re.findall(r"^## (.*)$", CONFIGURATION, re.MULTILINE)) == set(TABLES)


@pytest.mark.parametrize("heading", TABLES)
def test_every_default_is_the_documented_one(heading: str) -> None:
    for name, (written, _) in documented(heading).items():
        field = TABLES[heading].model_fields[name]
        if issubclass(TABLES[heading], Release):
            continue
        if field.default is PydanticUndefined:
            assert written == "needed", name
        elif field.default in (None, {}):
            assert written == "none", name
        else:
            assert literal(name, written) == field.default, name


def test_the_defaults_of_a_release_are_those_of_the_policy() -> None:
    rows = documented("[release]")
    assert 2 ** int(rows["epsilon"][0].strip("`")) == DEFAULT_LEVELS
    ends = tomllib.loads(f"x = {rows['range'][0].strip('`')}")["x"]
    assert tuple(map(power_mw, ends)) == DEFAULT_RANGE_MW
    assert literal("rounding", rows["rounding"][0]) == Book(*DEFAULT_RANGE_MW, DEFAULT_LEVELS).rounding
    as_documented = {"codebook": literal("codebook", rows["codebook"][0])}
    assert document_of(Config.model_validate({**ROLL, "release": as_documented})) == document_of(
        Config.model_validate(ROLL)
    )
    assert rows["seed"][0].strip("`") == "output.topic"
    assert document_of(Config.model_validate({**ROLL, "output": {"topic": "x"}})).seed == "x"
    assert rows["levels"][0] == "none"
    for name, (written, _) in documented("[[household]]").items():
        assert written == ("as [release]" if name in Release.model_fields else "needed")


def literal(name: str, written: str) -> object:
    """Return a default as the model holds it."""
    value = tomllib.loads(f"x = {written.strip('`')}")["x"]
    durations = {"length", "grace", "catch_up", "skew", "window", "commit"}
    return duration_ms(value) if name in durations else value


@pytest.mark.parametrize("heading", TABLES)
def test_the_meaning_of_a_field_is_that_of_the_model(heading: str) -> None:
    for name, (_, meaning) in documented(heading).items():
        assert meaning == TABLES[heading].model_fields[name].description


def test_every_field_has_a_meaning() -> None:
    for model in {*TABLES.values(), HouseholdTable}:
        assert all(field.description for field in model.model_fields.values())


def links() -> Iterator[tuple[Path, str]]:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
            if "://" not in target:
                yield document, target


@pytest.mark.parametrize(
    ("document", "target"), list(links()), ids=lambda value: str(value).removeprefix(f"{ROOT}/")
)
def test_every_relative_link_leads_somewhere(document: Path, target: str) -> None:
    path, _, anchor = target.partition("#")
    found = (document.parent / path) if path else document
    assert found.exists()
    if anchor:
        headings = re.findall(r"^#+ (.*)$", found.read_text(), re.MULTILINE)
        assert anchor in [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_file_that_is_named_in_code_exists(document: Path) -> None:
    named = re.findall(r"`((?:gateway|simulators|deploy|docs|tests)/[\w./-]*)`", document.read_text())
    assert all((ROOT / name).exists() for name in named)
    commands = re.findall(r"^(deploy/\w+)", document.read_text(), re.MULTILINE)
    assert all((ROOT / name).exists() for name in commands)


@pytest.mark.parametrize("name", ["demo", "test"])
def test_the_two_commands_of_the_readme_can_be_run(name: str) -> None:
    path = ROOT / "deploy" / name
    assert f"deploy/{name}" in README
    assert os.access(path, os.X_OK)
    assert path.read_text().startswith("#!/bin/sh\n")


def test_files_that_the_two_commands_need_exist() -> None:
    script = (ROOT / "deploy" / "environment.sh").read_text()
    named = set(re.findall(r"\bdeploy/[\w.-]+", script.partition("cd ")[2]))
    assert named
    assert all((ROOT / name).exists() for name in named)


def test_the_readmes_commands_are_all_that_there_are() -> None:
    listed = re.findall(r"^\| `noiseless (\w+)", README, re.MULTILINE)
    assert sorted(listed) == sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def test_every_call_in_the_documents_is_understood() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    names = "|".join(commands)
    calls = [
        call
        for document in DOCUMENTS
        for block in re.findall(r"```sh\n(.*?)```", document.read_text(), re.DOTALL)
        for call in re.findall(rf"noiseless ((?:{names})\b[^\n#&|]*)", block)
    ]
    inline = re.findall(rf"`(?:deploy/|noiseless )((?:{names}) --[^`\n]*)`", README)
    assert len(calls) >= 3
    assert inline
    for call in [*calls, *inline]:
        command, *rest = shlex.split(call)
        commands[command].make_context(command, rest)


def test_the_readmes_reading_is_released_as_the_readme_shows() -> None:
    topic, written = re.search(r'-t (meters/\S+) -m "(.*)"', README).groups()  # type: ignore[union-attr]
    shown = re.search(r"^(noiseless/household/\S+) (\{.*\})$", README, re.MULTILINE)
    assert shown is not None
    payload = written.replace('\\"', '"').replace("$start", json.loads(shown[2])["slot"])
    config = load(ROOT / "deploy" / "noiseless.toml")
    document = document_of(config)
    sources = Sources(config.source, document.households, document.slot_ms)
    readings, rejected = sources.decode([(topic, payload.encode(), False)])
    assert not rejected
    release = json.loads(shown[2])
    start_ms = int(datetime.fromisoformat(release["slot"]).timestamp() * 1_000)
    assert readings.start_ms.tolist() == [start_ms]
    power_w = mean_power_w(readings, document.slot_ms)
    low, high = release["between_w"]
    assert low <= power_w < high
    symbols = [release["symbol"]] + [0] * (len(document.households) - 1 + len(document.groups))
    slot = Slot(start_ms, symbols, [False] * len(document.households))
    rendered = Renderer(document, document.compile()).render(slot)[0]
    assert (rendered.topic, rendered.payload.decode()) == shown.groups()


def mean_power_w(readings: Readings, slot_ms: int) -> float:
    return int(readings.energy_mwh[0]) / 1_000 * 3_600_000 / slot_ms


def test_every_reason_of_rejection_is_explained() -> None:
    table = OPERATION.partition("| reason | meaning |")[2].partition("\n\n")[0]
    cells = [row.split("|")[1] for row in table.splitlines() if "|" in row]
    explained = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(explained) == sorted(Reason)


def test_every_public_metric_is_listed_and_every_listed_one_exists() -> None:
    row = next(line for line in OPERATION.splitlines() if line.startswith("| `/metrics`"))
    assert set(re.findall(r"`(noiseless_\w+)", row)) == {
        "noiseless_releases_total",
        "noiseless_charged_microbits_total",
        "noiseless_capacity_bits",
        "noiseless_capacity_bits_per_hour",
        "noiseless_leakage_bits",
        "noiseless_budget_remaining_ratio",
        "noiseless_build_info",
    }
    named = set(re.findall(r"`(noiseless_operator_\w+)", OPERATION))
    kept = {metric.name for metric in OperatorMetrics().registry.collect()}
    assert {name.removesuffix("_total") for name in named} <= kept


def test_the_exit_codes_of_the_readme_are_those_of_the_command_line() -> None:
    assert "Exit codes: 0 done, 1 failed, 2 usage, 78 bad\nconfiguration" in README
