"""Topics with the household in them: ``meters/{household}/reading``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

_CAPTURE = "{household}"


@dataclass(frozen=True, slots=True)
class TopicTemplate:
    """A topic filter that may name the household in one level.

    Attributes:
        filter: the MQTT topic filter to subscribe to.
        pattern: matches the topics, with the household as its group, if it names one.

    """

    filter: str
    pattern: re.Pattern[str]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the template of a text.

        Raises:
            ValueError: a wildcard inside a level, ``#`` before the end, an unknown or repeated capture.

        """
        levels = text.split("/")
        if not text or "\0" in text or text.count(_CAPTURE) > 1 or "#" in levels[:-1]:
            raise ValueError("a topic names {household} at most once, and # only at its end")
        if text.startswith("$"):
            raise ValueError("topics with $ are the broker's own, or a shared subscription")
        return cls("/".join(map(_filter_level, levels)), _pattern(levels))

    @property
    def captures(self) -> bool:
        """Whether the topic names the household."""
        return self.pattern.groups == 1

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
    if _CAPTURE in level:
        return "+"
    return level


def _pattern(levels: list[str]) -> re.Pattern[str]:
    # "a/#" is also "a" itself (MQTT 4.7.1.2).
    open_ended = levels[-1] == "#"
    fixed = "/".join(map(_pattern_level, levels[:-1] if open_ended else levels))
    tail = ("(?:/.*)?" if len(levels) > 1 else ".*") if open_ended else ""
    return re.compile(fixed + tail, re.DOTALL)


def _pattern_level(level: str) -> str:
    if level == "+":
        return "[^/]*"
    before, found, after = level.partition(_CAPTURE)
    for part in (before, after):
        if any(c in part for c in "+#{}"):
            raise ValueError("+ and # stand alone in a level, and the only capture is {household}")
    return re.escape(before) + ("([^/]+)" if found else "") + re.escape(after)
