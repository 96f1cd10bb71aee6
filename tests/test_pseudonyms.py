"""Pseudonyms: the same for the same key, period and household, else unrelated; and ids never leave."""

from __future__ import annotations

import asyncio
import hashlib
import re
import struct
from base64 import b32encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from meters import meters_for

import gateway.publishing
from gateway.audit import certify
from gateway.checking import ConfigError, load, validated
from gateway.config import Config
from gateway.ledger import Ledger, LedgerError, LedgerThread
from gateway.messages import Release, Renderer
from gateway.mqtt import Publication
from gateway.outbox import Outbox
from gateway.policy import PolicyDocument, document_of
from gateway.privacy import MISSING, close_slot
from gateway.pseudonyms import PseudonymKey, Pseudonyms
from gateway.publishing import Publisher
from gateway.report import privacy_table
from gateway.roll import pseudonyms_of
from gateway.rules import Fault

DAY_MS = 86_400_000
SLOT_MS = 1_800_000
START = 1_767_571_200_000
"""2026-01-05T00:00Z."""
KEY = PseudonymKey.of(b"correct horse battery staple")
OTHER = PseudonymKey.of(b"another horse, another staple")
SOURCE = {"topic": "m/{household}", "value": "/e", "unit": "Wh", "time": {"at": "/ts"}}

ids = st.lists(st.text("abch-0123456789é", min_size=1, max_size=8), min_size=1, max_size=12, unique=True)
times = st.integers(-(10**12), 10**13)


def configured(
    folder: Path,
    households: Sequence[dict[str, Any]],
    secret: bytes = b"correct horse battery staple",
    **tables: Any,  # noqa: ANN401 - as TOML gives it
) -> Config:
    (folder / "key").write_bytes(secret)
    pseudonyms = {"key_file": str(folder / "key"), **tables.pop("pseudonyms", {"period": "1d"})}
    output = {"pseudonyms": pseudonyms, **tables.pop("output", {})}
    return validated({"source": [SOURCE], "household": list(households), "output": output, **tables})


def faults(folder: Path, **tables: Any) -> list[Fault]:  # noqa: ANN401 - as TOML gives it
    with pytest.raises(ConfigError) as refused:
        configured(folder, [{"id": "h-1"}], **tables)
    return refused.value.faults


def renderer_of(config: Config) -> Renderer:
    document = document_of(config)
    return Renderer(document, document.compile(), config.output.pseudonym_key)


@given(ids, times, st.integers(1, 1000))
def test_a_pseudonym_is_the_keyed_hash_of_period_and_id_in_base_32(
    names: list[str], start_ms: int, days: int
) -> None:
    """By the standard library, one at a time."""
    period_ms = days * DAY_MS
    expected = []
    for name in names:
        said = struct.pack("<qqI", period_ms, start_ms // period_ms, 0) + name.encode()
        digest = hashlib.blake2b(said, key=KEY.secret, digest_size=10, person=b"household").digest()
        expected.append(b32encode(digest).decode().lower())
    assert Pseudonyms(KEY, period_ms).of(start_ms, names) == expected


@given(ids, times, times)
def test_pseudonyms_are_the_same_within_a_period_and_all_others_in_another(
    names: list[str], one_ms: int, other_ms: int
) -> None:
    pseudonyms = Pseudonyms(KEY, DAY_MS)
    one, other = pseudonyms.of(one_ms, names), pseudonyms.of(other_ms, names)
    if one_ms // DAY_MS == other_ms // DAY_MS:
        assert one == other
    else:
        assert set(one).isdisjoint(other)
    assert set(one).isdisjoint(Pseudonyms(OTHER, DAY_MS).of(one_ms, names)), "another key"
    assert set(one).isdisjoint(Pseudonyms(KEY, 2 * DAY_MS).of(one_ms, names)), "another length of periods"


def test_a_period_begins_at_its_border_in_utc() -> None:
    pseudonyms = Pseudonyms(KEY, DAY_MS)
    last, first, next_ = (pseudonyms.of(START + shift, ["h-1"]) for shift in (-1, 0, DAY_MS - 1))
    assert last != first == next_


def test_ids_do_not_run_into_one_another() -> None:
    """The id is all that follows the period: a longer one is no continuation of a shorter."""
    named = Pseudonyms(KEY, DAY_MS).of(0, ["h", "h-", "h-1", "h-11", "1", "11"])
    assert len(set(named)) == 6


@given(st.permutations(range(300)))
@settings(max_examples=5, deadline=None)
def test_who_meets_anothers_pseudonym_gets_the_next_whatever_the_rolls_order(order: list[int]) -> None:
    """Two letters are 1,024 pseudonyms, too few for 300 households not to meet."""
    names = [f"h-{i}" for i in range(300)]
    short = Pseudonyms(KEY, DAY_MS, letters=2)
    met = len(set(short._hashed(short.period_of(START), 0, names)))
    assert met < 300
    pseudonyms = short.of(START, names)
    assert len(set(pseudonyms)) == 300
    assert short.of(START, [names[i] for i in order]) == [pseudonyms[i] for i in order]
    alone = [Pseudonyms(KEY, DAY_MS, letters=2).of(START, [name])[0] for name in names]
    assert sum(a == b for a, b in zip(alone, pseudonyms, strict=True)) >= 2 * met - 300, (
        "the others keep theirs"
    )


def test_more_households_than_pseudonyms_are_refused() -> None:
    short = Pseudonyms(KEY, DAY_MS, letters=1)
    assert len(set(short.of(START, [f"h-{i}" for i in range(32)]))) == 32
    with pytest.raises(ValueError, match="more households than pseudonyms"):
        short.of(START, [f"h-{i}" for i in range(33)])


@pytest.mark.parametrize("text", [b"", b" " * 40, b"fifteen bytes..", b" fifteen bytes..\n", b"x" * 4_097])
def test_a_key_that_is_too_short_or_no_key_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="not a key of 16 to 4,096 bytes"):
        PseudonymKey.of(text)


