"""What every table of the configuration is made of."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


class Table(BaseModel):
    """A TOML table: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _as_list(value: object) -> object:
    return value if isinstance(value, list | tuple) else [value]


AsList = BeforeValidator(_as_list)
"""One value may be written without the brackets of a list."""

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
"""A finite number; a text is none."""
