"""Written by `python -m heirlog.protocol.generator` from specs/messages/create_topics.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, ZERO_UUID, Message, Out, Struct, new

_unpack_uh = _Shape(">16sh").unpack_from
_pack_uh = _Shape(">16sh").pack
_unpack_oboB = _Shape(">?b?B").unpack_from
_pack_obox = _Shape(">?b?x").pack
_unpack_h = _Shape(">h").unpack_from
_pack_h = _Shape(">h").pack
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_io = _Shape(">i?").unpack_from
_pack_io = _Shape(">i?").pack
_unpack_ioB = _Shape(">i?B").unpack_from
_pack_iox = _Shape(">i?x").pack
_unpack_ih = _Shape(">ih").unpack_from
_pack_ih = _Shape(">ih").pack


class CreateTopicsRequest(Message):
    __slots__ = (
        "topics",
        "timeout_ms",
        "validate_only",
    )
    API_KEY = 19
    MIN_VERSION = 2
    MAX_VERSION = 7
    FLEXIBLE_VERSION = 5

    class CreatableTopic(Struct):
        __slots__ = (
            "name",
            "num_partitions",
            "replication_factor",
            "assignments",
            "configs",
        )

        def __init__(
            self,
            *,
            name: str = "",
            num_partitions: int = 0,
            replication_factor: int = 0,
            assignments: list[CreateTopicsRequest.CreatableReplicaAssignment] = EMPTY,
            configs: list[CreateTopicsRequest.CreatableTopicConfig] = EMPTY,
        ) -> None:
            self.name: str = name
            self.num_partitions: int = num_partitions
            self.replication_factor: int = replication_factor
            self.assignments: list[CreateTopicsRequest.CreatableReplicaAssignment] = [] if assignments is EMPTY else assignments
            self.configs: list[CreateTopicsRequest.CreatableTopicConfig] = [] if configs is EMPTY else configs

    class CreatableReplicaAssignment(Struct):
        __slots__ = (
            "partition_index",
            "broker_ids",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            broker_ids: list[int] = EMPTY,
        ) -> None:
            self.partition_index: int = partition_index
            self.broker_ids: list[int] = [] if broker_ids is EMPTY else broker_ids

    class CreatableTopicConfig(Struct):
        __slots__ = (
            "name",
            "value",
        )

        def __init__(
            self,
            *,
            name: str = "",
            value: str | None = None,
        ) -> None:
            self.name: str = name
            self.value: str | None = value

    def __init__(
        self,
        *,
        topics: list[CreateTopicsRequest.CreatableTopic] = EMPTY,
        timeout_ms: int = 60000,
        validate_only: bool = False,
    ) -> None:
        self.topics: list[CreateTopicsRequest.CreatableTopic] = [] if topics is EMPTY else topics
        self.timeout_ms: int = timeout_ms
        self.validate_only: bool = validate_only


def _read_request_creatable_topic_config(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[CreateTopicsRequest.CreatableTopicConfig], int]:
    items: list[CreateTopicsRequest.CreatableTopicConfig] = []
    if count > 1:
        p.spend(count)
    if version >= 5:
        for _ in range(count):
            x = new(CreateTopicsRequest.CreatableTopicConfig)
            x.name, pos = p.read_compact_string(buf, pos)
            x.value, pos = p.read_compact_nullable_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(CreateTopicsRequest.CreatableTopicConfig)
            x.name, pos = p.read_string(buf, pos)
            x.value, pos = p.read_nullable_string(buf, pos)
            items.append(x)
    return items, pos


def _write_request_creatable_topic_config(out: Out, items: Sequence[CreateTopicsRequest.CreatableTopicConfig], version: int) -> None:
    w = out.small.append
    if version >= 5:
        for x in items:
            w(p.compact_string(x.name))
            w(p.compact_nullable_string(x.value))
            w(b"\0")
    else:
        for x in items:
            w(p.string(x.name))
            w(p.nullable_string(x.value))


def _read_request_creatable_replica_assignment(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[CreateTopicsRequest.CreatableReplicaAssignment], int]:
    items: list[CreateTopicsRequest.CreatableReplicaAssignment] = []
    if count > 1:
        p.spend(count)
    if version >= 5:
        for _ in range(count):
            x = new(CreateTopicsRequest.CreatableReplicaAssignment)
            (x.partition_index,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("BrokerIds")
            x.broker_ids, pos = p.read_int32s(buf, pos, n)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(CreateTopicsRequest.CreatableReplicaAssignment)
            (x.partition_index,) = _unpack_i(buf, pos)
            pos += 4
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("BrokerIds")
            x.broker_ids, pos = p.read_int32s(buf, pos, n)
            items.append(x)
    return items, pos


def _write_request_creatable_replica_assignment(out: Out, items: Sequence[CreateTopicsRequest.CreatableReplicaAssignment], version: int) -> None:
    w = out.small.append
    if version >= 5:
        for x in items:
            w(_pack_i(x.partition_index))
            broker_ids = x.broker_ids
            n = len(broker_ids) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if broker_ids:
                w(p.int32s(broker_ids))
            w(b"\0")
    else:
        for x in items:
            w(_pack_i(x.partition_index))
            broker_ids = x.broker_ids
            w(_pack_i(len(broker_ids)))
            if broker_ids:
                w(p.int32s(broker_ids))


def _read_request_creatable_topic(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[CreateTopicsRequest.CreatableTopic], int]:
    items: list[CreateTopicsRequest.CreatableTopic] = []
    if count > 1:
        p.spend(count)
    if version >= 5:
        for _ in range(count):
            x = new(CreateTopicsRequest.CreatableTopic)
            x.name, pos = p.read_compact_string(buf, pos)
            (x.num_partitions, x.replication_factor) = _unpack_ih(buf, pos)
            pos += 6
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Assignments")
            x.assignments, pos = _read_request_creatable_replica_assignment(buf, pos, n, version)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Configs")
            x.configs, pos = _read_request_creatable_topic_config(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(CreateTopicsRequest.CreatableTopic)
            x.name, pos = p.read_string(buf, pos)
            (x.num_partitions, x.replication_factor) = _unpack_ih(buf, pos)
            pos += 6
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Assignments")
            x.assignments, pos = _read_request_creatable_replica_assignment(buf, pos, n, version)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Configs")
            x.configs, pos = _read_request_creatable_topic_config(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_request_creatable_topic(out: Out, items: Sequence[CreateTopicsRequest.CreatableTopic], version: int) -> None:
    w = out.small.append
    if version >= 5:
        for x in items:
            w(p.compact_string(x.name))
            w(_pack_ih(x.num_partitions, x.replication_factor))
            assignments = x.assignments
            n = len(assignments) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if assignments:
                _write_request_creatable_replica_assignment(out, assignments, version)
            configs = x.configs
            n = len(configs) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if configs:
                _write_request_creatable_topic_config(out, configs, version)
            w(b"\0")
    else:
        for x in items:
            w(p.string(x.name))
            w(_pack_ih(x.num_partitions, x.replication_factor))
            assignments = x.assignments
            w(_pack_i(len(assignments)))
            if assignments:
                _write_request_creatable_replica_assignment(out, assignments, version)
            configs = x.configs
            w(_pack_i(len(configs)))
            if configs:
                _write_request_creatable_topic_config(out, configs, version)


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[CreateTopicsRequest], int]:
    items: list[CreateTopicsRequest] = []
    if version >= 5:
        for _ in range(count):
            x = new(CreateTopicsRequest)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_creatable_topic(buf, pos, n, version)
            (x.timeout_ms, x.validate_only, tags) = _unpack_ioB(buf, pos)
            pos += 6
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(CreateTopicsRequest)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_creatable_topic(buf, pos, n, version)
            (x.timeout_ms, x.validate_only) = _unpack_io(buf, pos)
            pos += 5
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[CreateTopicsRequest], version: int) -> None:
    w = out.small.append
    if version >= 5:
        for x in items:
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_request_creatable_topic(out, topics, version)
            w(_pack_iox(x.timeout_ms, x.validate_only))
    else:
        for x in items:
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_request_creatable_topic(out, topics, version)
            w(_pack_io(x.timeout_ms, x.validate_only))


CreateTopicsRequest.READ = _read_request
CreateTopicsRequest.WRITE = _write_request


class CreateTopicsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "topics",
    )
    API_KEY = 19
    MIN_VERSION = 2
    MAX_VERSION = 7
    FLEXIBLE_VERSION = 5

    class CreatableTopicResult(Struct):
        __slots__ = (
            "name",
            "topic_id",
            "error_code",
            "error_message",
            "topic_config_error_code",
            "num_partitions",
            "replication_factor",
            "configs",
        )

        def __init__(
            self,
            *,
            name: str = "",
            topic_id: bytes = ZERO_UUID,
            error_code: int = 0,
            error_message: str | None = None,
            topic_config_error_code: int = 0,
            num_partitions: int = -1,
            replication_factor: int = -1,
            configs: list[CreateTopicsResponse.CreatableTopicConfigs] | None = EMPTY,
        ) -> None:
            self.name: str = name
            self.topic_id: bytes = topic_id
            self.error_code: int = error_code
            self.error_message: str | None = error_message
            self.topic_config_error_code: int = topic_config_error_code
            self.num_partitions: int = num_partitions
            self.replication_factor: int = replication_factor
            self.configs: list[CreateTopicsResponse.CreatableTopicConfigs] | None = [] if configs is EMPTY else configs

    class CreatableTopicConfigs(Struct):
        __slots__ = (
            "name",
            "value",
            "read_only",
            "config_source",
            "is_sensitive",
        )

        def __init__(
            self,
            *,
            name: str = "",
            value: str | None = None,
            read_only: bool = False,
            config_source: int = -1,
            is_sensitive: bool = False,
        ) -> None:
            self.name: str = name
            self.value: str | None = value
            self.read_only: bool = read_only
            self.config_source: int = config_source
            self.is_sensitive: bool = is_sensitive

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[CreateTopicsResponse.CreatableTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[CreateTopicsResponse.CreatableTopicResult] = [] if topics is EMPTY else topics


def _read_response_creatable_topic_configs(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[CreateTopicsResponse.CreatableTopicConfigs], int]:
    items: list[CreateTopicsResponse.CreatableTopicConfigs] = []
    for _ in range(count):
        x = new(CreateTopicsResponse.CreatableTopicConfigs)
        x.name, pos = p.read_compact_string(buf, pos)
        x.value, pos = p.read_compact_nullable_string(buf, pos)
        (x.read_only, x.config_source, x.is_sensitive, tags) = _unpack_oboB(buf, pos)
        pos += 4
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_creatable_topic_configs(out: Out, items: Sequence[CreateTopicsResponse.CreatableTopicConfigs], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.name))
        w(p.compact_nullable_string(x.value))
        w(_pack_obox(x.read_only, x.config_source, x.is_sensitive))


def _read_response_creatable_topic_result(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[CreateTopicsResponse.CreatableTopicResult], int]:
    items: list[CreateTopicsResponse.CreatableTopicResult] = []
    if version >= 7:
        for _ in range(count):
            x = new(CreateTopicsResponse.CreatableTopicResult)
            x.topic_config_error_code = 0
            x.name, pos = p.read_compact_string(buf, pos)
            (x.topic_id, x.error_code) = _unpack_uh(buf, pos)
            pos += 18
            x.error_message, pos = p.read_compact_nullable_string(buf, pos)
            (x.num_partitions, x.replication_factor) = _unpack_ih(buf, pos)
            pos += 6
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                x.configs = None
            else:
                x.configs, pos = _read_response_creatable_topic_configs(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                if tags >= 128:
                    tags, pos = p.more_uvarint(buf, pos, tags)
                for _ in range(tags):
                    tag, pos = p.read_uvarint(buf, pos)
                    pos, end = p.read_tag_end(buf, pos)
                    if tag == 0:
                        (x.topic_config_error_code,) = _unpack_h(buf, pos)
                        pos += 2
                        if pos != end:
                            raise p.bad_tag("TopicConfigErrorCode")
                    else:
                        pos = end
            items.append(x)
    elif version >= 5:
        for _ in range(count):
            x = new(CreateTopicsResponse.CreatableTopicResult)
            x.topic_id = ZERO_UUID
            x.topic_config_error_code = 0
            x.name, pos = p.read_compact_string(buf, pos)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.error_message, pos = p.read_compact_nullable_string(buf, pos)
            (x.num_partitions, x.replication_factor) = _unpack_ih(buf, pos)
            pos += 6
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                x.configs = None
            else:
                x.configs, pos = _read_response_creatable_topic_configs(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                if tags >= 128:
                    tags, pos = p.more_uvarint(buf, pos, tags)
                for _ in range(tags):
                    tag, pos = p.read_uvarint(buf, pos)
                    pos, end = p.read_tag_end(buf, pos)
                    if tag == 0:
                        (x.topic_config_error_code,) = _unpack_h(buf, pos)
                        pos += 2
                        if pos != end:
                            raise p.bad_tag("TopicConfigErrorCode")
                    else:
                        pos = end
            items.append(x)
    else:
        for _ in range(count):
            x = new(CreateTopicsResponse.CreatableTopicResult)
            x.topic_id = ZERO_UUID
            x.topic_config_error_code = 0
            x.num_partitions = -1
            x.replication_factor = -1
            x.configs = []
            x.name, pos = p.read_string(buf, pos)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.error_message, pos = p.read_nullable_string(buf, pos)
            items.append(x)
    return items, pos


def _write_response_creatable_topic_result(out: Out, items: Sequence[CreateTopicsResponse.CreatableTopicResult], version: int) -> None:
    w = out.small.append
    tagged: list[tuple[int, Out]]
    if version >= 7:
        for x in items:
            w(p.compact_string(x.name))
            w(_pack_uh(x.topic_id, x.error_code))
            w(p.compact_nullable_string(x.error_message))
            w(_pack_ih(x.num_partitions, x.replication_factor))
            configs = x.configs
            if configs is None:
                w(b"\0")
            else:
                n = len(configs) + 1
                w(BYTE[n] if n < 128 else p.uvarint(n))
                if configs:
                    _write_response_creatable_topic_configs(out, configs, version)
            if x.topic_config_error_code != 0:
                tagged = []
                if x.topic_config_error_code != 0:
                    inner = Out()
                    inner.small.append(_pack_h(x.topic_config_error_code))
                    tagged.append((0, inner))
                p.write_tags(out, tagged)
            else:
                w(b"\0")
    elif version >= 5:
        for x in items:
            w(p.compact_string(x.name))
            w(_pack_h(x.error_code))
            w(p.compact_nullable_string(x.error_message))
            w(_pack_ih(x.num_partitions, x.replication_factor))
            configs = x.configs
            if configs is None:
                w(b"\0")
            else:
                n = len(configs) + 1
                w(BYTE[n] if n < 128 else p.uvarint(n))
                if configs:
                    _write_response_creatable_topic_configs(out, configs, version)
            if x.topic_config_error_code != 0:
                tagged = []
                if x.topic_config_error_code != 0:
                    inner = Out()
                    inner.small.append(_pack_h(x.topic_config_error_code))
                    tagged.append((0, inner))
                p.write_tags(out, tagged)
            else:
                w(b"\0")
    else:
        for x in items:
            w(p.string(x.name))
            w(_pack_h(x.error_code))
            w(p.nullable_string(x.error_message))


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[CreateTopicsResponse], int]:
    items: list[CreateTopicsResponse] = []
    if version >= 5:
        for _ in range(count):
            x = new(CreateTopicsResponse)
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_creatable_topic_result(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(CreateTopicsResponse)
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_creatable_topic_result(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[CreateTopicsResponse], version: int) -> None:
    w = out.small.append
    if version >= 5:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_response_creatable_topic_result(out, topics, version)
            w(b"\0")
    else:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_response_creatable_topic_result(out, topics, version)


CreateTopicsResponse.READ = _read_response
CreateTopicsResponse.WRITE = _write_response
