"""The configuration as pydantic models: every field with unit, default and meaning.

A model says what one field may hold. What fields must be to each other is in :mod:`gateway.checking`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, InstanceOf, PlainSerializer, model_validator

from gateway.config_base import AsList, Number, Table
from gateway.privacy import MAX_CELLS, Calibration, Missing, Rounding, WhenSpent, levels_within
from gateway.pseudonyms import PseudonymKey
from gateway.quantities import Duration, Power, refused
from gateway.source_table import SourceTable

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")
_DEFAULT_PORTS = {"mqtt": 1883, "mqtts": 8883}
_MAX_PORT = 65_535
_MAX_METER = 256


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise refused(
            "not a name that fits into an MQTT topic", "use letters, digits and . _ : @ - (1 to 128)"
        )
    return text


def _broker_url(text: str) -> str:
    if text == "embedded":
        return text
    remedy = 'write "mqtt://HOST:PORT", as in "mqtt://127.0.0.1:1883", "mqtts://HOST:PORT", or "embedded"'
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise refused("not a broker's address", remedy) from None
    if parts.username or parts.password:
        raise refused(
            "credentials in the address end up in logs", "set username and password_file in this table"
        )
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or port == 0 or parts.path not in ("", "/"):
        raise refused("not a broker's address", remedy)
    return text


def _output_url(text: str) -> str:
    if text == "embedded":
        raise refused(
            "the embedded broker is the one of broker.url", "leave output.url out, or name a broker"
        )
    return _broker_url(text)


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "127.0.0.1", parts.port or _DEFAULT_PORTS.get(parts.scheme, 1883)


def _encrypted(url: str) -> bool:
    return urlsplit(url).scheme == "mqtts"


def _listen(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if not host or not colon or not port.isdigit() or int(port) > _MAX_PORT:
        raise refused("not an address to listen on", 'write "HOST:PORT", as in "127.0.0.1:8080"')
    return text


def _sqlite(text: str) -> str:
    if not text.startswith("sqlite:///") or text == "sqlite:///":
        raise refused(
            "not a ledger that this version opens", 'write "sqlite:///FILE", as in "sqlite:///noiseless.db"'
        )
    return text


def _no_wildcard(text: str) -> str:
    if not text or any(c in text for c in "+#\0{}") or text.startswith(("$", "/")) or text.endswith("/"):
        raise refused(
            "not a topic to publish below", 'write one like "noiseless", without + # { } or outer /'
        )
    return text


def _meter(text: str) -> str:
    if not 0 < len(text) <= _MAX_METER or not text.isprintable() or text != text.strip():
        raise refused("not a meter's id", f"write 1 to {_MAX_METER} characters, no blanks around them")
    return text


def _key_in(path: object) -> object:
    if not isinstance(path, str | Path):
        return path
    try:
        return PseudonymKey.read(Path(path))
    except OSError as error:
        problem, remedy = (
            error.strerror or "cannot be read",
            "create the file, readable for the service's user alone",
        )
        raise refused(problem, remedy) from None
    except ValueError as error:
        raise refused(str(error), "make one with openssl rand -hex 32") from None


def _in_order(ends: tuple[int, int]) -> tuple[int, int]:
    if ends[0] >= ends[1]:
        raise refused("the range's ends are not in order", 'write range = ["LOW", "HIGH"] with LOW < HIGH')
    return ends


Name = Annotated[str, AfterValidator(_name)]
Meter = Annotated[str, AfterValidator(_meter)]
Weight = Annotated[int, Field(strict=True, ge=-1_000_000, le=1_000_000)]
GroupRounding = Literal[Rounding.NEAREST, Rounding.FEEDBACK]
PowerRange = Annotated[tuple[Power, Power], AfterValidator(_in_order)]
# Read with the configuration, so that another key is another configuration; only its fingerprint is ever written.
KeyFile = Annotated[
    InstanceOf[PseudonymKey], BeforeValidator(_key_in), PlainSerializer(lambda key: key.fingerprint)
]


class Credentials(Table):
    """Who we are at a broker, and whom we trust there. The files are read anew at each connect."""

    username: str | None = Field(None, description="the user at the broker")
    password_file: Path | None = Field(None, description="a file that holds the password, and nothing else")
    ca_file: Path | None = Field(
        None, description="with mqtts://: the authorities to trust, PEM; left out: the system's"
    )
    cert_file: Path | None = Field(
        None, description="with mqtts://: our certificate and its chain, PEM, where the broker asks for one"
    )
    key_file: Path | None = Field(None, description="its private key, PEM, without a passphrase")


class BrokerTable(Credentials):
    """Where raw readings come from."""

    url: Annotated[str, AfterValidator(_broker_url)] = Field(
        "mqtt://127.0.0.1:1883",
        description='the broker of raw readings: "mqtt://HOST:PORT", "mqtts://HOST:PORT" (TLS), or "embedded"',
    )
    client_id: Name = Field(
        "noiseless", description="names the persistent session; no other client may use it"
    )

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of the broker."""
        return _address(self.url)

    @property
    def tls(self) -> bool:
        """Whether the connection is encrypted."""
        return _encrypted(self.url)


