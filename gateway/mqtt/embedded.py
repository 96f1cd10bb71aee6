"""A broker in a child process, for the demo and for trying things out: nothing is kept, nothing is checked.

It has no persistence, no access rules and no session expiry; production needs a real broker.
"""

import asyncio
import contextlib
import importlib.util
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Self

START_TIMEOUT = 10.0
"""Seconds the child may take to listen."""
STOP_TIMEOUT = 5.0
"""Seconds the child may take to end before it is killed."""

# Ends with us, whatever happens to us: the pipe at its standard input closes.
_CHILD = """
import os, sys, threading
from iotcore import Broker

def leave_with_parent():
    sys.stdin.buffer.read()
    os._exit(0)

threading.Thread(target=leave_with_parent, daemon=True).start()
Broker(config_path=sys.argv[1]).run_forever()
"""

_CONFIG = """
id = 0
[router]
id = 0
max_connections = 1000
max_outgoing_packet_count = 200
max_segment_size = 1048576
max_segment_count = 10
[v5.1]
name = "v5-1"
listen = "127.0.0.1:{port}"
next_connection_delay_ms = 1
[v5.1.connections]
connection_timeout_ms = 60000
max_payload_size = {max_payload}
max_inflight_count = {max_inflight}
dynamic_filters = true
"""


class EmbeddedBroker:
    """An MQTT 5 broker on loopback, running inside `with` or `async with`; needs the extra `simulate`.

    `port` 0 chooses a free one. `max_inflight` is the number of unacknowledged messages per client;
    `max_payload` the bytes of a message. It is in a process group of its own, so that Ctrl-C reaches us
    and not the broker we still want to say goodbye to, and it prints nothing.
    """

    def __init__(self, port: int = 0, *, max_inflight: int = 8_192, max_payload: int = 65_536) -> None:
        self.port = port or _free_port()
        self._config = _CONFIG.format(port=self.port, max_inflight=max_inflight, max_payload=max_payload)
        self._cleanup = contextlib.ExitStack()

    @property
    def url(self) -> str:
        """The broker's address, as in the configuration."""
        return f"mqtt://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the broker and wait until it listens; blocks for a fraction of a second.

        Raises `RuntimeError` if the extra is missing or the broker does not come up.
        """
        if importlib.util.find_spec("iotcore") is None:
            raise RuntimeError("the embedded broker needs iotcore: pip install 'noiseless[simulate]'")
        if _listens(self.port):
            raise RuntimeError(f"port {self.port} on 127.0.0.1 is taken: choose another, or 0 for a free one")
        with contextlib.ExitStack() as cleanup:
            directory = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="noiseless-broker-")))
            process = self._spawn(directory)
            cleanup.callback(_end, process)
            self._await(process, directory)
            self._cleanup = cleanup.pop_all()

    def stop(self) -> None:
        """End the broker; does nothing if it is not running."""
        self._cleanup.close()

    def _spawn(self, directory: Path) -> "subprocess.Popen[bytes]":
        config = directory / "broker.toml"
        config.write_text(self._config)
        with (directory / "errors").open("wb") as errors:
            return subprocess.Popen(  # noqa: S603 - our own interpreter and text
                [sys.executable, "-P", "-c", _CHILD, str(config)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
                env={**os.environ, "RUST_LOG": "off"},
            )

    def _await(self, process: "subprocess.Popen[bytes]", directory: Path) -> None:
        deadline = time.monotonic() + START_TIMEOUT
        while not _listens(self.port):
            if process.poll() is not None or time.monotonic() > deadline:
                said = (directory / "errors").read_text(errors="replace").strip().splitlines()
                raise RuntimeError(
                    f"the embedded broker did not start: {said[-1] if said else 'no reason given'}"
                )
            time.sleep(0.01)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.stop)


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin is not None:
        process.stdin.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=0.2).close()
    except OSError:
        return False
    return True
