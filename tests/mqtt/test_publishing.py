"""Output: QoS 1, in order, within the broker's window, each delivered at least once whatever happens."""

import asyncio
from pathlib import Path

import aiomqtt
import pytest
from brokers import Mosquitto
from mqtt.fakes import FakeBroker
from mqtt.gateways import DENYING, FENCE, Gateway, until
from mqtt5 import PubAckPacket, PubAckReasonCode

from gateway.mqtt import Publication, PublishRefused, SessionClosed


def releases(count: int, first: int = 0) -> list[Publication]:
    return [Publication("out/a", str(n).encode()) for n in range(first, first + count)]


async def subscriber(port: int) -> None:
    """Begin a persistent session on `out/#`, for `received` to find."""
    async with aiomqtt.Client("127.0.0.1", port, identifier="utility", clean_session=False) as client:
        await client.subscribe("out/#", qos=1)


async def received(port: int, *, until: bytes) -> list[bytes]:
    """Return what the persistent session was sent, up to the payload `until`."""
    got: list[bytes] = []
    async with (
        asyncio.timeout(10),
        aiomqtt.Client("127.0.0.1", port, identifier="utility", clean_session=False) as client,
    ):
        async for message in client.messages:
            assert isinstance(message.payload, bytes)
            got.append(message.payload)
            if message.payload == until:
                break
    return got


@pytest.mark.parametrize("window", [1, 20])
async def test_5000_publications_keep_their_order_within_the_brokers_window(
    tmp_path: Path, window: int
) -> None:
    with Mosquitto(tmp_path, config_lines=[f"max_inflight_messages {window}"]) as mosquitto:
        await subscriber(mosquitto.port)
        async with Gateway(mosquitto.port) as gateway:
            await gateway.session.publish(releases(5_000))
        got = await received(mosquitto.port, until=b"4999")
    assert got == [p.payload for p in releases(5_000)]


async def test_never_more_in_flight_than_the_broker_allows(fake: FakeBroker) -> None:
    gateway = Gateway(fake.port).start()
    peer = await fake.accept()
    await peer.connack(receive_max=3)
    await peer.suback()
    peer.acknowledge(*[await peer.expect_publish() for _ in range(2)])
    publishing = asyncio.create_task(gateway.session.publish(releases(7)))
    first = await peer.publications(3)
    await peer.assert_silent()
    peer.acknowledge(first[0])
    fourth = await peer.publications(1)
    await peer.assert_silent()
    assert [p.payload for p in (*first, *fourth)] == [b"0", b"1", b"2", b"3"]
    assert not publishing.done()
    peer.acknowledge(*first[1:], *fourth)
    peer.acknowledge(*await peer.publications(3))
    await publishing
    await gateway.crash()


async def test_publishing_survives_a_restart_of_the_broker(tmp_path: Path) -> None:
    """The subscriber is away meanwhile; the broker's database carries its queue over the restart."""
    mosquitto = Mosquitto(tmp_path, persistence=True, config_lines=["max_inflight_messages 20"]).start()
    await subscriber(mosquitto.port)
    async with Gateway(mosquitto.port) as gateway:
        publishing = asyncio.create_task(gateway.session.publish(releases(60_000)))
        await asyncio.sleep(0.2)
        assert not publishing.done()
        await asyncio.to_thread(mosquitto.stop)
        await asyncio.sleep(0.1)
        assert not gateway.session.ready
        assert not publishing.done()
        await asyncio.to_thread(mosquitto.start)
        await asyncio.wait_for(publishing, 60)
        assert gateway.session.connections > 1
        await gateway.session.publish([Publication("out/a", b"end")])
    got = await received(mosquitto.port, until=b"end")
    mosquitto.stop()
    assert set(got) == {p.payload for p in releases(60_000)} | {b"end"}


async def test_a_resumed_session_gets_its_unanswered_publications_again_as_duplicates(
    fake: FakeBroker,
) -> None:
    """With the same packet ids and in the original order, before anything new."""
    gateway = Gateway(fake.port).start()
    peer = await fake.accept()
    await peer.greet(receive_max=6)
    peer.acknowledge(*[await peer.expect_publish() for _ in range(2)])
    publishing = asyncio.create_task(gateway.session.publish(releases(8)))
    sent = await peer.publications(6)
    peer.acknowledge(sent[1])
    sent += await peer.publications(1)
    peer.cut()
    peer = await fake.accept()
    await peer.connack(session_present=True, receive_max=4)
    unanswered = [sent[0], *sent[2:]]
    again = await peer.publications(4)
    await peer.assert_silent()
    assert [(p.packet_id, p.payload) for p in again] == [(p.packet_id, p.payload) for p in unanswered[:4]]
    assert all(p.duplicate for p in again)
    peer.acknowledge(*again)
    rest = await peer.publications(3)
    assert [p.payload for p in rest] == [b"5", b"6", b"7"]
    assert [p.duplicate for p in rest] == [True, True, False]
    peer.acknowledge(*rest)
    await publishing
    await gateway.crash()


async def test_a_new_session_gets_its_unanswered_publications_again_as_new_ones(fake: FakeBroker) -> None:
    gateway = Gateway(fake.port).start()
    peer = await fake.accept()
    await peer.greet(receive_max=4)
    peer.acknowledge(*[await peer.expect_publish() for _ in range(2)])
    publishing = asyncio.create_task(gateway.session.publish(releases(6)))
    peer.acknowledge((await peer.publications(4))[0])
    await peer.publications(1)
    peer.cut()
    peer = await fake.accept()
    await peer.greet(session_present=False)
    again = await peer.publications(5)
    assert [p.payload for p in again] == [b"1", b"2", b"3", b"4", b"5"]
    assert not any(p.duplicate for p in again)
    peer.acknowledge(*again)
    await publishing
    await gateway.crash()