def test_blanks_around_a_key_do_not_count_and_any_bytes_may_be_in_it() -> None:
    assert PseudonymKey.of(b"\tcorrect horse battery staple \r\n") == KEY
    assert PseudonymKey.of(bytes(range(128, 144))) != PseudonymKey.of(bytes(range(129, 145)))
    assert PseudonymKey.of(b"x" * 4_096) != PseudonymKey.of(b"x" * 4_095)


def test_neither_key_nor_configuration_shows_the_secret(tmp_path: Path) -> None:
    config = configured(tmp_path, [{"id": "h-1"}])
    for shown in (
        repr(KEY),
        str(KEY),
        repr(config),
        str(config.model_dump()),
        document_of(config).encode().decode(),
    ):
        assert "horse" not in shown
        assert repr(KEY.secret)[2:-1] not in shown
        assert KEY.secret.hex() not in shown
    assert config.model_dump()["output"]["pseudonyms"]["key_file"] == KEY.fingerprint


@pytest.mark.parametrize("content", [b"too short", b"x" * 5_000])
def test_a_bad_key_is_a_fault_of_its_file_and_is_not_shown(tmp_path: Path, content: bytes) -> None:
    (fault,) = faults(tmp_path, secret=content)
    assert (fault.field, fault.value) == ("output.pseudonyms.key_file", str(tmp_path / "key"))
    assert "openssl rand" in fault.remedy
    assert content.decode() not in repr(fault)


def test_a_folder_is_no_key(tmp_path: Path) -> None:
    (fault,) = faults(tmp_path, pseudonyms={"key_file": str(tmp_path)})
    assert fault.field == "output.pseudonyms.key_file"


def test_a_period_holds_whole_slots(tmp_path: Path) -> None:
    (fault,) = faults(tmp_path, pseudonyms={"period": "45min"})
    assert (fault.field, fault.value) == ("output.pseudonyms.period", "45min")
    assert "30min" in fault.remedy


def test_dither_needs_a_seed_of_its_own_beside_pseudonyms(tmp_path: Path) -> None:
    """Its thresholds are a function of seed and id: with a known seed an id can be tried against releases."""
    (fault,) = faults(tmp_path, release={"rounding": "dither"})
    assert fault.field == "release.seed"
    assert configured(tmp_path, [{"id": "h-1"}], release={"rounding": "dither", "seed": "rarely guessed"})
    assert configured(tmp_path, [{"id": "h-1"}], release={"rounding": "feedback"})


