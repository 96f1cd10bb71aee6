"""The roll."""

from __future__ import annotations

from gateway.config import Config


def meters_of(config: Config) -> tuple[list[str], list[int]]:
    """Return the meters' ids in the roll's order, and the position of each one's household."""
    pairs = [
        (meter, i)
        for i, household in enumerate(config.household)
        for meter in (getattr(household, "meters", None) or [household.id])
    ]
    return [meter for meter, _ in pairs], [i for _, i in pairs]
