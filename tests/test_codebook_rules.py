"""Faults of the fields that choose codebooks, rounding, weights and calibration: field, value, and what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from gateway.checking import ConfigError, validated
from gateway.cli import app
from gateway.config import Config
from gateway.policy import document_of
from gateway.privacy import Rounding, both_ends, fitted, to_json
from gateway.rules import Fault

SOURCE = {"topic": "m/{household}", "value": "/e", "unit": "Wh", "time": {"at": "/ts"}}
GOOD: dict[str, Any] = {"source": [SOURCE], "household": [{"id": "a"}, {"id": "b"}]}
FITTED = fitted(np.arange(2_000) ** 2, 0, 9_000_000, 5)
CARRYING = both_ends(0, 9_000_000, 3, Rounding.FEEDBACK)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Codebook files by name, and files that are none."""
    contents = {
        "fitted": to_json(FITTED),
        "feedback": to_json(CARRYING),
        "changed": to_json(FITTED).replace("9000000", "9000001"),
        "garbage": "no codebook",
        "bytes": None,
    }
    paths = {name: tmp_path / f"{name}.json" for name in contents}
    for name, content in contents.items():
        paths[name].write_bytes(b"\xff\xfe\x00" if content is None else content.encode())
    return {name: str(path) for name, path in paths.items()} | {
        "nowhere": str(tmp_path / "nowhere.json"),
        "folder": str(tmp_path),
    }


def named(value: Any, files: dict[str, str]) -> Any:  # noqa: ANN401 - any TOML
    """Return tables with the files' paths for ``FILE name``."""
    if isinstance(value, dict):
        return {key: named(inner, files) for key, inner in value.items()}
    if isinstance(value, list):
        return [named(inner, files) for inner in value]
    return (
        files[value.removeprefix("FILE ")] if isinstance(value, str) and value.startswith("FILE ") else value
    )


def faults(**tables: Any) -> list[Fault]:  # noqa: ANN401 - any TOML
    with pytest.raises(ConfigError) as refused:
        validated({**GOOD, **tables})
    return refused.value.faults


def good(**tables: Any) -> Config:  # noqa: ANN401 - any TOML
    return validated({**GOOD, **tables})