def test_a_period_is_thirty_days_unless_told_and_the_key_lies_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("correct horse battery staple\n")
    path = tmp_path / "noiseless.toml"
    path.write_text(
        '[output]\npseudonyms = { key_file = "secret" }\n[[household]]\nid = "h-1"\n'
        '[[source]]\ntopic = "m/{household}"\nvalue = "/e"\nunit = "Wh"\ntime = { at = "/ts" }\n'
    )
    given_ = load(path).output.pseudonyms
    assert given_ is not None
    assert (given_.key_file, given_.period) == (KEY, 30 * DAY_MS)


def test_another_key_is_another_configuration_and_another_policy(tmp_path: Path) -> None:
    """A reload compares the one, an epoch is named by the other."""
    one = configured(tmp_path, [{"id": "h-1"}])
    assert configured(tmp_path, [{"id": "h-1"}], b"correct horse battery staple\n") == one
    other = configured(tmp_path, [{"id": "h-1"}], b"another horse, another staple")
    assert other != one
    assert document_of(other).fingerprint != document_of(one).fingerprint


def test_check_tells_of_pseudonyms_where_there_are_some_and_nothing_where_not(tmp_path: Path) -> None:
    plain = privacy_table(validated({"source": [SOURCE], "household": [{"id": "h-1"}]}))
    told = privacy_table(configured(tmp_path, [{"id": "h-1"}]))
    assert told.pop("pseudonyms") == "1d"
    assert told == plain


def test_the_operator_can_tell_who_is_behind_a_pseudonym(tmp_path: Path) -> None:
    config = configured(tmp_path, [{"id": "h-1"}, {"id": "h-2"}])
    behind = pseudonyms_of(config, START)
    assert [behind[name] for name in Pseudonyms(KEY, DAY_MS).of(START, ["h-2", "h-1"])] == ["h-2", "h-1"]
    assert pseudonyms_of(validated({"source": [SOURCE], "household": [{"id": "h-1"}]}), START) == {}


# Publications under pseudonyms.

HOMES = [{"id": f"home-{i}", "levels": 2 + i, "meters": [f"meter-{i}"]} for i in range(5)]
GROUPS = {"group": [{"name": "street", "members": ["home-*"], "levels": 4}]}


def said_by(config: Config, start_ms: int, symbol_of: dict[str, tuple[int, bool]]) -> list[tuple[str, bytes]]:
    """Return topics and bytes of a slot, symbols and spent given by household."""
    renderer = renderer_of(config)
    told = [symbol_of[household.id] for household in config.household]
    symbols = [symbol for symbol, _ in told] + [1] * len(config.group)
    return [
        (one.topic, one.payload)
        for one in renderer.render(Release(start_ms, symbols, [spent for _, spent in told]))
    ]


@settings(deadline=None, max_examples=30)
@given(
    st.permutations(range(5)),
    st.lists(st.booleans(), min_size=5, max_size=5),
    st.sampled_from(["hold", "withhold"]),
)
def test_topics_bytes_and_their_order_do_not_depend_on_the_rolls_order(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], spent: list[bool], when_spent: str
) -> None:
    """In two slots of different periods; and sorted by pseudonym, the order says nothing more."""
    folder = tmp_path_factory.mktemp("order")
    budget = {"budget": {"when_spent": when_spent}}
    one = configured(folder, HOMES, **GROUPS, **budget)
    other = configured(folder, [HOMES[i] for i in order], **GROUPS, **budget)
    symbol_of = {str(home["id"]): (i % 2, spent[i]) for i, home in enumerate(HOMES)}
    for start_ms in (START, START + 3 * DAY_MS):
        said = said_by(one, start_ms, symbol_of)
        assert said_by(other, start_ms, symbol_of) == said
        topics = [topic for topic, _ in said]
        assert topics[-1] == "noiseless/group/street"
        assert topics[:-1] == sorted(topics[:-1])
        assert len(said) == (6 if when_spent == "hold" else 6 - sum(spent))


def test_a_payload_is_that_of_the_household_behind_the_pseudonym(tmp_path: Path) -> None:
    """What it would be without pseudonyms, byte for byte."""
    config = configured(tmp_path, HOMES, **GROUPS)
    without = document_of(validated({"source": [SOURCE], "household": HOMES, **GROUPS}))
    release = Release(START, [1, 0, 1, 0, 1, 2], [False, True, False, False, True])
    plain = {one.topic: one.payload for one in Renderer(without, without.compile()).render(release)}
    named = {one.topic: one.payload for one in renderer_of(config).render(release)}
    behind = pseudonyms_of(config, START)
    assert {
        re.sub("household/(.*)", lambda found: f"household/{behind[found[1]]}", topic): payload
        for topic, payload in named.items()
    } == plain


