"""The blocking client against a scripted server on loopback."""

from __future__ import annotations

import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from heirlog.blocking import LATEST, Client
from heirlog.blocking.connection import Connection
from heirlog.client.cluster import parse_bootstrap
from heirlog.client.errors import Unsupported
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.frames import RequestHeader, decode_request, encode_response, parse_header
from heirlog.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FetchRequest,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
)
from heirlog.protocol.primitives import Message
from heirlog.protocol.types import Endpoint

Answer = Callable[[RequestHeader, Message], Message | None]

RANGES = [
    ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=4),
    ApiVersionsResponse.ApiVersion(api_key=3, min_version=0, max_version=12),
    ApiVersionsResponse.ApiVersion(api_key=2, min_version=1, max_version=9),
]


class ScriptedServer:
    """Answers ApiVersions by itself up to `newest`; everything else is the script's. None: close the connection."""

    def __init__(self, answer: Answer, newest: int = 4) -> None:
        self._answer = answer
        self._newest = newest
        self.headers: list[RequestHeader] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.endpoint = Endpoint("127.0.0.1", self._listening.getsockname()[1])
        self.address = str(self.endpoint)
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(30)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        with sock, sock.makefile("rb") as stream:
            while head := stream.read(4):
                frame = memoryview(stream.read(*struct.unpack(">i", head)))
                header, position = parse_header(frame)
                self.headers.append(header)
                version, response = header.api_version, self._response(header, frame, position)
                if response is None:
                    return
                if header.api_key == 18 and version > self._newest:
                    version = 0
                parts = encode_response(header.api_key, version, header.correlation_id, response)
                sock.sendall(b"".join(part for part in parts if isinstance(part, bytes)))

    def _response(self, header: RequestHeader, frame: memoryview, position: int) -> Message | None:
        if header.api_key != 18:
            return self._answer(header, decode_request(header, frame, position))
        ranges = [ApiVersionsResponse.ApiVersion(api_key=18, max_version=self._newest), *RANGES[1:]]
        code = 0 if header.api_version <= self._newest else ErrorCode.UNSUPPORTED_VERSION
        return ApiVersionsResponse(error_code=code, api_keys=ranges)


@contextmanager
def scripted(answer: Answer, newest: int = 4) -> Iterator[ScriptedServer]:
    server = ScriptedServer(answer, newest)
    try:
        yield server
    finally:
        server.stop()


def no_topics(header: RequestHeader, message: Message) -> Message:
    return MetadataResponse(cluster_id="c")


def test_the_newest_common_version_is_spoken() -> None:
    with scripted(no_topics) as server, Connection(server.endpoint.host, server.endpoint.port) as connection:
        assert connection.request(MetadataRequest()).cluster_id == "c"
        assert [(header.api_key, header.api_version) for header in server.headers] == [(18, 4), (3, 12)]


def test_an_older_server_is_asked_again_in_its_own_version() -> None:
    with scripted(no_topics, newest=1) as server, Connection(server.endpoint.host, server.endpoint.port) as connection:
        assert connection.request(MetadataRequest()).cluster_id == "c"
        assert [header.api_version for header in server.headers] == [4, 1, 12]


def test_an_api_that_the_server_lacks_is_refused_without_asking() -> None:
    with scripted(no_topics) as server, Connection(server.endpoint.host, server.endpoint.port) as connection:
        with pytest.raises(Unsupported, match="FetchRequest"):
            connection.request(FetchRequest())
        assert connection.request(MetadataRequest()).cluster_id == "c"


def test_a_late_answer_breaks_the_connection() -> None:
    release = threading.Event()

    def late(header: RequestHeader, message: Message) -> Message:
        release.wait(30)
        return MetadataResponse()

    with scripted(late) as server, Connection(server.endpoint.host, server.endpoint.port) as connection:
        with pytest.raises(TimeoutError):
            connection.request(MetadataRequest(), timeout_s=0.05)
        release.set()
        with pytest.raises(ConnectionError, match="is over"):
            connection.request(MetadataRequest())


def test_a_refused_connection_says_to_whom() -> None:
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    port = sock.getsockname()[1]
    with pytest.raises(ConnectionError, match=f"127.0.0.1:{port}"):
        Connection("127.0.0.1", port)
    sock.close()


