"""Three adversaries who say which home is in a group, and what they make of a recording."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recordings import SLOT_MS, START, START_MS, half_hours_mw, recorded

from gateway.privacy import IntArray
from gateway.pseudonyms import PseudonymKey, Pseudonyms
from simulators.attackers.attack import AttackError, Learnt, Options
from simulators.attackers.membership import (
    ADVERSARIES,
    advantage,
    chance_deviation,
    common_peaks,
    correlation,
    learn,
    names_second,
    squared_error,
)
from simulators.attackers.recording import Recording, parse, read_recording
from simulators.households import DAY_MS, Households

RNG = np.random.default_rng(5)
HOMES = Households.draw(12, seed=3)
INSIDE = HOMES.ids[:4]
DAYS = 7


def test_correlation_is_pearsons_for_each_game() -> None:
    released, readings = RNG.random((20, 30)), RNG.random((20, 30))
    expected = [np.corrcoef(one, other)[0, 1] for one, other in zip(released, readings, strict=True)]
    assert np.allclose(correlation(released, readings), expected)


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e9 / 3])
def test_a_constant_correlates_with_nothing(constant: float) -> None:
    assert correlation(np.full((1, 7), constant), RNG.random((1, 7))).tolist() == [0.0]
    assert correlation(RNG.random((1, 7)), np.full((1, 7), constant)).tolist() == [0.0]


def test_squared_error_is_least_for_the_series_itself() -> None:
    readings = RNG.random((9, 12))
    scores = squared_error(readings[4], readings)
    assert np.allclose(
        scores, [-sum((a - b) ** 2 for a, b in zip(readings[4], r, strict=True)) for r in readings]
    )
    assert np.argmax(scores) == 4


def test_common_peaks_counts_slots_that_rise_and_do_not_rise_on() -> None:
    released = RNG.integers(0, 4, (50, 40)).astype(float)
    readings = RNG.integers(0, 4, (50, 40)).astype(float)

    def peaks(series: list[float]) -> set[int]:
        return {t for t in range(1, 39) if series[t - 1] < series[t] >= series[t + 1]}

    expected = [len(peaks(list(a)) & peaks(list(b))) for a, b in zip(released, readings, strict=True)]
    assert common_peaks(released, readings).tolist() == expected


@pytest.mark.parametrize("adversary", ADVERSARIES.values())
def test_many_candidates_are_scored_as_one_by_one(adversary: object) -> None:
    assert callable(adversary)
    released, readings = RNG.random((1, 25)), RNG.random((6, 25))
    together = adversary(released, readings)
    assert np.allclose(together, [adversary(released, one[None])[0] for one in readings])


def test_the_better_fit_is_named_and_a_tie_is_the_coins() -> None:
    first, second = np.array([1.0, 0.0, 5.0, 5.0]), np.array([0.0, 1.0, 5.0, 5.0])
    named = names_second(first, second, np.array([True, False, True, False]))
    assert named.tolist() == [False, True, True, False]


def test_the_advantage_is_counted_over_all_pairs_and_ties_count_half() -> None:
    members, others = RNG.integers(0, 5, 7).astype(float), RNG.integers(0, 5, 9).astype(float)
    right = sum((m > o) + (m == o) / 2 for m in members for o in others) / 63
    assert advantage(members, others) == pytest.approx(2 * right - 1)


@pytest.mark.parametrize(("members", "others"), [(2, 5), (4, 30)])
def test_chance_spreads_the_advantage_of_useless_scores_as_told(members: int, others: int) -> None:
    games = [advantage(RNG.random(members), RNG.random(others)) for _ in range(4_000)]
    assert np.mean(games) == pytest.approx(0, abs=0.04)
    assert np.std(games) == pytest.approx(chance_deviation(members, others), rel=0.06)


def known(path: Path, power_mw: IntArray, names: tuple[str, ...] = HOMES.ids) -> Path:
    """Write readings as the attacker's CSV of Wh per half hour."""
    times = np.datetime64(START) + np.arange(power_mw.shape[1]) * np.timedelta64(30, "m")
    lines = [",".join(("time", *names))]
    for time, energies in zip(times, (power_mw / 2_000).T, strict=True):
        lines.append(",".join((str(time), *map(str, energies))))
    path.write_text("\n".join(lines) + "\n")
    return path


def learnt(folder: Path, levels: int, days: int = DAYS, **options: object) -> Learnt:
    group = {"name": "feeder", "members": list(INSIDE), "levels": levels}
    recording = recorded(folder / "r.txt", HOMES, days, {"levels": 2}, groups=[group])
    return learn(
        read_recording(recording),
        Options(
            **{  # type: ignore[arg-type]
                "known": known(folder / "known.csv", half_hours_mw(HOMES, DAYS)),
                "members": {"feeder": frozenset(INSIDE)},
                **options,
            }
        ),
    )


def rows_of(found: Learnt, kind: str) -> dict[str, dict[str, object]]:
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    return {str(row["adversary"]): row for row in rows if row["kind"] == kind and row["name"] == "feeder"}


def test_with_many_levels_the_members_of_a_group_are_told_from_others(tmp_path: Path) -> None:
    row = rows_of(learnt(tmp_path, 256), "group")["correlation"]
    assert row["slots"] == DAYS * 48
    assert isinstance(row["named"], list)
    assert len(row["named"]) == 4
    assert row["right"] == len(set(row["named"]) & set(INSIDE))
    assert float(str(row["advantage"])) > 0.6


def test_two_cells_that_a_group_never_leaves_tell_nothing(tmp_path: Path) -> None:
    found = rows_of(learnt(tmp_path, 2), "group")
    assert found["correlation"]["advantage"] == 0
    assert found["correlation"]["± by chance"] == pytest.approx(2 * np.sqrt(13 / (12 * 4 * 8)), abs=1e-4)
    assert found["common peaks"]["advantage"] == 0


