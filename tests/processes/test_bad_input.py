"""What strangers send to a real broker: malformed frames by the hundred thousand, crowds that say nothing, clients that
never read. Others are served meanwhile, nothing is appended, memory stays level, and the log says it once.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count

import psutil
import pytest
from patience import eventually
from processes.observing import client_of, create

from heirlog.protocol.batch import encode_batch
from heirlog.protocol.checksum import crc32c
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.frames import RequestHeader, decode_response, encode_request
from heirlog.protocol.messages import (
    ApiVersionsRequest,
    FetchRequest,
    ListOffsetsRequest,
    MetadataRequest,
    ProduceRequest,
)
from heirlog.protocol.primitives import Message
from heirlog.testing.cluster import Cluster

MB = 1024 * 1024
FRAME_LIMIT = 2 * MB
CONNECTIONS_PER_IP = 1500
PRODUCE, FETCH, METADATA, API_VERSIONS = 0, 1, 3, 18
FEW, MANY = 1_000, int(os.environ.get("HEIRLOG_MALFORMED_FRAMES", "20000"))
"""The second is 100,000 in CI (`.ci/run`)."""
PIPELINED = 500
NUMBERS = count()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    config = {
        "socket.request.max.bytes": FRAME_LIMIT,
        "max.connections.per.ip": CONNECTIONS_PER_IP,
        # a thousand connections are opened before the first of them has been quiet for so long
        "connections.max.idle.ms": 10_000,
        "offsets.topic.replication.factor": 1,
        "auto.create.topics.enable": False,
    }
    with Cluster(nodes=1, config=config, combined=True, ledger=False) as cluster:
        yield cluster


@pytest.fixture
def topic(cluster: Cluster) -> str:
    name = f"t{next(NUMBERS)}"
    create(cluster, name, [1])
    return name


def connect(cluster: Cluster, timeout_s: float = 60.0) -> socket.socket:
    host, port = cluster.bootstrap_servers.split(":")
    return socket.create_connection((host, int(port)), timeout_s)


def frame(request: Message, version: int, correlation_id: int = 1) -> bytes:
    header = RequestHeader(request.API_KEY, version, correlation_id, "stranger")
    return b"".join(bytes(part) for part in encode_request(header, request))  # type: ignore[arg-type]


def produce(topic: str, records: bytes, acks: int = 1) -> bytes:
    data = ProduceRequest.PartitionProduceData(index=0, records=records)
    topics = [ProduceRequest.TopicProduceData(name=topic, partition_data=[data])]
    return frame(ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics), 9)


def receive_exactly(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = sock.recv(min(size - len(data), MB))
        if not piece:
            raise ConnectionResetError("closed by the broker")
        data += piece
    return bytes(data)


def receive(sock: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", receive_exactly(sock, 4))
    return receive_exactly(sock, size)


def receive_many(sock: socket.socket, count: int) -> list[bytes]:
    """As `receive`, many times, in few calls."""
    data, found = bytearray(), []
    while len(found) < count:
        data += sock.recv(MB)
        at = 0
        while len(data) - at >= 4 and len(data) - at - 4 >= (size := int.from_bytes(data[at : at + 4], "big")):
            found.append(bytes(data[at + 4 : at + 4 + size]))
            at += 4 + size
        del data[:at]
    return found


def is_closed(sock: socket.socket) -> bool:
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


@contextmanager
def somebody_else(cluster: Cluster, slowest_s: float = 10.0) -> Iterator[Callable[[], None]]:
    """A client with a connection of its own; each call asks for metadata, and it must be answered soon."""
    with connect(cluster) as sock:

        def ask() -> None:
            started = time.monotonic()
            sock.sendall(frame(MetadataRequest(topics=[]), 9))
            receive(sock)
            assert time.monotonic() - started < slowest_s, "others wait"

        ask()
        yield ask


def end_offset(cluster: Cluster, topic: str) -> int:
    partition = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[partition])]
    )
    with client_of(cluster) as client:
        answer = client.send_to_leader(topic, 0, request).topics[0].partitions[0]
    assert answer.error_code == 0
    return int(answer.offset)


def resident_mb(cluster: Cluster) -> float:
    return float(psutil.Process(cluster.pids[1]).memory_info().rss) / MB


def received(cluster: Cluster) -> Counter[str]:
    """Events of the broker's log, by name."""
    events = Counter()
    for line in cluster.output(1).splitlines():
        if line.startswith("{"):
            events[str(json.loads(line).get("event"))] += 1
    return events