class SlotsTable(Table):
    """How time is cut."""

    length: Duration = Field(30 * 60_000, description="one slot, aligned to UTC; whole seconds")
    grace: Duration = Field(2 * 60_000, description="how long after its end a slot waits for late readings")
    clock: Literal["wall", "event"] = Field(
        "wall",
        description='"wall", or "event": a slot closes when half the roll has a reading past its end + grace',
    )
    missing: Missing = Field(
        Missing.HOLD,
        description="what stands for a household whose meter said nothing: hold, floor or symbol",
    )
    catch_up: Duration = Field(
        10 * 60_000, description="after a connect, at most this long waiting for the backlog"
    )
    skew: Duration = Field(5 * 60_000, description="how far ahead of our clock a meter's time may be")


class Release(Table):
    """What one release may say."""

    epsilon: Number | None = Field(
        None, gt=0, le=20, description="bits per release; levels = the most that fit"
    )
    levels: int | None = Field(
        None, ge=1, le=MAX_CELLS, strict=True, description="k, the exact number of values"
    )
    range: PowerRange | None = Field(
        None, description='public ["LOW", "HIGH"] power; readings outside are clamped'
    )
    codebook: str | None = Field(
        None, description='"uniform": equally spaced over the range; or a file made by noiseless plan'
    )
    rounding: Rounding | None = Field(
        None, description='"nearest"; "feedback": totals stay exact; "dither": means over many stay exact'
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.epsilon is not None and self.levels is not None:
            raise refused(
                "epsilon and levels both say how many values there are", "keep one of them", "levels"
            )
        return self

    @property
    def chosen_levels(self) -> int | None:
        """The number of values k, where this table says it."""
        return self.levels if self.epsilon is None else levels_within(self.epsilon)


class ReleaseTable(Release):
    """What one release may say; every field but the seed may be set per household."""

    seed: str | None = Field(None, description="public seed of dither's thresholds; left out: output.topic")


class BudgetTable(Table):
    """What all releases of one household may cost per window."""

    window: Duration = Field(
        24 * 3_600_000, description="aligned to UTC; a slot belongs to the window of its start"
    )
    bits: Number | None = Field(
        None,
        gt=0,
        le=1e9,
        description="per household and window, groups included; left out: what the roll costs",
    )
    when_spent: WhenSpent = Field(
        WhenSpent.HOLD,
        description='"hold": the last symbol repeats; "coarsen": as many merged cells as what is left pays for, '
        'then hold; "withhold": no release until the window turns',
    )
    fresh_feedback: bool = Field(
        default=False, strict=True, description="with feedback: forget what is left over when a window begins"
    )


class HouseholdTable(Release):
    """One household on the roll."""

    id: Name = Field(
        description="her name in the topics of releases, and of readings unless meters says others"
    )
    meters: Annotated[tuple[Meter, ...], AsList] = Field(
        (), description="the ids under which her meters report, which are summed; left out: her id"
    )
    groups: Annotated[tuple[Name, ...], AsList] = Field(
        (), description="names of groups that she joins, beside those whose members name her"
    )

    @property
    def reporting(self) -> tuple[str, ...]:
        """The ids under which her meters report."""
        return self.meters or (self.id,)


class GroupTable(Table):
    """One aggregate of members."""

    name: Name = Field(description="the group's name in its topic")
    members: Annotated[list[str], AsList] = Field(
        [],
        min_length=1,
        description='ids or patterns of households, as in ["h-0*"]; left out: those whose groups name it',
    )
    query: Literal["sum", "mean"] = Field("sum", description='"sum" or "mean" of the members\' power')
    epsilon: Number | None = Field(
        None, gt=0, le=20, description="bits that one release may say about one member"
    )
    levels: int | None = Field(
        None, ge=1, le=MAX_CELLS, strict=True, description="k that one member may reach"
    )
    weights: dict[str, Weight] = Field(
        {},
        description='public whole weights by id or pattern, up to a million: { "h-003" = 2 }; else 1',
    )
    rounding: GroupRounding | None = Field(None, description='"nearest", or "feedback": totals stay exact')
    calibration: Calibration = Field(
        "certified", description='"certified"; "paper" ([NP] Theorem 8, one output too many) is for studies'
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.epsilon is None) == (self.levels is None):
            raise refused(
                "a group needs epsilon or levels, one of them", "write epsilon = 3, or levels = 8", "levels"
            )
        return self

    @property
    def reach(self) -> int:
        """The number of values k that one member may reach."""
        return levels_within(self.epsilon) if self.epsilon is not None else self.levels or 1


class LedgerTable(Table):
    """Where readings in flight, charges and releases are kept."""

    url: Annotated[str, AfterValidator(_sqlite)] = Field(
        "sqlite:///noiseless.db",
        description="the ledger's file; a relative one lies beside the configuration",
    )
    commit: Duration = Field(1_000, description="readings are made durable, and acknowledged, this often")


class HttpTable(Table):
    """Metrics and health."""

    listen: Annotated[str, AfterValidator(_listen)] = Field(
        "127.0.0.1:8080", description="HOST:PORT to listen on"
    )
    token_file: Path | None = Field(
        None, description="a file with the operator's token; without one, no /operator"
    )


class PseudonymsTable(Table):
    """What stands for households' ids in topics."""

    key_file: KeyFile = Field(description="a file with a secret of 16 bytes or more")
    period: Duration = Field(30 * 86_400_000, description="how long a pseudonym lasts; aligned to UTC")


class OutputTable(Credentials):
    """Where releases go."""

    topic: Annotated[str, AfterValidator(_no_wildcard)] = Field(
        "noiseless", description="the topic they lie below"
    )
    url: Annotated[str, AfterValidator(_output_url)] | None = Field(
        None, description="a broker of their own, as broker.url; left out: they go where readings come from"
    )
    client_id: Name | None = Field(
        None, description='names our session at output.url; left out: broker.client_id with "-out"'
    )
    max_pending: int = Field(
        336,
        ge=1,
        le=1_000_000,
        strict=True,
        description="slots that wait to be published at most; then as many wait to close, then input waits",
    )
    pseudonyms: PseudonymsTable | None = Field(
        None,
        description='{ key_file = "FILE", period = "30d" }: topics name households by pseudonyms that change; '
        "left out: by their ids",
    )

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port of the receivers' broker, if it is one of their own."""
        return None if self.url is None else _address(self.url)

    @property
    def tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.url is not None and _encrypted(self.url)

    @property
    def pseudonym_key(self) -> PseudonymKey | None:
        """The secret key of pseudonyms, if there are some."""
        return None if self.pseudonyms is None else self.pseudonyms.key_file


class Config(Table):
    """The whole configuration."""

    broker: BrokerTable = BrokerTable()
    slots: SlotsTable = SlotsTable()
    release: ReleaseTable = ReleaseTable()
    budget: BudgetTable = BudgetTable()
    source: tuple[SourceTable, ...] = Field((), description="[[source]]: how messages become readings")
    households_file: Path | None = Field(
        None, description="a CSV file with more households, a column per field of [[household]]"
    )
    household: tuple[HouseholdTable, ...] = Field((), description="[[household]]: the roll")
    group: tuple[GroupTable, ...] = Field((), description="[[group]]: aggregates of members")
    ledger: LedgerTable = LedgerTable()
    http: HttpTable = HttpTable()
    output: OutputTable = OutputTable()

    @property
    def separate(self) -> bool:
        """Whether receivers have another broker than the one of raw readings."""
        return self.output.address not in (None, self.broker.address)

    @property
    def output_client_id(self) -> str:
        """The name of our session at the receivers' broker."""
        return self.output.client_id or f"{self.broker.client_id}-out"
