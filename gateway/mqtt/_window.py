"""How much unacknowledged input the broker really allows, when that is less than it was asked for.

Some brokers stop at a limit of their own. Then input falls silent until something is acknowledged, and bursts
at once after it: that pattern gives the limit away, and whoever commits at half the window can do so in time.
"""

SILENCE = 0.1
"""Seconds without input before an acknowledgement that make it look awaited."""
PROMPT = 0.05
"""Seconds within which the broker answers an awaited acknowledgement with more input."""
SMALLEST = 8
"""Fewer messages than this tell nothing: meters are that quiet by themselves."""


class Window:
    """The input window in force: `asked` until the broker has shown a smaller one."""

    def __init__(self, asked: int) -> None:
        self.size = asked
        self._asked = asked
        self._last_arrival = 0.0
        self._awaited = 0  # unacknowledged messages when the broker seemed to wait
        self._acknowledged_at = 0.0

    def arrived(self, count: int, unacknowledged: int, now: float) -> None:
        """Note a read of `count` messages at `now` (s); `unacknowledged` includes them."""
        self._last_arrival = now
        if self._awaited and now - self._acknowledged_at < PROMPT and 2 * count >= self._awaited:
            self.size = min(self._asked, self._awaited)
        self._awaited = 0
        if unacknowledged > self.size:
            self.size = self._asked

    def acknowledged(self, unacknowledged: int, now: float) -> None:
        """Note an acknowledgement at `now` (s); `unacknowledged` is the number before it."""
        waited = unacknowledged >= SMALLEST and now - self._last_arrival >= SILENCE
        self._awaited = unacknowledged if waited else 0
        self._acknowledged_at = now
