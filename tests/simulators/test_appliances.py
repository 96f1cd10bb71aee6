"""What appliances draw adds up to what the home draws."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from simulators.households import Households

MONDAY = date(2026, 1, 5)


@pytest.mark.parametrize("day", [MONDAY, date(2026, 7, 4)])
def test_base_load_and_fridge_are_all_that_appliances_leave(day: date) -> None:
    homes = Households.draw(120, seed=7)
    rest = homes.power_w(day) - sum(homes.appliances_w(day).values())
    base, fridge = homes.base_w[:, None], homes.fridge_w[:, None]
    assert np.isin(rest - base, (0, *np.unique(fridge).tolist())).all()
    assert ((rest == base) | (rest == base + fridge)).all()


def test_every_appliance_is_named_on_every_day_even_where_nobody_has_one() -> None:
    one = Households.draw(1, seed=1)
    drawn = one.appliances_w(MONDAY)
    assert set(drawn) == set(one.appliances_w(date(2026, 7, 4)))
    assert {"kettle", "dishwasher", "washing machine", "hob", "heating", "car"} < set(drawn)
    assert all(power.shape == (1, 1440) for power in drawn.values())


def test_only_homes_with_a_dishwasher_run_one() -> None:
    homes = Households.draw(300, seed=3)
    runs = homes.appliances_w(MONDAY)["dishwasher"].any(axis=1)
    assert runs.any()
    assert not (runs & ~homes.has_dishwasher).any()
