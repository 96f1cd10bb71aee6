"""HTTP: public metrics and health, and the operator's metrics behind a token."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
from collections.abc import Callable, Iterator

import uvicorn
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from gateway.telemetry import OperatorMetrics, PublicMetrics

_HOW_TO_ENTER = "set http.token_file to a file with a token, and send it as 'Authorization: Bearer TOKEN'\n"


def application(
    public: PublicMetrics, operator: OperatorMetrics, ready: Callable[[], dict[str, bool]], token: str | None
) -> Starlette:
    """Return the HTTP application.

    Args:
        public: served to anyone on ``/metrics``.
        operator: served on ``/operator/metrics`` to who sends the token.
        ready: what must hold for the gateway to be ready, by name.
        token: the operator's token; None closes ``/operator``.

    """

    async def live(_request: Request) -> Response:
        return JSONResponse({"status": "live"})

    async def readiness(_request: Request) -> Response:
        checks = ready()
        good = all(checks.values())
        return JSONResponse({"status": "ready" if good else "not ready", **checks}, 200 if good else 503)

    async def metrics(request: Request) -> Response:
        return _exposition(request, public.registry)

    async def operator_metrics(request: Request) -> Response:
        if token is None or not _bears(request, token):
            return PlainTextResponse(_HOW_TO_ENTER, 401, {"WWW-Authenticate": "Bearer"})
        return _exposition(request, operator.registry)

    return Starlette(
        routes=[
            Route("/metrics", metrics),
            Route("/health/live", live),
            Route("/health/ready", readiness),
            Route("/operator/metrics", operator_metrics),
        ]
    )


class Server(uvicorn.Server):
    """uvicorn as a task among others: signals and logs are the service's."""

    def __init__(self, app: Starlette, host: str, port: int) -> None:
        super().__init__(
            uvicorn.Config(app, host=host, port=port, log_config=None, access_log=False, lifespan="off")
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the service."""
        yield

    async def run_until(self, stop: asyncio.Event) -> None:
        """Serve until ``stop`` is set.

        Raises:
            OSError: the address cannot be listened on.

        """
        serving = asyncio.create_task(self._serve_or_raise())
        await asyncio.wait({serving, asyncio.create_task(stop.wait())}, return_when=asyncio.FIRST_COMPLETED)
        self.should_exit = True
        await serving

    async def _serve_or_raise(self) -> None:
        try:
            await self.serve()
        except SystemExit:
            # uvicorn ends the process when its port is taken; the service decides that here.
            raise OSError(f"cannot listen on {self.config.host}:{self.config.port}") from None


def _exposition(request: Request, registry: CollectorRegistry) -> Response:
    encoder, content_type = choose_encoder(request.headers.get("accept", ""))
    return Response(encoder(registry), media_type=content_type)


def _bears(request: Request, token: str) -> bool:
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    return kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())
