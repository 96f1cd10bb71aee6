"""What known devices and bridges send, as [[source]] fields that a user need not write."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

PRESETS: dict[str, dict[str, Any]] = tomllib.loads(
    files("gateway").joinpath("presets.toml").read_text(encoding="utf-8")
)
"""By name; ``noiseless check`` shows what a preset expands to."""
