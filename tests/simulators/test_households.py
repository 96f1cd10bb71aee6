"""The load model looks like homes in which people live, and depends on nothing but its seed."""

from __future__ import annotations

import time
import tracemalloc
from datetime import date, timedelta

import numpy as np
import numpy.typing as npt
import pytest

from simulators.households import DAY_MS, MINUTE_MS, Households

MONDAY = date(2026, 1, 5)
MONDAY_MS = 1_767_571_200_000
HALF_HOUR_MS = 30 * MINUTE_MS


@pytest.fixture(scope="module")
def homes() -> Households:
    return Households.draw(1000, seed=7)


def kwh(homes: Households, day: date) -> npt.NDArray[np.float64]:
    minutes: npt.NDArray[np.int64] = homes.power_w(day).sum(axis=1)
    return minutes / 60_000


def holiday_weeks(homes: Households, start: date) -> npt.NDArray[np.bool_]:
    """Homes on holiday on each of the eight days from `start` on."""
    away = homes.on_holiday(start)
    for n in range(1, 8):
        away &= homes.on_holiday(start + timedelta(days=n))
    return away


def test_households_have_distinct_ids_of_one_width() -> None:
    assert Households.draw(3, seed=1).ids == ("h-0001", "h-0002", "h-0003")
    many = Households.draw(12_000, seed=1).ids
    assert many[0] == "h-00001"
    assert many[-1] == "h-12000"
    assert len(set(many)) == 12_000


def test_a_negative_count_or_seed_is_refused() -> None:
    with pytest.raises(ValueError, match="count=-1"):
        Households.draw(-1, seed=0)
    with pytest.raises(ValueError, match="seed=-1"):
        Households.draw(1, seed=-1)


def test_no_households_use_nothing() -> None:
    nobody = Households.draw(0, seed=1)
    assert nobody.power_w(MONDAY).shape == (0, 1440)
    assert nobody.energy_wh(MONDAY_MS, HALF_HOUR_MS).shape == (0,)


def test_days_are_the_same_in_whatever_order_they_are_asked_for() -> None:
    days = [MONDAY + timedelta(days=n) for n in range(5)]
    forward, backward = Households.draw(50, seed=3), Households.draw(50, seed=3)
    first = [forward.power_w(day) for day in days]
    second = [backward.power_w(day) for day in reversed(days)][::-1]
    np.testing.assert_array_equal(first, second)


def test_another_seed_and_another_day_give_another_series() -> None:
    power = Households.draw(50, seed=3).power_w(MONDAY)
    assert not np.array_equal(power, Households.draw(50, seed=4).power_w(MONDAY))
    assert not np.array_equal(power, Households.draw(50, seed=3).power_w(MONDAY + timedelta(days=7)))


def test_the_caller_may_change_the_array_it_got(homes: Households) -> None:
    before = homes.power_w(MONDAY)
    homes.power_w(MONDAY)[:] = 0
    np.testing.assert_array_equal(homes.power_w(MONDAY), before)


@pytest.mark.parametrize("day", [MONDAY, date(2026, 1, 10), date(2026, 7, 7), date(2028, 2, 29)])
def test_power_never_falls_below_the_base_load_and_stays_within_a_home_connection(
    homes: Households, day: date
) -> None:
    power = homes.power_w(day)
    assert power.shape == (1000, 1440)
    assert (power >= homes.base_w[:, None]).all()
    assert power.min() > 0
    assert power.max() < 25_000


@pytest.mark.parametrize("day", [MONDAY, date(2026, 1, 10), date(2026, 7, 7)])
def test_the_evening_peak_of_all_homes_is_at_least_twice_the_night(homes: Households, day: date) -> None:
    hourly = homes.power_w(day).mean(axis=0).reshape(24, 60).mean(axis=1)
    night, evening = hourly[2:5].mean(), hourly[18:21].mean()
    assert evening > 2 * night
    assert 17 <= hourly.argmax() <= 21


def test_weekday_mornings_have_an_earlier_peak_than_those_of_the_weekend(homes: Households) -> None:
    def centre(day: date) -> float:
        morning = homes.power_w(day)[:, 300:660].mean(axis=0)
        return float(np.average(np.arange(300, 660), weights=morning - morning.min()))

    assert centre(MONDAY + timedelta(days=5)) > centre(MONDAY) + 20


def test_mean_consumption_is_that_of_real_homes_and_differs_between_them(homes: Households) -> None:
    daily = np.mean([kwh(homes, MONDAY + timedelta(days=n)) for n in range(7)], axis=0)
    assert 5 < daily.mean() < 15
    assert np.percentile(daily, 95) > 2 * np.percentile(daily, 5)
    assert daily.min() > 1


def test_winter_takes_more_than_summer(homes: Households) -> None:
    assert kwh(homes, MONDAY).mean() > 1.05 * kwh(homes, date(2026, 7, 6)).mean()


def test_a_few_homes_charge_a_car_through_midnight(homes: Households) -> None:
    cars = homes.charger_w > 0
    assert 0.01 < cars.mean() < 0.1
    last, first = homes.power_w(MONDAY)[:, -1], homes.power_w(MONDAY + timedelta(days=1))[:, 0]
    charging = (last > 7000) & (first > 7000)
    assert charging.sum() >= 3
    assert not charging[~cars].any()