def test_without_the_roll_he_names_homes_and_nobody_says_who_is_right(tmp_path: Path) -> None:
    row = rows_of(learnt(tmp_path, 256, members={}), "group")["correlation"]
    assert row["named"]
    assert (row["right"], row["advantage"]) == (None, None)


def test_slots_that_are_not_known_of_all_homes_are_left_out(tmp_path: Path) -> None:
    whole = learnt(tmp_path, 256)
    path = tmp_path / "holes.csv"
    lines = (tmp_path / "known.csv").read_text().splitlines()
    lines[5] = lines[5].rpartition(",")[0] + ","
    path.write_text("\n".join([*lines[:20], *lines[30:]]))
    holes = learnt(tmp_path, 256, known=path)
    assert rows_of(whole, "group")["correlation"]["slots"] == DAYS * 48
    assert rows_of(holes, "group")["correlation"]["slots"] == DAYS * 48 - 11


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "CSV"),
        ("time,a\n", "no lines"),
        ("time,a\n2026-01-05,1\n2026-01-05,2\n", "increase"),
        ("time,a\nyesterday,1\nnow,2\n", "CSV"),
        ("time,a\n2026-01-05,1\n2026-01-06,x\n", "CSV"),
        ("time,a\n2026-01-05,1\n2026-01-06,1,2\n", "CSV"),
        ("time,a\n2001-01-05,1\n2001-01-06,1\n", "no slot"),
    ],
)
def test_a_file_that_says_nothing_is_refused_with_a_reason(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(AttackError, match=reason):
        learnt(tmp_path, 4, 1, known=path)


def test_an_unknown_unit_or_nothing_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AttackError, match="--known"):
        learnt(tmp_path, 4, 1, known=None)
    with pytest.raises(AttackError, match="unit"):
        learnt(tmp_path, 4, 1, unit="J")


def test_the_unit_scales_what_is_known(tmp_path: Path) -> None:
    in_wh = learnt(tmp_path, 256)
    path = known(tmp_path / "kwh.csv", half_hours_mw(HOMES, DAYS) / 1_000)
    assert learnt(tmp_path, 256, known=path, unit="kWh").rows == in_wh.rows


def test_a_single_member_has_no_advantage_since_chance_alone_makes_one(tmp_path: Path) -> None:
    group = {"name": "feeder", "members": [HOMES.ids[0]], "levels": 8}
    recording = recorded(tmp_path / "r.txt", HOMES, 1, {"levels": 2}, groups=[group])
    options = Options(
        known(tmp_path / "known.csv", half_hours_mw(HOMES, 1)), members={"feeder": frozenset(HOMES.ids[:1])}
    )
    row = rows_of(learn(read_recording(recording), options), "group")["correlation"]
    assert row["right"] in {0, 1}
    assert (row["advantage"], row["± by chance"]) == (None, None)


def test_a_roll_whose_group_has_other_members_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AttackError, match="feeder has 3 members in the configuration and 4 in the recording"):
        learnt(tmp_path, 4, 1, members={"feeder": frozenset(HOMES.ids[:3])})


def pseudonymous(folder: Path) -> tuple[Recording, Options, Callable[[int], dict[str, str]]]:
    """Record six days, of which a pseudonym lasts two, and return them with what the attacker and the operator know."""
    names = Pseudonyms(PseudonymKey.of(b"a key that is long enough"), 2 * DAY_MS)
    lines = []
    path = recorded(folder / "r.txt", HOMES, 6, {"levels": 16, "range": ["0 W", "4 kW"]})
    for number, line in enumerate(path.read_bytes().splitlines()):
        slot, home = divmod(number, len(HOMES.ids))
        pseudonym = names.of(START_MS + slot * SLOT_MS, HOMES.ids)[home]
        lines.append(line.replace(HOMES.ids[home].encode(), pseudonym.encode(), 1))
    options = Options(known(folder / "known.csv", half_hours_mw(HOMES, 6)))
    return (
        parse(lines),
        options,
        lambda time_ms: dict(zip(names.of(time_ms, HOMES.ids), HOMES.ids, strict=True)),
    )


def test_pseudonyms_are_resolved_for_each_period_to_tell_who_is_right(tmp_path: Path) -> None:
    recording, options, homes_at = pseudonymous(tmp_path)
    periods = len({start_ms // (2 * DAY_MS) for start_ms in range(START_MS, START_MS + 6 * DAY_MS, SLOT_MS)})
    assert len(recording.households) == periods * len(HOMES.ids)
    found = learn(recording, replace(options, homes_at=homes_at))
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    mine = [row for row in rows if row["adversary"] == "correlation"]
    for row in mine:
        start_ms = int(recording.households[str(row["name"])].start_ms[0])
        assert row["right"] == (row["named"] == [homes_at(start_ms)[str(row["name"])]])
    right = sum(row["right"] == 1 for row in mine)
    assert right > 0.9 * len(mine)
    assert any(f"correlation names the home behind {right} of {len(mine)}" in note for note in found.notes)
    assert any("correlation gives" in note and "links the periods" in note for note in found.notes)


def test_without_the_pseudonyms_key_it_is_not_known_who_is_right(tmp_path: Path) -> None:
    recording, options, _ = pseudonymous(tmp_path)
    found = learn(recording, options)
    assert any("not known who is right: give --config" in note for note in found.notes)
    assert not any(" of 0 " in note for note in found.notes)


def test_households_of_the_same_time_given_the_same_home_link_no_periods(tmp_path: Path) -> None:
    assert not any("links the periods" in note for note in learnt(tmp_path, 4).notes)