def altered(at: int, data: bytes) -> bytes:
    """A batch with other bytes there, and its CRC made right again."""
    batch = bytearray(encode_batch([(b"k", b"v" * 20, (), 1_700_000_000_000)] * 3))
    batch[at : at + len(data)] = data
    struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[21:]))
    return bytes(batch)


def answered(topic: str) -> dict[bytes, int]:
    """Malformed requests that keep their connection: the frame and the error it gets."""
    whole = bytes(encode_batch([(b"k", b"v" * 20, (), 1_700_000_000_000)] * 3))
    wrong_crc = bytearray(whole)
    wrong_crc[-1] ^= 1
    batches = {
        bytes(wrong_crc): ErrorCode.CORRUPT_MESSAGE,
        whole[:-5]: ErrorCode.INVALID_RECORD,
        whole[:30]: ErrorCode.CORRUPT_MESSAGE,
        altered(8, struct.pack(">i", 5)): ErrorCode.CORRUPT_MESSAGE,
        altered(8, struct.pack(">i", 2**31 - 1)): ErrorCode.INVALID_RECORD,
        altered(8, struct.pack(">i", -1)): ErrorCode.CORRUPT_MESSAGE,
        altered(57, struct.pack(">i", 7)): ErrorCode.INVALID_RECORD,
        altered(57, struct.pack(">i", -1)): ErrorCode.INVALID_RECORD,
        altered(23, struct.pack(">i", 2**31 - 1)): ErrorCode.INVALID_RECORD,
        altered(0, struct.pack(">q", 77)): ErrorCode.INVALID_RECORD,
        altered(16, b"\x01"): ErrorCode.INVALID_RECORD,
        altered(21, b"\x00\x20"): ErrorCode.INVALID_RECORD,
        altered(21, b"\x00\x07"): ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        whole + whole: ErrorCode.INVALID_RECORD,
        b"": ErrorCode.INVALID_RECORD,
    }
    return {produce(topic, batch): code for batch, code in batches.items()}


def closing() -> list[bytes]:
    """Malformed requests that close their connection."""

    def framed(body: bytes) -> bytes:
        return struct.pack(">i", len(body)) + body

    def header(key: int, version: int) -> bytes:
        return struct.pack(">hhihb", key, version, 1, -1, 0)

    return [
        b"\xff\xff\xff\xff",
        struct.pack(">i", FRAME_LIMIT + 1) + b"GET / HTTP/1.1",
        framed(b"\x00"),
        framed(bytes(range(256)) * 8),
        framed(header(999, 0)),
        framed(header(METADATA, 99)),
        framed(header(METADATA, 12) + b"\xff\xff\xff\xff\x0f" * 3),
        framed(struct.pack(">hhihi", METADATA, 1, 1, -1, 2**31 - 1)),
        framed(header(METADATA, 12) + b"\xff" * 20),
        frame(MetadataRequest(), 12)[:4] + frame(MetadataRequest(), 12)[4:-1] + b"\xff",
        produce("t", b"x", acks=0)[:-6] + b"\xff\xff\xff\xff\x07\x00",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(200)),
    ]


