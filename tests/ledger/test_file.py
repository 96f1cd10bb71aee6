"""The ledger's file has one owner, and is refused if it is not what it must be, or cannot be written."""

import gc
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from ledger.books import SLOT_MS, START, book, document, readings

from gateway.ledger import SCHEMA_VERSION, Ledger, LedgerError, read_statement


def test_a_ledger_has_one_owner_and_says_so(path: Path) -> None:
    with book(path), pytest.raises(LedgerError, match="another process has it"):
        Ledger(path)
    with book(path):
        pass


def test_a_ledger_has_one_owner_among_processes(path: Path) -> None:
    code = f"from gateway.ledger import Ledger; from pathlib import Path; Ledger(Path({str(path)!r}))"
    with book(path):
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "another process has it" in ended.stderr
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_killed_owner_leaves_no_lock(path: Path) -> None:
    code = (
        f"from gateway.ledger import Ledger; from pathlib import Path; import sys, time;"
        f"one = Ledger(Path({str(path)!r})); print('open', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"open\n"
        owner.kill()
        owner.wait()
    with book(path):
        pass


def refused(path: Path) -> LedgerError:
    with pytest.raises(LedgerError) as error:
        book(path).__enter__()
    assert error.value.remedy
    assert str(path) in str(error.value)
    return error.value


def test_a_ledger_of_another_schema_is_refused_and_not_changed(path: Path) -> None:
    with book(path) as one:
        one.begin()
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    before = path.read_bytes()
    assert f"schema {SCHEMA_VERSION + 1}" in refused(path).problem
    assert path.read_bytes() == before
    with pytest.raises(LedgerError, match="schema"):
        read_statement(path)


def test_another_programs_database_is_refused_and_not_changed(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    assert "not a ledger of noiseless" in refused(path).problem
    gc.collect()
    assert path.read_bytes() == before
    with pytest.raises(LedgerError, match="not a ledger"):
        read_statement(path)


@pytest.mark.parametrize("content", [b"not a database at all", b"x" * 20_000, os.urandom(8_192)])
def test_a_file_that_is_no_database_is_refused_and_not_changed(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert refused(path).remedy == "name another file in ledger.url"
    assert path.read_bytes() == content
    with pytest.raises(LedgerError):
        read_statement(path)


def written(path: Path) -> bytes:
    """Return the bytes of a ledger with a few hundred pages."""
    wide = document(*[f"h-{i}" for i in range(1_000)])
    with book(path, wide) as one:
        one.begin()
        for i in range(20):
            one.ledger.append(readings(*[(h, START + 100 * SLOT_MS, i) for h in range(1_000)]))
    return path.read_bytes()


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.95])
def test_a_truncated_ledger_is_refused(path: Path, share: float) -> None:
    whole = written(path)
    path.write_bytes(whole[: int(len(whole) * share)])
    error = refused(path)
    assert "restore it from a backup" in error.remedy or "name another file" in error.remedy


def test_a_ledger_with_damaged_pages_is_refused(path: Path) -> None:
    whole = bytearray(written(path))
    for page in range(4_096, len(whole), 4_096):
        whole[page : page + 64] = b"\xa5" * 64
    path.write_bytes(whole)
    assert "restore it from a backup" in refused(path).remedy


def test_a_ledger_that_breaks_while_it_is_open_says_so_to_every_call(path: Path) -> None:
    """Only a LedgerError is waited out; any other would end the gateway."""
    whole = written(path)
    wide = document(*[f"h-{i}" for i in range(1_000)])
    with book(path, wide) as one:
        one.ledger._db.execute("PRAGMA cache_size = 0")
        path.write_bytes(b"\xa5" * len(whole))
        for call in (one.ledger.outbox, one.ledger.totals, lambda: one.ledger.document(1)):
            one.ledger._db.execute("PRAGMA shrink_memory")
            with pytest.raises(LedgerError):
                call()


def test_a_ledger_in_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "create its folder" in refused(tmp_path / "nowhere" / "noiseless.db").remedy


def test_a_folder_in_the_place_of_the_ledger_is_refused(tmp_path: Path) -> None:
    (tmp_path / "noiseless.db").mkdir()
    assert "unable to open" in refused(tmp_path / "noiseless.db").problem


NOBODY = 65_534


def _opened_as_nobody(path: Path, answers: Any) -> None:  # noqa: ANN401 - a queue of multiprocessing
    if os.geteuid() == 0:
        os.setegid(NOBODY)
        os.seteuid(NOBODY)
    try:
        Ledger(path)
    except LedgerError as error:
        answers.put((error.problem, error.remedy))
    else:
        answers.put(("", ""))


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_ledger_that_cannot_be_written_is_refused_at_the_start(what: str) -> None:
    """As root permissions mean nothing, so somebody else tries."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "noiseless.db"
        with book(path) as one:
            one.begin()
        path.with_name("noiseless.db-lock").chmod(0o666)
        path.chmod(0o444)
        folder.chmod(0o777 if what == "file" else 0o555)
        context = multiprocessing.get_context("fork")
        answers = context.Queue()
        child = context.Process(target=_opened_as_nobody, args=(path, answers))
        child.start()
        problem, remedy = answers.get(timeout=10)
        child.join()
        folder.chmod(0o700)
    assert "readonly" in problem or "unable to open" in problem
    assert "writable" in remedy


def test_a_refused_ledger_is_let_go_of(path: Path) -> None:
    path.write_bytes(b"x" * 8_192)
    error = refused(path)
    path.unlink()
    with book(path):
        assert error.remedy
