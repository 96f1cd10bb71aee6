"""What callers hand over and get back: broker address, messages, publications and errors."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from gateway.mqtt._tls import TlsFiles, readable


@dataclass(frozen=True, slots=True)
class Broker:
    """Where the broker is, who we are there, and what we ask it to keep for us.

    `client_id` names the session that the broker keeps while we are away, so it must be fixed and unique.
    The files are read for each connection. `table` names the configuration's table in what we say.
    """

    host: str
    port: int
    client_id: str
    username: str | None = None
    password_file: Path | None = None
    """A file that holds the password, and perhaps a line end."""
    tls: TlsFiles | None = None
    """None speaks plain TCP."""
    table: str = "broker"
    keep_alive: int = 30
    """Seconds without traffic after which we ping; 0 never pings."""
    session_expiry: int = 7 * 86_400
    """Seconds the broker keeps our session and its queue while we are away."""
    receive_maximum: int = 8_192
    """Unacknowledged QoS 1 input at which the broker is asked to stop (1 to 65,535)."""

    def __post_init__(self) -> None:
        if not self.client_id:
            raise ValueError("client_id is empty: a random id would never find its session again, so set one")
        if not 1 <= self.receive_maximum <= 65_535:  # noqa: PLR2004 - MQTT 5, 3.1.2.11.3
            raise ValueError(f"receive_maximum is {self.receive_maximum}: set a number from 1 to 65535")

    def password(self) -> bytes | None:
        """Return what the password's file holds now. Raises `CredentialsError`."""
        if self.password_file is None:
            return None
        return readable("password_file", self.password_file).rstrip(b"\r\n")


class Message(NamedTuple):
    """One application message as it arrived; `retained` is its RETAIN flag."""

    topic: str
    payload: bytes
    retained: bool


class Publication(NamedTuple):
    """One application message to publish at QoS 1."""

    topic: str
    payload: bytes
    retain: bool = False


class SessionTakenOver(Exception):  # noqa: N818 - a state of affairs, named as the standard names it
    """Another client keeps connecting with our client id, so neither can work."""

    def __init__(self, client_id: str) -> None:
        super().__init__(
            f"another client keeps taking over the session {client_id!r}: stop it, or set another client_id"
        )
        self.client_id = client_id


class SessionClosed(Exception):  # noqa: N818
    """The session has ended (`stop()` was called or `run()` failed); what was waited for will not come."""


class PublishRefused(Exception):  # noqa: N818
    """The broker did not take some publications of a call; the others of the call were delivered.

    `topic` and `reason` (an MQTT 5 reason code) are the first refusal's; `refused` are all that were not
    taken, in order, to be published again later.
    """

    def __init__(self, topic: str, reason: int, refused: tuple[Publication, ...]) -> None:
        super().__init__(
            f"the broker refused {len(refused)} publication(s), the first on {topic!r} with reason"
            f" 0x{reason:02x} ({REASONS.get(reason, 'unknown')})"
        )
        self.topic = topic
        self.reason = reason
        self.refused = refused


REASONS = {
    0x80: "unspecified error",
    0x83: "implementation specific error",
    0x87: "not authorized: check the broker's access rules for this topic",
    0x90: "topic name invalid",
    0x91: "packet identifier in use",
    0x95: "packet larger than the broker accepts",
    0x97: "quota exceeded",
    0x99: "payload format invalid",
}
