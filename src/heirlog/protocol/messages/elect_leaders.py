"""Written by `python -m heirlog.protocol.generator` from specs/messages/elect_leaders.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, Message, Out, Struct, new

_unpack_o = _Shape(">?").unpack_from
_pack_o = _Shape(">?").pack
_unpack_b = _Shape(">b").unpack_from
_pack_b = _Shape(">b").pack
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_iB = _Shape(">iB").unpack_from
_unpack_ih = _Shape(">ih").unpack_from
_pack_ih = _Shape(">ih").pack
_pack_ix = _Shape(">ix").pack


class ElectLeadersRequest(Message):
    __slots__ = (
        "election_type",
        "topic_partitions",
        "timeout_ms",
        "skip_wait",
    )
    API_KEY = 43
    MIN_VERSION = 0
    MAX_VERSION = 3
    FLEXIBLE_VERSION = 2

    class TopicPartitions(Struct):
        __slots__ = (
            "topic",
            "partitions",
            "desired_leaders",
        )

        def __init__(
            self,
            *,
            topic: str = "",
            partitions: list[int] = EMPTY,
            desired_leaders: list[int] | None = None,
        ) -> None:
            self.topic: str = topic
            self.partitions: list[int] = [] if partitions is EMPTY else partitions
            self.desired_leaders: list[int] | None = desired_leaders

    def __init__(
        self,
        *,
        election_type: int = 0,
        topic_partitions: list[ElectLeadersRequest.TopicPartitions] | None = EMPTY,
        timeout_ms: int = 60000,
        skip_wait: bool = False,
    ) -> None:
        self.election_type: int = election_type
        self.topic_partitions: list[ElectLeadersRequest.TopicPartitions] | None = [] if topic_partitions is EMPTY else topic_partitions
        self.timeout_ms: int = timeout_ms
        self.skip_wait: bool = skip_wait


def _read_request_topic_partitions(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ElectLeadersRequest.TopicPartitions], int]:
    items: list[ElectLeadersRequest.TopicPartitions] = []
    if count > 1:
        p.spend(count)
    if version >= 3:
        for _ in range(count):
            x = new(ElectLeadersRequest.TopicPartitions)
            x.topic, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = p.read_int32s(buf, pos, n)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                x.desired_leaders = None
            else:
                x.desired_leaders, pos = p.read_int32s(buf, pos, n)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 2:
        for _ in range(count):
            x = new(ElectLeadersRequest.TopicPartitions)
            x.desired_leaders = None
            x.topic, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = p.read_int32s(buf, pos, n)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(ElectLeadersRequest.TopicPartitions)
            x.desired_leaders = None
            x.topic, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = p.read_int32s(buf, pos, n)
            items.append(x)
    return items, pos


def _write_request_topic_partitions(out: Out, items: Sequence[ElectLeadersRequest.TopicPartitions], version: int) -> None:
    w = out.small.append
    if version >= 3:
        for x in items:
            w(p.compact_string(x.topic))
            partitions = x.partitions
            n = len(partitions) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partitions:
                w(p.int32s(partitions))
            desired_leaders = x.desired_leaders
            if desired_leaders is None:
                w(b"\0")
            else:
                n = len(desired_leaders) + 1
                w(BYTE[n] if n < 128 else p.uvarint(n))
                if desired_leaders:
                    w(p.int32s(desired_leaders))
            w(b"\0")
    elif version >= 2:
        for x in items:
            w(p.compact_string(x.topic))
            partitions = x.partitions
            n = len(partitions) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partitions:
                w(p.int32s(partitions))
            w(b"\0")
    else:
        for x in items:
            w(p.string(x.topic))
            partitions = x.partitions
            w(_pack_i(len(partitions)))
            if partitions:
                w(p.int32s(partitions))


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ElectLeadersRequest], int]:
    items: list[ElectLeadersRequest] = []
    if version >= 3:
        for _ in range(count):
            x = new(ElectLeadersRequest)
            x.skip_wait = False
            (x.election_type,) = _unpack_b(buf, pos)
            pos += 1
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                x.topic_partitions = None
            else:
                x.topic_partitions, pos = _read_request_topic_partitions(buf, pos, n, version)
            (x.timeout_ms, tags) = _unpack_iB(buf, pos)
            pos += 5
            if tags:
                if tags >= 128:
                    tags, pos = p.more_uvarint(buf, pos, tags)
                for _ in range(tags):
                    tag, pos = p.read_uvarint(buf, pos)
                    pos, end = p.read_tag_end(buf, pos)
                    if tag == 10000:
                        (x.skip_wait,) = _unpack_o(buf, pos)
                        pos += 1
                        if pos != end:
                            raise p.bad_tag("SkipWait")
                    else:
                        pos = end
            items.append(x)
    elif version >= 2:
        for _ in range(count):
            x = new(ElectLeadersRequest)
            x.skip_wait = False
            (x.election_type,) = _unpack_b(buf, pos)
            pos += 1
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                x.topic_partitions = None
            else:
                x.topic_partitions, pos = _read_request_topic_partitions(buf, pos, n, version)
            (x.timeout_ms, tags) = _unpack_iB(buf, pos)
            pos += 5
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 1:
        for _ in range(count):
            x = new(ElectLeadersRequest)
            x.skip_wait = False
            (x.election_type,) = _unpack_b(buf, pos)
            pos += 1
            n, pos = p.read_length(buf, pos)
            if n < 0:
                x.topic_partitions = None
            else:
                x.topic_partitions, pos = _read_request_topic_partitions(buf, pos, n, version)
            (x.timeout_ms,) = _unpack_i(buf, pos)
            pos += 4
            items.append(x)
    else:
        for _ in range(count):
            x = new(ElectLeadersRequest)
            x.election_type = 0
            x.skip_wait = False
            n, pos = p.read_length(buf, pos)
            if n < 0:
                x.topic_partitions = None
            else:
                x.topic_partitions, pos = _read_request_topic_partitions(buf, pos, n, version)
            (x.timeout_ms,) = _unpack_i(buf, pos)
            pos += 4
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[ElectLeadersRequest], version: int) -> None:
    w = out.small.append
    tagged: list[tuple[int, Out]]
    if version >= 3:
        for x in items:
            w(_pack_b(x.election_type))
            topic_partitions = x.topic_partitions
            if topic_partitions is None:
                w(b"\0")
            else:
                n = len(topic_partitions) + 1
                w(BYTE[n] if n < 128 else p.uvarint(n))
                if topic_partitions:
                    _write_request_topic_partitions(out, topic_partitions, version)
            w(_pack_i(x.timeout_ms))
            if x.skip_wait:
                tagged = []
                if x.skip_wait:
                    inner = Out()
                    inner.small.append(_pack_o(x.skip_wait))
                    tagged.append((10000, inner))
                p.write_tags(out, tagged)
            else:
                w(b"\0")
    elif version >= 2:
        for x in items:
            w(_pack_b(x.election_type))
            topic_partitions = x.topic_partitions
            if topic_partitions is None:
                w(b"\0")
            else:
                n = len(topic_partitions) + 1
                w(BYTE[n] if n < 128 else p.uvarint(n))
                if topic_partitions:
                    _write_request_topic_partitions(out, topic_partitions, version)
            w(_pack_ix(x.timeout_ms))
    elif version >= 1:
        for x in items:
            w(_pack_b(x.election_type))
            topic_partitions = x.topic_partitions
            if topic_partitions is None:
                w(b"\xff\xff\xff\xff")
            else:
                w(_pack_i(len(topic_partitions)))
                if topic_partitions:
                    _write_request_topic_partitions(out, topic_partitions, version)
            w(_pack_i(x.timeout_ms))
    else:
        for x in items:
            topic_partitions = x.topic_partitions
            if topic_partitions is None:
                w(b"\xff\xff\xff\xff")
            else:
                w(_pack_i(len(topic_partitions)))
                if topic_partitions:
                    _write_request_topic_partitions(out, topic_partitions, version)
            w(_pack_i(x.timeout_ms))


ElectLeadersRequest.READ = _read_request
ElectLeadersRequest.WRITE = _write_request


class ElectLeadersResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "replica_election_results",
    )
    API_KEY = 43
    MIN_VERSION = 0
    MAX_VERSION = 3
    FLEXIBLE_VERSION = 2

    class ReplicaElectionResult(Struct):
        __slots__ = (
            "topic",
            "partition_result",
        )

        def __init__(
            self,
            *,
            topic: str = "",
            partition_result: list[ElectLeadersResponse.PartitionResult] = EMPTY,
        ) -> None:
            self.topic: str = topic
            self.partition_result: list[ElectLeadersResponse.PartitionResult] = [] if partition_result is EMPTY else partition_result

    class PartitionResult(Struct):
        __slots__ = (
            "partition_id",
            "error_code",
            "error_message",
        )

        def __init__(
            self,
            *,
            partition_id: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None:
            self.partition_id: int = partition_id
            self.error_code: int = error_code
            self.error_message: str | None = error_message

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        replica_election_results: list[ElectLeadersResponse.ReplicaElectionResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.replica_election_results: list[ElectLeadersResponse.ReplicaElectionResult] = [] if replica_election_results is EMPTY else replica_election_results


def _read_response_partition_result(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ElectLeadersResponse.PartitionResult], int]:
    items: list[ElectLeadersResponse.PartitionResult] = []
    if version >= 2:
        for _ in range(count):
            x = new(ElectLeadersResponse.PartitionResult)
            (x.partition_id, x.error_code) = _unpack_ih(buf, pos)
            pos += 6
            x.error_message, pos = p.read_compact_nullable_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(ElectLeadersResponse.PartitionResult)
            (x.partition_id, x.error_code) = _unpack_ih(buf, pos)
            pos += 6
            x.error_message, pos = p.read_nullable_string(buf, pos)
            items.append(x)
    return items, pos


def _write_response_partition_result(out: Out, items: Sequence[ElectLeadersResponse.PartitionResult], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_ih(x.partition_id, x.error_code))
            w(p.compact_nullable_string(x.error_message))
            w(b"\0")
    else:
        for x in items:
            w(_pack_ih(x.partition_id, x.error_code))
            w(p.nullable_string(x.error_message))


def _read_response_replica_election_result(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ElectLeadersResponse.ReplicaElectionResult], int]:
    items: list[ElectLeadersResponse.ReplicaElectionResult] = []
    if version >= 2:
        for _ in range(count):
            x = new(ElectLeadersResponse.ReplicaElectionResult)
            x.topic, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("PartitionResult")
            x.partition_result, pos = _read_response_partition_result(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(ElectLeadersResponse.ReplicaElectionResult)
            x.topic, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("PartitionResult")
            x.partition_result, pos = _read_response_partition_result(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response_replica_election_result(out: Out, items: Sequence[ElectLeadersResponse.ReplicaElectionResult], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(p.compact_string(x.topic))
            partition_result = x.partition_result
            n = len(partition_result) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partition_result:
                _write_response_partition_result(out, partition_result, version)
            w(b"\0")
    else:
        for x in items:
            w(p.string(x.topic))
            partition_result = x.partition_result
            w(_pack_i(len(partition_result)))
            if partition_result:
                _write_response_partition_result(out, partition_result, version)


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ElectLeadersResponse], int]:
    items: list[ElectLeadersResponse] = []
    if version >= 2:
        for _ in range(count):
            x = new(ElectLeadersResponse)
            (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
            pos += 6
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("ReplicaElectionResults")
            x.replica_election_results, pos = _read_response_replica_election_result(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 1:
        for _ in range(count):
            x = new(ElectLeadersResponse)
            (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
            pos += 6
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("ReplicaElectionResults")
            x.replica_election_results, pos = _read_response_replica_election_result(buf, pos, n, version)
            items.append(x)
    else:
        for _ in range(count):
            x = new(ElectLeadersResponse)
            x.error_code = 0
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("ReplicaElectionResults")
            x.replica_election_results, pos = _read_response_replica_election_result(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[ElectLeadersResponse], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_ih(x.throttle_time_ms, x.error_code))
            replica_election_results = x.replica_election_results
            n = len(replica_election_results) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if replica_election_results:
                _write_response_replica_election_result(out, replica_election_results, version)
            w(b"\0")
    elif version >= 1:
        for x in items:
            w(_pack_ih(x.throttle_time_ms, x.error_code))
            replica_election_results = x.replica_election_results
            w(_pack_i(len(replica_election_results)))
            if replica_election_results:
                _write_response_replica_election_result(out, replica_election_results, version)
    else:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            replica_election_results = x.replica_election_results
            w(_pack_i(len(replica_election_results)))
            if replica_election_results:
                _write_response_replica_election_result(out, replica_election_results, version)


ElectLeadersResponse.READ = _read_response
ElectLeadersResponse.WRITE = _write_response
