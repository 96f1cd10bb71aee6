"""Reads a configuration and finds all its faults at once, each with field, value and remedy."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from gateway.config import Config
from gateway.rules import RULES, SQLITE, Fault

_PATHS = (("broker", "password_file"), ("http", "token_file"))
_REMEDIES = {
    "missing": "add it: {description}",
    "extra_forbidden": "remove it, or correct its name",
    "too_short": "give at least one",
}


class ConfigError(Exception):
    """A configuration that is refused.

    Attributes:
        faults: all of them.

    """

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(f"{fault.field}: {fault.problem}" for fault in faults))
        self.faults = faults


def load(path: Path) -> Config:
    """Return a file's configuration; relative paths in it lie beside the file.

    Raises:
        ConfigError: it cannot be read, or has faults.

    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            [Fault(str(path), None, error.strerror or "unreadable", "name a readable file")]
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError([Fault(str(path), None, f"not TOML: {error}", "correct the line")]) from error
    return validated(_beside(raw, path.absolute().parent))


def validated(raw: Mapping[str, Any]) -> Config:
    """Return the configuration of parsed TOML.

    Raises:
        ConfigError: it has faults.

    """
    faults: list[Fault] = []
    broken: set[str] = set()
    try:
        config = Config.model_validate(raw)
    except ValidationError as error:
        faults = [_fault(details) for details in error.errors()]
        broken = {str(details["loc"][0]) for details in error.errors()}
        config = Config.model_validate({name: table for name, table in raw.items() if name not in broken})
    for rule in RULES:
        if broken.isdisjoint(rule.reads):
            faults.extend(rule.check(config))
    if faults:
        raise ConfigError(faults)
    return config


def _beside(raw: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the configuration with its relative paths made absolute."""
    for table, field in _PATHS:
        section = raw.get(table)
        if isinstance(section, dict) and isinstance(section.get(field), str):
            section[field] = str(folder / section[field])
    ledger = raw.setdefault("ledger", {})
    if isinstance(ledger, dict):
        url = ledger.get("url", Config().ledger.url)
        if isinstance(url, str) and url.startswith(SQLITE) and url != SQLITE:
            ledger["url"] = SQLITE + str(folder / url.removeprefix(SQLITE))
    return raw


def _fault(details: ErrorDetails) -> Fault:
    loc = tuple(part for part in details["loc"] if not _names_a_type(part))
    field = ".".join(str(part) for part in loc)
    context = details.get("ctx", {})
    description = _description(loc)
    remedy = context.get("remedy") or _REMEDIES.get(details["type"], "set {description}").format(
        description=description or details["msg"]
    )
    value = None if details["type"] == "missing" else details["input"]
    return Fault(field, _shown(field, value), details["msg"], remedy)


def _names_a_type(part: object) -> bool:
    """Return whether a location's part is pydantic's name of a union's branch, not a field of the file."""
    return isinstance(part, str) and (part.startswith("literal[") or part == "UnitField")


def _description(loc: tuple[int | str, ...]) -> str | None:
    model: Any = Config
    found = None
    for part in loc:
        if isinstance(part, int):
            continue
        fields = model.model_fields if isinstance(model, type) and issubclass(model, BaseModel) else {}
        if part not in fields:
            return None
        found, model = fields[part].description, _model_in(fields[part].annotation)
    return found


def _model_in(annotation: Any) -> Any:  # noqa: ANN401 - typing's forms have no common type
    inner = [annotation, *getattr(annotation, "__args__", ())]
    return next((t for t in inner if isinstance(t, type) and issubclass(t, BaseModel)), None)


def _shown(field: str, value: object) -> object:
    """Return a value as it may be shown: credentials stay out of terminals and logs."""
    if field == "broker.url" and isinstance(value, str) and "@" in value:
        return value.rpartition("@")[2]
    return value
