"""Frames within TLS, through real sockets on loopback, against clients of the standard library."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import ssl
import struct
from pathlib import Path
from typing import Any

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID
from local.authorities import authority, issued
from server.secured_nodes import HOST, Secured, correlation, echo, read_frame, run, settings, store, trusting

from heirlog.client.security import Security, SecurityError, Store, security_from_properties
from heirlog.env import Region
from heirlog.protocol.messages import ApiVersionsResponse
from heirlog.server import tls_stream
from heirlog.server.os_file import OsFile
from heirlog.server.tls_stream import HandshakeTurns
from heirlog.tls.contexts import client_context, server_context


def raw(*parts: Any) -> Any:
    def answer(client: Any, header: Any, frame: memoryview) -> None:
        size = sum(part.size if isinstance(part, Region) else len(part) for part in parts)
        client.transport._stream.write([struct.pack(">ii", size + 4, header.correlation_id), *parts])

    return answer


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_requests_are_answered_in_their_order_also_far_beyond_one_turn(
    fake_node: Any, framed: Any, version: str
) -> None:
    async def scenario() -> None:
        node = Secured(fake_node, echo)
        reader, writer = await node.connect(trusting(tls_versions=(version,)))
        assert writer.get_extra_info("ssl_object").version() == version
        count = 3000
        writer.write(b"".join(framed(n) for n in range(count)))
        assert [correlation(await read_frame(reader)) for _ in range(count)] == list(range(count))
        node.stop()

    run(scenario)


def test_frames_of_every_size_arrive_whole(fake_node: Any, framed: Any) -> None:
    """Around the sizes of a record, of the staging buffer and of the pieces in which large frames are read."""

    async def scenario() -> None:
        node = Secured(fake_node, echo)
        reader, writer = await node.connect()
        chance = random.Random(5)
        sizes = [0, 1, 16_370, 16_384, 16_400, 65_520, 65_536, 262_143, 262_160, 3_000_000]
        sizes += [chance.randrange(200_000) for _ in range(40)]
        for number, size in enumerate(sizes):
            writer.write(framed(number, size))
        assert [correlation(await read_frame(reader)) for _ in sizes] == list(range(len(sizes)))
        (client,) = node.node.clients
        assert [len(frame) for frame in client.frames] == [size + 10 for size in sizes]
        node.stop()

    run(scenario)


def test_what_comes_byte_by_byte_is_one_frame(fake_node: Any, framed: Any) -> None:
    async def scenario() -> None:
        node = Secured(fake_node, echo)
        reader, writer = await node.connect()
        for byte in framed(1, 40):
            writer.write(bytes([byte]))  # a record each
            await writer.drain()
        assert correlation(await read_frame(reader)) == 1
        node.stop()

    run(scenario)


def test_a_large_frame_of_small_records_does_not_wake_the_loop_for_each(
    fake_node: Any, framed: Any, eventually: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = 0
    take_in = tls_stream.TlsStream._take_in

    def counted(stream: tls_stream.TlsStream) -> str | None:
        nonlocal reads
        reads += 1
        return take_in(stream)

    async def scenario() -> None:
        nonlocal reads
        monkeypatch.setattr(tls_stream, "LOW_WATER_S", 3600.0)
        node = Secured(fake_node, echo)
        reader, writer = await node.connect()
        writer.write(framed(0, 50_000))  # it sends data, and not only records
        assert correlation(await read_frame(reader)) == 0
        monkeypatch.setattr(tls_stream.TlsStream, "_take_in", counted)
        records = 0
        sizes = [*range(16_000, 60_000, 4_001), 200_000, 1_000_000]
        for number, size in enumerate(sizes, 1):
            frame = framed(number, size)
            for at in range(0, len(frame), 900):
                writer.write(frame[at : at + 900])
                records += 1
                await asyncio.sleep(0)  # the node's turn
            assert correlation(await read_frame(reader)) == number
        assert reads < records / 3
        (client,) = node.node.clients
        stream = client.transport._stream
        assert stream._low_water == 1

        writer.write(framed(99, 100_000)[:60_000])
        await eventually(lambda: stream._low_water > 1)
        timer = stream._low_water_end
        writer.transport.abort()
        await eventually(lambda: client.closed_times == 1)
        assert timer.cancelled()
        node.stop()

    run(scenario)


def test_a_peer_that_sends_little_of_a_large_frame_is_read_soon(
    fake_node: Any, framed: Any, eventually: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        monkeypatch.setattr(tls_stream, "LOW_WATER_S", 3600.0)
        node = Secured(fake_node, echo)
        reader, writer = await node.connect()
        writer.write(framed(0, 50_000))
        assert correlation(await read_frame(reader)) == 0
        stream = node.node.clients[0].transport._stream
        writer.write(framed(1, 100_000)[:60_000])
        await eventually(lambda: stream._low_water > 1)
        for _ in range(3):
            stream._end_low_water()
            before = stream.last_active
            writer.write(bytes(100))
            await eventually(lambda before=before: stream.last_active > before)
        assert stream._low_water > 1, "again, until the next end"
        monkeypatch.setattr(tls_stream, "LOW_WATER_S", 0.01)
        stream._end_low_water()
        writer.write(bytes(100))
        # within TLS, before the connection ends: asyncio waits for the answer
        writer.close()
        await writer.wait_closed()
        node.stop()

    run(scenario)


def test_files_are_read_and_encrypted_and_never_sent_as_they_are(
    fake_node: Any, framed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> int:
        raise AssertionError("clear text on a TLS socket")

    monkeypatch.setattr(os, "sendfile", refuse)
    content = random.Random(1).randbytes(5_000_000)
    (tmp_path / "log").write_bytes(content)

    async def scenario() -> None:
        file = OsFile(str(tmp_path / "log"), os.open(tmp_path / "log", os.O_RDWR))
        small, large = Region(file, 7, 90_000), Region(file, 100, 4_500_000)
        node = Secured(fake_node, raw(b"before", small, b"between", large, b"after"))
        reader, writer = await node.connect()
        writer.write(framed(1) + framed(2))
        expected = b"before" + content[7:90_007] + b"between" + content[100:4_500_100] + b"after"
        for number in (1, 2):
            frame = await read_frame(reader)
            assert correlation(frame) == number and frame[4:] == expected
        node.stop()

    run(scenario)


def test_a_reader_that_stops_holds_up_itself_and_no_memory(fake_node: Any, framed: Any, eventually: Any) -> None:
    async def scenario() -> None:
        answer = bytes(300_000)
        node = Secured(fake_node, raw(answer))
        reader, writer = await node.connect()
        other_reader, other_writer = await node.connect()
        writer.transport.pause_reading()
        writer.write(b"".join(framed(n) for n in range(200)))
        slow = node.node.clients[0]
        await eventually(lambda: slow.transport._stream._throttled)
        count = len(slow.frames)
        assert count < 60
        assert slow.transport._stream.queued_bytes < 3_000_000
        other_writer.write(framed(7))
        assert correlation(await read_frame(other_reader)) == 7
        writer.transport.resume_reading()
        assert [correlation(await read_frame(reader)) for _ in range(200)] == list(range(200))
        node.stop()

    run(scenario)


@pytest.mark.parametrize("name", ["client.jks", "java.p12", "client.p12"])
def test_the_key_stores_of_java_serve(fake_node: Any, framed: Any, name: str) -> None:
    folder = Path(__file__).parent.parent / "blocking" / "certificates"

    async def scenario() -> None:
        key = Store("JKS", str(folder / name), password="store-password")
        node = Secured(fake_node, echo, key=key)
        context = client_context(Security("SSL", trust=Store("PEM", str(folder / "ca.pem")), check_host_name=False))
        reader, writer = await node.connect(context)
        writer.write(framed(1))
        assert correlation(await read_frame(reader)) == 1
        node.stop()

    run(scenario)


def test_comments_of_a_trust_store_may_be_in_any_language(tmp_path: Path) -> None:
    text = f"# Zertifizierungsstelle für Prüfungen\n{authority().certificate_pem}"
    path = tmp_path / "trust.pem"
    path.write_text(text, encoding="utf-8")
    for trust in (store(text), Store("PEM", str(path))):
        assert client_context(Security(protocol="SSL", trust=trust)).get_ca_certs()


@pytest.mark.parametrize(
    ("settings_", "more", "sentence"),
    [
        ({"key": None}, {}, "needs a certificate and its private key"),
        ({"trust": None}, {"client_auth": "required"}, "ssl.client.auth=required needs the certificates"),
        ({"key": store("nonsense")}, {}, "no private key with its certificate"),
        ({"trust": store("nonsense")}, {}, "no certificate in it"),
        ({}, {"cipher_suites": ["TLS_NO_SUCH"]}, "TLS_NO_SUCH is not a cipher suite"),
        (
            {"tls_versions": ("TLSv1.3",)},
            {"cipher_suites": ["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"]},
            "no cipher suite of the versions",
        ),
    ],
)
def test_settings_that_cannot_serve_are_refused(settings_: dict[str, Any], more: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SecurityError, match=sentence):
        server_context(settings(**settings_), **({"client_auth": "none"} | more))


@pytest.mark.parametrize(
    ("suites", "chosen"),
    [
        (["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"], "ECDHE-ECDSA-AES128-GCM-SHA256"),
        (["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"], "ECDHE-ECDSA-CHACHA20-POLY1305"),
        (["TLS_AES_256_GCM_SHA384"], "TLS_AES_256_GCM_SHA384"),
    ],
)
def test_cipher_suites_have_their_standard_names(fake_node: Any, suites: list[str], chosen: str) -> None:
    async def scenario() -> None:
        node = Secured(fake_node, echo)
        node.door.context = server_context(settings(), "none", suites)
        _, writer = await node.connect()
        assert writer.get_extra_info("cipher")[0] == chosen
        node.stop()

    run(scenario)


def test_each_certificate_of_a_trust_store_is_trusted_also_one_that_signs_nothing(fake_node: Any, framed: Any) -> None:
    """As in Java, where clients are often given the certificate of the server itself."""

    async def scenario() -> None:
        node = Secured(fake_node, echo)
        pinned = issued("node", HOST).partition("-----END PRIVATE KEY-----\n")[2]
        reader, writer = await node.connect(client_context(Security(protocol="SSL", trust=store(pinned))))
        writer.write(framed(1))
        assert correlation(await read_frame(reader)) == 1
        other = issued("another node", HOST).partition("-----END PRIVATE KEY-----\n")[2]
        with pytest.raises(ssl.SSLCertVerificationError):
            await node.connect(client_context(Security(protocol="SSL", trust=store(other))))
        node.stop()

    run(scenario)


def test_a_client_offers_only_the_cipher_suites_that_it_is_given(fake_node: Any) -> None:
    async def scenario() -> None:
        node = Secured(fake_node, echo)
        suites = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
        trust = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authority().certificate_pem}
        of_client = {"security.protocol": "SSL", "ssl.cipher.suites": suites, **trust}
        _, writer = await node.connect(client_context(security_from_properties(of_client)))
        assert writer.get_extra_info("cipher")[0] == "ECDHE-ECDSA-AES128-GCM-SHA256"
        node.stop()

    run(scenario)


def test_a_client_that_may_show_a_certificate_is_known_by_it(fake_node: Any, framed: Any) -> None:
    async def scenario() -> None:
        node = Secured(fake_node, echo, "requested")
        for key in (None, store(issued("alice"))):
            reader, writer = await node.connect(trusting(key=key))
            writer.write(framed(1))
            await read_frame(reader)
            client = node.node.clients[-1]
            assert (client.certificate is None) == (key is None)
            writer.close()
        node.stop()

    run(scenario)


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_certificate_longer_than_what_is_read_of_a_stranger_lets_in(
    fake_node: Any, framed: Any, version: str
) -> None:
    async def scenario() -> None:
        node = Secured(fake_node, echo, "required")
        key = store(issued("alice", *(f"host-{number}.example.org" for number in range(1000))))
        reader, writer = await node.connect(trusting(key=key, tls_versions=(version,)))
        writer.write(framed(1, 100_000))
        assert correlation(await read_frame(reader)) == 1
        certificate = node.node.clients[0].certificate
        assert certificate is not None and len(certificate) > 3 * tls_stream.UNPROVEN_READ
        node.stop()

    run(scenario)


@pytest.mark.parametrize(
    "key",
    [
        None,
        store(issued("alice", by="another authority")),
        store(issued("alice", days=-1)),
        store(authority().issue("alice", purposes=[ExtendedKeyUsageOID.SERVER_AUTH])),
    ],
    ids=["none", "of another authority", "expired", "for servers only"],
)
def test_a_client_without_the_required_certificate_is_closed_unheard(
    fake_node: Any, framed: Any, eventually: Any, key: Store | None
) -> None:
    async def scenario() -> None:
        node = Secured(fake_node, echo, "required")
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            # in TLS 1.3 a client learns it with its first read
            reader, writer = await node.connect(trusting(key=key))
            writer.write(framed(1))
            await read_frame(reader)
        await eventually(lambda: not node.node.server.connection_count)
        assert node.node.clients[0].frames == []
        assert "authentication-failed" in node.node.events("info")
        node.stop()

    run(scenario)


@pytest.mark.parametrize(
    "said",
    [b"\0\0\0\x10\0\x12\0\0\0\0\0\1\xff\xff", b"GET / HTTP/1.0\r\n\r\n", b"\x16\x03\x01\xff\xff" + bytes(70_000)],
    ids=["Kafka", "HTTP", "nonsense"],
)
def test_what_is_not_tls_is_closed(fake_node: Any, eventually: Any, said: bytes) -> None:
    async def scenario() -> None:
        node = Secured(fake_node, echo)
        reader, writer = await asyncio.open_connection(node.node.endpoint.host, node.node.endpoint.port)
        writer.write(said)
        try:
            await reader.read()
        except ConnectionError:
            pass
        await eventually(lambda: not node.node.server.connection_count)
        assert node.node.clients[0].frames == []
        node.stop()

    run(scenario)


def test_tls_at_a_listener_without_it_is_named_in_the_log(fake_node: Any, eventually: Any) -> None:
    async def scenario() -> None:
        node = fake_node(echo)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection(node.endpoint.host, node.endpoint.port, ssl=trusting())
        await eventually(lambda: node.events("warning") == ["frame-refused"])
        assert "looks like TLS" in str(node.logged[-1])
        node.server.stop()

    run(scenario)


def test_a_handshake_that_takes_too_long_is_ended_although_bytes_come(fake_node: Any, eventually: Any) -> None:
    async def scenario() -> None:
        node = Secured(fake_node, echo, timeout_s=0.2)
        _, writer = await asyncio.open_connection(node.node.endpoint.host, node.node.endpoint.port)
        writer.write(b"\x16\x03\x01\x02\x00")
        while node.node.server.connection_count or not node.node.clients:
            try:
                writer.write(b"\1")
            except ConnectionError:
                break
            await asyncio.sleep(0.01)
        await eventually(lambda: node.node.clients[0].closed_times == 1)
        node.stop()

    run(scenario)


def test_a_probe_of_the_port_is_no_failure(fake_node: Any, eventually: Any) -> None:
    async def scenario() -> None:
        node = Secured(fake_node, echo)
        for said in (b"", b"\x16\x03"):
            _, writer = await asyncio.open_connection(node.node.endpoint.host, node.node.endpoint.port)
            writer.write(said)
            writer.close()
        await eventually(lambda: len(node.node.clients) == 2 and not node.node.server.connection_count)
        assert "authentication-failed" not in node.node.events("info")
        node.stop()

    run(scenario)


def test_many_handshakes_leave_time_for_others(fake_node: Any, framed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a crowd connects, no turn of the loop serves more than a few of them."""
    steps: list[int] = []
    serve = HandshakeTurns._serve

    def counted(turns: HandshakeTurns) -> None:
        before = len(turns._waiting)
        serve(turns)
        steps.append(before - len(turns._waiting))

    monkeypatch.setattr(HandshakeTurns, "_serve", counted)

    async def scenario() -> None:
        node = Secured(fake_node, echo)
        crowd = await asyncio.gather(*(node.connect() for _ in range(30)))
        for reader, writer in crowd:
            writer.write(framed(1))
            assert correlation(await read_frame(reader)) == 1
        assert sum(steps) >= 60 and max(steps) <= tls_stream.HANDSHAKES_PER_TURN
        node.stop()

    run(scenario)


