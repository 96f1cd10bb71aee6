"""Input: delivered in batches and in order, acknowledged only when told to, in the order of arrival."""

import asyncio
from pathlib import Path

import aiomqtt
import pytest
from brokers import Mosquitto
from mqtt.fakes import FakeBroker, reading
from mqtt.gateways import Gateway, numbers, publish_lines, until
from mqtt5 import PublishPacket

from gateway.mqtt import Message, SessionClosed


async def test_messages_arrive_in_order_with_topic_payload_and_retain_flag(mosquitto: Mosquitto) -> None:
    async with aiomqtt.Client("127.0.0.1", mosquitto.port) as meter:
        await meter.publish("in/kept", b"old", qos=1, retain=True)
        async with Gateway(mosquitto.port) as gateway:
            await meter.publish("in/a", b"\x00\xff", qos=1)
            await meter.publish("in/b", b"", qos=0)
            await until(lambda: len(gateway.messages) == 3)
    assert gateway.messages == [
        Message("in/kept", b"old", retained=True),
        Message("in/a", b"\x00\xff", retained=False),
        Message("in/b", b"", retained=False),
    ]


async def test_retained_messages_come_once_and_not_on_every_reconnect(mosquitto: Mosquitto) -> None:
    async with aiomqtt.Client("127.0.0.1", mosquitto.port) as meter:
        await meter.publish("in/kept", b"old", qos=1, retain=True)
        async with Gateway(mosquitto.port) as gateway:
            await until(lambda: gateway.messages)
            gateway.cut()
            await until(lambda: gateway.session.connections == 2)
            await gateway.session.wait_caught_up(5)
    assert gateway.payloads == [b"old"]


async def test_unacknowledged_messages_come_again_after_a_cut_and_acknowledged_ones_do_not(
    mosquitto: Mosquitto,
) -> None:
    async with Gateway(mosquitto.port, acknowledging=False) as gateway:
        await asyncio.to_thread(publish_lines, mosquitto.port, "in/a", numbers(10))
        await until(lambda: len(gateway.messages) == 10)
        fences = gateway.last - 10
        gateway.session.acknowledge(fences + 4)
        await asyncio.sleep(0.05)
        gateway.cut()
        await until(lambda: len(gateway.messages) >= 16)
        await gateway.session.wait_caught_up(5)
        assert gateway.payloads[10:] == [str(n).encode() for n in range(4, 10)]
        gateway.session.acknowledge(gateway.last)
        assert gateway.session.unacknowledged == 0
        await asyncio.sleep(0.05)
        gateway.cut()
        await until(lambda: gateway.session.connections == 3)
        await gateway.session.wait_caught_up(5)
        assert len(gateway.messages) == 16


async def test_what_was_sent_while_the_gateway_was_down_arrives_after_its_start(mosquitto: Mosquitto) -> None:
    """A stop must not unsubscribe, and a start must find its session again (ekuiper#3709, node-red#3452)."""
    async with Gateway(mosquitto.port, acknowledging=False) as first:
        await asyncio.to_thread(publish_lines, mosquitto.port, "in/a", ["unacknowledged"])
        await until(lambda: first.messages)
    await asyncio.to_thread(publish_lines, mosquitto.port, "in/a", numbers(3_000))
    async with Gateway(mosquitto.port) as second:
        await second.session.wait_caught_up(10)
        assert second.payloads == [b"unacknowledged", *(str(n).encode() for n in range(3_000))]


async def test_pubacks_are_cumulative_and_in_arrival_order(fake: FakeBroker) -> None:
    """Brokers disconnect clients that acknowledge out of order."""
    gateway = Gateway(fake.port, acknowledging=False).start()
    peer = await fake.accept()
    await peer.greet()
    peer.send(reading(7), reading(3), PublishPacket("in/a", b"qos 0").write(), reading(9), reading(1))
    await until(lambda: len(gateway.messages) == 5)
    assert gateway.session.unacknowledged == 5
    gateway.session.acknowledge(2)
    assert await peer.pubacks(2) == [7, 3]
    gateway.session.acknowledge(2)
    gateway.session.acknowledge(1)
    gateway.session.acknowledge(5)
    assert await peer.pubacks(2) == [9, 1]
    assert gateway.session.unacknowledged == 0
    await gateway.crash()


