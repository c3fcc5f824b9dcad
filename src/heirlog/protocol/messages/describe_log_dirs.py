"""Written by `python -m heirlog.protocol.generator` from specs/messages/describe_log_dirs.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, Message, Out, Struct, new

_unpack_h = _Shape(">h").unpack_from
_pack_h = _Shape(">h").pack
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_ih = _Shape(">ih").unpack_from
_pack_ih = _Shape(">ih").pack
_unpack_iqqo = _Shape(">iqq?").unpack_from
_pack_iqqo = _Shape(">iqq?").pack
_unpack_iqqoB = _Shape(">iqq?B").unpack_from
_pack_iqqox = _Shape(">iqq?x").pack
_unpack_qqB = _Shape(">qqB").unpack_from
_pack_qqx = _Shape(">qqx").pack


class DescribeLogDirsRequest(Message):
    __slots__ = (
        "topics",
    )
    API_KEY = 35
    MIN_VERSION = 1
    MAX_VERSION = 4
    FLEXIBLE_VERSION = 2

    class DescribableLogDirTopic(Struct):
        __slots__ = (
            "topic",
            "partitions",
        )

        def __init__(
            self,
            *,
            topic: str = "",
            partitions: list[int] = EMPTY,
        ) -> None:
            self.topic: str = topic
            self.partitions: list[int] = [] if partitions is EMPTY else partitions

    def __init__(
        self,
        *,
        topics: list[DescribeLogDirsRequest.DescribableLogDirTopic] | None = EMPTY,
    ) -> None:
        self.topics: list[DescribeLogDirsRequest.DescribableLogDirTopic] | None = [] if topics is EMPTY else topics


def _read_request_describable_log_dir_topic(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeLogDirsRequest.DescribableLogDirTopic], int]:
    items: list[DescribeLogDirsRequest.DescribableLogDirTopic] = []
    if count > 1:
        p.spend(count)
    if version >= 2:
        for _ in range(count):
            x = new(DescribeLogDirsRequest.DescribableLogDirTopic)
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
            x = new(DescribeLogDirsRequest.DescribableLogDirTopic)
            x.topic, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = p.read_int32s(buf, pos, n)
            items.append(x)
    return items, pos


def _write_request_describable_log_dir_topic(out: Out, items: Sequence[DescribeLogDirsRequest.DescribableLogDirTopic], version: int) -> None:
    w = out.small.append
    if version >= 2:
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


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeLogDirsRequest], int]:
    items: list[DescribeLogDirsRequest] = []
    if version >= 2:
        for _ in range(count):
            x = new(DescribeLogDirsRequest)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                x.topics = None
            else:
                x.topics, pos = _read_request_describable_log_dir_topic(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DescribeLogDirsRequest)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                x.topics = None
            else:
                x.topics, pos = _read_request_describable_log_dir_topic(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[DescribeLogDirsRequest], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            topics = x.topics
            if topics is None:
                w(b"\0")
            else:
                n = len(topics) + 1
                w(BYTE[n] if n < 128 else p.uvarint(n))
                if topics:
                    _write_request_describable_log_dir_topic(out, topics, version)
            w(b"\0")
    else:
        for x in items:
            topics = x.topics
            if topics is None:
                w(b"\xff\xff\xff\xff")
            else:
                w(_pack_i(len(topics)))
                if topics:
                    _write_request_describable_log_dir_topic(out, topics, version)


DescribeLogDirsRequest.READ = _read_request
DescribeLogDirsRequest.WRITE = _write_request


class DescribeLogDirsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "results",
    )
    API_KEY = 35
    MIN_VERSION = 1
    MAX_VERSION = 4
    FLEXIBLE_VERSION = 2

    class DescribeLogDirsResult(Struct):
        __slots__ = (
            "error_code",
            "log_dir",
            "topics",
            "total_bytes",
            "usable_bytes",
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            log_dir: str = "",
            topics: list[DescribeLogDirsResponse.DescribeLogDirsTopic] = EMPTY,
            total_bytes: int = -1,
            usable_bytes: int = -1,
        ) -> None:
            self.error_code: int = error_code
            self.log_dir: str = log_dir
            self.topics: list[DescribeLogDirsResponse.DescribeLogDirsTopic] = [] if topics is EMPTY else topics
            self.total_bytes: int = total_bytes
            self.usable_bytes: int = usable_bytes

    class DescribeLogDirsTopic(Struct):
        __slots__ = (
            "name",
            "partitions",
        )

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[DescribeLogDirsResponse.DescribeLogDirsPartition] = EMPTY,
        ) -> None:
            self.name: str = name
            self.partitions: list[DescribeLogDirsResponse.DescribeLogDirsPartition] = [] if partitions is EMPTY else partitions

    class DescribeLogDirsPartition(Struct):
        __slots__ = (
            "partition_index",
            "partition_size",
            "offset_lag",
            "is_future_key",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            partition_size: int = 0,
            offset_lag: int = 0,
            is_future_key: bool = False,
        ) -> None:
            self.partition_index: int = partition_index
            self.partition_size: int = partition_size
            self.offset_lag: int = offset_lag
            self.is_future_key: bool = is_future_key

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results: list[DescribeLogDirsResponse.DescribeLogDirsResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.results: list[DescribeLogDirsResponse.DescribeLogDirsResult] = [] if results is EMPTY else results


def _read_response_describe_log_dirs_partition(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeLogDirsResponse.DescribeLogDirsPartition], int]:
    items: list[DescribeLogDirsResponse.DescribeLogDirsPartition] = []
    if version >= 2:
        for _ in range(count):
            x = new(DescribeLogDirsResponse.DescribeLogDirsPartition)
            (x.partition_index, x.partition_size, x.offset_lag, x.is_future_key, tags) = _unpack_iqqoB(buf, pos)
            pos += 22
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DescribeLogDirsResponse.DescribeLogDirsPartition)
            (x.partition_index, x.partition_size, x.offset_lag, x.is_future_key) = _unpack_iqqo(buf, pos)
            pos += 21
            items.append(x)
    return items, pos


def _write_response_describe_log_dirs_partition(out: Out, items: Sequence[DescribeLogDirsResponse.DescribeLogDirsPartition], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_iqqox(x.partition_index, x.partition_size, x.offset_lag, x.is_future_key))
    else:
        for x in items:
            w(_pack_iqqo(x.partition_index, x.partition_size, x.offset_lag, x.is_future_key))


def _read_response_describe_log_dirs_topic(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeLogDirsResponse.DescribeLogDirsTopic], int]:
    items: list[DescribeLogDirsResponse.DescribeLogDirsTopic] = []
    if version >= 2:
        for _ in range(count):
            x = new(DescribeLogDirsResponse.DescribeLogDirsTopic)
            x.name, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_response_describe_log_dirs_partition(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DescribeLogDirsResponse.DescribeLogDirsTopic)
            x.name, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_response_describe_log_dirs_partition(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response_describe_log_dirs_topic(out: Out, items: Sequence[DescribeLogDirsResponse.DescribeLogDirsTopic], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(p.compact_string(x.name))
            partitions = x.partitions
            n = len(partitions) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partitions:
                _write_response_describe_log_dirs_partition(out, partitions, version)
            w(b"\0")
    else:
        for x in items:
            w(p.string(x.name))
            partitions = x.partitions
            w(_pack_i(len(partitions)))
            if partitions:
                _write_response_describe_log_dirs_partition(out, partitions, version)


def _read_response_describe_log_dirs_result(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeLogDirsResponse.DescribeLogDirsResult], int]:
    items: list[DescribeLogDirsResponse.DescribeLogDirsResult] = []
    if version >= 4:
        for _ in range(count):
            x = new(DescribeLogDirsResponse.DescribeLogDirsResult)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.log_dir, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_describe_log_dirs_topic(buf, pos, n, version)
            (x.total_bytes, x.usable_bytes, tags) = _unpack_qqB(buf, pos)
            pos += 17
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 2:
        for _ in range(count):
            x = new(DescribeLogDirsResponse.DescribeLogDirsResult)
            x.total_bytes = -1
            x.usable_bytes = -1
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.log_dir, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_describe_log_dirs_topic(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DescribeLogDirsResponse.DescribeLogDirsResult)
            x.total_bytes = -1
            x.usable_bytes = -1
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.log_dir, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_describe_log_dirs_topic(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response_describe_log_dirs_result(out: Out, items: Sequence[DescribeLogDirsResponse.DescribeLogDirsResult], version: int) -> None:
    w = out.small.append
    if version >= 4:
        for x in items:
            w(_pack_h(x.error_code))
            w(p.compact_string(x.log_dir))
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_response_describe_log_dirs_topic(out, topics, version)
            w(_pack_qqx(x.total_bytes, x.usable_bytes))
    elif version >= 2:
        for x in items:
            w(_pack_h(x.error_code))
            w(p.compact_string(x.log_dir))
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_response_describe_log_dirs_topic(out, topics, version)
            w(b"\0")
    else:
        for x in items:
            w(_pack_h(x.error_code))
            w(p.string(x.log_dir))
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_response_describe_log_dirs_topic(out, topics, version)


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeLogDirsResponse], int]:
    items: list[DescribeLogDirsResponse] = []
    if version >= 3:
        for _ in range(count):
            x = new(DescribeLogDirsResponse)
            (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
            pos += 6
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Results")
            x.results, pos = _read_response_describe_log_dirs_result(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 2:
        for _ in range(count):
            x = new(DescribeLogDirsResponse)
            x.error_code = 0
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Results")
            x.results, pos = _read_response_describe_log_dirs_result(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DescribeLogDirsResponse)
            x.error_code = 0
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Results")
            x.results, pos = _read_response_describe_log_dirs_result(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[DescribeLogDirsResponse], version: int) -> None:
    w = out.small.append
    if version >= 3:
        for x in items:
            w(_pack_ih(x.throttle_time_ms, x.error_code))
            results = x.results
            n = len(results) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if results:
                _write_response_describe_log_dirs_result(out, results, version)
            w(b"\0")
    elif version >= 2:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            results = x.results
            n = len(results) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if results:
                _write_response_describe_log_dirs_result(out, results, version)
            w(b"\0")
    else:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            results = x.results
            w(_pack_i(len(results)))
            if results:
                _write_response_describe_log_dirs_result(out, results, version)


DescribeLogDirsResponse.READ = _read_response
DescribeLogDirsResponse.WRITE = _write_response
