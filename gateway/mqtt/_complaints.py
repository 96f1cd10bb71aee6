"""What the log says about a broker that is not there: loudly once, then one quiet line per attempt."""

import structlog

from gateway.mqtt._handshake import Refused
from gateway.mqtt._interface import Broker
from gateway.mqtt._link import TakenOver

log = structlog.get_logger()


class Complaints:
    """The log lines about one broker's connections."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._last = ""

    def about(self, cause: Exception, delay: float) -> None:
        """Say why there is no connection and that another is tried in `delay` seconds."""
        broker = self._broker
        event, loud, remedy = self._words(cause)
        what = f"{event} {cause}"
        if what == self._last:
            log.info(event, reason=str(cause), retry_s=round(delay, 1))
            return
        self._last = what
        say = log.error if loud else log.warning
        say(
            event,
            reason=str(cause),
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
        match cause:
            case TakenOver():
                other = f"another client uses client_id {self._broker.client_id!r}: stop it, or set another"
                return "session taken over", True, other
            case Refused():
                return "broker refused", True, cause.remedy
            case OSError():
                return (
                    "broker unreachable",
                    False,
                    "is the broker running, and is broker.url its host and port?",
                )
            case _:
                return "broker connection lost", False, "see the broker's log if this goes on"