class Attacker:
    """Sends malformed frames until there are as many as it is asked for, and checks every answer."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster = cluster
        self._answered = answered(topic)
        self._closing = closing()
        self.sent = 0

    def send_until(self, count: int, in_between: Callable[[], None]) -> None:
        kinds = list(self._answered)
        pipelined = [kinds[number % len(kinds)] for number in range(PIPELINED)]
        blob = b"".join(pipelined)
        while self.sent < count:
            with connect(self._cluster) as sock:
                for _ in range(10):
                    sock.sendall(blob)
                    answers = receive_many(sock, PIPELINED)
                    if self.sent < FEW:
                        for sent, answer in zip(pipelined, answers, strict=True):
                            self._check(sent, answer)
                    self.sent += PIPELINED
                sock.sendall(self._closing[self.sent // PIPELINED % len(self._closing)])
                assert is_closed(sock)
            for kind in self._closing:
                with connect(self._cluster) as sock:
                    sock.sendall(kind)
                    assert is_closed(sock), kind
            self.sent += len(self._closing) + 1
            in_between()

    def _check(self, sent: bytes, answer: bytes) -> None:
        _, response = decode_response(PRODUCE, 9, answer)
        code = response.responses[0].partition_responses[0].error_code  # type: ignore[attr-defined]
        assert code == self._answered[sent], sent


def test_malformed_frames_without_number_leave_no_trace_but_a_few_log_lines(cluster: Cluster, topic: str) -> None:
    attacker = Attacker(cluster, topic)
    before, started = received(cluster), time.monotonic()
    with somebody_else(cluster) as other:
        attacker.send_until(FEW, other)
        after_few = resident_mb(cluster)
        attacker.send_until(MANY, other)
        after_many = resident_mb(cluster)
    assert after_many < 1.1 * after_few, (after_few, after_many)
    assert end_offset(cluster, topic) == 0
    new = received(cluster) - before
    assert set(new) <= {"frame-refused"}, new
    # one line in ten seconds from the node, one from its sockets
    assert 1 <= new["frame-refused"] <= 2 * (2 + (time.monotonic() - started) / 10), new


def test_a_thousand_idle_and_half_open_connections_cost_little_and_are_closed_in_time(cluster: Cluster) -> None:
    before = resident_mb(cluster)
    with ExitStack() as crowd, somebody_else(cluster) as other:
        sockets = []
        for number in range(1000):
            sock = crowd.enter_context(connect(cluster))
            if number % 2:
                sock.sendall(struct.pack(">i", FRAME_LIMIT) + b"\x00\x03")
            sockets.append(sock)
            if number % 100 == 0:
                other()
        with somebody_else(cluster):
            pass  # who comes last is served: all the others have been accepted
        assert resident_mb(cluster) - before < 120
        other()
        for sock in sockets:
            assert is_closed(sock)  # connections.max.idle.ms
    with somebody_else(cluster):
        pass


def test_more_connections_than_one_address_may_have_are_closed_at_once(cluster: Cluster) -> None:
    with ExitStack() as crowd:
        sockets = [crowd.enter_context(connect(cluster)) for _ in range(CONNECTIONS_PER_IP)]
        refused = crowd.enter_context(connect(cluster))
        assert is_closed(refused)
        sockets[-1].close()
    eventually(lambda: is_served(cluster), "the closed connections to be forgotten")


def is_served(cluster: Cluster) -> bool:
    try:
        with somebody_else(cluster):
            return True
    except ConnectionError:
        return False


def test_a_client_that_never_reads_holds_up_itself_only(cluster: Cluster, topic: str) -> None:
    batch = bytes(encode_batch([(b"k", bytes(900_000), (), 1_700_000_000_000)]))
    with connect(cluster) as sock:
        for _ in range(5):
            sock.sendall(produce(topic, batch))
            receive(sock)
    partition = FetchRequest.FetchPartition(partition=0, partition_max_bytes=50 * MB)
    fetch = frame(
        FetchRequest(
            max_wait_ms=100, max_bytes=50 * MB, topics=[FetchRequest.FetchTopic(topic=topic, partitions=[partition])]
        ),
        11,
    )
    describe = frame(ApiVersionsRequest(client_software_name="s", client_software_version="1"), 3)
    before = resident_mb(cluster)
    with somebody_else(cluster) as other:
        for flood in (fetch, describe):
            with connect(cluster) as sock:
                sock.settimeout(0.5)
                blob = flood * 1000
                with pytest.raises(TimeoutError):
                    while True:
                        sock.sendall(blob)
                other()
                assert resident_mb(cluster) - before < 40
        other()


def test_a_client_faster_than_the_broker_waits_in_its_own_socket(cluster: Cluster) -> None:
    """Every append asks for a flush: with acks=0 nothing but the broker's own bounds holds the client back."""
    name = f"t{next(NUMBERS)}"
    create(cluster, name, [1], config={"flush.messages": "1"})
    one = produce(name, bytes(encode_batch([(b"k", bytes(50_000), (), int(time.time() * 1000))])), acks=0)
    before = resident_mb(cluster)
    with somebody_else(cluster) as other, connect(cluster) as sock:
        for number in range(2000):
            sock.sendall(one)
            if number % 200 == 0:
                other()
    assert resident_mb(cluster) - before < 40
    eventually(lambda: end_offset(cluster, name) == 2000, "everything to be appended")
