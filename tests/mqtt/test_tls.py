"""TLS: who is let in, what is said when the handshake fails, and that renewed files are used."""

import asyncio
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import uvloop
from authorities import Authority, TlsMosquitto, access_rules
from brokers import Mosquitto
from mqtt.gateways import Gateway, numbers, publish_lines, until
from structlog.testing import capture_logs

from gateway.mqtt import CredentialsError, Publication, PublishRefused, TlsFiles

LoopFactory = Callable[[], asyncio.AbstractEventLoop]
LOOPS: list[LoopFactory] = [asyncio.new_event_loop, uvloop.new_event_loop]
"""The standard library's and the one that the service runs on say it differently."""


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


@pytest.fixture
def broker(tmp_path: Path, authority: Authority) -> Iterator[TlsMosquitto]:
    """A broker that lets in whoever has a certificate of the authority."""
    with TlsMosquitto(tmp_path / "broker", authority.issue("broker", "127.0.0.1")) as mosquitto:
        yield mosquitto


def complaint(port: int, loop_factory: LoopFactory, tls: TlsFiles | None) -> str:
    """Return the event and remedy that a session logs which cannot connect; it must go on trying."""

    async def connect() -> str:
        with capture_logs() as logs:
            gateway = Gateway(port, tls=tls).start()
            await until(lambda: len(logs) >= 2)
            assert not gateway.session.ready
            await gateway.session.stop()
        return f"{logs[0]['event']}: {logs[0]['reason']}: {logs[0]['remedy']}"

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(connect())


@pytest.mark.parametrize("loop_factory", LOOPS)
def test_many_messages_pass_both_ways_in_order(
    broker: TlsMosquitto, authority: Authority, loop_factory: LoopFactory
) -> None:
    """With a window that makes reading pause, and packets of several TLS records."""

    async def exchange() -> None:
        async with Gateway(
            broker.port, tls=authority.issue("gateway"), acknowledging=False, receive_maximum=100
        ) as gateway:
            await asyncio.to_thread(publish_lines, broker.plain_port, "in/a", numbers(3_000))
            while len(gateway.messages) < 3_000:
                await asyncio.sleep(0.01)
                gateway.session.acknowledge(gateway.last)
            assert gateway.payloads == [text.encode() for text in numbers(3_000)]
            async with Gateway(
                broker.port, tls=authority.issue("utility"), client_id="utility", filters=("out/#",)
            ) as utility:
                large = [Publication("out/a", bytes([n]) * 100_000) for n in range(20)]
                small = [Publication("out/b", text.encode()) for text in numbers(3_000)]
                await gateway.session.publish([*large, *small])
                await until(lambda: len(utility.messages) == 3_020)
                assert utility.payloads == [publication.payload for publication in (*large, *small)]

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(exchange())


@pytest.mark.parametrize("loop_factory", LOOPS)
class TestRefusals:
    """What is wrong is said with the field to change, whichever loop runs."""

    def test_a_broker_of_another_authority(
        self, tmp_path: Path, broker: TlsMosquitto, authority: Authority, loop_factory: LoopFactory
    ) -> None:
        ours, other = authority.issue("gateway"), Authority(tmp_path / "other")
        files = TlsFiles(other.ca_file, ours.cert_file, ours.key_file)
        said = complaint(broker.port, loop_factory, files)
        assert said.startswith("TLS failed")
        assert "set broker.ca_file to the certificate of the authority" in said

    def test_a_broker_of_a_private_authority_that_the_system_does_not_know(
        self, broker: TlsMosquitto, loop_factory: LoopFactory
    ) -> None:
        assert "set broker.ca_file" in complaint(broker.port, loop_factory, TlsFiles())

    def test_another_host_than_the_certificate_names(
        self, tmp_path: Path, authority: Authority, loop_factory: LoopFactory
    ) -> None:
        with TlsMosquitto(tmp_path / "b", authority.issue("broker", "other.example")) as broker:
            said = complaint(broker.port, loop_factory, authority.issue("gateway"))
        assert said.startswith("TLS failed")
        assert "write a host into broker.url that the broker's certificate names" in said

    def test_a_broker_whose_certificate_has_expired(
        self, tmp_path: Path, authority: Authority, loop_factory: LoopFactory
    ) -> None:
        server = authority.issue("broker", "127.0.0.1", expired=True)
        with TlsMosquitto(tmp_path / "b", server) as broker:
            said = complaint(broker.port, loop_factory, authority.issue("gateway"))
        assert "renew the broker's certificate" in said

    def test_a_broker_that_asks_for_a_certificate_we_do_not_have(
        self, broker: TlsMosquitto, authority: Authority, loop_factory: LoopFactory
    ) -> None:
        said = complaint(broker.port, loop_factory, TlsFiles(authority.ca_file))
        assert "broker.cert_file" in said

    def test_our_certificate_from_an_authority_that_the_broker_does_not_trust(
        self, tmp_path: Path, broker: TlsMosquitto, authority: Authority, loop_factory: LoopFactory
    ) -> None:
        other = Authority(tmp_path / "other").issue("gateway")
        files = TlsFiles(authority.ca_file, other.cert_file, other.key_file)
        assert "broker.cert_file" in complaint(broker.port, loop_factory, files)

    def test_our_certificate_when_it_has_expired(
        self, broker: TlsMosquitto, authority: Authority, loop_factory: LoopFactory
    ) -> None:
        said = complaint(broker.port, loop_factory, authority.issue("gateway", expired=True))
        assert "broker.cert_file" in said

    def test_a_port_that_speaks_no_tls(self, mosquitto: Mosquitto, loop_factory: LoopFactory) -> None:
        said = complaint(mosquitto.port, loop_factory, TlsFiles())
        assert "write mqtt:// into broker.url, or the TLS port" in said

    def test_a_tls_port_without_tls(self, broker: TlsMosquitto, loop_factory: LoopFactory) -> None:
        said = complaint(broker.port, loop_factory, None)
        assert said.startswith("broker does not answer")
        assert "write mqtts:// into broker.url" in said

    def test_files_that_were_spoilt_while_it_runs(
        self, broker: TlsMosquitto, authority: Authority, loop_factory: LoopFactory
    ) -> None:
        ours, other = authority.issue("gateway"), authority.issue("other")
        said = complaint(broker.port, loop_factory, TlsFiles(ours.ca_file, ours.cert_file, other.key_file))
        assert said.startswith(
            "credentials unusable: key_file does not belong to cert_file: broker.key_file:"
        )
        assert ours.cert_file is not None
        ours.cert_file.unlink()
        said = complaint(broker.port, loop_factory, ours)
        assert said.startswith("credentials unusable: cert_file cannot be read: No such file")


