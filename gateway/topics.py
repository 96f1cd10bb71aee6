"""Topics that name what they are about: ``meters/{household}/reading``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

_CAPTURE = re.compile(r"\{([a-z][a-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class TopicTemplate:
    """A topic filter that may capture parts of levels.

    Attributes:
        filter: the MQTT topic filter to subscribe to.
        pattern: matches the topics, with a named group for each capture.

    """

    filter: str
    pattern: re.Pattern[str]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the template of a text.

        Raises:
            ValueError: a wildcard inside a level, ``#`` before the end, two captures in a level or of one name.

        """
        levels = text.split("/")
        names = _CAPTURE.findall(text)
        if not text or "\0" in text or len(names) > len(set(names)) or "#" in levels[:-1]:
            raise ValueError("a topic captures a name at most once, and has # only at its end")
        if text.startswith("$") and not text.startswith("$aws/"):
            raise ValueError("topics with $ are the broker's own, or a shared subscription")
        return cls("/".join(map(_filter_level, levels)), _pattern(levels))

    @property
    def captures(self) -> tuple[str, ...]:
        """The names of what the topic captures, in order."""
        return tuple(self.pattern.groupindex)

    def overlaps(self, prefix: str) -> bool:
        """Return whether a topic below ``prefix`` could match the filter."""
        pairs = zip(self.filter.split("/"), [*prefix.split("/"), None], strict=False)
        for wanted, given in pairs:
            if wanted == "#" or given is None:
                return True
            if wanted not in ("+", given):
                return False
        return False


def _filter_level(level: str) -> str:
    return "+" if _CAPTURE.search(level) else level


def _pattern(levels: list[str]) -> re.Pattern[str]:
    # "a/#" is also "a" itself (MQTT 4.7.1.2).
    open_ended = levels[-1] == "#"
    fixed = "/".join(map(_pattern_level, levels[:-1] if open_ended else levels))
    tail = ("(?:/.*)?" if len(levels) > 1 else ".*") if open_ended else ""
    return re.compile(fixed + tail, re.DOTALL)


def _pattern_level(level: str) -> str:
    if level == "+":
        return "[^/]*"
    before, *captured = _CAPTURE.split(level, maxsplit=1)
    after = captured[1] if captured else ""
    if any(c in before + after for c in "+#{}"):
        raise ValueError("+ and # stand alone in a level, which captures one {name} at most")
    inside = f"(?P<{captured[0]}>[^/]+)" if captured else ""
    return re.escape(before) + inside + re.escape(after)
