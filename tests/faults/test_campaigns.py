"""Killed, cut, slowed and robbed of its session, the gateway loses, doubles and under-counts nothing."""

import math
from pathlib import Path

import pytest
from faults.campaign import PLANS, Campaign, Plan

KILLS = 62


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name.replace(" ", "-"))
async def test_every_release_comes_once_charged_and_right_whatever_is_killed(
    plan: Plan, tmp_path: Path
) -> None:
    """As A1, A4, A6, A7, A10 and B4: lost over restarts, acknowledged too early, re-sent differently."""
    outcome = await Campaign(plan, tmp_path, seed=7).run(math.ceil(plan.share * KILLS))
    assert outcome.verdict.faults == []
    assert outcome.verdict.slots > 0
    if not {"kill_broker", "kill_both"} & outcome.injected.keys():
        assert outcome.verdict.substituted == 0


async def test_undisturbed_nothing_is_repeated(tmp_path: Path) -> None:
    outcome = await Campaign(Plan("calm", {}, 0), tmp_path, seed=7).run(0)
    assert outcome.verdict.faults == []
    assert outcome.verdict.repeats == 0


async def test_no_restart_is_needed_to_get_over_a_bad_network(tmp_path: Path) -> None:
    """A release that was in flight when the connection broke must not wait for the next start."""
    plan = Plan("network only", {"cut": 1, "half_open": 2}, 0, apart=(0.05, 0.2))
    outcome = await Campaign(plan, tmp_path, seed=7).run(0, faults=12)
    assert outcome.verdict.faults == []
    assert outcome.verdict.substituted == 0
