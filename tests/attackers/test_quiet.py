"""Days on which nobody seems to be home: found where they are, told from chance, named by date."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recordings import START_MS, recorded

from gateway.privacy import BoolArray
from simulators.attackers.attack import AttackError, Options
from simulators.attackers.quiet import learn, whole_days
from simulators.attackers.recording import FloatArray, Recording, Released, parse, read_recording
from simulators.households import Households

RNG = np.random.default_rng(3)


def home(values: FloatArray, told: BoolArray | None = None) -> Released:
    """Return the releases of (days, 48) values from Monday, 5 January 2026; those that are not told left out."""
    kept = np.ones(values.size, np.bool_) if told is None else told.ravel()
    count = int(kept.sum())
    return Released(
        kind="household",
        name="h",
        minutes=30,
        start_ms=(START_MS + np.arange(values.size) * 1_800_000)[kept],
        symbols=np.zeros(count, np.int64),
        levels=np.full(count, 16),
        value_w=values.ravel()[kept],
        spent=np.zeros(count, np.bool_),
        members=1,
        query="",
    )


def lived(days: int) -> FloatArray:
    """Each half hour one of a few loads, whatever the day."""
    return RNG.choice([100.0, 300.0, 1000.0, 3000.0], (days, 48), p=[0.4, 0.3, 0.2, 0.1])


def row_of(released: Released) -> dict[str, object]:
    learnt = learn(Recording(households={"h": released}), Options())
    return dict(zip(learnt.columns, learnt.rows[0], strict=True))


def test_days_away_are_named_by_date_and_are_more_than_chance() -> None:
    values = lived(28)
    values[9:13] = values[20] = 100
    found = row_of(home(values))
    assert found["quiet days"] == 5
    assert found["quiet on"] == ["2026-01-14 to 2026-01-17", "2026-01-25"]
    assert float(str(found["by chance"])) < 1
    assert float(str(found["chance of as many"])) < 0.01


def test_homes_without_any_quiet_day_are_rarely_taken_for_away() -> None:
    """At most 5 % by the promise; of 40 homes more than six would be four standard deviations."""
    chances = [float(str(row_of(home(lived(28)))["chance of as many"])) for _ in range(40)]
    assert sum(chance <= 0.05 for chance in chances) <= 6


def test_at_chance_level_no_day_is_named() -> None:
    found = [row_of(home(lived(28))) for _ in range(40)]
    chance = [row for row in found if float(str(row["chance of as many"])) > 0.05]
    assert any(row["quiet days"] for row in chance)
    assert all(row["quiet on"] == [] for row in chance)


def test_where_the_budget_is_spent_every_evening_the_told_hours_show_who_is_away() -> None:
    values = lived(28)
    values[9:13] = values[20] = 100
    day = home(values)
    learnt = learn(
        Recording(households={"h": replace(day, spent=day.start_ms % 86_400_000 >= 18 * 3_600_000)}),
        Options(),
    )
    assert learnt.rows[0][1:3] == (28, 5)
    assert any("part of the day" in note for note in learnt.notes)


def test_where_hardly_an_hour_is_told_the_budget_is_the_reason() -> None:
    day = home(lived(28))
    spent = day.start_ms % 86_400_000 >= 3_600_000
    with pytest.raises(AttackError, match="budget was spent"):
        learn(Recording(households={"h": replace(day, spent=spent)}), Options())


def test_a_constant_tells_nothing() -> None:
    assert row_of(home(np.full((14, 48), 500.0)))["quiet days"] == 0


def test_days_with_a_slot_missing_are_left_out() -> None:
    values = lived(9)
    told = np.ones(values.shape, np.bool_)
    told[4, 17] = False
    day, whole = whole_days(home(values, told))
    assert (day - day[0]).tolist() == [0, 1, 2, 3, 5, 6, 7, 8]
    np.testing.assert_array_equal(whole, np.delete(values, 4, axis=0))


def test_fewer_than_seven_whole_days_are_refused() -> None:
    with pytest.raises(AttackError, match="7 whole UTC days"):
        learn(Recording(households={"h": home(lived(6))}), Options())
    with pytest.raises(AttackError):
        learn(parse([]), Options())


def test_on_a_recording_of_the_fleet_a_holiday_stands_out(tmp_path: Path) -> None:
    homes = Households.draw(12, seed=1)
    recording = read_recording(
        recorded(tmp_path / "recording.txt", homes, 28, {"levels": 16, "range": ["0 W", "4 kW"]})
    )
    learnt = learn(recording, Options())
    assert [row[0] for row in learnt.rows] == list(homes.ids)
    assert all(row[1] == 28 for row in learnt.rows)
    sure = sum(float(str(row[4])) <= 0.05 for row in learnt.rows)
    assert learnt.notes[0].startswith(f"{sure} of 12 households")
