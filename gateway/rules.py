"""What the fields of a configuration must be to each other."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from gateway.config import Config, Credentials, GroupTable, HouseholdTable
from gateway.mqtt import CredentialsError, TlsFiles
from gateway.policy import Book, PolicyDocument, book_of, document_of, members_of
from gateway.privacy import Missing, Rounding, WhenSpent
from gateway.quantities import written_duration, written_power
from gateway.rulebook import NOT_SHOWN, Fault, RuleBook

_MS_PER_S = 1_000
_LEAST_SYMBOL_LEVELS = 3
_TWICE = 2
SQLITE = "sqlite:///"
RULES = RuleBook()
_rule = RULES.rule


@_rule("slots.length")
def _slots(config: Config) -> Iterator[Fault]:
    length = config.slots.length
    if length % _MS_PER_S:
        yield Fault(
            "slots.length", written_duration(length), "not whole seconds", 'write a time like "30min"'
        )


@_rule("slots.length", "budget.window")
def _windows(config: Config) -> Iterator[Fault]:
    length, window = config.slots.length, config.budget.window
    if window % length:
        remedy = f"write a multiple of slots.length, {written_duration(length)}"
        yield Fault("budget.window", written_duration(window), "not a whole number of slots", remedy)


@_rule("household.id")
def _roll(config: Config) -> Iterator[Fault]:
    if not config.household:
        yield Fault("household", None, "the roll is empty", 'add a [[household]] with id = "h-001"')
    yield from _repeats("household", "id", [household.id for household in config.household])


@_rule("household.id", "household.meters")
def _meters(config: Config) -> Iterator[Fault]:
    owner: dict[str, int] = {}
    for i, household in enumerate(config.household):
        for meter in household.reporting:
            first = owner.setdefault(meter, i)
            other = config.household[first].id
            # An id that stands twice is a fault of its own.
            if first != i and other != household.id:
                problem = f"one of her meters is {other}'s already"
                yield Fault(f"household.{i}.meters", NOT_SHOWN, problem, "give each meter to one household")
        if len(set(household.meters)) < len(household.meters):
            yield Fault(f"household.{i}.meters", NOT_SHOWN, "a meter stands twice", "keep one of them")


_CODEBOOK_FIELDS = ("levels", "epsilon", "range", "codebook", "rounding")


@_rule(
    *(f"{table}.{field}" for table in ("release", "household") for field in _CODEBOOK_FIELDS), "slots.missing"
)
def _codebooks(config: Config) -> Iterator[Fault]:
    seen = set()
    for i, household in enumerate(config.household):
        # One fault for what [release] says, not one for each household.
        key = tuple(getattr(household, field) for field in _CODEBOOK_FIELDS)
        if key not in seen:
            seen.add(key)
            yield from _codebook(config, household, i)


def _codebook(config: Config, household: HouseholdTable, i: int) -> Iterator[Fault]:
    field, file = _chosen(config, household, i, "codebook")
    try:
        book = book_of(config, household)
    except OSError as error:
        yield Fault(
            field, file, error.strerror or "cannot be read", "make one with noiseless plan --write FILE"
        )
        return
    except ValueError as error:
        yield Fault(field, file, str(error), "make it anew with noiseless plan --write FILE")
        return
    yield from _against_file(config, household, i, book)
    where, value = _where_levels(config, household, i)
    symbol = config.slots.missing is Missing.SYMBOL
    if symbol and book.levels < _LEAST_SYMBOL_LEVELS:
        problem = 'missing = "symbol" takes one value, so fewer than two are left for readings'
        yield Fault(where, value, problem, 'use levels = 3 or more, or missing = "hold"')
        return
    try:
        book.codebook(missing_symbol=symbol)
    except ValueError as error:
        rounding, chosen = _chosen(config, household, i, "rounding")
        if book.rounding is Rounding.NEAREST:
            yield Fault(where, value, str(error), "use fewer levels, or a wider range")
        else:
            remedy = f"make the file with noiseless plan --rounding {book.rounding}, or use 2 levels or more"
            yield Fault(rounding, chosen, str(error), remedy)


def _against_file(config: Config, household: HouseholdTable, i: int, book: Book) -> Iterator[Fault]:
    """Yield what the configuration says otherwise than its codebook file."""
    if book.values is None:
        return
    levels = household.chosen_levels or config.release.chosen_levels
    ends = household.range or config.release.range
    if levels is not None and levels != book.levels:
        field, value = _where_levels(config, household, i)
        yield Fault(
            field, value, f"the codebook file makes {book.levels} levels", f"write levels = {book.levels}"
        )
    if ends is not None and ends != (book.lower, book.upper):
        field, value = _chosen(config, household, i, "range")
        span = f'["{written_power(book.lower)}", "{written_power(book.upper)}"]'
        yield Fault(
            field, value, "the codebook file has another range", f"leave it out, or write range = {span}"
        )


def _chosen(config: Config, household: HouseholdTable, i: int, name: str) -> tuple[str, object]:
    """Return the field that decides something for a household, and its value."""
    if getattr(household, name) is not None:
        return f"household.{i}.{name}", getattr(household, name)
    return f"release.{name}", getattr(config.release, name)


def _where_levels(config: Config, household: HouseholdTable, i: int) -> tuple[str, object]:
    """Return the field that decides a household's levels, and its value."""
    for where, table in ((f"household.{i}", household), ("release", config.release)):
        for field in ("levels", "epsilon"):
            if getattr(table, field) is not None:
                return f"{where}.{field}", getattr(table, field)
    return "release.epsilon", None


