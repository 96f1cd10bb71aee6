"""A campaign: a gateway at work while everything around it, and it itself, is killed, cut and slowed down."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import mqtt5
from brokers import Mosquitto
from faults.judging import Evidence, Ledger, Roll, Verdict, judge
from faults.relay import Relay
from faults.watching import Meters, Subscriber
from gateways import Gateway
from service.expecting import Grid

_KEPT = ("autosave_on_changes true", "autosave_interval 20")
_SETTLING_S = 120.0
_CONNECTING_S = 3.0
_FEWEST_SLOTS = 12
_BROKEN_OFF_S = 60.0


@dataclass(frozen=True)
class Plan:
    """One campaign.

    `weights` are the relative frequencies of faults, named as the methods of `Campaign` that inject them;
    `share` is the part of all kills that this campaign should have.
    """

    name: str
    weights: Mapping[str, int]
    share: float
    persistence: bool = False
    config_lines: tuple[str, ...] = ()
    households: int = 10
    pause: float = 0.08
    """Seconds between the slots of the meters."""
    apart: tuple[float, float] = (0.05, 0.9)
    """Seconds between faults, at least and at most."""
    delay: float = 0.0
    bytes_per_s: float = 0.0


PLANS = (
    Plan("gateway killed", {"kill_gateway": 1}, 0.5),
    Plan("broker killed, persistent", {"kill_broker": 3, "kill_gateway": 1}, 0.15, persistence=True),
    # Far enough apart for the gateway to be connected in between: who is not there gets nothing from this broker.
    Plan("broker killed, in memory", {"kill_broker": 2, "kill_gateway": 1}, 0.1, apart=(0.3, 2.5), pause=0.2),
    Plan("both killed", {"kill_both": 3, "kill_gateway": 1}, 0.12, persistence=True),
    Plan("network bad", {"cut": 3, "half_open": 2, "slow_down": 2, "kill_gateway": 4}, 0.04),
    Plan("session taken over", {"take_over": 2, "kill_gateway": 1}, 0.03),
    Plan("broker slow", {"kill_gateway": 1}, 0.03, delay=0.02, bytes_per_s=60_000, pause=0.2),
    Plan(
        "one message in flight",
        {"kill_gateway": 1},
        0.03,
        config_lines=("max_inflight_messages 1",),
        households=4,
        pause=0.8,
        apart=(0.4, 1.6),
    ),
)
_KILLS = {"kill_gateway": 1, "kill_broker": 1, "kill_both": 2}


@dataclass
class Outcome:
    """What was injected, how often, and what came out."""

    plan: Plan
    seed: int
    injected: Counter[str] = field(default_factory=Counter)
    ended_by_itself: int = 0
    seconds: float = 0.0
    verdict: Verdict = field(default_factory=Verdict)

    @property
    def kills(self) -> int:
        """Processes killed with -9."""
        return sum(times * _KILLS.get(fault, 0) for fault, times in self.injected.items())


class Campaign:
    """Runs one plan in `directory`; the seed decides the readings, the faults and their moments."""

    def __init__(self, plan: Plan, directory: Path, *, seed: int) -> None:
        self._plan = plan
        self._dice = random.Random(f"{plan.name} {seed}")
        self._roll = Roll.of(plan.households)
        self._grid = Grid()
        lines = [*plan.config_lines, *(_KEPT if plan.persistence else ())]
        self._broker = Mosquitto(directory / "mosquitto", config_lines=lines, persistence=plan.persistence)
        self._directory = directory
        self._seed = seed
        self._relay = Relay(self._broker.port)
        self._subscriber = Subscriber(
            self._broker.port, self._roll.prices, connections=lambda: self._relay.connections
        )
        self._meters = Meters(
            self._broker.port, self._grid, list(self._roll.levels), seed=seed, pause=plan.pause
        )
        self._complaints: list[str] = []
        self._slots = self._connections = 0
        self.outcome = Outcome(plan, seed)
        self._injected = self.outcome.injected

    async def run(
        self, kills: int, report: Callable[[int], None] = lambda _: None, *, faults: int = 0
    ) -> Outcome:
        """Inject `faults` and more until `kills` processes were killed, then let everything settle, and judge."""
        began = time.monotonic()
        async with AsyncExitStack() as parts:
            parts.enter_context(self._broker)
            await parts.enter_async_context(self._relay)
            url = f"mqtt://127.0.0.1:{self._relay.port}"
            tables = self._roll.tables()
            self._gateway = Gateway(self._directory / "gateway", url, tables.pop("household"), **tables)
            parts.callback(self._gateway.end)
            self._ledger = Ledger(self._gateway.ledger)
            subscribing = asyncio.create_task(self._subscriber.run())
            parts.callback(subscribing.cancel)
            await self._subscriber.connected.wait()
            await asyncio.to_thread(self._gateway.start)
            self._relay.delay, self._relay.bytes_per_s = self._plan.delay, self._plan.bytes_per_s
            publishing = asyncio.create_task(self._meters.run())
            parts.callback(publishing.cancel)
            await self._inject(kills, faults, report)
            await self._settle(publishing)
            self.outcome.verdict = self._judge()
        self.outcome.seconds = time.monotonic() - began
        return self.outcome

    async def _inject(self, kills: int, faults: int, report: Callable[[int], None]) -> None:
        names, weights = list(self._plan.weights), list(self._plan.weights.values())
        while self.outcome.kills < kills or self._injected.total() < faults:
            await asyncio.sleep(self._dice.uniform(*self._plan.apart))
            fault = self._dice.choices(names, weights)[0]
            await getattr(self, fault)()
            self._injected[fault] += 1
            await self._audit()
            report(self.outcome.kills)

    async def kill_gateway(self) -> None:
        """Kill -9 the gateway, however far it has come, and start it again."""
        await self._at_work_or_not()
        self._gateway.kill()
        self._audit_charges()
        self._spawn()

    async def kill_broker(self) -> None:
        """Kill -9 the broker and start it again."""
        self._lose_broker()
        await self._restore_broker()

    async def kill_both(self) -> None:
        """Kill -9 both at once; the broker is back first."""
        await self._at_work_or_not()
        self._gateway.kill()
        self._lose_broker()
        self._audit_charges()
        await self._restore_broker()
        self._spawn()

    async def cut(self) -> None:
        """Break the gateway's connection."""
        self._relay.cut()

    async def half_open(self) -> None:
        """Let nothing through for a while; then either it arrives after all, or the connection breaks."""
        self._relay.silence()
        await asyncio.sleep(self._dice.uniform(0.1, 1.5))
        if self._dice.random() < 0.5:
            self._relay.cut()
        self._relay.resume()

    async def slow_down(self) -> None:
        """Delay everything for a while."""
        self._relay.delay = self._dice.uniform(0.01, 0.3)
        await asyncio.sleep(self._dice.uniform(0.2, 1.0))
        self._relay.delay = self._plan.delay

    async def take_over(self) -> None:
        """Connect with the gateway's client id; take what comes and acknowledge nothing."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._broker.port)
        connect = mqtt5.ConnectPacket("noiseless", clean_start=False, session_expiry_interval=86_400)
        writer.write(connect.write())
        await reader.read(1)
        await asyncio.sleep(self._dice.uniform(0.0, 0.3))
        writer.transport.abort()

    def _lose_broker(self) -> None:
        # Who connects before the judge has subscribed again could publish to nobody.
        self._relay.open = False
        self._subscriber.connected.clear()
        self._broker.kill()

    async def _restore_broker(self) -> None:
        await asyncio.to_thread(self._broker.start)
        await self._subscriber.connected.wait()
        self._relay.open = True

    async def _at_work_or_not(self) -> None:
        """Half of the time, wait until the gateway is connected and busy with what it missed."""
        patience = time.monotonic() + _CONNECTING_S
        if self._dice.random() < 0.5:
            while self._relay.connections == self._connections and time.monotonic() < patience:  # noqa: ASYNC110 - or a timeout
                await asyncio.sleep(0.01)
            await asyncio.sleep(self._dice.uniform(0.0, 0.3))
        await self._revive()

    def _spawn(self) -> None:
        self._connections = self._relay.connections
        self._gateway.spawn()

    async def _revive(self) -> None:
        """Start a gateway again that has ended by itself, as a service manager would; only a thief may do that."""
        process = self._gateway.process
        if process is None or process.poll() is None:
            return
        self.outcome.ended_by_itself += 1
        if not self._injected["take_over"]:
            self._complaints.append(f"the gateway ended with {process.returncode}")
        self._gateway.wait()
        self._spawn()

    async def _audit(self) -> None:
        await self._revive()
        self._audit_charges()

    def _audit_charges(self) -> None:
        released = self._subscriber.released_microbits
        if released > (charged := self._ledger.charged_microbits):
            self._complaints.append(f"{released} micro-bits were released and only {charged} charged")

    async def _settle(self, publishing: asyncio.Task[None]) -> None:
        """Let the gateway catch up with the meters, and stop it as an operator would."""
        async with asyncio.timeout(_SETTLING_S):
            self._relay.delay = self._relay.bytes_per_s = 0.0
            while not await asyncio.to_thread(lambda: self._gateway.ready):
                await self._revive()
                await asyncio.sleep(0.05)
            # A slot closes when readings are past its grace; one more of them closes the last.
            self._meters.until = max(self._meters.slots + 3, _FEWEST_SLOTS)
            await publishing
            self._slots = self._meters.slots - 1
            await self._released()
        code = await asyncio.to_thread(self._gateway.stop)
        if code != 0:
            self._complaints.append(f"the gateway stopped with {code}")

    async def _released(self) -> None:
        """Wait until all that is due was seen, or nothing has come for long although nothing waits."""
        last_slot = self._grid.start(self._slots - 1)
        due, patience = self._slots * len(self._roll.topics), time.monotonic() + _BROKEN_OFF_S
        while len(self._subscriber.first) < due and time.monotonic() < patience:
            await asyncio.sleep(0.05)
            closed = self._grid.start(0) if not self._subscriber.first else max(self._subscriber.first)[1]
            if self._injected["kill_broker"] + self._injected["kill_both"] and closed >= last_slot:
                await asyncio.sleep(0.5)  # what is missing now was lost with the broker
                if not self._ledger.waiting():
                    return

    def _judge(self) -> Verdict:
        evidence = Evidence(
            self._roll,
            self._grid,
            self._seed,
            self._slots,
            self._subscriber,
            self._relay.tap,
            broker_killed=bool(self._injected["kill_broker"] + self._injected["kill_both"]),
        )
        verdict = judge(evidence, self._ledger)
        verdict.faults += self._complaints
        return verdict