def test_coarse_releases_are_told_under_the_right_pseudonym(tmp_path: Path) -> None:
    config = configured(tmp_path, [{"id": f"h-{i}", "levels": 4} for i in range(5)])
    renderer, behind = renderer_of(config), pseudonyms_of(config, START)
    said = renderer.render(Release(START, [0, 1, 0, 3, 0], [False] * 5, [2, 0, 0, 0, 0]))
    coarse = [one.topic for one in said if b"coarse" in one.payload]
    assert [behind[topic.rpartition("/")[2]] for topic in coarse] == ["h-0"]
    (three,) = (one.topic for one in said if b'"symbol":3' in one.payload)
    assert behind[three.rpartition("/")[2]] == "h-3"


def test_no_id_of_a_household_or_meter_is_in_any_topic_or_payload(tmp_path: Path) -> None:
    """Every symbol of every household, spent and not, in slots of three periods."""
    config = configured(tmp_path, HOMES, **GROUPS)
    renderer, levels = renderer_of(config), [2 + i for i in range(5)]
    written = b""
    for start_ms in (START, START + DAY_MS, START + 40 * DAY_MS):
        for symbol in range(max(levels)):
            for spent in (False, True):
                symbols = [min(symbol, most - 1) for most in levels]
                for one in renderer.render(Release(start_ms, [*symbols, symbol], [spent] * 5)):
                    written += one.topic.encode() + b" " + one.payload + b"\n"
    assert written.count(b"noiseless/household/") == 3 * 6 * 2 * 5
    for home in HOMES:
        for name in (home["id"], *home["meters"]):  # type: ignore[misc]
            assert str(name).encode() not in written


def test_chunks_are_the_whole_under_pseudonyms_too(tmp_path: Path) -> None:
    renderer = renderer_of(configured(tmp_path, HOMES, **GROUPS))
    release = Release(START, [1, 0, 1, 0, 1, 2], [False] * 5)
    whole = renderer.render(release)
    for middle in range(7):
        assert renderer.render(release, 0, middle) + renderer.render(release, middle) == whole
    assert renderer.render(release._replace(start_ms=START + DAY_MS)) != whole
    assert renderer.render(release) == whole, "a period that comes again"


def test_without_its_key_a_policy_is_not_rendered_and_with_another_not_either(tmp_path: Path) -> None:
    document = document_of(configured(tmp_path, HOMES))
    with pytest.raises(ValueError, match="need their key"):
        Renderer(document, document.compile()).render(Release(START, [0] * 5, [False] * 5))
    with pytest.raises(ValueError, match="not the policy's"):
        Renderer(document, document.compile(), OTHER)
    plain = document_of(validated({"source": [SOURCE], "household": HOMES}))
    with pytest.raises(ValueError, match="not the policy's"):
        Renderer(plain, plain.compile(), KEY)


def test_the_certificate_is_the_same_with_pseudonyms(tmp_path: Path) -> None:
    homes = [{"id": "h-1"}, {"id": "h-2", "levels": 2}]
    plain = certify(document_of(validated({"source": [SOURCE], "household": homes})))
    assert certify(document_of(configured(tmp_path, homes))) == plain
    assert plain.holds


# From the ledger.


class Receivers:
    """A broker that takes publications, and stops answering after some calls."""

    def __init__(self, calls: int) -> None:
        self.calls = calls
        self.taken: list[Publication] = []
        self.stuck = asyncio.Event()

    async def publish(self, publications: Sequence[Publication]) -> None:
        self.taken += publications
        self.calls -= 1
        if self.calls < 0:
            self.stuck.set()
            await asyncio.Event().wait()


