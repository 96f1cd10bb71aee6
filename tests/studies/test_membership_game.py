"""The membership game is fair, its quantizers are those that the papers name, and its intervals cover."""

from math import comb

import numpy as np
import pytest

from gateway.privacy import reach_in
from simulators.attackers.membership import ADVERSARIES
from simulators.studies._membership_game import (
    CERTIFIED,
    LOCAL,
    OVER_ALL,
    PAPER,
    Score,
    codebook_of,
    draw,
    plain,
    play,
    release_of,
    wilson,
)

TOP = 84_000_000


def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def test_one_candidate_is_a_member_the_other_is_not_and_the_coin_is_fair() -> None:
    games = draw(9, 4, 4_000, rng())
    assert games.members.shape == (4_000, 4)
    for candidates, members, second in zip(games.candidates, games.members, games.second, strict=True):
        assert len(set(members)) == 4
        assert members[0] == candidates[int(second)]
        assert candidates[1 - int(second)] not in members
    assert 0.46 < games.second.mean() < 0.54
    assert np.bincount(games.members[:, 0], minlength=9).min() > 350


def test_a_group_needs_a_candidate_outside() -> None:
    with pytest.raises(ValueError, match="need 10 homes"):
        draw(9, 9, 1, rng())


def test_series_begin_where_they_may() -> None:
    games = draw(9, 4, 200, rng(), np.array([0, 48, 96]))
    assert set(games.first_slot.tolist()) == {0, 48, 96}


def test_who_sees_one_home_alone_is_always_right() -> None:
    readings = rng().integers(0, TOP, (9, 60))
    played = play(readings, draw(9, 1, 300, rng()), {"plain": plain}, 60)
    assert {name: score.right for name, score in played["plain"].scores.items()} == dict.fromkeys(
        ADVERSARIES, 300
    )
    assert played["plain"].error_percent == 0


def test_who_sees_a_constant_is_right_as_often_as_the_coin() -> None:
    readings = rng().integers(0, TOP, (9, 60))
    games = draw(9, 4, 2_000, rng())
    played = play(readings, games, {"one cell": release_of(CERTIFIED, 4, 1, TOP)}, 60)["one cell"]
    right = int(np.count_nonzero(games.coins == games.second))
    assert played.scores["correlation"].right == right
    assert played.scores["common peaks"].right == right
    assert played.scores["correlation"].interval[0] == 0


def test_games_in_parts_are_those_of_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    readings, games = rng().integers(0, TOP, (9, 60)), draw(9, 4, 300, rng())
    releases = {"plain": plain, "paper": release_of(PAPER, 4, 4, TOP)}
    whole = play(readings, games, releases, 60)
    monkeypatch.setattr("simulators.studies._membership_game._AT_ONCE", 4 * 60 * 7)
    parts = play(readings, games, releases, 60)
    assert {name: one.scores for name, one in parts.items()} == {
        name: one.scores for name, one in whole.items()
    }
    assert parts["paper"].error_percent == pytest.approx(whole["paper"].error_percent)


def test_the_error_is_that_of_the_released_means() -> None:
    readings, games = rng().integers(0, TOP, (9, 60)), draw(9, 4, 50, rng())
    release = release_of(OVER_ALL, 4, 4, TOP)
    played = play(readings, games, {"k": release}, 60)["k"]
    means = np.array([readings[members].mean(axis=0) for members in games.members])
    released = np.array([release(readings[members][None])[0] for members in games.members])
    rms = np.sqrt(np.mean((released - means) ** 2))
    assert played.error_percent == pytest.approx(100 * rms / means.mean())


@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("levels", [2, 3, 4, 8])
def test_each_reading_has_the_cells_that_it_says(size: int, levels: int) -> None:
    assert codebook_of(PAPER, size, levels, TOP).levels == size * levels
    assert codebook_of(CERTIFIED, size, levels, TOP).levels == max(levels, size * (levels - 1))
    assert codebook_of(OVER_ALL, size, levels, TOP).levels == levels
    assert codebook_of(LOCAL, size, levels, TOP).levels == levels
    assert reach_in(codebook_of(CERTIFIED, size, levels, TOP), TOP) <= levels
    if size > 1:
        assert reach_in(codebook_of(PAPER, size, levels, TOP), TOP) > levels


def test_each_home_quantized_by_itself_gives_the_mean_of_her_values() -> None:
    members = rng().integers(0, TOP, (5, 3, 7))
    width = TOP / 4
    expected = ((np.floor(members / width) + 0.5) * width).mean(axis=1)
    assert np.allclose(release_of(LOCAL, 3, 4, TOP)(members), expected, atol=1)


@pytest.mark.parametrize("chance", [0.5, 0.55, 0.8, 0.99])
@pytest.mark.parametrize("games", [200, 1_000])
def test_the_interval_covers_the_true_chance_as_often_as_it_says(chance: float, games: int) -> None:
    """Summed exactly over the binomial distribution, not sampled."""
    covered = 0.0
    for right in range(games + 1):
        low, high = wilson(right, games)
        if low <= chance <= high:
            covered += comb(games, right) * chance**right * (1 - chance) ** (games - right)
    assert 0.92 < covered < 0.99


@pytest.mark.parametrize(
    ("right", "games"), [(500, 1_000), (510, 1_000), (700, 1_000), (300, 1_000), (1_000, 1_000)]
)
def test_the_advantage_lies_in_its_interval_and_does_not_mind_which_way(right: int, games: int) -> None:
    score, mirrored = Score(right, games), Score(games - right, games)
    low, high = score.interval
    assert 0 <= low <= score.advantage <= high + 1e-12
    assert score.advantage == pytest.approx(mirrored.advantage)
    assert score.interval == pytest.approx(mirrored.interval)
    assert (low == 0) == (abs(right - games / 2) < 32)
