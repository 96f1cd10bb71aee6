"""Bad packets: one bad message is stepped over in its place, anything else costs this connection only."""

import asyncio
import random
from itertools import pairwise

import mqtt5
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mqtt.fakes import FakeBroker, reading
from mqtt.gateways import Gateway, until
from mqtt5 import DisconnectPacket, PubAckPacket, PublishPacket, QoS

from gateway.mqtt._decoder import MAX_PACKET, Decoder, MalformedPacket, Skipped

# For text that is not UTF-8 the codec panics, and also reports the failed decoding to `sys.unraisablehook`.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def raw(first: int, body: bytes) -> bytes:
    """Return a packet with that first byte and body."""
    length, size = b"", len(body)
    while True:
        size, low = size >> 7, size & 0x7F
        length += bytes([low | (0x80 if size else 0)])
        if not size:
            return bytes([first]) + length + body


BAD_TOPIC = raw(0x32, b"\x00\x06in/\xff\xfea" + b"\x00\x05" + b"\x00" + b"payload")
BAD_PROPERTY = raw(0x32, b"\x00\x04in/a" + b"\x00\x06" + b"\x02\x0d\x00" + b"payload")
BAD_QOS_0 = raw(0x30, b"\x00\x01\xff" + b"\x00")
NO_ROOM_FOR_ID = raw(0x32, b"\x00\xffin/a")
QOS_3 = raw(0x36, b"\x00\x04in/a\x00\x09\x00")
ALL_BAD = [BAD_TOPIC, BAD_PROPERTY, BAD_QOS_0, NO_ROOM_FOR_ID, QOS_3]


async def test_a_malformed_message_is_skipped_counted_and_acknowledged_in_its_place(fake: FakeBroker) -> None:
    """Disconnecting would fire the will, and a meter could toggle it."""
    gateway = Gateway(fake.port, acknowledging=False).start()
    peer = await fake.accept()
    await peer.greet()
    peer.send(reading(1, b"before"), *ALL_BAD, reading(7, b"after"))
    await until(lambda: gateway.last == 7)
    assert gateway.payloads == [b"before", b"after"]
    assert gateway.session.malformed == len(ALL_BAD)
    gateway.session.acknowledge(7)
    assert await peer.pubacks(4) == [1, 5, 6, 7]
    assert gateway.session.connections == 1
    peer.send(BAD_TOPIC)
    await until(lambda: gateway.last == 8)
    assert gateway.batches[-1] == (0, 8), "a bad message alone must still be acknowledged"
    await gateway.crash()
    assert gateway.session.malformed == len(ALL_BAD) + 1


async def test_an_oversized_message_is_skipped_without_being_kept(fake: FakeBroker) -> None:
    gateway = Gateway(fake.port).start()
    peer = await fake.accept()
    await peer.greet()
    peer.send(reading(1, b"before"), reading(2, bytes(20 << 20)), reading(3, b"after"))
    assert await peer.pubacks(3) == [1, 2, 3]
    assert gateway.payloads == [b"before", b"after"]
    assert (gateway.session.malformed, gateway.session.connections) == (1, 1)
    await gateway.crash()


@pytest.mark.parametrize(
    "garbage",
    [
        raw(0x40, b"\x00\x01\x77"),  # PUBACK with an unknown reason
        bytes([0x32, 0xFF, 0xFF, 0xFF, 0xFF, 0x01]),  # a length of five bytes
        bytes([0x00, 0x00]),  # no such packet
        b"HTTP/1.1 400 Bad Request\r\n\r\n" * 4,
        raw(0xE0, b"\x00\x1f\x00\x01\xff"),  # DISCONNECT with text that is not UTF-8
        bytes([0x40, 0xFF, 0xFF, 0xFF, 0x7F]) + bytes(70_000),  # a PUBACK of 256 MB
    ],
)
async def test_any_other_malformed_packet_costs_the_connection_only(fake: FakeBroker, garbage: bytes) -> None:
    gateway = Gateway(fake.port).start()
    peer = await fake.accept()
    await peer.greet()
    peer.send(garbage)
    await peer.closed()
    await (await fake.accept()).greet()
    await gateway.session.wait_ready()
    assert gateway.session.connections == 2
    await gateway.crash()


