"""Is anyone home? The hypothesis adversary on releases, with and without a blind band ([HT]; theory 6, A6)."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.privacy import Rounding
from simulators.studies._occupancy_activity import activity_scores
from simulators.studies._occupancy_figures import draw_adversaries, draw_decided
from simulators.studies._occupancy_findings import findings
from simulators.studies._occupancy_fleet import Fleet, exact_row, fleet, presence_scores, view
from simulators.studies._occupancy_rows import KINDS, Exact, Score
from simulators.studies._releases import RAW, Made, codebooks
from simulators.studies._submetered import Submetered, submetered_homes, told
from simulators.studies.study import Progress, Result, Settings, Study, Table

_LEVELS, _LEVELS_QUICK = (1, 2, 3, 4, 8, 16, 32, 64), (1, 2, 4, 16)
_HOMES, _HOMES_QUICK = (200, 400), (60, 60)  # public ones, and those attacked
_DAYS, _DAYS_QUICK = 91, 28
_ACTIVE_DAYS, _ACTIVE_DAYS_QUICK = 60, 14
_PUBLIC_SEED = 1_000_000
_ACTIVITY_AT = 0.9


def run(settings: Settings, progress: Progress) -> Result:
    """Let all adversaries test all codebooks.

    Raises:
        OSError: recorded homes cannot be read.
        ValueError: they are damaged.

    """
    levels = _LEVELS_QUICK if settings.quick else _LEVELS
    counts, days = (_HOMES_QUICK, _DAYS_QUICK) if settings.quick else (_HOMES, _DAYS)
    homes = submetered_homes(settings, _ACTIVE_DAYS_QUICK if settings.quick else _ACTIVE_DAYS)
    public, attacked = (
        fleet(count, seed, days)
        for count, seed in zip(counts, (settings.seed + _PUBLIC_SEED, settings.seed), strict=True)
    )
    scores: list[Score] = []
    exact: list[Exact] = []
    made = codebooks(KINDS, levels, public.series_mw.ravel())
    for place, one in enumerate([None, *made]):
        progress(f"presence: {_said(one)}", _ACTIVITY_AT * place / (1 + len(made)))
        seen = view(one, public, attacked)
        scores += presence_scores(seen, public, attacked, settings.seed)
        if one is not None and one.rounding is Rounding.NEAREST:
            exact.append(exact_row(one, seen.attacked, attacked))
    for home, other in zip(homes, reversed(homes), strict=True):
        progress(f"activity: {home.name}", _ACTIVITY_AT)
        scores += activity_scores(home, other, levels, settings.seed)
    progress("figures", 1)
    return _result(scores, exact, f"{_source(attacked, public, homes)}, {told(settings, homes)}")


STUDY = Study("occupancy", "Is anyone home, against bits per release", "[HT] II to IV; theory 6, A6", run)


def _said(made: Made | None) -> str:
    return RAW if made is None else f"{made.kind}, {made.rounding}, {made.book.levels} levels"


def _result(scores: Sequence[Score], exact: Sequence[Exact], source: str) -> Result:
    return Result(
        source,
        {"adversaries": Table(Score._fields, scores), "exact": Table(Exact._fields, exact)},
        {"adversaries": draw_adversaries(scores, source), "exact": draw_decided(exact, source)},
        findings(scores, exact),
    )


def _source(attacked: Fleet, public: Fleet, homes: Sequence[Submetered]) -> str:
    count, days = attacked.empty.shape
    named = " and ".join(f"{home.name} ({', '.join(home.by_hand())})" for home in homes)
    return (
        f"presence: {count} simulated homes over {days} days, adversaries and codebooks taught by"
        f" {len(public.empty)} others, one release in half an hour, range 0 to 14 kW, band 0 to 1 kW;"
        f" activity: {named}"
    )
