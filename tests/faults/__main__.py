"""The long form: `deploy/faults --kills 1000 --seed 1 --out report.json`; exits 1 if the gateway failed."""

# ruff: noqa: T201 - a command prints

import argparse
import asyncio
import dataclasses
import json
import logging
import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from faults.campaign import PLANS, Campaign, Outcome, Plan


def main() -> int:
    """Run all plans one after another, print the table, write the report."""
    options = _options()
    # Paho and asyncio complain about connections that this campaign breaks on purpose.
    logging.disable(logging.CRITICAL)
    outcomes = []
    directory = Path(tempfile.mkdtemp(prefix="noiseless-faults-"))
    for number, plan in enumerate(PLANS):
        kills = math.ceil(plan.share * options.kills)
        outcomes.append(asyncio.run(_run(plan, directory / str(number), options.seed, kills)))
        options.out.write_text(json.dumps([_report(outcome) for outcome in outcomes], indent=1) + "\n")
    print(table(outcomes))
    failed = [fault for outcome in outcomes for fault in outcome.verdict.faults]
    print(f"{sum(o.kills for o in outcomes)} kills, {len(failed)} faults; logs are in {directory}")
    return 1 if failed else 0


def table(outcomes: Sequence[Outcome]) -> str:
    """Return what was injected and what came out, in Markdown."""
    heads = (
        "injected",
        "kill −9",
        "slots",
        "releases",
        "lost",
        "repeats",
        "readings",
        "broker lost",
        "wrong",
    )
    lines = [heads, ("---",) * len(heads)]
    for outcome in outcomes:
        verdict = outcome.verdict
        lost = f"{verdict.readings_lost_by_broker} / {verdict.releases_lost_by_broker}"
        injected = ", ".join(f"{times} × {name}" for name, times in sorted(outcome.injected.items()))
        missing = sum(fault.endswith("is lost") for fault in verdict.faults)
        counts = (outcome.kills, verdict.slots, verdict.releases, missing, verdict.repeats, verdict.readings)
        lines.append((f"{outcome.plan.name}: {injected}", *map(str, counts), lost, str(len(verdict.faults))))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="deploy/faults", description=__doc__)
    parser.add_argument("--kills", type=int, default=1_000, help="processes to kill with -9, in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("report.json"), help="where the report goes")
    return parser.parse_args()


async def _run(plan: Plan, directory: Path, seed: int, kills: int) -> Outcome:
    def report(done: int) -> None:
        print(f"\r{plan.name}: {done} of {kills} kills ", end="", file=sys.stderr, flush=True)

    campaign = Campaign(plan, directory, seed=seed)
    try:
        await campaign.run(kills, report)
    except (AssertionError, TimeoutError) as broken:  # the other plans are still worth running
        campaign.outcome.verdict.faults.append(f"{type(broken).__name__}: {broken}")
    outcome = campaign.outcome
    print(f"\r{plan.name}: {outcome.kills} kills in {outcome.seconds:.0f} s", file=sys.stderr)
    return outcome


def _report(outcome: Outcome) -> dict[str, object]:
    return {
        "plan": outcome.plan.name,
        "seed": outcome.seed,
        "injected": dict(outcome.injected),
        "kills": outcome.kills,
        "seconds": round(outcome.seconds, 1),
        "ended_by_itself": outcome.ended_by_itself,
        "verdict": dataclasses.asdict(outcome.verdict),
    }


if __name__ == "__main__":
    sys.exit(main())
