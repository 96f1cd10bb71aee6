"""What holds for all studies: their figures, findings and progress come from one run, and say so."""

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest
from matplotlib.container import ErrorbarContainer
from quick_studies import QUICK, quick_run

from simulators.studies import NAMES, study_named, write


@pytest.mark.parametrize("name", NAMES)
def test_progress_names_steps_and_goes_from_nothing_to_the_figures(name: str) -> None:
    steps, shares = zip(*quick_run(name).steps, strict=True)
    assert all(steps)
    assert list(shares) == sorted(shares)
    assert shares[0] == 0
    assert (steps[-1], shares[-1]) == ("figures", 1)


@pytest.mark.parametrize("name", NAMES)
def test_findings_are_sentences_and_say_what_stands_in_for_the_data(name: str) -> None:
    result = quick_run(name).result
    assert result.findings
    assert all(finding.endswith(".") for finding in result.findings)
    assert ("no folder with" in result.source) == (name != "policies")


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_is_written_as_png_and_svg_every_table_as_csv_and_the_findings_as_text(
    name: str, tmp_path: Path
) -> None:
    result = quick_run(name).result
    written = {path.name for path in write(study_named(name), QUICK, result, tmp_path)}
    pictures = {f"{name}-{figure}.{kind}" for figure in result.figures for kind in ("png", "svg")}
    assert written == pictures | {f"{name}-{table}.csv" for table in result.tables} | {f"{name}.md"}
    text = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
    assert f"Quick form, seed 1. Data: {result.source}." in text
    assert all(f"- {finding}\n" in text for finding in result.findings)
    for table, rows in result.tables.items():
        with (tmp_path / f"{name}-{table}.csv").open(encoding="utf-8", newline="") as file:
            assert len(list(csv.reader(file))) == 1 + len(rows.rows)


@pytest.mark.parametrize("name", ["trips", "hypothesis"])
def test_the_same_seed_writes_the_same_bytes(name: str, tmp_path: Path) -> None:
    study = study_named(name)
    once, again = (
        write(study, QUICK, study.run(QUICK, lambda _step, _share: None), tmp_path / part)
        for part in ("a", "b")
    )
    assert [path.read_bytes() for path in once] == [path.read_bytes() for path in again]


@pytest.mark.parametrize("name", NAMES)
def test_figures_have_a_title_names_of_axes_and_lines_that_differ_without_colour(name: str) -> None:
    for figure in quick_run(name).result.figures.values():
        assert figure.get_suptitle()
        for axes in figure.axes:
            if axes.axison:
                assert axes.get_xlabel()
                _assert_apart([one for one in axes.containers if isinstance(one, ErrorbarContainer)])


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_a_figure_lies_outside_the_paper(name: str) -> None:
    for figure in quick_run(name).result.figures.values():
        figure.draw_without_rendering()
        width, height = figure.bbox.width, figure.bbox.height
        said = [text for text in figure.texts if text.get_text()] + figure.legends
        for part in said:
            box = part.get_window_extent()
            assert box.x0 >= 0
            assert box.x1 <= width
            assert box.y1 <= height


def _assert_apart(series: Sequence[ErrorbarContainer]) -> None:
    lines = [container[0] for container in series]
    styles = {(str(line.get_marker()), str(line.get_linestyle()), line.get_label()) for line in lines}
    assert len({style[0] for style in styles}) == len(lines)
