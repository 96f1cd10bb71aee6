"""The real `noiseless` command as a process of the test's own: configured, started, stopped, killed."""

import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Self

import httpx
from prometheus_client.parser import text_string_to_metric_families

NOISELESS = str(Path(sys.executable).with_name("noiseless"))
TOKEN = "a-token-for-the-operator"
PATIENCE = 15.0
"""Seconds after which what should have happened has not."""

Table = Mapping[str, object]
Tables = Table | Sequence[Table]


def eventually(what: str, happened: Callable[[], bool], patience: float = PATIENCE) -> None:
    """Wait until `happened()`; fail, naming `what`, when it does not."""
    deadline = time.monotonic() + patience
    while not happened():
        assert time.monotonic() < deadline, f"not within {patience} s: {what}"
        time.sleep(0.02)


def steady_port() -> int:
    """Return a free loopback port that no outgoing connection can take while its owner is down."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.SystemRandom().randrange(10_240, first)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def roll(*households: str, **fields: object) -> list[Table]:
    """Return [[household]] tables that share their fields."""
    return [{"id": household, **fields} for household in households]


def toml(tables: Mapping[str, Tables]) -> str:
    """Return a configuration as TOML: tables, and lists of tables."""
    parts = []
    for name, table in tables.items():
        one_table = isinstance(table, Mapping)
        for one in [table] if one_table else table:
            lines = [f"{key} = {_inline(value)}" for key, value in one.items()]
            parts.append("\n".join([f"[{name}]" if one_table else f"[[{name}]]", *lines]))
    return "\n\n".join(parts) + "\n"


def _inline(value: object) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_inline(one)}" for key, one in value.items()) + " }"
    return json.dumps(value)


class Gateway:
    """A gateway with its folder: configuration, ledger, log.

    Its slots are minutes of event time, unless `tables` say otherwise: each is laid over the default table
    of its name. The process may be started again after it was stopped or killed.
    """

    def __init__(self, directory: Path, url: str, household: Sequence[Table], **tables: Tables) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.config = directory / "noiseless.toml"
        self.ledger = directory / "noiseless.db"
        self.log = directory / "log"
        self.port = steady_port()
        self.process: subprocess.Popen[bytes] | None = None
        self._http = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", trust_env=False, timeout=5.0)
        (directory / "token").write_text(TOKEN + "\n")
        self._tables: dict[str, Tables] = {
            "broker": {"url": url},
            "slots": {"length": "1min", "grace": "1s", "clock": "event"},
            "budget": {"window": "1h"},
            "source": [
                {
                    "topic": "meters/{household}/reading",
                    "value": "/energy_wh",
                    "unit": "Wh",
                    "time": {"at": "/ts"},
                }
            ],
            "ledger": {"commit": "100ms"},
            "http": {"listen": f"127.0.0.1:{self.port}", "token_file": "token"},
        }
        self.configure(household=list(household), **tables)

    def configure(self, **tables: Tables) -> None:
        """Change the configuration for the next start."""
        for name, table in tables.items():
            under = self._tables.get(name)
            both = isinstance(under, Mapping) and isinstance(table, Mapping)
            self._tables[name] = {**under, **table} if both else table
        self.config.write_text(toml(self._tables))

    def spawn(self) -> Self:
        """Start the process and do not wait."""
        command = [NOISELESS, "run", str(self.config), "--log-level", "debug"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        return self

    def start(self) -> Self:
        """Start the process and wait until it is ready."""
        self.spawn()
        eventually("the gateway is ready", self._ready_or_dead)
        return self

    def wait(self, patience: float = PATIENCE) -> int:
        """Return the exit code, once the process has ended."""
        assert self.process is not None
        code = self.process.wait(patience)
        self.process = None
        return code

    def stop(self) -> int:
        """End it as a service manager would and return its exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """End it as a power cut would."""
        self.signal(signal.SIGKILL)
        assert self.wait() == -signal.SIGKILL, "it had ended by itself"

    def signal(self, number: int) -> None:
        """Send the process a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def end(self) -> None:
        """Leave no process behind."""
        self._http.close()
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def status(self, path: str) -> int:
        """Return the HTTP status of a path; 0 while nobody listens."""
        try:
            return self._http.get(path).status_code
        except httpx.TransportError:
            return 0

    @property
    def ready(self) -> bool:
        """Whether it says that it is ready."""
        return self.status("/health/ready") == httpx.codes.OK

    def public_metrics(self) -> bytes:
        """Return what anyone may see, as it is sent."""
        return self._http.get("/metrics").content

    def operator_metrics(self) -> dict[str, float]:
        """Return the operator's samples: by name, or by label value for the reasons of rejection."""
        answer = self._http.get("/operator/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
        answer.raise_for_status()
        return {
            sample.labels.get("reason", sample.name): sample.value
            for family in text_string_to_metric_families(answer.text)
            for sample in family.samples
            if not sample.name.endswith("_created")
        }

    @property
    def logged(self) -> str:
        """Everything it has written to standard output and standard error, over all starts."""
        return self.log.read_text(errors="surrogateescape") if self.log.exists() else ""

    def events(self) -> Iterator[dict[str, object]]:
        """Yield the log's lines; each must be JSON."""
        for line in self.logged.splitlines():
            yield json.loads(line)

    def query(self, sql: str) -> int:
        """Return the one number that an SQL query of the ledger has."""
        with closing(sqlite3.connect(f"file:{self.ledger}?mode=ro", uri=True)) as db:
            (number,) = db.execute(sql).fetchone()
            return int(number)

    def _ready_or_dead(self) -> bool:
        assert self.process is not None
        code = self.process.poll()
        assert code is None, f"the gateway ended with {code}:\n{self.logged[-2_000:]}"
        return self.ready


def noiseless(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [NOISELESS, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, "COLUMNS": "200"},
    )