def group(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 - any TOML
    return {"group": [{"name": "g", "members": ["*"], "levels": 4, **fields}]}


FAULTS: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "a file that is not there": (
        {"release": {"codebook": "FILE nowhere"}},
        "release.codebook",
        "No such file",
        "noiseless plan",
    ),
    "a folder": ({"release": {"codebook": "FILE folder"}}, "release.codebook", "directory", "noiseless plan"),
    "no codebook": (
        {"release": {"codebook": "FILE garbage"}},
        "release.codebook",
        "not a codebook",
        "noiseless plan",
    ),
    "no text": ({"release": {"codebook": "FILE bytes"}}, "release.codebook", "", "noiseless plan"),
    "changed content": ({"release": {"codebook": "FILE changed"}}, "release.codebook", "", "noiseless plan"),
    "other levels than the file": (
        {"release": {"codebook": "FILE fitted", "levels": 4}},
        "release.levels",
        "makes 5 levels",
        "levels = 5",
    ),
    "another epsilon than the file": (
        {"release": {"codebook": "FILE fitted", "epsilon": 2}},
        "release.epsilon",
        "makes 5 levels",
        "levels = 5",
    ),
    "a household's levels against the file": (
        {"release": {"codebook": "FILE fitted"}, "household": [{"id": "a"}, {"id": "b", "levels": 3}]},
        "household.1.levels",
        "makes 5 levels",
        "levels = 5",
    ),
    "a household's file against everyone's levels": (
        {"release": {"levels": 4}, "household": [{"id": "a"}, {"id": "b", "codebook": "FILE fitted"}]},
        "release.levels",
        "makes 5 levels",
        "levels = 5",
    ),
    "the symbol for silence is one level more": (
        {"slots": {"missing": "symbol"}, "release": {"codebook": "FILE fitted", "levels": 5}},
        "release.levels",
        "makes 6 levels",
        "levels = 6",
    ),
    "another range than the file": (
        {"release": {"codebook": "FILE fitted", "range": ["0 W", "14.5 kW"]}},
        "release.range",
        "another range",
        '["0 W", "9 kW"]',
    ),
    "mid-points and feedback": (
        {"release": {"codebook": "FILE fitted", "rounding": "feedback"}},
        "release.rounding",
        "both ends",
        "plan --rounding feedback",
    ),
    "mid-points and a household's dither": (
        {
            "release": {"codebook": "FILE fitted"},
            "household": [{"id": "a"}, {"id": "b", "rounding": "dither"}],
        },
        "household.1.rounding",
        "both ends",
        "plan --rounding dither",
    ),
    "feedback and one level": (
        {"release": {"levels": 1, "rounding": "feedback"}},
        "release.rounding",
        "needs 2",
        "2 levels or more",
    ),
    "feedback, two levels, and one for silence": (
        {"slots": {"missing": "symbol"}, "release": {"levels": 2, "rounding": "feedback"}},
        "release.levels",
        "symbol",
        "levels = 3",
    ),
    "a rounding that is none": ({"release": {"rounding": "up"}}, "release.rounding", "", "dither"),
    "a group with dither": (group(rounding="dither"), "group.0.rounding", "", "feedback"),
    "a group with feedback and one level": (
        group(rounding="feedback", levels=1),
        "group.0.levels",
        "two levels",
        "levels",
    ),
    "a weight that is not whole": (group(weights={"a": 0.5}), "group.0.weights", "", "whole|integer"),
    "a weight that is a text": (group(weights={"a": "2"}), "group.0.weights", "", "whole|integer"),
    "a weight beyond a million": (group(weights={"a": 1_000_001}), "group.0.weights", "", "1000000|million"),
    "weights of nobody": (group(weights={"z-*": 2}), "group.0.weights", "matches no household", "pattern"),
    "no weight at all": (group(weights={"*": 0}), "group.0.weights", "weight", "weight"),
    "the paper's levels": (group(calibration="paper"), "group.0.calibration", "Theorem 8", "certified"),
    "a calibration that is none": (group(calibration="mine"), "group.0.calibration", "", "certified"),
    "feedback afresh, in words": (
        {"budget": {"fresh_feedback": "yes"}},
        "budget.fresh_feedback",
        "",
        "feedback",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_names_its_field_and_says_what_to_do(name: str, files: dict[str, str]) -> None:
    """One fault each, and no other field is blamed."""
    tables, field, problem, remedy = FAULTS[name]
    (fault,) = faults(**named(tables, files))
    assert fault.field.startswith(field)
    assert problem in fault.problem
    assert any(word in fault.remedy for word in remedy.split("|")), fault
    assert "set Input" not in fault.remedy, "a remedy is a sentence of ours"


def test_one_file_for_all_is_one_fault_however_many_households(files: dict[str, str]) -> None:
    many = [{"id": f"h-{i}"} for i in range(50)]
    assert len(faults(release={"codebook": files["garbage"]}, household=many)) == 1


def test_a_value_that_agrees_with_the_file_is_no_fault(files: dict[str, str]) -> None:
    config = good(
        release={"codebook": files["fitted"], "levels": 5, "range": ["0 W", "9 kW"], "rounding": "nearest"}
    )
    (book,) = document_of(config).books
    assert (book.levels, book.lower, book.upper) == (5, 0, 9_000_000)


def test_a_household_may_go_back_to_equal_cells_beside_everyone_s_file(files: dict[str, str]) -> None:
    household = [{"id": "a"}, {"id": "b", "codebook": "uniform", "rounding": "dither"}]
    document = document_of(good(release={"codebook": files["feedback"]}, household=household))
    mine, hers = (document.books[b] for b in document.book_of)
    assert (mine.levels, mine.rounding) == (3, Rounding.FEEDBACK)
    assert (hers.levels, hers.rounding, hers.values) == (4, Rounding.DITHER, None)


def test_a_file_made_for_feedback_may_be_used_with_nearest_or_dither(files: dict[str, str]) -> None:
    for rounding in Rounding:
        document = document_of(good(release={"codebook": files["feedback"], "rounding": rounding.value}))
        (compiled,) = document.compile().households.codebooks
        assert compiled.rounding is rounding
        assert compiled.values.tolist() == CARRYING.values.tolist()


def test_weights_are_taken_by_id_or_pattern_and_are_one_elsewhere() -> None:
    config = good(
        household=[{"id": name} for name in ("a-1", "a-2", "b")], **group(weights={"a-*": -2, "a-2": 7})
    )
    (one,) = document_of(config).groups
    assert one.weights == (-2, 7, 1)


def test_levels_that_multiply_beyond_what_is_counted_are_a_fault_and_no_traceback() -> None:
    """Nine groups with feedback of a hundred levels each: 10^18 joint levels."""
    tables = {
        "group": [
            {"name": f"g-{i}", "members": ["*"], "levels": 100, "rounding": "feedback"} for i in range(9)
        ]
    }
    found = faults(**tables)
    assert any(fault.field.startswith("group") for fault in found)
    assert any("levels" in fault.problem + fault.remedy for fault in found)


def test_sums_that_leave_64_bits_are_a_fault() -> None:
    """19 members of 1 GW and weights of a million: 1.9·10¹⁹ mW."""
    found = faults(
        release={"range": ["0 W", "1000 MW"]},
        household=[{"id": f"h-{i}"} for i in range(19)],
        **group(weights={"*": 1_000_000}),
    )
    assert any(fault.field.startswith("group.0") for fault in found)


def test_check_prints_such_faults_as_json_and_ends_with_78(tmp_path: Path) -> None:
    path = tmp_path / "noiseless.toml"
    path.write_text(
        '[release]\ncodebook = "nowhere.json"\nrounding = "feedback"\n'
        '[[source]]\ntopic = "m/{household}"\nvalue = "/e"\nunit = "Wh"\ntime = { at = "/ts" }\n'
        '[[household]]\nid = "a"\n[[group]]\nname = "g"\nmembers = ["*"]\nlevels = 4\nweights = { "z" = 2 }\n'
    )
    result = CliRunner().invoke(app, ["check", str(path), "--json"], catch_exceptions=False)
    assert result.exit_code == 78
    found = json.loads(result.stdout)["faults"]
    assert sorted(fault["field"] for fault in found) == ["group.0.weights", "release.codebook"]
    assert str(tmp_path / "nowhere.json") in [fault["value"] for fault in found]