@_rule("group.name", "group.members", "household.id", "household.groups")
def _groups(config: Config) -> Iterator[Fault]:
    ids = [household.id for household in config.household]
    yield from _repeats("group", "name", [group.name for group in config.group])
    for i, group in enumerate(config.group):
        for pattern in group.members:
            if not members_of([pattern], ids):
                remedy = "name an id of the roll, or a pattern like h-0*"
                yield Fault(f"group.{i}.members", pattern, "matches no household", remedy)
    joined = {name for household in config.household for name in household.groups}
    for i, group in enumerate(config.group):
        if not group.members and group.name not in joined:
            remedy = 'write members = ["h-0*"], or name the group in the groups of households'
            yield Fault(f"group.{i}.members", None, "nobody is in it", remedy)


@_rule("group.name", "household.groups")
def _joined(config: Config) -> Iterator[Fault]:
    known = {group.name for group in config.group}
    for i, household in enumerate(config.household):
        for name in household.groups:
            if name not in known:
                remedy = f'correct the name, or add a [[group]] with name = "{name}"'
                yield Fault(f"household.{i}.groups", name, "there is no such group", remedy)


@_rule(
    *(f"group.{field}" for field in ("members", "levels", "epsilon", "weights", "rounding", "calibration")),
    "group.name",
    "household.id",
    "household.groups",
    *(f"{table}.{field}" for table in ("release", "household") for field in _CODEBOOK_FIELDS),
)
def _group_cells(config: Config) -> Iterator[Fault]:
    if not config.household or any(True for _ in _coarsening(config)):
        return
    try:
        document = document_of(config)
        for book in document.books:
            book.codebook(missing_symbol=document.missing is Missing.SYMBOL)
    except (OSError, ValueError):
        return  # a codebook that cannot be used is a fault of its own
    good = True
    for i, group in enumerate(document.groups):
        books = [document.books[document.book_of[member]] for member in group.members]
        if not books:
            good = False
            continue
        try:
            group.codebook(books)
        except ValueError as error:
            good = False
            yield _group_fault(config.group[i], i, str(error))
    if good:
        yield from _joint(config, document)


def _group_fault(group: GroupTable, i: int, problem: str) -> Fault:
    field = "weights" if "weight" in problem else "levels" if group.levels is not None else "epsilon"
    remedy = "write levels = 2 or more" if "two levels" in problem else f"write smaller {field}"
    return Fault(f"group.{i}.{field}", getattr(group, field), problem, remedy)


def _joint(config: Config, document: PolicyDocument) -> Iterator[Fault]:
    """Yield what all topics of a household together are too much for."""
    try:
        document.compile()
    except ValueError as error:
        remedy = "put her into fewer groups with feedback, or write smaller levels"
        yield Fault("group", [group.name for group in config.group], str(error), remedy)


@_rule("budget.when_spent", "slots.missing")
def _coarsening(config: Config) -> Iterator[Fault]:
    if config.budget.when_spent is WhenSpent.COARSEN and config.slots.missing is Missing.SYMBOL:
        problem = 'merged cells have no symbol for silence, which slots.missing = "symbol" needs'
        yield Fault("budget.when_spent", "coarsen", problem, 'use slots.missing = "hold" or "floor"')


@_rule("group.calibration", for_running=True)
def _studies(config: Config) -> Iterator[Fault]:
    for i, group in enumerate(config.group):
        if group.calibration == "paper":
            problem = "Theorem 8 lets one member reach one value more than is charged"
            yield Fault(f"group.{i}.calibration", "paper", problem, 'use "certified"; "paper" is for studies')


@_rule("group.weights", "household.id")
def _weights(config: Config) -> Iterator[Fault]:
    ids = [household.id for household in config.household]
    for i, group in enumerate(config.group):
        for pattern in group.weights:
            if not members_of([pattern], ids):
                remedy = "name an id of the roll, or a pattern like h-0*"
                yield Fault(f"group.{i}.weights", pattern, "matches no household", remedy)


