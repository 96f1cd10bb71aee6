"""Which appliances run, from a recording and labelled homes: found with many levels, nothing with one."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from recordings import START_MS, recorded

from gateway.privacy import IntArray
from simulators.attackers import appliances
from simulators.attackers.attack import AttackError, Learnt, Options
from simulators.attackers.recording import parse, read_recording
from simulators.households import Households

HOMES = Households.draw(3, seed=5)


def labels(path: Path, days: int, boiler: IntArray) -> Path:
    """Write a metered home, minute by minute: a boiler of 3 kW as given by half hour, and some 200 W beside."""
    rest = np.random.default_rng(1).integers(150, 250, days * 1440)
    power = np.repeat(boiler, 30) * 3000
    lines = ["time,home,boiler"]
    for minute, (other, used) in enumerate(zip(rest.tolist(), power.tolist(), strict=True)):
        at = datetime.fromtimestamp(START_MS / 1000 + 60 * minute, UTC)
        lines.append(f"{at:%Y-%m-%d %H:%M:%S},{other + used},{used}")
    path.write_text("\n".join(lines))
    return path


def attacked(tmp_path: Path, release: dict[str, object]) -> Learnt:
    boiler = (np.random.default_rng(2).random(12 * 48) < 0.1).astype(np.int64)
    known = labels(tmp_path / "labelled.csv", 12, boiler)
    recording = read_recording(recorded(tmp_path / "recording.txt", HOMES, 7, release))
    return appliances.learn(recording, Options(known, "W"))


@pytest.mark.parametrize("rounding", ["nearest", "feedback"])
def test_what_labelled_homes_show_is_told_of_every_household_with_its_sureness(
    tmp_path: Path, rounding: str
) -> None:
    learnt = attacked(tmp_path, {"levels": 8, "range": ["0 W", "4 kW"], "rounding": rounding})
    rows = [dict(zip(learnt.columns, row, strict=True)) for row in learnt.rows]
    assert [(row["household"], row["appliance"]) for row in rows] == [(name, "boiler") for name in HOMES.ids]
    for row in rows:
        assert float(str(row["F-score"])) >= float(str(row["at least"])) > 2 * float(str(row["by chance"]))
        assert 0 <= float(str(row["slots a day on"])) <= 48
    assert any("one metered home, home, over 12 days" in note for note in learnt.notes)
    assert any(rounding in note for note in learnt.notes)


def test_one_level_tells_of_no_appliance(tmp_path: Path) -> None:
    learnt = attacked(tmp_path, {"levels": 1, "range": ["0 W", "4 kW"]})
    assert [row[:2] for row in learnt.rows] == [(name, None) for name in HOMES.ids]
    assert "a single level was seen" in learnt.notes[0]


def test_without_labelled_homes_simulated_ones_teach_and_it_says_so(tmp_path: Path) -> None:
    recording = read_recording(
        recorded(tmp_path / "recording.txt", HOMES, 2, {"levels": 16, "range": ["0 W", "4 kW"]})
    )
    learnt = appliances.learn(recording, Options())
    found = {row[1]: row for row in learnt.rows}
    assert {"hob", "dishwasher"} <= set(found)
    assert all(float(str(row[4])) > float(str(row[5])) for row in learnt.rows)
    assert any("24 simulated homes" in note for note in learnt.notes)


def test_a_file_without_appliances_or_of_longer_intervals_is_refused(tmp_path: Path) -> None:
    recording = read_recording(recorded(tmp_path / "recording.txt", HOMES, 2, {"levels": 4}))
    for name, text in (
        ("home.csv", "time,home\n2026-01-05T00:00,1\n2026-01-05T00:30,1\n"),
        ("hours.csv", "time,home,kettle\n2026-01-05T00:00,1,0\n2026-01-05T01:00,1,0\n"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(AttackError, match="the others are appliances"):
            appliances.learn(recording, Options(tmp_path / name, "W"))


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_slots_on_are_reckoned_from_what_was_told_and_the_spent_ones_are_said(tmp_path: Path) -> None:
    """A budget that is spent while the boiler runs repeats its level, which must not count as a boiler that runs."""
    boiler = (np.random.default_rng(2).random(12 * 48) < 0.1).astype(np.int64)
    options = Options(labels(tmp_path / "labelled.csv", 12, boiler), "W")
    lines = (
        recorded(tmp_path / "r.txt", HOMES, 7, {"levels": 8, "range": ["0 W", "4 kW"]})
        .read_bytes()
        .splitlines()
    )
    recording = parse(lines)
    first, second, third = recording.households.values()
    half_hour = first.start_ms % 86_400_000 // 1_800_000
    before_noon, noon = half_hour == 23, (half_hour == 24) | (half_hour == 25)
    held = replace(first, value_w=np.where(before_noon, 3_250.0, 250.0), spent=noon)
    nothing = replace(third, value_w=np.full_like(third.value_w, np.nan))
    homes = {
        "held": replace(held, name="held"),
        second.name: second,
        "nothing": replace(nothing, name="nothing"),
    }
    learnt = appliances.learn(replace(recording, households=homes), options)
    rate = {row[0]: row[2] for row in learnt.rows}
    assert rate["held"] == pytest.approx(48 / 46, abs=0.006)  # one told slot of 46
    assert rate["nothing"] is None
    assert any(f"{noon.sum()} releases of 1 households tell nothing" in note for note in learnt.notes)


def test_a_file_of_the_recordings_households_is_no_metered_home(tmp_path: Path) -> None:
    recording = read_recording(recorded(tmp_path / "recording.txt", HOMES, 2, {"levels": 4}))
    (tmp_path / "homes.csv").write_text(
        f"time,{','.join(HOMES.ids)}\n2026-01-05T00:00,1,2,3\n2026-01-05T00:30,1,2,3\n"
    )
    with pytest.raises(AttackError, match="columns are households of the recording"):
        appliances.learn(recording, Options(tmp_path / "homes.csv", "W"))


def test_less_than_a_day_is_refused() -> None:
    with pytest.raises(AttackError, match="whole day"):
        appliances.learn(parse([]), Options())


def test_without_scikit_learn_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appliances, "find_spec", lambda _: None)
    with pytest.raises(AttackError, match=r"scikit-learn: pip install 'noiseless\[studies\]'"):
        appliances.learn(parse([]), Options())
