"""`noiseless certify`: exit 0 where the promise holds, 1 where it is broken; studies are for looking at only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gateway.cli import app

ROOT = Path(__file__).parents[2]


def invoked(*arguments: str | Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    """Eight homes whose feeder has the levels of [NP] Theorem 8."""
    path = tmp_path / "paper.toml"
    path.write_text(
        '[[source]]\ntopic = "m/{household}"\nvalue = "/e"\nunit = "Wh"\ntime = { at = "/ts" }\n'
        + "".join(f'[[household]]\nid = "h-{i}"\n' for i in range(8))
        + '[[group]]\nname = "feeder"\nmembers = ["*"]\nlevels = 8\ncalibration = "paper"\n'
    )
    return path


def test_the_example_holds_and_ends_with_0() -> None:
    code, out, err = invoked("certify", ROOT / "deploy" / "noiseless.toml", "--json")
    report: dict[str, Any] = json.loads(out)
    assert code == 0, err
    assert report["holds"] is True
    assert len(report["classes"]) == 2
    for one in report["classes"]:
        assert one["holds"] is one["constant_when_spent"] is one["charged_alike"] is one["bounded"] is True
        assert one["joint_outputs"] <= 11
        assert one["charged_bits"] == pytest.approx(3.459432)
        assert one["slots_closed"] > 1_000
        assert {topic["allowed"] for topic in one["topics"]} == {4, 8}


def test_the_table_says_that_the_promise_holds() -> None:
    code, out, _ = invoked("certify", ROOT / "deploy" / "noiseless.toml")
    assert code == 0
    assert "the promise holds" in out
    assert "group/feeder-12" in out


def test_the_paper_s_levels_break_the_promise_and_end_with_1(paper: Path) -> None:
    code, out, _ = invoked("certify", paper, "--json")
    (one,) = json.loads(out)["classes"]
    assert code == 1
    assert json.loads(out)["holds"] is one["holds"] is False
    (group,) = [topic for topic in one["topics"] if topic["topic"] == "group/feeder"]
    assert (group["distinct"], group["allowed"], group["holds"]) == (9, 8, False)
    code, out, _ = invoked("certify", paper)
    assert code == 1
    assert "BROKEN" in out


def test_what_certify_may_look_at_check_and_run_refuse_with_78(paper: Path) -> None:
    code, out, _ = invoked("check", paper, "--json")
    assert code == 78
    (fault,) = json.loads(out)["faults"]
    assert (fault["field"], fault["value"]) == ("group.0.calibration", "paper")
    assert "certified" in fault["remedy"]
    command = [sys.executable, "-c", "from gateway.cli import main; main()", "run", str(paper)]
    ran = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert ran.returncode == 78, ran.stderr
    assert "calibration" in ran.stderr
    assert not (paper.parent / "noiseless.db").exists()


def test_the_paper_s_levels_with_feedback_are_not_taken_for_nearest_ones(paper: Path) -> None:
    """Both fields are given: either the study has feedback, or the contradiction is a fault."""
    paper.write_text(paper.read_text() + 'rounding = "feedback"\n')
    code, out, _ = invoked("certify", paper, "--json")
    assert code in (1, 78)
    if code == 1:
        from gateway.checking import load  # noqa: PLC0415
        from gateway.policy import document_of  # noqa: PLC0415

        groups = document_of(load(paper, studies=True)).compile().groups
        assert groups.feedback.tolist() == [True]
    else:
        assert json.loads(out)["faults"]


def test_a_bad_configuration_ends_with_78(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text("[release]\nlevels = 0\n")
    code, out, _ = invoked("certify", path, "--json")
    assert code == 78
    assert json.loads(out)["ok"] is False
