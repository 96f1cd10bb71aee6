"""The commands that simulate meters, or replay what real ones said."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from gateway.cli.terminal import (
    Json,
    app,
    console,
    errors,
    fail,
    needs_simulators,
    print_json,
    run_loop,
    stop_on_signals,
)
from gateway.tables import progress_bar
from gateway.telemetry import Level, configure_logs


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
    needs_simulators()
    from simulators.demo import Demo
    from simulators.view import DemoView, show_summary

    configure_logs(Level.WARNING)
    run_for = 30.0 if headless and seconds is None else seconds
    scene = Demo(households=households, speed=speed, seconds=run_for, seed=seed)

    async def play() -> dict[str, Any]:
        showing = None if headless else asyncio.create_task(DemoView(scene).show())
        try:
            return await scene.run(stop_on_signals())
        finally:
            if showing is not None:
                showing.cancel()

    summary = run_loop(play())
    print_json(summary) if as_json else console.print(show_summary(summary))
    if summary["lost"] or summary["doubled"]:
        fail("releases were lost or doubled: see the summary")


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
    needs_simulators()
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
        with shown_progress(errors) as report:
            return await campaign.run(stop_on_signals(), report)

    _publish(publish, as_json=as_json)


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
    needs_simulators()
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
    except (OSError, ValueError) as error:
        fail(str(error))
    if write_config is not None:
        _write_config(played.config, write_config)

    async def publish() -> dict[str, Any]:
        return await played.run(stop_on_signals(), progress_bar(errors))

    _publish(publish, as_json=as_json)


def _publish(publish: Callable[[], Coroutine[Any, Any, dict[str, Any]]], *, as_json: bool) -> None:
    """Publish until done or stopped, and print the summary."""
    try:
        summary = run_loop(publish())
    except (OSError, ValueError) as error:
        fail(str(error))
    print_json(summary) if as_json else console.print(summary)


def _write_config(config: Callable[[], str], path: Path) -> None:
    try:
        path.write_text(config(), encoding="utf-8")
    except (OSError, ValueError) as error:
        fail(str(error))
    errors.print(Text(f"wrote {path}: run it with noiseless run {path}"))
