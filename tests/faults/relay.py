"""A bad network: a TCP relay on loopback that cuts, delays, throttles and falls silent when told to."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from faults.wiretap import Wiretap

_AT_ONCE = 16_384


class Relay:
    """Passes connections on to `upstream`, a loopback port, while `open`."""

    def __init__(self, upstream: int) -> None:
        self.upstream = upstream
        self.tap = Wiretap()
        self.delay = 0.0
        """Seconds that each piece waits, in both directions."""
        self.bytes_per_s = 0.0
        """Bytes a second that pass in each direction; 0 for any number."""
        self.open = True
        self.connections = 0
        self.port = 0
        self._passing = asyncio.Event()
        self._passing.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._stranded: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    def cut(self) -> None:
        """Break every connection, for both sides to see."""
        for writer in self._writers:
            writer.transport.abort()

    def silence(self) -> None:
        """Half-open: everything stays connected and nothing arrives any more."""
        self._passing.clear()

    def resume(self) -> None:
        """Let what waited arrive."""
        self._passing.set()

    def strand(self) -> None:
        """Swallow everything on the connections there are, for ever, and tell neither side."""
        self._stranded |= self._writers

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if not self.open:
                return
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.upstream)
        except OSError:
            return
        else:
            self.connections += 1
            await self._pass(reader, writer, up_reader, up_writer)
        finally:
            writer.transport.abort()

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        up_reader: asyncio.StreamReader,
        up_writer: asyncio.StreamWriter,
    ) -> None:
        ends = {writer, up_writer}
        self._writers |= ends
        from_gateway, from_broker = self.tap.connection()
        ways = [
            asyncio.create_task(self._one_way(reader, up_writer, from_gateway)),
            asyncio.create_task(self._to_gateway(up_reader, writer, from_broker)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            up_writer.close()
        finally:
            self._writers -= ends
            self._stranded -= ends
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _one_way(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hear: Callable[[bytes], None]
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(_AT_ONCE):
                hear(data)
                if writer in self._stranded:
                    continue
                await self._passing.wait()
                await asyncio.sleep(self.delay + (len(data) / self.bytes_per_s if self.bytes_per_s else 0))
                writer.write(data)
                await writer.drain()

    async def _to_gateway(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hear: Callable[[bytes], None]
    ) -> None:
        await self._one_way(reader, writer, hear)
        if writer in self._stranded:
            await asyncio.Event().wait()  # the gateway must find out by itself

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.resume()
        self.cut()
        await self._server.wait_closed()
