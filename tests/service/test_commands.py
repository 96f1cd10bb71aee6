"""`noiseless budget`, `check` and `run` as scripts see them."""

import json
import re

import pytest
from brokers import Mosquitto
from gateways import Gateway, noiseless, roll
from service.conftest import GatewayFactory
from service.expecting import Grid, price_of
from service.watching import Watcher, publish

GRID = Grid()
NAMES = ["h-0", "h-1", "h-2"]
CLOSED = 5


@pytest.fixture
def spent(make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher) -> Gateway:
    """A gateway that runs and has closed five slots."""
    gateway: Gateway = make_gateway(
        [*roll(*NAMES[:2]), *roll(NAMES[2], levels=16)],
        group=[{"name": "pair", "members": NAMES[:2], "levels": 3}],
        budget={"window": "1h", "bits": 100},
    ).start()
    publish(mosquitto.port, [GRID.reading(name, slot, 6_000) for slot in range(CLOSED + 1) for name in NAMES])
    watcher.wait_for_slots([f"household/{NAMES[2]}"], GRID.starts(0, CLOSED))
    return gateway


def test_budget_says_what_was_spent_by_household_and_over_all_beside_the_running_service(
    spent: Gateway,
) -> None:
    each = {NAMES[0]: price_of(4, [3]), NAMES[1]: price_of(4, [3]), NAMES[2]: price_of(16)}
    for name, price in each.items():
        answer = noiseless("budget", spent.config, name, "--json")
        assert answer.returncode == 0, answer.stderr
        one = json.loads(answer.stdout)
        assert one["household"] == name
        assert round(one["spent_bits"] * 1e6) == price * CLOSED
        assert round(one["remaining_bits"] * 1e6) == 100_000_000 - price * CLOSED
        assert one["releases_remaining"] == (100_000_000 - price * CLOSED) // price
    everything = json.loads(noiseless("budget", spent.config, "--json").stdout)
    assert round(everything["ledger_bits"] * 1e6) == CLOSED * sum(each.values())
    assert sum(one["households"] for one in everything["classes"]) == len(NAMES)
    assert [one["group"] for one in everything["groups"]] == ["pair"]
    assert spent.ready


def test_budget_as_a_table_names_the_classes_or_the_household(spent: Gateway) -> None:
    table = noiseless("budget", spent.config)
    assert table.returncode == 0
    assert f"{CLOSED * (2 * price_of(4, [3]) + price_of(16)) / 1e6:.3f} charged in all" in table.stdout
    assert "16 levels" in table.stdout
    one = noiseless("budget", spent.config, NAMES[2])
    assert one.returncode == 0
    assert NAMES[2] in one.stdout
    assert str(CLOSED * price_of(16) // 1_000_000) in one.stdout


def test_budget_of_a_household_that_never_was_ends_with_1_and_says_where_to_look(spent: Gateway) -> None:
    answer = noiseless("budget", spent.config, "h-nobody", "--json")
    assert answer.returncode == 1
    assert "h-nobody" in answer.stderr
    assert "[[household]]" in answer.stderr
    assert answer.stdout == ""


def test_budget_before_the_first_start_ends_with_1_and_says_what_to_do(make_gateway: GatewayFactory) -> None:
    answer = noiseless("budget", make_gateway(roll(*NAMES)).config)
    assert answer.returncode == 1
    assert "start the service once" in answer.stderr


def test_budget_of_a_ledger_without_a_closed_slot_is_all_there(make_gateway: GatewayFactory) -> None:
    gateway: Gateway = make_gateway(roll(*NAMES)).start()
    one = noiseless("budget", gateway.config, NAMES[0], "--json")
    assert one.returncode == 0, one.stderr
    assert json.loads(one.stdout)["spent_bits"] == 0
    everything = noiseless("budget", gateway.config, "--json")
    assert everything.returncode == 0, everything.stderr
    assert json.loads(everything.stdout)["ledger_bits"] == 0


def test_check_and_run_find_every_fault_at_once_and_end_with_78(make_gateway: GatewayFactory) -> None:
    gateway: Gateway = make_gateway(
        [{"id": "h-0", "levels": 0}, {"id": "h/1"}],
        slots={"length": "7 parsecs", "missing": "guess"},
        output={"topic": "no+where"},
    )
    fields = {"household.0.levels", "household.1.id", "slots.length", "slots.missing", "output.topic"}
    checked = noiseless("check", gateway.config, "--json")
    assert checked.returncode == 78
    report = json.loads(checked.stdout)
    assert report["ok"] is False
    assert {fault["field"] for fault in report["faults"]} == fields
    assert all(fault["remedy"] and fault["problem"] for fault in report["faults"])

    table = noiseless("check", gateway.config)
    assert table.returncode == 78
    assert all(field in table.stderr for field in fields)
    assert gateway.spawn().wait() == 78
    assert all(field in gateway.logged for field in fields)
    assert not gateway.ledger.exists()


@pytest.mark.parametrize("text", ["slots = [", "", "\0", "[broker]\nurl = 'mqtt://user:hunter2@127.0.0.1'"])
def test_what_is_no_configuration_at_all_ends_with_78_and_shows_no_credentials(
    make_gateway: GatewayFactory, text: str
) -> None:
    gateway: Gateway = make_gateway(roll(*NAMES))
    gateway.config.write_text(text)
    for command in ("check", "run", "budget"):
        answer = noiseless(command, gateway.config)
        assert answer.returncode == 78, command
        assert "Traceback" not in answer.stderr
        assert "hunter2" not in answer.stdout + answer.stderr


def test_check_of_a_good_configuration_promises_what_the_ledger_then_charges(spent: Gateway) -> None:
    checked = noiseless("check", spent.config, "--json")
    assert checked.returncode == 0
    report = json.loads(checked.stdout)
    assert report["ok"] is True
    joint = sorted(row["joint_levels"] for row in report["households"])
    assert joint == [6, 16]
    charged = spent.query("SELECT max(charged_microbits) FROM slot")
    assert charged == sum(price_of(row["joint_levels"]) * row["households"] for row in report["households"])


def test_a_file_that_is_not_there_ends_with_78_and_usage_errors_with_2() -> None:
    assert noiseless("check", "/nowhere/noiseless.toml").returncode == 78
    assert noiseless("check").returncode == 2
    assert noiseless("nonsense").returncode == 2
    assert re.search(r"Example:", noiseless("run", "--help").stdout)
