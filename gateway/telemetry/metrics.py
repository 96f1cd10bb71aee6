"""Metrics in two registries: public ones, of counts and configuration only, and the operator's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import version
from typing import NamedTuple

import numpy as np
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from gateway.privacy import CapacityBound, IntArray

_MOST_CLASSES = 100
_OTHER = "other"
_REMAINING = np.arange(0, 11) / 10


class Bounds(NamedTuple):
    """What the public may know after a slot.

    Attributes:
        household_releases: over the ledger's life.
        group_releases: over the ledger's life.
        charged_microbits: over the ledger's life.
        capacity: by class of households and by group.
        leakage_bits: by class, of the public codebook.
        remaining: (n,) micro-bits left in the window.
        budget: (n,) micro-bits per window.

    """

    household_releases: int
    group_releases: int
    charged_microbits: int
    capacity: Mapping[str, CapacityBound]
    leakage_bits: Mapping[str, float]
    remaining: IntArray
    budget: IntArray


class PublicMetrics(Collector):
    """Renders the latest bounds when it is asked; nothing here depends on a reading.

    Args:
        bounds: returns the latest bounds, None before the ledger is open.

    """

    def __init__(self, bounds: Callable[[], Bounds | None]) -> None:
        self._bounds = bounds
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)

    def describe(self) -> Iterable[Metric]:
        """Name no metrics ahead: the registry is ours alone."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield the public metrics."""
        build = GaugeMetricFamily("noiseless_build_info", "The version that runs.", labels=["version"])
        build.add_metric([version("noiseless")], 1)
        yield build
        bounds = self._bounds()
        if bounds is not None:
            yield from _families(bounds)


def _families(bounds: Bounds) -> Iterator[Metric]:
    releases = CounterMetricFamily("noiseless_releases", "Releases decided and charged.", labels=["kind"])
    releases.add_metric(["household"], bounds.household_releases)
    releases.add_metric(["group"], bounds.group_releases)
    yield releases
    yield CounterMetricFamily(
        "noiseless_charged_microbits",
        "Budget charged to all households, in micro-bits.",
        bounds.charged_microbits,
    )
    yield _by_class(
        "noiseless_capacity_bits",
        "Zero-error capacity bound of the latest slot, bits per release.",
        {label: bound.bits_per_release for label, bound in bounds.capacity.items()},
    )
    yield _by_class(
        "noiseless_capacity_bits_per_hour",
        "Zero-error capacity bound over the budget window so far.",
        {label: bound.bits_per_hour for label, bound in bounds.capacity.items()},
    )
    yield _by_class(
        "noiseless_leakage_bits",
        "Non-stochastic leakage of one reading by the public codebook, in bits.",
        bounds.leakage_bits,
    )
    yield _remaining(bounds)


def _by_class(name: str, text: str, values: Mapping[str, float]) -> Metric:
    """Return a gauge by class; past a bound on labels the rest is one, at its worst."""
    family = GaugeMetricFamily(name, text, labels=["class"])
    labels = list(values)
    for label in labels[:_MOST_CLASSES]:
        family.add_metric([label], values[label])
    if rest := labels[_MOST_CLASSES:]:
        family.add_metric([_OTHER], max(values[label] for label in rest))
    return family


def _remaining(bounds: Bounds) -> Metric:
    ratio = bounds.remaining / np.maximum(bounds.budget, 1)
    counts = np.searchsorted(np.sort(ratio), _REMAINING, side="right")
    buckets = [(f"{edge:.1f}", float(count)) for edge, count in zip(_REMAINING, counts, strict=True)]
    family = HistogramMetricFamily(
        "noiseless_budget_remaining_ratio", "Households by budget left in the window."
    )
    family.add_metric([], [*buckets, ("+Inf", float(len(ratio)))], float(ratio.sum()))
    return family


class OperatorMetrics:
    """What depends on readings; only behind the operator's token."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        self.messages = Counter("noiseless_operator_messages", "Messages received.", registry=registry)
        self.readings = Counter(
            "noiseless_operator_readings", "Readings that entered a slot.", registry=registry
        )
        self.rejected = Counter(
            "noiseless_operator_rejected", "Messages and readings kept out.", ["reason"], registry=registry
        )
        self.substituted = Counter(
            "noiseless_operator_substituted", "Household slots without a reading.", registry=registry
        )
        self.unacknowledged = Gauge(
            "noiseless_operator_unacknowledged",
            "Messages received and not yet acknowledged.",
            registry=registry,
        )
        self.outbox = Gauge(
            "noiseless_operator_outbox", "Releases that the broker does not have.", registry=registry
        )
        self.outbox_slots = Gauge(
            "noiseless_operator_outbox_slots",
            "Slots whose releases the broker does not have; output.max_pending bounds them.",
            registry=registry,
        )
        self.connections = Gauge(
            "noiseless_operator_connections", "Connects to the broker.", registry=registry
        )
        self.output_connections = Gauge(
            "noiseless_operator_output_connections",
            "Connects to the broker of releases; the same one unless output.url is set.",
            registry=registry,
        )
        self.certificate_expiry = Gauge(
            "noiseless_operator_certificate_expiry_seconds",
            "Seconds until a file's first certificate expires; 0: it cannot be read.",
            ["table", "file"],
            registry=registry,
        )
        self.commit_seconds = Histogram(
            "noiseless_operator_commit_seconds", "Time a ledger transaction took.", registry=registry
        )
