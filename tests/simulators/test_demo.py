"""The demo ends by itself with a summary that was counted from outside."""

import asyncio
import contextlib
import io
import json
import os
import pty
import re
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from gateways import NOISELESS, noiseless
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from gateway.clocks import WallClock
from simulators.demo import SLOT_MS, Demo, DemoClock
from simulators.view import DemoView, show_summary

KEYS = [
    "households",
    "groups",
    "slots_closed",
    "readings",
    "household_releases",
    "group_releases",
    "expected_household_releases",
    "lost",
    "doubled",
    "repeated",
    "ledger_bits",
    "released_bits",
    "capacity_bits_per_release",
    "seconds",
]


def played(**fields: Any) -> tuple[Demo, dict[str, Any]]:  # noqa: ANN401 - fields of Demo
    demo = Demo(**{"households": 30, "speed": 7_200, "seconds": 3, **fields})
    return demo, asyncio.run(demo.run(asyncio.Event()))


@pytest.fixture(scope="module")
def ended() -> Iterator[tuple[Demo, dict[str, Any]]]:
    return played()


def test_the_summary_has_the_keys_of_the_contract(ended: tuple[Demo, dict[str, Any]]) -> None:
    _, summary = ended
    assert list(summary) == KEYS
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_nothing_is_lost_or_doubled_and_every_bit_is_charged(ended: tuple[Demo, dict[str, Any]]) -> None:
    _, summary = ended
    assert summary["lost"] == summary["doubled"] == summary["repeated"] == 0
    assert summary["slots_closed"] == 12
    assert summary["household_releases"] == summary["expected_household_releases"] == 12 * 30
    assert summary["group_releases"] == 12 * summary["groups"]
    assert summary["ledger_bits"] == summary["released_bits"]
    assert summary["readings"] < 12 * 30


def test_the_capacity_is_the_bits_of_one_release(ended: tuple[Demo, dict[str, Any]]) -> None:
    """8 levels alone and a reach of at least 8 in a feeder, of 30 homes that are all alike."""
    demo, summary = ended
    assert summary["capacity_bits_per_release"] == summary["ledger_bits"] / summary["household_releases"]
    reach = json.loads(next(p for (topic, _), p in demo.witness.payloads.items() if "/group/" in topic))[
        "reach"
    ]
    joint = 8 + reach - 1
    prices = summary["capacity_bits_per_release"]
    assert (joint - 1) < 2**prices <= joint * 1.000_001


def test_releases_are_true_of_what_homes_used(ended: tuple[Demo, dict[str, Any]]) -> None:
    demo, _ = ended
    checked = 0
    for slot in sorted(demo.witness.slots()):
        start_ms = demo.fleet.schedule.start_ms + demo_slot(demo, slot) * SLOT_MS  # type: ignore[union-attr]
        energy = demo.homes.energy_wh(start_ms, SLOT_MS)
        silent, _ = demo.fleet.faults(start_ms)  # type: ignore[union-attr]
        for i, home in enumerate(demo.homes.ids):
            if silent[i]:
                continue
            release = json.loads(demo.witness.payloads[f"noiseless/household/{home}", slot])
            low, high = release["between_w"]
            used = float(f"{energy[i]:.1f}") * 2
            assert low is None or low <= used
            assert high is None or used <= high
            checked += 1
    assert checked > 300


def demo_slot(demo: Demo, slot: str) -> int:
    return sorted(demo.witness.slots()).index(slot)


def test_everybody_silent_is_released_and_charged_all_the_same() -> None:
    _, summary = played(households=3, seconds=1, silent=1.0)
    assert summary["readings"] == 0
    assert summary["lost"] == 0
    assert summary["household_releases"] == summary["expected_household_releases"] == 4 * 3
    assert summary["ledger_bits"] == summary["released_bits"] > 0


def test_a_stopped_demo_still_ends_with_a_summary() -> None:
    async def stopped() -> dict[str, Any]:
        demo, stop = Demo(households=5, speed=7_200), asyncio.Event()
        running = asyncio.create_task(demo.run(stop, lambda: None))
        async with asyncio.timeout(15):
            while len(demo.witness.slots()) < 2:  # noqa: ASYNC110 - the witness sets no event
                await asyncio.sleep(0.02)
        stop.set()
        return await asyncio.wait_for(running, 25)

    summary = asyncio.run(stopped())
    assert list(summary) == KEYS
    assert summary["doubled"] == 0
    assert summary["ledger_bits"] == pytest.approx(summary["released_bits"])


def test_the_command_prints_the_summary_as_json_and_nothing_else() -> None:
    options = ["--households", "10", "--speed", "7200", "--seconds", "1", "--headless", "--json"]
    ended = noiseless("demo", *options)
    assert ended.returncode == 0
    assert list(json.loads(ended.stdout)) == KEYS


def test_the_clock_stands_until_it_is_started_and_stops_at_its_end() -> None:
    clock = DemoClock(1_000, 1e6, 5_000)
    assert clock() == clock() == 1_000
    clock.start()
    time.sleep(0.02)
    assert clock() == 5_000


async def test_a_simulated_second_passes_as_often_as_the_speed_says() -> None:
    clock = DemoClock(0, 1_000, None)
    clock.start()
    began = time.monotonic()
    await WallClock(clock, 1_000).sleep_until(200_000)
    assert 0.15 < time.monotonic() - began < 1.0


def test_the_live_view_is_drawn_in_a_terminal_with_releases_and_budgets() -> None:
    owner, terminal = pty.openpty()
    command = [NOISELESS, "demo", "--households", "9", "--speed", "7200", "--seconds", "2"]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "150", "LINES": "50"}
    with subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment
    ) as process:
        os.close(terminal)
        shown = b"".join(chunks(owner))
        assert process.wait(20) == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode(errors="replace"))
    for words in ("9 homes on 1 feeders", "really used, W", "feeder-01", "budget left", "Ctrl-C ends"):
        assert words in text
    assert re.search(r"\d+ – \d+", text)
    assert re.search(r"lost\s+0\b", text)
    assert "Traceback" not in text


def chunks(owner: int) -> Iterator[bytes]:
    """Yield what a terminal shows until its program ends."""
    with contextlib.suppress(OSError):  # Linux: reading the end of a pseudo-terminal is EIO
        while chunk := os.read(owner, 65_536):
            yield chunk
    os.close(owner)


async def test_the_view_is_drawn_before_the_first_release_and_after_the_last() -> None:
    demo = Demo(households=3, speed=7_200, seconds=1)
    view, console = DemoView(demo), Console(file=io.StringIO(), record=True, width=150)
    console.print(view._draw())
    await demo.run(asyncio.Event())
    console.print(view._draw())
    text = console.export_text()
    assert "3 homes" in text
    assert "releases out" in text


async def test_the_metrics_address_that_the_view_shows_answers() -> None:
    demo, stop = Demo(households=3, speed=7_200), asyncio.Event()
    started = asyncio.Event()
    running = asyncio.create_task(demo.run(stop, started.set))
    await asyncio.wait_for(started.wait(), 15)
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.get(demo.metrics_url)
    stop.set()
    await asyncio.wait_for(running, 25)
    assert "noiseless_leakage_bits" in {family.name for family in text_string_to_metric_families(answer.text)}


def test_the_summary_is_drawn_with_all_its_numbers(ended: tuple[Demo, dict[str, Any]]) -> None:
    _, summary = ended
    console = Console(file=io.StringIO(), record=True, width=100)
    console.print(show_summary(summary))
    text = console.export_text()
    assert all(key.replace("_", " ") in text for key in KEYS)
    assert str(summary["household_releases"]) in text
