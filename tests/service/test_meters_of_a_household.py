"""Several meters of one household: what is released is what they say together, and only if all say it."""

import pytest
from brokers import Mosquitto
from gateways import Gateway, roll
from service.conftest import GatewayFactory
from service.telling import FINE, POWER, REGISTER, Street
from service.watching import Watcher, publish

from gateway.config import HouseholdTable

LENGTH = 3_600


@pytest.mark.skipif("meters" not in HouseholdTable.model_fields, reason="a household has one meter here")
def test_the_meters_of_a_household_are_summed_and_one_that_is_silent_makes_her_missing(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    """A register of what comes in, samples of what the roof gives: 1000 W less 400 W."""
    street = Street(
        ["house", "roof", "alone"],
        [{**REGISTER, "meters": ["house", "alone"]}, {**POWER, "meters": ["roof"], "sign": "export"}],
        LENGTH,
    )
    tables = street.tables()
    home = [{"id": "home", "meters": ["house", "roof"], **FINE}, *roll("alone", **FINE)]
    gateway: Gateway = make_gateway(**{**tables, "household": [*home, *roll(*street.ticking)]}).start()
    slots = 4
    told = []
    for second in range(0, slots * LENGTH + 601, 300):
        told.append(street.register("house", second, 47_900 + second * 1_000 / 3_600))
        told.append(street.register("alone", second, 900 + second * 250 / 3_600))
        if second // LENGTH != 2:
            told.append(street.power("roof", second, 400))
    publish(mosquitto.port, [*told, *street.tick(0), *street.tick(2)])
    assert street.watts(watcher, "home", 2) in ([600, 600], [599, 599], [599, 600], [600, 599])
    gateway.kill()
    gateway.start()
    publish(mosquitto.port, [*told, *street.tick(slots)])
    watts = street.watts(watcher, "home", slots)
    assert watts[2] is None
    assert watts[3] in (599, 600)
    assert all(watt in (249, 250) for watt in street.watts(watcher, "alone", slots))
    assert not [topic for topic in watcher.releases() if topic in ("household/house", "household/roof")]
