"""What a policy that blurs one yes-or-no question hides, and what it does to a survey's numbers ([HT])."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import exp

import numpy as np

from gateway.privacy.hypothesis_tests import (
    blinded,
    performance_nats,
    privacy_nats,
    undecidable_share,
    undecidable_share_under_square,
)
from gateway.privacy.intervals import Interval, closed
from simulators.studies._charts import values
from simulators.studies._hypothesis_charts import draw_histograms, draw_performance, draw_shares, draw_shifts
from simulators.studies._hypothesis_survey import (
    COEFFICIENT,
    INDEX,
    index_histogram,
    shifts,
    weight_histogram,
)
from simulators.studies._respondents import respondents_of
from simulators.studies.study import Progress, Result, Settings, Study, Table

MOST_WEIGHT, MOST_HEIGHT = Fraction(200), Fraction(250)
"""The largest weight (kg) and height (cm) of the example."""

REPORTED = {10: -0.1252, 20: -0.2364}
"""What [HT] reports for P(T) − h0(Y) with an error of ±10 and ±20 cm (nats)."""

BANDS = tuple(
    Fraction(band) for band in ("0.1", "0.3", "0.5", "1", "1.2", "2", "3", "5", "7.5", "10", "15", "20", "30")
)
"""1/ρ, the accuracy of the released weight (kg)."""

_SHOWN = (Fraction(5), Fraction(15))


def run(settings: Settings, progress: Progress) -> Result:
    """Measure the paper's examples, the undecidable share over ρ, and the survey before and after.

    Raises:
        OSError: the survey cannot be read.
        ValueError: it is no such survey.

    """
    people = respondents_of(settings)
    draws = 20_000 if settings.quick else 1_000_000
    progress("performance of tests", 0)
    tables = {"performance": _performance(range(0, 51, 10 if settings.quick else 2))}
    progress("share over ρ", 0.2)
    tables["share"] = _shares(np.random.default_rng(settings.seed), draws)
    tables["one-sided"] = _one_sided()
    progress("survey", 0.7)
    tables["shifts"] = shifts(people, (Fraction(0), *BANDS))
    tables["weights"] = weight_histogram(people, _SHOWN)
    tables["indices"] = index_histogram(people, _SHOWN)
    figures = {
        "performance": draw_performance(tables["performance"]),
        "share": draw_shares(tables["share"]),
        "histograms": draw_histograms(tables, people.name),
        "shifts": draw_shifts(tables["shifts"], people.name),
    }
    progress("figures", 1)
    return Result(people.name, tables, figures, _findings(tables))


STUDY = Study(
    "hypothesis", "What does blurring one yes-or-no question hide, and at what cost?", "[HT] III-V", run
)


def _performance(errors: Sequence[int]) -> Table:
    """Return the exact performance of the best tests of "taller than 150 cm", with a height read inexactly."""
    rows: list[tuple[object, ...]] = []
    for error in sorted({*errors, *REPORTED}):
        given_p0 = [closed(100 - error, 150 + error)]
        given_p1 = [
            Interval(Fraction(150 - error), Fraction(250 + error), closed_low=False, closed_high=True)
        ]
        performance, privacy = performance_nats(given_p0, given_p1), privacy_nats(given_p0, given_p1)
        rows.append((error, performance, performance + privacy, -privacy, REPORTED.get(error, "")))
    return Table(("error_cm", "performance", "entropy", "difference", "paper"), rows)


def _shares(rng: np.random.Generator, draws: int) -> Table:
    """Return ε over ρ: exact, and counted among weights and heights drawn evenly.

    No threshold exceeds the largest weight (187.5 of 200 kg), so both hypotheses occur in every band.
    """
    weights, heights = (rng.uniform(0, float(most), draws) for most in (MOST_WEIGHT, MOST_HEIGHT))
    thresholds = float(COEFFICIENT) * heights**2
    rows = []
    for band in BANDS:
        exact = undecidable_share_under_square(COEFFICIENT, MOST_WEIGHT, MOST_HEIGHT, band)
        hidden = blinded(weights, thresholds, float(band)) == thresholds
        one = undecidable_share(Fraction(0), MOST_WEIGHT, COEFFICIENT * 170**2, band)
        rows.append(
            (float(band), float(1 / band), float(exact), float(np.mean(hidden)), float(one), str(exact))
        )
    return Table(("band_kg", "rho", "share", "counted", "share_at_170_cm", "exact"), rows)


def _one_sided() -> Table:
    """Return the share that the paper's formula and that counting leave undecided where a band sees one hypothesis.

    Of inputs in [0, 100] with the threshold 105 and a band of ±10, [95, 100] lies in the band, all of it below
    the threshold (theory E3): its formula has 5 %.
    """
    here = undecidable_share(Fraction(0), Fraction(100), Fraction(105), Fraction(10))
    formula = Fraction(100 - (105 - 10), 100)
    return Table(
        ("input_to", "threshold", "band", "formula", "share"), [(100, 105, 10, float(formula), float(here))]
    )


def _findings(tables: Mapping[str, Table]) -> list[str]:
    return [
        *_about_performance(tables["performance"]),
        *_about_shares(tables["share"]),
        *_about_one_side(tables["one-sided"]),
        *_about_survey(tables["shifts"], tables["indices"]),
    ]


def _about_performance(table: Table) -> list[str]:
    return [
        (
            f"Taller than 150 cm, read to ±{error} cm: P(T) − h0(Y) ="
            f" {values(table, 'difference', error_cm=error)[0]:.4f}; the paper has {paper}. Of all outputs the best"
            f" test is right on {exp(values(table, 'difference', error_cm=error)[0]):.1%}."
        )
        for error, paper in REPORTED.items()
    ]


def _about_shares(table: Table) -> list[str]:
    rho, share, counted = (values(table, key) for key in ("rho", "share", "counted"))
    exact = {float(str(row[0])): str(row[5]) for row in table.rows}
    apart = max(abs(one - other) for one, other in zip(share, counted, strict=True))
    return [
        (
            f"Body-mass index of {INDEX}: ε, the share of inputs left undecided, goes from {share[-1]:.1%} at"
            f" ρ = {rho[-1]:.3g} per kg to {share[0]:.2%} at ρ = {rho[0]:.3g}. It is {exact[0.3]} at 1/ρ = 0.3 kg and"
            f" {exact[1.2]} at 1.2 kg, exactly."
        ),
        f"Counted among evenly drawn weights and heights it differs by at most {apart:.4f} from the exact share.",
    ]


def _about_one_side(table: Table) -> list[str]:
    most, threshold, band, formula, share = (values(table, column)[0] for column in table.columns)
    return [
        (
            f"Inputs of [0, {most:g}], threshold {threshold:g}, band ±{band:g}: {share:.0%} is undecided, and"
            f" {formula:.0%} by the paper's formula, which takes a band with one hypothesis for undecided."
        )
    ]


def _about_survey(table: Table, indices: Table) -> list[str]:
    found = []
    for band in map(float, _SHOWN):
        row = {key: values(table, key, band_kg=band)[0] for key in table.columns}
        found.append(
            f"1/ρ = {band:g} kg: {row['hidden']:.1%} of the people get the threshold for an answer. The mean weight"
            f" moves by {row['mean_shift']:+.3f} kg to {row['mean_weight']:.2f}; {row['density_shift_weight']:.1%} of"
            f" the weight histogram and {row['density_shift_index']:.1%} of the index histogram move; no answer"
            f" changes by more than {row['largest_change']:.1f} kg, the mean one by {row['mean_change']:.2f} kg."
            f" Who says of all the hidden that they are below {INDEX} is right for {row['hidden_below']:.1%}."
        )
    bins = [values(indices, key, **{"from": INDEX})[0] for key in indices.columns[2:]]
    listed = ", ".join(
        f"{share:.1%} with 1/ρ = {band} kg" for share, band in zip(bins[1:], _SHOWN, strict=True)
    )
    return [
        *found,
        (
            f"The bin of indices that starts at {INDEX} holds {bins[0]:.1%} of the answers, and of the releases"
            f" {listed}. The policy hides on which side of {INDEX} somebody is, not that she is close to it."
        ),
    ]
