"""Which appliances are on, against bits per release ([NP] V-B, Fig. 4)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

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
from simulators.households import DAY_MINUTES
from simulators.studies._disaggregation_figures import draw_appliances, draw_means
from simulators.studies._disaggregation_findings import findings
from simulators.studies._disaggregation_rows import CLASSIFIER, MEAN, OPTIMISATION, Chance, Score, Trial
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
# A forest takes seconds: the classifier meets fewer codebooks, cuts and trees than it could.
_CLASSIFIER_LEVELS = (1, 2, 4, 8, 16, 64)
_TREES = 8
_DAYS, _DAYS_QUICK = 60, 10
_CUTS, _CUTS_QUICK = (-10, -5, 0, 5, 10), (-1, 1)
"""Days from the middle of a record to where training ends."""
_CLASSIFIER_CUTS = (-10, 0, 10)
_RESAMPLES = 400


class _Split(NamedTuple):
    """A record cut at midnight into training and attack, and the paper's attacker trained before it."""

    cut: int
    before: Submetered
    after: Submetered
    optimisation: CombinatorialOptimisation
    classified: bool


class _Attack(NamedTuple):
    """What one attacker made of one codebook: (appliances, 3, days) counts of minutes for each split."""

    attacker: str
    made: Made | None
    counts: Sequence[IntArray]


def run(settings: Settings, progress: Progress) -> Result:
    """Attack each home after a day, trained before it, for several such days; the quick form attacks one home.

    Raises:
        OSError: the recorded homes cannot be read.
        ValueError: they are damaged.

    """
    homes = submetered_homes(settings, _DAYS_QUICK if settings.quick else _DAYS)
    scores: list[Score] = []
    trials: list[Trial] = []
    chances: list[Chance] = []
    attacked = homes[:1] if settings.quick else homes
    for place, home in enumerate(attacked):
        progress(f"{home.name}: releases and attackers", place / len(attacked))
        # The other home's record plays the public profile.
        public = homes[1 - place].part(0, _cut(homes[1 - place], 0))
        made = codebooks(
            KINDS, _LEVELS_QUICK if settings.quick else _LEVELS, public.total_w[public.known] * 1000
        )
        splits = _splits(home, settings)
        for attack in _attacks(home, splits, made, settings.seed):
            scores += _scored(home, attack, settings.seed)
            trials += _trials(home, splits, attack)
        chances += _chances(home, splits)
    progress("figures", 1)
    source = f"{_source(attacked, settings)}; {told(settings, homes)}"
    return Result(
        source,
        {
            "scores": Table(Score._fields, scores),
            "cuts": Table(Trial._fields, trials),
            "chance": Table(Chance._fields, chances),
        },
        {"mean": draw_means(scores, chances), "appliances": draw_appliances(scores, chances)},
        findings(scores, chances),
    )


STUDY = Study("disaggregation", "Which appliances are on, against bits per release", "[NP] V-B, Fig. 4", run)


def _source(homes: Sequence[Submetered], settings: Settings) -> str:
    listed = " and ".join(
        f"{home.name} ({', '.join(home.appliances)}; {len(np.unique(home.day[home.known]))} days)"
        for home in homes
    )
    cuts = ", ".join(f"{days:+d}" for days in (_CUTS_QUICK if settings.quick else _CUTS))
    return f"{listed}, one release a minute, range 0 to 14 kW, cut into training and attack at the middle {cuts} days"


