"""The commands that prove a configuration, and plan one."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.checking import load
from gateway.cli.terminal import (
    EXIT_FAILED,
    ConfigPath,
    Json,
    app,
    console,
    errors,
    fail,
    loaded_config,
    needs,
    print_json,
)
from gateway.policy import document_of
from gateway.tables import progress_bar

if TYPE_CHECKING:
    from gateway.planning import Plan


@app.command(epilog="Example: noiseless certify noiseless.toml")
def certify(config: ConfigPath, as_json: Json = False) -> None:
    """Prove by counting that a configuration keeps its promise: distinct bytes against what is charged."""
    from gateway.audit import certificate_report, show_certificate
    from gateway.audit import certify as certified

    document = document_of(loaded_config(config, as_json=as_json, read=partial(load, studies=True)))
    try:
        with errors.status("counting") as status:
            certificate = certified(document, progress=lambda label: status.update(f"counting {label}"))
    except ValueError as error:
        fail(str(error))
    report = certificate_report(certificate)
    print_json(report) if as_json else show_certificate(console, report)
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
        needs("matplotlib")
    try:
        request = Request.parsed(
            profile, power_range, unit=unit, interval=interval, levels=levels, rounding=rounding, blind=blind
        )
        made = make_plan(
            request, rmse_w=error, bill_percent=bill, bits_per_day=bits, progress=progress_bar(errors)
        )
        if write is not None:
            write.write_text(made.codebook_file(), encoding="utf-8")
    except (PlanError, OSError, ValueError) as problem:
        fail(str(problem))
    if plot is not None:
        _draw(made, plot)
    print_json(made.report()) if as_json else show_plan(console, made.report(), write)


def _draw(made: Plan, path: Path) -> None:
    from gateway.planning import draw_plan

    try:
        draw_plan(made.candidates, made.chosen, made.title, path)
    except (OSError, ValueError) as error:
        fail(f"--plot {path}: {error}")