@_rule("broker.url", *(f"broker.{field}" for field in Credentials.model_fields))
def _credentials(config: Config) -> Iterator[Fault]:
    yield from _files("broker", config.broker, tls=config.broker.tls)
    if config.broker.url == "embedded" and find_spec("iotcore") is None:
        yield Fault(
            "broker.url",
            "embedded",
            "the embedded broker is not installed",
            "pip install 'noiseless[simulate]'",
        )


@_rule("output.url", "output.client_id", *(f"output.{field}" for field in Credentials.model_fields))
def _output(config: Config) -> Iterator[Fault]:
    if config.output.url is not None:
        yield from _files("output", config.output, tls=config.output.tls)
        return
    for field in ("client_id", *Credentials.model_fields):
        if (value := getattr(config.output, field)) is not None:
            remedy = f"set output.url, or leave output.{field} out: releases go to broker.url"
            yield Fault(f"output.{field}", str(value), "does nothing without output.url", remedy)


@_rule("output.pseudonyms", "slots.length")
def _periods(config: Config) -> Iterator[Fault]:
    given, length = config.output.pseudonyms, config.slots.length
    if given is not None and given.period % length:
        remedy = f"write a multiple of slots.length, {written_duration(length)}"
        period = written_duration(given.period)
        yield Fault("output.pseudonyms.period", period, "not a whole number of slots", remedy)


@_rule(
    "output.pseudonyms",
    "release.seed",
    *(f"{table}.{field}" for table in ("release", "household") for field in _CODEBOOK_FIELDS),
)
def _recognised(config: Config) -> Iterator[Fault]:
    """Yield that dither would tell who is behind a pseudonym: its thresholds follow from seed and id."""
    if config.output.pseudonyms is None or config.release.seed is not None:
        return
    try:
        dithered = any(book_of(config, one).rounding is Rounding.DITHER for one in config.household)
    except (OSError, ValueError):
        return  # a codebook that cannot be used is a fault of its own
    if dithered:
        problem = "dither's thresholds follow from it and the id, and as output.topic it is known to all"
        yield Fault(
            "release.seed", None, problem, "set one that nobody guesses, or leave out dither or pseudonyms"
        )


@_rule("output.url", "output.client_id", "broker.url", "broker.client_id")
def _sessions(config: Config) -> Iterator[Fault]:
    own = config.output.address is not None and not config.separate
    if own and config.output_client_id == config.broker.client_id:
        problem = "is also broker.client_id, at the same broker"
        yield Fault("output.client_id", config.output_client_id, problem, "set another, or leave it out")


@_rule("http.token_file")
def _token(config: Config) -> Iterator[Fault]:
    yield from _unreadable("http.token_file", config.http.token_file)


@_rule("ledger.url")
def _ledger(config: Config) -> Iterator[Fault]:
    folder = ledger_path(config).absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        yield Fault(
            "ledger.url",
            config.ledger.url,
            "its folder is not writable",
            f"create {folder}, or allow writing",
        )


def ledger_path(config: Config) -> Path:
    """Return the ledger's file."""
    return Path(config.ledger.url.removeprefix(SQLITE))


def _repeats(table: str, field: str, names: list[str]) -> Iterator[Fault]:
    times = Counter(names)
    seen: Counter[str] = Counter()
    for i, name in enumerate(names):
        seen[name] += 1
        if seen[name] == _TWICE:
            yield Fault(f"{table}.{i}.{field}", name, f"stands {times[name]} times", "keep one of them")


def _files(table: str, given: Credentials, *, tls: bool) -> Iterator[Fault]:
    """Yield what is wrong with the files of a connection, which is encrypted if ``tls``."""
    yield from _unreadable(f"{table}.password_file", given.password_file)
    files = TlsFiles(given.ca_file, given.cert_file, given.key_file)
    for field in ("ca_file", "cert_file", "key_file"):
        if not tls and (path := getattr(files, field)):
            remedy = f"write mqtts:// into {table}.url, or leave {table}.{field} out"
            yield Fault(f"{table}.{field}", str(path), "does nothing without TLS", remedy)
    if (files.cert_file is None) != (files.key_file is None):
        there, wanting = ("cert_file", "key_file") if files.cert_file else ("key_file", "cert_file")
        problem = f"a certificate needs its key: {table}.{wanting} is missing"
        yield Fault(
            f"{table}.{there}",
            str(getattr(files, there)),
            problem,
            f"set {table}.{wanting}, or leave both out",
        )
    if tls:
        yield from _unusable(table, files)


def _unusable(table: str, files: TlsFiles) -> Iterator[Fault]:
    try:
        files.context()
    except CredentialsError as error:
        yield Fault(f"{table}.{error.field}", str(getattr(files, error.field)), error.problem, error.remedy)


def _unreadable(field: str, path: Path | None) -> Iterator[Fault]:
    if path is not None and not (path.is_file() and os.access(path, os.R_OK)):
        yield Fault(field, str(path), "cannot be read", "create the file, readable for the service's user")
