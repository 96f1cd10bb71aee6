"""A roll in a file means what the same [[household]] tables mean, and its faults are told by line and column."""

from __future__ import annotations

import csv
import io
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.checking import ConfigError, load, validated
from gateway.config import Config
from gateway.policy import document_of
from gateway.report import privacy_table
from gateway.roll import meters_of
from gateway.rules import Fault

SOURCE = '[[source]]\ntopic = "m/{household}"\nvalue = "/e"\nunit = "Wh"\ntime = { at = "/ts" }\n'
FEEDER = '[[group]]\nname = "feeder"\nlevels = 4\n'


def configured(folder: Path, roll: str | bytes, tables: str = "") -> Config:
    (folder / "roll.csv").write_bytes(roll if isinstance(roll, bytes) else roll.encode())
    path = folder / "noiseless.toml"
    path.write_text(f'households_file = "roll.csv"\n{SOURCE}{tables}', encoding="utf-8")
    return load(path)


def faults(folder: Path, roll: str | bytes, tables: str = "") -> list[Fault]:
    with pytest.raises(ConfigError) as refused:
        configured(folder, roll, tables)
    return refused.value.faults


def in_toml(*households: dict[str, Any], **tables: Any) -> Config:  # noqa: ANN401 - as TOML gives it
    source = {"topic": "m/{household}", "value": "/e", "unit": "Wh", "time": {"at": "/ts"}}
    return validated({"source": [source], "household": list(households), **tables})


def test_a_column_of_ids_is_a_roll_in_its_order(tmp_path: Path) -> None:
    config = configured(tmp_path, "id\nh-2\nh-1\n")
    assert document_of(config).households == ("h-2", "h-1")


def test_every_column_means_what_the_field_of_its_name_means(tmp_path: Path) -> None:
    config = configured(
        tmp_path,
        "rounding,levels,epsilon,id,range,meters,groups,codebook\n"
        'feedback,8,,h-1,"-1 kW..14.5 kW","m:1 | m\\2|m-3.x",feeder,uniform\n'
        ",,2.5,h-2,,,,\n",
        FEEDER,
    )
    first, second = config.household
    assert (
        config.household
        == in_toml(
            {
                "id": "h-1",
                "rounding": "feedback",
                "levels": 8,
                "range": ["-1 kW", "14.5 kW"],
                "meters": ["m:1", "m\\2", "m-3.x"],
                "groups": ["feeder"],
                "codebook": "uniform",
            },
            {"id": "h-2", "epsilon": 2.5},
            group=[{"name": "feeder", "levels": 4}],
        ).household
    )
    assert (first.range, second.chosen_levels) == ((-1_000_000, 14_500_000), 5)


@pytest.mark.parametrize(
    "roll",
    [
        b"id;meters;groups\nh-1;a|b;\nh-2;;\n",
        b"id,meters,groups\r\nh-1,a|b,\r\nh-2,,\r\n",
        b"\xef\xbb\xbfid;meters;groups\r\nh-1;a|b;\r\nh-2;;\r\n",
        b'"id";"meters";"groups"\n"h-1";"a|b";""\n"h-2";"";""\n',
        b" id , meters , groups \n h-1 , a | b , \n h-2 , , ",
        b"\nid;meters;groups\n\nh-1;a|b;\n;;\nh-2;;\n\n",
    ],
    ids=["semicolons", "commas", "byte order mark", "quoted", "blanks", "blank lines"],
)
def test_the_dialects_of_spreadsheets_are_one_roll(tmp_path: Path, roll: bytes) -> None:
    config = configured(tmp_path, roll)
    assert config.household == in_toml({"id": "h-1", "meters": ["a", "b"]}, {"id": "h-2"}).household


def test_the_file_continues_the_tables(tmp_path: Path) -> None:
    config = configured(tmp_path, "id\nh-2\n", '[[household]]\nid = "h-1"\n')
    assert [household.id for household in config.household] == ["h-1", "h-2"]


