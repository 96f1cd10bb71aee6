"""The day of a home, from its releases alone: found where it is there, and not where it is not."""

from dataclasses import replace
from math import log2
from pathlib import Path

import numpy as np
import pytest
from recordings import recorded

from gateway.privacy import IntArray
from simulators.attackers.attack import AttackError, Options
from simulators.attackers.recording import FloatArray, Recording, Released, parse, read_recording
from simulators.attackers.routine import Routine, entropy_bits, learn, routine_of
from simulators.households import Households

MONDAY_MS = 1_767_571_200_000
RNG = np.random.default_rng(2)


def home(values: FloatArray, levels: int = 16) -> Released:
    """Return a home's releases from (days, 48) values, beginning on a Monday."""
    flat = values.reshape(-1).astype(float)
    count = len(flat)
    _, symbols = np.unique(flat, return_inverse=True)
    return Released(
        kind="household",
        name="h",
        minutes=30,
        start_ms=MONDAY_MS + np.arange(count) * 1_800_000,
        symbols=symbols.astype(np.int64),
        levels=np.full(count, levels),
        value_w=flat,
        spent=np.zeros(count, np.bool_),
        members=1,
        query="",
    )


def lived(days: int) -> FloatArray:
    """Up from 6:30 to 23:00, out from 8:30 to 17:00 from Monday to Friday, with some chance in every half hour."""
    usual = np.full((days, 48), 400.0)
    usual[:, :13] = usual[:, 46:] = 100
    workdays = np.arange(days) % 7 < 5
    usual[workdays, 17:34] = 120
    return usual + RNG.normal(0, 20, usual.shape)


def test_a_home_that_lives_by_the_clock_is_read_from_it() -> None:
    assert routine_of(home(lived(28))) == Routine(390, 1_380, (510, 1_020))


def test_a_home_that_is_in_all_day_has_no_low_stretch() -> None:
    values = lived(28)
    values[:, 17:34] = 400
    assert routine_of(home(values)) == Routine(390, 1_380, None)


@pytest.mark.parametrize("kind", ["chance", "constant"])
def test_chance_is_not_taken_for_a_habit(kind: str) -> None:
    found = 0
    for _ in range(100):
        values = RNG.integers(0, 4, (14, 48)) if kind == "chance" else np.ones((14, 48))
        found += routine_of(home(values)) is not None
    assert found <= 3


def test_too_few_days_and_slots_that_do_not_divide_a_day_tell_nothing() -> None:
    assert routine_of(home(lived(3))) is None


@pytest.mark.parametrize("k", [1, 2, 5, 16])
def test_entropy_of_many_even_symbols_is_log_k(k: int) -> None:
    assert entropy_bits(RNG.integers(0, k, 50_000)) == pytest.approx(log2(k), abs=0.002)


def test_entropy_is_right_in_the_mean_also_for_few_symbols() -> None:
    true = 1.5  # shares ½, ¼, ¼
    estimates = [entropy_bits(RNG.choice([0, 1, 2], 20, p=[0.5, 0.25, 0.25])) for _ in range(3_000)]
    assert np.mean(estimates) == pytest.approx(true, abs=0.03)


def lines_of(homes: Households, folder: Path, release: dict[str, object]) -> Recording:
    return read_recording(recorded(folder / "recording.txt", homes, 21, release))


def spent_from(day: Released, hour: int) -> Released:
    """Return a home's releases, of which those from an hour of each day on repeat the last that was told."""
    return replace(day, spent=day.start_ms % 86_400_000 >= hour * 3_600_000)


def test_where_the_budget_is_spent_every_afternoon_the_told_hours_show_the_morning() -> None:
    assert routine_of(spent_from(home(lived(28)), 14)) == Routine(390, None, (510, 840))


def test_of_a_morning_that_was_not_told_nobody_says_when_a_home_wakes() -> None:
    day = home(lived(28))
    hidden = (day.start_ms % 86_400_000 >= 6 * 3_600_000) & (day.start_ms % 86_400_000 < 8 * 3_600_000)
    assert routine_of(replace(day, spent=hidden)) == Routine(None, 1_380, (510, 1_020))


def test_less_than_a_quiet_stretch_a_day_tells_no_routine() -> None:
    assert routine_of(spent_from(home(lived(28)), 3)) is None


def test_a_part_of_the_day_is_said_and_nothing_told_at_all_is_the_budgets_fault() -> None:
    part = learn(Recording(households={"h": spent_from(home(lived(28)), 14)}), Options())
    assert any("1 households were told for part of the day only" in note for note in part.notes)
    with pytest.raises(AttackError, match="budget was spent"):
        learn(Recording(households={"h": spent_from(home(lived(28)), 0)}), Options())


def woken(recording: Recording, homes: Households) -> IntArray:
    """Return (homes told, 2) minutes at which a home wakes, by the attacker and in truth."""
    routines = [
        (routine_of(recording.households[name]), at) for name, at in zip(homes.ids, homes.wake, strict=True)
    ]
    return np.array([(found.wakes, at) for found, at in routines if found is not None])


def test_fine_levels_tell_when_simulated_homes_wake(tmp_path: Path) -> None:
    homes = Households.draw(40, seed=4)
    release = {"levels": 64, "range": ["0 W", "3 kW"]}
    times = woken(lines_of(homes, tmp_path, release), homes)
    assert len(times) >= 30
    told, true = times[:, 0], times[:, 1]
    without = np.abs(np.median(true) - true)  # what one is off by who knows only when people usually wake
    assert np.median(np.abs(told - true)) < np.median(without) / 2


def test_two_levels_over_the_whole_connection_tell_far_less(tmp_path: Path) -> None:
    homes = Households.draw(40, seed=4)
    fine = lines_of(homes, tmp_path, {"levels": 64, "range": ["0 W", "3 kW"]})
    coarse = lines_of(homes, tmp_path, {"levels": 2})
    assert len(woken(coarse, homes)) < len(woken(fine, homes)) / 4


def test_the_report_tells_bits_allowed_and_used(tmp_path: Path) -> None:
    homes = Households.draw(6, seed=4)
    found = learn(lines_of(homes, tmp_path, {"levels": 4}), Options())
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    assert [row["household"] for row in rows] == list(homes.ids)
    for row in rows:
        assert row["days"] == 21
        assert row["bits allowed"] == 2
        assert 0 <= float(str(row["of them by time of day"])) <= float(str(row["bits used"])) <= 2
    assert "6 households" in found.notes[0]


def test_a_recording_of_too_few_days_is_refused() -> None:
    with pytest.raises(AttackError, match="days"):
        learn(parse([]), Options())
