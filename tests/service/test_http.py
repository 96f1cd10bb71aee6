"""Metrics and health: what is public depends on no reading, what depends on one needs the token."""

import httpx
from brokers import Mosquitto
from gateways import TOKEN, Gateway, eventually, roll
from prometheus_client.parser import text_string_to_metric_families
from service.conftest import GatewayFactory
from service.expecting import Grid
from service.spoiling import spoilt
from service.watching import publish

GRID = Grid()
NAMES = ["h-0", "h-1", "h-2"]
PUBLIC = {
    "noiseless_releases_total",
    "noiseless_charged_microbits_total",
    "noiseless_capacity_bits",
    "noiseless_capacity_bits_per_hour",
    "noiseless_leakage_bits",
    "noiseless_budget_remaining_ratio_bucket",
    "noiseless_budget_remaining_ratio_count",
    "noiseless_budget_remaining_ratio_sum",
    "noiseless_build_info",
}
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def closed(gateway: Gateway, slots: int) -> bool:
    families = text_string_to_metric_families(gateway.public_metrics().decode())
    samples = {(s.name, s.labels.get("kind")): s.value for family in families for s in family.samples}
    return samples["noiseless_releases_total", "household"] == slots * len(NAMES)


def test_public_metrics_are_the_listed_ones_and_the_same_bytes_whatever_one_meter_says(
    make_gateway: GatewayFactory, mosquitto: Mosquitto
) -> None:
    gateways: list[Gateway] = [
        make_gateway(
            roll(*NAMES),
            name=world,
            broker={"client_id": world},
            output={"topic": f"released-{world}"},
            source=[
                {
                    "topic": f"{world}/{{household}}/reading",
                    "value": "/energy_wh",
                    "unit": "Wh",
                    "time": {"at": "/ts"},
                }
            ],
            group=[{"name": "all", "members": ["*"], "levels": 8}],
            budget={"window": "10min", "bits": 20},
        ).start()
        for world in ("quiet", "loud")
    ]
    quiet, loud = gateways
    for slot in range(26):
        hers = [
            GRID.reading("h-0", slot, slot * 600),
            *(one.message for one in spoilt(GRID, slot, "h-0")[:3]),
        ]
        rest = [GRID.reading(name, slot, 6_000) for name in NAMES[1:]]
        publish(mosquitto.port, [m._replace(topic=m.topic.replace("meters", "loud")) for m in (*hers, *rest)])
        publish(mosquitto.port, [m._replace(topic=m.topic.replace("meters", "quiet")) for m in rest])
        if slot % 5 == 1:
            for gateway in gateways:
                eventually("the slot is closed", lambda g=gateway, n=slot: closed(g, n))
            assert quiet.public_metrics() == loud.public_metrics()
            assert public(quiet, "/metrics", OPENMETRICS) == public(loud, "/metrics", OPENMETRICS)
            for path in ("/health/live", "/health/ready"):
                assert public(quiet, path) == public(loud, path)
    samples = [
        sample.name
        for family in text_string_to_metric_families(quiet.public_metrics().decode())
        for sample in family.samples
    ]
    assert set(samples) == PUBLIC


def public(gateway: Gateway, path: str, accept: str = "*/*") -> tuple[int, bytes]:
    answer = httpx.get(f"http://127.0.0.1:{gateway.port}{path}", headers={"Accept": accept}, trust_env=False)
    return answer.status_code, answer.content


def test_operator_metrics_need_the_token(make_gateway: GatewayFactory) -> None:
    gateway: Gateway = make_gateway(roll(*NAMES)).start()
    url = f"http://127.0.0.1:{gateway.port}/operator/metrics"
    refused = ["", "Bearer", "Bearer wrong", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer é"]
    with httpx.Client(trust_env=False) as client:
        for authorization in refused:
            answer = client.get(url, headers={"Authorization": authorization.encode()})
            assert answer.status_code == 401, authorization
            assert b"noiseless_operator" not in answer.content
            assert TOKEN.encode() not in answer.content
        assert client.get(url).status_code == 401
        answer = client.get(url, headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    assert b"process_cpu_seconds" in answer.content
    assert b"noiseless_operator_rejected" in answer.content
    assert TOKEN not in gateway.logged


def test_without_a_token_file_nobody_is_the_operator(make_gateway: GatewayFactory) -> None:
    gateway: Gateway = make_gateway(roll(*NAMES))
    text = gateway.config.read_text().replace('token_file = "token"\n', "")
    gateway.config.write_text(text)
    gateway.start()
    for path in ("/operator/metrics", "/operator/metrics?token="):
        assert gateway.status(path) == 401
    assert gateway.status("/operator") == 404
