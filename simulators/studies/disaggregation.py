"""Which appliances are on, against bits per release ([NP] V-B, Fig. 4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from gateway.privacy import MISSING, BoolArray, IntArray, Rounding
from simulators.attackers.disaggregation import (
    ON_W,
    CombinatorialOptimisation,
    WindowClassifier,
    always_on_score,
    f_scores,
)
from simulators.attackers.recording import FloatArray
from simulators.studies._disaggregation_figures import draw_appliances, draw_means
from simulators.studies._disaggregation_findings import findings
from simulators.studies._disaggregation_rows import CLASSIFIER, MEAN, OPTIMISATION, Chance, Score
from simulators.studies._releases import FITTED, UNIFORM, Made, codebooks, named, released_by_each
from simulators.studies._submetered import Submetered, submetered_homes, told
from simulators.studies.study import Progress, Result, Settings, Study, Table

KINDS = (
    (UNIFORM, Rounding.NEAREST),
    (FITTED, Rounding.NEAREST),
    (UNIFORM, Rounding.FEEDBACK),
    (FITTED, Rounding.FEEDBACK),
)
_LEVELS, _LEVELS_QUICK = (1, 2, 3, 4, 8, 16, 32, 64), (1, 2, 4, 16)
_DAYS, _DAYS_QUICK = 60, 10
_RESAMPLES = 400


def run(settings: Settings, progress: Progress) -> Result:
    """Attack each home's later half, after training on its first half; the quick form attacks one home.

    Raises:
        OSError: the recorded homes cannot be read.
        ValueError: they are damaged.

    """
    homes = submetered_homes(settings, _DAYS_QUICK if settings.quick else _DAYS)
    scores: list[Score] = []
    chances: list[Chance] = []
    attacked = homes[:1] if settings.quick else homes
    for place, home in enumerate(attacked):
        progress(f"{home.name}: releases and attackers", place / len(attacked))
        # The other home's record plays the public profile.
        public = _halves(homes[1 - place])[0]
        made = codebooks(
            KINDS, _LEVELS_QUICK if settings.quick else _LEVELS, public.total_w[public.known] * 1000
        )
        scores += _attacked(*_halves(home), made, settings.seed)
        chances += _chances(_halves(home)[1])
    progress("figures", 1)
    source = f"{_source(attacked)}; {told(settings, homes)}"
    return Result(
        source,
        {"scores": Table(Score._fields, scores), "chance": Table(Chance._fields, chances)},
        {
            "mean": draw_means(scores, chances, source),
            "appliances": draw_appliances(scores, chances, source),
        },
        findings(scores, chances),
    )


STUDY = Study("disaggregation", "Which appliances are on, against bits per release", "[NP] V-B, Fig. 4", run)


def _source(homes: Sequence[Submetered]) -> str:
    listed = " and ".join(
        f"{home.name} ({', '.join(home.appliances)}; {len(np.unique(home.day[home.known]))} days)"
        for home in homes
    )
    return f"{listed}, one release a minute, range 0 to 14 kW, first half for training, later half attacked"


def _halves(home: Submetered) -> tuple[Submetered, Submetered]:
    """Cut a home's record at the midnight after its middle."""
    middle = int(np.searchsorted(home.day, home.day[(len(home.day) - 1) // 2], side="right"))
    return home.part(0, middle), home.part(middle, len(home.day))


def _attacked(first: Submetered, later: Submetered, made: Sequence[Made], seed: int) -> Iterator[Score]:
    optimisation = CombinatorialOptimisation.trained(
        {name: power[first.known] for name, power in first.appliances.items()},
        first.total_w[first.known],
        seed,
    )
    before, after = (released_by_each(made, _series_mw(part)) for part in (first, later))
    # Unprotected, the attackers see the readings themselves.
    views: list[tuple[Made | None, FloatArray, FloatArray]] = [
        (None, first.total_w.astype(np.float64), later.total_w.astype(np.float64)),
        *zip(made, before.T, after.T, strict=True),
    ]
    for one, learnt_from, attacked in views:
        yield from _scored(later, OPTIMISATION, one, optimisation.on(attacked), seed)
        yield from _scored(later, CLASSIFIER, one, _classified(learnt_from, attacked, first, seed), seed)


def _series_mw(home: Submetered) -> IntArray:
    return np.where(home.known, home.total_w * 1000, MISSING)


def _classified(before: FloatArray, after: FloatArray, first: Submetered, seed: int) -> dict[str, BoolArray]:
    return {
        name: WindowClassifier.trained(before, power > ON_W, first.known, seed).says(after)
        for name, power in first.appliances.items()
    }


def _scored(
    later: Submetered, attacker: str, made: Made | None, guess: Mapping[str, BoolArray], seed: int
) -> Iterator[Score]:
    """Yield the scores of all appliances, and their mean, over minutes that were recorded."""
    counts = np.stack([_daily(later, guess[name], power > ON_W) for name, power in later.appliances.items()])
    days = counts.shape[-1]
    drawn = np.random.default_rng(seed).integers(0, days, (_RESAMPLES, days))
    scores = f_scores(*counts.sum(axis=-1).T)
    resampled = f_scores(*np.moveaxis(counts[..., drawn].sum(axis=-1), 1, 0))
    names = [*later.appliances, MEAN]
    values = np.append(scores, scores.mean())
    spread = np.quantile(np.vstack((resampled, resampled.mean(axis=0))), (0.025, 0.975), axis=-1)
    for name, value, low, high in zip(names, values.tolist(), *spread.tolist(), strict=True):
        yield Score(later.name, name, attacker, *named(made), value, low, high)


def _daily(home: Submetered, guessed: BoolArray, on: BoolArray) -> IntArray:
    """Return (3, days) minutes of each day that were hit, guessed to be on, and on; days with a record."""
    days, day = np.unique(home.day[home.known], return_inverse=True)
    return np.stack(
        [
            np.bincount(day, weights=which[home.known], minlength=len(days))
            for which in (guessed & on, guessed, on)
        ]
    ).astype(np.int64)


def _chances(later: Submetered) -> Iterator[Chance]:
    shares = [float(np.mean(power[later.known] > ON_W)) for power in later.appliances.values()]
    blind = [always_on_score(share) for share in shares]
    for name, share, score in zip(later.appliances, shares, blind, strict=True):
        yield Chance(later.name, name, share, score)
    yield Chance(later.name, MEAN, float(np.mean(shares)), float(np.mean(blind)))