async def test_a_refusal_is_raised_after_the_others_of_the_call_were_delivered(tmp_path: Path) -> None:
    rules = tmp_path / "acl"
    rules.write_text("topic readwrite in/#\ntopic readwrite noiseless/#\ntopic readwrite out/allowed\n")
    rules.chmod(0o644)
    with Mosquitto(tmp_path, config_lines=[f"acl_file {rules}", *DENYING]) as mosquitto:
        await subscriber(mosquitto.port)
        denied, allowed = Publication("out/denied", b"no"), Publication("out/allowed", b"yes")
        async with Gateway(mosquitto.port) as gateway:
            with pytest.raises(PublishRefused, match="access rules") as refusal:
                await gateway.session.publish([allowed, denied, allowed])
            await gateway.session.publish([Publication("out/allowed", b"end")])
            assert gateway.session.connections == 1
        assert (refusal.value.topic, refusal.value.reason) == ("out/denied", 0x87)
        assert refusal.value.refused == (denied,)
        assert await received(mosquitto.port, until=b"end") == [b"yes", b"yes", b"end"]


async def test_larger_than_the_broker_takes_is_refused_without_being_sent(tmp_path: Path) -> None:
    with Mosquitto(tmp_path, config_lines=["max_packet_size 2000"]) as mosquitto:
        await subscriber(mosquitto.port)
        async with Gateway(mosquitto.port) as gateway:
            with pytest.raises(PublishRefused, match="larger"):
                await gateway.session.publish(
                    [Publication("out/a", bytes(2_000)), Publication("out/a", b"fits")]
                )
            assert gateway.session.connections == 1
        assert await received(mosquitto.port, until=b"fits") == [b"fits"]


async def test_nobody_listening_is_no_refusal(mosquitto: Mosquitto) -> None:
    async with Gateway(mosquitto.port) as gateway:
        await asyncio.wait_for(gateway.session.publish([Publication("nobody/listens", b"")]), 5)
        await gateway.session.publish([])


@pytest.mark.parametrize("topic", ["", "out/#", "out/+/a", "out/\0", "x" * 65_536])
async def test_a_topic_that_would_end_the_connection_is_refused_before_it_is_sent(
    mosquitto: Mosquitto, topic: str
) -> None:
    async with Gateway(mosquitto.port) as gateway:
        with pytest.raises(ValueError, match="cannot be published to"):
            await gateway.session.publish([Publication("out/a", b""), Publication(topic, b"")])


async def test_a_cancelled_call_sends_no_more_and_later_ones_go_on(fake: FakeBroker) -> None:
    gateway = Gateway(fake.port).start()
    peer = await fake.accept()
    await peer.greet(receive_max=2)
    peer.acknowledge(*[await peer.expect_publish() for _ in range(2)])
    publishing = asyncio.create_task(gateway.session.publish(releases(5)))
    first = await peer.publications(2)
    publishing.cancel()
    await asyncio.wait((publishing,))
    later = asyncio.create_task(gateway.session.publish(releases(2, first=100)))
    peer.acknowledge(*first)
    after = await peer.publications(2)
    assert [p.payload for p in after] == [b"100", b"101"]
    peer.acknowledge(*after)
    await later
    await gateway.crash()


async def test_the_end_of_the_session_ends_waiting_calls(mosquitto: Mosquitto) -> None:
    gateway = Gateway(mosquitto.port)
    waiting = asyncio.create_task(gateway.session.publish(releases(1)))
    await asyncio.sleep(0)
    gateway.start()
    await gateway.session.stop()
    with pytest.raises(SessionClosed):
        await waiting
    with pytest.raises(SessionClosed):
        await gateway.session.publish(releases(1))


async def test_publications_made_before_the_connection_go_out_when_it_is_there(mosquitto: Mosquitto) -> None:
    gateway = Gateway(mosquitto.port)
    waiting = asyncio.create_task(gateway.session.publish(releases(3)))
    await asyncio.sleep(0.01)
    async with gateway:
        await asyncio.wait_for(waiting, 5)


async def test_a_reader_that_stalls_does_not_fill_our_memory(fake: FakeBroker) -> None:
    """While the socket takes no more, nothing more is encoded."""
    gateway = Gateway(fake.port).start()
    peer = await fake.accept()
    await peer.greet(receive_max=65_535)
    publishing = asyncio.create_task(gateway.session.publish([Publication("out/a", bytes(50_000))] * 2_000))
    await asyncio.sleep(0.3)
    link = gateway.session._link
    assert link is not None
    assert link._connection._transport is not None
    assert link._connection._transport.get_write_buffer_size() < 500_000
    for _ in range(2_000):
        peer.acknowledge(await peer.expect_publish(lambda p: p.topic != FENCE))
    publishing.cancel()
    await gateway.crash()


async def test_an_answer_to_nothing_is_ignored(fake: FakeBroker) -> None:
    gateway = Gateway(fake.port).start()
    peer = await fake.accept()
    await peer.greet()
    peer.send(PubAckPacket(999, reason_code=PubAckReasonCode.QUOTA_EXCEEDED).write())
    publishing = asyncio.create_task(gateway.session.publish(releases(1)))
    peer.acknowledge(*await peer.publications(1))
    await publishing
    await until(lambda: gateway.session.ready)
    await gateway.crash()
