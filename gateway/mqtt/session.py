"""The gateway's link to a broker: one MQTT 5 session, over as many connections as it takes."""

import asyncio
from collections.abc import Callable, Sequence

import structlog

from gateway.mqtt._backoff import STABLE, Backoff
from gateway.mqtt._complaints import Complaints
from gateway.mqtt._connection import ConnectionLost
from gateway.mqtt._flight import Flight
from gateway.mqtt._inbox import Inbox
from gateway.mqtt._interface import Broker, Message, Publication, SessionClosed, SessionTakenOver
from gateway.mqtt._link import DeliveryFailed, Link, TakenOver, Terms
from gateway.mqtt._tls import CredentialsError
from gateway.mqtt._window import Window

TAKEOVERS = 5
"""Take-overs in a row, without a stable connection between, after which `run()` gives up."""
LONGEST_TOPIC = 65_535
"""Bytes of UTF-8, by the standard."""

log = structlog.get_logger()


class Session:
    """Receives batches of messages, acknowledges them when told to, and publishes, all at QoS 1.

    `filters` are subscribed on every connection. `deliver(messages, sequence)` is called once per read of
    the socket with everything in it, in order; `sequence` numbers its last message and grows over the whole
    life of the session. The list can be empty: the number still wants acknowledging. `deliver` must not
    block; if it raises, that is a bug: the connection is cut and `run()` raises the exception.

    `birth` is published, retained, on every connection; `will` by the broker, retained, `will_delay` seconds
    after we vanish, and by `stop()`. `fence_topic` must be ours alone; without one there is nothing to catch
    up with.

    `former` filters, which the broker may still hold in our session, are unsubscribed on every connection.

    A session runs once. Use all methods from the thread of the event loop that runs it.
    """

    def __init__(
        self,
        broker: Broker,
        *,
        filters: Sequence[str],
        deliver: Callable[[Sequence[Message], int], None],
        birth: Publication | None = None,
        will: Publication | None = None,
        will_delay: int = 30,
        fence_topic: str | None = None,
        former: Sequence[str] = (),
    ) -> None:
        self._terms = Terms(
            broker, tuple(filters), deliver, birth, will, will_delay, fence_topic, tuple(former)
        )
        self._inbox = Inbox(broker.receive_maximum)
        self._window = Window(broker.receive_maximum)
        self._flight = Flight()
        self._link: Link | None = None
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._stopping = False
        self._closed = False
        self._late = False
        self._malformed = 0
        self.connections = 0
        """How often the broker accepted us."""

    @property
    def ready(self) -> bool:
        """Connected, and every filter granted."""
        return self._link is not None and self._link.ready_at is not None

    @property
    def unacknowledged(self) -> int:
        """Messages delivered on this connection and not acknowledged."""
        return len(self._inbox)

    @property
    def window(self) -> int:
        """Unacknowledged messages at which the broker stops: what we asked for, or less if it showed so."""
        return self._window.size

    @property
    def malformed(self) -> int:
        """PUBLISH packets that could not be understood, or were too large, and were skipped."""
        return self._malformed + (self._link.malformed if self._link is not None else 0)

    async def run(self) -> None:
        """Connect, serve and reconnect until `stop()`.

        Raises `SessionTakenOver`, and whatever `deliver` raised.
        """
        if self._task is not None:
            raise RuntimeError("a session runs once: make a new one")
        self._task = asyncio.create_task(self._reconnect())
        if self._stopping:
            self._task.cancel()
        try:
            await self._task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if not self._stopping or (current is not None and current.cancelling()):
                raise
        finally:
            self._end()

    async def stop(self) -> None:
        """Publish the farewell, disconnect, and let `run()` return; the broker keeps our session."""
        self._stopping = True
        if self._task is None or self._task.done():
            return
        if self._link is not None and self.ready:
            await self._link.farewell()
        else:
            self._task.cancel()
        await asyncio.wait((self._task,))

    def acknowledge(self, sequence: int) -> None:
        """Acknowledge everything delivered up to and including `sequence`.

        What an earlier connection delivered is passed over: the broker will deliver it again.
        Raises `ValueError` for a number that was never delivered.
        """
        before = len(self._inbox)
        pubacks = self._inbox.acknowledge(sequence)
        if before != len(self._inbox) and self._link is not None:
            self._window.acknowledged(before, asyncio.get_running_loop().time())
            self._link.acknowledge(pubacks)

    async def publish(self, publications: Sequence[Publication]) -> None:
        """Publish all at QoS 1, in order; returns when the broker has taken every one, over reconnects.

        Raises `PublishRefused` when all are settled and the broker did not take some, `ValueError` (before
        anything is sent) for a topic that cannot be published to, `SessionClosed` when the session ended.
        """
        if self._closed:
            raise SessionClosed("the session has ended; nothing was published")
        for publication in publications:
            _check_topic(publication.topic)
        if not publications:
            return
        call = self._flight.submit(publications)
        if self._link is not None:
            self._link.pump()
        try:
            await call.done
        except asyncio.CancelledError:
            self._flight.withdraw(call)
            raise

    async def wait_ready(self) -> None:
        """Wait until `ready`. Raises `SessionClosed`."""
        while not self.ready:
            await self._change()

    def fence(self) -> None:
        """Let `wait_caught_up` wait anew, for what the broker holds for us now. Every connection begins so."""
        if self._link is not None and self.ready:
            self._link.fence()

    async def wait_caught_up(self, timeout: float) -> None:  # noqa: ASYNC109 - returns, never raises, when it passes
        """Wait until the broker has delivered what it held for us when this connection, or `fence()`, began.

        Returns also, with a warning in the log, `timeout` seconds after that. When the connection is lost it
        waits for the next one. Raises `SessionClosed`.
        """
        while True:
            await self.wait_ready()
            link = self._link
            assert link is not None
            remaining = link.fenced_from + timeout - asyncio.get_running_loop().time()
            fenced = link.fenced
            if remaining > 0:
                await asyncio.wait((fenced,), timeout=remaining)
            if fenced.cancelled():
                continue
            if not fenced.done() and not self._late:
                self._late = True
                log.warning("backlog not drained in time", waited_s=timeout, remedy="raise slots.catch_up")
            return

    async def _change(self) -> None:
        if self._closed:
            raise SessionClosed("the session has ended")
        await self._changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _reconnect(self) -> None:
        backoff, complaints, takeovers = Backoff(), Complaints(self._terms.broker), 0
        while True:
            link = self._link = Link(self._terms, self._inbox, self._window, self._flight)
            try:
                cause = await self._serve(link, complaints)
            finally:
                self._drop(link)
            if cause is None or self._stopping:
                return
            lasted = link.lasted
            takeovers = (takeovers if lasted < STABLE else 0) + isinstance(cause, TakenOver)
            if takeovers >= TAKEOVERS:
                raise SessionTakenOver(self._terms.broker.client_id)
            delay = backoff.after(lasted)
            complaints.about(cause, lasted=lasted, delay=delay)
            await asyncio.sleep(delay)

    async def _serve(self, link: Link, complaints: Complaints) -> Exception | None:
        """Serve one connection to its end and return the cause; None if we closed it."""
        try:
            await link.connect()
            self.connections += 1
            await link.subscribe()
            complaints.settled(connections=self.connections, resumed=link.resumed)
            self._notify()
            await link.serve()
        except DeliveryFailed as failed:
            log.error("message handler failed", error=type(failed.error).__name__)  # noqa: TRY400 - may quote data
            raise failed.error from None
        except (ConnectionLost, CredentialsError, OSError) as cause:
            return cause
        return None

    def _drop(self, link: Link) -> None:
        link.abort()
        self._link = None
        self._malformed += link.malformed
        self._inbox.forget()
        self._flight.lost()

    def _end(self) -> None:
        self._closed = True
        self._flight.fail(SessionClosed("the session ended before the broker took every publication"))
        self._notify()


def _check_topic(topic: str) -> None:
    if not topic or "+" in topic or "#" in topic or "\0" in topic or len(topic.encode()) > LONGEST_TOPIC:
        raise ValueError(
            f"{topic!r} cannot be published to: it is empty, too long, or has one of + # NUL in it"
        )