def test_an_absolute_roll_lies_where_it_says_and_its_codebook_beside_it(tmp_path: Path) -> None:
    (tmp_path / "rolls").mkdir()
    (tmp_path / "rolls" / "a.csv").write_text("id,codebook\nh-1,book.json\n")
    path = tmp_path / "noiseless.toml"
    path.write_text(f'households_file = "rolls/a.csv"\n{SOURCE}')
    with pytest.raises(ConfigError) as refused:
        load(path)
    (fault,) = refused.value.faults
    assert (fault.field, fault.value) == ("households_file line 2 codebook", "book.json")
    path.write_text(f'households_file = "{tmp_path}/rolls/b.csv"\n{SOURCE}')
    (tmp_path / "rolls" / "b.csv").write_text("id\nh-9\n")
    assert load(path).household[0].id == "h-9"


cells = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="|"), min_size=1, max_size=9)


@settings(deadline=None)
@given(st.lists(st.lists(cells, max_size=3, unique=True), min_size=1, max_size=6), st.sampled_from(",;"))
def test_any_ids_of_meters_survive_either_dialect(
    tmp_path_factory: pytest.TempPathFactory, meters: list[list[str]], separator: str
) -> None:
    """Each made unique by its place; quotes, separators and hashes are the csv module's to carry."""
    own = [[f"{i}/{j}{meter}" for j, meter in enumerate(of)] for i, of in enumerate(meters)]
    written = io.StringIO()
    csv.writer(written, delimiter=separator).writerows(
        [("id", "meters"), *((f"h-{i}", "|".join(of)) for i, of in enumerate(own))]
    )
    config = configured(tmp_path_factory.mktemp("roll"), written.getvalue())
    expected = [(meter, i) for i, of in enumerate(own) for meter in (of or [f"h-{i}"])]
    assert list(zip(*meters_of(config), strict=True)) == expected


def test_meters_are_told_in_the_rolls_order_with_their_household() -> None:
    config = in_toml({"id": "h-1", "meters": ["b", "a"]}, {"id": "h-2"}, {"id": "h-3", "meters": "c"})
    assert meters_of(config) == (["b", "a", "h-2", "c"], [0, 0, 1, 2])


def test_a_group_has_who_its_members_name_and_who_names_it_once_each(tmp_path: Path) -> None:
    roll = "id,groups\nh-1,feeder|street\nh-2,\nh-3,street\nx,feeder\n"
    street = '[[group]]\nname = "street"\nlevels = 4\nmembers = ["h-*"]\n'
    document = document_of(configured(tmp_path, roll, FEEDER + street))
    assert [(group.name, group.members) for group in document.groups] == [
        ("feeder", (0, 3)),
        ("street", (0, 1, 2)),
    ]


def test_meters_change_no_policy() -> None:
    """A new meter is no other promise: the epoch goes on."""
    plain = document_of(in_toml({"id": "h-1"}))
    assert document_of(in_toml({"id": "h-1", "meters": ["a", "b"]})).fingerprint == plain.fingerprint


def test_what_is_promised_is_the_same_from_a_file_and_from_tables(tmp_path: Path) -> None:
    """Down to the fingerprint, and so to every release."""
    from_file = configured(tmp_path, "id,levels,range\nh-1,8,0 W..1 kW\nh-2,,\n")
    tables = in_toml({"id": "h-1", "levels": 8, "range": ["0 W", "1 kW"]}, {"id": "h-2"})
    assert document_of(from_file).fingerprint == document_of(tables).fingerprint
    assert privacy_table(from_file) == privacy_table(tables)


def test_a_changed_file_is_another_configuration(tmp_path: Path) -> None:
    """SIGHUP compares them."""
    before = configured(tmp_path, "id\nh-1\n")
    assert configured(tmp_path, "id\nh-1\n") == before
    assert configured(tmp_path, "id,meters\nh-1,a\n") != before


