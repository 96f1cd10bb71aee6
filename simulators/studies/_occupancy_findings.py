"""What the study of occupancy found, in sentences with its own numbers."""

from __future__ import annotations

from collections.abc import Sequence

from simulators.studies._occupancy_rows import (
    ACTIVITY,
    FLEET,
    ONE_DAY,
    ONE_RELEASE,
    UNTRAINED,
    Exact,
    Score,
)
from simulators.studies._sentences import by_levels

_AT = 4  # levels at which codebooks are compared: 2 bits
_METHOD = (
    "Advantage is how much more often it is said of what is true than of what is not, 2·(balanced accuracy) − 1: 0 is"
    " a blind guess. Intervals are 95 %, over resampled homes (presence) or days (activity). Adversaries and fitted"
    " codebooks learnt presence from other homes; activity from the first half of the same home's days, with codebooks"
    " fitted to the other home."
)


def findings(scores: Sequence[Score], exact: Sequence[Exact]) -> list[str]:
    """Return what each adversary gained, what is decided for certain, and how to read it."""
    pairs = [(FLEET, adversary) for adversary in (ONE_RELEASE, ONE_DAY, UNTRAINED)]
    pairs += [(home, ACTIVITY) for home in dict.fromkeys(s.data for s in scores if s.adversary == ACTIVITY)]
    return [
        *(_gained([s for s in scores if s[:2] == pair]) for pair in pairs),
        *_decided(exact, scores),
        _METHOD,
    ]


def _gained(scores: Sequence[Score]) -> str:
    raw = scores[0]
    return (
        f"{raw.data}, {raw.adversary}: advantage {raw.advantage:z.2f} ({raw.low:.2f} to {raw.high:.2f})"
        f" unprotected. {by_levels(scores, lambda score: score.advantage)}"
    )


def _decided(exact: Sequence[Exact], scores: Sequence[Score]) -> list[str]:
    """Say what is decided for certain at the same number of levels, and what a band costs."""
    days = {s.codebook: s for s in scores if (s.rounding, s.levels, s.adversary) == ("nearest", _AT, ONE_DAY)}
    parts = [
        f"{row.codebook}: P(T) = {row.performance_bits:.2f} of {row.epsilon_bits:.0f} bits;"
        f" {100 * row.decided_share:.1f} % of half hours on lived-in days prove it; a day's releases give an advantage"
        f" of {days[row.codebook].advantage:.2f}; a release is off by {row.rmse_w:.0f} W RMS"
        for row in exact
        if row.levels == _AT
    ]
    wrong = max(row.wrong_share for row in exact)
    never_wrong = (
        f"Consistent tests called {100 * wrong:.1f} % of empty homes' half hours lived-in, at most over all codebooks."
        " P(T) counts the outputs at which a test cannot err, not how often they occur."
    )
    return [f"At {_AT} levels, nearest. {'. '.join(parts)}.", never_wrong]
