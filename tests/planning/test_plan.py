"""`noiseless plan`: numbers recomputed by hand, the choice for every wish, files that fit a configuration."""

from __future__ import annotations

import json
import math
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from gateway.checking import load
from gateway.cli import app
from gateway.planning import Option, PlanError, Profile, Wish
from gateway.planning.options import chosen, options
from gateway.policy import document_of
from gateway.privacy import (
    MISSING,
    Codebook,
    IntArray,
    Rounding,
    both_ends,
    fitted,
    from_json,
    keys_of,
    threshold,
    uniform,
)

HALF_DAY = 43_200_000
SLOTS = 56 * 2 + 3
"""Two spans of four weeks, and a rest."""
TOP = 10_000
ROW = (
    "codebook", "rounding", "levels", "epsilon", "bits_per_day", "rmse_w", "worst_error_w", "bill_error_percent",
    "leakage_bits",
)  # fmt: skip


def tiny() -> Profile:
    """Four homes, two to fit and two to try; the last has a gap in its second span and readings out of range."""
    power = np.random.default_rng(5).lognormal(7, 0.8, (SLOTS, 4)).astype(np.int64)
    power[3, 2], power[4, 3], power[5, 2] = TOP + 5_000, -20, TOP
    power[70, 3], power[2, 0] = MISSING, MISSING
    return Profile(power, HALF_DAY)


# --- one option, by hand ------------------------------------------------------------------------------------


def nearest(book: Codebook, x: int) -> int:
    """The value of the last cell that begins at or below x."""
    return int(book.values[sum(cut <= x for cut in book.cuts.tolist())])


def dithered(book: Codebook, x: int, home: int, slot: int) -> int:
    levels: list[int] = book.values.tolist()
    j = max(i for i, level in enumerate(levels) if level <= x)
    if levels[j] == x:
        return x
    key = keys_of("plan", [str(home)])
    up = x - levels[j] > int(threshold(key, slot, np.array([levels[j + 1] - levels[j]]))[0])
    return levels[j + up]


def released(book: Codebook, series: list[int], home: int) -> list[int]:
    held, carried, values = book.lower, 0, []
    for slot, x in enumerate(series):
        used = held if x == MISSING else min(max(x, book.lower), book.upper)
        if book.rounding is Rounding.FEEDBACK:
            held = nearest(book, used + carried)
            carried += used - held
        elif book.rounding is Rounding.DITHER:
            held = dithered(book, used, home, slot)
        else:
            held = nearest(book, used)
        values.append(held)
    return values