def test_the_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, opened = Path.read_bytes, []
    monkeypatch.setattr(Path, "read_bytes", lambda path: opened.append(path.name) or read(path))  # type: ignore[func-returns-value]
    privacy_table(configured(tmp_path, "id\nh-1\nh-2\n"))
    assert opened == ["roll.csv"]


# A roll, and the field, the value and words of the remedy of its only fault.
FAULTS: list[tuple[str | bytes, str, object, str]] = [
    ("id,range\nh-1,5 W..1 W\n", "households_file line 2 range", "5 W..1 W", "0 W..14.5 kW"),
    ("id,range\nh-1,\nh-2,5 W\n", "households_file line 3 range", "5 W", "0 W..14.5 kW"),
    ("id,range\nh-1,0 W..5 VA\n", "households_file line 2 range", "0 W..5 VA", "0 W..14.5 kW"),
    ("id,levels\nh-1,four\n", "households_file line 2 levels", "four", "number of values"),
    ("id,levels\nh-1,4.0\n", "households_file line 2 levels", "4.0", "number of values"),
    (f"id,levels\nh-1,{'9' * 5_000}\n", "households_file line 2 levels", "9" * 5_000, "number of values"),
    ('id,epsilon\nh-1,"1,5"\n', "households_file line 2 epsilon", "1,5", "bits per release"),
    ("id,epsilon\nh-1,nan\n", "households_file line 2 epsilon", "nan", "bits per release"),
    ("id,epsilon,levels\nh-1,1,2\n", "households_file line 2 levels", "2", "keep one"),
    ("id,rounding\nh-1,up\n", "households_file line 2 rounding", "up", "nearest"),
    ("id,codebook\nh-1,no.json\n", "households_file line 2 codebook", "no.json", "noiseless plan"),
    ("id\nh 1\n", "households_file line 2 id", "h 1", "letters, digits"),
    ("id,meters\n,a\n", "households_file line 2 id", None, "add it"),
    ("id\nh-1\nh-2\nh-1\n", "households_file line 4 id", "h-1", "keep one"),
    ("id,meters\nh-1,a||b\n", "households_file line 2 meters", "(not shown)", "1 to 256"),
    ("id,meters\nh-1,a\nh-2,b|a\n", "households_file line 3 meters", "(not shown)", "one household"),
    ("id,groups\nh-1,nowhere\n", "households_file line 2 groups", "nowhere", 'name = "nowhere"'),
    ('id,meters\n"h-1","a\nb"\n', "households_file line 2 meters", "(not shown)", "1 to 256"),
    ('id,codebook\nh-1,"\n"\nh 2,\n', "households_file line 4 id", "h 2", "letters"),
    ("id,tariff\nh-1,x\n", "households_file line 1", "tariff", "columns are epsilon, levels"),
    ("id,\nh-1,x\n", "households_file line 1", "", "remove it"),
    ("id,range,id\nh-1,,h-2\n", "households_file line 1", "id", "keep one"),
    ("meters\na\n", "households_file line 1", None, "begin with a header line"),
    ("", "households_file line 1", None, "begin with a header line"),
    ("id,range\nh-1\n", "households_file line 2", None, "every column a cell"),
    ("id,range\nh-1,,\n", "households_file line 2", None, "every column a cell"),
    ('id\n"h-1\n', "households_file line 2", None, "quotes"),
    ('id\n"h-1"x\n', "households_file line 2", None, "quotes"),
    (b"id\nh-\xe4\n", "households_file", "roll.csv", "UTF-8"),
    ("id\nh-1\n".encode("utf-16"), "households_file", "roll.csv", "UTF-8"),
    ("id\n", "household", None, "[[household]]"),
]


