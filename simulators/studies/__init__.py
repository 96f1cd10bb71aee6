"""The papers' experiments and ours, run on recorded homes or on the simulated fleet."""

from __future__ import annotations

import os
from errno import EACCES
from importlib import import_module
from pathlib import Path
from typing import Any

from simulators.studies.study import Progress, Result, Settings, Study, Table, write

__all__ = ["NAMES", "Progress", "Result", "Settings", "Study", "Table", "carry_out", "study_named", "write"]

NAMES: tuple[str, ...] = (
    "membership",
    "disaggregation",
    "occupancy",
    "trips",
    "policies",
    "hypothesis",
)
"""The studies in the order of ``noiseless study all``; each is ``STUDY`` of the module of its name."""


def study_named(name: str) -> Study:
    """Return a study; its module is imported now, since plots take a while to load.

    Raises:
        KeyError: there is none of that name.

    """
    if name not in NAMES:
        raise KeyError(name)
    study = import_module(f"simulators.studies.{name.replace('-', '_')}").STUDY
    assert isinstance(study, Study)
    return study


def carry_out(name: str, settings: Settings, out: Path, progress: Progress) -> dict[str, Any]:
    """Run a study, write what it found below ``out``, and return a report of it.

    Raises:
        KeyError: there is none of that name.
        OSError: data cannot be read, or files not written.
        ValueError: the data are not what the study needs.

    """
    study = study_named(name)
    out.mkdir(parents=True, exist_ok=True)
    if not os.access(out, os.W_OK | os.X_OK):
        # Said now, and not after the minutes that a study takes.
        raise PermissionError(EACCES, "cannot write in", str(out))
    result = study.run(settings, progress)
    written = write(study, settings, result, out)
    return {
        "study": study.name,
        "title": study.title,
        "paper": study.paper,
        "source": result.source,
        "form": "quick" if settings.quick else "full",
        "seed": settings.seed,
        "findings": list(result.findings),
        "files": [str(path) for path in written],
    }
