"""What a hostile client can do within TLS and before it: by hand where the library of a client would not do it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
import struct
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import ExtensionOID
from local.authorities import authority, issued
from server.secured_nodes import HOST, Secured, echo, run, settings, store, trusting

from heirlog.server import tls_stream
from heirlog.server.tls_stream import TlsStream
from heirlog.tls.contexts import server_context

ALERT, HANDSHAKE = 21, 22
PROTOCOL_VERSION = 70
"""The alert of a server that does not speak the versions that it is offered."""
ECDHE_ECDSA_AES_128 = "ECDHE-ECDSA-AES128-GCM-SHA256"
ECDHE_ECDSA_AES_128_NUMBER = 0xC02B
PATIENCE_S = 30.0


def counted(width: int, content: bytes) -> bytes:
    return len(content).to_bytes(width, "big") + content


def extension(kind: int, content: bytes) -> bytes:
    return struct.pack(">H", kind) + counted(2, content)


def client_hello(version: int, *extensions: bytes) -> bytes:
    """A handshake message, without the head of a record."""
    groups = extension(10, counted(2, struct.pack(">H", 23)))  # P-256
    points = extension(11, counted(1, b"\0"))
    signatures = extension(13, counted(2, b"\x04\x03\x02\x03"))  # ECDSA with SHA-256 or SHA-1
    suites = struct.pack(">HHH", ECDHE_ECDSA_AES_128_NUMBER, 0xC009, 0xC00A)
    body = struct.pack(">H", version) + os.urandom(32) + b"\0" + counted(2, suites) + b"\1\0"
    return b"\1" + counted(3, body + counted(2, groups + points + signatures + b"".join(extensions)))


def record(kind: int, content: bytes, version: int = 0x0303) -> bytes:
    return bytes([kind]) + struct.pack(">H", version) + counted(2, content)


async def read_record(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    kind, _, size = struct.unpack(">BHH", await reader.readexactly(5))
    return kind, await reader.readexactly(size)


@pytest.mark.parametrize("version", [0x0301, 0x0302], ids=["TLS 1.0", "TLS 1.1"])
def test_an_old_version_of_tls_is_refused(fake_node: Any, eventually: Any, version: int) -> None:
    """By bytes: the library of this client would not even offer it."""

    async def scenario() -> None:
        node = Secured(fake_node, echo)
        reader, writer = await asyncio.open_connection(node.node.endpoint.host, node.node.endpoint.port)
        writer.write(record(HANDSHAKE, client_hello(version), 0x0301))
        kind, content = await read_record(reader)
        assert (kind, content[1]) == (ALERT, PROTOCOL_VERSION)
        await eventually(lambda: not node.node.server.connection_count)
        node.stop()

    run(scenario)


# -- after the handshake


class KeyUpdates:
    """Records of a TLS 1.3 client that hold a KeyUpdate and nothing else, filled up to 16 KiB or to `size`."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def _expand(self, label: bytes, size: int) -> bytes:
        label = b"tls13 " + label
        info = struct.pack(">HB", size, len(label)) + label + b"\0"
        return HKDFExpand(hashes.SHA384(), size, info).derive(self._secret)

    def next(self, size: int = 16_384, data: bytes = b"") -> bytes:
        """data: what a record before it holds."""
        key, iv = self._expand(b"key", 32), self._expand(b"iv", 12)
        self._secret = self._expand(b"traffic upd", 48)
        contents = [b"\x18\0\0\1\0\x16".ljust(size, b"\0")]
        if data:
            contents.insert(0, data + b"\x17")
        sealed = b""
        for number, plain in enumerate(contents):  # the key is new, so they are counted from 0
            head = b"\x17\x03\x03" + struct.pack(">H", len(plain) + 16)
            sealed += head + AESGCM(key).encrypt(iv[:-1] + bytes([iv[-1] ^ number]), plain, head)
        return sealed


def secrets_of(keys: Path) -> dict[str, str]:
    """What an SSLContext writes into its `keylog_filename`, by label."""
    return {line.split()[0]: line.split()[2] for line in keys.read_text().splitlines() if not line.startswith("#")}


def test_records_without_data_are_not_read_without_end(fake_node: Any, framed: Any, tmp_path: Path) -> None:
    async def scenario() -> None:
        node = Secured(fake_node, echo)
        context = trusting(tls_versions=("TLSv1.3",))
        context.keylog_filename = str(tmp_path / "keys")
        loop = asyncio.get_running_loop()
        reader, writer = await node.connect(context)
        assert writer.get_extra_info("cipher")[0] == "TLS_AES_256_GCM_SHA384"
        updates = KeyUpdates(bytes.fromhex(secrets_of(tmp_path / "keys")["CLIENT_TRAFFIC_SECRET_0"]))
        with socket.socket(fileno=os.dup(writer.get_extra_info("socket").fileno())) as below:
            below.setblocking(False)
            flood = b"".join(updates.next() for _ in range(64))
            with contextlib.suppress(ConnectionError):
                await loop.sock_sendall(below, flood)
            with contextlib.suppress(ConnectionError):
                await reader.read()
        assert "too many records without data" in str(node.node.logged[-1])
        node.stop()

    run(scenario)


