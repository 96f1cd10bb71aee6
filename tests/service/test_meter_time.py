"""What meters' clocks do wrong: no slot closes early for it, none waits, and nobody else has less."""

import json
import time
import tomllib
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from brokers import Mosquitto
from gateways import Gateway, noiseless, roll
from service.conftest import GatewayFactory
from service.expecting import MIDNIGHT, Grid
from service.telling import FINE, POWER, REGISTER, Street, iso, watts_of
from service.watching import Message, Watcher, publish

from simulators.replay import Replay
from simulators.timetable import Quantity

HOUR = 3_600
YEAR = 366 * 24 * HOUR
AMSTERDAM = ZoneInfo("Europe/Amsterdam")
NAIVE = {"at": "/ts", "format": "%Y-%m-%d %H:%M", "zone": "Europe/Amsterdam"}
FLAGGED: dict[str, object] = {**REGISTER, "meters": ["flagged"], "time": {"at": "/ts", "format": "dsmr"}}
NAIVE_REGISTER: dict[str, object] = {**REGISTER, "meters": ["naive"], "time": NAIVE}
NAIVE_INTERVAL: dict[str, object] = {
    "topic": "meters/{meter}/interval",
    "value": "/wh",
    "unit": "Wh",
    "time": NAIVE,
    "meters": ["hourly"],
}


