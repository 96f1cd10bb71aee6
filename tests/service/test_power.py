"""Meters that tell power: a slot is the mean of what is held, in whatever order and how often it came."""

import json
import random
import socket
import struct
import time
from itertools import chain

from brokers import Mosquitto
from gateways import Gateway
from service.conftest import GatewayFactory
from service.expecting import Grid
from service.telling import FINE, POWER, Street, mean_of_samples, watts_of
from service.watching import Message, Watcher, publish

LENGTH, GAP = 60, 30


def trace(seed: int, every: int, slots: int) -> list[tuple[int, int]]:
    """Return (second, W), import and export, at uneven times."""
    dice = random.Random(seed)
    return [
        (second + dice.randrange(every), dice.randrange(-1_400, 1_400))
        for second in range(0, slots * LENGTH, every)
    ]


def expected(told: list[tuple[int, int]], slots: int) -> list[int | None]:
    by_slot = [
        {second - slot * LENGTH: w for second, w in told if second // LENGTH == slot} for slot in range(slots)
    ]
    return [mean_of_samples(samples, LENGTH, GAP) for samples in by_slot]


def test_samples_in_any_order_and_repeated_make_the_same_releases(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    """As B1 (mosquitto#398), B2 (paho.mqtt.golang#649): what is sent again comes as new, unmarked."""
    slots, dice = 5, random.Random(7)
    names = ["in-order", "backwards", "shuffled", "flagged", "after-a-kill"]
    street = Street(names, [{**POWER, "meters": names}])
    told = trace(1, 7, slots)
    in_order, backwards, shuffled, flagged, killed = (
        [street.power(name, second, watts) for second, watts in told] for name in names
    )
    shuffled *= 3
    dice.shuffle(shuffled)
    gateway: Gateway = make_gateway(**street.tables()).start()
    publish(mosquitto.port, [*in_order, *reversed(backwards), *shuffled, *killed[:20]])
    send_again_flagged(mosquitto.port, flagged)
    gateway.kill()
    gateway.start()
    publish(mosquitto.port, [*killed, *street.tick(0)])
    publish(mosquitto.port, chain.from_iterable(street.tick(slot) for slot in range(1, slots + 1)))
    wanted = expected(told, slots)
    assert len(set(wanted)) == slots
    assert {name: street.watts(watcher, name, slots) for name in names} == dict.fromkeys(names, wanted)
    assert gateway.operator_metrics()["repeated"] >= len(told)


def send_again_flagged(port: int, messages: list[Message]) -> None:
    """Publish each message, and then again with the DUP flag, as a meter does that missed the acknowledgement."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as meter:
        meter.sendall(b"\x10\x11\x00\x04MQTT\x04\x02\x00\x3c\x00\x05m-dup")
        assert meter.recv(4) == b"\x20\x02\x00\x00"
        for number, message in enumerate(messages, 1):
            topic = message.topic.encode()
            body = struct.pack(">H", len(topic)) + topic + struct.pack(">H", number) + message.payload
            assert len(body) < 128
            meter.sendall(bytes([0x32, len(body)]) + body)
            assert meter.recv(4)[:2] == b"\x40\x02"
            meter.sendall(bytes([0x3A, len(body)]) + body)
            assert meter.recv(4)[:2] == b"\x40\x02"


def test_a_gap_counts_for_nothing_and_a_slot_of_which_half_is_unknown_is_missing(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    """As E3 (home-assistant/core#99382): what happened in an outage is not known, and nothing is made up."""
    street = Street(["p"], [{**POWER, "meters": ["p"], "gap": "10s"}])
    samples: list[dict[int, int]] = [
        {second: 1_100 + second for second in range(0, 60, 5)},
        {0: 500, 5: 700, 10: 900, 50: 1_400},
        {0: 500, 5: 700},
        {},
        {30: 1_400, 31: -1_400, 40: 600, 45: 0, 55: 1_200},
        {59: 999},
    ]
    make_gateway(**street.tables()).start()
    told = [
        street.power("p", slot * LENGTH + second, watts)
        for slot, of in enumerate(samples)
        for second, watts in of.items()
    ]
    publish(mosquitto.port, [*told, *street.tick(0), *street.tick(len(samples))])
    wanted = [mean_of_samples(of, LENGTH, 10) for of in samples]
    assert street.watts(watcher, "p", len(samples)) == wanted
    assert wanted[0] is not None
    assert wanted[1] == (500 * 5 + 700 * 5 + 900 * 10 + 1_400 * 10) // 30
    assert wanted[2:4] == [None, None]
    assert wanted[5] is None


def test_a_retained_sample_says_nothing_however_new_it_looks(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    """As C1 (zigbee2mqtt#3496): an old state came at start and was taken for new."""
    street = Street(["p"], [{**POWER, "meters": ["p"]}])
    for second in (0, 10, 30):
        publish(mosquitto.port, [street.power("p", second, 900)._replace(retain=True)])
    gateway: Gateway = make_gateway(**street.tables()).start()
    publish(mosquitto.port, [*street.tick(0), *street.tick(1)])
    assert street.watts(watcher, "p", 1) == [None]
    assert gateway.operator_metrics()["stale_retained"] == 1
    gateway.kill()
    gateway.start()
    publish(mosquitto.port, [street.power("p", 75, 700), street.power("p", 100, 700), *street.tick(2)])
    assert street.watts(watcher, "p", 2) == [None, 700]


def test_samples_beyond_what_the_connection_carries_are_counted_and_left_out(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    """As F1 (domoticz#4521), F2 (esphome/issues#4494), F7: wrapped numbers, leaps, values that mean none."""
    source = {**POWER, "meters": ["p"], "limit": "20 kW", "sentinels": [65_535, -1]}
    street = Street(["p"], [source])
    gateway: Gateway = make_gateway(**street.tables()).start()
    wild = [18_446_744_073_709_551_537, 165_000, -20_001, 65_535, -1]
    told = [street.power("p", second, -800) for second in range(0, 60, 15)]
    told += [street.power("p", second + 5, watts) for second, watts in enumerate(wild)]
    publish(mosquitto.port, [*told, *street.tick(0), *street.tick(1)])
    assert street.watts(watcher, "p", 1) == [-800]
    counted = gateway.operator_metrics()
    assert (counted["implausible"], counted["sentinel"]) == (3, 2)


def test_samples_without_a_clock_hold_from_when_they_arrive(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    """The real clock, slots of two seconds: what changes in the middle of a slot counts from there on."""
    source = {**POWER, "meters": ["p"], "time": "arrival"}
    make_gateway(
        household=[{"id": "p", **FINE}],
        source=[source],
        slots={"length": "2s", "grace": "500ms", "clock": "wall", "missing": "symbol"},
    ).start()
    now = Grid.running(2)
    grid = Grid(2, now.first_s + 2)

    def say(watts: int, slot: int, seconds: float) -> None:
        grid.sleep_into(slot, seconds)
        publish(mosquitto.port, [Message("meters/p/power", json.dumps({"w": watts}).encode())])

    for seconds in (0.3, 1.0, 1.7):
        say(1_234, 0, seconds)
    say(400, 1, 0.2)
    say(1_400, 1, 1.0)
    releases = watcher.wait_for_slots(["household/p"], grid.starts(0, 3))["household/p"]
    first, second, third = (watts_of(releases[start][0]) for start in grid.starts(0, 3))
    assert first == 1_234
    # On a loaded machine a message may come a little later than it was sent.
    assert second is not None
    assert 500 < second < 1_250
    assert third is None
    assert time.time() > grid.first_s + 3 * 2 + 0.5
