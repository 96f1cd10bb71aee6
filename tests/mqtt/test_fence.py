"""The fence: it comes back behind all that the broker held for us."""

import asyncio
from pathlib import Path

import pytest
from brokers import Mosquitto
from mqtt.fakes import FakeBroker, reading
from mqtt.gateways import DENYING, FENCE, STATE, Gateway, numbers, publish_lines, until
from mqtt5 import DisconnectPacket, PublishPacket, QoS
from structlog.testing import capture_logs

from gateway.mqtt import Broker, Publication, Session


def fence(packet_id: int, token: bytes) -> bytes:
    return PublishPacket(FENCE, token, qos=QoS.AT_LEAST_ONCE, packet_id=packet_id).write()


def is_fence(packet: PublishPacket) -> bool:
    return packet.topic == FENCE


@pytest.mark.parametrize("window", [8_192, 100])
async def test_caught_up_means_that_the_backlog_has_been_delivered(mosquitto: Mosquitto, window: int) -> None:
    async with Gateway(mosquitto.port):
        pass
    await asyncio.to_thread(publish_lines, mosquitto.port, "in/a", numbers(5_000))
    async with Gateway(mosquitto.port, receive_maximum=window) as gateway:
        await gateway.session.wait_caught_up(10)
        assert len(gateway.messages) == 5_000


async def test_the_fence_is_no_message_but_is_numbered_and_acknowledged(fake: FakeBroker) -> None:
    gateway = Gateway(fake.port, acknowledging=False).start()
    peer = await fake.accept()
    await peer.greet()
    token = (await peer.expect_publish(is_fence)).payload
    peer.send(reading(1), fence(2, token), reading(3))
    await asyncio.wait_for(gateway.session.wait_caught_up(5), 1)
    await until(lambda: gateway.last == 3)
    assert gateway.batches == [(2, 3)]
    gateway.session.acknowledge(3)
    assert await peer.pubacks(3) == [1, 2, 3]
    peer.send(fence(4, token))
    await until(lambda: gateway.last == 4)
    assert gateway.batches[-1] == (0, 4)
    await gateway.crash()


async def test_a_token_of_an_earlier_connection_is_ignored(fake: FakeBroker) -> None:
    gateway = Gateway(fake.port).start()
    peer = await fake.accept()
    await peer.greet()
    stale = (await peer.expect_publish(is_fence)).payload
    peer.cut()
    peer = await fake.accept()
    await peer.greet(session_present=True)
    fresh = (await peer.expect_publish(lambda p: is_fence(p) and not p.duplicate)).payload
    assert fresh != stale
    waiting = asyncio.create_task(gateway.session.wait_caught_up(5))
    peer.send(fence(1, stale))
    assert await peer.pubacks(1) == [1]
    assert not waiting.done()
    peer.send(fence(2, fresh))
    await asyncio.wait_for(waiting, 1)
    await gateway.crash()


async def test_waiting_ends_after_the_time_allowed_and_warns_once(fake: FakeBroker) -> None:
    gateway = Gateway(fake.port).start()
    await (await fake.accept()).greet()
    with capture_logs() as logs:
        await asyncio.wait_for(gateway.session.wait_caught_up(0.05), 1)
        await asyncio.wait_for(gateway.session.wait_caught_up(0.05), 1)
    assert [line["log_level"] for line in logs if line["event"] == "backlog not drained in time"] == [
        "warning"
    ]
    await gateway.crash()


async def test_waiting_goes_on_with_the_next_connection(fake: FakeBroker) -> None:
    gateway = Gateway(fake.port).start()
    waiting = asyncio.create_task(gateway.session.wait_caught_up(5))
    peer = await fake.accept()
    await peer.greet()
    await gateway.session.wait_ready()
    peer.cut()
    peer = await fake.accept()
    await peer.greet()
    token = (await peer.expect_publish(is_fence)).payload
    assert not waiting.done()
    peer.send(fence(1, token))
    await asyncio.wait_for(waiting, 1)
    assert gateway.session.connections == 2
    await gateway.crash()


async def test_the_fence_does_not_wait_behind_what_is_to_be_published(fake: FakeBroker) -> None:
    gateway = Gateway(fake.port)
    publishing = asyncio.create_task(gateway.session.publish([Publication("out/a", b"")] * 1_000))
    await asyncio.sleep(0)
    gateway.start()
    peer = await fake.accept()
    await peer.greet(receive_max=10)
    first = await peer.publications(10)
    await gateway.session.wait_ready()
    peer.acknowledge(*first[:2])
    assert {(await peer.expect_publish()).topic for _ in range(2)} == {FENCE, STATE}
    publishing.cancel()
    await gateway.crash()


async def test_a_fence_that_the_broker_forbids_is_said_and_not_waited_for_ever(tmp_path: Path) -> None:
    rules = tmp_path / "acl"
    rules.write_text("topic readwrite in/#\n")
    with (
        Mosquitto(tmp_path, config_lines=[f"acl_file {rules}", *DENYING]) as mosquitto,
        capture_logs() as logs,
    ):
        async with Gateway(mosquitto.port) as gateway:
            await asyncio.wait_for(gateway.session.wait_caught_up(0.1), 2)
    refused = {line["topic"] for line in logs if line["event"] == "own topic refused"}
    assert refused == {FENCE, STATE}


async def test_a_new_fence_is_waited_for_again(fake: FakeBroker) -> None:
    """What the broker kept while input was held lies before it; the old token no longer counts."""
    gateway = Gateway(fake.port).start()
    gateway.session.fence()  # not connected yet: the connection begins with one
    peer = await fake.accept()
    await peer.greet()
    old = (await peer.expect_publish(is_fence)).payload
    peer.send(fence(1, old))
    await asyncio.wait_for(gateway.session.wait_caught_up(5), 1)
    gateway.session.fence()
    waiting = asyncio.create_task(gateway.session.wait_caught_up(5))
    new = (await peer.expect_publish(is_fence)).payload
    assert new != old
    peer.send(fence(2, old), reading(3))
    await until(lambda: gateway.last == 3)
    assert not waiting.done()
    peer.send(fence(4, new))
    await asyncio.wait_for(waiting, 1)
    await gateway.crash()


async def test_a_session_that_only_publishes_subscribes_nothing_and_has_nothing_to_catch_up(
    fake: FakeBroker,
) -> None:
    session = Session(Broker("127.0.0.1", fake.port, "out"), filters=(), deliver=lambda *_: None)
    running = asyncio.create_task(session.run())
    peer = await fake.accept()
    connect = await peer.connack()
    assert connect.will is None
    await asyncio.wait_for(session.wait_caught_up(5), 1)
    publishing = asyncio.create_task(session.publish([Publication("out/a", b"1")]))
    publication = await peer.receive()  # the first packet after CONNECT
    assert (publication.topic, publication.payload) == ("out/a", b"1")
    peer.acknowledge(publication)
    await publishing
    await session.stop()
    assert [type(packet) for packet in [await peer.receive()]] == [DisconnectPacket]
    await running