def test_key_updates_with_some_data_among_them_leave_time_for_others(
    fake_node: Any, framed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of 27 bytes costs as much as a small request, and a byte of data makes a peer an honest one."""
    at_once: list[int] = []
    take_in, receive = TlsStream._take_in, TlsStream._receive

    def counted(stream: TlsStream) -> str | None:
        before = stream._taken_bytes
        reason = take_in(stream)
        if at_once:  # the handshake is over
            at_once[-1] += stream._taken_bytes - before
        return reason

    def received(stream: TlsStream, *places: Any) -> int:
        at_once.append(0)
        return receive(stream, *places)

    monkeypatch.setattr(TlsStream, "_take_in", counted)
    monkeypatch.setattr(TlsStream, "_receive", received)

    async def scenario() -> None:
        node = Secured(fake_node, echo)
        context = trusting(tls_versions=("TLSv1.3",))
        context.keylog_filename = str(tmp_path / "keys")
        _, writer = await node.connect(context)
        updates = KeyUpdates(bytes.fromhex(secrets_of(tmp_path / "keys")["CLIENT_TRAFFIC_SECRET_0"]))
        frame = framed(1)
        flood = b"".join(
            updates.next(6, frame[number // 500 :][:1] if number % 500 == 0 else b"")
            for number in range(500 * len(frame))
        )
        with socket.socket(fileno=os.dup(writer.get_extra_info("socket").fileno())) as below:
            below.setblocking(False)
            await asyncio.get_running_loop().sock_sendall(below, flood)
            while not node.node.clients[0].frames:
                await asyncio.sleep(0)
        assert sum(at_once) > len(flood) / 2 and max(at_once) <= tls_stream.UNPROVEN_READ
        node.stop()

    run(scenario)


def expanded(secret: bytes, label: bytes, seed: bytes, size: int) -> bytes:
    """The pseudo-random function of TLS 1.2."""

    def digest(data: bytes) -> bytes:
        made = hmac.HMAC(secret, hashes.SHA256())
        made.update(data)
        return made.finalize()

    found, link = b"", label + seed
    while len(found) < size:
        link = digest(link)
        found += digest(link + label + seed)
    return found[:size]


class ByHand:
    """A client of TLS 1.2 that has shaken hands, and whose next record is written by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, keys: Path) -> None:
        self.reader, self.writer, self._keys = reader, writer, keys
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = trusting(tls_versions=("TLSv1.2",))
        context.set_ciphers(ECDHE_ECDSA_AES_128)
        context.keylog_filename = str(keys)
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=HOST)
        self._key = self._iv = b""

    async def shake_hands(self) -> None:
        received = b""
        while True:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                self.writer.write(self._outgoing.read())
                more = await self.reader.read(65536)
                received += more
                self._incoming.write(more)
                continue
            self.writer.write(self._outgoing.read())
            break
        # record, handshake message, version
        server_random = received[5 + 4 + 2 :][:32]
        line = next(line.split() for line in self._keys.read_text().splitlines() if line.startswith("CLIENT_RANDOM"))
        block = expanded(bytes.fromhex(line[2]), b"key expansion", server_random + bytes.fromhex(line[1]), 40)
        self._key, self._iv = block[:16], block[32:36]

    def encrypted(self, kind: int, content: bytes) -> bytes:
        """Its second encrypted record; the first one was Finished."""
        number, nonce = struct.pack(">Q", 1), b"\xff" * 8
        head = number + bytes([kind]) + struct.pack(">HH", 0x0303, len(content))
        return record(kind, nonce + AESGCM(self._key).encrypt(self._iv + nonce, content, head))


async def renegotiated(node: Secured, keys: Path) -> list[int]:
    """The kinds of records by which the server answers a client that wants to shake hands again."""
    client = ByHand(*await asyncio.open_connection(node.node.endpoint.host, node.node.endpoint.port), keys)
    await client.shake_hands()
    finished = client.tls.get_channel_binding("tls-unique")
    assert finished is not None and len(finished) == 12
    again = client_hello(0x0303, extension(0xFF01, counted(1, finished)), extension(23, b""))
    client.writer.write(client.encrypted(HANDSHAKE, again))
    client.writer.write_eof()
    kinds = []
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        async with asyncio.timeout(PATIENCE_S):
            while True:
                kinds.append((await read_record(client.reader))[0])
    client.writer.close()
    return kinds


