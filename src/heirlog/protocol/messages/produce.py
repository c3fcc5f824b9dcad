"""Written by `python -m heirlog.protocol.generator` from specs/messages/produce.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape
from typing import Final

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, ZERO_UUID, Message, Out, Records, Struct, new

_unpack_u = _Shape(">16s").unpack_from
_pack_u = _Shape(">16s").pack
_unpack_hi = _Shape(">hi").unpack_from
_pack_hi = _Shape(">hi").pack
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_iB = _Shape(">iB").unpack_from
_unpack_ihqq = _Shape(">ihqq").unpack_from
_pack_ihqq = _Shape(">ihqq").pack
_unpack_ihqqq = _Shape(">ihqqq").unpack_from
_pack_ihqqq = _Shape(">ihqqq").pack
_unpack_iiB = _Shape(">iiB").unpack_from
_pack_iix = _Shape(">iix").pack
_pack_ix = _Shape(">ix").pack


class ProduceRequest(Message):
    __slots__ = (
        "transactional_id",
        "acks",
        "timeout_ms",
        "topic_data",
    )
    API_KEY = 0
    MIN_VERSION = 3
    MAX_VERSION = 13
    FLEXIBLE_VERSION = 9

    class TopicProduceData(Struct):
        __slots__ = (
            "topic_id",
            "name",
            "partition_data",
        )

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO_UUID,
            name: str = "",
            partition_data: list[ProduceRequest.PartitionProduceData] = EMPTY,
        ) -> None:
            self.topic_id: bytes = topic_id
            self.name: str = name
            self.partition_data: list[ProduceRequest.PartitionProduceData] = [] if partition_data is EMPTY else partition_data

    class PartitionProduceData(Struct):
        __slots__ = (
            "index",
            "records",
        )

        def __init__(
            self,
            *,
            index: int = 0,
            records: Records | None = None,
        ) -> None:
            self.index: int = index
            self.records: Records | None = records

    def __init__(
        self,
        *,
        transactional_id: str | None = None,
        acks: int = 0,
        timeout_ms: int = 0,
        topic_data: list[ProduceRequest.TopicProduceData] = EMPTY,
    ) -> None:
        self.transactional_id: str | None = transactional_id
        self.acks: int = acks
        self.timeout_ms: int = timeout_ms
        self.topic_data: list[ProduceRequest.TopicProduceData] = [] if topic_data is EMPTY else topic_data


def _read_request_partition_produce_data(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ProduceRequest.PartitionProduceData], int]:
    items: list[ProduceRequest.PartitionProduceData] = []
    if count > 1:
        p.spend(count)
    if version >= 9:
        for _ in range(count):
            x = new(ProduceRequest.PartitionProduceData)
            (x.index,) = _unpack_i(buf, pos)
            pos += 4
            x.records, pos = p.read_compact_nullable_records(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(ProduceRequest.PartitionProduceData)
            (x.index,) = _unpack_i(buf, pos)
            pos += 4
            x.records, pos = p.read_nullable_records(buf, pos)
            items.append(x)
    return items, pos


def _write_request_partition_produce_data(out: Out, items: Sequence[ProduceRequest.PartitionProduceData], version: int) -> None:
    w = out.small.append
    if version >= 9:
        for x in items:
            w(_pack_i(x.index))
            p.write_compact_nullable_records(out, x.records)
            w(b"\0")
    else:
        for x in items:
            w(_pack_i(x.index))
            p.write_nullable_records(out, x.records)


def _read_request_topic_produce_data(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ProduceRequest.TopicProduceData], int]:
    items: list[ProduceRequest.TopicProduceData] = []
    if count > 1:
        p.spend(count)
    if version >= 13:
        for _ in range(count):
            x = new(ProduceRequest.TopicProduceData)
            x.name = ""
            (x.topic_id,) = _unpack_u(buf, pos)
            pos += 16
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("PartitionData")
            x.partition_data, pos = _read_request_partition_produce_data(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 9:
        for _ in range(count):
            x = new(ProduceRequest.TopicProduceData)
            x.topic_id = ZERO_UUID
            x.name, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("PartitionData")
            x.partition_data, pos = _read_request_partition_produce_data(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(ProduceRequest.TopicProduceData)
            x.topic_id = ZERO_UUID
            x.name, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("PartitionData")
            x.partition_data, pos = _read_request_partition_produce_data(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_request_topic_produce_data(out: Out, items: Sequence[ProduceRequest.TopicProduceData], version: int) -> None:
    w = out.small.append
    if version >= 13:
        for x in items:
            w(_pack_u(x.topic_id))
            partition_data = x.partition_data
            n = len(partition_data) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partition_data:
                _write_request_partition_produce_data(out, partition_data, version)
            w(b"\0")
    elif version >= 9:
        for x in items:
            w(p.compact_string(x.name))
            partition_data = x.partition_data
            n = len(partition_data) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partition_data:
                _write_request_partition_produce_data(out, partition_data, version)
            w(b"\0")
    else:
        for x in items:
            w(p.string(x.name))
            partition_data = x.partition_data
            w(_pack_i(len(partition_data)))
            if partition_data:
                _write_request_partition_produce_data(out, partition_data, version)


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ProduceRequest], int]:
    items: list[ProduceRequest] = []
    if version >= 9:
        for _ in range(count):
            x = new(ProduceRequest)
            x.transactional_id, pos = p.read_compact_nullable_string(buf, pos)
            (x.acks, x.timeout_ms) = _unpack_hi(buf, pos)
            pos += 6
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("TopicData")
            x.topic_data, pos = _read_request_topic_produce_data(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(ProduceRequest)
            x.transactional_id, pos = p.read_nullable_string(buf, pos)
            (x.acks, x.timeout_ms) = _unpack_hi(buf, pos)
            pos += 6
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("TopicData")
            x.topic_data, pos = _read_request_topic_produce_data(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[ProduceRequest], version: int) -> None:
    w = out.small.append
    if version >= 9:
        for x in items:
            w(p.compact_nullable_string(x.transactional_id))
            w(_pack_hi(x.acks, x.timeout_ms))
            topic_data = x.topic_data
            n = len(topic_data) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topic_data:
                _write_request_topic_produce_data(out, topic_data, version)
            w(b"\0")
    else:
        for x in items:
            w(p.nullable_string(x.transactional_id))
            w(_pack_hi(x.acks, x.timeout_ms))
            topic_data = x.topic_data
            w(_pack_i(len(topic_data)))
            if topic_data:
                _write_request_topic_produce_data(out, topic_data, version)


ProduceRequest.READ = _read_request
ProduceRequest.WRITE = _write_request


class ProduceResponse(Message):
    __slots__ = (
        "responses",
        "throttle_time_ms",
        "node_endpoints",
    )
    API_KEY = 0
    MIN_VERSION = 3
    MAX_VERSION = 13
    FLEXIBLE_VERSION = 9

    class TopicProduceResponse(Struct):
        __slots__ = (
            "topic_id",
            "name",
            "partition_responses",
        )

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO_UUID,
            name: str = "",
            partition_responses: list[ProduceResponse.PartitionProduceResponse] = EMPTY,
        ) -> None:
            self.topic_id: bytes = topic_id
            self.name: str = name
            self.partition_responses: list[ProduceResponse.PartitionProduceResponse] = [] if partition_responses is EMPTY else partition_responses

    class PartitionProduceResponse(Struct):
        __slots__ = (
            "index",
            "error_code",
            "base_offset",
            "log_append_time_ms",
            "log_start_offset",
            "record_errors",
            "error_message",
            "current_leader",
        )

        def __init__(
            self,
            *,
            index: int = 0,
            error_code: int = 0,
            base_offset: int = 0,
            log_append_time_ms: int = -1,
            log_start_offset: int = -1,
            record_errors: list[ProduceResponse.BatchIndexAndErrorMessage] = EMPTY,
            error_message: str | None = None,
            current_leader: ProduceResponse.LeaderIdAndEpoch | None = None,
        ) -> None:
            self.index: int = index
            self.error_code: int = error_code
            self.base_offset: int = base_offset
            self.log_append_time_ms: int = log_append_time_ms
            self.log_start_offset: int = log_start_offset
            self.record_errors: list[ProduceResponse.BatchIndexAndErrorMessage] = [] if record_errors is EMPTY else record_errors
            self.error_message: str | None = error_message
            self.current_leader: ProduceResponse.LeaderIdAndEpoch = _DEFAULT_RESPONSE_LEADER_ID_AND_EPOCH if current_leader is None else current_leader

    class BatchIndexAndErrorMessage(Struct):
        __slots__ = (
            "batch_index",
            "batch_index_error_message",
        )

        def __init__(
            self,
            *,
            batch_index: int = 0,
            batch_index_error_message: str | None = None,
        ) -> None:
            self.batch_index: int = batch_index
            self.batch_index_error_message: str | None = batch_index_error_message

    class LeaderIdAndEpoch(Struct):
        __slots__ = (
            "leader_id",
            "leader_epoch",
        )

        def __init__(
            self,
            *,
            leader_id: int = -1,
            leader_epoch: int = -1,
        ) -> None:
            self.leader_id: int = leader_id
            self.leader_epoch: int = leader_epoch

    class NodeEndpoint(Struct):
        __slots__ = (
            "node_id",
            "host",
            "port",
            "rack",
        )

        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
            rack: str | None = None,
        ) -> None:
            self.node_id: int = node_id
            self.host: str = host
            self.port: int = port
            self.rack: str | None = rack

    def __init__(
        self,
        *,
        responses: list[ProduceResponse.TopicProduceResponse] = EMPTY,
        throttle_time_ms: int = 0,
        node_endpoints: list[ProduceResponse.NodeEndpoint] = EMPTY,
    ) -> None:
        self.responses: list[ProduceResponse.TopicProduceResponse] = [] if responses is EMPTY else responses
        self.throttle_time_ms: int = throttle_time_ms
        self.node_endpoints: list[ProduceResponse.NodeEndpoint] = [] if node_endpoints is EMPTY else node_endpoints


_DEFAULT_RESPONSE_LEADER_ID_AND_EPOCH: Final = p.frozen_default(ProduceResponse.LeaderIdAndEpoch)


def _read_response_node_endpoint(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ProduceResponse.NodeEndpoint], int]:
    items: list[ProduceResponse.NodeEndpoint] = []
    for _ in range(count):
        x = new(ProduceResponse.NodeEndpoint)
        (x.node_id,) = _unpack_i(buf, pos)
        pos += 4
        x.host, pos = p.read_compact_string(buf, pos)
        (x.port,) = _unpack_i(buf, pos)
        pos += 4
        x.rack, pos = p.read_compact_nullable_string(buf, pos)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_node_endpoint(out: Out, items: Sequence[ProduceResponse.NodeEndpoint], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_i(x.node_id))
        w(p.compact_string(x.host))
        w(_pack_i(x.port))
        w(p.compact_nullable_string(x.rack))
        w(b"\0")


def _read_response_leader_id_and_epoch(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ProduceResponse.LeaderIdAndEpoch], int]:
    items: list[ProduceResponse.LeaderIdAndEpoch] = []
    for _ in range(count):
        x = new(ProduceResponse.LeaderIdAndEpoch)
        (x.leader_id, x.leader_epoch, tags) = _unpack_iiB(buf, pos)
        pos += 9
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_leader_id_and_epoch(out: Out, items: Sequence[ProduceResponse.LeaderIdAndEpoch], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_iix(x.leader_id, x.leader_epoch))


def _read_response_batch_index_and_error_message(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ProduceResponse.BatchIndexAndErrorMessage], int]:
    items: list[ProduceResponse.BatchIndexAndErrorMessage] = []
    if version >= 9:
        for _ in range(count):
            x = new(ProduceResponse.BatchIndexAndErrorMessage)
            (x.batch_index,) = _unpack_i(buf, pos)
            pos += 4
            x.batch_index_error_message, pos = p.read_compact_nullable_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(ProduceResponse.BatchIndexAndErrorMessage)
            (x.batch_index,) = _unpack_i(buf, pos)
            pos += 4
            x.batch_index_error_message, pos = p.read_nullable_string(buf, pos)
            items.append(x)
    return items, pos


def _write_response_batch_index_and_error_message(out: Out, items: Sequence[ProduceResponse.BatchIndexAndErrorMessage], version: int) -> None:
    w = out.small.append
    if version >= 9:
        for x in items:
            w(_pack_i(x.batch_index))
            w(p.compact_nullable_string(x.batch_index_error_message))
            w(b"\0")
    else:
        for x in items:
            w(_pack_i(x.batch_index))
            w(p.nullable_string(x.batch_index_error_message))


def _read_response_partition_produce_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ProduceResponse.PartitionProduceResponse], int]:
    items: list[ProduceResponse.PartitionProduceResponse] = []
    if version >= 10:
        for _ in range(count):
            x = new(ProduceResponse.PartitionProduceResponse)
            x.current_leader = _DEFAULT_RESPONSE_LEADER_ID_AND_EPOCH
            (x.index, x.error_code, x.base_offset, x.log_append_time_ms, x.log_start_offset) = _unpack_ihqqq(buf, pos)
            pos += 30
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("RecordErrors")
            x.record_errors, pos = _read_response_batch_index_and_error_message(buf, pos, n, version)
            x.error_message, pos = p.read_compact_nullable_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                if tags >= 128:
                    tags, pos = p.more_uvarint(buf, pos, tags)
                for _ in range(tags):
                    tag, pos = p.read_uvarint(buf, pos)
                    pos, end = p.read_tag_end(buf, pos)
                    if tag == 0:
                        ((x.current_leader,), pos) = _read_response_leader_id_and_epoch(buf, pos, 1, version)
                        if pos != end:
                            raise p.bad_tag("CurrentLeader")
                    else:
                        pos = end
            items.append(x)
    elif version >= 9:
        for _ in range(count):
            x = new(ProduceResponse.PartitionProduceResponse)
            x.current_leader = _DEFAULT_RESPONSE_LEADER_ID_AND_EPOCH
            (x.index, x.error_code, x.base_offset, x.log_append_time_ms, x.log_start_offset) = _unpack_ihqqq(buf, pos)
            pos += 30
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("RecordErrors")
            x.record_errors, pos = _read_response_batch_index_and_error_message(buf, pos, n, version)
            x.error_message, pos = p.read_compact_nullable_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 8:
        for _ in range(count):
            x = new(ProduceResponse.PartitionProduceResponse)
            x.current_leader = _DEFAULT_RESPONSE_LEADER_ID_AND_EPOCH
            (x.index, x.error_code, x.base_offset, x.log_append_time_ms, x.log_start_offset) = _unpack_ihqqq(buf, pos)
            pos += 30
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("RecordErrors")
            x.record_errors, pos = _read_response_batch_index_and_error_message(buf, pos, n, version)
            x.error_message, pos = p.read_nullable_string(buf, pos)
            items.append(x)
    elif version >= 5:
        for _ in range(count):
            x = new(ProduceResponse.PartitionProduceResponse)
            x.record_errors = []
            x.error_message = None
            x.current_leader = _DEFAULT_RESPONSE_LEADER_ID_AND_EPOCH
            (x.index, x.error_code, x.base_offset, x.log_append_time_ms, x.log_start_offset) = _unpack_ihqqq(buf, pos)
            pos += 30
            items.append(x)
    else:
        for _ in range(count):
            x = new(ProduceResponse.PartitionProduceResponse)
            x.log_start_offset = -1
            x.record_errors = []
            x.error_message = None
            x.current_leader = _DEFAULT_RESPONSE_LEADER_ID_AND_EPOCH
            (x.index, x.error_code, x.base_offset, x.log_append_time_ms) = _unpack_ihqq(buf, pos)
            pos += 22
            items.append(x)
    return items, pos


def _write_response_partition_produce_response(out: Out, items: Sequence[ProduceResponse.PartitionProduceResponse], version: int) -> None:
    w = out.small.append
    tagged: list[tuple[int, Out]]
    if version >= 10:
        for x in items:
            w(_pack_ihqqq(x.index, x.error_code, x.base_offset, x.log_append_time_ms, x.log_start_offset))
            record_errors = x.record_errors
            n = len(record_errors) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if record_errors:
                _write_response_batch_index_and_error_message(out, record_errors, version)
            w(p.compact_nullable_string(x.error_message))
            if (x.current_leader is not _DEFAULT_RESPONSE_LEADER_ID_AND_EPOCH and x.current_leader != _DEFAULT_RESPONSE_LEADER_ID_AND_EPOCH):
                tagged = []
                if x.current_leader is not _DEFAULT_RESPONSE_LEADER_ID_AND_EPOCH and x.current_leader != _DEFAULT_RESPONSE_LEADER_ID_AND_EPOCH:
                    inner = Out()
                    _write_response_leader_id_and_epoch(inner, (x.current_leader,), version)
                    tagged.append((0, inner))
                p.write_tags(out, tagged)
            else:
                w(b"\0")
    elif version >= 9:
        for x in items:
            w(_pack_ihqqq(x.index, x.error_code, x.base_offset, x.log_append_time_ms, x.log_start_offset))
            record_errors = x.record_errors
            n = len(record_errors) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if record_errors:
                _write_response_batch_index_and_error_message(out, record_errors, version)
            w(p.compact_nullable_string(x.error_message))
            w(b"\0")
    elif version >= 8:
        for x in items:
            w(_pack_ihqqq(x.index, x.error_code, x.base_offset, x.log_append_time_ms, x.log_start_offset))
            record_errors = x.record_errors
            w(_pack_i(len(record_errors)))
            if record_errors:
                _write_response_batch_index_and_error_message(out, record_errors, version)
            w(p.nullable_string(x.error_message))
    elif version >= 5:
        for x in items:
            w(_pack_ihqqq(x.index, x.error_code, x.base_offset, x.log_append_time_ms, x.log_start_offset))
    else:
        for x in items:
            w(_pack_ihqq(x.index, x.error_code, x.base_offset, x.log_append_time_ms))


def _read_response_topic_produce_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ProduceResponse.TopicProduceResponse], int]:
    items: list[ProduceResponse.TopicProduceResponse] = []
    if version >= 13:
        for _ in range(count):
            x = new(ProduceResponse.TopicProduceResponse)
            x.name = ""
            (x.topic_id,) = _unpack_u(buf, pos)
            pos += 16
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("PartitionResponses")
            x.partition_responses, pos = _read_response_partition_produce_response(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 9:
        for _ in range(count):
            x = new(ProduceResponse.TopicProduceResponse)
            x.topic_id = ZERO_UUID
            x.name, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("PartitionResponses")
            x.partition_responses, pos = _read_response_partition_produce_response(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(ProduceResponse.TopicProduceResponse)
            x.topic_id = ZERO_UUID
            x.name, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("PartitionResponses")
            x.partition_responses, pos = _read_response_partition_produce_response(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response_topic_produce_response(out: Out, items: Sequence[ProduceResponse.TopicProduceResponse], version: int) -> None:
    w = out.small.append
    if version >= 13:
        for x in items:
            w(_pack_u(x.topic_id))
            partition_responses = x.partition_responses
            n = len(partition_responses) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partition_responses:
                _write_response_partition_produce_response(out, partition_responses, version)
            w(b"\0")
    elif version >= 9:
        for x in items:
            w(p.compact_string(x.name))
            partition_responses = x.partition_responses
            n = len(partition_responses) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partition_responses:
                _write_response_partition_produce_response(out, partition_responses, version)
            w(b"\0")
    else:
        for x in items:
            w(p.string(x.name))
            partition_responses = x.partition_responses
            w(_pack_i(len(partition_responses)))
            if partition_responses:
                _write_response_partition_produce_response(out, partition_responses, version)


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ProduceResponse], int]:
    items: list[ProduceResponse] = []
    if version >= 10:
        for _ in range(count):
            x = new(ProduceResponse)
            x.node_endpoints = []
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Responses")
            x.responses, pos = _read_response_topic_produce_response(buf, pos, n, version)
            (x.throttle_time_ms, tags) = _unpack_iB(buf, pos)
            pos += 5
            if tags:
                if tags >= 128:
                    tags, pos = p.more_uvarint(buf, pos, tags)
                for _ in range(tags):
                    tag, pos = p.read_uvarint(buf, pos)
                    pos, end = p.read_tag_end(buf, pos)
                    if tag == 0:
                        n = buf[pos] - 1
                        pos += 1
                        if n >= 127:
                            n, pos = p.read_compact_length(buf, pos - 1)
                        if n < 0:
                            raise p.null("NodeEndpoints")
                        x.node_endpoints, pos = _read_response_node_endpoint(buf, pos, n, version)
                        if pos != end:
                            raise p.bad_tag("NodeEndpoints")
                    else:
                        pos = end
            items.append(x)
    elif version >= 9:
        for _ in range(count):
            x = new(ProduceResponse)
            x.node_endpoints = []
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Responses")
            x.responses, pos = _read_response_topic_produce_response(buf, pos, n, version)
            (x.throttle_time_ms, tags) = _unpack_iB(buf, pos)
            pos += 5
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(ProduceResponse)
            x.node_endpoints = []
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Responses")
            x.responses, pos = _read_response_topic_produce_response(buf, pos, n, version)
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[ProduceResponse], version: int) -> None:
    w = out.small.append
    tagged: list[tuple[int, Out]]
    if version >= 10:
        for x in items:
            responses = x.responses
            n = len(responses) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if responses:
                _write_response_topic_produce_response(out, responses, version)
            w(_pack_i(x.throttle_time_ms))
            if x.node_endpoints:
                tagged = []
                if x.node_endpoints:
                    inner = Out()
                    node_endpoints = x.node_endpoints
                    n = len(node_endpoints) + 1
                    inner.small.append(BYTE[n] if n < 128 else p.uvarint(n))
                    if node_endpoints:
                        _write_response_node_endpoint(inner, node_endpoints, version)
                    tagged.append((0, inner))
                p.write_tags(out, tagged)
            else:
                w(b"\0")
    elif version >= 9:
        for x in items:
            responses = x.responses
            n = len(responses) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if responses:
                _write_response_topic_produce_response(out, responses, version)
            w(_pack_ix(x.throttle_time_ms))
    else:
        for x in items:
            responses = x.responses
            w(_pack_i(len(responses)))
            if responses:
                _write_response_topic_produce_response(out, responses, version)
            w(_pack_i(x.throttle_time_ms))


ProduceResponse.READ = _read_response
ProduceResponse.WRITE = _write_response
