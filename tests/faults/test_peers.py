"""Other clients on the other side: whatever they are and speak, a reading is a reading."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import aiomqtt
import paho.mqtt.client as paho
import pytest
from brokers import Mosquitto
from gateways import PATIENCE, Gateway, eventually, roll
from service.expecting import Grid, symbol_of
from service.watching import Message, Watcher

READ = "noiseless_operator_readings_total"
GRID = Grid()
NAMES = ["h-0", "h-1", "h-2"]
VERSIONS = {"3.1.1": (paho.MQTTv311, "311"), "5": (paho.MQTTv5, "5")}
Publish = Callable[[int, Sequence[Message], int, str], None]


def with_mosquitto_pub(port: int, messages: Sequence[Message], qos: int, version: str) -> None:
    binary = shutil.which("mosquitto_pub")
    assert binary is not None
    for message in messages:
        command = [binary, "-p", str(port), "-q", str(qos), "-V", VERSIONS[version][1], "-t", message.topic]
        subprocess.run(
            [*command, *(["-r"] if message.retain else []), "-s" if message.payload else "-n"],
            input=message.payload,
            check=True,
            timeout=PATIENCE,
        )


def with_aiomqtt(port: int, messages: Sequence[Message], qos: int, version: str) -> None:
    async def publish() -> None:
        protocol = aiomqtt.ProtocolVersion(VERSIONS[version][0])
        async with aiomqtt.Client("127.0.0.1", port, protocol=protocol) as client:
            for message in messages:
                await client.publish(message.topic, message.payload, qos, message.retain)

    asyncio.run(publish())


def with_paho(port: int, messages: Sequence[Message], qos: int, version: str) -> None:
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, protocol=VERSIONS[version][0])
    client.connect("127.0.0.1", port)
    client.loop_start()
    for message in messages:
        client.publish(message.topic, message.payload, qos, message.retain).wait_for_publish(PATIENCE)
    client.disconnect()
    client.loop_stop()


PEERS = {"mosquitto_pub": with_mosquitto_pub, "aiomqtt": with_aiomqtt, "paho": with_paho}


@pytest.fixture
def gateway(tmp_path: Path, mosquitto: Mosquitto) -> Iterator[Gateway]:
    one = Gateway(tmp_path / "gateway", mosquitto.url, roll(*NAMES)).start()
    yield one
    one.end()


@pytest.fixture
def watcher(tmp_path: Path, mosquitto: Mosquitto) -> Iterator[Watcher]:
    watching = Watcher(tmp_path, mosquitto.port)
    yield watching
    watching.end()


@pytest.mark.parametrize("peer", PEERS)
def test_readings_of_any_client_at_any_qos_and_version_are_in_their_slots(
    gateway: Gateway, watcher: Watcher, mosquitto: Mosquitto, peer: str
) -> None:
    ways = [(qos, version) for version in VERSIONS for qos in (0, 1, 2)]
    for slot, (qos, version) in enumerate(ways):
        watts = 2_400 * slot
        PEERS[peer](mosquitto.port, [GRID.reading(name, slot, watts) for name in NAMES], qos, version)
        # One client after another: the broker keeps no order between them.
        want = len(NAMES) * (slot + 1)
        eventually("read", lambda want=want: gateway.operator_metrics()[READ] >= want)
    with_paho(mosquitto.port, [GRID.reading(name, len(ways), 0) for name in NAMES], 1, "5")
    starts = GRID.starts(0, len(ways))
    releases = watcher.wait_for_slots([f"household/{name}" for name in NAMES], starts)
    for name in NAMES:
        said = [json.loads(one)["symbol"] for (one,) in releases[f"household/{name}"].values()]
        assert said == [symbol_of(GRID.power_mw(2_400 * slot), 4) for slot in range(len(ways))]


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("version", VERSIONS)
def test_retained_and_large_messages_of_any_client_do_no_harm(
    gateway: Gateway, watcher: Watcher, mosquitto: Mosquitto, peer: str, version: str
) -> None:
    """As C1 (Koenkk/zigbee2mqtt#3496), and a payload of a megabyte and more."""
    publish = PEERS[peer]
    for slot in range(3):
        publish(mosquitto.port, [GRID.reading(name, slot, 4_800) for name in NAMES], 1, version)
    watcher.wait_for_slots([f"household/{NAMES[0]}"], GRID.starts(0, 2))
    topic, large = f"meters/{NAMES[0]}/reading", b'{"ts": "' + b"x" * 3_000_000 + b'"}'
    stale = GRID.reading(NAMES[0], 1, 14_400)._replace(retain=True)
    publish(mosquitto.port, [stale, Message(topic, large), Message(topic, b"")], 1, version)
    # It comes as it is published, not because somebody subscribed: it is late as any other.
    eventually("the old one is counted", lambda: gateway.operator_metrics().get("late", 0) == 1)
    gateway.kill()
    gateway.start()
    for slot in (3, 4):
        publish(mosquitto.port, [GRID.reading(name, slot, 4_800) for name in NAMES], 1, version)
    releases = watcher.wait_for_slots([f"household/{name}" for name in NAMES], GRID.starts(0, 4))
    symbols = [json.loads(one)["symbol"] for of in releases.values() for said in of.values() for one in said]
    assert set(symbols) == {symbol_of(GRID.power_mw(4_800), 4)}
    assert gateway.stop() == 0
