"""The command line, one thin function per command. Exit codes: 0 done, 1 failed, 2 usage, 78 bad config."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import structlog
import typer
import uvloop
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from gateway.checking import ConfigError, load
from gateway.config import Config
from gateway.ledger import LedgerError, read_statement
from gateway.policy import document_of
from gateway.report import budget_report, privacy_table, show_budget, show_faults, show_privacy
from gateway.roll import pseudonyms_of
from gateway.rules import ledger_path
from gateway.tables import progress_bar
from gateway.telemetry import Level, configure_logs

if TYPE_CHECKING:
    from gateway.planning import Plan

_T = TypeVar("_T")
EXIT_FAILED = 1
EXIT_CONFIG = 78

app = typer.Typer(
    help="A streaming privacy gateway for smart meters: releases that say at most ε bits, without noise.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
sources = typer.Typer(
    help="How messages become readings.",
    no_args_is_help=True,
    epilog="Example: noiseless sources test noiseless.toml --topic tele/h-1/SENSOR --payload-file message",
)
app.add_typer(sources, name="sources")
_log = structlog.get_logger()
_PIPED_WIDTH = 140
_out = Console(width=None if sys.stdout.isatty() else _PIPED_WIDTH)
_err = Console(stderr=True, width=None if sys.stderr.isatty() else _PIPED_WIDTH)

ConfigPath = Annotated[Path, typer.Argument(metavar="CONFIG", help="The configuration, a TOML file.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object for each reading.")]
LogLevel = Annotated[Level, typer.Option("--log-level", help="The least severe that is shown.")]


def main() -> None:
    """Run the command line."""
    app()


@app.command(epilog="Example: noiseless run /etc/noiseless.toml")
def run(config: ConfigPath, log_level: LogLevel = Level.INFO) -> None:
    """Run the gateway. SIGTERM drains, commits and keeps the broker's session; SIGHUP reloads the file."""
    from gateway.mqtt import SessionTakenOver
    from gateway.reloading import Requests, serve

    configure_logs(log_level)
    loaded = _loaded(config, as_json=False)

    async def serve_until_stopped() -> None:
        requests = Requests(stop=_stop_on_signals())
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, requests.reload.set)
        await serve(config, loaded, requests)

    try:
        _run_loop(serve_until_stopped())
    except (LedgerError, SessionTakenOver, OSError) as error:
        _log.error("ended by an error", error=str(error))
        raise typer.Exit(EXIT_FAILED) from None


