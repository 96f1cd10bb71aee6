"""Certificates for scripts and for people."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from gateway.audit.certify import Certificate
from gateway.privacy import MICROBITS_PER_BIT
from gateway.tables import cell, table


def certificate_report(certificate: Certificate) -> dict[str, Any]:
    """Return what was counted, per class of households."""
    return {
        "holds": certificate.holds,
        "charged_once": certificate.charged_once,
        "classes": [
            {
                "class": one.label,
                "household": one.household,
                "holds": one.holds,
                "topics": [{**topic._asdict(), "holds": topic.holds} for topic in one.topics],
                "joint_outputs": one.joint,
                "charged_bits": one.charged / MICROBITS_PER_BIT,
                "constant_when_spent": one.constant_when_spent,
                "charged_alike": one.charged_alike,
                "bounded": one.bounded,
                "slots_closed": one.trials,
            }
            for one in certificate.classes
        ],
    }


def show_certificate(console: Console, report: dict[str, Any]) -> None:
    """Print what was counted against what is allowed."""
    headings = ("distinct bytes", "allowed", "charged bits", "slots closed")
    drawn = table(
        "Distinct outputs while one household varies, counted", "class", "topic", *headings, "holds"
    )
    for one in report["classes"]:
        for topic in one["topics"]:
            counted = (topic["topic"], topic["distinct"], topic["allowed"])
            drawn.add_row(*map(cell, (one["class"], *counted, "", "", topic["holds"])))
        paid = one["charged_bits"]
        together = (
            "all together",
            one["joint_outputs"],
            f"2^{paid:.6f}",
            paid,
            one["slots_closed"],
            one["holds"],
        )
        drawn.add_row(*map(cell, (one["class"], *together)), style="bold", end_section=True)
    console.print(drawn)
    if not report["charged_once"]:
        console.print("a slot can be charged and released twice, under two policies")
    console.print("the promise holds" if report["holds"] else "the promise is BROKEN: see the rows with NO")
