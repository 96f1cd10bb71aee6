"""What the public may see is bounded, named as documented, and made of counts alone."""

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from gateway.privacy import CapacityBound, IntArray
from gateway.sources import Reason
from gateway.telemetry import Bounds, OperatorMetrics, PublicMetrics

PUBLIC = {
    "noiseless_releases_total",
    "noiseless_charged_microbits_total",
    "noiseless_capacity_bits",
    "noiseless_capacity_bits_per_hour",
    "noiseless_leakage_bits",
    "noiseless_budget_remaining_ratio_bucket",
    "noiseless_budget_remaining_ratio_count",
    "noiseless_budget_remaining_ratio_sum",
    "noiseless_build_info",
}


def bounds(classes: int = 2, remaining: IntArray | None = None, budget: IntArray | None = None) -> Bounds:
    labels = [f"class {i}" for i in range(classes)]
    return Bounds(
        household_releases=12,
        group_releases=3,
        charged_microbits=34_567_890,
        capacity={label: CapacityBound(2.0 + i, 30.0, 4.0 + i) for i, label in enumerate(labels)},
        leakage_bits={label: 1.5 + i for i, label in enumerate(labels)},
        remaining=np.array([5, 10]) if remaining is None else remaining,
        budget=np.array([10, 10]) if budget is None else budget,
    )


Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(registry: CollectorRegistry) -> Samples:
    text = generate_latest(registry).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def public(latest: Bounds | None) -> Samples:
    return samples(PublicMetrics(lambda: latest).registry)


def test_the_public_metrics_have_the_documented_names_and_no_others() -> None:
    assert {name for name, _ in public(bounds())} == PUBLIC


def test_before_the_first_slot_the_public_sees_the_version_only() -> None:
    assert {name for name, _ in public(None)} == {"noiseless_build_info"}


def test_values_are_those_of_the_latest_bounds_each_time_one_asks() -> None:
    latest = bounds()
    metrics = PublicMetrics(lambda: latest)
    before = samples(metrics.registry)
    assert before["noiseless_releases_total", (("kind", "household"),)] == 12
    assert before["noiseless_releases_total", (("kind", "group"),)] == 3
    assert before["noiseless_charged_microbits_total", ()] == 34_567_890
    assert before["noiseless_capacity_bits", (("class", "class 1"),)] == 3.0
    assert before["noiseless_capacity_bits_per_hour", (("class", "class 1"),)] == 5.0
    assert before["noiseless_leakage_bits", (("class", "class 0"),)] == 1.5
    latest = latest._replace(household_releases=13)
    assert samples(metrics.registry)["noiseless_releases_total", (("kind", "household"),)] == 13


@pytest.mark.parametrize("classes", [1, 100, 101, 5_000])
def test_labels_are_bounded_and_the_rest_is_one_at_its_worst(classes: int) -> None:
    """meshtastic-metrics-exporter#72: 216,000 label sets."""
    found = public(bounds(classes))
    for name, first in (
        ("noiseless_capacity_bits", 2.0),
        ("noiseless_capacity_bits_per_hour", 4.0),
        ("noiseless_leakage_bits", 1.5),
    ):
        of_name = {labels[0][1]: value for (metric, labels), value in found.items() if metric == name}
        assert len(of_name) == min(classes, 101)
        assert ("other" in of_name) == (classes > 100)
        assert max(of_name.values()) == first + classes - 1


def test_the_histogram_counts_households_by_what_is_left() -> None:
    remaining, budget = np.array([0, 1, 3, 5, 5, 10]), np.full(6, 10)
    found = public(bounds(remaining=remaining, budget=budget))
    name = "noiseless_budget_remaining_ratio"
    at_most = {labels[0][1]: count for (metric, labels), count in found.items() if metric == f"{name}_bucket"}
    assert at_most == {
        "0.0": 1, "0.1": 2, "0.2": 2, "0.3": 3, "0.4": 3, "0.5": 5,
        "0.6": 5, "0.7": 5, "0.8": 5, "0.9": 5, "1.0": 6, "+Inf": 6,
    }  # fmt: skip
    assert found[f"{name}_count", ()] == 6
    assert found[f"{name}_sum", ()] == pytest.approx(2.4)


def test_an_overdrawn_and_a_free_account_are_counted_too() -> None:
    """A budget that was lowered leaves less than nothing; a release of one level costs nothing."""
    found = public(bounds(remaining=np.array([-5, 0]), budget=np.array([10, 0])))
    assert found["noiseless_budget_remaining_ratio_bucket", (("le", "0.0"),)] == 2
    assert found["noiseless_budget_remaining_ratio_count", ()] == 2


def test_a_class_with_quotes_and_line_ends_in_its_name_stays_one_sample() -> None:
    odd = 'a "quoted"\\ name\nof a class'
    found = public(bounds()._replace(leakage_bits={odd: 1.0}))
    assert found["noiseless_leakage_bits", (("class", odd),)] == 1.0


def test_the_operators_metrics_are_in_a_registry_of_their_own() -> None:
    operator = OperatorMetrics()
    names = {name for name, _ in samples(operator.registry)}
    assert not names & PUBLIC
    assert {"noiseless_operator_messages_total", "process_resident_memory_bytes"} <= names


def test_every_reason_of_rejection_can_be_counted() -> None:
    operator = OperatorMetrics()
    for reason in Reason:
        operator.rejected.labels(reason.value).inc()
    found = samples(operator.registry)
    assert all(found["noiseless_operator_rejected_total", (("reason", reason),)] == 1 for reason in Reason)


def test_two_gateways_in_one_process_do_not_share_metrics() -> None:
    one, other = OperatorMetrics(), OperatorMetrics()
    one.messages.inc(5)
    assert samples(other.registry)["noiseless_operator_messages_total", ()] == 0
