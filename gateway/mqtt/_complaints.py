"""What the log says about a broker that is not there: loudly once, then one quiet line per attempt."""

from ssl import SSLError

import structlog

from gateway.mqtt._backoff import STABLE
from gateway.mqtt._connection import ConnectionLost
from gateway.mqtt._handshake import Refused
from gateway.mqtt._interface import Broker
from gateway.mqtt._link import TakenOver, Unanswered
from gateway.mqtt._tls import CredentialsError, tls_remedy

SUSPICIOUS = 3
"""Connections in a row that the broker accepted and soon closed."""

log = structlog.get_logger()


class Complaints:
    """The log lines about one broker's connections."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._last = ""
        self._cut_short = 0

    def about(self, cause: Exception, *, lasted: float, delay: float) -> None:
        """Say why a connection ended that was ready for `lasted` s; the next is tried in `delay` s."""
        broker = self._broker
        self._cut_short = self._cut_short + 1 if 0 < lasted < STABLE else 0
        event, loud, remedy = self._words(cause)
        reason = str(cause) or type(cause).__name__
        what = f"{event} {reason}"
        if what == self._last:
            log.info(event, reason=reason, retry_s=round(delay, 1))
            return
        self._last = what
        say = log.error if loud else log.warning
        say(
            event,
            reason=reason,
            host=broker.host,
            port=broker.port,
            remedy=remedy,
            retry_s=round(delay, 1),
        )

    def settled(self, *, connections: int, resumed: bool) -> None:
        """Say that the connection is up, and whether the broker had kept our session."""
        self._last = ""
        log.info("broker connected", host=self._broker.host, port=self._broker.port, resumed=resumed)
        if connections > 1 and not resumed:
            log.warning(
                "broker lost our session",
                remedy="what it held for us is gone: see the broker's persistence and session expiry",
            )

    def _words(self, cause: Exception) -> tuple[str, bool, str]:
        """Return the event, whether it is an error, and what to do."""
        table = self._broker.table
        other = f"another client uses client_id {self._broker.client_id!r}: stop it, or set another"
        match cause:
            case TakenOver():
                words = "session taken over", True, other
            case Refused():
                words = "broker refused", True, cause.remedy
            case CredentialsError():
                words = "credentials unusable", True, f"{table}.{cause.field}: {cause.remedy}"
            case SSLError() as error:
                words = "TLS failed", True, tls_remedy(error, table)
            case ConnectionLost(__cause__=SSLError() as error):
                words = "TLS failed", True, tls_remedy(error, table)
            case Unanswered() | ConnectionResetError():
                words = "broker does not answer", False, self._unanswered()
            case OSError():
                remedy = f"is the broker running, and is {table}.url its host and port?"
                words = "broker unreachable", False, remedy
            case _ if self._cut_short >= SUSPICIOUS:
                # mosquitto 2.0 closes without a word when a session is taken over
                words = "broker keeps cutting us off", True, f"see the broker's log; perhaps {other}"
            case _:
                words = "broker connection lost", False, "see the broker's log if this goes on"
        return words

    def _unanswered(self) -> str:
        """Return what to do when TCP, and perhaps TLS, stood and nothing came."""
        table = self._broker.table
        if self._broker.tls is None:
            return f"is it the port of an MQTT broker? for a TLS port write mqtts:// into {table}.url"
        return (
            f"if the port speaks no TLS, write mqtt:// into {table}.url, or the TLS port, usually 8883; else see"
            f" the broker's log: perhaps it wants another certificate in {table}.cert_file"
        )
