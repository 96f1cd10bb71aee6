"""Reads a configuration and finds all its faults at once, each with field, value and remedy."""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from gateway.config import Config
from gateway.roll import FILE, with_roll
from gateway.rulebook import NOT_SHOWN, Fault
from gateway.rules import RULES, SQLITE
from gateway.source_rules import SOURCE_RULES

_FILES = ("password_file", "ca_file", "cert_file", "key_file")
_PATHS = (*((table, name) for table in ("broker", "output") for name in _FILES), ("http", "token_file"))
_CREDENTIALS = re.compile(r".*:.*@", re.DOTALL)
_SECRET = re.compile("pass|pwd|psk|auth|token|secret|key|cred", re.IGNORECASE)
_SECRETS_FILES = ("password_file", "token_file", "key_file")
# A reload writes faults into the log, where ids of meters do not belong.
_METERS = "meters"
_SHOWN_DEPTH = 3
_REMEDIES = {
    "missing": "add it: {description}",
    "extra_forbidden": "remove it, or correct its name",
    "too_short": "give at least one",
}
_PROBLEMS = {"missing": "it is needed", "extra_forbidden": "no such field"}
# How pydantic names a union's branches in a location.
_BRANCHES = frozenset({"UnitField", "TimeField", "str", "int", "float", "bool"})
_STAND_INS: dict[str, dict[str, Any]] = {
    "source": {"topic": "{household}"},
    "household": {"id": "unnamed"},
    "group": {"name": "unnamed", "members": ["*"]},
}


class ConfigError(Exception):
    """A configuration that is refused.

    Attributes:
        faults: all of them.

    """

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(f"{fault.field}: {fault.problem}" for fault in faults))
        self.faults = faults


def load(path: Path, *, studies: bool = False) -> Config:
    """Return a file's configuration; relative paths in it lie beside the file.

    With ``studies`` what must not be run but may be looked at, as Theorem 8's calibration, is let through.

    Raises:
        ConfigError: it cannot be read, or has faults.

    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
        return validated(_beside(raw, path.absolute().parent), studies=studies)
    except OSError as error:
        raise ConfigError(
            [Fault(str(path), None, error.strerror or "unreadable", "name a readable file")]
        ) from error
    except (ValueError, RecursionError) as error:
        raise ConfigError([Fault(str(path), None, f"not TOML: {error}", "correct the line")]) from error


def validated(raw: Mapping[str, Any], *, studies: bool = False) -> Config:
    """Return the configuration of parsed TOML, with the households of its file; ``studies`` as in :func:`load`.

    Raises:
        ConfigError: it has faults.

    """
    raw, roll = with_roll(raw)
    faults: list[Fault] = []
    broken = {"household"} if roll.faults else set()
    try:
        config = Config.model_validate(raw)
    except ValidationError as error:
        found = _outermost([(_location(details), details) for details in error.errors()])
        faults = list({location: _fault(location, details) for location, details in reversed(found)}.values())
        broken |= {".".join(location.names[:2]) for location, _ in found}
        config = Config.model_validate(_without(raw, [location for location, _ in found]))
    for rule in (*RULES, *SOURCE_RULES):
        # What is left still shows its faults to each other, unless a rule reads what was broken.
        if broken.isdisjoint({name.partition(".")[0] for name in rule.reads} | rule.reads):
            faults.extend(() if studies and rule.for_running else rule.check(config))
    if told := roll.told(faults):
        raise ConfigError([_safe(fault) for fault in told])
    return config


def _beside(raw: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the configuration with its relative paths made absolute."""
    output = raw.get("output")
    for section, field in [
        (raw, FILE),
        (output.get("pseudonyms") if isinstance(output, dict) else None, "key_file"),
        *((raw.get(table), field) for table, field in _PATHS),
    ]:
        if isinstance(section, dict) and isinstance(section.get(field), str):
            section[field] = str(folder / section[field])
    for entry in (raw.get("release"), *_entries(raw.get("household"))):
        if (
            isinstance(entry, dict)
            and isinstance(entry.get("codebook"), str)
            and entry["codebook"] != "uniform"
        ):
            entry["codebook"] = str(folder / entry["codebook"])
    ledger = raw.setdefault("ledger", {})
    if isinstance(ledger, dict):
        url = ledger.get("url", Config().ledger.url)
        if isinstance(url, str) and url.startswith(SQLITE) and url != SQLITE:
            ledger["url"] = SQLITE + str(folder / url.removeprefix(SQLITE))
    return raw


