"""A real mosquitto for tests: on a free loopback port, with a configuration of its own."""

import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

STARTING = 5.0
"""Seconds a broker may take to listen or to stop."""


def free_port() -> int:
    """Return a loopback port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Mosquitto:
    """A mosquitto in `directory`; start it again after `stop` or `kill` and it has the same port.

    `config_lines` are added to the configuration; with `persistence` sessions survive a `stop`.
    """

    def __init__(
        self, directory: Path, *, config_lines: Sequence[str] = (), persistence: bool = False
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.port = free_port()
        self.url = f"mqtt://127.0.0.1:{self.port}"
        self._config = directory / "mosquitto.conf"
        self._process: subprocess.Popen[bytes] | None = None
        lines = [
            f"listener {self.port} 127.0.0.1",
            "set_tcp_nodelay true",
            f"persistence {str(persistence).lower()}",
            f"persistence_location {directory}/",
            "log_dest none",
            f"user {getpass.getuser()}",  # else root becomes a user who cannot read the test's files
            *config_lines,
        ]
        defaults = {"allow_anonymous": "true", "max_inflight_messages": "1000", "max_queued_messages": "0"}
        given = {line.split()[0] for line in config_lines if line.split()}
        lines += [f"{name} {value}" for name, value in defaults.items() if name not in given]
        self._config.write_text("\n".join(lines) + "\n")

    def start(self) -> Self:
        """Start it and wait until it listens."""
        binary = shutil.which(
            "mosquitto", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin"
        )
        if binary is None:
            raise RuntimeError("these tests need mosquitto: apt-get install mosquitto mosquitto-clients")
        self._process = subprocess.Popen([binary, "-c", str(self._config)], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + STARTING
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise RuntimeError(f"mosquitto ended at once: see {self._config}")
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=0.2).close()
            except OSError:
                time.sleep(0.01)
            else:
                return self
        raise RuntimeError("mosquitto did not listen in time")

    def stop(self) -> None:
        """End it as an operator would: it writes its database and disconnects its clients."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a power cut would."""
        self._end(signal.SIGKILL)

    def _end(self, signal_number: int) -> None:
        if self._process is not None:
            self._process.send_signal(signal_number)
            self._process.wait(STARTING)
            self._process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
