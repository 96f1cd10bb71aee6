"""What `check` says about the files of a connection, before anything connects."""

from pathlib import Path
from typing import Any

import pytest
from authorities import Authority

from gateway.checking import ConfigError, load, validated
from gateway.report import privacy_table
from gateway.rules import Fault

SOURCE = {"topic": "m/{household}", "value": "/e", "unit": "Wh", "time": {"at": "/ts"}}


def config(**broker: object) -> dict[str, Any]:
    named = {name: str(value) for name, value in broker.items()}
    return {
        "source": [SOURCE],
        "household": [{"id": "h-1"}],
        "broker": {"url": "mqtts://broker.example", **named},
    }


def faults(**broker: object) -> list[Fault]:
    with pytest.raises(ConfigError) as refused:
        validated(config(**broker))
    return refused.value.faults


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


def test_good_files_are_accepted_and_the_port_is_that_of_tls(authority: Authority) -> None:
    files = authority.issue("gateway")
    good = validated(config(ca_file=files.ca_file, cert_file=files.cert_file, key_file=files.key_file))
    assert good.broker.address == ("broker.example", 8883)
    assert good.broker.tls
    assert validated(config(url="mqtts://broker.example:1")).broker.address == ("broker.example", 1)


def test_files_lie_beside_the_configuration(authority: Authority) -> None:
    files = authority.issue("gateway")
    path = authority.directory / "noiseless.toml"
    path.write_text(
        '[broker]\nurl = "mqtts://h"\nca_file = "ca.pem"\ncert_file = "gateway.pem"\nkey_file = "gateway.key"\n'
        '[[source]]\ntopic = "m/{household}"\nvalue = "/e"\nunit = "Wh"\ntime = { at = "/ts" }\n'
        '[[household]]\nid = "h-1"\n'
    )
    broker = load(path).broker
    assert (broker.ca_file, broker.cert_file, broker.key_file) == (
        files.ca_file,
        files.cert_file,
        files.key_file,
    )


@pytest.mark.parametrize("field", ["ca_file", "cert_file", "key_file"])
def test_a_file_that_is_missing_is_named(authority: Authority, field: str) -> None:
    files = authority.issue("gateway")
    getattr(files, field).unlink()
    (fault,) = faults(ca_file=files.ca_file, cert_file=files.cert_file, key_file=files.key_file)
    assert (fault.field, fault.value) == (f"broker.{field}", str(getattr(files, field)))
    assert "No such file" in fault.problem
    assert "readable for the service's user" in fault.remedy


@pytest.mark.parametrize(("there", "wanting"), [("cert_file", "key_file"), ("key_file", "cert_file")])
def test_a_certificate_and_its_key_come_together(authority: Authority, there: str, wanting: str) -> None:
    path = getattr(authority.issue("gateway"), there)
    (fault,) = faults(**{there: path})
    assert (fault.field, fault.value) == (f"broker.{there}", str(path))
    assert f"broker.{wanting} is missing" in fault.problem
    assert f"set broker.{wanting}" in fault.remedy


@pytest.mark.parametrize("url", ["mqtt://broker.example", "mqtt://broker.example:8883", "embedded"])
def test_tls_files_without_tls_do_nothing_and_are_refused(authority: Authority, url: str) -> None:
    files = authority.issue("gateway")
    found = faults(url=url, ca_file=files.ca_file, cert_file=files.cert_file, key_file=files.key_file)
    assert [fault.field for fault in found] == ["broker.ca_file", "broker.cert_file", "broker.key_file"]
    assert all("write mqtts:// into broker.url" in fault.remedy for fault in found)


def test_a_key_of_another_certificate_is_refused(authority: Authority) -> None:
    ours, other = authority.issue("gateway"), authority.issue("other")
    (fault,) = faults(cert_file=ours.cert_file, key_file=other.key_file)
    assert fault.field == "broker.key_file"
    assert fault.problem == "does not belong to cert_file"
    assert fault.value == str(other.key_file)


def warnings(**broker: object) -> list[str]:
    said: list[str] = privacy_table(validated(config(**broker)))["warnings"]
    return [warning for warning in said if "_file" in warning]


def test_a_certificate_that_has_expired_is_a_warning_since_it_can_be_renewed_while_we_run(
    authority: Authority,
) -> None:
    expired = authority.issue("gateway", expired=True)
    (warning,) = warnings(ca_file=expired.ca_file, cert_file=expired.cert_file, key_file=expired.key_file)
    assert warning.startswith("broker.cert_file: has expired: renew")
    good = authority.issue("gateway")
    assert not warnings(ca_file=good.ca_file, cert_file=good.cert_file, key_file=good.key_file)
