"""The demo's live view: what homes really used beside what was released, budgets and throughput."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from simulators.demo import SLOT_MS, Demo

_BARS = "▁▂▃▄▅▆▇█"
_HISTORY = 24
_SHOWN_HOMES = 8
_SHOWN_GROUPS = 3
_REFRESH_S = 0.25
_FULL_W = 4_000
_HOURS_PER_SLOT = SLOT_MS / 3_600_000


@dataclass
class _History:
    raw: deque[float] = field(default_factory=lambda: deque(maxlen=_HISTORY))
    released: deque[float] = field(default_factory=lambda: deque(maxlen=_HISTORY))


class DemoView:
    """Draws a running demo."""

    def __init__(self, demo: Demo) -> None:
        self._demo = demo
        step = max(1, demo.households // _SHOWN_HOMES)
        self._shown = list(range(0, demo.households, step))[:_SHOWN_HOMES]
        self._histories = {position: _History() for position in self._shown}
        self._slots_seen = 0
        self._readings_before = 0
        self._rates: deque[float] = deque([0.0], maxlen=int(2 / _REFRESH_S))

    async def show(self) -> None:
        """Draw until cancelled."""
        with Live(self._draw(), refresh_per_second=1 / _REFRESH_S, screen=False) as live:
            while True:
                await asyncio.sleep(_REFRESH_S)
                live.update(self._draw())

    def _draw(self) -> RenderableType:
        self._look()
        return Group(self._head(), self._homes_table(), self._groups_table(), self._foot())

    def _look(self) -> None:
        """Take note of the slots that have come since."""
        slots = sorted(self._demo.witness.slots())
        for slot in slots[self._slots_seen :]:
            start_ms = int(datetime.fromisoformat(slot).timestamp() * 1_000)
            energy = self._demo.homes.energy_wh(start_ms, SLOT_MS)
            for position, history in self._histories.items():
                release = self._demo.witness.latest.get(
                    self._topic("household", self._demo.homes.ids[position])
                )
                history.raw.append(float(energy[position]) / _HOURS_PER_SLOT)
                history.released.append(release["value_w"] if release else 0.0)
        self._slots_seen = len(slots)
        readings = self._demo.fleet.progress.readings if self._demo.fleet else 0
        self._rates.append((readings - self._readings_before) / _REFRESH_S)
        self._readings_before = readings

    def _head(self) -> Panel:
        demo, now = self._demo, datetime.fromtimestamp(self._demo.clock() / 1_000, UTC)
        readings = demo.fleet.progress.readings if demo.fleet else 0
        text = (
            f"[bold]{now:%A %H:%M} UTC[/]  at {demo.speed:g}× speed   {demo.households} homes on"
            f" {len(demo.groups)} feeders   {readings:,} readings in"
            f" ({sum(self._rates) / len(self._rates):,.0f}/s)"
            f"   {len(demo.witness.payloads):,} releases out"
        )
        return Panel(Text.from_markup(text), title="noiseless", border_style="cyan")

    def _homes_table(self) -> Table:
        table = _table("home", "really used, W", "", "released: between, W", "", "budget left")
        bounds = self._demo.gateway.bounds() if self._demo.gateway else None
        for position in self._shown:
            name, history = self._demo.homes.ids[position], self._histories[position]
            release = self._demo.witness.latest.get(self._topic("household", name))
            left = bounds.remaining[position] / bounds.budget[position] if bounds else 1.0
            raw = f"{history.raw[-1]:,.0f}" if history.raw else ""
            table.add_row(
                name,
                raw,
                Text(_sparkline(history.raw), "red"),
                _between(release),
                Text(_sparkline(history.released), "green"),
                _bar(left),
            )
        return table

    def _groups_table(self) -> Table:
        table = _table("feeder", "homes", "released: sum between, W", "values one home can choose among")
        for name in list(self._demo.groups)[:_SHOWN_GROUPS]:
            release = self._demo.witness.latest.get(self._topic("group", name))
            if release:
                reach = f"{release['reach']} of {release['levels']}"
                table.add_row(name, str(release["members"]), _between(release), reach)
        return table

    def _foot(self) -> Text:
        return Text(f"metrics {self._demo.metrics_url}   Ctrl-C ends", "dim")

    def _topic(self, kind: str, name: str) -> str:
        return f"{self._demo.witness.topic}/{kind}/{name}"


def show_summary(summary: dict[str, Any]) -> Table:
    """Return the summary as a table."""
    table = Table("counted from outside", "", show_header=True, box=None)
    for name, value in summary.items():
        table.add_row(name.replace("_", " "), f"{value:,.6g}" if isinstance(value, float) else f"{value:,}")
    return table


def _table(*headings: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading, justify="right" if heading.endswith("W") else "left", no_wrap=True)
    return table


def _sparkline(values: Sequence[float]) -> str:
    top = len(_BARS) - 1
    return "".join(_BARS[min(top, max(0, int(value / _FULL_W * len(_BARS))))] for value in values)


def _between(release: dict[str, Any] | None) -> str:
    if release is None:
        return ""
    low, high = release["between_w"]
    text = f"{low:,.0f} and more" if high is None else f"{low or 0:,.0f} – {high:,.0f}"
    return text + (" (spent)" if release.get("spent") else "")


def _bar(share: float, width: int = 10) -> Text:
    full = round(max(0.0, share) * width)
    return Text("█" * full + "░" * (width - full) + f" {share:4.0%}", "blue" if share > 0 else "yellow")
