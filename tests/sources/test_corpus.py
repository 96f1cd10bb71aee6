"""What devices send becomes what they mean, and nothing that anyone sends brings a reader down."""

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sources.corpus import CASES, Case

from gateway.checking import validated
from gateway.config import Config
from gateway.presets import PRESETS
from gateway.source_table import SourceTable
from gateway.sources.mapping import MessageMapping
from gateway.sources.readings import RejectedError
from gateway.sources.trial import Trial

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
SLOT_MS = 1_800_000
BY_PRESET = {case.source["preset"]: case for case in reversed(CASES) if "preset" in case.source}


def told(case: Case, config: Config) -> list[dict[str, Any]]:
    trial = Trial(config)
    for topic, payload in case.before:
        trial.outcomes(topic, payload)
    return [one._asdict() for one in trial.outcomes(case.topic, case.payload, retained=case.retained)]


def named(reason: str | None) -> str | None:
    """Return the metric's name, which stands before the words."""
    return None if reason is None else reason.partition(":")[0]


def test_every_case_has_a_name_of_its_own() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 150


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_message_becomes_what_it_means(case: Case) -> None:
    found = told(case, Config.model_validate({"source": [case.source]}))
    assert [{**one, "reason": named(one["reason"])} for one in found] == case.expected


def test_every_preset_has_a_message_that_it_accepts() -> None:
    accepted = {
        case.source["preset"]
        for case in CASES
        if "preset" in case.source and case.expected[0]["action"] == "accept"
    }
    assert accepted == set(PRESETS)


def compiled() -> list[tuple[MessageMapping, str]]:
    return [(MessageMapping(SourceTable.model_validate(case.source), SLOT_MS), case.topic) for case in CASES]


def test_every_source_reads_every_payload_or_says_why_not() -> None:
    """Nothing but RejectedError leaves a reader, whatever another device's message looks like."""
    tried = 0
    for mapping, topic in compiled():
        read = mapping.reader(topic)
        for case in CASES if read is not None else ():
            tried += 1
            try:
                read(case.payload)  # type: ignore[misc]
            except RejectedError:
                continue
    assert tried > 20_000


def mangled(payload: bytes) -> st.SearchStrategy[bytes]:
    """Payloads that look like a real one: cut, spliced, or with single bytes changed."""
    places = st.integers(0, max(len(payload) - 1, 0))

    def changed(edits: list[tuple[int, int]]) -> bytes:
        octets = bytearray(payload)
        for place, octet in edits:
            if octets:
                octets[place] = octet
        return bytes(octets)

    edits = st.lists(st.tuples(places, st.integers(0, 255)), max_size=4).map(changed)
    spliced = st.tuples(places, st.binary(max_size=8), places).map(
        lambda cut: payload[: cut[0]] + cut[1] + payload[cut[2] :]
    )
    return st.binary(max_size=64) | edits | spliced


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_a_preset_reads_any_bytes_or_says_why_not(preset: str) -> None:
    case = BY_PRESET[preset]
    mapping = MessageMapping(SourceTable.model_validate(case.source), SLOT_MS)
    read = mapping.reader(case.topic)
    assert read is not None

    @settings(unhurried, max_examples=60)
    @given(mangled(case.payload))
    def never_raises(payload: bytes) -> None:
        try:
            found = read(payload)
        except RejectedError:
            return
        assert all(type(one.value) is int for one in found if hasattr(one, "value"))

    never_raises()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("corpus")


SAMPLED = {"tasmota", "p1", "sparkplug data after its birth", "feeder", "p1 bad check sum"}
SAMPLE = [case for case in CASES if case.name in SAMPLED]


def arguments(case: Case, folder: Path) -> Iterator[str]:
    for i, (topic, payload) in enumerate([*case.before, (case.topic, case.payload)]):
        path = folder / f"{i}.bin"
        path.write_bytes(payload)
        yield from ("--topic", topic, "--payload-file", str(path))


@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: case.name)
def test_the_command_says_the_same(case: Case, folder: Path) -> None:
    config = folder / "noiseless.toml"
    lines = "\n".join(f"{name} = {written(value)}" for name, value in case.source.items())
    config.write_text(f"[[source]]\n{lines}\n")
    assert tomllib.loads(config.read_text())["source"] == [case.source]
    command = [sys.executable, "-c", "from gateway.cli import main; main()", "sources", "test", str(config)]
    done = subprocess.run(
        [*command, *arguments(case, folder), "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()][-len(case.expected) :]
    assert [{**one, "reason": named(one["reason"])} for one in found] == case.expected


def written(value: object) -> str:
    """Return a value as TOML."""
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{json.dumps(name)} = {written(inner)}" for name, inner in value.items()) + "}"
        )
    return json.dumps(value)


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_a_preset_with_what_its_user_adds_is_a_good_configuration(preset: str) -> None:
    case = BY_PRESET[preset]
    validated({"source": [case.source], "household": []} | {"household": [{"id": roll_id(case)}]})


def roll_id(case: Case) -> str:
    meter = case.source.get("meter", "")
    return meter[1:] if str(meter).startswith("=") else "h-1"
