"""Written by `python -m heirlog.protocol.generator` from specs/messages/describe_recovery.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, ZERO_UUID, Message, Out, Struct, new

_unpack_u = _Shape(">16s").unpack_from
_pack_u = _Shape(">16s").pack
_unpack_o = _Shape(">?").unpack_from
_pack_o = _Shape(">?").pack
_unpack_oi = _Shape(">?i").unpack_from
_pack_oi = _Shape(">?i").pack
_unpack_b = _Shape(">b").unpack_from
_unpack_h = _Shape(">h").unpack_from
_pack_h = _Shape(">h").pack
_unpack_hiiiii = _Shape(">hiiiii").unpack_from
_pack_hiiiii = _Shape(">hiiiii").pack
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_iooooqooqqiiqh = _Shape(">i????q??qqiiqh").unpack_from
_pack_iooooqooqqiiqh = _Shape(">i????q??qqiiqh").pack
_unpack_iB = _Shape(">iB").unpack_from
_unpack_ih = _Shape(">ih").unpack_from
_pack_ih = _Shape(">ih").pack
_pack_ix = _Shape(">ix").pack
_unpack_qq = _Shape(">qq").unpack_from
_pack_qq = _Shape(">qq").pack


class DescribeRecoveryRequest(Message):
    __slots__ = (
        "topics",
        "ask_replicas",
        "response_partition_limit",
        "cursor",
    )
    API_KEY = 10094
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    class TopicRequest(Struct):
        __slots__ = (
            "name",
            "partitions",
        )

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[int] | None = None,
        ) -> None:
            self.name: str = name
            self.partitions: list[int] | None = partitions

    class Cursor(Struct):
        __slots__ = (
            "topic_name",
            "partition_index",
        )

        def __init__(
            self,
            *,
            topic_name: str = "",
            partition_index: int = 0,
        ) -> None:
            self.topic_name: str = topic_name
            self.partition_index: int = partition_index

    def __init__(
        self,
        *,
        topics: list[DescribeRecoveryRequest.TopicRequest] = EMPTY,
        ask_replicas: bool = False,
        response_partition_limit: int = 2000,
        cursor: DescribeRecoveryRequest.Cursor | None = None,
    ) -> None:
        self.topics: list[DescribeRecoveryRequest.TopicRequest] = [] if topics is EMPTY else topics
        self.ask_replicas: bool = ask_replicas
        self.response_partition_limit: int = response_partition_limit
        self.cursor: DescribeRecoveryRequest.Cursor | None = cursor


def _read_request_cursor(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeRecoveryRequest.Cursor], int]:
    items: list[DescribeRecoveryRequest.Cursor] = []
    if count > 1:
        p.spend(count)
    for _ in range(count):
        x = new(DescribeRecoveryRequest.Cursor)
        x.topic_name, pos = p.read_compact_string(buf, pos)
        (x.partition_index, tags) = _unpack_iB(buf, pos)
        pos += 5
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request_cursor(out: Out, items: Sequence[DescribeRecoveryRequest.Cursor], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.topic_name))
        w(_pack_ix(x.partition_index))


def _read_request_topic_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeRecoveryRequest.TopicRequest], int]:
    items: list[DescribeRecoveryRequest.TopicRequest] = []
    if count > 1:
        p.spend(count)
    for _ in range(count):
        x = new(DescribeRecoveryRequest.TopicRequest)
        x.name, pos = p.read_compact_string(buf, pos)
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            x.partitions = None
        else:
            x.partitions, pos = p.read_int32s(buf, pos, n)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request_topic_request(out: Out, items: Sequence[DescribeRecoveryRequest.TopicRequest], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.name))
        partitions = x.partitions
        if partitions is None:
            w(b"\0")
        else:
            n = len(partitions) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partitions:
                w(p.int32s(partitions))
        w(b"\0")


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeRecoveryRequest], int]:
    items: list[DescribeRecoveryRequest] = []
    for _ in range(count):
        x = new(DescribeRecoveryRequest)
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Topics")
        x.topics, pos = _read_request_topic_request(buf, pos, n, version)
        (x.ask_replicas, x.response_partition_limit) = _unpack_oi(buf, pos)
        pos += 5
        (present,) = _unpack_b(buf, pos)
        pos += 1
        if present < 0:
            x.cursor = None
        else:
            ((x.cursor,), pos) = _read_request_cursor(buf, pos, 1, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[DescribeRecoveryRequest], version: int) -> None:
    w = out.small.append
    for x in items:
        topics = x.topics
        n = len(topics) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if topics:
            _write_request_topic_request(out, topics, version)
        w(_pack_oi(x.ask_replicas, x.response_partition_limit))
        if x.cursor is None:
            w(b"\xff")
        else:
            w(b"\1")
            _write_request_cursor(out, (x.cursor,), version)
        w(b"\0")


DescribeRecoveryRequest.READ = _read_request
DescribeRecoveryRequest.WRITE = _write_request


class DescribeRecoveryResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "manager_enabled",
        "controller_epoch",
        "topics",
        "next_cursor",
    )
    API_KEY = 10094
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    class RecoveryTopic(Struct):
        __slots__ = (
            "error_code",
            "name",
            "topic_id",
            "partitions",
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            name: str | None = None,
            topic_id: bytes = ZERO_UUID,
            partitions: list[DescribeRecoveryResponse.RecoveryPartition] = EMPTY,
        ) -> None:
            self.error_code: int = error_code
            self.name: str | None = name
            self.topic_id: bytes = topic_id
            self.partitions: list[DescribeRecoveryResponse.RecoveryPartition] = [] if partitions is EMPTY else partitions

    class RecoveryPartition(Struct):
        __slots__ = (
            "error_code",
            "partition_index",
            "leader_id",
            "leader_epoch",
            "partition_epoch",
            "min_isr",
            "replica_nodes",
            "isr_nodes",
            "eligible_leader_replicas",
            "last_known_elr",
            "state",
            "strategy",
            "is_requested",
            "quorum",
            "quorum_reason",
            "waits_for",
            "runs_for_ms",
            "wait_ends_in_ms",
            "replicas",
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            partition_index: int = 0,
            leader_id: int = -1,
            leader_epoch: int = -1,
            partition_epoch: int = -1,
            min_isr: int = 0,
            replica_nodes: list[int] = EMPTY,
            isr_nodes: list[int] = EMPTY,
            eligible_leader_replicas: list[int] = EMPTY,
            last_known_elr: list[int] = EMPTY,
            state: str = "",
            strategy: str = "",
            is_requested: bool = False,
            quorum: list[int] = EMPTY,
            quorum_reason: str = "",
            waits_for: list[int] = EMPTY,
            runs_for_ms: int = -1,
            wait_ends_in_ms: int = -1,
            replicas: list[DescribeRecoveryResponse.ReplicaReport] = EMPTY,
        ) -> None:
            self.error_code: int = error_code
            self.partition_index: int = partition_index
            self.leader_id: int = leader_id
            self.leader_epoch: int = leader_epoch
            self.partition_epoch: int = partition_epoch
            self.min_isr: int = min_isr
            self.replica_nodes: list[int] = [] if replica_nodes is EMPTY else replica_nodes
            self.isr_nodes: list[int] = [] if isr_nodes is EMPTY else isr_nodes
            self.eligible_leader_replicas: list[int] = [] if eligible_leader_replicas is EMPTY else eligible_leader_replicas
            self.last_known_elr: list[int] = [] if last_known_elr is EMPTY else last_known_elr
            self.state: str = state
            self.strategy: str = strategy
            self.is_requested: bool = is_requested
            self.quorum: list[int] = [] if quorum is EMPTY else quorum
            self.quorum_reason: str = quorum_reason
            self.waits_for: list[int] = [] if waits_for is EMPTY else waits_for
            self.runs_for_ms: int = runs_for_ms
            self.wait_ends_in_ms: int = wait_ends_in_ms
            self.replicas: list[DescribeRecoveryResponse.ReplicaReport] = [] if replicas is EMPTY else replicas

    class ReplicaReport(Struct):
        __slots__ = (
            "broker_id",
            "is_registered",
            "is_fenced",
            "is_acceptable",
            "serves_recovery",
            "registered_epoch",
            "is_being_asked",
            "is_valid",
            "answer_age_ms",
            "broker_epoch",
            "current_leader_epoch",
            "last_written_leader_epoch",
            "log_end_offset",
            "error_code",
            "error_message",
        )

        def __init__(
            self,
            *,
            broker_id: int = 0,
            is_registered: bool = False,
            is_fenced: bool = False,
            is_acceptable: bool = False,
            serves_recovery: bool = False,
            registered_epoch: int = -1,
            is_being_asked: bool = False,
            is_valid: bool = False,
            answer_age_ms: int = -1,
            broker_epoch: int = -1,
            current_leader_epoch: int = -1,
            last_written_leader_epoch: int = -1,
            log_end_offset: int = -1,
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None:
            self.broker_id: int = broker_id
            self.is_registered: bool = is_registered
            self.is_fenced: bool = is_fenced
            self.is_acceptable: bool = is_acceptable
            self.serves_recovery: bool = serves_recovery
            self.registered_epoch: int = registered_epoch
            self.is_being_asked: bool = is_being_asked
            self.is_valid: bool = is_valid
            self.answer_age_ms: int = answer_age_ms
            self.broker_epoch: int = broker_epoch
            self.current_leader_epoch: int = current_leader_epoch
            self.last_written_leader_epoch: int = last_written_leader_epoch
            self.log_end_offset: int = log_end_offset
            self.error_code: int = error_code
            self.error_message: str | None = error_message

    class Cursor(Struct):
        __slots__ = (
            "topic_name",
            "partition_index",
        )

        def __init__(
            self,
            *,
            topic_name: str = "",
            partition_index: int = 0,
        ) -> None:
            self.topic_name: str = topic_name
            self.partition_index: int = partition_index

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        manager_enabled: bool = False,
        controller_epoch: int = -1,
        topics: list[DescribeRecoveryResponse.RecoveryTopic] = EMPTY,
        next_cursor: DescribeRecoveryResponse.Cursor | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.manager_enabled: bool = manager_enabled
        self.controller_epoch: int = controller_epoch
        self.topics: list[DescribeRecoveryResponse.RecoveryTopic] = [] if topics is EMPTY else topics
        self.next_cursor: DescribeRecoveryResponse.Cursor | None = next_cursor


def _read_response_cursor(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeRecoveryResponse.Cursor], int]:
    items: list[DescribeRecoveryResponse.Cursor] = []
    for _ in range(count):
        x = new(DescribeRecoveryResponse.Cursor)
        x.topic_name, pos = p.read_compact_string(buf, pos)
        (x.partition_index, tags) = _unpack_iB(buf, pos)
        pos += 5
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_cursor(out: Out, items: Sequence[DescribeRecoveryResponse.Cursor], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.topic_name))
        w(_pack_ix(x.partition_index))


def _read_response_replica_report(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeRecoveryResponse.ReplicaReport], int]:
    items: list[DescribeRecoveryResponse.ReplicaReport] = []
    for _ in range(count):
        x = new(DescribeRecoveryResponse.ReplicaReport)
        (x.broker_id, x.is_registered, x.is_fenced, x.is_acceptable, x.serves_recovery, x.registered_epoch, x.is_being_asked, x.is_valid, x.answer_age_ms, x.broker_epoch, x.current_leader_epoch, x.last_written_leader_epoch, x.log_end_offset, x.error_code) = _unpack_iooooqooqqiiqh(buf, pos)
        pos += 52
        x.error_message, pos = p.read_compact_nullable_string(buf, pos)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_replica_report(out: Out, items: Sequence[DescribeRecoveryResponse.ReplicaReport], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_iooooqooqqiiqh(x.broker_id, x.is_registered, x.is_fenced, x.is_acceptable, x.serves_recovery, x.registered_epoch, x.is_being_asked, x.is_valid, x.answer_age_ms, x.broker_epoch, x.current_leader_epoch, x.last_written_leader_epoch, x.log_end_offset, x.error_code))
        w(p.compact_nullable_string(x.error_message))
        w(b"\0")


def _read_response_recovery_partition(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeRecoveryResponse.RecoveryPartition], int]:
    items: list[DescribeRecoveryResponse.RecoveryPartition] = []
    for _ in range(count):
        x = new(DescribeRecoveryResponse.RecoveryPartition)
        (x.error_code, x.partition_index, x.leader_id, x.leader_epoch, x.partition_epoch, x.min_isr) = _unpack_hiiiii(buf, pos)
        pos += 22
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("ReplicaNodes")
        x.replica_nodes, pos = p.read_int32s(buf, pos, n)
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("IsrNodes")
        x.isr_nodes, pos = p.read_int32s(buf, pos, n)
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("EligibleLeaderReplicas")
        x.eligible_leader_replicas, pos = p.read_int32s(buf, pos, n)
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("LastKnownElr")
        x.last_known_elr, pos = p.read_int32s(buf, pos, n)
        x.state, pos = p.read_compact_string(buf, pos)
        x.strategy, pos = p.read_compact_string(buf, pos)
        (x.is_requested,) = _unpack_o(buf, pos)
        pos += 1
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Quorum")
        x.quorum, pos = p.read_int32s(buf, pos, n)
        x.quorum_reason, pos = p.read_compact_string(buf, pos)
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("WaitsFor")
        x.waits_for, pos = p.read_int32s(buf, pos, n)
        (x.runs_for_ms, x.wait_ends_in_ms) = _unpack_qq(buf, pos)
        pos += 16
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Replicas")
        x.replicas, pos = _read_response_replica_report(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_recovery_partition(out: Out, items: Sequence[DescribeRecoveryResponse.RecoveryPartition], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_hiiiii(x.error_code, x.partition_index, x.leader_id, x.leader_epoch, x.partition_epoch, x.min_isr))
        replica_nodes = x.replica_nodes
        n = len(replica_nodes) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if replica_nodes:
            w(p.int32s(replica_nodes))
        isr_nodes = x.isr_nodes
        n = len(isr_nodes) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if isr_nodes:
            w(p.int32s(isr_nodes))
        eligible_leader_replicas = x.eligible_leader_replicas
        n = len(eligible_leader_replicas) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if eligible_leader_replicas:
            w(p.int32s(eligible_leader_replicas))
        last_known_elr = x.last_known_elr
        n = len(last_known_elr) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if last_known_elr:
            w(p.int32s(last_known_elr))
        w(p.compact_string(x.state))
        w(p.compact_string(x.strategy))
        w(_pack_o(x.is_requested))
        quorum = x.quorum
        n = len(quorum) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if quorum:
            w(p.int32s(quorum))
        w(p.compact_string(x.quorum_reason))
        waits_for = x.waits_for
        n = len(waits_for) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if waits_for:
            w(p.int32s(waits_for))
        w(_pack_qq(x.runs_for_ms, x.wait_ends_in_ms))
        replicas = x.replicas
        n = len(replicas) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if replicas:
            _write_response_replica_report(out, replicas, version)
        w(b"\0")


def _read_response_recovery_topic(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeRecoveryResponse.RecoveryTopic], int]:
    items: list[DescribeRecoveryResponse.RecoveryTopic] = []
    for _ in range(count):
        x = new(DescribeRecoveryResponse.RecoveryTopic)
        (x.error_code,) = _unpack_h(buf, pos)
        pos += 2
        x.name, pos = p.read_compact_nullable_string(buf, pos)
        (x.topic_id,) = _unpack_u(buf, pos)
        pos += 16
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Partitions")
        x.partitions, pos = _read_response_recovery_partition(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_recovery_topic(out: Out, items: Sequence[DescribeRecoveryResponse.RecoveryTopic], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_h(x.error_code))
        w(p.compact_nullable_string(x.name))
        w(_pack_u(x.topic_id))
        partitions = x.partitions
        n = len(partitions) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if partitions:
            _write_response_recovery_partition(out, partitions, version)
        w(b"\0")


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeRecoveryResponse], int]:
    items: list[DescribeRecoveryResponse] = []
    for _ in range(count):
        x = new(DescribeRecoveryResponse)
        x.controller_epoch = -1
        (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
        pos += 6
        x.error_message, pos = p.read_compact_nullable_string(buf, pos)
        (x.manager_enabled,) = _unpack_o(buf, pos)
        pos += 1
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Topics")
        x.topics, pos = _read_response_recovery_topic(buf, pos, n, version)
        (present,) = _unpack_b(buf, pos)
        pos += 1
        if present < 0:
            x.next_cursor = None
        else:
            ((x.next_cursor,), pos) = _read_response_cursor(buf, pos, 1, version)
        tags = buf[pos]
        pos += 1
        if tags:
            if tags >= 128:
                tags, pos = p.more_uvarint(buf, pos, tags)
            for _ in range(tags):
                tag, pos = p.read_uvarint(buf, pos)
                pos, end = p.read_tag_end(buf, pos)
                if tag == 0:
                    (x.controller_epoch,) = _unpack_i(buf, pos)
                    pos += 4
                    if pos != end:
                        raise p.bad_tag("ControllerEpoch")
                else:
                    pos = end
        items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[DescribeRecoveryResponse], version: int) -> None:
    w = out.small.append
    tagged: list[tuple[int, Out]]
    for x in items:
        w(_pack_ih(x.throttle_time_ms, x.error_code))
        w(p.compact_nullable_string(x.error_message))
        w(_pack_o(x.manager_enabled))
        topics = x.topics
        n = len(topics) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if topics:
            _write_response_recovery_topic(out, topics, version)
        if x.next_cursor is None:
            w(b"\xff")
        else:
            w(b"\1")
            _write_response_cursor(out, (x.next_cursor,), version)
        if x.controller_epoch != -1:
            tagged = []
            if x.controller_epoch != -1:
                inner = Out()
                inner.small.append(_pack_i(x.controller_epoch))
                tagged.append((0, inner))
            p.write_tags(out, tagged)
        else:
            w(b"\0")


DescribeRecoveryResponse.READ = _read_response
DescribeRecoveryResponse.WRITE = _write_response
