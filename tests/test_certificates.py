"""When certificates expire, as read from their files."""

import time
from datetime import datetime
from pathlib import Path

import pytest
import trustme
from authorities import LONG_PAST, PAST

from gateway.certificates import certificate_end, seconds_left


def test_the_end_of_the_first_certificate_is_told(tmp_path: Path) -> None:
    authority, path = trustme.CA(), tmp_path / "cert.pem"
    first = authority.issue_cert("a.example", not_after=datetime(2040, 1, 1))  # noqa: DTZ001
    second = authority.issue_cert("b.example", not_after=datetime(2030, 1, 1))  # noqa: DTZ001
    path.write_bytes(b"".join(blob.bytes() for cert in (first, second) for blob in cert.cert_chain_pems))
    assert certificate_end(path) == 2_208_988_800
    assert seconds_left(path) == pytest.approx(2_208_988_800 - time.time(), abs=5)


def test_an_expired_certificate_has_negative_seconds_left(tmp_path: Path) -> None:
    path = tmp_path / "cert.pem"
    past = trustme.CA().issue_cert("a.example", not_before=LONG_PAST, not_after=PAST)
    past.cert_chain_pems[0].write_to_path(path)
    assert seconds_left(path) == pytest.approx(978_307_200 - time.time(), abs=5)


@pytest.mark.parametrize("content", [None, "", "nothing of the kind"])
def test_a_file_without_a_certificate_has_no_seconds_left(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "cert.pem"
    if content is not None:
        path.write_text(content)
    assert seconds_left(path) == 0
    with pytest.raises((OSError, ValueError)):
        certificate_end(path)