def expected(book: Codebook, power: IntArray) -> dict[str, float]:
    off, total, squares = 0, 0, []
    for home in range(power.shape[1]):
        series = power[:, home].tolist()
        values = released(book, series, home)
        squares += [(y - x) ** 2 for x, y in zip(series, values, strict=True) if x != MISSING]
        for span in range(len(series) // 56):
            part = slice(56 * span, 56 * span + 56)
            if MISSING not in series[part]:
                off += abs(sum(values[part]) - sum(series[part]))
                total += sum(series[part])
    return {
        "rmse_w": math.sqrt(sum(squares) / len(squares)) / 1_000,
        "bill_percent": 100 * off / total,
        "bits_per_day": 2 * math.log2(book.levels),
    }


def worst(book: Codebook) -> int:
    """Of one release, over the whole range: from the nearest value, or to either neighbour where it may go."""
    if book.rounding is Rounding.NEAREST:
        return max(abs(nearest(book, x) - x) for x in range(book.lower, book.upper + 1))
    levels: list[int] = book.values.tolist()
    return max(b - a for a, b in pairwise(levels))


def test_every_kind_of_codebook_is_looked_at_for_every_number_of_levels() -> None:
    found = list(options(tiny(), 0, TOP, [1, 2, 5], [("mine", uniform(0, TOP, 3))]))
    kinds = [(one.kind, one.codebook.rounding.value, one.codebook.levels) for one in found]
    every = [
        (kind, rounding.value, k) for k, rounding, kind in product((2, 5), Rounding, ("uniform", "fitted"))
    ]
    assert sorted(kinds) == sorted(
        [*every, ("uniform", "nearest", 1), ("fitted", "nearest", 1), ("mine", "nearest", 3)]
    )


def test_codebooks_are_fitted_to_one_half_and_measured_on_the_other() -> None:
    profile = tiny()
    fit = profile.power[:, :2]
    for option in options(profile, 0, TOP, [2, 4]):
        book, rounding, k = option.codebook, option.codebook.rounding, option.codebook.levels
        if option.kind == "fitted":
            made = fitted(fit[fit != MISSING], 0, TOP, k, rounding=rounding)
        else:
            made = uniform(0, TOP, k) if rounding is Rounding.NEAREST else both_ends(0, TOP, k, rounding)
        assert book.hash == made.hash
        by_hand = expected(book, profile.power[:, 2:])
        assert option.rmse_w == pytest.approx(by_hand["rmse_w"], rel=1e-12)
        assert option.bill_percent == pytest.approx(by_hand["bill_percent"], rel=1e-12)
        assert option.bits_per_day == pytest.approx(by_hand["bits_per_day"], abs=4e-6)
        assert option.worst_w == worst(book) / 1_000


def test_a_row_has_the_same_columns_for_every_kind_in_a_script_s_units() -> None:
    for option in options(tiny(), 0, TOP, [2]):
        row = option.row()
        assert tuple(row) == ROW
        assert row["epsilon"] == 1
        assert row["bits_per_day"] == 2
        assert json.loads(json.dumps(row, allow_nan=False)) == row


def test_a_profile_shorter_than_four_weeks_has_no_bill() -> None:
    short = Profile(tiny().power[:50], HALF_DAY)
    assert {option.bill_percent for option in options(short, 0, TOP, [2])} == {None}


def test_a_half_without_any_number_is_refused_and_no_nan_is_shown() -> None:
    for gone in (slice(0, 2), slice(2, 4)):
        power = tiny().power.copy()
        power[:, gone] = MISSING
        with pytest.raises(PlanError):
            list(options(Profile(power, HALF_DAY), 0, TOP, [2]))


# --- the choice ---------------------------------------------------------------------------------------------

BOOKS = {
    Rounding.NEAREST: uniform(0, TOP, 4),
    Rounding.FEEDBACK: both_ends(0, TOP, 4, Rounding.FEEDBACK),
    Rounding.DITHER: both_ends(0, TOP, 4, Rounding.DITHER),
}


def option(bits: float, rmse: float, bill: float | None, rounding: Rounding = Rounding.NEAREST) -> Option:
    return Option("fitted", BOOKS[rounding], bits, rmse, 1.0, bill)


CANDIDATES = [
    option(48, 300, 20),
    option(48, 250, 0.2, Rounding.FEEDBACK),
    option(48, 260, 4, Rounding.DITHER),
    option(96, 100, 10),
    option(96, 90, 0.05, Rounding.FEEDBACK),
    option(144, 50, 5),
    option(144, 40, None),
]


@pytest.mark.parametrize(
    ("wish", "place"),
    [
        (Wish(rmse_w=400), 2),  # the fewest bits, then without private state, then the smaller error
        (Wish(rmse_w=255), 1),  # feedback is the only one of 48 bits that fulfils it
        (Wish(rmse_w=100), 3),  # of 96 bits both do: not the one with private state, though it is closer
        (Wish(rmse_w=45), 6),
        (Wish(bill_percent=30), 1),  # feedback is as good as any when the bill asks for it: the smaller error
        (Wish(bill_percent=0.1), 4),
        (Wish(bits_per_day=48), 2),
        (Wish(bits_per_day=100), 3),  # the most bits that fit, then without private state
        (Wish(bits_per_day=1_000), 6),
        (Wish(rmse_w=270, bits_per_day=1_000), 2),  # an accuracy is wanted: no more bits than it takes
        (Wish(bill_percent=5, bits_per_day=96), 1),
        (Wish(rmse_w=95, bill_percent=1), 4),
    ],
)
def test_the_choice_is_the_fewest_bits_then_no_private_state_then_the_smaller_error(
    wish: Wish, place: int
) -> None:
    assert chosen(CANDIDATES, wish) is CANDIDATES[place]
    assert chosen(CANDIDATES[::-1], wish) is CANDIDATES[place], "whatever their order"


def test_a_choice_fulfils_the_wish_and_nothing_cheaper_does() -> None:
    rng = np.random.default_rng(11)
    for _ in range(300):
        some = [
            option(float(rng.integers(1, 5)), float(rng.integers(1, 9)), float(rng.integers(1, 9)), rounding)
            for rounding in rng.choice(np.array(list(Rounding)), 6)
        ]
        limits = [None if rng.random() < 0.4 else float(rng.integers(1, 9)) for _ in range(3)]
        wish = Wish(*limits)
        if not any(map(wish.fulfilled, some)):
            with pytest.raises(PlanError, match="no codebook here fulfils"):
                chosen(some, wish)
            continue
        best = chosen(some, wish)
        assert wish.fulfilled(best)
        good = [one for one in some if wish.fulfilled(one)]
        wanted = limits[0] is not None or limits[1] is not None
        assert best.bits_per_day == (min if wanted or limits[2] is None else max)(
            one.bits_per_day for one in good
        )


# --- the command --------------------------------------------------------------------------------------------


def invoked(*arguments: str | Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["plan", *map(str, arguments)], catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(scope="module")
def loads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two homes over 29 days of half hours, in Wh."""
    path = tmp_path_factory.mktemp("plan") / "loads.csv"
    table = np.random.default_rng(2).lognormal(5, 0.9, (29 * 48, 2)).astype(int)
    path.write_text("t,a,b\n" + "".join(f"{i},{a},{b}\n" for i, (a, b) in enumerate(table.tolist())))
    return path


def strictly(text: str) -> Any:  # noqa: ANN401 - any JSON
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_json_has_title_options_choice_and_notes_and_nothing_is_chosen_without_a_wish(loads: Path) -> None:
    code, out, err = invoked("--profile", loads, "--levels", "2,4", "--json")
    report = strictly(out)
    assert code == 0, err
    assert list(report) == ["title", "options", "chosen", "notes"]
    assert report["chosen"] is None
    assert len(report["options"]) == 12
    assert all(tuple(row) == ROW for row in report["options"])
    assert "2 homes, 1392 slots" in report["title"]
    assert any("later releases" in note for note in report["notes"])


def test_the_chosen_row_is_one_of_the_options(loads: Path) -> None:
    code, out, _ = invoked("--profile", loads, "--levels", "2,4", "--bits", "50", "--json")
    report = strictly(out)
    assert code == 0
    assert report["chosen"] in report["options"]
    assert report["chosen"]["levels"] == 2


def test_only_the_wanted_rounding_is_shown_and_its_price_is_told(loads: Path) -> None:
    for rounding in Rounding:
        _, out, _ = invoked("--profile", loads, "--levels", "2,4", "--rounding", rounding.value, "--json")
        report = strictly(out)
        assert {row["rounding"] for row in report["options"]} == {rounding.value}
        assert any(note.startswith(rounding.value) for note in report["notes"]) == (
            rounding is not Rounding.NEAREST
        )


def test_the_table_names_the_choice_and_the_file(loads: Path, tmp_path: Path) -> None:
    written = tmp_path / "levels.json"
    code, out, _ = invoked("--profile", loads, "--levels", "4", "--bill", "0.1", "--write", written)
    assert code == 0
    assert "chosen: fitted, feedback, 4 levels" in out
    assert 'codebook = "levels.json"' in out


@pytest.mark.parametrize("rounding", Rounding)
@pytest.mark.parametrize("missing", ["hold", "symbol"])
def test_a_written_codebook_is_one_that_check_and_run_accept(
    loads: Path, tmp_path: Path, rounding: Rounding, missing: str
) -> None:
    written = tmp_path / "levels.json"
    code, out, err = invoked(
        *(
            "--profile",
            loads,
            "--range",
            "0 W",
            "9 kW",
            "--levels",
            "5",
            "--bits",
            "1000",
            "--rounding",
            rounding.value,
        ),
        *("--write", written, "--json"),
    )
    assert code == 0, err
    row = strictly(out)["chosen"]
    config = tmp_path / "noiseless.toml"
    config.write_text(
        f'slots.missing = "{missing}"\nrelease.codebook = "levels.json"\n'
        '[[source]]\ntopic = "m/{household}"\nvalue = "/e"\nunit = "Wh"\ntime = { at = "/ts" }\n'
        '[[household]]\nid = "a"\n[[household]]\nid = "b"\n'
        '[[group]]\nname = "g"\nmembers = ["*"]\nlevels = 4\n'
    )
    result = CliRunner().invoke(app, ["check", str(config), "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.stdout
    (shown,) = strictly(result.stdout)["households"]
    assert shown["levels"] == 5 + (missing == "symbol")
    assert shown["range_w"] == [0, 9_000]
    assert shown["worst_error_w"] == row["worst_error_w"]
    policy = document_of(load(config)).compile()
    assert policy.households.codebooks[0].rounding is rounding
    assert from_json(written.read_text()).rounding is rounding


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_plot_is_written_in_the_format_of_its_name(loads: Path, tmp_path: Path, ending: str) -> None:
    pytest.importorskip("matplotlib")
    plot = tmp_path / f"plan.{ending}"
    code, _, err = invoked("--profile", loads, "--levels", "2,4", "--bill", "5", "--plot", plot)
    assert code == 0, err
    head = plot.read_bytes()[:200]
    assert head.startswith(b"\x89PNG\r\n") if ending == "png" else b"<?xml" in head


def test_a_blind_codebook_is_another_option(loads: Path) -> None:
    _, out, _ = invoked("--profile", loads, "--levels", "4", "--blind", "1 kW", "1.5 kW", "--json")
    blind = [row for row in strictly(out)["options"] if row["codebook"] == "blind"]
    assert [(row["rounding"], row["levels"]) for row in blind] == [("nearest", 4)]


FAILING: dict[str, tuple[tuple[str, ...], str]] = {
    "no codebook fulfils it": (("--error", "0.001"), "more --levels"),
    "write without a wish": (("--write", "FOLDER/levels.json"), "--error"),
    "write into no folder": (("--bits", "1000", "--write", "FOLDER/nowhere/levels.json"), "nowhere"),
    "plot of no format": (("--plot", "FOLDER/plan.xyz"), "png"),
    "plot into no folder": (("--plot", "FOLDER/nowhere/plan.png"), "nowhere"),
    "no levels": (("--levels", "0"), "0 levels"),
    "levels that are no numbers": (("--levels", "two"), "--levels 2,4,8"),
    "more levels than the range has integers": (("--range", "0 mW", "3 mW", "--levels", "16"), "16 levels"),
    "a unit of power": (("--unit", "kW"), "Wh or kWh"),
    "a range upside down": (("--range", "5 kW", "0 W"), "LOW must be below HIGH"),
    "a range without units": (("--range", "0", "5"), "unit"),
    "an interval without a unit": (("--interval", "30"), "unit"),
    "an interval of a month": (("--interval", "31d", "--bill", "1"), "four weeks|28 days"),
    "a bill from too short a profile": (("--interval", "15min", "--bill", "1"), "four weeks|28 days"),
    "a rounding that is none": (("--rounding", "up"), "nearest, feedback or dither"),
    "feedback with one level": (("--rounding", "feedback", "--levels", "1", "--bits", "9"), "levels"),
    "a band outside the range": (("--blind", "20 kW", "30 kW"), "band"),
}


@pytest.mark.parametrize("name", FAILING)
def test_what_cannot_be_planned_ends_with_1_and_what_to_do(loads: Path, tmp_path: Path, name: str) -> None:
    """In words, in one line of the error stream, without a traceback."""
    arguments, words = FAILING[name]
    given = [argument.replace("FOLDER", str(tmp_path)) for argument in arguments]
    levels = () if "--levels" in given else ("--levels", "4")
    code, out, err = invoked("--profile", loads, *levels, *given)
    assert code == 1
    assert out == ""
    assert any(word in err for word in words.split("|")), err


@pytest.mark.parametrize(
    "arguments", [(), ("--profile",), ("--profile", "x", "--bits", "many"), ("--sideways",)]
)
def test_what_is_not_understood_is_usage(arguments: tuple[str, ...]) -> None:
    assert invoked(*arguments)[0] == 2


def test_loads_that_all_lie_beyond_the_range_are_planned_or_refused_without_a_traceback(loads: Path) -> None:
    """Wh read as kWh: every load is clamped to the upper end."""
    code, out, err = invoked("--profile", loads, "--unit", "kWh", "--levels", "4", "--json")
    assert code in (0, 1), err
    assert code == 1 or strictly(out)["options"]


def test_a_half_of_the_homes_without_numbers_ends_with_a_word_about_it(tmp_path: Path) -> None:
    path = tmp_path / "loads.csv"
    path.write_text("t,a,b\n" + "".join(f"{i},{100 + i},\n" for i in range(60)))
    code, _, err = invoked("--profile", path, "--levels", "2", "--json")
    assert code == 1
    assert "error" in err
