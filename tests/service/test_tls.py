"""The whole gateway behind TLS: certificates, access rules, and the metric that warns of their end."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from authorities import Authority, TlsMosquitto, access_rules
from gateways import TOKEN, Gateway, eventually, roll
from service.conftest import GatewayFactory
from service.expecting import Grid, symbol_of
from service.watching import Watcher, publish

GRID = Grid()
NAMES = ["h-0", "h-1", "h-2"]
TOPICS = [f"household/{name}" for name in NAMES]
MAY_RUN = ["topic read meters/#", "topic readwrite noiseless/fence/#", "topic write noiseless/state"]
MAY_RELEASE = "topic write noiseless/household/#"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


@pytest.fixture
def broker(tmp_path: Path, authority: Authority) -> Iterator[TlsMosquitto]:
    """A broker where `first` may do all but release, and `renewed` all that a gateway needs."""
    rules = access_rules(tmp_path / "acl", "user first", *MAY_RUN, "user renewed", *MAY_RUN, MAY_RELEASE)
    server = authority.issue("broker", "127.0.0.1")
    with TlsMosquitto(tmp_path / "tls", server, config_lines=[rules], persistence=True) as mosquitto:
        yield mosquitto


@pytest.fixture
def receiver(tmp_path: Path, broker: TlsMosquitto) -> Iterator[Watcher]:
    watching = Watcher(tmp_path, broker.plain_port)
    yield watching
    watching.end()


def behind(broker: TlsMosquitto, make_gateway: GatewayFactory, authority: Authority, name: str) -> Gateway:
    files = authority.issue("gateway", common_name=name)
    gateway: Gateway = make_gateway(
        roll(*NAMES),
        url=broker.url,
        broker={
            "ca_file": str(files.ca_file),
            "cert_file": str(files.cert_file),
            "key_file": str(files.key_file),
        },
    )
    return gateway


def expiry(gateway: Gateway) -> dict[str, float]:
    """Return the seconds until expiry by file."""
    text = httpx.get(
        f"http://127.0.0.1:{gateway.port}/operator/metrics",
        headers={"Authorization": f"Bearer {TOKEN}"},
        trust_env=False,
    ).text
    samples = re.findall(
        r'^noiseless_operator_certificate_expiry_seconds\{file="(\w+)",table="broker"\} (\S+)$',
        text,
        re.MULTILINE,
    )
    return {file: float(value) for file, value in samples}


def test_readings_come_and_releases_go_through_tls_with_a_client_certificate(
    make_gateway: GatewayFactory, broker: TlsMosquitto, authority: Authority, receiver: Watcher
) -> None:
    gateway = behind(broker, make_gateway, authority, "renewed").start()
    publish(
        broker.plain_port, [GRID.reading(name, slot, 3_600 * slot) for slot in range(4) for name in NAMES]
    )
    releases = receiver.wait_for_slots(TOPICS, GRID.starts(0, 3))["household/h-0"]
    assert [json.loads(repeats[0])["symbol"] for repeats in releases.values()] == [
        symbol_of(3_600_000 * slot, 4) for slot in range(3)
    ]
    left = expiry(gateway)
    assert left.keys() == {"cert", "ca"}
    assert all(seconds > 86_400 for seconds in left.values())
    assert gateway.stop() == 0
    assert not [line for line in gateway.events() if line["level"] in ("warning", "error")]


def test_denied_releases_are_reported_and_go_out_once_a_renewed_certificate_may(
    make_gateway: GatewayFactory, broker: TlsMosquitto, authority: Authority, receiver: Watcher
) -> None:
    """The renewed files are used when the broker comes back, without a restart (mosquitto#1877)."""
    gateway = behind(broker, make_gateway, authority, "first").start()
    publish(broker.plain_port, [GRID.reading(name, slot, 9_000) for slot in range(3) for name in NAMES])
    eventually("the refusal is reported", lambda: "broker refuses releases" in gateway.logged)
    (refusal, *_) = [line for line in gateway.events() if line["event"] == "broker refuses releases"]
    assert (refusal["reason"], refusal["count"]) == ("0x87", 3)
    assert not receiver.releases()
    assert gateway.query("SELECT count(*) FROM outbox") == 2
    authority.issue("gateway", common_name="renewed")
    broker.stop()
    broker.start()
    releases = receiver.wait_for_slots(TOPICS, GRID.starts(0, 2))
    assert all(len(releases[topic][slot]) == 1 for topic in TOPICS for slot in GRID.starts(0, 2))


def test_the_metric_follows_the_files(
    make_gateway: GatewayFactory, broker: TlsMosquitto, authority: Authority
) -> None:
    """So that an operator sees the end before it comes, and that the renewal is in place."""
    gateway = behind(broker, make_gateway, authority, "renewed").start()
    assert expiry(gateway)["cert"] > 86_400
    authority.issue("gateway", common_name="renewed", expired=True)
    assert expiry(gateway)["cert"] == pytest.approx(978_307_200 - time.time(), abs=5)
    (authority.directory / "gateway.pem").unlink()
    assert expiry(gateway)["cert"] == 0
    assert gateway.ready


def test_a_broker_of_another_authority_is_not_believed(
    make_gateway: GatewayFactory, broker: TlsMosquitto, authority: Authority, tmp_path: Path
) -> None:
    gateway = behind(broker, make_gateway, authority, "renewed")
    gateway.configure(broker={"ca_file": str(Authority(tmp_path / "other").ca_file)})
    gateway.spawn()
    eventually("it says so", lambda: "TLS failed" in gateway.logged)
    assert gateway.status("/health/ready") == 503
    assert "set broker.ca_file to the certificate of the authority" in gateway.logged
    gateway.stop()
