"""The life of a session: presence, reconnecting, refusals, and taking over."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiomqtt
import pytest
from brokers import Mosquitto, free_port
from mqtt.fakes import FakeBroker
from mqtt.gateways import FENCE, STATE, Gateway, until
from mqtt5 import (
    ConnAckPacket,
    ConnAckReasonCode,
    ConnectPacket,
    DisconnectPacket,
    DisconnectReasonCode,
    PingReqPacket,
    QoS,
    SubAckPacket,
    SubAckReasonCode,
    SubscribePacket,
)
from structlog.testing import capture_logs

from gateway.mqtt import Broker, SessionTakenOver, _backoff, _connection
from gateway.mqtt._backoff import Backoff


@asynccontextmanager
async def watching(port: int, topic: str) -> AsyncIterator[list[tuple[bytes, bool]]]:
    """Collect (payload, retained) of what is published on `topic`, as an independent client sees it."""
    seen: list[tuple[bytes, bool]] = []
    async with aiomqtt.Client("127.0.0.1", port) as client:
        await client.subscribe(topic, qos=1)

        async def collect() -> None:
            async for message in client.messages:
                assert isinstance(message.payload, bytes)
                seen.append((message.payload, message.retain))

        collecting = asyncio.create_task(collect())
        yield seen
        collecting.cancel()


async def retained(port: int, topic: str) -> bytes:
    async with watching(port, topic) as seen:
        await until(lambda: seen)
    assert seen[0][1]
    return seen[0][0]


async def test_birth_is_published_on_every_connection_and_farewell_on_stop(mosquitto: Mosquitto) -> None:
    async with watching(mosquitto.port, STATE) as seen:
        async with Gateway(mosquitto.port, will_delay=60) as gateway:
            await until(lambda: len(seen) == 1)
            assert await retained(mosquitto.port, STATE) == b"online"
            gateway.cut()
            await until(lambda: len(seen) == 2)
        await until(lambda: len(seen) == 3)
    assert [payload for payload, _ in seen] == [b"online", b"online", b"offline"]
    assert await retained(mosquitto.port, STATE) == b"offline"


async def test_the_broker_publishes_the_will_when_we_vanish(mosquitto: Mosquitto) -> None:
    async with watching(mosquitto.port, STATE) as seen:
        gateway = Gateway(mosquitto.port, will_delay=0).start()
        await gateway.session.wait_ready()
        await until(lambda: seen)
        await gateway.crash()
        await until(lambda: len(seen) == 2)
    assert seen[-1][0] == b"offline"
    assert await retained(mosquitto.port, STATE) == b"offline"


def holding(directory: Path, password: str) -> Path:
    """Return a file that holds a password."""
    path = directory / "password"
    path.write_text(f"{password}\n")
    return path


async def test_connect_asks_for_what_the_broker_was_configured_with(fake: FakeBroker, tmp_path: Path) -> None:
    path = holding(tmp_path, "p")
    gateway = Gateway(
        fake.port, username="u", password_file=path, keep_alive=7, session_expiry=99, will_delay=5
    ).start()
    peer = await fake.accept()
    connect = await peer.connack()
    subscribe = await peer.suback()
    assert (connect.client_id, connect.username, connect.password) == ("gateway", "u", b"p")
    assert (connect.keep_alive, connect.session_expiry_interval, connect.receive_max) == (7, 99, 8_192)
    assert connect.clean_start is False
    assert connect.will is not None
    assert (connect.will.topic, connect.will.payload, connect.will.retain) == (STATE, b"offline", True)
    assert (connect.will.qos, connect.will.will_delay_interval) == (QoS.AT_LEAST_ONCE, 5)
    granted = {f.pattern: (f.max_qos, f.no_local, f.retain_as_published) for f in subscribe.topic_filters}
    assert granted == {"in/#": (QoS.AT_LEAST_ONCE, True, False), FENCE: (QoS.AT_LEAST_ONCE, False, True)}
    await gateway.crash()


async def test_a_filter_that_matches_the_fence_may_hear_us(fake: FakeBroker) -> None:
    filters = ("#", "noiseless/+", "noiseless/+/x", "$share/g/in/#", "noiseless/fence/#", "noise/#")
    gateway = Gateway(fake.port, filters=filters).start()
    peer = await fake.accept()
    await peer.connack()
    subscribe = await peer.suback()
    no_local = {f.pattern for f in subscribe.topic_filters if f.no_local}
    assert no_local == {"noiseless/+/x", "noise/#"}
    await gateway.crash()


async def test_a_broker_that_comes_late_is_found_and_said_once(tmp_path: Path) -> None:
    mosquitto = Mosquitto(tmp_path)
    with capture_logs() as logs:
        gateway = Gateway(mosquitto.port).start()
        await until(lambda: len(logs) >= 3)
        assert not gateway.session.ready
        await asyncio.to_thread(mosquitto.start)
        await asyncio.wait_for(gateway.session.wait_ready(), 5)
        assert gateway.session.ready
        await gateway.session.stop()
    mosquitto.stop()
    assert [line["log_level"] for line in logs if line["event"] == "broker unreachable"][:3] == [
        "warning",
        "info",
        "info",
    ]
    assert (logs[0]["host"], logs[0]["port"]) == ("127.0.0.1", mosquitto.port)
    assert "broker.url" in logs[0]["remedy"]


async def test_subscriptions_are_made_again_when_the_broker_lost_its_sessions(mosquitto: Mosquitto) -> None:
    """Readiness is false until they are granted (telegraf#6232)."""
    async with Gateway(mosquitto.port) as gateway:
        await asyncio.to_thread(mosquitto.kill)
        await until(lambda: not gateway.session.ready)
        await asyncio.to_thread(mosquitto.start)
        await asyncio.wait_for(gateway.session.wait_ready(), 5)
        async with aiomqtt.Client("127.0.0.1", mosquitto.port) as meter:
            await meter.publish("in/a", b"after", qos=1)
        await until(lambda: gateway.payloads == [b"after"])


async def test_stopping_while_the_broker_is_away_returns_at_once() -> None:
    gateway = Gateway(free_port()).start()
    await asyncio.sleep(0.05)
    await asyncio.wait_for(gateway.session.stop(), 1)
    assert gateway.running is not None
    assert await gateway.running is None


@pytest.mark.parametrize(
    ("reason", "field"),
    [
        (ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD, "broker.password_file"),
        (ConnAckReasonCode.NOT_AUTHORIZED, "broker.username"),
        (ConnAckReasonCode.CLIENT_ID_NOT_VALID, "broker.client_id"),
    ],
)
async def test_a_refused_connection_names_the_field_to_look_at_and_is_tried_again(
    fake: FakeBroker, tmp_path: Path, reason: ConnAckReasonCode, field: str
) -> None:
    with capture_logs() as logs:
        gateway = Gateway(fake.port, password_file=holding(tmp_path, "secret")).start()
        for _ in range(2):
            peer = await fake.accept()
            await peer.expect(ConnectPacket)
            peer.send(ConnAckPacket(reason_code=reason).write())
        await (await fake.accept()).greet()
        await gateway.session.wait_ready()
        await gateway.crash()
    refusals = [line for line in logs if line["event"] == "broker refused"]
    assert [line["log_level"] for line in refusals] == ["error", "info"]
    assert field in refusals[0]["remedy"]
    assert "secret" not in str(logs)


async def test_a_wrong_password_is_refused_by_a_real_broker_and_logged(tmp_path: Path) -> None:
    with Mosquitto(tmp_path, config_lines=["allow_anonymous false"]) as mosquitto, capture_logs() as logs:
        wrong = holding(tmp_path, "wrong")
        gateway = Gateway(mosquitto.port, username="gateway", password_file=wrong).start()
        await until(lambda: len(logs) >= 2)
        await gateway.session.stop()
    assert (logs[0]["log_level"], logs[0]["event"]) == ("error", "broker refused")
    assert "broker.username" in logs[0]["remedy"]


async def test_a_refused_subscription_is_an_error_and_not_ready(fake: FakeBroker) -> None:
    with capture_logs() as logs:
        gateway = Gateway(fake.port, filters=("in/#", "secret/#")).start()
        peer = await fake.accept()
        await peer.connack()
        subscribe = await peer.expect(SubscribePacket)
        codes = [SubAckReasonCode.GRANTED_QOS_AT_LEAST_ONCE] * 3
        codes[1] = SubAckReasonCode.NOT_AUTHORIZED
        peer.send(SubAckPacket(subscribe.packet_id, codes).write())
        await peer.closed()
        assert not gateway.session.ready
        await (await fake.accept()).greet()
        await gateway.session.wait_ready()
        await gateway.crash()
    (error,) = [line for line in logs if line["log_level"] == "error"]
    assert "'secret/#'" in error["reason"]


async def test_two_with_one_client_id_end_with_a_clear_error(fake: FakeBroker) -> None:
    """Not with a fight for ever (emqx#935, MQTT.js#1585)."""
    with capture_logs() as logs:
        gateway = Gateway(fake.port).start()
        for _ in range(5):
            peer = await fake.accept()
            await peer.greet()
            await gateway.session.wait_ready()
            peer.send(DisconnectPacket(reason_code=DisconnectReasonCode.SESSION_TAKEN_OVER).write())
            await peer.closed()
        assert gateway.running is not None
        with pytest.raises(SessionTakenOver, match="'gateway'"):
            await asyncio.wait_for(gateway.running, 1)
    errors = [line for line in logs if line["event"] == "session taken over"]
    assert errors[0]["log_level"] == "error"
    assert "client_id 'gateway'" in errors[0]["remedy"]


async def test_a_takeover_that_the_broker_does_not_mention_is_suspected(mosquitto: Mosquitto) -> None:
    """mosquitto 2.0 closes the older connection without a reason."""
    with capture_logs() as logs:
        async with Gateway(mosquitto.port) as gateway:
            for _ in range(4):
                await gateway.session.wait_ready()
                with suppress(aiomqtt.MqttError):
                    async with aiomqtt.Client("127.0.0.1", mosquitto.port, identifier="gateway"):
                        await until(lambda: not gateway.session.ready)
            await gateway.session.wait_ready()
    errors = [line["remedy"] for line in logs if line["log_level"] == "error"]
    assert errors
    assert "client_id 'gateway'" in errors[0]


async def test_takeovers_between_stable_connections_are_survived(
    fake: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.mqtt.session.STABLE", 0.0)
    gateway = Gateway(fake.port).start()
    for _ in range(8):
        peer = await fake.accept()
        await peer.greet()
        await gateway.session.wait_ready()
        peer.send(DisconnectPacket(reason_code=DisconnectReasonCode.SESSION_TAKEN_OVER).write())
        await peer.closed()
    await (await fake.accept()).greet()
    await gateway.session.wait_ready()
    await gateway.crash()


def test_the_backoff_grows_with_jitter_and_starts_again_only_after_a_stable_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A reconnect storm comes from back-offs that each success resets (meshmonitor#5079)."""
    monkeypatch.setattr(_backoff, "FIRST", 0.5)
    monkeypatch.setattr(_backoff, "CEILING", 30.0)
    backoff = Backoff()
    delays = [backoff.after(lasted) for lasted in (0, 0, 29.9, 1, 0, 0, 0, *[0] * 100)]
    for delay, most in zip(delays, [0.5, 1, 2, 4, 8, 16, *[30] * 101], strict=True):
        assert most / 2 <= delay <= most
    assert len(set(delays[6:])) > 50, "no jitter"
    assert backoff.after(30.0) <= 0.5
    assert 0.5 <= backoff.after(0) <= 1


async def test_an_idle_connection_is_pinged_as_the_broker_wishes_and_a_silent_one_is_dropped(
    fake: FakeBroker,
) -> None:
    gateway = Gateway(fake.port, keep_alive=600).start()
    peer = await fake.accept()
    await peer.greet(server_keep_alive=1)
    await peer.expect(PingReqPacket)
    await peer.closed()
    await (await fake.accept()).greet()
    await gateway.session.wait_ready()
    assert gateway.session.connections == 2
    await gateway.crash()


async def test_a_pinged_connection_that_answers_is_kept(tmp_path: Path) -> None:
    with Mosquitto(tmp_path) as mosquitto:
        async with Gateway(mosquitto.port, keep_alive=1) as gateway:
            await asyncio.sleep(2.5)
            assert gateway.session.connections == 1


async def test_a_broker_that_does_not_answer_connect_is_left(
    fake: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_connection, "REPLY_TIMEOUT", 0.05)
    gateway = Gateway(fake.port).start()
    await (await fake.accept()).closed()
    peer = await fake.accept()
    await peer.connack()
    await peer.closed()
    await (await fake.accept()).greet()
    await gateway.session.wait_ready()
    await gateway.crash()


async def test_a_session_runs_once(mosquitto: Mosquitto) -> None:
    async with Gateway(mosquitto.port) as gateway:
        with pytest.raises(RuntimeError, match="runs once"):
            await gateway.session.run()


def test_a_session_needs_a_name_of_its_own() -> None:
    """A random id never resumes (telegraf#797)."""
    with pytest.raises(ValueError, match="client_id is empty"):
        Broker("127.0.0.1", 1883, "")
