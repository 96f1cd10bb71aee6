"""The command line, one thin function per command. Exit codes: 0 done, 1 failed, 2 usage, 78 bad config."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, NoReturn

import structlog
import typer
import uvloop
from rich.console import Console

from gateway.checking import ConfigError, load
from gateway.config import Config
from gateway.ledger import LedgerError, read_statement
from gateway.report import budget_report, privacy_table, show_budget, show_faults, show_privacy
from gateway.rules import ledger_path
from gateway.telemetry import configure_logs

EXIT_FAILED = 1
EXIT_CONFIG = 78

app = typer.Typer(
    help="A streaming privacy gateway for smart meters: releases that say at most ε bits, without noise.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
_log = structlog.get_logger()
_PIPED_WIDTH = 140
_out = Console(width=None if sys.stdout.isatty() else _PIPED_WIDTH)
_err = Console(stderr=True, width=None if sys.stderr.isatty() else _PIPED_WIDTH)

ConfigPath = Annotated[Path, typer.Argument(metavar="CONFIG", help="The configuration, a TOML file.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
LogLevel = Annotated[str, typer.Option("--log-level", help="debug, info, warning or error.")]


def main() -> None:
    """Run the command line."""
    app()


@app.command(epilog="Example: noiseless run /etc/noiseless.toml")
def run(config: ConfigPath, log_level: LogLevel = "info") -> None:
    """Run the gateway until SIGTERM, which drains, commits and keeps the broker's session."""
    from gateway.mqtt import SessionTakenOver  # noqa: PLC0415 - the other commands need no link
    from gateway.service import Gateway  # noqa: PLC0415

    configure_logs(log_level)
    loaded = _loaded(config, as_json=False)

    async def serve() -> None:
        await Gateway(loaded).run(_stop_on_signals())

    try:
        _run_loop(serve())
    except (LedgerError, SessionTakenOver, OSError) as error:
        _fail(str(error))


@app.command(epilog="Example: noiseless check noiseless.toml")
def check(config: ConfigPath, as_json: Json = False) -> None:  # noqa: FBT002 - a flag
    """Check a configuration without connecting: all faults at once, or what it promises."""
    report = privacy_table(_loaded(config, as_json=as_json))
    _print(report) if as_json else show_privacy(_out, report)


@app.command(epilog="Example: noiseless budget noiseless.toml h-001")
def budget(
    config: ConfigPath,
    household: Annotated[
        str | None, typer.Argument(help="One household; left out: the distribution.")
    ] = None,
    as_json: Json = False,  # noqa: FBT002 - a flag
) -> None:
    """Show what the ledger says: spent, remaining, releases remaining, capacity bound."""
    loaded = _loaded(config, as_json=as_json)
    try:
        report = budget_report(read_statement(ledger_path(loaded)), household)
    except LedgerError as error:
        _fail(str(error))
    except KeyError:
        _fail(f"household {household!r} was never on the roll: see [[household]] in {config}")
    _print(report) if as_json else show_budget(_out, report)


def _loaded(path: Path, *, as_json: bool) -> Config:
    try:
        return load(path)
    except ConfigError as error:
        if as_json:
            _print({"ok": False, "faults": [fault._asdict() for fault in error.faults]})
        else:
            show_faults(_err, error.faults)
        raise typer.Exit(EXIT_CONFIG) from None


def _stop_on_signals() -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(
        signal.SIGHUP,
        lambda: _log.warning("nothing is reloaded in this version", remedy="restart the service"),
    )
    return stop


def _run_loop(work: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)


def _print(report: dict[str, Any]) -> None:
    typer.echo(json.dumps(report, ensure_ascii=False, default=str))


def _fail(message: str) -> NoReturn:
    _err.print(f"[red]error[/] {message}", soft_wrap=True)
    raise typer.Exit(EXIT_FAILED)