def test_half_hours_have_a_long_tail(homes: Households) -> None:
    mean_w = homes.power_w(MONDAY).reshape(1000, 48, 30).mean(axis=2)
    assert np.median(mean_w) < 300
    assert np.percentile(mean_w, 99) > 2000
    assert mean_w.max() > 6000


def test_kettles_are_steep_and_short(homes: Households) -> None:
    power = homes.power_w(MONDAY)
    steps = np.diff(power, axis=1)
    present = ~homes.on_holiday(MONDAY)
    assert (steps > 1800).sum(axis=1)[present].mean() > 2
    ups, downs = steps > 1800, steps < -1800
    short = ups[:, :-4] & (downs[:, 2:-2] | downs[:, 3:-1] | downs[:, 4:])
    assert short.sum() > 0.5 * ups.sum()


def test_the_fridge_of_an_empty_home_shows_as_a_period_in_its_autocorrelation(homes: Households) -> None:
    day = date(2026, 1, 15)
    empty = np.flatnonzero(holiday_weeks(homes, day - timedelta(days=7)))[:20]
    assert len(empty) >= 5
    for home in empty:
        load = homes.power_w(day)[home] - homes.power_w(day)[home].mean()
        correlation = np.correlate(load, load, "full")[1439:] / np.dot(load, load)
        lag = 35 + int(correlation[35:76].argmax())
        assert abs(lag - homes.fridge_period[home]) <= 1.5
        assert correlation[lag] > 0.8
        assert correlation[lag // 2] < 0


def test_a_home_on_holiday_uses_only_base_load_and_fridge(homes: Households) -> None:
    day = date(2026, 1, 15)
    away = holiday_weeks(homes, day - timedelta(days=7))
    power = homes.power_w(day)[away]
    base, fridge = homes.base_w[away, None], homes.fridge_w[away, None]
    assert ((power == base) | (power == base + fridge)).all()
    normal = np.mean([kwh(homes, date(2026, 5, 4) + timedelta(days=n)) for n in range(7)], axis=0)
    assert kwh(homes, day)[away].mean() < 0.7 * normal[away].mean()


def test_holidays_last_three_to_fourteen_days(homes: Households) -> None:
    days = np.array([homes.on_holiday(date(2026, 1, 1) + timedelta(days=n)) for n in range(730)]).T
    padded = np.pad(days, ((0, 0), (1, 1))).astype(int)
    edges = np.diff(padded, axis=1)
    lengths = np.nonzero(edges == -1)[1] - np.nonzero(edges == 1)[1]
    inner = lengths[(np.nonzero(edges == 1)[1] > 0) & (np.nonzero(edges == -1)[1] < 730)]
    assert inner.min() == 3
    # two holidays may meet where one period of the calendar ends and the next begins
    assert np.mean(inner > 14) < 0.01
    assert 0.02 < days.mean() < 0.1


def test_the_half_hours_of_a_day_add_up_to_the_day(homes: Households) -> None:
    halves = sum(homes.energy_wh(MONDAY_MS + n * HALF_HOUR_MS, HALF_HOUR_MS) for n in range(48))
    day = homes.energy_wh(MONDAY_MS, DAY_MS)
    np.testing.assert_allclose(halves, day, rtol=1e-12)
    np.testing.assert_allclose(day, homes.power_w(MONDAY).sum(axis=1) / 60, rtol=1e-12)


def test_intervals_may_begin_and_end_within_minutes(homes: Households) -> None:
    power = homes.power_w(MONDAY)
    start = MONDAY_MS + 600 * MINUTE_MS
    np.testing.assert_allclose(homes.energy_wh(start + 10_000, 20_000), power[:, 600] / 180)
    across = (power[:, 600] * 15 + power[:, 601] * 60 + power[:, 602] * 5) / 3600
    np.testing.assert_allclose(homes.energy_wh(start + 45_000, 80_000), across)
    np.testing.assert_array_equal(homes.energy_wh(start, 0), np.zeros(1000))


def test_an_interval_may_cross_midnight(homes: Households) -> None:
    midnight = MONDAY_MS + DAY_MS
    crossing = homes.energy_wh(midnight - HALF_HOUR_MS, 2 * HALF_HOUR_MS)
    parts = homes.energy_wh(midnight - HALF_HOUR_MS, HALF_HOUR_MS) + homes.energy_wh(midnight, HALF_HOUR_MS)
    np.testing.assert_allclose(crossing, parts, rtol=1e-12)


def test_an_interval_of_negative_length_is_refused(homes: Households) -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        homes.energy_wh(MONDAY_MS, -1)


def test_a_day_of_a_thousand_homes_takes_well_under_a_second() -> None:
    homes = Households.draw(1000, seed=1)
    began = time.perf_counter()
    homes.energy_wh(MONDAY_MS, HALF_HOUR_MS)
    assert time.perf_counter() - began < 0.5


def test_ten_thousand_homes_fit_into_little_memory() -> None:
    homes = Households.draw(10_000, seed=1)
    tracemalloc.start()
    try:
        for day in range(4):
            homes.energy_wh(MONDAY_MS + day * DAY_MS, HALF_HOUR_MS)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 64e6
    assert peak < 160e6