async def test_a_disconnect_from_the_broker_leads_to_a_new_connection(fake: FakeBroker) -> None:
    gateway = Gateway(fake.port).start()
    peer = await fake.accept()
    await peer.greet()
    peer.send(reading(1), DisconnectPacket().write())
    await peer.closed()
    assert gateway.last == 1, "what came before it was delivered"
    await (await fake.accept()).greet()
    await gateway.session.wait_ready()
    await gateway.crash()


STREAM = [
    reading(1),
    PublishPacket("in/b", bytes(300)).write(),
    BAD_TOPIC,
    PubAckPacket(3).write(),
    reading(2, bytes(20_000)),
    *ALL_BAD,
    reading(9),
]


def decoded(decoder: Decoder, pieces: list[bytes]) -> list[object]:
    """Return packet ids and payload sizes, PUBACKs last, as one list."""
    publishes: list[object] = []
    pubacks: list[object] = []
    for piece in pieces:
        batch = decoder.feed(piece)
        publishes += [p if isinstance(p, Skipped) else (p.packet_id, len(p.payload)) for p in batch.publishes]
        pubacks += [p.packet_id for p in batch.pubacks]
    return publishes + pubacks


@given(st.lists(st.integers(1, 21_000), max_size=30))
def test_the_same_packets_come_out_however_the_bytes_are_cut(cuts: list[int]) -> None:
    stream = b"".join(STREAM)
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    pieces = [stream[a:b] for a, b in pairwise(places)]
    assert decoded(Decoder(), pieces) == decoded(Decoder(), [stream])


def test_the_same_packets_come_out_byte_by_byte() -> None:
    stream = b"".join(STREAM)
    assert decoded(Decoder(), [bytes([byte]) for byte in stream]) == decoded(Decoder(), [stream])


def test_whatever_happens_to_a_message_the_next_one_is_read() -> None:
    """Thousands of damaged messages, each with its length intact."""
    noise = random.Random(1)
    good = reading(77, b"good")
    whole = PublishPacket(
        "in/abc", b"xyz", qos=QoS.AT_LEAST_ONCE, packet_id=3, content_type="t", user_properties=[("a", "b")]
    ).write()
    for _ in range(3_000):
        bad = bytearray(whole)
        for _ in range(noise.randint(1, 4)):
            bad[noise.randrange(2, len(bad))] = noise.randrange(256)
        batch = Decoder().feed(bytes(bad) + good)
        last = batch.publishes[-1]
        assert len(batch.publishes) == 2
        assert not isinstance(last, Skipped)
        assert (last.packet_id, last.payload) == (77, b"good")


def test_an_oversized_message_may_arrive_in_any_pieces() -> None:
    large = reading(2, bytes(MAX_PACKET))
    stream = reading(1) + large + reading(3)
    for piece in (1_000, 65_536, MAX_PACKET, len(stream)):
        pieces = [stream[at : at + piece] for at in range(0, len(stream), piece)]
        ids = [packet.packet_id for data in [Decoder()] for p in pieces for packet in data.feed(p).publishes]
        assert ids == [1, 2, 3]


def test_control_exceptions_are_not_taken_for_malformed_packets(monkeypatch: pytest.MonkeyPatch) -> None:
    for stop in (KeyboardInterrupt, SystemExit, asyncio.CancelledError):

        def interrupted(_: memoryview, stop: type[BaseException] = stop) -> tuple[mqtt5.PublishPacket, int]:
            raise stop

        monkeypatch.setattr("gateway.mqtt._decoder.read", interrupted)
        with pytest.raises(stop):
            Decoder().feed(reading(1))


def test_a_length_of_five_bytes_is_malformed() -> None:
    with pytest.raises(MalformedPacket):
        Decoder().feed(bytes([0x32, 0xFF, 0xFF, 0xFF, 0xFF, 0x01]))
