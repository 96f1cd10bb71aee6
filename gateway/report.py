"""What the command line shows: faults, the privacy table, budgets. Data first, tables drawn from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.certificates import seconds_left
from gateway.classes import GroupClass, HouseholdClass, group_classes, household_classes
from gateway.config import Config, Credentials
from gateway.ledger import Statement
from gateway.metering import metering_of
from gateway.policy import document_of
from gateway.privacy import MICROBITS_PER_BIT, Codebook, IntArray
from gateway.quantities import written_duration
from gateway.rulebook import Fault
from gateway.source_table import SourceTable
from gateway.tables import cell, table

_MS_PER_DAY = 86_400_000
_S_PER_DAY = 86_400
_SOON_DAYS = 14
_W = 1_000
_SPREAD: dict[str, Callable[[np.ndarray[Any, Any]], Any]] = {
    "min": np.min,
    "median": np.median,
    "max": np.max,
}


def privacy_table(config: Config) -> dict[str, Any]:
    """Return what a configuration promises, per class of households and per group."""
    document = document_of(config)
    policy = document.compile()
    per_day = _MS_PER_DAY / document.slot_ms
    report: dict[str, Any] = {
        "ok": True,
        "slot": written_duration(document.slot_ms),
        "window": written_duration(document.window_ms),
        "slots_per_window": document.window_ms // document.slot_ms,
        "households": [_household_row(one, per_day) for one in household_classes(document, policy)],
        "groups": [_group_row(one, per_day) for one in group_classes(document, policy)],
        "sources": [_source_row(source) for source in config.source],
        "warnings": list(warnings(config)),
    }
    if document.pseudonyms is not None:
        report["pseudonyms"] = written_duration(document.pseudonyms.period_ms)
    return report


def warnings(config: Config) -> Iterator[str]:
    """Yield what is allowed, and what its user should know."""
    document = document_of(config)
    policy = document.compile()
    if config.slots.clock == "event":
        yield "slots.clock: 'event' closes slots by who has reported; use it for replay and simulation only"
    for one in household_classes(document, policy):
        if one.releases_per_window == 0:
            yield f"budget.bits: pays for no release of the {len(one.positions)} households with {one.label}"
    metering = metering_of(config)
    heard = {place for places in metering.served for place in places}
    if unheard := [i for i in range(len(metering.meters)) if i not in heard]:
        owner = config.household[metering.meters.household[unheard[0]]].id
        yield f"source: none speaks for {len(unheard)} meters, the first is {owner}'s"
    for i, source in enumerate(config.source):
        if source.quantity == "register" and "limit" not in source.model_fields_set:
            yield (
                f'source.{i}.limit: up to 1 MW is believed after a gap or a jump: write the fuse\'s, as "17 kW"'
            )
    if not config.http.listen.startswith(("127.", "localhost:", "[::1]")):
        yield f"http.listen: {config.http.listen} is open to the network, without encryption"
    yield from _expiring("broker", config.broker)
    yield from _expiring("output", config.output)
    yield from _about_brokers(config)


def _about_brokers(config: Config) -> Iterator[str]:
    if config.broker.url != "embedded":
        yield (
            "broker: raise mosquitto's max_queued_messages, by default it drops silently past 1,000"
            " (deploy/mosquitto.conf)"
        )
        if not config.separate:
            yield (
                "broker: receivers of releases share it and must not read raw topics: set an ACL"
                " (deploy/mosquitto.acl), or give them a broker of their own, output.url"
            )


def _expiring(table: str, given: Credentials) -> Iterator[str]:
    for field in ("cert_file", "ca_file"):
        path = getattr(given, field)
        if path is not None and (days := seconds_left(path) / _S_PER_DAY) < _SOON_DAYS:
            when = f"expires in {days:.0f} days" if days > 0 else "has expired"
            yield f"{table}.{field}: {when}: renew {path}; the next connect uses it"


def budget_report(statement: Statement, household: str | None = None) -> dict[str, Any]:
    """Return the ledger's budgets: of one household, or their distribution.

    Raises:
        KeyError: no such household was ever on the roll.

    """
    if household is not None:
        return _one_budget(statement, household)
    document, policy = statement.document, statement.document.compile()
    homes = np.array([statement.households[name] for name in document.households])
    spent, total = _spent(statement)[homes], statement.balances.households[2][homes]
    return {
        "window_start_ms": _window(statement),
        "ledger_bits": int(statement.balances.households[2].sum()) / MICROBITS_PER_BIT,
        "classes": [
            {
                "class": one.label,
                "households": len(one.positions),
                "budget_bits": _bits(one.budget),
                "spent_bits": _spread(spent[one.positions] / MICROBITS_PER_BIT),
                "remaining_bits": _spread((one.budget - spent[one.positions]) / MICROBITS_PER_BIT),
                "releases_remaining": _spread(_releases(one.budget - spent[one.positions], one.price)),
                "capacity_bits": _spread(total[one.positions] / MICROBITS_PER_BIT),
            }
            for one in household_classes(document, policy)
        ],
        "groups": [
            {"group": name, "capacity_bits": _bits(int(statement.balances.groups[2][place]))}
            for name, place in statement.groups.items()
            if place < statement.balances.groups.shape[1]
        ],
    }


def show_faults(console: Console, faults: Sequence[Fault]) -> None:
    """Print every fault with its field, value and remedy."""
    drawn = Table(
        "field", "value", "problem", "what to do", title=f"{len(faults)} to correct", show_lines=True
    )
    for fault in faults:
        shown = "" if fault.value is None else str(fault.value)
        drawn.add_row(*map(Text, (fault.field, shown, fault.problem, fault.remedy)))
    console.print(drawn)


def show_privacy(console: Console, report: dict[str, Any]) -> None:
    """Print the privacy table."""
    title = f"What one release says, per slot of {report['slot']}; budget window {report['window']}"
    headings = ("households", "range W", "k", "ε", "joint k", "cell W", "worst error W")
    drawn = table(title, *headings, "bits/day", "budget bits", "releases until spent")
    for row in report["households"]:
        drawn.add_row(*[cell(value) for name, value in row.items() if name != "class"])
    console.print(drawn)
    if report["groups"]:
        _show_groups(console, report["groups"])
    if any("preset" in row for row in report["sources"]):
        _show_sources(console, report["sources"])
    if "pseudonyms" in report:
        console.print(f"Topics name households by pseudonyms, new ones every {report['pseudonyms']}.")
    for warning in report["warnings"]:
        console.print(Text.assemble(("note ", "yellow"), warning), soft_wrap=True)


def show_budget(console: Console, report: dict[str, Any]) -> None:
    """Print budgets."""
    if "household" in report:
        drawn = Table("", "", show_header=False)
        for name, value in report.items():
            drawn.add_row(name.replace("_", " "), cell(value))
        console.print(drawn)
        return
    title = (
        f"Budgets in this window, in bits (least – median – most); {report['ledger_bits']:.3f} charged in all"
    )
    drawn = table(title, "class", "households", "budget", "spent", "releases left", "capacity used")
    for row in report["classes"]:
        spreads = (row["spent_bits"], row["releases_remaining"], row["capacity_bits"])
        drawn.add_row(row["class"], str(row["households"]), cell(row["budget_bits"]), *map(_range, spreads))
    console.print(drawn)


def _household_row(one: HouseholdClass, per_day: float) -> dict[str, Any]:
    return {
        "class": one.label,
        "households": len(one.positions),
        **_codebook_columns(one.codebook),
        "epsilon": round(float(np.log2(one.codebook.levels)), 6),
        "joint_levels": one.levels,
        **_width_columns(one.codebook),
        "bits_per_day": round(_bits(one.price) * per_day, 6),
        "budget_bits": _bits(one.budget),
        "releases_until_spent": one.releases_per_window,
    }


def _group_row(one: GroupClass, per_day: float) -> dict[str, Any]:
    # A mean is the sum over the members' number, whatever their weights.
    divisor = len(one.group.members) if one.group.query == "mean" else 1
    return {
        "group": one.group.name,
        "members": len(one.group.members),
        "query": one.group.query,
        **_codebook_columns(one.codebook, divisor),
        "reach": one.reach,
        "epsilon": _bits(one.price),
        **_width_columns(one.codebook, divisor),
        "bits_per_day": round(_bits(one.price) * per_day, 6),
    }


def _codebook_columns(codebook: Codebook, divisor: int = 1) -> dict[str, Any]:
    ends = (codebook.lower, codebook.upper)
    return {"range_w": [end / _W / divisor for end in ends], "levels": codebook.levels}


def _source_row(source: SourceTable) -> dict[str, Any]:
    """Return a source as it is used: what its table says, and what its preset adds."""
    return source.model_dump(mode="json", exclude_unset=True)


def _show_sources(console: Console, rows: Sequence[dict[str, Any]]) -> None:
    drawn = table("Sources: how messages become readings", "source", "as it is used")
    drawn.columns[-1].justify = "left"
    for i, row in enumerate(rows):
        fields = (f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in row.items())
        drawn.add_row(str(i), "\n".join(fields))
    console.print(drawn)


def _width_columns(codebook: Codebook, divisor: int = 1) -> dict[str, Any]:
    return {
        "cell_w": codebook.widest_cell() / _W / divisor,
        "worst_error_w": codebook.worst_error() / _W / divisor,
    }


def _show_groups(console: Console, rows: Sequence[dict[str, Any]]) -> None:
    title = "Groups: one member moves the release among `reach` values, and is charged for that"
    headings = ("range W", "levels", "reach", "ε", "cell W", "worst error W", "bits/day")
    drawn = table(title, "group", "members", "query", *headings)
    for row in rows:
        drawn.add_row(*map(cell, row.values()))
    console.print(drawn)


def _one_budget(statement: Statement, household: str) -> dict[str, Any]:
    place = statement.households[household]
    document, policy = statement.document, statement.document.compile()
    spent, total = int(_spent(statement)[place]), int(statement.balances.households[2][place])
    report: dict[str, Any] = {
        "household": household,
        "spent_bits": _bits(spent),
        "capacity_bits": _bits(total),
    }
    if household in document.households:
        position = document.households.index(household)
        budget, price = int(policy.budget[position]), int(policy.price[position])
        report |= {
            "budget_bits": _bits(budget),
            "remaining_bits": _bits(budget - spent),
            "bits_per_release": _bits(price),
            "releases_remaining": max(0, budget - spent) // price if price else None,
        }
    return report


def _window(statement: Statement) -> int | None:
    return None if statement.next_ms is None else statement.document.window_of(statement.next_ms)


def _spent(statement: Statement) -> IntArray:
    window, spent, *_ = statement.balances.households
    return np.where(window == _window(statement), spent, 0)


def _releases(remaining: IntArray, price: int) -> IntArray:
    return np.maximum(remaining, 0) // max(price, 1)


def _spread(values: np.ndarray[Any, Any]) -> dict[str, float]:
    return {name: float(measure(values)) for name, measure in _SPREAD.items()}


def _range(spread: dict[str, float]) -> str:
    distinct = dict.fromkeys(f"{value:,.8g}" for value in spread.values())
    return " – ".join(distinct)


def _bits(microbits: int) -> float:
    return microbits / MICROBITS_PER_BIT
