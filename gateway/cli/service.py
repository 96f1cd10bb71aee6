"""The commands that run a gateway, check what it would do, and read what it spent."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from pathlib import Path
from typing import Annotated

import structlog
import typer

from gateway.cli.terminal import (
    EXIT_FAILED,
    ConfigPath,
    Json,
    LogLevel,
    app,
    console,
    fail,
    loaded_config,
    print_json,
    run_loop,
    stop_on_signals,
)
from gateway.ledger import LedgerError, read_statement
from gateway.report import budget_report, privacy_table, show_budget, show_privacy
from gateway.roll import pseudonyms_of
from gateway.rules import ledger_path
from gateway.telemetry import Level, configure_logs

_log = structlog.get_logger()
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object for each reading.")]
sources = typer.Typer(
    help="How messages become readings.",
    no_args_is_help=True,
    epilog="Example: noiseless sources test noiseless.toml --topic tele/h-1/SENSOR --payload-file message",
)
app.add_typer(sources, name="sources")


@app.command(epilog="Example: noiseless run /etc/noiseless.toml")
def run(config: ConfigPath, log_level: LogLevel = Level.INFO) -> None:
    """Run the gateway. SIGTERM drains, commits and keeps the broker's session; SIGHUP reloads the file."""
    from gateway.mqtt import SessionTakenOver
    from gateway.reloading import Requests, serve

    configure_logs(log_level)
    loaded = loaded_config(config, as_json=False)

    async def serve_until_stopped() -> None:
        requests = Requests(stop=stop_on_signals())
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, requests.reload.set)
        await serve(config, loaded, requests)

    try:
        run_loop(serve_until_stopped())
    except (LedgerError, SessionTakenOver, OSError) as error:
        _log.error("ended by an error", error=str(error))
        raise typer.Exit(EXIT_FAILED) from None


@app.command(epilog="Example: noiseless check noiseless.toml")
def check(config: ConfigPath, as_json: Json = False) -> None:
    """Check a configuration without connecting: all faults at once, or what it promises."""
    report = privacy_table(loaded_config(config, as_json=as_json))
    print_json(report) if as_json else show_privacy(console, report)


@sources.command(
    "test",
    epilog="Example: noiseless sources test noiseless.toml --topic tele/h-1/SENSOR --payload-file message",
)
def try_messages(
    config: ConfigPath,
    topic: Annotated[list[str], typer.Option(help="The message's topic; once for each payload file.")],
    payload_file: Annotated[
        list[Path],
        typer.Option(help="The payload's bytes; - is the standard input. Sparkplug: births first."),
    ],
    retained: Annotated[bool, typer.Option("--retained", help="As if the broker had kept them.")] = False,
    as_json: JsonLines = False,
) -> None:
    """Show what messages would become, without connecting; the roll may be empty."""
    from gateway.sources.trial import Trial, load_for_trial, show_outcomes

    if len(topic) != len(payload_file):
        raise typer.BadParameter("give one --payload-file for each --topic")
    if any(wildcard in name for name in topic for wildcard in "+#"):
        raise typer.BadParameter("a message has a topic without + and #", param_hint="--topic")
    trial = Trial(loaded_config(config, as_json=as_json, read=load_for_trial))
    told = [
        (name, outcome)
        for name, path in zip(topic, payload_file, strict=True)
        for outcome in trial.outcomes(name, _payload(path), retained=retained)
    ]
    if not as_json:
        show_outcomes(console, told)
    for _, outcome in told if as_json else ():
        print_json(outcome._asdict())


@app.command(epilog="Example: noiseless budget noiseless.toml h-001")
def budget(
    config: ConfigPath,
    household: Annotated[
        str | None,
        typer.Argument(help="One household, by id or today's pseudonym; left out: the distribution."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what the ledger says: spent, remaining, releases remaining, capacity bound."""
    loaded = loaded_config(config, as_json=as_json)
    if household is not None:
        household = pseudonyms_of(loaded, time.time_ns() // 1_000_000).get(household, household)
    try:
        report = budget_report(read_statement(ledger_path(loaded)), household)
    except LedgerError as error:
        fail(str(error))
    except KeyError:
        fail(f"household {household!r} was never on the roll: see [[household]] in {config}")
    print_json(report) if as_json else show_budget(console, report)


def _payload(path: Path) -> bytes:
    try:
        return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        fail(f"--payload-file {path}: {error.strerror}")
