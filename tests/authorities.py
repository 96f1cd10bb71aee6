"""A certificate authority of the test's own, and brokers that ask for its certificates."""

import socket
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Self

import trustme
from brokers import Mosquitto, free_port
from gateways import eventually

from gateway.mqtt import TlsFiles

PAST = datetime(2001, 1, 1)  # noqa: DTZ001 - trustme wants UTC without saying so
LONG_PAST = datetime(2000, 1, 1)  # noqa: DTZ001


class Authority:
    """Issues certificates into files of `directory`; issuing a name again renews its files in place."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.ca_file = directory / "ca.pem"
        self._ca = trustme.CA()
        self._ca.cert_pem.write_to_path(self.ca_file)

    def issue(
        self, name: str, *hosts: str, common_name: str | None = None, expired: bool = False
    ) -> TlsFiles:
        """Return the files of a certificate for `hosts`, or for a client called `common_name`."""
        cert = self._ca.issue_cert(
            *(hosts or (f"{name}.example",)),
            common_name=common_name or name,
            not_before=LONG_PAST if expired else None,
            not_after=PAST if expired else None,
        )
        files = TlsFiles(self.ca_file, self.directory / f"{name}.pem", self.directory / f"{name}.key")
        assert files.cert_file is not None
        assert files.key_file is not None
        files.cert_file.write_bytes(b"".join(blob.bytes() for blob in cert.cert_chain_pems))
        cert.private_key_pem.write_to_path(files.key_file)
        return files


class TlsMosquitto(Mosquitto):
    """A mosquitto whose port is encrypted and asks for certificates; their common name is the user.

    `plain_port` is open to the test's own clients, which are anonymous.
    """

    def __init__(
        self,
        directory: Path,
        server: TlsFiles,
        *,
        config_lines: Sequence[str] = (),
        persistence: bool = False,
    ) -> None:
        self.plain_port = free_port()
        lines = [
            f"cafile {server.ca_file}",
            f"certfile {server.cert_file}",
            f"keyfile {server.key_file}",
            "require_certificate true",
            "use_identity_as_username true",
            f"listener {self.plain_port} 127.0.0.1",
            "max_queued_messages 100000",  # with an unlimited queue 2.0.11 disconnects whoever it denies
            *config_lines,
        ]
        super().__init__(directory, config_lines=lines, persistence=persistence)
        self.url = f"mqtts://127.0.0.1:{self.port}"

    def start(self) -> Self:
        """Start it and wait until it listens on both ports."""
        super().start()
        eventually("the plain port listens", lambda: _listens(self.plain_port))
        return self


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=0.2).close()
    except OSError:
        return False
    return True


def access_rules(path: Path, *rules: str) -> str:
    """Write an ACL, whose first rules are those of anonymous clients, and return its configuration line."""
    path.write_text("\n".join(["topic readwrite #", *rules]) + "\n")
    path.chmod(0o644)
    return f"acl_file {path}"