def test_a_context_that_is_replaced_counts_for_new_connections(fake_node: Any, framed: Any) -> None:
    async def scenario() -> None:
        node = Secured(fake_node, echo)
        old_reader, old_writer = await node.connect()
        node.door.context = server_context(settings("renewed"), "none")
        reader, writer = await node.connect()
        assert ("commonName", "renewed") in writer.get_extra_info("peercert")["subject"][0]
        for one, other in ((old_reader, old_writer), (reader, writer)):
            other.write(framed(3))
            assert correlation(await read_frame(one)) == 3
        node.stop()

    run(scenario)


def test_the_end_is_said_within_tls(fake_node: Any, framed: Any) -> None:
    """close_notify: without it a client could not tell the end from a cut line."""

    def scenario_of(client: Any, header: Any, frame: memoryview) -> None:
        client.transport.send(header, ApiVersionsResponse())
        client.transport.close()

    async def scenario() -> None:
        node = Secured(fake_node, scenario_of)

        def talk() -> bytes:
            with socket.create_connection((HOST, node.node.endpoint.port)) as sock:
                context = trusting()
                with context.wrap_socket(sock, server_hostname=HOST, suppress_ragged_eofs=False) as tls:
                    tls.sendall(framed(1))
                    said = b""
                    while more := tls.recv(65536):
                        said += more
                    return said

        assert correlation((await asyncio.to_thread(talk))[4:]) == 1
        node.stop()

    run(scenario)