async def test_one_read_is_one_delivery(fake: FakeBroker) -> None:
    gateway = Gateway(fake.port).start()
    peer = await fake.accept()
    await peer.greet()
    peer.send(*(reading(n + 1) for n in range(500)))
    await until(lambda: gateway.last == 500)
    assert gateway.batches == [(500, 500)]
    await gateway.crash()


async def test_numbers_of_an_earlier_connection_acknowledge_nothing_on_a_later_one(fake: FakeBroker) -> None:
    gateway = Gateway(fake.port, acknowledging=False).start()
    peer = await fake.accept()
    await peer.greet()
    peer.send(reading(1), reading(2))
    await until(lambda: gateway.last == 2)
    peer.cut()
    peer = await fake.accept()
    await peer.greet(session_present=True)
    peer.send(reading(2), reading(1))
    await until(lambda: gateway.last == 4)
    gateway.session.acknowledge(2)
    assert gateway.session.unacknowledged == 2
    gateway.session.acknowledge(3)
    assert await peer.pubacks(1) == [2]
    await gateway.crash()


async def test_acknowledging_what_was_never_delivered_is_an_error(mosquitto: Mosquitto) -> None:
    async with Gateway(mosquitto.port) as gateway:
        with pytest.raises(ValueError, match="never delivered"):
            gateway.session.acknowledge(gateway.last + 1_000)


async def test_a_flood_is_held_back_at_twice_the_window_and_then_arrives_completely(tmp_path: Path) -> None:
    """mosquitto sends a further window for each PUBACK, so our memory needs a bound of its own."""
    sent = [f"{n:06d}".ljust(8_000, ".") for n in range(1_500)]
    with Mosquitto(tmp_path) as mosquitto:
        async with Gateway(mosquitto.port):
            pass
        await asyncio.to_thread(publish_lines, mosquitto.port, "in/a", sent)
        async with Gateway(mosquitto.port, acknowledging=False, receive_maximum=20) as gateway:
            while len(gateway.messages) < len(sent):
                gateway.session.acknowledge(gateway.last)
                await asyncio.sleep(0.01)
    one_read = 256 * 1024 // 8_000 + 1
    assert gateway.payloads == [payload.encode() for payload in sent]
    assert gateway.most_unacknowledged <= 2 * 20 + one_read


async def test_large_messages_are_held_back_by_their_bytes(fake: FakeBroker) -> None:
    gateway = Gateway(fake.port, acknowledging=False).start()
    peer = await fake.accept()
    await peer.greet()
    for number in range(1, 101):
        peer.send(reading(number, bytes(900_000)))
    await until(lambda: gateway.session.unacknowledged > 15)
    await asyncio.sleep(0.2)
    assert gateway.session.unacknowledged < 22
    gateway.acknowledging = True
    gateway.session.acknowledge(gateway.last)
    await until(lambda: gateway.last == 100)
    await gateway.crash()


async def test_a_bug_in_deliver_ends_run_with_that_exception(mosquitto: Mosquitto) -> None:
    """Also when it looks like a network error, such as a full disk."""

    def fail(*_: object) -> None:
        raise OSError("disk full")

    gateway = Gateway(mosquitto.port, deliver=fail)
    with pytest.raises(OSError, match="disk full"):
        await gateway.session.run()
    with pytest.raises(SessionClosed):
        await gateway.session.wait_ready()
    with pytest.raises(SessionClosed):
        await gateway.session.wait_caught_up(1)


async def test_the_window_is_learnt_from_a_broker_that_stops_earlier_than_asked(fake: FakeBroker) -> None:
    gateway = Gateway(fake.port, acknowledging=False).start()
    peer = await fake.accept()
    await peer.greet()
    assert gateway.session.window == 8_192
    peer.send(*(reading(n + 1) for n in range(100)))
    await until(lambda: gateway.last == 100)
    await asyncio.sleep(0.15)
    gateway.session.acknowledge(100)
    await peer.pubacks(100)
    peer.send(*(reading(n + 1) for n in range(100)))
    await until(lambda: gateway.last == 200)
    assert gateway.session.window == 100
    peer.send(*(reading(n + 1) for n in range(100, 150)))
    await until(lambda: gateway.last == 250)
    assert gateway.session.window == 8_192, "more than 100 came, so 100 was not its limit"
    await gateway.crash()
