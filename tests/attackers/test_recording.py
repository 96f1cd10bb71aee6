"""A recording is what a receiver writes down: releases are read, everything else is counted."""

import json
import subprocess
from pathlib import Path

import numpy as np
from brokers import Mosquitto
from gateways import eventually
from hypothesis import given
from hypothesis import strategies as st
from recordings import START_MS, half_hours_mw, released, tables_of

from gateway.checking import validated
from gateway.policy import document_of
from simulators.attackers.recording import parse, read_recording
from simulators.households import Households

HOMES = Households.draw(3, seed=1)
GROUP = {"name": "feeder", "members": ["h-*"], "epsilon": 2}
DOCUMENT = document_of(validated(tables_of(HOMES.ids, {"epsilon": 4}, [GROUP])))
POWER_MW = half_hours_mw(HOMES, 1)
LINES = released(DOCUMENT, POWER_MW)
LINE = (
    b'noiseless/household/h-1 {"slot":"2026-01-05T00:00:00Z","minutes":30,"symbol":1,"levels":4,'
    b'"between_w":[10,20],"value_w":15,"codebook":"3addca"}'
)


def test_every_release_of_a_gateway_is_read_with_its_slot_symbol_and_value() -> None:
    recording = parse(LINES)
    assert recording.releases == len(LINES) == 4 * 48
    assert (recording.repeated, recording.other) == (0, 0)
    book = DOCUMENT.books[0].codebook(missing_symbol=False)
    for name, power in zip(HOMES.ids, POWER_MW, strict=True):
        home = recording.households[name]
        assert home.start_ms.tolist() == [START_MS + slot * 1_800_000 for slot in range(48)]
        assert home.symbols.tolist() == book.encode(np.clip(power, 0, book.upper)).tolist()
        assert home.value_w.tolist() == (book.values[home.symbols] / 1_000).tolist()
        assert (home.minutes, home.members, home.query) == (30, 1, "")
        assert set(home.levels.tolist()) == {16}
    feeder = recording.groups["feeder"]
    assert (feeder.members, feeder.query) == (3, "sum")
    assert np.allclose(feeder.per_home_w, feeder.value_w / 3)


def test_what_mosquitto_sub_writes_with_the_documented_format_is_a_recording(
    mosquitto: Mosquitto, tmp_path: Path
) -> None:
    path, server = tmp_path / "recording.txt", ["-h", "127.0.0.1", "-p", str(mosquitto.port), "-V", "5"]
    publish = ["mosquitto_pub", *server, "-q", "1"]
    sent = [line.rstrip(b"\n").partition(b" ") for line in LINES[:4]]
    with path.open("wb") as file:
        command = ["mosquitto_sub", *server, "-F", "%t %p", "-t", "noiseless/#"]
        receiver = subprocess.Popen(command, stdout=file)

        def hears() -> bool:
            subprocess.run([*publish, "-t", "noiseless/state", "-m", '{"state":"online"}'], check=True)
            return path.stat().st_size > 0

        eventually("the receiver hears", hears)
        for topic, _, payload in sent:
            subprocess.run([*publish, "-t", topic, "-m", payload], check=True)
        eventually("the last release is written", lambda: path.read_bytes().endswith(sent[-1][2] + b"\n"))
        receiver.terminate()
        receiver.wait(10)
    recording = read_recording(path)
    assert recording.releases == 4
    assert recording.other >= 1


def test_lines_that_are_no_release_are_counted_and_left_out() -> None:
    others = [
        b'noiseless/state {"state":"online"}\n',
        b"\n",
        LINE[:-10],
        LINE.replace(b"household/h-1", b"household/\xff"),
        LINE.replace(b"00:00Z", b"00:00"),  # a time without a zone
        LINE.replace(b'"levels":4', b'"levels":0'),
        LINE.replace(b'"minutes":30', b'"minutes":0'),
        LINE.replace(b'"value_w":15', b'"value_w":NaN'),
        LINE.partition(b" ")[2],
    ]
    for sound, absurd in (
        ('"symbol":1', '"symbol":4'),
        ('"symbol":1', '"symbol":-1'),
        ('"symbol":1', '"symbol":9223372036854775808'),
        ('"levels":4', '"levels":99999999999999999999'),
        ('"value_w":15', '"value_w":1e400'),
        ('"value_w":15', '"value_w":-2e12'),
        ('"minutes":30', '"minutes":-30'),
        ('"minutes":30', '"minutes":10081'),
        ("2026-01-05T", "1999-12-31T"),
        ("2026-01-05T", "2100-01-01T"),
        ('"levels":4', '"levels":4,"rounding":"up"'),
        ('"levels":4', '"levels":4,"members":1e30'),
    ):
        others.append(LINE.replace(sound.encode(), absurd.encode()))
    assert LINE not in others
    recording = parse([*others, LINE])
    assert recording.other == len(others)
    assert recording.releases == 1


def test_the_topic_may_be_deeper_and_a_name_may_hold_a_space() -> None:
    recording = parse([LINE.replace(b"noiseless/household/h-1", b"a/b c/household/my home")])
    assert list(recording.households) == ["my home"]


def test_a_slot_that_comes_again_counts_once() -> None:
    again = LINE.replace(b'"symbol":1', b'"symbol":2')
    recording = parse([LINE, again, LINE])
    assert recording.repeated == 2
    assert recording.households["h-1"].symbols.tolist() == [1]


def test_slots_are_in_order_whatever_the_order_of_the_lines() -> None:
    assert parse(LINES[::-1]).households["h-0001"].start_ms.tolist() == sorted(
        parse(LINES).households["h-0001"].start_ms.tolist()
    )


def test_a_release_without_a_reading_has_no_value() -> None:
    fields = json.loads(LINE.partition(b" ")[2]) | {"between_w": [None, None], "value_w": None, "spent": True}
    home = parse([b"noiseless/household/h-1 " + json.dumps(fields).encode()]).households["h-1"]
    assert np.isnan(home.value_w).tolist() == [True]
    assert home.spent.tolist() == [True]


@given(
    st.lists(
        st.one_of(st.binary(), st.sampled_from(LINES), st.integers(0, len(LINE)).map(lambda end: LINE[:end]))
    )
)
def test_whatever_is_recorded_every_line_is_counted_once(lines: list[bytes]) -> None:
    recording = parse(lines)
    counted = recording.releases + recording.repeated + recording.other + recording.other_length
    assert counted == len(lines)


def test_of_slots_of_several_lengths_the_most_frequent_is_kept_and_the_others_are_counted() -> None:
    lines = [LINE.replace(b"T00:", b"T%02d:" % hour) for hour in range(5)]
    lines += [LINE.replace(b"T00:", b"T%02d:" % hour).replace(b":30,", b":60,") for hour in range(4, 7)]
    recording = parse(lines)
    home = recording.households["h-1"]
    assert (home.minutes, len(home.start_ms)) == (30, 5)
    assert (recording.releases, recording.other_length, recording.repeated) == (5, 3, 0)


def test_spent_and_coarse_releases_are_counted_and_a_coarse_codebook_is_not_the_homes() -> None:
    coarse = LINE.replace(b"3addca", b"0c0a5e").replace(b"}", b',"coarse":true}')
    lines = [
        LINE,
        coarse.replace(b"T00:", b"T01:"),
        LINE.replace(b"}", b',"spent":true}').replace(b"T00:", b"T02:"),
    ]
    lines.append(coarse.replace(b"T00:", b"T03:"))
    recording = parse(lines)
    assert (recording.releases, recording.spent, recording.coarse) == (4, 1, 2)
    assert recording.households["h-1"].codebook == "3addca"
