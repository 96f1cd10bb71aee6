"""The gateway's own link to a broker: MQTT 5 at QoS 1, acknowledged by hand, in batches."""

from gateway.mqtt._interface import (
    Broker,
    Message,
    Publication,
    PublishRefused,
    SessionClosed,
    SessionTakenOver,
)
from gateway.mqtt.session import Session

__all__ = [
    "Broker",
    "Message",
    "Publication",
    "PublishRefused",
    "Session",
    "SessionClosed",
    "SessionTakenOver",
]