def decided(
    ledger: Ledger, document: PolicyDocument, key: PseudonymKey | None, slots: int, start_ms: int
) -> None:
    ledger.keep_key(key)
    policy = document.compile()
    _, state, _, registers = ledger.enter(document, policy, *meters_for(document))
    if ledger.next_ms is None:
        ledger.begin(start_ms)
    for slot in range(slots):
        moment = start_ms + slot * document.slot_ms
        closed = close_slot(policy, state, moment, policy.households.lower + 10_000 * slot)
        symbols = [*closed.symbols.tolist(), *closed.group_symbols.tolist()]
        release = Release(moment, symbols, closed.spent.tolist())
        ledger.close_slot(release, moment + document.slot_ms, closed, registers)
        state = closed.state


async def published(ledger: Ledger, calls: int) -> list[Publication]:
    """Publish until the broker stops answering, or all is published; then the process is gone."""
    thread, outbox, receivers = LedgerThread(lambda _: None), Outbox(99, *ledger.waiting()), Receivers(calls)
    running = asyncio.create_task(Publisher(ledger, thread, outbox, receivers).run())  # type: ignore[arg-type]
    ends = [asyncio.create_task(receivers.stuck.wait()), asyncio.create_task(outbox.emptied()), running]
    done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED, timeout=20)
    assert done, "the publisher hangs"
    if running in done:
        running.result()
    for task in ends:
        task.cancel()
    await asyncio.gather(*ends, return_exceptions=True)
    thread.shutdown()
    return receivers.taken


@pytest.mark.parametrize("calls", range(6))
async def test_a_crash_in_the_middle_of_a_slot_goes_on_in_the_same_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    """Two slots over the border of a period; the new start has another key and another order of the roll."""
    monkeypatch.setattr(gateway.publishing, "_CHUNK", 2)
    config = configured(tmp_path, HOMES, **GROUPS)
    document, start_ms = document_of(config), START + DAY_MS - SLOT_MS
    whole = Ledger(tmp_path / "whole.db")
    decided(whole, document, KEY, 2, start_ms)
    expected = await published(whole, 99)
    whole.close()
    assert len(expected) == 12
    first = Ledger(tmp_path / "crash.db")
    decided(first, document, KEY, 2, start_ms)
    before = await published(first, calls)
    first.close()
    other = configured(tmp_path, HOMES[::-1], b"another horse, another staple", **GROUPS)
    again = Ledger(tmp_path / "crash.db")
    decided(again, document_of(other), OTHER, 0, start_ms)
    after = await published(again, 99)
    again.close()
    assert before == expected[: len(before)]
    assert after == expected[12 - len(after) :]
    assert len(before) + len(after) == 14, "what was not acknowledged comes twice, and nothing else"


def test_a_key_is_kept_until_nothing_waits_that_it_names(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "noiseless.db")
    decided(ledger, document_of(configured(tmp_path, HOMES)), KEY, 1, START)
    ledger.keep_key(OTHER)
    assert (ledger.key(KEY.fingerprint), ledger.key(OTHER.fingerprint)) == (KEY, OTHER)
    ledger.keep_key(None)
    assert ledger.key(KEY.fingerprint) == KEY
    with pytest.raises(LedgerError, match="key of pseudonyms is missing") as refused:
        ledger.key(OTHER.fingerprint)
    assert refused.value.fatal
    ledger.delivered(START)
    ledger.keep_key(None)
    with pytest.raises(LedgerError):
        ledger.key(KEY.fingerprint)
    ledger.close()


def test_the_public_policy_in_the_ledger_does_not_have_the_key(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "noiseless.db")
    document = document_of(configured(tmp_path, HOMES))
    decided(ledger, document, KEY, 1, START)
    assert ledger.document(ledger.epoch) == document
    assert KEY.secret.hex().encode() not in document.encode()
    assert KEY.fingerprint.encode() in document.encode()
    ledger.close()


def test_silence_is_no_other_name(tmp_path: Path) -> None:
    """Topics and order are those of a slot in which everybody was heard."""
    config = configured(tmp_path, HOMES)
    document = document_of(config)
    policy = document.compile()
    ledger = Ledger(tmp_path / "noiseless.db")
    ledger.keep_key(KEY)
    state = ledger.enter(document, policy, *meters_for(document)).state
    ledger.close()
    topics = set()
    for values in (policy.households.lower, policy.households.lower * 0 + MISSING):
        closed = close_slot(policy, state, START, values)
        release = Release(START, closed.symbols.tolist(), closed.spent.tolist())
        topics.add(tuple(one.topic for one in renderer_of(config).render(release)))
    assert len(topics) == 1
