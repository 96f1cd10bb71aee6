"""From a payload's bytes to a document: what a bridge did is undone, then the format's parser reads it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence

from gateway.sources.formats import BirthNeeded, EmptyPayload, FormatError
from gateway.sources.readings import Reason, RejectedError

_FLAG = b"\x7e"


class RebirthWantedError(RejectedError):
    """Data of a Sparkplug node whose birth we missed; it can be asked for another.

    Attributes:
        group: of the node.
        node: its name.

    """

    def __init__(self, group: str, node: str) -> None:
        super().__init__(Reason.BIRTH_NEEDED)
        self.group = group
        self.node = node


def parser_after(parse: Callable[[bytes], object], names: Sequence[str] = ()) -> Callable[[bytes], object]:
    """Return a parser that first takes the named steps; it raises RejectedError and nothing else."""
    steps = [_STEPS[name] for name in names]

    def parsed(payload: bytes) -> object:
        try:
            for step in steps:
                payload = step(payload)
            return parse(payload)
        except EmptyPayload:
            raise RejectedError(Reason.EMPTY) from None
        except BirthNeeded as error:
            raise RebirthWantedError(error.group, error.node) from None
        except (FormatError, ValueError):
            raise RejectedError(Reason.UNDECODABLE) from None

    return parsed


def _unhexed(payload: bytes) -> bytes:
    return bytes.fromhex(payload.decode("ascii"))


def _unbased(payload: bytes) -> bytes:
    return base64.b64decode(b"".join(payload.split()), validate=True)


def _cut(payload: bytes) -> bytes:
    first, last = payload.find(_FLAG), payload.rfind(_FLAG)
    if first == last:
        raise FormatError("no frame between two bytes 7E")
    return payload[first : last + 1]


_STEPS = {"hex": _unhexed, "base64": _unbased, "cut7e": _cut}
