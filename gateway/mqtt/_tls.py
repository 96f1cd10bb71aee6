"""TLS: files to a context, anew for each connection, and what to do about a handshake that failed."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from gateway.certificates import certificate_end


class CredentialsError(Exception):
    """A file that a connection needs cannot be used.

    `field` is its name in the configuration's table, `problem` what is wrong, `remedy` what to do.
    """

    def __init__(self, field: str, problem: str, remedy: str) -> None:
        super().__init__(f"{field} {problem}")
        self.field = field
        self.problem = problem
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """What we trust and who we are, as PEM files; without `ca_file` the system's authorities are trusted.

    They are read for each connection, so that a renewed certificate is used at the next one.
    """

    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None

    def context(self) -> ssl.SSLContext:
        """Return a new context that checks the broker's chain and host. Blocks for some milliseconds.

        Raises `CredentialsError`.
        """
        context = ssl.create_default_context() if self.ca_file is None else _trusting(self.ca_file)
        if self.cert_file is not None and self.key_file is not None:
            _identify(context, self.cert_file, self.key_file)
        return context


def readable(field: str, path: Path) -> bytes:
    """Return what a file holds. Raises `CredentialsError`."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise CredentialsError(
            field,
            f"cannot be read: {error.strerror or type(error).__name__}",
            "create the file, readable for the service's user",
        ) from error


def tls_remedy(error: ssl.SSLError, table: str) -> str:
    """Return what to do about a failed handshake with the broker that `table` configures."""
    if isinstance(error, ssl.SSLCertVerificationError):
        remedy = _UNTRUSTED.get(error.verify_code, "see the broker's certificate, and {t}.ca_file")
        return remedy.format(t=table)
    reason = error.reason or ""
    return next((remedy for word, remedy in _REFUSED if word in reason), _OTHERWISE).format(t=table)


_AUTHORITY = "set {t}.ca_file to the certificate of the authority that signed the broker's"
_HOST = "write a host into {t}.url that the broker's certificate names, or have it issued for this one"
_UNTRUSTED = {
    2: _AUTHORITY,
    7: _AUTHORITY,
    9: "the broker's certificate is not valid yet: is this machine's clock right?",
    10: "renew the broker's certificate, or the expired one in {t}.ca_file; is this machine's clock right?",
    18: _AUTHORITY,
    19: _AUTHORITY,
    20: _AUTHORITY,
    21: _AUTHORITY,
    62: _HOST,
    64: _HOST,
}
"""By OpenSSL's verify code."""

_PLAIN = "does the port speak TLS? if not, write mqtt:// into {t}.url, or the TLS port, usually 8883"
_OTHERWISE = "see the broker's log, and its TLS settings"
_REFUSED = (
    ("ALERT_UNKNOWN_CA", "have {t}.cert_file signed by an authority that the broker trusts"),
    ("ALERT_CERTIFICATE_EXPIRED", "renew {t}.cert_file"),
    ("ALERT_CERTIFICATE_REQUIRED", "the broker asks for our certificate: set {t}.cert_file and {t}.key_file"),
    (
        "ALERT_HANDSHAKE_FAILURE",
        "perhaps the broker asks for our certificate: set {t}.cert_file and {t}.key_file",
    ),
    ("CERTIFICATE", "the broker refuses {t}.cert_file: see its log"),
    ("DECRYPT_ERROR", "the broker refuses {t}.cert_file: see its log"),
    ("PROTOCOL", "the broker's TLS is older than 1.2: renew the broker"),
    ("WRONG_VERSION", _PLAIN),
    ("RECORD_LAYER", _PLAIN),
    ("EOF", _PLAIN),
)
"""By words of OpenSSL's reason, the first that fits."""


def _trusting(ca_file: Path) -> ssl.SSLContext:
    readable("ca_file", ca_file)
    try:
        return ssl.create_default_context(cafile=ca_file)
    except ssl.SSLError as error:
        raise CredentialsError(
            "ca_file", "holds no certificate", "write the authority's certificate into it, as PEM"
        ) from error


def _identify(context: ssl.SSLContext, cert_file: Path, key_file: Path) -> None:
    readable("cert_file", cert_file)
    readable("key_file", key_file)
    try:
        context.load_cert_chain(cert_file, key_file, password=_no_passphrase)
    except ssl.SSLError as error:
        raise _unusable(error, cert_file) from error


def _unusable(error: ssl.SSLError, cert_file: Path) -> CredentialsError:
    """Say which of the two is at fault: OpenSSL does not."""
    if "MISMATCH" in (error.reason or ""):
        return CredentialsError(
            "key_file",
            "does not belong to cert_file",
            "name the key that the certificate was made with; were both renewed?",
        )
    try:
        certificate_end(cert_file)
    except ValueError:
        return CredentialsError("cert_file", "holds no certificate", "write our certificate into it, as PEM")
    return CredentialsError("key_file", "holds no private key", "write our private key into it, as PEM")


def _no_passphrase() -> NoReturn:
    # Without this OpenSSL would ask on the terminal.
    raise CredentialsError(
        "key_file",
        "is protected by a passphrase",
        "store it without one, readable for the service's user only",
    )
