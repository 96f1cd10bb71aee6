"""The witness counts what a receiver can count, independently of the gateway."""

import asyncio
import json
from decimal import Decimal, getcontext

import aiomqtt
import pytest
from brokers import Mosquitto
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simulators.witness import Witness

# Under load a first example may take its time.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

SLOT = "2026-01-05T10:00:00Z"
NEXT = "2026-01-05T10:30:00Z"


def payload(slot: str = SLOT, symbol: int = 1, levels: int = 4, **fields: object) -> bytes:
    return json.dumps({"slot": slot, "symbol": symbol, "levels": levels, **fields}).encode()


def household(name: str) -> str:
    return f"noiseless/household/{name}"


def group(name: str) -> str:
    return f"noiseless/group/{name}"


def test_a_release_is_counted_once_by_topic_and_slot() -> None:
    witness = Witness()
    for topic, slot in [
        (household("a"), SLOT),
        (household("b"), SLOT),
        (household("a"), NEXT),
        (group("g"), SLOT),
    ]:
        witness.see(topic, payload(slot))
    assert witness.count("household") == 3
    assert witness.count("group") == 1
    assert witness.slots() == {SLOT, NEXT}
    assert (witness.repeated, witness.doubled) == (0, set())


def test_the_same_bytes_again_are_repeated_and_not_doubled() -> None:
    witness = Witness()
    for _ in range(3):
        witness.see(household("a"), payload())
    assert witness.repeated == 2
    assert witness.doubled == set()
    assert witness.count("household") == 1


def test_a_repeat_is_one_even_when_it_is_the_very_same_object() -> None:
    witness, message = Witness(), payload()
    for _ in range(3):
        witness.see(household("a"), message)
    assert witness.repeated == 2


def test_other_bytes_for_a_topic_and_slot_are_doubled_once() -> None:
    witness = Witness()
    for symbol in (1, 2, 3, 1):
        witness.see(household("a"), payload(symbol=symbol))
    assert witness.doubled == {(household("a"), SLOT)}
    assert witness.repeated == 1
    assert witness.payloads[household("a"), SLOT] == payload(symbol=1)


def test_a_byte_of_difference_is_a_difference() -> None:
    witness = Witness()
    witness.see(household("a"), payload())
    witness.see(household("a"), payload() + b" ")
    assert len(witness.doubled) == 1


def test_the_latest_release_of_a_topic_is_its_newest_distinct_one() -> None:
    witness = Witness()
    witness.see(household("a"), payload(SLOT, 1))
    witness.see(household("a"), payload(NEXT, 2))
    assert witness.latest[household("a")]["symbol"] == 2


def microbits(levels: int) -> int:
    """⌈10⁶·log2(levels)⌉ in 60 decimal digits."""
    getcontext().prec = 60
    exact = Decimal(levels).ln() / Decimal(2).ln() * 1_000_000
    nearest = exact.to_integral_value()
    return int(
        nearest if abs(exact - nearest) < Decimal("1e-40") else exact.to_integral_value("ROUND_CEILING")
    )


releases = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c"]), st.sampled_from([SLOT, NEXT]), st.integers(1, 4_096), st.booleans()
    ),
    unique_by=lambda one: one[:2],
)
reaches = st.dictionaries(
    st.tuples(st.sampled_from(["g", "h"]), st.sampled_from([SLOT, NEXT])), st.integers(1, 4_096)
)
MEMBERS = {"g": ("a", "b"), "h": ("b", "c")}


@unhurried
@given(releases, reaches)
def test_released_bits_are_the_sum_of_what_each_household_slot_can_say(
    released: list[tuple[str, str, int, bool]], reached: dict[tuple[str, str], int]
) -> None:
    witness, expected = Witness(), 0
    for name, slot, levels, spent in released:
        witness.see(household(name), payload(slot, levels=levels, **({"spent": True} if spent else {})))
        joint = 1 + (levels - 1)
        joint += sum(k - 1 for (one, when), k in reached.items() if when == slot and name in MEMBERS[one])
        expected += 0 if spent else microbits(joint)
    for (name, slot), reach in reached.items():
        witness.see(group(name), payload(slot, reach=reach))
    assert round(witness.released_bits(MEMBERS) * 1e6) == expected


def test_a_repeat_is_not_charged_again_and_a_spent_one_not_at_all() -> None:
    witness = Witness()
    for _ in range(2):
        witness.see(household("a"), payload(levels=4))
        witness.see(household("a"), payload(NEXT, levels=4, spent=True))
    assert witness.released_bits({}) == 2.0


def test_a_topic_of_its_own_is_counted_below_it() -> None:
    witness = Witness(topic="city/private")
    witness.see("city/private/household/a", payload(levels=8))
    witness.see("city/private/group/g", payload(reach=2))
    assert (witness.count("household"), witness.count("group")) == (1, 1)
    assert witness.released_bits({"g": ["a"]}) == microbits(9) / 1e6


@pytest.mark.parametrize("wrong", [b"", b"{", b"[]", b"{}", b"\xff"])
def test_what_is_no_release_is_an_error_and_never_counted(wrong: bytes) -> None:
    witness = Witness()
    with pytest.raises((ValueError, KeyError, TypeError)):
        witness.see(household("a"), wrong)
    assert witness.count("household") == 0


async def test_the_witness_hears_households_and_groups_through_a_broker(mosquitto: Mosquitto) -> None:
    witness, subscribed = Witness(), asyncio.Event()
    watching = asyncio.create_task(witness.watch(mosquitto.url, subscribed))
    await asyncio.wait_for(subscribed.wait(), 5)
    async with aiomqtt.Client("127.0.0.1", mosquitto.port, protocol=aiomqtt.ProtocolVersion.V5) as client:
        await client.publish("noiseless/state", b'{"state":"online"}', qos=1)
        for name in ("a", "b"):
            await client.publish(household(name), payload(), qos=1)
        await client.publish(group("g"), payload(reach=4), qos=1)
    async with asyncio.timeout(5):
        while len(witness.payloads) < 3:  # noqa: ASYNC110 - the witness sets no event
            await asyncio.sleep(0.01)
    watching.cancel()
    assert (witness.count("household"), witness.count("group")) == (2, 1)
