"""The membership game of [NP] V-A: which reading of the paper gives which advantage, and what helps."""

from __future__ import annotations

import numpy as np

from simulators.studies._membership_figures import draw_all
from simulators.studies._membership_findings import sentences
from simulators.studies._membership_rows import Row
from simulators.studies._membership_settings import FULL, QUICK, settings_of
from simulators.studies.data import half_hourly_homes
from simulators.studies.study import Progress, Result, Settings, Study, Table


def run(settings: Settings, progress: Progress) -> Result:
    """Play the game under every reading of the paper, for several lengths, for half hours, with budgets, and by hours.

    Raises:
        OSError: the data cannot be read.
        ValueError: there are too few homes.

    """
    scale = QUICK if settings.quick else FULL
    homes = half_hourly_homes(settings, scale.days)
    planned = settings_of(homes, scale)
    rows: dict[str, list[Row]] = {}
    for number, setting in enumerate(planned):
        progress(setting.table, number / len(planned))
        # A stream of its own for each: one setting more changes no other.
        rng = np.random.default_rng([settings.seed, number])
        rows.setdefault(setting.table, []).extend(setting.rows(rng))
    progress("figures", 1.0)
    tables = {name: Table(Row._fields, some) for name, some in rows.items()}
    return Result(homes.source, tables, draw_all(rows, homes.source), sentences(rows))


STUDY = Study("membership", "Who is in a group? The membership game", "[NP] V-A, Fig. 2 and 3", run)
