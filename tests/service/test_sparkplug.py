"""Sparkplug nodes: births are kept by nobody, so who comes late asks for another, once a minute at most."""

import asyncio
from collections import Counter

import aiomqtt
from brokers import Mosquitto
from gateways import Gateway, eventually
from service.conftest import GatewayFactory
from service.expecting import MIDNIGHT
from service.telling import Street
from service.watching import Watcher, publish

SOURCE = {
    "topic": "spBv1.0/plant/DDATA/{node}/{meter}",
    "format": "sparkplug",
    "quantity": "register",
    "value": "Meter/Energy",
    "unit": "Wh",
    "gap": "10min",
}
HOUR = 3_600
ALIAS, UINT64, DOUBLE = 7, 8, 10


def varint(value: int) -> bytes:
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def text(field: int, value: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(value)) + value


def payload(second: int, *metrics: bytes) -> bytes:
    """Return a Sparkplug B payload: timestamp (1), metrics (2), by its specification."""
    return number(1, (MIDNIGHT + second) * 1_000) + b"".join(text(2, metric) for metric in metrics)


def node_birth(second: int) -> bytes:
    return payload(second, text(1, b"bdSeq") + number(4, UINT64) + number(11, 3))


def device_birth(second: int, wh: int) -> bytes:
    named = text(1, b"Meter/Energy") + number(2, ALIAS) + number(4, UINT64)
    return payload(second, named + number(11, wh))


def data(second: int, wh: int) -> bytes:
    """Return the register by its alias alone, as most nodes send it after the birth."""
    return payload(second, number(2, ALIAS) + number(11, wh))


def stood(second: int) -> int:
    return 4_000 + second // 6


async def node_that_answers(port: int, seconds: range) -> bytes:
    """Tell a register by alias; answer the command that asks for a birth, and go on; return the command."""
    async with aiomqtt.Client("127.0.0.1", port, clean_session=True) as client:
        await client.subscribe("spBv1.0/plant/NCMD/edge", qos=1)
        await client.publish("spBv1.0/plant/DDATA/edge/m", data(seconds[0], stood(seconds[0])), qos=1)
        async with asyncio.timeout(10):
            command = await anext(aiter(client.messages))
        await client.publish("spBv1.0/plant/NBIRTH/edge", node_birth(seconds[0]), qos=1)
        born = device_birth(seconds[0], stood(seconds[0]))
        await client.publish("spBv1.0/plant/DBIRTH/edge/m", born, qos=1)
        for second in seconds[1:]:
            await client.publish("spBv1.0/plant/DDATA/edge/m", data(second, stood(second)), qos=1)
    assert isinstance(command.payload, bytes)
    return command.payload


def test_who_comes_late_asks_for_a_birth_and_counts_what_comes_by_alias(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    street = Street(["m"], [{**SOURCE, "meters": ["m"]}], HOUR)
    gateway: Gateway = make_gateway(**street.tables()).start()
    command = asyncio.run(node_that_answers(mosquitto.port, range(0, 2 * HOUR + 601, 300)))
    # Before it stands when it was asked.
    assert command.endswith(text(2, text(1, b"Node Control/Rebirth") + number(4, 11) + number(14, 1)))
    publish(mosquitto.port, [*street.tick(0), *street.tick(2)])
    assert street.watts(watcher, "m", 2) == [600, 600]
    assert gateway.operator_metrics()["birth_needed"] == 1


def test_after_a_kill_a_birth_is_asked_for_again_and_the_slot_is_whole(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    """What a birth said is not in the ledger; what was told before it is."""
    street = Street(["m"], [{**SOURCE, "meters": ["m"]}], HOUR)
    gateway: Gateway = make_gateway(**street.tables()).start()
    asyncio.run(node_that_answers(mosquitto.port, range(0, HOUR // 2, 300)))
    eventually("it is durable", lambda: gateway.operator_metrics()["noiseless_operator_unacknowledged"] == 0)
    gateway.kill()
    gateway.start()
    asyncio.run(node_that_answers(mosquitto.port, range(HOUR // 2, 2 * HOUR + 601, 300)))
    publish(mosquitto.port, [*street.tick(0), *street.tick(2)])
    assert street.watts(watcher, "m", 2) == [600, 600]


def test_a_node_that_does_not_answer_is_asked_once_a_minute_at_most(
    make_gateway: GatewayFactory, mosquitto: Mosquitto
) -> None:
    street = Street(["m"], [{**SOURCE, "meters": ["m"]}], HOUR)
    gateway: Gateway = make_gateway(**street.tables()).start()

    async def silent() -> Counter[str]:
        asked: Counter[str] = Counter()
        async with aiomqtt.Client("127.0.0.1", mosquitto.port) as client:
            await client.subscribe("spBv1.0/plant/NCMD/+", qos=1)
            for second in range(40):
                for node in ("edge-1", "edge-2", "edge-3"):
                    await client.publish(f"spBv1.0/plant/DDATA/{node}/m", data(second, 4_000), qos=1)
            await asyncio.to_thread(
                eventually,
                "all came",
                lambda: gateway.operator_metrics().get("birth_needed", 0) == 120,
            )
            # What else was asked is at the broker before this, or comes within the wait.
            await asyncio.sleep(0.3)
            await client.publish("spBv1.0/plant/NCMD/end", b"", qos=1)
            async for message in client.messages:
                asked[str(message.topic).rpartition("/")[2]] += 1
                if asked["end"]:
                    break
        return asked

    assert asyncio.run(silent()) == {"edge-1": 1, "edge-2": 1, "edge-3": 1, "end": 1}


def test_a_payload_that_is_no_sparkplug_or_of_a_dead_device_stops_nothing(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    street = Street(["m"], [{**SOURCE, "meters": ["m"]}], HOUR)
    gateway: Gateway = make_gateway(**street.tables()).start()

    async def node() -> None:
        async with aiomqtt.Client("127.0.0.1", mosquitto.port) as client:
            await client.publish("spBv1.0/plant/NBIRTH/edge", node_birth(0), qos=1)
            await client.publish("spBv1.0/plant/DBIRTH/edge/m", device_birth(0, stood(0)), qos=1)
            for second in range(300, 2 * HOUR + 601, 300):
                for wrong in (b"{", b"\xff" * 40, data(second, stood(second))[:-3], b""):
                    await client.publish("spBv1.0/plant/DDATA/edge/m", wrong, qos=1)
                await client.publish("spBv1.0/plant/DDATA/edge/m", data(second, stood(second)), qos=1)
            await client.publish("spBv1.0/plant/DDEATH/edge/m", payload(2 * HOUR + 700), qos=1)
            await client.publish("spBv1.0/plant/DDATA/edge/m", data(2 * HOUR + 800, 9_999_999), qos=1)

    asyncio.run(node())
    publish(mosquitto.port, [*street.tick(0), *street.tick(2)])
    assert street.watts(watcher, "m", 2) == [600, 600]
    counted = gateway.operator_metrics()
    assert (counted["undecodable"], counted["empty"], counted["birth_needed"]) == (3 * 26, 26, 1)