def _entries(table: object) -> list[Any]:
    return table if isinstance(table, list) else []


class _Location(NamedTuple):
    """A field's place in the file: names and positions in lists."""

    parts: tuple[int | str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(part for part in self.parts if isinstance(part, str))


def _location(details: ErrorDetails) -> _Location:
    """Return where an error is: without pydantic's names for a union's branches, with a validator's field."""
    parts = tuple(part for part in details["loc"] if not _branch(part))
    field = details.get("ctx", {}).get("field")
    return _Location((*parts, field) if field else parts)


def _branch(part: int | str) -> bool:
    return part in _BRANCHES or str(part).startswith(("literal[", "list["))


def _outermost(found: list[tuple[_Location, ErrorDetails]]) -> list[tuple[_Location, ErrorDetails]]:
    """Leave out what a union's other branches say about a value whose inside is at fault."""
    holders = {location.parts[:depth] for location, _ in found for depth in range(len(location.parts))}
    return [(location, details) for location, details in found if location.parts not in holders]


def _fault(location: _Location, details: ErrorDetails) -> Fault:
    field = ".".join(str(part) for part in location.parts)
    description = _description(location.names) or details["msg"]
    remedy = details.get("ctx", {}).get("remedy") or _REMEDIES.get(details["type"], "set {description}")
    problem = _PROBLEMS.get(details["type"], details["msg"])
    return Fault(field, _shown(field, details), problem, remedy.replace("{description}", description))


def _without(raw: Mapping[str, Any], locations: Sequence[_Location]) -> dict[str, Any]:
    """Return the configuration without its broken fields; required ones get a stand-in."""
    rest = copy.deepcopy(dict(raw))
    for location in locations:
        table, *below = location.parts
        entry = rest.get(str(table))
        if (
            isinstance(entry, list)
            and below
            and isinstance(below[0], int)
            and isinstance(entry[below[0]], dict)
        ):
            entry, below = entry[below[0]], below[1:]
        if isinstance(entry, dict) and below:
            entry.pop(below[0], None)
        else:
            rest.pop(str(table), None)
    for table, needed in _STAND_INS.items():
        rest[table] = [{**needed, **entry} for entry in rest.get(table, ())]
    for group in rest["group"]:
        if "epsilon" not in group:
            group.setdefault("levels", 1)
    return rest


def _description(names: Sequence[str]) -> str | None:
    model: Any = Config
    found = None
    for part in names:
        fields = model.model_fields if isinstance(model, type) and issubclass(model, BaseModel) else {}
        if part not in fields:
            return found
        found, model = fields[part].description, _model_in(fields[part].annotation)
    return found


def _model_in(annotation: Any) -> Any:  # noqa: ANN401 - typing's forms have no common type
    inner = [annotation, *getattr(annotation, "__args__", ())]
    return next((t for t in inner if isinstance(t, type) and issubclass(t, BaseModel)), None)


def _safe(fault: Fault) -> Fault:
    return fault._replace(value=_redacted(fault.value))


def _shown(field: str, details: ErrorDetails) -> object:
    """Return a value as it may be shown."""
    value, name = details["input"], field.rpartition(".")[2]
    if details["type"] == "missing":
        return None
    if field.startswith("household.") and _METERS in field.split("."):
        return NOT_SHOWN
    if isinstance(value, dict) and "field" in details.get("ctx", {}):
        value = value.get(name)
    # A source's patterns may be seen, a household's meters may not.
    return _redacted(value, "" if field.startswith("source.") and name == _METERS else name)


def _redacted(value: object, name: str = "", depth: int = 0) -> object:
    """Return a value without credentials, and as JSON knows it: they stay out of terminals and logs.

    A secret may stand in a field that does not exist, so the name decides as well.
    """
    if name == _METERS or (_SECRET.search(name) and name not in _SECRETS_FILES):
        return NOT_SHOWN
    if isinstance(value, dict | list | tuple) and depth >= _SHOWN_DEPTH:
        return "..."
    if isinstance(value, dict):
        return {str(key): _redacted(inner, str(key), depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted(inner, "", depth + 1) for inner in value]
    if isinstance(value, str):
        return _CREDENTIALS.sub("(not shown)@", value)
    plain = value is None or isinstance(value, bool | int) or (isinstance(value, float) and isfinite(value))
    return value if plain else str(value)
