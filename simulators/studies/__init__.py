"""The papers' experiments and ours, run on recorded homes or on the simulated fleet."""

from __future__ import annotations

from importlib import import_module

from simulators.studies.study import Progress, Result, Settings, Study, Table, write

__all__ = ["NAMES", "Progress", "Result", "Settings", "Study", "Table", "study_named", "write"]

NAMES: tuple[str, ...] = ("disaggregation", "occupancy")
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