def test_a_client_cannot_make_the_server_shake_hands_again(fake_node: Any, tmp_path: Path) -> None:
    async def scenario() -> None:
        node = Secured(fake_node, echo)
        kinds = await renegotiated(node, tmp_path / "keys")
        assert kinds and set(kinds) == {ALERT}
        # a server that would: so the bytes of this client are what they should be
        willing = server_context(settings(), "none")
        willing.options &= ~ssl.OP_NO_RENEGOTIATION
        willing.options |= 1 << 8  # SSL_OP_ALLOW_CLIENT_RENEGOTIATION, which Python does not name before 3.12
        node.door.context = willing
        assert HANDSHAKE in await renegotiated(node, tmp_path / "other keys")
        node.stop()

    run(scenario)


# -- certificates


class Caller:
    """Connects with a client's certificate, and continues the sessions that it has."""

    def __init__(self, endpoint: Any, pem: Path, version: str) -> None:
        self._endpoint = endpoint
        self._context = trusting(tls_versions=(version,))
        self._context.load_cert_chain(pem)
        self.session: ssl.SSLSession | None = None

    async def ask(self, request: bytes) -> bool:
        """Whether the session was continued. Raises ssl.SSLError, ConnectionError."""
        return await asyncio.to_thread(self._ask, request)

    def _ask(self, request: bytes) -> bool:
        with (
            socket.create_connection((self._endpoint.host, self._endpoint.port), timeout=30) as plain,
            self._context.wrap_socket(plain, server_hostname=HOST, session=self.session) as sock,
        ):
            sock.sendall(request)
            if not sock.recv(4):
                raise ConnectionError("closed instead of an answer")
            self.session = sock.session
            return bool(sock.session_reused)


def test_a_session_of_tls_1_2_ends_with_the_certificate_that_it_began_with(
    fake_node: Any, framed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that is continued shows no certificate again."""
    (tmp_path / "alice.pem").write_text(issued("alice", days=2))

    async def scenario() -> None:
        node = Secured(fake_node, echo, "required")
        alice = Caller(node.node.endpoint, tmp_path / "alice.pem", "TLSv1.2")
        await alice.ask(framed(1))
        assert await alice.ask(framed(1)), "or this test shows nothing"
        monkeypatch.setattr(tls_stream, "time", SimpleNamespace(time=lambda: time.time() + 3 * 86_400))
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await alice.ask(framed(1))
        assert "it has expired since the session began" in str(node.node.logged)
        node.stop()

    run(scenario)


def with_a_name_that_is_not_utf8() -> str:
    """A certificate that OpenSSL takes, and that Python cannot put into words."""
    loaded = [
        x509.load_pem_x509_certificate(pem[pem.index(ssl.PEM_HEADER) :].encode())
        for pem in (issued("mallory"), authority().certificate_pem)
    ]
    mallory, ours = loaded
    names = b"\x30\x04\x82\x02\xff\xfe"
    oid = ExtensionOID.SUBJECT_ALTERNATIVE_NAME
    builder = (
        x509.CertificateBuilder(ours.subject, mallory.subject, mallory.public_key(), x509.random_serial_number())
        .not_valid_before(mallory.not_valid_before_utc)
        .not_valid_after(mallory.not_valid_after_utc)
        .add_extension(x509.UnrecognizedExtension(oid, names), critical=False)
    )
    key: Any = load_pem_private_key(authority().key_pem.encode(), None)
    made = builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()
    return issued("mallory").partition(ssl.PEM_HEADER)[0] + made


def test_a_certificate_that_cannot_be_put_into_words_ends_no_node(fake_node: Any, framed: Any, tmp_path: Path) -> None:
    """An exception outside a connection ends the node, and a client may have chosen a name in its certificate."""
    (tmp_path / "mallory.pem").write_text(with_a_name_that_is_not_utf8())

    async def scenario() -> None:
        ended: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: ended.append(context))
        node = Secured(fake_node, echo, "required")
        mallory = Caller(node.node.endpoint, tmp_path / "mallory.pem", "TLSv1.2")
        assert [await mallory.ask(framed(1)) for _ in range(2)] == [False, True]
        assert not ended
        node.stop()

    run(scenario)


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_session_ends_with_the_trust_in_the_authority_of_its_client(
    fake_node: Any, framed: Any, tmp_path: Path, version: str
) -> None:
    """An authority that was withdrawn while its clients have sessions that they could continue."""
    (tmp_path / "alice.pem").write_text(issued("alice"))

    async def scenario() -> None:
        node = Secured(fake_node, echo, "required")
        alice = Caller(node.node.endpoint, tmp_path / "alice.pem", version)
        await alice.ask(framed(1))
        trust = store(authority("another authority").certificate_pem)
        node.door.context = server_context(settings(trust=trust), "required")
        served = len(node.node.clients[-1].frames)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await alice.ask(framed(1))
        assert (served, node.node.clients[-1].frames) == (1, [])
        node.stop()

    run(scenario)