@pytest.mark.parametrize(("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25), ("2026-06-01", 24)])
def test_a_day_has_as_many_slots_as_hours_and_each_its_energy(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher, day: str, hours: int
) -> None:
    """As D1 (dsmr-reader#104), D3 (#1342): crashed, or two hours off. An hour that comes twice is not guessed."""
    midnight = datetime.fromisoformat(day).replace(tzinfo=AMSTERDAM)
    first_s = int(midnight.timestamp())
    assert (midnight + timedelta(days=1)).timestamp() - first_s == hours * HOUR
    street = Street(
        ["flagged", "naive", "hourly"], [FLAGGED, NAIVE_REGISTER, NAIVE_INTERVAL], HOUR, first_s=first_s
    )
    told = []
    for second in range(0, hours * HOUR + 901, 900):
        local = datetime.fromtimestamp(first_s + second, AMSTERDAM)
        wh, naive = 4_000 + second // 6, f"{local:%Y-%m-%d %H:%M}"
        flag = "S" if local.dst() else "W"
        told.append(message("flagged", "register", f"{local:%y%m%d%H%M%S}{flag}", wh))
        told.append(message("naive", "register", naive, wh))
        if second % HOUR == 0:
            told.append(message("hourly", "interval", naive, 600))
    gateway: Gateway = make_gateway(**street.tables()).start()
    publish(mosquitto.port, [*told, *street.tick(0), *street.tick(hours)])
    assert street.watts(watcher, "flagged", hours) == [600] * hours
    # The register stands before and after the hour that comes twice, in one gap.
    assert street.watts(watcher, "naive", hours) == [600] * hours
    twice = [2, 3] if hours == 25 else []
    assert street.watts(watcher, "hourly", hours) == [None if slot in twice else 600 for slot in range(hours)]
    refused = gateway.operator_metrics().get("bad_time", 0)
    assert refused == (2 * 4 + 2 if hours == 25 else 0)


def message(meter: str, kind: str, ts: object, wh: float) -> Message:
    return Message(f"meters/{meter}/{kind}", json.dumps({"ts": ts, "wh": wh}).encode())


def test_wild_clocks_close_no_slot_early_stall_no_group_and_starve_nobody(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    """As D4 (dsmr-reader#742, #1225), D5 (#1026): a meter ahead or months behind stopped all statistics."""
    off = {"ten-minutes-ahead": 600, "a-year-ahead": YEAR, "five-months-behind": -150 * 24 * HOUR}
    right = ["right-power", "right-register"]
    names = [*right, *(f"{name}-{kind}" for name in off for kind in ("power", "register"))]
    gateway: Gateway = make_gateway(
        household=roll(*names, **FINE),
        source=[{**POWER, "meters": ["*-power"]}, {**REGISTER, "meters": ["*-register"]}],
        group=[{"name": "all", "members": ["*"], "levels": 8}],
        slots={"length": "2s", "grace": "1s", "clock": "wall", "missing": "symbol"},
    ).start()
    now = Grid.running(2)
    grid, slots = Grid(2, now.first_s + 2), 3
    topics = [*(f"household/{name}" for name in names), "group/all"]
    grid.sleep_into(-1, 1.6)
    while time.time() < grid.first_s + 2 * slots + 1:
        clock = time.time()
        told = []
        for name, ahead in {"right": 0, **off}.items():
            told.append(Message(f"meters/{name}-power/power", said(clock + ahead, w=700)))
            told.append(Message(f"meters/{name}-register/register", said(clock + ahead, wh=clock % HOUR / 5)))
        publish(mosquitto.port, told)
        seen = watcher.releases()["group/all"]
        early = [start for start in seen if start >= iso(clock // 2 * 2)]
        assert not early, "a slot closed before its end"
        time.sleep(0.2)
    releases = watcher.wait_for_slots(topics, grid.starts(0, slots))
    watts = {
        name: [watts_of(releases[f"household/{name}"][start][0]) for start in grid.starts(0, slots)]
        for name in names
    }
    assert watts.pop("right-power") == [700] * slots
    assert all(watt is not None and 700 <= watt <= 740 for watt in watts.pop("right-register"))
    assert watts == dict.fromkeys(watts, [None] * slots)
    assert all(len(repeats) == 1 for of in releases.values() for repeats in of.values())
    counted = gateway.operator_metrics()
    assert counted["future"] >= 40
    assert counted["late"] >= 20


def said(seconds: float, **fields: float) -> bytes:
    return json.dumps({"ts": iso(round(seconds, 3)), **fields}).encode()


def test_on_the_event_clock_a_wild_meter_moves_nothing(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    street = Street(["ahead", "behind", "right"], [{**POWER, "meters": ["ahead", "behind", "right"]}])
    gateway: Gateway = make_gateway(**street.tables()).start()
    told = [street.power("right", second, 700) for second in range(0, 120, 10)]
    told += [street.power("ahead", YEAR + second, 900) for second in range(0, 120, 10)]
    told += [street.power("behind", -YEAR + second, 900) for second in range(0, 120, 10)]
    publish(mosquitto.port, [*told, *street.tick(0), *street.tick(1)])
    assert street.watts(watcher, "right", 1) == [700]
    assert street.watts(watcher, "ahead", 1) == street.watts(watcher, "behind", 1) == [None]
    assert gateway.query("SELECT count(*) FROM slot") == 1
    publish(mosquitto.port, street.tick(2))
    assert street.watts(watcher, "right", 2) == [700, 700]
    counted = gateway.operator_metrics()
    assert (counted["future"], counted["late"]) == (12, 12)


def test_a_clock_that_was_never_set_counts_when_it_arrives_on_the_wall_clock(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    """As D5 (dsmr-reader#1026): 1970-01-01. An interval has no place without a time; a sample has the present."""
    names = ["sample", "stood", "dsmr", "interval"]
    interval = {**NAIVE_INTERVAL, "meters": ["interval"], "time": {"at": "/ts"}}
    gateway: Gateway = make_gateway(
        household=roll(*names, **FINE),
        source=[
            {**POWER, "meters": ["sample"]},
            {**REGISTER, "meters": ["stood"]},
            {**FLAGGED, "meters": ["dsmr"], "topic": "meters/{meter}/telegram"},
            interval,
        ],
        slots={"length": "2s", "grace": "500ms", "clock": "wall", "missing": "symbol"},
    ).start()
    now = Grid.running(2)
    grid = Grid(2, now.first_s + 2)
    grid.sleep_into(0, -0.3)
    while time.time() < grid.first_s + 4.3:
        wh = time.time() % HOUR / 5
        told = [
            Message("meters/sample/power", b'{"ts": 0, "w": 700}'),
            message("stood", "register", "1970-01-01T00:00:09Z", wh),
            message("dsmr", "telegram", "700101010000W", wh),
            message("interval", "interval", "1970-01-01T00:00:00Z", 1),
        ]
        publish(mosquitto.port, told)
        time.sleep(0.25)
    watts = {}
    for name in names:
        releases = watcher.wait_for_slots([f"household/{name}"], grid.starts(0, 2))[f"household/{name}"]
        watts[name] = [watts_of(releases[start][0]) for start in grid.starts(0, 2)]
    assert watts["sample"] == [700, 700]
    # What arrives on a loaded machine may be a little off the time at which it was read.
    assert all(watt is not None and 500 < watt < 950 for watt in (*watts["stood"], *watts["dsmr"])), watts
    assert watts["interval"] == [None, None]
    assert gateway.operator_metrics()["bad_time"] >= 4


def test_clocks_that_were_never_set_do_not_move_the_event_clock(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    """A street that loses its clocks in an outage would make all that is replayed late."""
    names = ["r-1", "r-2", "r-3"]
    gateway: Gateway = make_gateway(
        household=roll(*names, **FINE),
        source=[{**REGISTER, "meters": ["r-*"]}],
        slots={"length": "1h", "missing": "symbol"},
    ).start()

    def told(stop: int) -> list[Message]:
        readings = [(second, 4_000 + second // 6) for second in range(0, stop, 900)]
        return [message(name, "register", iso(MIDNIGHT + s), wh) for s, wh in readings for name in names]

    publish(mosquitto.port, told(HOUR))
    publish(mosquitto.port, [message(name, "register", 0, 4_600) for name in names])
    publish(mosquitto.port, told(3 * HOUR + 901))
    for name in names:
        topic = f"household/{name}"
        starts = [iso(MIDNIGHT + slot * HOUR) for slot in range(3)]
        releases = watcher.wait_for_slots([topic], starts)[topic]
        assert [watts_of(releases[start][0]) for start in starts] == [600] * 3
    assert gateway.operator_metrics()["bad_time"] == 3


def test_late_readings_are_counted_and_never_make_a_second_release(
    make_gateway: GatewayFactory, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    """As B5 (draft-ietf-ppm-dap#62): a second answer for the same time is another output, and not paid for."""
    street = Street(["p", "r"], [{**POWER, "meters": ["p"]}, {**REGISTER, "meters": ["r"]}])
    gateway: Gateway = make_gateway(**street.tables()).start()
    publish(mosquitto.port, [street.power("p", second, 700) for second in range(0, 60, 10)])
    publish(mosquitto.port, [street.register("r", second, second / 5) for second in range(0, 90, 10)])
    publish(mosquitto.port, [*street.tick(0), *street.tick(1)])
    before = {name: street.watts(watcher, name, 1) for name in street.watched}
    late = [street.power("p", second, 1_400) for second in range(5, 60, 10)]
    late += [street.register("r", second, second / 4) for second in range(5, 60, 10)]
    publish(mosquitto.port, [*late, *street.tick(2), *street.tick(3)])
    assert {name: street.watts(watcher, name, 3)[:1] for name in street.watched} == before
    assert before == {"p": [700], "r": [720]}
    assert gateway.operator_metrics()["late"] == len(late)
    assert all(len(repeats) == 1 for of in watcher.releases().values() for repeats in of.values())


def test_last_years_registers_are_replayed_by_what_they_say_of_time(
    tmp_path: Path, mosquitto: Mosquitto, watcher: Watcher
) -> None:
    """As D6 (lf-edge/ekuiper#530, #1976): windows by our own clock made nothing of what is past."""
    homes, slots, start_s = ["a", "b", "c"], 48, MIDNIGHT - YEAR
    energy = [[(slot * 977 + place * 2_741) % 7_000 for place in range(3)] for slot in range(slots)]
    rows = [",".join([iso(start_s + slot * HOUR // 2), *map(str, row)]) for slot, row in enumerate(energy)]
    file = tmp_path / "homes.csv"
    file.write_text("\n".join([",".join(["time", *homes]), *rows]) + "\n")
    given = tomllib.loads(Replay(file, mosquitto.url, quantity=Quantity.REGISTER).config())
    gateway = Gateway(tmp_path / "gateway", mosquitto.url, given.pop("household"), **given)
    try:
        gateway.start()
        ended = noiseless("replay", file, "--url", mosquitto.url, "--quantity", "register", "--json")
        assert ended.returncode == 0, ended.stderr
        starts = [iso(start_s + slot * HOUR // 2) for slot in range(slots - 1)]
        topics = [f"household/{name}" for name in homes]
        releases = watcher.wait_for_slots(topics, starts, 30)
        for place, topic in enumerate(topics):
            # Nothing is known before the first reading, at the end of the first half hour.
            for slot in range(1, slots - 1):
                release = json.loads(releases[topic][starts[slot]][0])
                low, high = release["between_w"]
                assert (low or 0) <= energy[slot][place] * 2 < (high or 10**6), (topic, starts[slot])
    finally:
        gateway.end()
