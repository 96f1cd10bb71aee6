"""The gateway's own link to a broker: MQTT 5 at QoS 1, acknowledged by hand, in batches."""

from gateway.mqtt._interface import (
    Broker,
    Message,
    Publication,
    PublishRefused,
    SessionClosed,
    SessionTakenOver,
)
from gateway.mqtt._tls import CredentialsError, TlsFiles
from gateway.mqtt.session import Session

__all__ = [
    "Broker",
    "CredentialsError",
    "Message",
    "Publication",
    "PublishRefused",
    "Session",
    "SessionClosed",
    "SessionTakenOver",
    "TlsFiles",
]