def _cut(home: Submetered, days: int) -> int:
    """Return the position of the midnight after a record's middle, so many days later."""
    middle = home.day[(len(home.day) - 1) // 2 + days * DAY_MINUTES]
    return int(np.searchsorted(home.day, middle, side="right"))


def _splits(home: Submetered, settings: Settings) -> list[_Split]:
    splits = []
    for days in _CUTS_QUICK if settings.quick else _CUTS:
        cut = _cut(home, days)
        before, after = home.part(0, cut), home.part(cut, len(home.day))
        optimisation = CombinatorialOptimisation.trained(
            {name: power[before.known] for name, power in before.appliances.items()},
            before.total_w[before.known],
            settings.seed,
        )
        classified = settings.quick or days in _CLASSIFIER_CUTS
        splits.append(_Split(cut, before, after, optimisation, classified))
    return splits


def _attacks(
    home: Submetered, splits: Sequence[_Split], made: Sequence[Made], seed: int
) -> Iterator[_Attack]:
    released = released_by_each(made, np.where(home.known, home.total_w * 1000, MISSING))
    # Unprotected, the attackers see the readings themselves.
    views: list[tuple[Made | None, FloatArray]] = [
        (None, home.total_w.astype(np.float64)),
        *zip(made, released.T, strict=True),
    ]
    for one, seen in views:
        optimised = [split.optimisation.on(seen[split.cut :]) for split in splits]
        yield _attack(OPTIMISATION, one, splits, optimised)
        if one is None or one.book.levels in _CLASSIFIER_LEVELS:
            chosen = [split for split in splits if split.classified]
            yield _attack(CLASSIFIER, one, chosen, _classified(seen, chosen, seed))


def _attack(
    attacker: str, made: Made | None, splits: Sequence[_Split], guesses: Sequence[Mapping[str, BoolArray]]
) -> _Attack:
    counts = [
        np.stack(
            [_daily(split.after, guess[name], power > ON_W) for name, power in split.after.appliances.items()]
        )
        for split, guess in zip(splits, guesses, strict=True)
    ]
    return _Attack(attacker, made, counts)


def _classified(seen: FloatArray, splits: Sequence[_Split], seed: int) -> list[dict[str, BoolArray]]:
    """Train a forest for each split and appliance, side by side, and let it say when that was on."""

    def guess(split: _Split, power: IntArray) -> Callable[[], BoolArray]:
        def said() -> BoolArray:
            known = split.before.known
            forest = WindowClassifier.trained(seen[: split.cut], power > ON_W, known, seed, trees=_TREES)
            return forest.says(seen[split.cut :])

        return said

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        said = [
            {name: threads.submit(guess(split, power)) for name, power in split.before.appliances.items()}
            for split in splits
        ]
    return [{name: future.result() for name, future in each.items()} for each in said]


def _scored(home: Submetered, attack: _Attack, seed: int) -> Iterator[Score]:
    """Yield the scores of all appliances, and their mean, over cuts; only minutes that were recorded count."""
    values = np.stack([_with_mean(f_scores(*np.moveaxis(cut.sum(axis=-1), 1, 0))) for cut in attack.counts])
    resampled = np.concatenate([_resampled(cut, seed) for cut in attack.counts], axis=-1)
    low, high = np.quantile(resampled, (0.025, 0.975), axis=-1)
    columns = values.mean(axis=0), low, high, values.min(axis=0), values.max(axis=0)
    for name, (value, f_low, f_high, least, most) in zip(
        (*home.appliances, MEAN), np.stack(columns, axis=-1).tolist(), strict=True
    ):
        of = (home.name, name, attack.attacker, *named(attack.made))
        yield Score(*of, value, f_low, f_high, len(values), least, most)


def _resampled(counts: IntArray, seed: int) -> FloatArray:
    """Return (appliances and mean, resamples) scores of days drawn anew from one split's."""
    days = counts.shape[-1]
    drawn = np.random.default_rng(seed).integers(0, days, (_RESAMPLES, days))
    return _with_mean(f_scores(*np.moveaxis(counts[..., drawn].sum(axis=-1), 1, 0)))


def _with_mean(scores: FloatArray) -> FloatArray:
    return np.concatenate((scores, scores.mean(axis=0, keepdims=True)))


def _trials(home: Submetered, splits: Sequence[_Split], attack: _Attack) -> Iterator[Trial]:
    chosen = [split for split in splits if split.classified or attack.attacker == OPTIMISATION]
    for split, counts in zip(chosen, attack.counts, strict=True):
        score = float(f_scores(*np.moveaxis(counts.sum(axis=-1), 1, 0)).mean())
        first = str(np.datetime64(int(split.after.day[0]), "D"))
        yield Trial(home.name, attack.attacker, *named(attack.made)[:3], first, score)


def _daily(home: Submetered, guessed: BoolArray, on: BoolArray) -> IntArray:
    """Return (3, days) minutes of each day that were hit, guessed to be on, and on; days with a record."""
    days, day = np.unique(home.day[home.known], return_inverse=True)
    return np.stack(
        [
            np.bincount(day, weights=which[home.known], minlength=len(days))
            for which in (guessed & on, guessed, on)
        ]
    ).astype(np.int64)


def _chances(home: Submetered, splits: Sequence[_Split]) -> Iterator[Chance]:
    """Yield how often each appliance is on in what is attacked, and what blind guesses score; means over cuts."""
    shares = np.array(
        [
            [np.mean(power[split.after.known] > ON_W) for power in split.after.appliances.values()]
            for split in splits
        ]
    )
    blind = np.vectorize(always_on_score)(shares)
    for name, share, score in zip(
        home.appliances, shares.mean(axis=0).tolist(), blind.mean(axis=0).tolist(), strict=True
    ):
        yield Chance(home.name, name, share, score)
    yield Chance(home.name, MEAN, float(shares.mean()), float(blind.mean()))
