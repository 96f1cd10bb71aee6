"""One quick run of each study on the simulated fleet, shared by all tests: the runs are what takes time."""

from functools import cache
from typing import NamedTuple

from simulators.studies import Result, Settings, study_named

QUICK = Settings(data=None, quick=True, seed=1)


class Run(NamedTuple):
    """What came of a run, and the steps and shares that it reported meanwhile."""

    result: Result
    steps: list[tuple[str, float]]


@cache
def quick_run(name: str) -> Run:
    """Return the quick run of a study; made when it is asked for first."""
    steps: list[tuple[str, float]] = []
    return Run(study_named(name).run(QUICK, lambda step, share: steps.append((step, share))), steps)
