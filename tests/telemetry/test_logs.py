"""Logs go to standard error, as JSON where no terminal is, and never carry a traceback by accident."""

import json
import os
import pty
import subprocess
import sys

import pytest

SCRIPT = """
import sys, structlog
from gateway.telemetry import configure_logs
log = structlog.get_logger()
configure_logs(sys.argv[1])
for level in ("debug", "info", "warning", "error"):
    getattr(log, level)("something happened", count=3, text='a "quoted"\\nline')
"""


def logged(level: str) -> tuple[str, list[dict[str, object]]]:
    """Return standard output, and the lines of standard error."""
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, level], capture_output=True, text=True, check=True, timeout=20
    )
    return ended.stdout, [json.loads(line) for line in ended.stderr.splitlines()]


@pytest.mark.parametrize(("level", "shown"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_what_is_less_severe_than_the_level_is_not_shown(level: str, shown: int) -> None:
    output, lines = logged(level)
    assert output == ""
    assert [line["level"] for line in lines] == ["debug", "info", "warning", "error"][4 - shown :]


def test_a_line_is_one_json_object_with_event_level_and_utc_time() -> None:
    _, (line,) = logged("error")
    assert line["event"] == "something happened"
    assert line["count"] == 3
    assert line["text"] == 'a "quoted"\nline'
    assert str(line["timestamp"]).endswith("Z")


def test_on_a_terminal_lines_are_for_people() -> None:
    owner, terminal = pty.openpty()
    try:
        subprocess.run([sys.executable, "-c", SCRIPT, "error"], stderr=terminal, check=True, timeout=20)
        text = os.read(owner, 10_000).decode()
    finally:
        os.close(owner)
        os.close(terminal)
    assert "something happened" in text
    assert not text.lstrip().startswith("{")