async def test_renewed_files_are_used_at_the_next_connect(tmp_path: Path, authority: Authority) -> None:
    """Not after a restart only (mosquitto#524, #1877, thin-edge.io#3157)."""
    rules = access_rules(
        tmp_path / "acl",
        *("user first", "topic read in/#", "topic readwrite noiseless/#"),
        *("user renewed", "topic read in/#", "topic readwrite noiseless/#", "topic write out/#"),
    )
    server = authority.issue("broker", "127.0.0.1")
    with TlsMosquitto(tmp_path / "broker", server, config_lines=[rules]) as broker:
        files = authority.issue("gateway", common_name="first")
        async with Gateway(broker.port, tls=files) as gateway:
            with pytest.raises(PublishRefused, match="access rules") as refusal:
                await gateway.session.publish([Publication("out/a", b"1")])
            assert refusal.value.reason == 0x87
            authority.issue("gateway", common_name="renewed")
            gateway.cut()
            await until(lambda: gateway.session.connections == 2 and gateway.session.ready)
            await gateway.session.publish([Publication("out/a", b"1")])


async def test_a_broker_whose_authority_changed_is_trusted_once_the_file_says_so(
    tmp_path: Path, authority: Authority
) -> None:
    files, server = authority.issue("gateway"), authority.issue("broker", "127.0.0.1")
    broker = TlsMosquitto(tmp_path / "broker", server).start()
    async with Gateway(broker.port, tls=files) as gateway:
        await asyncio.to_thread(broker.stop)
        new = Authority(authority.directory)  # writes its own certificate over the old one's
        new.issue("broker", "127.0.0.1")
        new.issue("gateway")
        await asyncio.to_thread(broker.start)
        await until(lambda: gateway.session.connections == 2 and gateway.session.ready)
    broker.stop()


async def test_a_password_that_changed_is_used_at_the_next_connect(ours: Path) -> None:
    """As certificates are: a secret that rotates must not need a restart."""
    passwords = ours.with_name("broker-passwords")
    passwords.write_text("gateway:first\n")
    await asyncio.to_thread(_hash, passwords)
    lines = ["allow_anonymous false", f"password_file {passwords}"]
    with Mosquitto(passwords.parent / "broker", config_lines=lines) as broker, capture_logs() as logs:
        gateway = Gateway(broker.port, username="gateway", password_file=ours).start()
        await until(lambda: any(line["event"] == "broker refused" for line in logs))
        await asyncio.to_thread(ours.write_text, "first\n")
        await asyncio.wait_for(gateway.session.wait_ready(), 5)
        await gateway.session.stop()
    assert "stale" not in str(logs)


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.write_text("stale\n")
    return path


def _hash(passwords: Path) -> None:
    subprocess.run(["mosquitto_passwd", "-U", str(passwords)], check=True, timeout=10)
    passwords.chmod(0o644)


def test_the_context_checks_chain_and_host_and_no_old_protocol(authority: Authority) -> None:
    for files in (TlsFiles(), TlsFiles(authority.ca_file), authority.issue("gateway")):
        context = files.context()
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert context.check_hostname
        assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
        assert context is not files.context()


def test_a_key_with_a_passphrase_is_refused_and_not_asked_for_on_the_terminal(authority: Authority) -> None:
    files = authority.issue("gateway")
    assert files.key_file is not None
    protected = files.key_file.with_suffix(".protected")
    subprocess.run(
        ["openssl", "pkey", "-aes128", "-passout", "pass:x", "-in", files.key_file, "-out", protected],
        check=True,
        timeout=10,
    )
    protected.replace(files.key_file)
    with pytest.raises(CredentialsError, match="passphrase") as refused:
        files.context()
    assert refused.value.field == "key_file"


@pytest.mark.parametrize("field", ["ca_file", "cert_file", "key_file"])
def test_a_file_without_pem_in_it_is_named(authority: Authority, field: str) -> None:
    files = authority.issue("gateway")
    getattr(files, field).write_text("nothing of the kind\n")
    with pytest.raises(CredentialsError, match="holds no") as refused:
        files.context()
    assert refused.value.field == field


async def test_tls_that_never_answers_is_left_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.mqtt._link.CONNECT_TIMEOUT", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent, capture_logs() as logs:
        gateway = Gateway(silent.getsockname()[1], tls=TlsFiles()).start()
        await until(lambda: len(logs) >= 2)
        await gateway.session.stop()
    assert logs[0]["event"] == "broker unreachable"
