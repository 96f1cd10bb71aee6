"""The commands that attack releases, and repeat the papers' experiments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from gateway.checking import load
from gateway.cli.terminal import Json, app, console, errors, fail, loaded_config, needs, print_json
from gateway.policy import document_of
from gateway.roll import pseudonyms_of

if TYPE_CHECKING:
    from gateway.config import Config
    from simulators.attackers.attack import Attack


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
    needs("matplotlib", "sklearn")
    reports, failed = [], []
    chosen = NAMES if name == "all" else (name,)
    for number, one in enumerate(chosen, start=1):
        try:
            with _steps(f"study {one}, {number} of {len(chosen)}") as progress:
                reports.append(carry_out(one, Settings(data, quick, seed), out, progress))
        except (OSError, ValueError) as problem:
            # One damaged data set does not keep the other studies from running.
            failed.append(f"study {one}: {problem}")
            continue
        if not as_json:
            _show_findings(reports[-1])
    if as_json and reports:
        print_json({"studies": reports})
    if failed:
        fail("; ".join(failed))


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
            help="What the attacker knows: CSV, a time and a column per home (or a home and its appliances).",
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(help="Of its numbers: Wh or kWh, or W for mean power.", show_default="Wh"),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="The gateway's configuration, to tell how often he is right.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Attack your own releases: what someone who receives them can still learn."""
    from simulators.attackers.attack import AttackError, Options
    from simulators.attackers.registry import ATTACKS, carry_out, show_learnt

    if name not in ATTACKS:
        raise typer.BadParameter(f"{name!r} is none of {', '.join(ATTACKS)}", param_hint="NAME")
    _refuse_unused(ATTACKS[name], known=known, unit=unit, config=config)
    for path, hint in ((recording, "RECORDING"), (known, "--known")):
        if path is not None and (not path.exists() or path.is_dir()):
            raise typer.BadParameter(f"{str(path)!r}: no such file", param_hint=hint)
    loaded = (
        None if config is None else loaded_config(config, as_json=as_json, read=partial(load, studies=True))
    )
    truth = {} if loaded is None else _truth(loaded)
    try:
        report = carry_out(name, recording, Options(known, unit or "Wh", **truth))
    except (AttackError, OSError) as problem:
        fail(f"attack {name}: {problem}")
    print_json(report) if as_json else show_learnt(console, report)


def _refuse_unused(chosen: Attack, **given: object) -> None:
    """Refuse, as usage, an option that the attack does not look at, and a unit of nothing or of no kind."""
    from simulators.attackers.known import UNITS

    for option in (option for option, value in given.items() if value is not None):
        if option not in chosen.uses:
            raise typer.BadParameter(f"{chosen.name} does not use it", param_hint=f"--{option}")
    if given["unit"] is None:
        return
    if given["unit"] not in UNITS:
        raise typer.BadParameter(f"{given['unit']!r} is none of {', '.join(UNITS)}", param_hint="--unit")
    if given["known"] is None:
        raise typer.BadParameter("it is of the numbers of --known, which is not given", param_hint="--unit")


def _truth(config: Config) -> dict[str, Any]:
    """Return what tells how often an attacker is right: the members of groups, and who is behind a topic when."""
    from simulators.attackers.registry import members_of

    own = {household.id: household.id for household in config.household}
    # Topics begin at few times: those of one period with the same slot.
    homes_at = cache(lambda time_ms: pseudonyms_of(config, time_ms) or own)
    return {"members": members_of(document_of(config)), "homes_at": homes_at}


@contextmanager
def _steps(what: str) -> Iterator[Callable[[str, float], None]]:
    """Yield a report of the step that something is at and which share is done: a bar, or a line at the start."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task(what, total=1)
        if not errors.is_terminal:
            errors.print(Text(what), soft_wrap=True)
        yield lambda step, share: bar.update(task, description=f"{what}: {step}", completed=share)


def _show_findings(report: dict[str, Any]) -> None:
    console.print(Text(report["title"], "bold"))
    console.print(
        Text(f"{report['paper']}, {report['form']} form, seed {report['seed']}: {report['source']}")
    )
    for finding in report["findings"]:
        console.print(Text(f"- {finding}"))
    console.print(Text(f"wrote {', '.join(report['files'])}"), soft_wrap=True)
