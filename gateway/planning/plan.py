"""What was asked of a plan, and the plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pydantic_core import PydanticCustomError

from gateway.planning.options import Option, Wish, chosen, options
from gateway.planning.profile import PlanError, read_profile
from gateway.privacy import Codebook, Rounding, blind_band, to_json
from gateway.quantities import duration_ms, power_mw, written_power

Progress = Callable[[int, int], None]
_KINDS = 6

_FEEDBACK_PRICE = (
    "feedback: totals stay exact because each release also carries what earlier ones left over, so later releases"
    " speak of earlier readings too. A window bounds its releases, not its readings (budget.fresh_feedback ="
    " true forgets at its start), and levels multiply with those of groups: 4 and 8 make 32 instead of 11."
)
_DITHER_PRICE = (
    "dither: each release is still one of k values; a single error is larger, means over many homes are exact"
)
_FITTED_PRICE = (
    "fitted: k cells cost the same bits wherever they lie, but the narrowest cell says more of a reading that falls"
    " into it: see leakage bits. Fit to public loads only; cuts fitted to private ones would speak of them."
)


@dataclass(frozen=True)
class Request:
    """What to look at.

    Attributes:
        profile: the public loads' file.
        lower: the range's lower end (mW).
        upper: the range's upper end (mW).
        unit: of the profile's energies, Wh or kWh.
        interval_ms: of the profile.
        levels: the numbers of levels.
        rounding: the only rounding wanted; None for all.
        blind: a band (mW) in which a further codebook is blind; None for none.

    """

    profile: Path
    lower: int
    upper: int
    unit: str
    interval_ms: int
    levels: tuple[int, ...]
    rounding: Rounding | None
    blind: tuple[int, int] | None

    @classmethod
    def parsed(
        cls,
        profile: Path,
        power_range: tuple[str, str],
        *,
        unit: str,
        interval: str,
        levels: str,
        rounding: str | None,
        blind: tuple[str, str] | None,
    ) -> Self:
        """Return the request of texts as people write them.

        Raises:
            PlanError: one of them cannot be understood.

        """
        if unit not in ("Wh", "kWh"):
            raise PlanError(f"--unit {unit}: Wh or kWh")
        try:
            lower, upper = map(power_mw, power_range)
            band = None if blind is None else (power_mw(blind[0]), power_mw(blind[1]))
            interval_ms = duration_ms(interval)
            numbers = tuple(int(text) for text in levels.split(","))
            only = None if rounding is None else Rounding(rounding)
        except PydanticCustomError as error:
            context = error.context or {}
            raise PlanError(f"{context.get('problem')}: {context.get('remedy')}") from None
        except ValueError as error:
            raise PlanError(
                f"{error}: write --levels 2,4,8 and --rounding nearest, feedback or dither"
            ) from None
        if lower >= upper:
            raise PlanError("--range LOW HIGH: LOW must be below HIGH")
        return cls(profile, lower, upper, unit, interval_ms, numbers, only, band)


@dataclass(frozen=True)
class Plan:
    """What was found.

    Attributes:
        title: what was looked at.
        candidates: all options.
        chosen: the one that fulfils the wish best; None without a wish.

    """

    title: str
    candidates: tuple[Option, ...]
    chosen: Option | None

    def report(self) -> dict[str, Any]:
        """Return the plan for a table or a script."""
        roundings = {option.codebook.rounding for option in self.candidates}
        notes = [_FITTED_PRICE]
        notes += [_FEEDBACK_PRICE] if Rounding.FEEDBACK in roundings else []
        notes += [_DITHER_PRICE] if Rounding.DITHER in roundings else []
        return {
            "title": self.title,
            "options": [option.row() for option in self.candidates],
            "chosen": None if self.chosen is None else self.chosen.row(),
            "notes": notes,
        }

    def codebook_file(self) -> str:
        """Return the chosen codebook's file.

        Raises:
            PlanError: nothing was chosen.

        """
        if self.chosen is None:
            raise PlanError("to write a codebook say which: --error W, --bill PERCENT or --bits PER_DAY")
        return to_json(self.chosen.codebook, f"{self.chosen.kind}; {self.title}")


def make_plan(
    request: Request,
    *,
    rmse_w: float | None = None,
    bill_percent: float | None = None,
    bits_per_day: float | None = None,
    progress: Progress = lambda _done, _all: None,
) -> Plan:
    """Measure all options and choose.

    Raises:
        PlanError: the profile cannot be used, or no option fulfils the wish.

    """
    profile = read_profile(request.profile, request.unit, request.interval_ms)
    wish = Wish(rmse_w, bill_percent, bits_per_day)
    found = []
    extra = _blind(request)
    for done, option in enumerate(options(profile, request.lower, request.upper, request.levels, extra), 1):
        progress(done, len(request.levels) * _KINDS + len(extra))
        if request.rounding in (None, option.codebook.rounding):
            found.append(option)
    span = f"{written_power(request.lower)} to {written_power(request.upper)}"
    slots, homes = profile.power.shape
    title = f"{request.profile.name}: {homes} homes, {slots} slots, {span}; fitted on one half, tried on the other"
    return Plan(title, tuple(found), chosen(found, wish) if wish != Wish() else None)


def _blind(request: Request) -> list[tuple[str, Codebook]]:
    """Return the codebooks that are blind in the wanted band, for the numbers of levels that leave cells beside it."""
    if request.blind is None:
        return []
    found, problem = [], "no levels"
    for k in request.levels:
        try:
            found.append(("blind", blind_band(request.lower, request.upper, k, request.blind)))
        except ValueError as error:
            problem = str(error)
    if not found:
        raise PlanError(f"--blind: {problem}")
    return found
