"""How long to wait before the next connection."""

from secrets import SystemRandom

FIRST = 0.5
"""Seconds to wait at most after the first failure; doubled with each further one."""
CEILING = 30.0
"""Seconds to wait at most, however many failures."""
STABLE = 30.0
"""Seconds a connection must last to count as a success: brokers also accept clients they then throw out."""

_random = SystemRandom()


class Backoff:
    """Exponential delays with jitter, so that a fleet does not come back in one instant."""

    def __init__(self) -> None:
        self.failures = 0

    def after(self, lasted: float) -> float:
        """Return the seconds to wait after a connection that lasted `lasted` seconds (0: none was made)."""
        if lasted >= STABLE:
            self.failures = 0
        delay = min(CEILING, FIRST * (1 << min(self.failures, 16)))
        self.failures += 1
        return delay * _random.uniform(0.5, 1.0)
