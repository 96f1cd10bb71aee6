"""Which appliances run, for someone who has labelled homes: he releases them with the codebook that he attacks.

The releases name their codebook and its rounding, and show its levels. So he knows what the gateway would have
released of homes whose appliances he has metered, and teaches a classifier on it for each appliance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from gateway.privacy import MISSING, BoolArray, Codebook, IntArray, Rounding, Shelf, on_levels
from simulators.attackers.attack import Attack, AttackError, Learnt, Options
from simulators.attackers.disaggregation import ON_W, WindowClassifier, always_on_score, f_scores
from simulators.attackers.known import read_known
from simulators.attackers.recording import FloatArray, Recording, Released
from simulators.attackers.replay import released_w
from simulators.households import DAY_MINUTES, Households

_HOMES, _SEED, _FIRST_DAY = 24, 1_000_003, date(2026, 1, 5)
_MOST_SLOTS, _MOST_DAYS = 24_000, 28
_MS_PER_MINUTE = 60_000
_RESAMPLES = 400
_EVERYWHERE = ("lights", "screens")  # on whenever somebody is up: no one appliance
_COLUMNS = ("household", "appliance", "slots a day on", "F-score", "at least", "by chance")


class Labelled(NamedTuple):
    """Homes whose appliances are known, one after the other.

    Attributes:
        about: what they are, in words.
        series_mw: (t,) mean power of each slot, or ``MISSING``.
        on: (t,) whether each appliance ran in the slot, by name.
        a_day: slots a day.

    """

    about: str
    series_mw: IntArray
    on: Mapping[str, BoolArray]
    a_day: int


class Skill(NamedTuple):
    """How well an appliance is found in labelled homes, or days, that were kept out of the training.

    Attributes:
        classifier: that finds it.
        f_score: what it has there.
        at_least: the lower end of its 95 % interval, over days.
        chance: the F-score of always saying "on".

    """

    classifier: WindowClassifier
    f_score: float
    at_least: float
    chance: float


def learn(recording: Recording, options: Options) -> Learnt:
    """Tell which appliances run in each household, and how sure that is.

    Raises:
        AttackError: no household was recorded for a day, or the labelled homes cannot be used.

    """
    if find_spec("sklearn") is None:
        raise AttackError("disaggregation needs scikit-learn: pip install 'noiseless[studies]'")
    rows: list[tuple[object, ...]] = []
    notes: list[str] = []
    for alike in _by_codebook(recording):
        labelled = _labelled(alike[0].minutes, options, recording)
        book = _codebook(alike)
        skills = {} if book is None else dict(_skills(labelled, book))
        found = {name: skill for name, skill in skills.items() if skill.at_least > skill.chance}
        notes += [_note(alike, skills, found), f"taught on {labelled.about}"]
        for released in alike:
            rows += _told(released, found, labelled.a_day)
    if not rows:
        raise AttackError("no household was recorded for a whole day")
    spent = [int(one.spent.sum()) for one in recording.households.values() if one.spent.any()]
    if spent:
        notes.append(
            f"{sum(spent):,} releases of {len(spent)} households tell nothing, their budget was spent:"
            " slots a day on are reckoned from the others"
        )
    notes.append(
        "F-score: 1 finds every slot in which an appliance runs and no other; measured on labelled homes that were"
        " kept out of the training, as if the homes recorded were like them; by chance: always saying on"
    )
    return Learnt(_COLUMNS, rows, list(dict.fromkeys(notes)))


def _by_codebook(recording: Recording) -> list[list[Released]]:
    """Return the households recorded for a day or more, those of one codebook and slot length together."""
    alike: dict[tuple[object, ...], list[Released]] = {}
    for released in recording.households.values():
        if np.ptp(released.start_ms) / _MS_PER_MINUTE + released.minutes >= DAY_MINUTES:
            alike.setdefault((released.codebook, released.rounding, released.minutes), []).append(released)
    return list(alike.values())


def _codebook(alike: Sequence[Released]) -> Codebook | None:
    """Return a codebook on the levels that were seen; None where there is but one, which tells nothing."""
    seen = np.unique(np.concatenate([released.value_w for released in alike]))
    levels = np.rint(seen[np.isfinite(seen)] * 1000).astype(np.int64)
    if len(levels) < 2:  # noqa: PLR2004 - something to tell apart
        return None
    return on_levels(int(levels[0]), int(levels[-1]), levels, Rounding(alike[0].rounding))


def _labelled(minutes: float, options: Options, recording: Recording) -> Labelled:
    if minutes != int(minutes) or DAY_MINUTES % int(minutes):
        raise AttackError(f"slots of {minutes:g} minutes do not divide a day")
    return _simulated(int(minutes)) if options.known is None else _metered(int(minutes), options, recording)


def _simulated(minutes: int) -> Labelled:
    a_day = DAY_MINUTES // minutes
    days = min(max(_MOST_SLOTS // (_HOMES * a_day), 2), _MOST_DAYS)
    fleet = Households.draw(_HOMES, _SEED)
    dates = [_FIRST_DAY + timedelta(days=n) for n in range(days)]
    drawn = [fleet.appliances_w(day) for day in dates]
    power = _slots(np.concatenate([fleet.power_w(day) for day in dates], axis=1), minutes)
    on = {
        name: _slots(np.concatenate([day[name] for day in drawn], axis=1) > ON_W, minutes)
        .any(axis=-1)
        .ravel()
        for name in drawn[0]
        if name not in _EVERYWHERE
    }
    about = f"{_HOMES} simulated homes over {days} days (give metered ones with --known FILE --unit W)"
    return Labelled(about, (power.sum(axis=-1, dtype=np.int64) * 1000 // minutes).ravel(), on, a_day)


def _slots(series: IntArray | BoolArray, minutes: int) -> IntArray | BoolArray:
    return series.reshape(len(series), -1, minutes)


def _metered(minutes: int, options: Options, recording: Recording) -> Labelled:
    """Read a home's total, and its appliances, from the columns of a CSV; a total of 0 was not recorded."""
    assert options.known is not None
    known = read_known(options.known, options.unit)
    if len(known.homes) < 2 or minutes % known.minutes:  # noqa: PLR2004 - a total and an appliance
        raise AttackError(
            f"{options.known}: the first column is the home, the others are appliances, and their interval divides"
            f" the slots of {minutes} minutes"
        )
    if any(column in recording.households for column in known.homes[1:]):
        raise AttackError(
            f"{options.known}: its columns are households of the recording; give one metered home, its power first"
            " and then a column per appliance"
        )
    slot = known.start_ms // (minutes * _MS_PER_MINUTE)
    place, count = slot - slot[0], int(slot[-1] - slot[0]) + 1
    total = known.power_w[0]
    recorded = np.isfinite(total) & (total > 0)
    full = np.bincount(place[recorded], minlength=count) == minutes // known.minutes
    sums = np.bincount(place[recorded], weights=total[recorded], minlength=count)
    mean_mw = np.rint(sums * 1000 * known.minutes / minutes).astype(np.int64)
    on = {
        name: np.bincount(place, weights=power > ON_W, minlength=count) > 0
        for name, power in zip(known.homes[1:], known.power_w[1:], strict=True)
    }
    about = f"one metered home, {known.homes[0]}, over {int(full.sum()) * minutes / DAY_MINUTES:.0f} days"
    return Labelled(about, np.where(full, mean_mw, MISSING), on, DAY_MINUTES // minutes)


def _skills(labelled: Labelled, book: Codebook) -> Iterator[tuple[str, Skill]]:
    """Yield a classifier for each appliance, taught on the first three quarters and tried on the last."""
    shelf = Shelf([book], np.zeros(1, np.int64))
    series = np.clip(labelled.series_mw, book.lower, book.upper)
    seen = released_w(shelf, np.where(labelled.series_mw == MISSING, MISSING, series)[:, None])[:, 0]
    known = labelled.series_mw != MISSING
    days = len(seen) // labelled.a_day
    cut = days * 3 // 4 * labelled.a_day
    later = slice(cut, days * labelled.a_day)
    for name, on in labelled.on.items():
        classifier = WindowClassifier.trained(seen[:cut], on[:cut], known[:cut], _SEED)
        says = classifier.says(seen[later])
        tried = known[later]
        counts = np.stack([says & on[later], says, on[later]]) & tried
        by_day = counts.reshape(3, -1, labelled.a_day).sum(axis=2)
        share = float(on[later][tried].mean()) if tried.any() else 0.0
        yield name, Skill(classifier, *_scores(by_day), always_on_score(share))


def _scores(by_day: IntArray) -> tuple[float, float]:
    """Return the F-score of (3, days) hits, said and true slots, and the lower end of its 95 % interval."""
    days = by_day.shape[1]
    drawn = np.random.default_rng(_SEED).integers(0, max(days, 1), (_RESAMPLES, days))
    resampled = f_scores(*by_day[:, drawn].sum(axis=-1))
    return float(f_scores(*by_day.sum(axis=1))), float(np.quantile(resampled, 0.025))


def _told(released: Released, found: Mapping[str, Skill], a_day: int) -> Iterator[tuple[object, ...]]:
    if not found:
        yield released.name, None, None, None, None, None
        return
    told = np.isfinite(released.value_w) & ~released.spent
    if not told.any():
        yield released.name, None, None, None, None, None
        return
    seen, place = _laid_out(released, told)
    for name, skill in sorted(found.items(), key=lambda pair: -pair[1].f_score):
        rate = float(skill.classifier.says(seen)[place].mean()) * a_day
        sure = (round(number, 2) for number in skill[1:])
        yield released.name, name, round(rate, 2), *sure


def _laid_out(released: Released, told: BoolArray) -> tuple[FloatArray, IntArray]:
    """Return the values of all slots from first to last, and which were told; the others repeat the one before."""
    step = round(released.minutes * _MS_PER_MINUTE)
    start_ms, values = released.start_ms[told], released.value_w[told]
    place = (start_ms - start_ms[0]) // step
    latest = np.zeros(int(place[-1]) + 1, np.int64)
    latest[place] = np.arange(len(place))
    return values[np.maximum.accumulate(latest)], place


def _note(alike: Sequence[Released], skills: Mapping[str, Skill], found: Mapping[str, Skill]) -> str:
    which = f"codebook {alike[0].codebook or 'unnamed'}, {alike[0].rounding}, {len(alike)} households"
    hidden = ", ".join(name for name in skills if name not in found)
    told = ", ".join(f"{name} ({s.f_score:.2f}, by chance {s.chance:.2f})" for name, s in found.items())
    if not skills:
        return f"{which}: a single level was seen, which tells nothing"
    return f"{which}: told beyond chance {told or 'nothing'}; not told {hidden or 'nothing'}"


ATTACK = Attack(
    "disaggregation", "Which appliances run, for someone who has labelled homes", learn, ("known", "unit")
)
