"""Names that unknown clients choose, as long and as many as they like: refused or bounded, gone after the request."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from fuzz.brain import Brain, Finding, Wire
from node.test_amplification import ask, wait_for_coordinator

from heirlog.broker.groups.coordinator import NAME_MAX_CHARACTERS
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.frames import RequestHeader, encode_request
from heirlog.protocol.messages import (
    ApiVersionsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    InitProducerIdRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)

STRING_MAX = 32_767
"""Of the strings of older versions, and of a client id."""
SESSION_MS = 6000
NAMES = 100
KEPT_MAX_BYTES = NAMES * STRING_MAX // 4


@pytest.fixture(scope="module")
def brain() -> Brain:
    brain = Brain()
    wait_for_coordinator(brain)
    return brain


def spoken(brain: Brain, request: Any, version: int, client_id: str = "stranger") -> Wire:
    """One request on a connection of its own, which is closed without waiting for the answer."""
    connection = brain.connect()
    header = RequestHeader(request.API_KEY, version, 1, client_id)
    brain.receive(connection, b"".join(encode_request(header, request))[4:])  # type: ignore[arg-type]
    brain.hang_up(connection)
    return connection


def name(number: int, size: int = STRING_MAX) -> str:
    return f"{number:06}".ljust(size, "x")


def kept_bytes(brain: Brain, requests: Iterable[Any], say: Callable[[Any], None]) -> int:
    """What is still there when everything has been said, and sessions have ended."""
    brain.world.logs.clear()
    gc.freeze()  # what is there already needs not be searched for garbage
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for request in requests:
            say(request)
        brain.world.run_for(SESSION_MS + 3000)
        brain.world.logs.clear()  # the simulator keeps the last lines whole; a server cuts and writes them
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
        gc.unfreeze()
        brain.check()


def groups_of(brain: Brain) -> dict[str, Any]:
    return {name: group for shard in brain.node.broker.groups.shards() for name, group in shard.groups.items()}


def join(group: str, **more: Any) -> JoinGroupRequest:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
    return JoinGroupRequest(
        group_id=group,
        **{
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": SESSION_MS,
            "protocol_type": "c",
            "protocols": [protocol],
        }
        | more,
    )


def commit(group: str, metadata: str) -> OffsetCommitRequest:
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata=metadata
    )
    topics = [OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[partition])]
    return OffsetCommitRequest(group_id=group, topics=topics)


Protocol = JoinGroupRequest.JoinGroupRequestProtocol
Assignment = SyncGroupRequest.SyncGroupRequestAssignment
Leaving = LeaveGroupRequest.MemberIdentity
ATTACKS: dict[str, tuple[int, Callable[[int], Any]]] = {
    "group ids of JoinGroup": (5, lambda n: join(name(n))),
    "group ids of JoinGroup that fit": (5, lambda n: join(name(n, NAME_MAX_CHARACTERS // 4))),
    "group ids of an old JoinGroup": (0, lambda n: join(name(n))),
    "instance ids": (5, lambda n: join("g", group_instance_id=name(n))),
    "protocol types": (5, lambda n: join("g", protocol_type=name(n))),
    "protocol names": (5, lambda n: join("g", protocols=[Protocol(name=name(n), metadata=b"")])),
    "member ids": (5, lambda n: join("g", member_id=name(n))),
    "subscriptions": (5, lambda n: join(f"s{n}", protocols=[Protocol(name="p", metadata=bytes(STRING_MAX))])),
    "an old member's subscriptions": (
        0,
        lambda n: join(f"o{n}", protocols=[Protocol(name="p", metadata=bytes(9 << 20 if n < 3 else 0))][: n < 3]),
    ),
    "Heartbeat": (4, lambda n: HeartbeatRequest(group_id=name(n), member_id=name(n), generation_id=1)),
    "SyncGroup": (
        3,
        lambda n: SyncGroupRequest(
            group_id=name(n),
            member_id=name(n),
            generation_id=1,
            assignments=[Assignment(member_id=name(n), assignment=bytes(STRING_MAX))],
        ),
    ),
    "LeaveGroup": (3, lambda n: LeaveGroupRequest(group_id=name(n), members=[Leaving(member_id=name(n))])),
    "OffsetFetch": (5, lambda n: OffsetFetchRequest(group_id=name(n), topics=None)),
    "OffsetCommit": (7, lambda n: commit(name(n), "")),
    "metadata of OffsetCommit": (7, lambda n: commit(f"m{n}", name(n))),
    "coordinators of groups": (3, lambda n: FindCoordinatorRequest(key=name(n), key_type=0)),
    "coordinators of transactions": (3, lambda n: FindCoordinatorRequest(key=name(n), key_type=1)),
    "transactional ids": (4, lambda n: InitProducerIdRequest(transactional_id=name(n), transaction_timeout_ms=1000)),
    "topics": (4, lambda n: MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name(n))])),
    "software": (
        3,
        lambda n: ApiVersionsRequest(client_software_name=name(n), client_software_version=name(n)),
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_is_kept_of_a_name_when_the_request_is_over(brain: Brain, attack: str) -> None:
    version, make = ATTACKS[attack]
    before = set(groups_of(brain))
    spoken(brain, make(0), version)  # what is made once, on the way, is not the attacker's
    requests = (make(number) for number in range(1, NAMES))
    kept = kept_bytes(brain, requests, lambda request: spoken(brain, request, version, name(0)))
    assert kept < KEPT_MAX_BYTES
    assert set(groups_of(brain)) <= before | {"g"}
    assert not brain.node._forwarder._under_way


@pytest.mark.parametrize("version", [3, 4, 5, 9])
def test_a_client_id_of_any_length_joins_and_is_served(brain: Brain, version: int) -> None:
    connection = brain.connect()
    header = RequestHeader(JoinGroupRequest.API_KEY, version, 1, "x" * STRING_MAX)
    brain.receive(connection, b"".join(encode_request(header, join("long")))[4:])  # type: ignore[arg-type]
    brain.world.run_for(20_000)
    assert len(connection.answers) == 1
    assert not connection.closed
    brain.check()


def test_metadata_over_offset_metadata_max_bytes_writes_nothing(brain: Brain) -> None:
    (log,) = [partition.log for partition in offsets_partitions(brain, "fresh")]
    end = log.log_end_offset
    answer = ask(brain, commit("fresh", "x" * 4097), 8)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert log.log_end_offset == end
    assert "fresh" not in groups_of(brain)


def offsets_partitions(brain: Brain, group: str) -> list[Any]:
    index = brain.node.broker.groups.partition_of(group)
    return [brain.node.broker.replicas.partitions_named("__consumer_offsets")[index]]


# the handshake of a connection


def greeting(version: int = 4) -> bytes:
    request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    return b"".join(encode_request(RequestHeader(18, version, 1, "x"), request))[4:]  # type: ignore[arg-type]


def test_a_connection_may_greet_as_often_as_it_likes_and_keeps_nothing_of_it(brain: Brain) -> None:
    connection = brain.connect()
    client = connection.client
    assert client is not None
    for _ in range(500):
        brain.receive(connection, greeting())
    unknown = bytearray(greeting())
    unknown[2:4] = b"\x00\x63"
    for _ in range(500):
        brain.receive(connection, bytes(unknown))
    assert len(connection.answers) == 1000
    assert not connection.closed and not client.paused
    assert (len(client._queue), client._cost) == (0, 0)
    brain.hang_up(connection)
    brain.check()


def test_a_greeting_behind_requests_that_wait_counts_as_one_of_them(brain: Brain) -> None:
    connection = brain.connect()
    client = connection.client
    assert client is not None
    request = join("waits")
    brain.receive(connection, b"".join(encode_request(RequestHeader(11, 3, 1, "x"), request))[4:])  # type: ignore[arg-type]
    unknown = bytearray(greeting())
    unknown[2:4] = b"\x00\x63"
    given = 0
    while not client.paused:
        brain.receive(connection, bytes(unknown))
        given += 1
        assert given <= 100
    assert connection.answers == []
    brain.world.run_for(20_000)
    assert len(connection.answers) == 1 + given
    assert not client.paused
    brain.hang_up(connection)


@pytest.mark.parametrize(
    "garbage",
    [b"", b"\x00", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, b"\x16\x03\x01\x02\x00\x01" * 20, greeting()[:-3]],
    ids=["nothing", "a byte", "HTTP", "ones", "TLS", "a torn greeting"],
)
def test_garbage_before_the_greeting_closes_the_connection_and_leaves_nothing(brain: Brain, garbage: bytes) -> None:
    before = len(brain.node._connections)
    for _ in range(100):
        connection = brain.connect()
        brain.receive(connection, garbage)
        assert connection.closed
        assert connection.answers == []
        brain.hang_up(connection)
    assert len(brain.node._connections) == before
    with_other = brain.connect()
    brain.receive(with_other, greeting())
    assert len(with_other.answers) == 1
    brain.hang_up(with_other)


def test_the_finding_of_this_file_can_be_found(brain: Brain) -> None:
    brain.trouble.append("something")
    with pytest.raises(Finding):
        brain.check()
    brain.trouble.clear()