def test_bootstrap_servers_are_read_from_text_or_a_sequence() -> None:
    expected = [Endpoint("a", 1), Endpoint("::1", 2)]
    assert parse_bootstrap("a:1, [::1]:2") == expected
    assert parse_bootstrap(["a:1", "[::1]:2"]) == expected
    with pytest.raises(ValueError, match="'a'"):
        parse_bootstrap("a")


def test_a_dead_bootstrap_server_is_passed_over() -> None:
    with scripted(no_topics) as server, Client(f"127.0.0.1:1,{server.address}", timeout_s=30) as client:
        assert client.metadata().cluster_id == "c"


def test_a_server_that_closes_instead_of_answering_is_asked_again() -> None:
    def close_once(header: RequestHeader, message: Message) -> Message | None:
        return None if len(server.headers) == 2 else MetadataResponse()

    with scripted(close_once) as server, Client(server.address, timeout_s=30) as client:
        client.metadata()
        assert [header.api_key for header in server.headers] == [18, 3, 18, 3]


def test_a_connection_that_the_server_closed_in_between_is_noticed_before_it_is_used() -> None:
    def answer_then_close(header: RequestHeader, message: Message) -> Message | None:
        return None if isinstance(message, ListOffsetsRequest) else MetadataResponse()

    with scripted(answer_then_close) as server, Connection(server.endpoint.host, server.endpoint.port) as connection:
        assert not connection.stale()
        connection.send(ListOffsetsRequest(replica_id=-1))
        select.select([connection._sock], [], [], 30)
        assert connection.stale()


def test_the_leader_is_looked_up_again_when_it_has_moved() -> None:
    def old_leader(header: RequestHeader, message: Message) -> Message:
        if isinstance(message, MetadataRequest):
            return described(new if asked else old)
        asked.append("old")
        return listed(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def new_leader(header: RequestHeader, message: Message) -> Message:
        if isinstance(message, MetadataRequest):
            return described(new)
        asked.append("new")
        return listed(0)

    def listed(code: int) -> Message:
        partition = ListOffsetsResponse.ListOffsetsPartitionResponse(error_code=code, offset=42)
        return ListOffsetsResponse(
            topics=[ListOffsetsResponse.ListOffsetsTopicResponse(name="t", partitions=[partition])]
        )

    def described(leader: ScriptedServer) -> Message:
        brokers = [
            MetadataResponse.MetadataResponseBroker(node_id=n, host=s.endpoint.host, port=s.endpoint.port)
            for n, s in enumerate([old, new])
        ]
        partition = MetadataResponse.MetadataResponsePartition(leader_id=[old, new].index(leader))
        topic = MetadataResponse.MetadataResponseTopic(name="t", partitions=[partition])
        return MetadataResponse(brokers=brokers, topics=[topic])

    asked: list[str] = []
    with scripted(old_leader) as old, scripted(new_leader) as new:
        with Client(old.address, timeout_s=30) as client:
            assert client.list_offsets({("t", 0): LATEST})["t", 0].offset == 42
        assert asked == ["old", "new"]


def test_a_topic_that_one_broker_has_not_read_of_is_known_to_another() -> None:
    def behind(header: RequestHeader, message: Message) -> Message:
        topics = [MetadataResponse.MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name="new")]
        return MetadataResponse(topics=topics)

    def up_to_date(header: RequestHeader, message: Message) -> Message:
        partition = MetadataResponse.MetadataResponsePartition(partition_index=0)
        return MetadataResponse(topics=[MetadataResponse.MetadataResponseTopic(name="new", partitions=[partition])])

    with scripted(behind) as one, scripted(up_to_date) as other:
        with Client(f"{one.address},{other.address}", timeout_s=30) as client:
            assert client.topics(["new"])["new"].partitions == [0]
        with Client(one.address, timeout_s=30) as client, pytest.raises(KafkaError, match="'new' does not exist"):
            client.topics(["new"])


def test_time_runs_out_with_the_last_failure() -> None:
    with Client("127.0.0.1:1", timeout_s=0.05) as client, pytest.raises(OSError, match=r"127\.0\.0\.1:1"):
        client.send_to_any(ApiVersionsRequest())


def test_a_listing_uses_the_common_version_of_its_api() -> None:
    def answer(header: RequestHeader, message: Message) -> Message:
        return ListOffsetsResponse()

    with scripted(answer) as server, Connection(server.endpoint.host, server.endpoint.port) as connection:
        assert connection.version_of(ListOffsetsRequest) == 9
