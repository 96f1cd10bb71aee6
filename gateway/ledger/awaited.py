"""The ledger in a thread of its own, for the event loop; it insists until the disk gives in."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

import structlog

from gateway.ledger._file import LedgerError

_RETRY_S = 5.0
_log = structlog.get_logger()
_P = ParamSpec("_P")
_T = TypeVar("_T")


class LedgerThread:
    """Runs the ledger's methods one after another.

    Args:
        took: is told how long each call took (s).

    """

    def __init__(self, took: Callable[[float], None]) -> None:
        self._thread = ThreadPoolExecutor(1, "ledger")
        self._took = took
        self._failing = 0

    @property
    def writable(self) -> bool:
        """Whether no call waits for the ledger to work again."""
        return self._failing == 0

    async def call(self, method: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Return what a method of the ledger returns.

        Raises:
            LedgerError: as the method.

        """
        began = time.perf_counter()
        loop = asyncio.get_running_loop()
        result = await loop.run_in_executor(self._thread, lambda: method(*args, **kwargs))
        self._took(time.perf_counter() - began)
        return result

    async def insist(self, method: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Return what a method of the ledger returns, trying again until it succeeds.

        Meanwhile nothing that waits for it is released or acknowledged.

        Raises:
            LedgerError: it will never succeed, as a second charge for a slot.

        """
        failing = False
        try:
            while True:
                try:
                    return await self.call(method, *args, **kwargs)
                except LedgerError as error:
                    if error.fatal:
                        raise
                    if not failing:
                        _log.error(
                            "ledger fails, nothing is released", problem=error.problem, remedy=error.remedy
                        )
                        failing = True
                        self._failing += 1
                await asyncio.sleep(_RETRY_S)
        finally:
            if failing:
                self._failing -= 1
                if self.writable:
                    _log.info("ledger works again")

    def shutdown(self) -> None:
        """End the thread after the call that runs."""
        self._thread.shutdown()
