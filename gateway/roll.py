"""The roll: whose the meters are, and the roll as a CSV file, whose columns are the fields of [[household]].

A line becomes what its [[household]] table would be, so that the same checks find the same faults; here they are told
by line and column.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gateway.config import Config, HouseholdTable
from gateway.pseudonyms import Pseudonyms
from gateway.rulebook import NOT_SHOWN, Fault

FILE = "households_file"
_COLUMNS = tuple(HouseholdTable.model_fields)
_LISTS = ("meters", "groups")
_BETWEEN = "|"
_WHOLE = re.compile(r"[+-]?[0-9]{1,12}")
_DECIMAL = re.compile(r"[+-]?[0-9]{1,12}(?:\.[0-9]{1,12})?")
_PLACE = re.compile(r"household\.([0-9]+)(?:\.([^.]*))?.*")
_MOST_TOLD = 40
_Numbered = tuple[int, Fault]


def meters_of(config: Config) -> tuple[list[str], list[int]]:
    """Return the ids of all meters, in the roll's order, and the position of each one's household."""
    pairs = [(meter, i) for i, household in enumerate(config.household) for meter in household.reporting]
    return [meter for meter, _ in pairs], [position for _, position in pairs]


def pseudonyms_of(config: Config, time_ms: int) -> dict[str, str]:
    """Return the ids of the households by the pseudonyms that they have at a time; nothing where they have none."""
    given, ids = config.output.pseudonyms, [household.id for household in config.household]
    if given is None:
        return {}
    return dict(zip(Pseudonyms(given.key_file, given.period).of(time_ms, ids), ids, strict=True))


class Line(NamedTuple):
    """A household's line: its number in the file, and what stands in it by column, without empty cells."""

    number: int
    cells: dict[str, str]

    def table(self, folder: Path) -> dict[str, Any]:
        """Return the [[household]] table that says the same; a codebook's file lies beside the roll."""
        entry: dict[str, Any] = {column: _value(column, cell) for column, cell in self.cells.items()}
        if entry.get("codebook") not in (None, "uniform"):
            entry["codebook"] = str(folder / entry["codebook"])
        return entry


class RollFile(NamedTuple):
    """A roll as it was read.

    Attributes:
        first: the position of its first household: [[household]] tables come before it.
        lines: of its households.
        faults: of the file itself, each with its line's number; a line with one is not among the lines.

    """

    first: int
    lines: Sequence[Line] = ()
    faults: Sequence[_Numbered] = ()

    def told(self, faults: Iterable[Fault]) -> list[Fault]:
        """Return all faults of a configuration, those of the file by line, and of these the first dozens."""
        elsewhere, here = [], list(self.faults)
        for fault in faults:
            found = _PLACE.fullmatch(fault.field)
            if found is None or not 0 <= int(found[1]) - self.first < len(self.lines):
                elsewhere.append(fault)
            else:
                line = self.lines[int(found[1]) - self.first]
                here.append((line.number, _on_line(fault, line, found[2] or "")))
        here.sort(key=lambda pair: pair[0])
        return [*elsewhere, *_shortened([fault for _, fault in here])]


def with_roll(raw: Mapping[str, Any]) -> tuple[Mapping[str, Any], RollFile]:
    """Return a configuration as parsed TOML with the households of its file after its own, and the file.

    The file is read here, once.
    """
    tables, path = raw.get("household", []), raw.get(FILE)
    if not isinstance(path, str) or not isinstance(tables, list):
        return raw, RollFile(0)
    faults: list[_Numbered] = []
    lines = list(_lines(Path(path), faults))
    folder = Path(path).parent
    added = [line.table(folder) for line in lines]
    return {**raw, "household": [*tables, *added]}, RollFile(len(tables), lines, faults)


def _lines(path: Path, faults: list[_Numbered]) -> Iterator[Line]:
    """Yield the households' lines; what is no such line goes to the faults."""
    text = _text(path, faults)
    records = _records(text, faults)
    number, columns = next(records, (1, []))
    if not faults:
        faults += [(number, fault) for fault in _about_columns(number, columns)]
    if faults:
        return
    for number, cells in records:
        if len(cells) == len(columns):
            yield Line(number, {name: cell for name, cell in zip(columns, cells, strict=True) if cell})
        else:
            problem = f"{len(cells)} cells under {len(columns)} columns"
            remedy = (
                "give every column a cell, an empty one if need be; quote a cell with the separator in it"
            )
            faults.append((number, Fault(_line(number), None, problem, remedy)))


def _text(path: Path, faults: list[_Numbered]) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        problem, remedy = "not UTF-8", "save it as UTF-8"
    except OSError as error:
        problem, remedy = error.strerror or "unreadable", "name a readable CSV file"
    except ValueError:
        problem, remedy = "not a file's name", "name a readable CSV file"
    faults.append((0, Fault(FILE, str(path), problem, remedy)))
    return ""


def _records(text: str, faults: list[_Numbered]) -> Iterator[tuple[int, list[str]]]:
    """Yield number and cells of each line that is not blank; a quoted cell may reach over several lines."""
    separator = ";" if ";" in text.lstrip().partition("\n")[0] else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    number = 1
    try:
        for record in reader:
            cells = [cell.strip() for cell in record]
            if any(cells):
                yield number, cells
            number = reader.line_num + 1
    except csv.Error as error:
        remedy = 'write quotes within quotes twice: ""'
        faults.append((number, Fault(_line(number), None, f"not CSV: {error}", remedy)))


def _about_columns(number: int, columns: Sequence[str]) -> Iterator[Fault]:
    remedy = f"columns are {', '.join(_COLUMNS)}"
    if "id" not in columns:
        yield Fault(_line(number), None, "there is no column id", f"begin with a header line; {remedy}")
    for place, name in enumerate(columns):
        if name not in _COLUMNS:
            yield Fault(_line(number), name, "no such column", f"remove it, or correct its name; {remedy}")
        elif name in columns[:place]:
            yield Fault(_line(number), name, "the column stands twice", "keep one of them")


def _value(column: str, cell: str) -> object:
    """Return a cell as TOML would hold it; one that cannot be that stays text, which the field's check refuses."""
    if column in _LISTS:
        return [name.strip() for name in cell.split(_BETWEEN)]
    if column == "range":
        return [end.strip() for end in cell.split("..")]
    if column == "levels" and _WHOLE.fullmatch(cell):
        return int(cell)
    if column == "epsilon" and _DECIMAL.fullmatch(cell):
        return float(cell)
    return cell


def _on_line(fault: Fault, line: Line, column: str) -> Fault:
    field = f"{_line(line.number)} {column}".rstrip()
    value = fault.value if fault.value == NOT_SHOWN else line.cells.get(column, fault.value)
    remedy = (
        'write it with units, the lower end first, as in "0 W..14.5 kW"'
        if column == "range"
        else fault.remedy
    )
    return Fault(field, value, fault.problem, remedy)


def _shortened(faults: list[Fault]) -> list[Fault]:
    if len(faults) <= _MOST_TOLD:
        return faults
    more = f"{len(faults) - _MOST_TOLD:,} more faults"
    return [*faults[:_MOST_TOLD], Fault(FILE, None, more, "correct these first: often one cause has many")]


def _line(number: int) -> str:
    return f"{FILE} line {number}"