@pytest.mark.parametrize(
    ("roll", "field", "value", "remedy"), FAULTS, ids=[f"{i}-{row[1]}" for i, row in enumerate(FAULTS)]
)
def test_a_fault_names_line_column_value_and_what_to_do(
    tmp_path: Path, roll: str | bytes, field: str, value: object, remedy: str
) -> None:
    (fault,) = faults(tmp_path, roll)
    shown = fault.value.removeprefix(f"{tmp_path}/") if isinstance(fault.value, str) else fault.value
    assert (fault.field, shown) == (field, value)
    assert remedy in fault.remedy
    assert fault.problem


def test_a_household_of_a_table_keeps_her_place_in_it(tmp_path: Path) -> None:
    found = faults(tmp_path, "id,levels\nh-2,0\n", '[[household]]\nid = "h-1"\nlevels = 0\n')
    assert {(fault.field, fault.value) for fault in found} == {
        ("household.0.levels", 0),
        ("households_file line 2 levels", "0"),
    }


def test_faults_of_lines_are_told_beside_all_others(tmp_path: Path) -> None:
    roll = "id,range,levels\nh-1,1 W..0 W,\nh-2,,0\nh-3,\nh 4,,\n"
    found = faults(tmp_path, roll, '[slots]\nlength = "soon"\n')
    assert [fault.field for fault in found] == [
        "slots.length",
        "households_file line 2 range",
        "households_file line 3 levels",
        "households_file line 4",
        "households_file line 5 id",
    ]


def test_a_missing_file_is_one_fault(tmp_path: Path) -> None:
    path = tmp_path / "noiseless.toml"
    path.write_text(f'households_file = "none.csv"\n{SOURCE}[[group]]\nname = "g"\nlevels = 3\n')
    with pytest.raises(ConfigError) as refused:
        load(path)
    (fault,) = refused.value.faults
    assert (fault.field, fault.value) == ("households_file", str(tmp_path / "none.csv"))


def test_of_many_faults_the_first_forty_lines_and_their_number_are_told(tmp_path: Path) -> None:
    found = faults(tmp_path, "id\n" + "h 1\n" * 20_000)
    assert [fault.field for fault in found[:-1]] == [f"households_file line {n} id" for n in range(2, 42)]
    assert (found[-1].field, found[-1].problem) == ("households_file", "19,960 more faults")


def test_ids_of_meters_are_in_no_fault(tmp_path: Path) -> None:
    """A reload writes faults into the log."""
    roll = "id,meters,levels\nh-1,secret-1,0\nh-2,secret-1|secret-2,\nh-3,secret-2||secret-3,\nh-4,secret-4\n"
    table = '[[household]]\nid = "h-5"\nmeters = ["secret-5", " secret-6"]\nlevel = 3\n'
    assert "secret" not in repr(faults(tmp_path, roll, table))
    assert "secret" not in repr(faults(tmp_path, "id,meters\nh-1,secret-1\nh-2,secret-1\n"))


def big(n: int) -> str:
    rows = (
        f"h-{i:05},1EMH{i}|2EMH{i},{'0 W..14.5 kW' if i % 2 else ''},f-{i % 100},{2 + i % 5}\n"
        for i in range(n)
    )
    return "id,meters,range,groups,levels\n" + "".join(rows)


def test_twenty_thousand_households_are_read_in_well_under_two_seconds(tmp_path: Path) -> None:
    groups = "".join(f'[[group]]\nname = "f-{i}"\nlevels = 4\n' for i in range(100))
    began = time.process_time()
    config = configured(tmp_path, big(20_000), groups)
    assert time.process_time() - began < 2
    assert len(config.household) == 20_000
    assert len(meters_of(config)[0]) == 40_000


def test_twenty_thousand_bad_lines_are_told_quickly_too(tmp_path: Path) -> None:
    began = time.process_time()
    assert len(faults(tmp_path, big(20_000))) == 41
    assert len(faults(tmp_path, "id\n" + "".join(f"h-{i // 2}\n" for i in range(20_000)))) == 41
    assert time.process_time() - began < 6
