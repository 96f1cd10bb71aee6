"""What all commands share: the application, its terminal, faults and exit codes."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Callable, Coroutine
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

import typer
import uvloop
from rich.console import Console
from rich.text import Text

from gateway.checking import ConfigError, load
from gateway.config import Config
from gateway.report import show_faults
from gateway.telemetry import Level

_T = TypeVar("_T")
EXIT_FAILED = 1
EXIT_CONFIG = 78

app = typer.Typer(
    help="A streaming privacy gateway for smart meters: releases that say at most ε bits, without noise.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
_PIPED_WIDTH = 140
console = Console(width=None if sys.stdout.isatty() else _PIPED_WIDTH)
errors = Console(stderr=True, width=None if sys.stderr.isatty() else _PIPED_WIDTH)

ConfigPath = Annotated[Path, typer.Argument(metavar="CONFIG", help="The configuration, a TOML file.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
LogLevel = Annotated[Level, typer.Option("--log-level", help="The least severe that is shown.")]


def loaded_config(path: Path, *, as_json: bool, read: Callable[[Path], Config] = load) -> Config:
    """Return a configuration; faults are shown, and end the command with 78."""
    try:
        return read(path)
    except ConfigError as error:
        if as_json:
            print_json({"ok": False, "faults": [fault._asdict() for fault in error.faults]})
        else:
            show_faults(errors, error.faults)
        raise typer.Exit(EXIT_CONFIG) from None


def stop_on_signals() -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


def run_loop(work: Coroutine[Any, Any, _T]) -> _T:
    """Run a command's coroutine."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def print_json(report: dict[str, Any]) -> None:
    """Print one JSON object on a line of its own."""
    typer.echo(json.dumps(report, ensure_ascii=False, allow_nan=False, default=str))


def fail(message: str) -> NoReturn:
    """Say why a command failed, and end it with 1."""
    errors.print(Text.assemble(("error ", "red"), message), soft_wrap=True)
    raise typer.Exit(EXIT_FAILED)


_CALLED = {"matplotlib": "matplotlib", "sklearn": "scikit-learn"}


def needs(*modules: str) -> None:
    """End a command that needs what the studies extra installs, if it is not there."""
    missing = [_CALLED[module] for module in modules if find_spec(module) is None]
    if missing:
        fail(f"{' and '.join(missing)} missing: pip install 'noiseless[studies]' (in a clone: '.[studies]')")


def needs_simulators() -> None:
    """End a command that needs the simulators, if they are not installed."""
    if find_spec("aiomqtt") is None or find_spec("iotcore") is None:
        fail(
            "the simulators are not installed: pip install 'noiseless[simulate]' (in a clone: '.[simulate]')"
        )
