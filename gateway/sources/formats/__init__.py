"""Payload formats: bytes become documents in which a mapping looks up addresses."""

from __future__ import annotations

from collections.abc import Callable

from gateway.sources.formats import axdr, json, numbers, p1, senml
from gateway.sources.formats.births import Births
from gateway.sources.formats.csv import csv_format
from gateway.sources.formats.documents import EmptyPayload, Find, Format, FormatError, Measured, Snapshots
from gateway.sources.formats.numbers import number_of
from gateway.sources.formats.sparkplug import BirthNeeded, SparkplugDecoder, rebirth_request
from gateway.sources.formats.sparkplug import metric as sparkplug_metric

__all__ = [
    "FORMATS",
    "BirthNeeded",
    "Births",
    "EmptyPayload",
    "Find",
    "Format",
    "FormatError",
    "Measured",
    "Snapshots",
    "SparkplugDecoder",
    "format_named",
    "number_of",
    "rebirth_request",
    "sparkplug_metric",
]

FORMATS: dict[str, Callable[..., Format]] = {
    "json": lambda: json.FORMAT,
    "number": lambda: numbers.FORMAT,
    "csv": csv_format,
    "p1": lambda: p1.FORMAT,
    "senml": lambda: senml.FORMAT,
    "axdr": lambda: axdr.FORMAT,
}
"""The formats whose documents one payload makes. Sparkplug needs topics too: see SparkplugDecoder."""


def format_named(name: str, **options: str) -> Format:
    """Return a format.

    Args:
        name: one of FORMATS.
        options: ``separator`` for csv.

    Raises:
        ValueError: no format of that name, or an option's value is none.
        TypeError: an option that the format does not have.

    """
    if name not in FORMATS:
        raise ValueError(f"no such format: write one of {', '.join(FORMATS)}")
    return FORMATS[name](**options)
