"""From the configuration to the meters: each has one source, which says what its readings mean."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gateway.config import Config
from gateway.meters import Meters, Quantity
from gateway.policy import members_of
from gateway.privacy import IntArray
from gateway.roll import meters_of
from gateway.source_table import SourceTable

_QUANTITIES = {"interval": Quantity.INTERVAL, "power": Quantity.POWER, "register": Quantity.REGISTER}
_HALF = 2


class Metering(NamedTuple):
    """The meters, and which of them each source speaks for.

    Attributes:
        meters: all of them.
        served: by source, the positions of its meters.

    """

    meters: Meters
    served: tuple[tuple[int, ...], ...]


def metering_of(config: Config) -> Metering:
    """Return the meters of a configuration that :mod:`gateway.checking` found good."""
    ids, household = meters_of(config)
    served = tuple(members_of(patterns_of(source), ids) for source in config.source)
    slot_ms = config.slots.length
    # A meter that no source speaks for is silent, whatever it counts as.
    columns = np.tile(np.array([Quantity.INTERVAL, slot_ms, slot_ms, 1, 0, 0])[:, None], len(ids))
    for source, places in zip(config.source, served, strict=True):
        columns[:, list(places)] = np.array(_facts(source, slot_ms), np.int64)[:, None]
    return Metering(_meters(ids, household, columns), served)


def patterns_of(source: SourceTable) -> list[str]:
    """Return which meters a source speaks for: the one it names, else what its patterns match."""
    constants = [text[1:] for text in source.meter if text.startswith("=")]
    return constants if constants and len(constants) == len(source.meter) else source.meters


def _facts(source: SourceTable, slot_ms: int) -> tuple[int, ...]:
    interval = source.quantity == "interval"
    return (
        _QUANTITIES[source.quantity],
        (source.interval or slot_ms) if interval else 0,
        source.gap or slot_ms // _HALF,
        source.limit,
        source.modulus or 0,
        source.gaps == "spread",
    )


def _meters(ids: list[str], household: list[int], columns: IntArray) -> Meters:
    quantity, span, gap, limit, modulus, spread = columns
    return Meters(
        tuple(ids),
        np.array(household, np.int64),
        quantity,
        span,
        gap,
        limit,
        modulus,
        spread.astype(np.bool_),
    )
