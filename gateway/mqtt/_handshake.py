"""The words of CONNECT and SUBSCRIBE, and what to do when the broker refuses them."""

from collections.abc import Sequence

from mqtt5 import (
    ConnAckPacket,
    ConnectPacket,
    QoS,
    RetainHandling,
    SubAckPacket,
    SubscribePacket,
    TopicFilter,
    UnsubscribePacket,
    Will,
)

from gateway.mqtt._connection import ConnectionLost
from gateway.mqtt._decoder import MAX_PACKET
from gateway.mqtt._flight import LARGEST_ID
from gateway.mqtt._interface import Broker, Publication

SUBSCRIBE_ID = LARGEST_ID + 1

_FAILURE = 0x80

_REMEDIES = {
    0x84: "the broker does not speak MQTT 5: enable it there, or use a broker that does",
    0x85: "the broker does not accept {t}.client_id: set another",
    0x86: "check {t}.username and {t}.password_file",
    0x87: "check {t}.username and the broker's access rules for {t}.client_id",
    0x8A: "this client is banned: ask the broker's operator about {t}.client_id",
    0x8C: "the broker wants another way to authenticate than {t}.username and {t}.password_file",
    0x90: "check output.topic: the broker does not accept the will's topic",
    0x95: "the broker's maximum packet size is too small for CONNECT",
    0x9A: "the broker has retained messages switched off; the state topic needs them",
    0x9B: "the broker does not offer QoS 1; use one that does",
    0x9C: "check {t}.url: the broker says to use another server",
    0x9D: "check {t}.url: the broker has moved",
}


class Refused(ConnectionLost):
    """The broker said no: to CONNECT, or to a subscription."""

    def __init__(self, what: str, reason: int, remedy: str) -> None:
        super().__init__(f"{what}: reason 0x{reason:02x}")
        self.what = what
        self.reason = reason
        self.remedy = remedy


def connect_packet(
    broker: Broker, password: bytes | None, will: Publication | None, will_delay: int
) -> ConnectPacket:
    """Return the CONNECT that resumes our session, or starts it; `will_delay` in seconds."""
    return ConnectPacket(
        broker.client_id,
        username=broker.username,
        password=password,
        clean_start=False,
        will=None if will is None else _will(will, will_delay),
        keep_alive=broker.keep_alive,
        session_expiry_interval=broker.session_expiry,
        receive_max=broker.receive_maximum,
        max_packet_size=MAX_PACKET,
    )


def _will(will: Publication, delay: int) -> Will:
    return Will(
        will.topic, payload=will.payload, qos=QoS.AT_LEAST_ONCE, retain=True, will_delay_interval=delay
    )


def check_connack(connack: ConnAckPacket, table: str) -> None:
    """Raise `Refused` if the broker, which `table` configures, did not accept the connection."""
    reason = int(connack.reason_code)
    if reason >= _FAILURE:
        remedy = _REMEDIES.get(reason, "see the broker's log").format(t=table)
        raise Refused(f"connection refused ({connack.reason_code.name.lower()})", reason, remedy)


def subscribe_packet(filters: Sequence[str], fence_topic: str | None) -> SubscribePacket:
    """Return the SUBSCRIBE for all `filters` and the fence, if there is one.

    Retained messages come with a new subscription only: what changed while we were away is in the queue. Only
    these carry the flag: many meters retain all they say, and what they say now is as live as any other.
    """
    inputs = [
        TopicFilter(
            pattern,
            max_qos=QoS.AT_LEAST_ONCE,
            no_local=_no_local(pattern, fence_topic),
            retain_as_published=False,
            retain_handling=RetainHandling.SEND_IF_SUBSCRIPTION_NOT_EXISTS,
        )
        for pattern in filters
    ]
    fence = [
        TopicFilter(
            topic, max_qos=QoS.AT_LEAST_ONCE, no_local=False, retain_handling=RetainHandling.SEND_NEVER
        )
        for topic in _given(fence_topic)
    ]
    return SubscribePacket(SUBSCRIBE_ID, [*inputs, *fence])


def unsubscribe_packet(filters: Sequence[str]) -> UnsubscribePacket:
    """Return the UNSUBSCRIBE for filters that left the configuration: the broker keeps them in our session."""
    return UnsubscribePacket(SUBSCRIBE_ID, list(filters))


def check_suback(suback: SubAckPacket, filters: Sequence[str], fence_topic: str | None) -> None:
    """Raise `Refused` for the first filter that was not granted."""
    asked = [*filters, *_given(fence_topic)]
    for pattern, code in zip(asked, suback.reason_codes, strict=False):
        reason = int(code)  # the codec's enumerations do not compare with numbers
        if reason >= _FAILURE:
            what = f"subscription to {pattern!r} refused ({code.name.lower()})"
            raise Refused(what, reason, "check the broker's access rules and source.topic")
    if len(suback.reason_codes) != len(asked):
        raise ConnectionLost("the broker answered another number of subscriptions than were asked for")


def _given(fence_topic: str | None) -> list[str]:
    return [] if fence_topic is None else [fence_topic]


def _no_local(pattern: str, fence_topic: str | None) -> bool:
    """Whether our own publications can be kept out: not on shared subscriptions, not if the fence matches."""
    if pattern.startswith("$share/"):
        return False
    return fence_topic is None or not _matches(pattern.split("/"), fence_topic.split("/"))


def _matches(pattern: Sequence[str], topic: Sequence[str]) -> bool:
    for place, level in enumerate(pattern):
        if level == "#":
            return True
        if place >= len(topic) or level not in ("+", topic[place]):
            return False
    return len(pattern) == len(topic)
