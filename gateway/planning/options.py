"""Every kind of codebook, measured on a profile by the production ``close_slot``, and the choice among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gateway.planning.profile import PlanError, Profile
from gateway.privacy import (
    MICROBITS_PER_BIT,
    MISSING,
    Codebook,
    Groups,
    IntArray,
    Policy,
    Rounding,
    Shelf,
    State,
    both_ends,
    close_slot,
    fitted,
    keys_of,
    microbits,
    uniform,
)

FloatArray = npt.NDArray[np.float64]
_MS_PER_DAY = 86_400_000
_BILL_DAYS = 28


@dataclass(frozen=True)
class Option:
    """One kind of codebook, and what it gave.

    Attributes:
        kind: "uniform" or "fitted".
        codebook: the codebook.
        bits_per_day: of a household's own releases.
        rmse_w: root mean square error of a release (W).
        worst_w: the most a release can be off for a reading in range (W).
        bill_percent: four weeks' energy, absolute errors of all homes over their total; None if shorter.

    """

    kind: str
    codebook: Codebook
    bits_per_day: float
    rmse_w: float
    worst_w: float
    bill_percent: float | None

    def row(self) -> dict[str, object]:
        """Return the option for a table or a script."""
        return {
            "codebook": self.kind,
            "rounding": self.codebook.rounding.value,
            "levels": self.codebook.levels,
            "epsilon": round(microbits(self.codebook.levels) / MICROBITS_PER_BIT, 6),
            "bits_per_day": round(self.bits_per_day, 3),
            "rmse_w": round(self.rmse_w, 3),
            "worst_error_w": self.worst_w,
            "bill_error_percent": None if self.bill_percent is None else round(self.bill_percent, 4),
            "leakage_bits": round(self.codebook.leakage_bits(), 3),
        }


@dataclass(frozen=True)
class Wish:
    """What a codebook should fulfil; any of them."""

    rmse_w: float | None = None
    bill_percent: float | None = None
    bits_per_day: float | None = None

    def fulfilled(self, option: Option) -> bool:
        """Return whether an option fulfils it."""
        bill = option.bill_percent if option.bill_percent is not None else float("inf")
        return (
            (self.rmse_w is None or option.rmse_w <= self.rmse_w)
            and (self.bill_percent is None or bill <= self.bill_percent)
            and (self.bits_per_day is None or option.bits_per_day <= self.bits_per_day)
        )


def options(
    profile: Profile,
    lower: int,
    upper: int,
    levels: Sequence[int],
    extra: Sequence[tuple[str, Codebook]] = (),
) -> Iterator[Option]:
    """Yield every kind of codebook for each number of levels, measured on the half it was not fitted to.

    Args:
        profile: public.
        lower: the range's lower end (mW).
        upper: the range's upper end (mW).
        levels: the numbers of levels.
        extra: further codebooks, by kind.

    Raises:
        PlanError: a codebook does not fit the range.

    """
    fit, trial = profile.halves()
    known = fit.power[fit.power != MISSING]
    if not len(known) or not np.any(trial.power != MISSING):
        raise PlanError("half of the profile has no number: give one with more homes, or a longer one")
    for kind, codebook in [*_kinds(known, lower, upper, levels), *extra]:
        yield _measured(kind, codebook, trial)


def chosen(candidates: Sequence[Option], wish: Wish) -> Option:
    """Return the option that fulfils a wish with the fewest bits, then without private state, then closest.

    With a budget and no wanted accuracy the most bits that fit are used. Feedback is taken only when the bill
    asks for it: its later releases also speak of earlier readings, and its levels multiply with a group's.

    Raises:
        PlanError: none fulfils it.

    """
    good = [option for option in candidates if wish.fulfilled(option)]
    if wish.bill_percent is not None and all(option.bill_percent is None for option in candidates):
        raise PlanError("the profile has no four weeks without gaps in its second half: give a longer one")
    if not good:
        raise PlanError("no codebook here fulfils that: allow more --levels, more error, or more bits")
    spend_all = wish.rmse_w is None and wish.bill_percent is None
    direction = -1 if spend_all and wish.bits_per_day is not None else 1

    def order(option: Option) -> tuple[float, ...]:
        stateful = option.codebook.rounding is Rounding.FEEDBACK and wish.bill_percent is None
        return (direction * option.bits_per_day, stateful, option.rmse_w)

    return min(good, key=order)


def _kinds(known: IntArray, lower: int, upper: int, levels: Sequence[int]) -> Iterator[tuple[str, Codebook]]:
    for k in levels:
        try:
            yield "uniform", uniform(lower, upper, k)
            yield "fitted", fitted(known, lower, upper, k)
            for rounding in (Rounding.FEEDBACK, Rounding.DITHER):
                if k > 1:
                    yield "uniform", both_ends(lower, upper, k, rounding)
                    yield "fitted", fitted(known, lower, upper, k, rounding=rounding)
        except ValueError as error:
            raise PlanError(f"{k} levels: {error}") from error


def _measured(kind: str, codebook: Codebook, trial: Profile) -> Option:
    released, known = _released(codebook, trial), trial.power != MISSING
    error = np.where(known, released - trial.power, 0).astype(np.float64)
    per_day = microbits(codebook.levels) / MICROBITS_PER_BIT * _MS_PER_DAY / trial.slot_ms
    rmse = float(np.sqrt(np.sum(error**2) / np.count_nonzero(known))) / 1_000
    return Option(kind, codebook, per_day, rmse, codebook.worst_error() / 1_000, _bill(error, trial, known))


def _released(codebook: Codebook, trial: Profile) -> IntArray:
    """Return (T, H) the values that receivers would read."""
    slots, homes = trial.power.shape
    keys = keys_of("plan", map(str, range(homes)))
    policy = Policy.over(Shelf([codebook], np.zeros(homes, np.int64), keys), Groups([], []))
    state, released = State.initial(policy), np.empty((slots, homes), np.int64)
    for slot in range(slots):
        state = close_slot(policy, state, slot, trial.power[slot]).state
        released[slot] = state.held
    return released


def _bill(error: FloatArray, trial: Profile, known: npt.NDArray[np.bool_]) -> float | None:
    """Return |errors| over totals, in percent, of all complete spans of four weeks of all homes."""
    span = _BILL_DAYS * _MS_PER_DAY // trial.slot_ms
    spans = len(error) // span if span else 0
    if spans == 0:
        return None
    shape = (spans, span, error.shape[1])
    complete = known[: spans * span].reshape(shape).all(axis=1)
    off = np.abs(error[: spans * span].reshape(shape).sum(axis=1))[complete].sum()
    total = np.where(known, trial.power, 0)[: spans * span].reshape(shape).sum(axis=1)[complete].sum()
    return float(off / total * 100) if total > 0 else None
