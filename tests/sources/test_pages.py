"""The pages on sources: every configuration in them is good, and reads the message beside it as they say."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from gateway.checking import validated
from gateway.presets import PRESETS
from gateway.sources.trial import Outcome, Trial

README = Path(__file__).parents[2] / "docs" / "sources" / "README.md"
PAGES = sorted(README.parent.glob("*.md"))
_SECTION = re.compile(r"```toml\n(.*?)```(.*?)(?=```toml|\Z)", re.DOTALL)
_SAMPLE = re.compile(
    r"^`([^`\n]+)`\n\n```(json|text|hex)\n(.*?)```\n\n((?:^→ [^\n]*\n)+)", re.DOTALL | re.MULTILINE
)
_READING = re.compile(r"→ `(.*?)`, (\w+), (-?[\d.]+) (Wh|W)(?:, at (\S+))?")


class Sample(NamedTuple):
    """A message on a page, and what stands below it."""

    topic: str
    payload: bytes
    readings: list[tuple[str, ...]]


class Block(NamedTuple):
    """A configuration on a page, and the messages after it."""

    page: str
    source: str
    samples: list[Sample]


def blocks() -> Iterator[Block]:
    for page in PAGES:
        for source, text in _SECTION.findall(page.read_text()):
            yield Block(page.name, source, [sample(*found) for found in _SAMPLE.findall(text)])


def sample(topic: str, kind: str, payload: str, told: str) -> Sample:
    octets = bytes.fromhex(payload) if kind == "hex" else payload.rstrip("\n").encode()
    return Sample(topic, octets, _READING.findall(told))


BLOCKS = list(blocks())


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block.page}: {block.source[:60]}")
def test_a_configuration_on_a_page_is_good_and_reads_the_message_beside_it(block: Block) -> None:
    meters = {reading[0] for one in block.samples for reading in one.readings} or {"h-001"}
    roll = [{"id": meter} for meter in sorted(meters)]
    trial = Trial(validated({**tomllib.loads(block.source), "household": roll}))
    for one in block.samples:
        found = trial.outcomes(one.topic, one.payload)
        assert [written(outcome) for outcome in found] == [
            ("accept", meter, quantity, float(value), unit, time or None)
            for meter, quantity, value, unit, time in one.readings
        ]


def written(outcome: Outcome) -> tuple[object, ...]:
    return outcome[:6]


def test_the_pages_have_messages_for_most_of_their_configurations() -> None:
    assert len(BLOCKS) >= 35
    assert sum(bool(block.samples) for block in BLOCKS) >= len(BLOCKS) - 3
    assert all(one.readings for block in BLOCKS for one in block.samples)


def test_every_arrow_of_a_page_stands_below_a_message() -> None:
    arrows = sum(page.read_text().count("→ `") for page in PAGES)
    assert arrows == sum(len(one.readings) for block in BLOCKS for one in block.samples)


def needed(preset: str) -> list[str]:
    """Return the fields that a preset leaves to its user."""
    given = PRESETS[preset]
    said = {"number": {"value"}, "p1": {"unit"}, "senml": {"unit"}}.get(given.get("format", "json"), set())
    return [name for name in ("topic", "value", "unit", "quantity") if name not in {*given, *said}]


def test_the_table_of_presets_says_what_each_leaves_to_its_user() -> None:
    rows = re.findall(
        r"^\| \[`([\w-]+)`\]\(([\w-]+\.md)\) \| (\w+) \| (.*) \|$", README.read_text(), re.MULTILINE
    )
    assert [name for name, *_ in rows] == list(PRESETS)
    for name, page, quantity, wanted in rows:
        assert quantity == PRESETS[name].get("quantity", "yours")
        assert re.findall(r"`(\w+)`", wanted) == needed(name)
        family = (README.parent / page).read_text()
        assert name.removesuffix("-power") in family, name


def test_every_preset_that_a_page_uses_exists() -> None:
    text = "\n".join(page.read_text() for page in PAGES)
    assert set(re.findall(r'preset = "([\w-]+)"', text)) <= set(PRESETS)
