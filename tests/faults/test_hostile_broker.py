"""No bytes from a broker hang the link or end it: it reconnects, and the next connection works."""

import asyncio
from collections.abc import Sequence

import mqtt5
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mqtt.fakes import FakeBroker, Peer, reading
from mqtt.gateways import Gateway

from gateway.mqtt import _backoff, _connection

# For text that is not UTF-8 the codec panics, and also reports the failed decoding to `sys.unraisablehook`.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
BOUND_S = 5.0


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reconnect at once, and give a silent broker up within tenths of a second."""
    monkeypatch.setattr(_backoff, "FIRST", 0.002)
    monkeypatch.setattr(_backoff, "CEILING", 0.01)
    monkeypatch.setattr(_connection, "REPLY_TIMEOUT", 0.2)


PACKET_ID = st.integers(1, 65_535)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0+#"), max_size=20)
TOPIC = st.sampled_from(["in/a", "noiseless/fence", "noiseless/state", "$SYS/x"]) | TEXT.filter(bool)


def publish(topic: str, payload: bytes, qos: int, packet_id: int, flags: tuple[bool, bool]) -> bytes:
    level = [mqtt5.QoS.AT_MOST_ONCE, mqtt5.QoS.AT_LEAST_ONCE, mqtt5.QoS.EXACTLY_ONCE][qos]
    retain, duplicate = flags
    given_id = packet_id if qos else None
    return mqtt5.PublishPacket(
        topic, payload, qos=level, packet_id=given_id, retain=retain, duplicate=duplicate and qos > 0
    ).write()


def codes(kind: type) -> list[object]:
    """Return all members of one of the codec's enumerations."""
    return [getattr(kind, name) for name in dir(kind) if name.isupper()]


PUBLISH = st.builds(
    publish,
    TOPIC,
    st.binary(max_size=300),
    st.integers(0, 2),
    PACKET_ID,
    st.tuples(st.booleans(), st.booleans()),
)
VALID = st.one_of(
    PUBLISH,
    st.builds(lambda n: mqtt5.PubAckPacket(n).write(), PACKET_ID),
    st.builds(lambda n: mqtt5.PubRecPacket(n).write(), PACKET_ID),
    st.builds(lambda n: mqtt5.PubRelPacket(n).write(), PACKET_ID),
    st.builds(lambda n: mqtt5.PubCompPacket(n).write(), PACKET_ID),
    st.builds(
        lambda present, window: mqtt5.ConnAckPacket(session_present=present, receive_max=window).write(),
        st.booleans(),
        PACKET_ID,
    ),
    st.builds(
        lambda n, codes: mqtt5.SubAckPacket(n, codes).write(),
        PACKET_ID,
        st.lists(st.sampled_from(codes(mqtt5.SubAckReasonCode)), min_size=1, max_size=4),
    ),
    st.sampled_from(codes(mqtt5.DisconnectReasonCode)).map(
        lambda code: mqtt5.DisconnectPacket(reason_code=code).write()
    ),
    st.sampled_from(
        [
            mqtt5.PingRespPacket().write(),
            mqtt5.PingReqPacket().write(),
            mqtt5.ConnectPacket("other").write(),
            mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("a")]).write(),
        ]
    ),
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Return a valid packet that was cut short, or had some bytes changed."""
    packet = bytearray(draw(VALID))
    if draw(st.booleans()):
        return bytes(packet[: draw(st.integers(0, len(packet) - 1))])
    for place in draw(st.lists(st.integers(0, len(packet) - 1), min_size=1, max_size=4)):
        packet[place] = draw(st.integers(0, 255))
    return bytes(packet)


STREAM = st.lists(VALID | damaged() | st.binary(max_size=200), max_size=12)
EXAMPLES = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


async def survive(stream: Sequence[bytes], *, greeted: bool) -> None:
    """Say anything at all before or after the greeting, then be a good broker."""
    async with FakeBroker() as broker, asyncio.timeout(BOUND_S):
        gateway = Gateway(broker.port).start()
        assert gateway.running is not None
        peer = await broker.accept()
        if greeted:
            await peer.greet()
        for piece in stream:
            peer.send(piece)
            await asyncio.sleep(0)
        await asyncio.sleep(0.003)
        peer.cut()
        while not await serves(await broker.accept(), gateway):
            assert not gateway.running.done()
        await gateway.crash()


async def serves(peer: Peer, gateway: Gateway) -> bool:
    """Return whether this connection delivers and acknowledges; an earlier one may only now be seen to end."""
    try:
        await peer.greet()
        peer.send(reading(77, b"good"))
        assert await peer.pubacks(1) == [77]
    except (EOFError, ConnectionError):
        return False
    return gateway.payloads[-1] == b"good"


@EXAMPLES
@given(STREAM)
async def test_anything_a_connected_broker_says_costs_at_most_its_connection(stream: list[bytes]) -> None:
    await survive(stream, greeted=True)


@EXAMPLES
@given(STREAM)
async def test_anything_instead_of_a_greeting_costs_at_most_its_connection(stream: list[bytes]) -> None:
    await survive(stream, greeted=False)


async def test_a_broker_that_accepts_and_says_nothing_is_given_up() -> None:
    async with FakeBroker() as broker, asyncio.timeout(BOUND_S):
        gateway = Gateway(broker.port).start()
        silent = await broker.accept()
        assert await serves(await broker.accept(), gateway)
        await silent.closed()
        await gateway.crash()
