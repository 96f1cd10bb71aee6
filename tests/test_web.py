"""HTTP: public metrics and health for anyone, the operator's metrics for who has the token."""

import asyncio
from collections.abc import Callable

import httpx
import numpy as np
import pytest
from brokers import free_port
from starlette.applications import Starlette

from gateway.privacy import CapacityBound
from gateway.telemetry import Bounds, OperatorMetrics, PublicMetrics
from gateway.web import Server, application

TOKEN = "correct-horse"
BOUNDS = Bounds(1, 2, 3, {"c": CapacityBound(1, 1, 1)}, {"c": 1.0}, np.array([1]), np.array([2]))


def ready() -> dict[str, bool]:
    return {"subscribed": True, "ledger_writable": True}


def app(token: str | None = TOKEN, checks: Callable[[], dict[str, bool]] = ready) -> Starlette:
    return application(PublicMetrics(lambda: BOUNDS), OperatorMetrics(), checks, token)


async def get(
    path: str, served: Starlette | None = None, headers: dict[str, str] | None = None, method: str = "GET"
) -> httpx.Response:
    transport = httpx.ASGITransport(served or app())
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        return await client.request(method, path, headers=headers)


async def test_a_process_that_answers_is_live_even_when_it_is_not_ready() -> None:
    answer = await get("/health/live", app(checks=lambda: {"subscribed": False}))
    assert answer.status_code == 200
    assert answer.json() == {"status": "live"}


async def test_ready_means_that_every_check_holds() -> None:
    answer = await get("/health/ready")
    assert answer.status_code == 200
    assert answer.json() == {"status": "ready", "subscribed": True, "ledger_writable": True}


@pytest.mark.parametrize("failing", ["subscribed", "ledger_writable"])
async def test_not_ready_is_503_and_names_what_fails(failing: str) -> None:
    answer = await get("/health/ready", app(checks=lambda: {**ready(), failing: False}))
    assert answer.status_code == 503
    assert answer.json() == {"status": "not ready", **ready(), failing: False}


async def test_public_metrics_need_no_token_and_hold_nothing_of_the_operators() -> None:
    answer = await get("/metrics")
    assert answer.status_code == 200
    assert "noiseless_releases_total" in answer.text
    assert "noiseless_operator" not in answer.text
    assert "process_" not in answer.text
    assert "python_info" not in answer.text


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", "text/plain"),
        ("text/plain", "text/plain"),
        ("*/*", "text/plain"),
        ("application/openmetrics-text; version=1.0.0", "application/openmetrics-text"),
    ],
)
@pytest.mark.parametrize("path", ["/metrics", "/operator/metrics"])
async def test_metrics_come_in_the_exposition_that_is_asked_for(path: str, accept: str, kind: str) -> None:
    answer = await get(path, headers={"Accept": accept, "Authorization": f"Bearer {TOKEN}"})
    assert answer.headers["content-type"].startswith(kind)
    assert (answer.text.endswith("# EOF\n")) == (kind != "text/plain")


async def test_the_operators_metrics_come_with_the_token() -> None:
    answer = await get("/operator/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    assert "noiseless_operator_messages_total" in answer.text


@pytest.mark.parametrize("authorization", [f"bearer {TOKEN}", f"BEARER  {TOKEN} "])
async def test_the_scheme_may_be_written_in_any_case(authorization: str) -> None:
    answer = await get("/operator/metrics", headers={"Authorization": authorization})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Basic {TOKEN}",
        TOKEN,
        "Bearer correct-h\xf6rse",
    ],
)
async def test_without_the_right_token_the_operators_metrics_are_closed(authorization: str | None) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    transport = httpx.ASGITransport(app())
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        answer = await client.get("/operator/metrics", headers=raw)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "http.token_file" in answer.text
    assert "noiseless_operator" not in answer.text
    assert TOKEN not in answer.text


@pytest.mark.parametrize("given", ["", "Bearer ", "Bearer None", "Bearer"])
async def test_without_a_configured_token_the_operators_metrics_are_closed_to_all(given: str) -> None:
    answer = await get("/operator/metrics", app(token=None), {"Authorization": given})
    assert answer.status_code == 401


async def test_a_token_in_the_address_opens_nothing() -> None:
    assert (await get(f"/operator/metrics?token={TOKEN}")).status_code == 401


@pytest.mark.parametrize("path", ["/", "/operator", "/operator/", "/metrics/../operator/metrics/x", "/docs"])
async def test_there_is_nothing_else(path: str) -> None:
    assert (await get(path)).status_code == 404


@pytest.mark.parametrize("path", ["/metrics", "/health/live", "/health/ready", "/operator/metrics"])
async def test_nothing_can_be_changed_over_http(path: str) -> None:
    for method in ("POST", "PUT", "DELETE"):
        assert (await get(path, method=method)).status_code == 405


async def test_the_server_answers_until_it_is_told_to_stop() -> None:
    port, stop = free_port(), asyncio.Event()
    serving = asyncio.create_task(Server(app(), "127.0.0.1", port).run_until(stop))
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        async with asyncio.timeout(5):
            while True:
                try:
                    answer = await client.get("/health/live")
                except httpx.TransportError:
                    await asyncio.sleep(0.01)
                else:
                    break
        assert answer.status_code == 200
        stop.set()
        await asyncio.wait_for(serving, 5)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        with pytest.raises(httpx.TransportError):
            await client.get("/health/live")


async def test_a_server_that_is_told_to_stop_before_it_started_stops() -> None:
    stop = asyncio.Event()
    stop.set()
    await asyncio.wait_for(Server(app(), "127.0.0.1", free_port()).run_until(stop), 5)


async def test_a_taken_port_is_an_os_error_that_names_the_address() -> None:
    taken = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = taken.sockets[0].getsockname()[1]
    async with taken:
        with pytest.raises(OSError, match=f"127.0.0.1:{port}"):
            await asyncio.wait_for(Server(app(), "127.0.0.1", port).run_until(asyncio.Event()), 5)


async def test_an_address_that_is_not_ours_is_an_os_error() -> None:
    with pytest.raises(OSError, match="cannot listen on"):
        await asyncio.wait_for(Server(app(), "192.0.2.1", free_port()).run_until(asyncio.Event()), 5)
