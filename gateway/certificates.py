"""When certificates expire. PEM is read by `cryptography`: the standard library shows no certificate of ours."""

from __future__ import annotations

import time
from pathlib import Path


def certificate_end(path: Path) -> float:
    """Return when the first certificate of a PEM file expires, in seconds since 1970.

    Raises:
        OSError: the file cannot be read.
        ValueError: it holds no certificate.

    """
    # Imported here: it costs time and memory that a gateway without TLS need not spend.
    from cryptography.x509 import load_pem_x509_certificates  # noqa: PLC0415

    return load_pem_x509_certificates(path.read_bytes())[0].not_valid_after_utc.timestamp()


def seconds_left(path: Path) -> float:
    """Return the seconds until a file's first certificate expires: negative after that, 0 if it is unusable."""
    try:
        return certificate_end(path) - time.time()
    except (OSError, ValueError):
        return 0.0
