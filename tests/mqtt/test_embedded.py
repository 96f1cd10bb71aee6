"""The embedded broker: the whole round trip without installing one."""

import asyncio
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from mqtt.gateways import Gateway, until

from gateway.mqtt import Publication
from gateway.mqtt.embedded import EmbeddedBroker


async def test_fence_publish_and_receive_through_the_embedded_broker() -> None:
    async with EmbeddedBroker() as broker:
        assert broker.url == f"mqtt://127.0.0.1:{broker.port}"
        async with (
            Gateway(broker.port) as meter,
            Gateway(broker.port, client_id="reader", filters=("out/#",)) as reader,
        ):
            await asyncio.wait_for(meter.session.wait_caught_up(5), 2)
            await asyncio.wait_for(reader.session.wait_caught_up(5), 2)
            sent = [Publication("out/a", str(n).encode()) for n in range(3_000)]
            await asyncio.wait_for(meter.session.publish(sent), 10)
            await until(lambda: len(reader.messages) == 3_000)
            assert reader.payloads == [p.payload for p in sent]


def test_the_embedded_broker_is_reached_from_this_machine_only_and_ends_with_its_block() -> None:
    with EmbeddedBroker() as broker:
        socket.create_connection(("127.0.0.1", broker.port), timeout=1).close()
        own = socket.gethostbyname(socket.gethostname())
        if not own.startswith("127."):
            with pytest.raises(OSError, match="refused"):
                socket.create_connection((own, broker.port), timeout=1)
        port = broker.port
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=1)


def test_a_taken_port_is_named() -> None:
    with EmbeddedBroker() as broker, pytest.raises(RuntimeError, match=str(broker.port)):
        EmbeddedBroker(broker.port).start()


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "iotcore" else find(name))
    with pytest.raises(RuntimeError, match=r"noiseless\[simulate\]"):
        EmbeddedBroker().start()


PARENT = """
import sys, time
from gateway.mqtt.embedded import EmbeddedBroker
broker = EmbeddedBroker(int(sys.argv[1]))
broker.start()
sys.stdout.write("listening\\n"); sys.stdout.flush()
time.sleep(60)
"""


def test_the_embedded_broker_prints_nothing_and_ends_when_its_parent_is_killed() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(port)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"listening\n"
    with socket.create_connection(("127.0.0.1", port), timeout=1) as client:
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
    os.kill(parent.pid, signal.SIGKILL)
    assert parent.stdout.read() == b""
    parent.wait()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=0.2).close()
        except OSError:
            return
        time.sleep(0.02)
    pytest.fail("the broker outlived its parent")