@app.command(epilog="Example: noiseless check noiseless.toml")
def check(config: ConfigPath, as_json: Json = False) -> None:
    """Check a configuration without connecting: all faults at once, or what it promises."""
    report = privacy_table(_loaded(config, as_json=as_json))
    _print(report) if as_json else show_privacy(_out, report)


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
    trial = Trial(_loaded(config, as_json=as_json, read=load_for_trial))
    told = [
        (name, outcome)
        for name, path in zip(topic, payload_file, strict=True)
        for outcome in trial.outcomes(name, _payload(path), retained=retained)
    ]
    if not as_json:
        show_outcomes(_out, told)
    for _, outcome in told if as_json else ():
        _print(outcome._asdict())


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
    loaded = _loaded(config, as_json=as_json)
    if household is not None:
        household = pseudonyms_of(loaded, time.time_ns() // 1_000_000).get(household, household)
    try:
        report = budget_report(read_statement(ledger_path(loaded)), household)
    except LedgerError as error:
        _fail(str(error))
    except KeyError:
        _fail(f"household {household!r} was never on the roll: see [[household]] in {config}")
    _print(report) if as_json else show_budget(_out, report)


@app.command(epilog="Example: noiseless certify noiseless.toml")
def certify(config: ConfigPath, as_json: Json = False) -> None:
    """Prove by counting that a configuration keeps its promise: distinct bytes against what is charged."""
    from gateway.audit import certificate_report, show_certificate
    from gateway.audit import certify as certified

    document = document_of(_loaded(config, as_json=as_json, read=partial(load, studies=True)))
    try:
        with _err.status("counting") as status:
            certificate = certified(document, progress=lambda label: status.update(f"counting {label}"))
    except ValueError as error:
        _fail(str(error))
    report = certificate_report(certificate)
    _print(report) if as_json else show_certificate(_out, report)
    if not certificate.holds:
        raise typer.Exit(EXIT_FAILED)


@app.command(
    epilog="Example: noiseless plan --profile public.csv.xz --range '0 W' '14 kW' --levels 4 --bill 0.1"
)
def plan(
    profile: Annotated[
        Path, typer.Option(help="Public loads: CSV (.xz, .gz), a time and a column per home.")
    ],
    power_range: Annotated[tuple[str, str], typer.Option("--range", help="The public range.")] = (
        "0 W",
        "14.5 kW",
    ),
    unit: Annotated[str, typer.Option(help="Of the profile's energies: Wh or kWh.")] = "Wh",
    interval: Annotated[str, typer.Option(help="The profile's interval.")] = "30min",
    levels: Annotated[str, typer.Option(help="Numbers of levels to look at.")] = "2,3,4,6,8,16",
    error: Annotated[float | None, typer.Option(help="Wanted: RMS error of a release in W, at most.")] = None,
    bill: Annotated[
        float | None, typer.Option(help="Wanted: error of four weeks' energy in %, at most.")
    ] = None,
    bits: Annotated[float | None, typer.Option(help="Budget: bits a day, at most.")] = None,
    rounding: Annotated[str | None, typer.Option(help="Only nearest, feedback or dither.")] = None,
    blind: Annotated[tuple[str, str] | None, typer.Option(help="Also a codebook blind in this band.")] = None,
    write: Annotated[Path | None, typer.Option(help="Write the chosen codebook to this file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw error over bits (.png or .svg).")] = None,
    as_json: Json = False,
) -> None:
    """Choose a codebook from a public profile: what each kind costs in bits and gives in accuracy."""
    from gateway.planning import PlanError, Request, make_plan, show_plan

    if plot is not None:
        _needs("matplotlib")
    try:
        request = Request.parsed(
            profile, power_range, unit=unit, interval=interval, levels=levels, rounding=rounding, blind=blind
        )
        made = make_plan(
            request, rmse_w=error, bill_percent=bill, bits_per_day=bits, progress=progress_bar(_err)
        )
        if write is not None:
            write.write_text(made.codebook_file(), encoding="utf-8")
    except (PlanError, OSError, ValueError) as problem:
        _fail(str(problem))
    if plot is not None:
        _draw(made, plot)
    _print(made.report()) if as_json else show_plan(_out, made.report(), write)


@app.command(epilog="Example: noiseless demo --households 200 --speed 900 --seconds 30 --headless --json")
def demo(
    households: Annotated[int, typer.Option(min=1, help="Simulated homes.")] = 200,
    speed: Annotated[float, typer.Option(min=1, max=1e6, help="Simulated seconds per second.")] = 900,
    seconds: Annotated[float | None, typer.Option(min=0.1, help="How long; left out: until Ctrl-C.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another seed, other homes.")] = 1,
    headless: Annotated[
        bool, typer.Option("--headless", help="No live view; 30 seconds unless told.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Watch private data flow: an embedded broker, a simulated fleet and the gateway, without any file."""
    _needs_simulators()
    from simulators.demo import Demo
    from simulators.view import DemoView, show_summary

    configure_logs(Level.WARNING)
    run_for = 30.0 if headless and seconds is None else seconds
    scene = Demo(households=households, speed=speed, seconds=run_for, seed=seed)

    async def play() -> dict[str, Any]:
        showing = None if headless else asyncio.create_task(DemoView(scene).show())
        try:
            return await scene.run(_stop_on_signals())
        finally:
            if showing is not None:
                showing.cancel()

    summary = _run_loop(play())
    _print(summary) if as_json else _out.print(show_summary(summary))
    if summary["lost"] or summary["doubled"]:
        _fail("releases were lost or doubled: see the summary")


@app.command(epilog="Example: noiseless simulate --url mqtt://127.0.0.1:1883 --households 50 --slot 1min")
def simulate(
    url: Annotated[str, typer.Option(help="The broker to publish to.")] = "mqtt://127.0.0.1:1883",
    households: Annotated[int, typer.Option(min=1, help="Simulated homes.")] = 50,
    speed: Annotated[
        float, typer.Option(min=0, help="Simulated seconds per second; 0 as fast as it can.")
    ] = 1,
    slot: Annotated[str, typer.Option(help="A reading's interval.")] = "30min",
    slots: Annotated[int | None, typer.Option(min=1, help="How many; left out: until Ctrl-C.")] = None,
    start: Annotated[str | None, typer.Option(help="Simulated start, ISO 8601; left out: now.")] = None,
    silent: Annotated[float, typer.Option(min=0, max=1, help="Share of readings that are not sent.")] = 0,
    repeated: Annotated[float, typer.Option(min=0, max=1, help="Share of readings that are sent twice.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Another seed, other homes.")] = 1,
    write_config: Annotated[
        Path | None, typer.Option(help="Write a gateway's configuration that fits.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Publish a simulated fleet's readings to a broker: believable homes, feeders, faults on demand."""
    _needs_simulators()
    from simulators.campaign import Campaign, shown_progress

    campaign = Campaign(
        url=url,
        households=households,
        speed=speed,
        slot=slot,
        slots=slots,
        start=start,
        silent=silent,
        repeated=repeated,
        seed=seed,
    )
    configure_logs(Level.WARNING)
    if write_config is not None:
        _write_config(campaign.config, write_config)

    async def publish() -> dict[str, Any]:
        with shown_progress(_err) as report:
            return await campaign.run(_stop_on_signals(), report)

    try:
        summary = _run_loop(publish())
    except (OSError, ValueError) as error:
        _fail(str(error))
    _print(summary) if as_json else _out.print(summary)


@app.command(epilog="Example: noiseless replay homes.csv --zone +10:00 --write-config homes.toml")
def replay(
    file: Annotated[
        Path, typer.Argument(help="CSV (.xz, .gz): a time and a column per home; or see --layout.")
    ],
    url: Annotated[str, typer.Option(help="The broker to publish to.")] = "mqtt://127.0.0.1:1883",
    topic: Annotated[str, typer.Option(help="Where to.")] = "meters/{household}/reading",
    quantity: Annotated[str, typer.Option(help="What to send: interval, power or register.")] = "interval",
    layout: Annotated[
        str | None,
        typer.Option(help="wide, long, sgsc50, citylearn17 or nilm_1min; left out: by the header."),
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="Of the file: Wh, kWh, W or kW; Wh unless its layout knows.")
    ] = None,
    interval: Annotated[
        str | None, typer.Option(help="The file's; left out: its most frequent step.")
    ] = None,
    zone: Annotated[
        str | None, typer.Option(help="Of times without offset: +10:00, Australia/Sydney.")
    ] = None,
    stamp: Annotated[str, typer.Option(help="Which end of an interval a time says: start or end.")] = "start",
    households: Annotated[
        int | None, typer.Option(min=1, help="The first so many homes; left out: all.")
    ] = None,
    begin: Annotated[str | None, typer.Option("--from", help="First interval's start, ISO 8601.")] = None,
    until: Annotated[str | None, typer.Option(help="Intervals start before this, ISO 8601.")] = None,
    now: Annotated[bool, typer.Option("--now", help="Move the recording, so that it starts now.")] = False,
    speed: Annotated[
        float, typer.Option(min=0, help="Recorded seconds per second; 0 as fast as it can.")
    ] = 0,
    lost: Annotated[float, typer.Option(min=0, max=1, help="Share of readings that are not sent.")] = 0,
    repeated: Annotated[float, typer.Option(min=0, max=1, help="Share of readings that are sent twice.")] = 0,
    reordered: Annotated[float, typer.Option(min=0, max=1, help="Share of readings that are sent late.")] = 0,
    within: Annotated[str, typer.Option(help="How late at most; second copies too.")] = "1h",
    skew: Annotated[str | None, typer.Option(help="How far a home's clock may be off.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another seed, other faults.")] = 1,
    slot: Annotated[
        str | None, typer.Option(help="Of the written configuration; left out: 30min, if intervals fill it.")
    ] = None,
    write_config: Annotated[
        Path | None, typer.Option(help="Write a gateway's configuration that fits.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Publish recorded data to a broker as readings: in the order of time, at any speed, faults on demand."""
    _needs_simulators()
    from simulators.replay import Replay

    configure_logs(Level.WARNING)
    try:
        played = Replay.parsed(
            file,
            url,
            topic=topic,
            quantity=quantity,
            layout=layout,
            unit=unit,
            interval=interval,
            zone=zone,
            stamp=stamp,
            households=households,
            begin=begin,
            until=until,
            now=now,
            speed=speed,
            lost=lost,
            repeated=repeated,
            reordered=reordered,
            within=within,
            skew=skew,
            seed=seed,
            slot=slot,
        )
        if write_config is not None:
            _write_config(played.config, write_config)

        async def publish() -> dict[str, Any]:
            return await played.run(_stop_on_signals(), progress_bar(_err))

        summary = _run_loop(publish())
    except (OSError, ValueError) as error:
        _fail(str(error))
    _print(summary) if as_json else _out.print(summary)


@app.command(epilog="Example: noiseless study membership --quick --out results")
def study(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A study, or: all. Any other word lists them.")],
    out: Annotated[Path, typer.Option(help="Folder for its figures, tables and findings.")],
    quick: Annotated[bool, typer.Option("--quick", help="The short form, for a first look.")] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            envvar="NOISELESS_DATA",
            help="Folder of recorded data sets; left out: the simulated fleet.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another seed, other games and other homes.")] = 1,
    as_json: Json = False,
) -> None:
    """Repeat the papers' experiments and ours: a figure, a table and findings per study."""
    from simulators.studies import NAMES, Settings, carry_out
    from simulators.studies.data import DATASETS, find

    if name not in {*NAMES, "all"}:
        raise typer.BadParameter(f"{name!r} is none of {', '.join(NAMES)}, all", param_hint="NAME")
    if data is not None and not data.is_dir():
        raise typer.BadParameter(f"{str(data)!r} is no folder", param_hint="--data")
    if data is not None and not any(find(data, dataset) for dataset in DATASETS):
        known = ", ".join(f"{dataset}*" for dataset in DATASETS)
        raise typer.BadParameter(f"{str(data)!r} holds none of {known}", param_hint="--data")
    _needs("matplotlib", "sklearn")
    reports = []
    chosen = NAMES if name == "all" else (name,)
    for number, one in enumerate(chosen, start=1):
        try:
            with _steps(f"study {one}, {number} of {len(chosen)}") as progress:
                reports.append(carry_out(one, Settings(data, quick, seed), out, progress))
        except (OSError, ValueError) as problem:
            _fail(f"study {one}: {problem}")
        if not as_json:
            _show_findings(reports[-1])
    if as_json:
        _print({"studies": reports})


@app.command(
    epilog="Example: noiseless attack membership recording.txt --known homes.csv --config noiseless.toml"
)
def attack(
    name: Annotated[str, typer.Argument(metavar="NAME", help="An attack. Any other word lists them.")],
    recording: Annotated[
        Path,
        typer.Argument(
            help="What a receiver recorded: topic, space, payload on each line, as by "
            "mosquitto_sub -F '%t %p' -t 'noiseless/#'.",
        ),
    ],
    known: Annotated[
        Path | None,
        typer.Option(
            help="What the attacker knows: CSV, a time and a column per home (or a home and its appliances)."
        ),
    ] = None,
    unit: Annotated[str, typer.Option(help="Of its numbers: Wh or kWh, or W for mean power.")] = "Wh",
    config: Annotated[
        Path | None, typer.Option(help="The gateway's configuration, to tell how often he is right.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Attack your own releases: what someone who receives them can still learn."""
    from simulators.attackers.attack import AttackError, Options
    from simulators.attackers.registry import ATTACKS, carry_out, members_of, show_learnt

    if name not in ATTACKS:
        raise typer.BadParameter(f"{name!r} is none of {', '.join(ATTACKS)}", param_hint="NAME")
    loaded = None if config is None else _loaded(config, as_json=as_json, read=partial(load, studies=True))
    members = {} if loaded is None else members_of(document_of(loaded))
    try:
        report = carry_out(name, recording, Options(known, unit, members))
    except (AttackError, OSError) as problem:
        _fail(f"attack {name}: {problem}")
    _print(report) if as_json else show_learnt(_out, report)


def _draw(made: Plan, path: Path) -> None:
    from gateway.planning import draw_plan

    try:
        draw_plan(made.candidates, made.chosen, made.title, path)
    except (OSError, ValueError) as error:
        _fail(f"--plot {path}: {error}")


def _write_config(config: Callable[[], str], path: Path) -> None:
    try:
        path.write_text(config(), encoding="utf-8")
    except (OSError, ValueError) as error:
        _fail(str(error))
    _err.print(Text(f"wrote {path}: run it with noiseless run {path}"))


def _needs_simulators() -> None:
    if find_spec("aiomqtt") is None or find_spec("iotcore") is None:
        _fail(
            "the simulators are not installed: pip install 'noiseless[simulate]' (in a clone: '.[simulate]')"
        )


_CALLED = {"matplotlib": "matplotlib", "sklearn": "scikit-learn"}


def _needs(*modules: str) -> None:
    missing = [_CALLED[module] for module in modules if find_spec(module) is None]
    if missing:
        _fail(f"{' and '.join(missing)} missing: pip install 'noiseless[studies]' (in a clone: '.[studies]')")


@contextmanager
def _steps(what: str) -> Iterator[Callable[[str, float], None]]:
    """Yield a report of the step that something is at and which share is done: a bar, or a line at the start."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=_err, transient=True, disable=not _err.is_terminal) as bar:
        task = bar.add_task(what, total=1)
        if not _err.is_terminal:
            _err.print(Text(what), soft_wrap=True)
        yield lambda step, share: bar.update(task, description=f"{what}: {step}", completed=share)


def _show_findings(report: dict[str, Any]) -> None:
    _out.print(Text(report["title"], "bold"))
    _out.print(Text(f"{report['paper']}, {report['form']} form, seed {report['seed']}: {report['source']}"))
    for finding in report["findings"]:
        _out.print(Text(f"- {finding}"))
    _out.print(Text(f"wrote {', '.join(report['files'])}"), soft_wrap=True)


def _loaded(path: Path, *, as_json: bool, read: Callable[[Path], Config] = load) -> Config:
    try:
        return read(path)
    except ConfigError as error:
        if as_json:
            _print({"ok": False, "faults": [fault._asdict() for fault in error.faults]})
        else:
            show_faults(_err, error.faults)
        raise typer.Exit(EXIT_CONFIG) from None


def _payload(path: Path) -> bytes:
    try:
        return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        _fail(f"--payload-file {path}: {error.strerror}")


def _stop_on_signals() -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


def _run_loop(work: Coroutine[Any, Any, _T]) -> _T:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def _print(report: dict[str, Any]) -> None:
    typer.echo(json.dumps(report, ensure_ascii=False, allow_nan=False, default=str))


def _fail(message: str) -> NoReturn:
    _err.print(Text.assemble(("error ", "red"), message), soft_wrap=True)
    raise typer.Exit(EXIT_FAILED)
