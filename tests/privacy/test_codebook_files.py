"""Codebook files: what was written is read, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.audit import certify
from gateway.checking import ConfigError, load
from gateway.policy import document_of
from gateway.privacy import (
    Codebook,
    Rounding,
    blind_band,
    both_ends,
    fitted,
    from_json,
    on_levels,
    to_json,
    uniform,
)

BOOKS = {
    "uniform": uniform(0, 14_500_000, 4),
    "one level": uniform(-5, 5, 1),
    "export": uniform(-10_000_000, 14_500_000, 6),
    "feedback": both_ends(0, 14_500_000, 4, Rounding.FEEDBACK),
    "dither": both_ends(0, 14_500_000, 4, Rounding.DITHER),
    "blind": blind_band(0, 14_500_000, 5, (2_000_000, 2_500_000)),
    "fitted": fitted(np.arange(1_000) ** 2, 0, 14_500_000, 16),
}


def same(one: Codebook, other: Codebook) -> bool:
    return (
        (one.lower, one.upper, one.rounding, one.missing_symbol, one.hash)
        == (other.lower, other.upper, other.rounding, other.missing_symbol, other.hash)
        and one.cuts.tolist() == other.cuts.tolist()
        and one.values.tolist() == other.values.tolist()
    )


@pytest.mark.parametrize("name", BOOKS)
def test_a_codebook_survives_its_file(name: str) -> None:
    text = to_json(BOOKS[name], "made for a test")
    assert same(from_json(text), BOOKS[name])
    assert to_json(from_json(text), "made for a test") == text
    assert json.loads(text)["about"] == "made for a test"


@given(
    st.integers(-(10**12), 10**12),
    st.sets(st.integers(1, 10**9), min_size=1, max_size=20),
    st.sampled_from(Rounding),
)
def test_any_codebook_survives_its_file(lower: int, steps: set[int], rounding: Rounding) -> None:
    levels = np.array([lower, *(lower + step for step in sorted(steps))])
    book = on_levels(lower, int(levels[-1]), levels, rounding)
    assert same(from_json(to_json(book)), book)


def changed(book: Codebook, **fields: Any) -> str:  # noqa: ANN401 - any JSON
    return json.dumps(json.loads(to_json(book)) | fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"range": [0, 14_600_000]},
        {"range": [-1, 14_500_000]},
        {"values": [1_812_500, 5_437_500, 9_062_500, 12_687_501]},
        {"cuts": [3_625_000, 7_250_000, 10_875_001]},
        {"cuts": [3_625_000, 10_875_000], "values": [1_812_500, 5_437_500, 12_687_500]},
        {
            "rounding": "dither",
            "cuts": [2_416_667, 7_250_000, 12_083_334],
            "values": [0, 4_833_334, 9_666_667, 14_500_000],
        },
        {"hash": "000000"},
        {"hash": None},
    ],
)
def test_changed_content_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"hash|changed|not a codebook|midway"):
        from_json(changed(BOOKS["uniform"], **fields))


def test_numbers_that_are_not_whole_are_refused_and_not_cut_off() -> None:
    """1,812,500.9 mW would read as 1,812,500, and the hash would not tell."""
    with pytest.raises(ValueError, match=r"whole|integer|not a codebook|changed"):
        from_json(changed(BOOKS["uniform"], values=[1_812_500.9, 5_437_500, 9_062_500, 12_687_500]))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "7",
        '"text"',
        "{}",
        "{",
        "uniform",
        "\x00",
        '{"range": [0], "cuts": [], "values": [0], "rounding": "nearest", "hash": ""}',
        '{"range": [0, 9], "cuts": null, "values": [0], "rounding": "nearest", "hash": ""}',
        '{"range": [0, 9], "cuts": [], "values": ["a"], "rounding": "nearest", "hash": ""}',
        '{"range": [0, 9], "cuts": [[1]], "values": [[0], [2]], "rounding": "nearest", "hash": ""}',
        '{"range": [0, 9], "cuts": [], "values": [], "rounding": "nearest", "hash": ""}',
        '{"range": [9, 0], "cuts": [], "values": [5], "rounding": "nearest", "hash": ""}',
        '{"range": [0, 9], "cuts": [5, 5], "values": [0, 5, 6], "rounding": "nearest", "hash": ""}',
        '{"range": [0, 9], "cuts": [], "values": [1e400], "rounding": "nearest", "hash": ""}',
        '{"range": [0, 1e400], "cuts": [], "values": [1], "rounding": "nearest", "hash": ""}',
        '{"range": [0, 9], "cuts": [], "values": [99999999999999999999], "rounding": "nearest", "hash": ""}',
        '{"range": [0, 99999999999999999999], "cuts": [], "values": [4], "rounding": "nearest", "hash": ""}',
        '{"range": {"0": 1}, "cuts": [], "values": [4], "rounding": "nearest", "hash": ""}',
        '{"range": [0, 9], "cuts": [], "values": [4], "rounding": "upwards", "hash": ""}',
        pytest.param("[" * 100_000, id="a hundred thousand brackets"),
    ],
)
def test_garbage_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        from_json(text)


def test_levels_that_carry_without_both_ends_are_refused_when_read() -> None:
    content = json.loads(to_json(BOOKS["uniform"])) | {"rounding": "feedback"}
    with pytest.raises(ValueError, match="both ends"):
        from_json(json.dumps(content))


# --- in a configuration ---------------------------------------------------------------------------------------

PLAIN = """
[release]
{release}
[[source]]
topic = "m/{{household}}"
value = "/e"
unit = "Wh"
time = {{ at = "/ts" }}
[[household]]
id = "a"
[[household]]
id = "b"
[[group]]
name = "g"
members = ["*"]
levels = 4
"""


def config(folder: Path, book: Codebook, *lines: str) -> Path:
    (folder / "levels.json").write_text(to_json(book), encoding="utf-8")
    path = folder / "noiseless.toml"
    path.write_text(PLAIN.format(release="\n".join(('codebook = "levels.json"', *lines))), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", BOOKS)
@pytest.mark.parametrize("missing", ["hold", "symbol"])
def test_a_file_beside_the_configuration_is_what_households_release_with(
    tmp_path: Path, name: str, missing: str
) -> None:
    if name == "one level" and missing == "symbol":
        return  # refused: nothing is left for readings
    path = config(tmp_path, BOOKS[name])
    path.write_text(f'slots.missing = "{missing}"\n' + path.read_text())
    document = document_of(load(path))
    (compiled,) = document.compile().households.codebooks
    symbol = missing == "symbol"
    assert compiled.values[int(symbol) :].tolist() == BOOKS[name].values.tolist()
    assert compiled.cuts[int(symbol) :].tolist() == BOOKS[name].cuts.tolist()
    assert (compiled.levels, compiled.rounding) == (BOOKS[name].levels + symbol, BOOKS[name].rounding)


@pytest.mark.parametrize("name", ["feedback", "dither", "blind", "fitted"])
def test_the_promise_of_a_configuration_with_a_file_is_certified(tmp_path: Path, name: str) -> None:
    certificate = certify(document_of(load(config(tmp_path, BOOKS[name]))))
    assert certificate.holds, certificate


@pytest.mark.parametrize("rounding", ["feedback", "dither"])
def test_a_file_of_mid_points_with_a_rounding_that_carries_is_refused_before_it_is_certified(
    tmp_path: Path, rounding: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        load(config(tmp_path, BOOKS["fitted"], f'rounding = "{rounding}"'), studies=True)
    (fault,) = refused.value.faults
    assert (fault.field, fault.value) == ("release.rounding", rounding)
    assert "both ends" in fault.problem
    assert f"--rounding {rounding}" in fault.remedy


def test_the_epoch_s_document_keeps_the_file_s_content_and_not_its_name(tmp_path: Path) -> None:
    """What was released under a file is rendered the same when the file is gone or another."""
    path = config(tmp_path, BOOKS["fitted"])
    document = document_of(load(path))
    (tmp_path / "levels.json").unlink()
    again = type(document).decode(document.encode())
    assert again == document
    assert str(tmp_path) not in document.encode().decode()
    assert again.compile().households.codebooks[0].values.tolist() == BOOKS["fitted"].values.tolist()


def test_a_file_that_is_written_anew_is_read_anew(tmp_path: Path) -> None:
    path = config(tmp_path, BOOKS["fitted"])
    assert document_of(load(path)).books[0].levels == 16
    path = config(tmp_path, BOOKS["blind"])
    assert document_of(load(path)).books[0].levels == 5
