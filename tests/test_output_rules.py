"""What `check` says about a broker of releases, before anything connects."""

from pathlib import Path
from typing import Any

import pytest
from authorities import Authority

from gateway.checking import ConfigError, load, validated
from gateway.rules import Fault

SOURCE = {"topic": "m/{household}", "value": "/e", "unit": "Wh", "time": {"at": "/ts"}}
GOOD: dict[str, Any] = {"source": [SOURCE], "household": [{"id": "h-1"}]}
LOOP = {"source": [{**SOURCE, "topic": "noiseless/household/{household}"}]}


def faults(**tables: Any) -> list[Fault]:  # noqa: ANN401 - any TOML
    with pytest.raises(ConfigError) as refused:
        validated({**GOOD, **tables})
    return refused.value.faults


def test_it_has_a_session_and_a_port_of_its_own() -> None:
    config = validated({**GOOD, "broker": {"client_id": "g"}, "output": {"url": "mqtts://receivers.example"}})
    assert config.separate
    assert config.output_client_id == "g-out"
    assert config.output.address == ("receivers.example", 8883)
    assert config.output.tls
    named = validated({**GOOD, "output": {"url": "mqtt://receivers.example", "client_id": "other"}})
    assert (named.output_client_id, named.output.address) == ("other", ("receivers.example", 1883))
    assert not validated(GOOD).separate


@pytest.mark.parametrize(
    ("field", "value"),
    [("client_id", "x"), ("username", "u"), ("password_file", "/dev/null"), ("ca_file", "/dev/null")],
)
def test_what_needs_its_own_broker_is_refused_without_one(field: str, value: str) -> None:
    (fault,) = faults(output={field: value})
    assert (fault.field, fault.value) == (f"output.{field}", value)
    assert "set output.url" in fault.remedy


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("embedded", "leave output.url out"),
        ("receivers.example", "mqtt://HOST:PORT"),
        ("mqtt://u@receivers.example", "username and password_file"),
    ],
)
def test_an_address_that_is_none_is_refused(url: str, words: str) -> None:
    (fault,) = faults(output={"url": url})
    assert fault.field == "output.url"
    assert words in fault.remedy


def test_its_files_are_looked_at_as_those_of_the_broker_of_readings(tmp_path: Path) -> None:
    files = Authority(tmp_path).issue("gateway")
    (fault,) = faults(output={"url": "mqtts://r.example", "ca_file": "/nowhere/ca.pem"})
    assert fault.field == "output.ca_file"
    (fault,) = faults(output={"url": "mqtts://r.example", "cert_file": str(files.cert_file)})
    assert "output.key_file is missing" in fault.problem
    (fault,) = faults(output={"url": "mqtt://r.example", "ca_file": str(files.ca_file)})
    assert "write mqtts:// into output.url" in fault.remedy


def test_its_files_lie_beside_the_configuration(tmp_path: Path) -> None:
    Authority(tmp_path).issue("gateway")
    path = tmp_path / "noiseless.toml"
    path.write_text(
        '[output]\nurl = "mqtts://r.example"\nca_file = "ca.pem"\n'
        '[[source]]\ntopic = "m/{household}"\nvalue = "/e"\nunit = "Wh"\ntime = { at = "/ts" }\n'
        '[[household]]\nid = "h-1"\n'
    )
    assert load(path).output.ca_file == tmp_path / "ca.pem"


def test_two_sessions_at_one_broker_need_two_names() -> None:
    same = {"url": "mqtt://127.0.0.1:1883", "client_id": "noiseless"}
    (fault,) = faults(output=same)
    assert fault.field == "output.client_id"
    assert "set another" in fault.remedy
    assert validated({**GOOD, "output": {**same, "url": "mqtt://127.0.0.1:1884"}}).separate


def test_reading_our_own_releases_is_a_loop_at_one_broker_and_none_at_two() -> None:
    for output in ({}, {"url": "mqtt://127.0.0.1:1883"}):
        (fault,) = faults(**LOOP, output=output)
        assert fault.problem == "would read our own releases"
    assert validated({**GOOD, **LOOP, "output": {"url": "mqtt://127.0.0.1:1884"}}).separate


@pytest.mark.parametrize("most", [0, -1, 1.0, "3", True])
def test_the_bound_is_a_number_of_slots(most: object) -> None:
    (fault,) = faults(output={"max_pending": most})
    assert fault.field == "output.max_pending"
    assert "slots that wait" in fault.remedy
