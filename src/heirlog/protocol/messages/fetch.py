"""Written by `python -m heirlog.protocol.generator` from specs/messages/fetch.spec. Do not edit."""

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
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_ihi = _Shape(">ihi").unpack_from
_pack_ihi = _Shape(">ihi").pack
_unpack_ihqq = _Shape(">ihqq").unpack_from
_pack_ihqq = _Shape(">ihqq").pack
_unpack_ihqqq = _Shape(">ihqqq").unpack_from
_pack_ihqqq = _Shape(">ihqqq").pack
_unpack_iiB = _Shape(">iiB").unpack_from
_unpack_iiibii = _Shape(">iiibii").unpack_from
_pack_iiibii = _Shape(">iiibii").pack
_unpack_iiiib = _Shape(">iiiib").unpack_from
_pack_iiiib = _Shape(">iiiib").pack
_unpack_iiiibii = _Shape(">iiiibii").unpack_from
_pack_iiiibii = _Shape(">iiiibii").pack
_pack_iiqiqi = _Shape(">iiqiqi").pack
_unpack_iiqiqiB = _Shape(">iiqiqiB").unpack_from
_pack_iiqiqix = _Shape(">iiqiqix").pack
_unpack_iiqqi = _Shape(">iiqqi").unpack_from
_pack_iiqqi = _Shape(">iiqqi").pack
_pack_iix = _Shape(">iix").pack
_unpack_iqB = _Shape(">iqB").unpack_from
_unpack_iqi = _Shape(">iqi").unpack_from
_pack_iqi = _Shape(">iqi").pack
_unpack_iqqi = _Shape(">iqqi").unpack_from
_pack_iqqi = _Shape(">iqqi").pack
_pack_iqx = _Shape(">iqx").pack
_unpack_q = _Shape(">q").unpack_from
_pack_q = _Shape(">q").pack
_unpack_qiB = _Shape(">qiB").unpack_from
_pack_qix = _Shape(">qix").pack
_unpack_qq = _Shape(">qq").unpack_from
_pack_qq = _Shape(">qq").pack
_unpack_qqB = _Shape(">qqB").unpack_from
_pack_qqx = _Shape(">qqx").pack


class FetchRequest(Message):
    __slots__ = (
        "cluster_id",
        "replica_state",
        "replica_id",
        "max_wait_ms",
        "min_bytes",
        "max_bytes",
        "isolation_level",
        "session_id",
        "session_epoch",
        "topics",
        "forgotten_topics_data",
        "rack_id",
    )
    API_KEY = 1
    MIN_VERSION = 4
    MAX_VERSION = 18
    FLEXIBLE_VERSION = 12

    class ReplicaState(Struct):
        __slots__ = (
            "replica_id",
            "replica_epoch",
        )

        def __init__(
            self,
            *,
            replica_id: int = -1,
            replica_epoch: int = -1,
        ) -> None:
            self.replica_id: int = replica_id
            self.replica_epoch: int = replica_epoch

    class FetchTopic(Struct):
        __slots__ = (
            "topic_id",
            "topic",
            "partitions",
        )

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO_UUID,
            topic: str = "",
            partitions: list[FetchRequest.FetchPartition] = EMPTY,
        ) -> None:
            self.topic_id: bytes = topic_id
            self.topic: str = topic
            self.partitions: list[FetchRequest.FetchPartition] = [] if partitions is EMPTY else partitions

    class FetchPartition(Struct):
        __slots__ = (
            "partition",
            "current_leader_epoch",
            "fetch_offset",
            "last_fetched_epoch",
            "log_start_offset",
            "partition_max_bytes",
            "replica_directory_id",
            "high_watermark",
        )

        def __init__(
            self,
            *,
            partition: int = 0,
            current_leader_epoch: int = -1,
            fetch_offset: int = 0,
            last_fetched_epoch: int = -1,
            log_start_offset: int = -1,
            partition_max_bytes: int = 0,
            replica_directory_id: bytes = ZERO_UUID,
            high_watermark: int = 9223372036854775807,
        ) -> None:
            self.partition: int = partition
            self.current_leader_epoch: int = current_leader_epoch
            self.fetch_offset: int = fetch_offset
            self.last_fetched_epoch: int = last_fetched_epoch
            self.log_start_offset: int = log_start_offset
            self.partition_max_bytes: int = partition_max_bytes
            self.replica_directory_id: bytes = replica_directory_id
            self.high_watermark: int = high_watermark

    class ForgottenTopic(Struct):
        __slots__ = (
            "topic_id",
            "topic",
            "partitions",
        )

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO_UUID,
            topic: str = "",
            partitions: list[int] = EMPTY,
        ) -> None:
            self.topic_id: bytes = topic_id
            self.topic: str = topic
            self.partitions: list[int] = [] if partitions is EMPTY else partitions

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        replica_state: FetchRequest.ReplicaState | None = None,
        replica_id: int = -1,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        isolation_level: int = 0,
        session_id: int = 0,
        session_epoch: int = -1,
        topics: list[FetchRequest.FetchTopic] = EMPTY,
        forgotten_topics_data: list[FetchRequest.ForgottenTopic] = EMPTY,
        rack_id: str = "",
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.replica_state: FetchRequest.ReplicaState = _DEFAULT_REQUEST_REPLICA_STATE if replica_state is None else replica_state
        self.replica_id: int = replica_id
        self.max_wait_ms: int = max_wait_ms
        self.min_bytes: int = min_bytes
        self.max_bytes: int = max_bytes
        self.isolation_level: int = isolation_level
        self.session_id: int = session_id
        self.session_epoch: int = session_epoch
        self.topics: list[FetchRequest.FetchTopic] = [] if topics is EMPTY else topics
        self.forgotten_topics_data: list[FetchRequest.ForgottenTopic] = [] if forgotten_topics_data is EMPTY else forgotten_topics_data
        self.rack_id: str = rack_id


_DEFAULT_REQUEST_REPLICA_STATE: Final = p.frozen_default(FetchRequest.ReplicaState)


def _read_request_forgotten_topic(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FetchRequest.ForgottenTopic], int]:
    items: list[FetchRequest.ForgottenTopic] = []
    if count > 1:
        p.spend(count)
    if version >= 13:
        for _ in range(count):
            x = new(FetchRequest.ForgottenTopic)
            x.topic = ""
            (x.topic_id,) = _unpack_u(buf, pos)
            pos += 16
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
    elif version >= 12:
        for _ in range(count):
            x = new(FetchRequest.ForgottenTopic)
            x.topic_id = ZERO_UUID
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
            x = new(FetchRequest.ForgottenTopic)
            x.topic_id = ZERO_UUID
            x.topic, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = p.read_int32s(buf, pos, n)
            items.append(x)
    return items, pos


def _write_request_forgotten_topic(out: Out, items: Sequence[FetchRequest.ForgottenTopic], version: int) -> None:
    w = out.small.append
    if version >= 13:
        for x in items:
            w(_pack_u(x.topic_id))
            partitions = x.partitions
            n = len(partitions) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partitions:
                w(p.int32s(partitions))
            w(b"\0")
    elif version >= 12:
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


def _read_request_fetch_partition(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FetchRequest.FetchPartition], int]:
    items: list[FetchRequest.FetchPartition] = []
    if count > 1:
        p.spend(count)
    if version >= 18:
        for _ in range(count):
            x = new(FetchRequest.FetchPartition)
            x.replica_directory_id = ZERO_UUID
            x.high_watermark = 9223372036854775807
            (x.partition, x.current_leader_epoch, x.fetch_offset, x.last_fetched_epoch, x.log_start_offset, x.partition_max_bytes, tags) = _unpack_iiqiqiB(buf, pos)
            pos += 33
            if tags:
                if tags >= 128:
                    tags, pos = p.more_uvarint(buf, pos, tags)
                for _ in range(tags):
                    tag, pos = p.read_uvarint(buf, pos)
                    pos, end = p.read_tag_end(buf, pos)
                    if tag == 0:
                        (x.replica_directory_id,) = _unpack_u(buf, pos)
                        pos += 16
                        if pos != end:
                            raise p.bad_tag("ReplicaDirectoryId")
                    elif tag == 1:
                        (x.high_watermark,) = _unpack_q(buf, pos)
                        pos += 8
                        if pos != end:
                            raise p.bad_tag("HighWatermark")
                    else:
                        pos = end
            items.append(x)
    elif version >= 17:
        for _ in range(count):
            x = new(FetchRequest.FetchPartition)
            x.replica_directory_id = ZERO_UUID
            x.high_watermark = 9223372036854775807
            (x.partition, x.current_leader_epoch, x.fetch_offset, x.last_fetched_epoch, x.log_start_offset, x.partition_max_bytes, tags) = _unpack_iiqiqiB(buf, pos)
            pos += 33
            if tags:
                if tags >= 128:
                    tags, pos = p.more_uvarint(buf, pos, tags)
                for _ in range(tags):
                    tag, pos = p.read_uvarint(buf, pos)
                    pos, end = p.read_tag_end(buf, pos)
                    if tag == 0:
                        (x.replica_directory_id,) = _unpack_u(buf, pos)
                        pos += 16
                        if pos != end:
                            raise p.bad_tag("ReplicaDirectoryId")
                    else:
                        pos = end
            items.append(x)
    elif version >= 12:
        for _ in range(count):
            x = new(FetchRequest.FetchPartition)
            x.replica_directory_id = ZERO_UUID
            x.high_watermark = 9223372036854775807
            (x.partition, x.current_leader_epoch, x.fetch_offset, x.last_fetched_epoch, x.log_start_offset, x.partition_max_bytes, tags) = _unpack_iiqiqiB(buf, pos)
            pos += 33
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 9:
        for _ in range(count):
            x = new(FetchRequest.FetchPartition)
            x.last_fetched_epoch = -1
            x.replica_directory_id = ZERO_UUID
            x.high_watermark = 9223372036854775807
            (x.partition, x.current_leader_epoch, x.fetch_offset, x.log_start_offset, x.partition_max_bytes) = _unpack_iiqqi(buf, pos)
            pos += 28
            items.append(x)
    elif version >= 5:
        for _ in range(count):
            x = new(FetchRequest.FetchPartition)
            x.current_leader_epoch = -1
            x.last_fetched_epoch = -1
            x.replica_directory_id = ZERO_UUID
            x.high_watermark = 9223372036854775807
            (x.partition, x.fetch_offset, x.log_start_offset, x.partition_max_bytes) = _unpack_iqqi(buf, pos)
            pos += 24
            items.append(x)
    else:
        for _ in range(count):
            x = new(FetchRequest.FetchPartition)
            x.current_leader_epoch = -1
            x.last_fetched_epoch = -1
            x.log_start_offset = -1
            x.replica_directory_id = ZERO_UUID
            x.high_watermark = 9223372036854775807
            (x.partition, x.fetch_offset, x.partition_max_bytes) = _unpack_iqi(buf, pos)
            pos += 16
            items.append(x)
    return items, pos


def _write_request_fetch_partition(out: Out, items: Sequence[FetchRequest.FetchPartition], version: int) -> None:
    w = out.small.append
    tagged: list[tuple[int, Out]]
    if version >= 18:
        for x in items:
            w(_pack_iiqiqi(x.partition, x.current_leader_epoch, x.fetch_offset, x.last_fetched_epoch, x.log_start_offset, x.partition_max_bytes))
            if x.replica_directory_id != ZERO_UUID or x.high_watermark != 9223372036854775807:
                tagged = []
                if x.replica_directory_id != ZERO_UUID:
                    inner = Out()
                    inner.small.append(_pack_u(x.replica_directory_id))
                    tagged.append((0, inner))
                if x.high_watermark != 9223372036854775807:
                    inner = Out()
                    inner.small.append(_pack_q(x.high_watermark))
                    tagged.append((1, inner))
                p.write_tags(out, tagged)
            else:
                w(b"\0")
    elif version >= 17:
        for x in items:
            w(_pack_iiqiqi(x.partition, x.current_leader_epoch, x.fetch_offset, x.last_fetched_epoch, x.log_start_offset, x.partition_max_bytes))
            if x.replica_directory_id != ZERO_UUID:
                tagged = []
                if x.replica_directory_id != ZERO_UUID:
                    inner = Out()
                    inner.small.append(_pack_u(x.replica_directory_id))
                    tagged.append((0, inner))
                p.write_tags(out, tagged)
            else:
                w(b"\0")
    elif version >= 12:
        for x in items:
            w(_pack_iiqiqix(x.partition, x.current_leader_epoch, x.fetch_offset, x.last_fetched_epoch, x.log_start_offset, x.partition_max_bytes))
    elif version >= 9:
        for x in items:
            w(_pack_iiqqi(x.partition, x.current_leader_epoch, x.fetch_offset, x.log_start_offset, x.partition_max_bytes))
    elif version >= 5:
        for x in items:
            w(_pack_iqqi(x.partition, x.fetch_offset, x.log_start_offset, x.partition_max_bytes))
    else:
        for x in items:
            w(_pack_iqi(x.partition, x.fetch_offset, x.partition_max_bytes))


def _read_request_fetch_topic(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FetchRequest.FetchTopic], int]:
    items: list[FetchRequest.FetchTopic] = []
    if count > 1:
        p.spend(count)
    if version >= 13:
        for _ in range(count):
            x = new(FetchRequest.FetchTopic)
            x.topic = ""
            (x.topic_id,) = _unpack_u(buf, pos)
            pos += 16
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_request_fetch_partition(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 12:
        for _ in range(count):
            x = new(FetchRequest.FetchTopic)
            x.topic_id = ZERO_UUID
            x.topic, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_request_fetch_partition(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(FetchRequest.FetchTopic)
            x.topic_id = ZERO_UUID
            x.topic, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_request_fetch_partition(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_request_fetch_topic(out: Out, items: Sequence[FetchRequest.FetchTopic], version: int) -> None:
    w = out.small.append
    if version >= 13:
        for x in items:
            w(_pack_u(x.topic_id))
            partitions = x.partitions
            n = len(partitions) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partitions:
                _write_request_fetch_partition(out, partitions, version)
            w(b"\0")
    elif version >= 12:
        for x in items:
            w(p.compact_string(x.topic))
            partitions = x.partitions
            n = len(partitions) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partitions:
                _write_request_fetch_partition(out, partitions, version)
            w(b"\0")
    else:
        for x in items:
            w(p.string(x.topic))
            partitions = x.partitions
            w(_pack_i(len(partitions)))
            if partitions:
                _write_request_fetch_partition(out, partitions, version)


def _read_request_replica_state(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FetchRequest.ReplicaState], int]:
    items: list[FetchRequest.ReplicaState] = []
    if count > 1:
        p.spend(count)
    for _ in range(count):
        x = new(FetchRequest.ReplicaState)
        (x.replica_id, x.replica_epoch, tags) = _unpack_iqB(buf, pos)
        pos += 13
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request_replica_state(out: Out, items: Sequence[FetchRequest.ReplicaState], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_iqx(x.replica_id, x.replica_epoch))


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FetchRequest], int]:
    items: list[FetchRequest] = []
    if version >= 15:
        for _ in range(count):
            x = new(FetchRequest)
            x.cluster_id = None
            x.replica_state = _DEFAULT_REQUEST_REPLICA_STATE
            x.replica_id = -1
            (x.max_wait_ms, x.min_bytes, x.max_bytes, x.isolation_level, x.session_id, x.session_epoch) = _unpack_iiibii(buf, pos)
            pos += 21
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_fetch_topic(buf, pos, n, version)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("ForgottenTopicsData")
            x.forgotten_topics_data, pos = _read_request_forgotten_topic(buf, pos, n, version)
            x.rack_id, pos = p.read_compact_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                if tags >= 128:
                    tags, pos = p.more_uvarint(buf, pos, tags)
                for _ in range(tags):
                    tag, pos = p.read_uvarint(buf, pos)
                    pos, end = p.read_tag_end(buf, pos)
                    if tag == 0:
                        x.cluster_id, pos = p.read_compact_nullable_string(buf, pos)
                        if pos != end:
                            raise p.bad_tag("ClusterId")
                    elif tag == 1:
                        ((x.replica_state,), pos) = _read_request_replica_state(buf, pos, 1, version)
                        if pos != end:
                            raise p.bad_tag("ReplicaState")
                    else:
                        pos = end
            items.append(x)
    elif version >= 12:
        for _ in range(count):
            x = new(FetchRequest)
            x.cluster_id = None
            x.replica_state = _DEFAULT_REQUEST_REPLICA_STATE
            (x.replica_id, x.max_wait_ms, x.min_bytes, x.max_bytes, x.isolation_level, x.session_id, x.session_epoch) = _unpack_iiiibii(buf, pos)
            pos += 25
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_fetch_topic(buf, pos, n, version)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("ForgottenTopicsData")
            x.forgotten_topics_data, pos = _read_request_forgotten_topic(buf, pos, n, version)
            x.rack_id, pos = p.read_compact_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                if tags >= 128:
                    tags, pos = p.more_uvarint(buf, pos, tags)
                for _ in range(tags):
                    tag, pos = p.read_uvarint(buf, pos)
                    pos, end = p.read_tag_end(buf, pos)
                    if tag == 0:
                        x.cluster_id, pos = p.read_compact_nullable_string(buf, pos)
                        if pos != end:
                            raise p.bad_tag("ClusterId")
                    else:
                        pos = end
            items.append(x)
    elif version >= 11:
        for _ in range(count):
            x = new(FetchRequest)
            x.cluster_id = None
            x.replica_state = _DEFAULT_REQUEST_REPLICA_STATE
            (x.replica_id, x.max_wait_ms, x.min_bytes, x.max_bytes, x.isolation_level, x.session_id, x.session_epoch) = _unpack_iiiibii(buf, pos)
            pos += 25
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_fetch_topic(buf, pos, n, version)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("ForgottenTopicsData")
            x.forgotten_topics_data, pos = _read_request_forgotten_topic(buf, pos, n, version)
            x.rack_id, pos = p.read_string(buf, pos)
            items.append(x)
    elif version >= 7:
        for _ in range(count):
            x = new(FetchRequest)
            x.cluster_id = None
            x.replica_state = _DEFAULT_REQUEST_REPLICA_STATE
            x.rack_id = ""
            (x.replica_id, x.max_wait_ms, x.min_bytes, x.max_bytes, x.isolation_level, x.session_id, x.session_epoch) = _unpack_iiiibii(buf, pos)
            pos += 25
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_fetch_topic(buf, pos, n, version)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("ForgottenTopicsData")
            x.forgotten_topics_data, pos = _read_request_forgotten_topic(buf, pos, n, version)
            items.append(x)
    else:
        for _ in range(count):
            x = new(FetchRequest)
            x.cluster_id = None
            x.replica_state = _DEFAULT_REQUEST_REPLICA_STATE
            x.session_id = 0
            x.session_epoch = -1
            x.forgotten_topics_data = []
            x.rack_id = ""
            (x.replica_id, x.max_wait_ms, x.min_bytes, x.max_bytes, x.isolation_level) = _unpack_iiiib(buf, pos)
            pos += 17
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_fetch_topic(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[FetchRequest], version: int) -> None:
    w = out.small.append
    tagged: list[tuple[int, Out]]
    if version >= 15:
        for x in items:
            w(_pack_iiibii(x.max_wait_ms, x.min_bytes, x.max_bytes, x.isolation_level, x.session_id, x.session_epoch))
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_request_fetch_topic(out, topics, version)
            forgotten_topics_data = x.forgotten_topics_data
            n = len(forgotten_topics_data) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if forgotten_topics_data:
                _write_request_forgotten_topic(out, forgotten_topics_data, version)
            w(p.compact_string(x.rack_id))
            if x.cluster_id is not None or (x.replica_state is not _DEFAULT_REQUEST_REPLICA_STATE and x.replica_state != _DEFAULT_REQUEST_REPLICA_STATE):
                tagged = []
                if x.cluster_id is not None:
                    inner = Out()
                    inner.small.append(p.compact_string(x.cluster_id))
                    tagged.append((0, inner))
                if x.replica_state is not _DEFAULT_REQUEST_REPLICA_STATE and x.replica_state != _DEFAULT_REQUEST_REPLICA_STATE:
                    inner = Out()
                    _write_request_replica_state(inner, (x.replica_state,), version)
                    tagged.append((1, inner))
                p.write_tags(out, tagged)
            else:
                w(b"\0")
    elif version >= 12:
        for x in items:
            w(_pack_iiiibii(x.replica_id, x.max_wait_ms, x.min_bytes, x.max_bytes, x.isolation_level, x.session_id, x.session_epoch))
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_request_fetch_topic(out, topics, version)
            forgotten_topics_data = x.forgotten_topics_data
            n = len(forgotten_topics_data) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if forgotten_topics_data:
                _write_request_forgotten_topic(out, forgotten_topics_data, version)
            w(p.compact_string(x.rack_id))
            if x.cluster_id is not None:
                tagged = []
                if x.cluster_id is not None:
                    inner = Out()
                    inner.small.append(p.compact_string(x.cluster_id))
                    tagged.append((0, inner))
                p.write_tags(out, tagged)
            else:
                w(b"\0")
    elif version >= 11:
        for x in items:
            w(_pack_iiiibii(x.replica_id, x.max_wait_ms, x.min_bytes, x.max_bytes, x.isolation_level, x.session_id, x.session_epoch))
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_request_fetch_topic(out, topics, version)
            forgotten_topics_data = x.forgotten_topics_data
            w(_pack_i(len(forgotten_topics_data)))
            if forgotten_topics_data:
                _write_request_forgotten_topic(out, forgotten_topics_data, version)
            w(p.string(x.rack_id))
    elif version >= 7:
        for x in items:
            w(_pack_iiiibii(x.replica_id, x.max_wait_ms, x.min_bytes, x.max_bytes, x.isolation_level, x.session_id, x.session_epoch))
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_request_fetch_topic(out, topics, version)
            forgotten_topics_data = x.forgotten_topics_data
            w(_pack_i(len(forgotten_topics_data)))
            if forgotten_topics_data:
                _write_request_forgotten_topic(out, forgotten_topics_data, version)
    else:
        for x in items:
            w(_pack_iiiib(x.replica_id, x.max_wait_ms, x.min_bytes, x.max_bytes, x.isolation_level))
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_request_fetch_topic(out, topics, version)


FetchRequest.READ = _read_request
FetchRequest.WRITE = _write_request


class FetchResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "session_id",
        "responses",
        "node_endpoints",
    )
    API_KEY = 1
    MIN_VERSION = 4
    MAX_VERSION = 18
    FLEXIBLE_VERSION = 12

    class FetchableTopicResponse(Struct):
        __slots__ = (
            "topic_id",
            "topic",
            "partitions",
        )

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO_UUID,
            topic: str = "",
            partitions: list[FetchResponse.PartitionData] = EMPTY,
        ) -> None:
            self.topic_id: bytes = topic_id
            self.topic: str = topic
            self.partitions: list[FetchResponse.PartitionData] = [] if partitions is EMPTY else partitions

    class PartitionData(Struct):
        __slots__ = (
            "partition_index",
            "error_code",
            "high_watermark",
            "last_stable_offset",
            "log_start_offset",
            "diverging_epoch",
            "current_leader",
            "snapshot_id",
            "aborted_transactions",
            "preferred_read_replica",
            "records",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            high_watermark: int = 0,
            last_stable_offset: int = -1,
            log_start_offset: int = -1,
            diverging_epoch: FetchResponse.EpochEndOffset | None = None,
            current_leader: FetchResponse.LeaderIdAndEpoch | None = None,
            snapshot_id: FetchResponse.SnapshotId | None = None,
            aborted_transactions: list[FetchResponse.AbortedTransaction] | None = EMPTY,
            preferred_read_replica: int = -1,
            records: Records | None = None,
        ) -> None:
            self.partition_index: int = partition_index
            self.error_code: int = error_code
            self.high_watermark: int = high_watermark
            self.last_stable_offset: int = last_stable_offset
            self.log_start_offset: int = log_start_offset
            self.diverging_epoch: FetchResponse.EpochEndOffset = _DEFAULT_RESPONSE_EPOCH_END_OFFSET if diverging_epoch is None else diverging_epoch
            self.current_leader: FetchResponse.LeaderIdAndEpoch = _DEFAULT_RESPONSE_LEADER_ID_AND_EPOCH if current_leader is None else current_leader
            self.snapshot_id: FetchResponse.SnapshotId = _DEFAULT_RESPONSE_SNAPSHOT_ID if snapshot_id is None else snapshot_id
            self.aborted_transactions: list[FetchResponse.AbortedTransaction] | None = [] if aborted_transactions is EMPTY else aborted_transactions
            self.preferred_read_replica: int = preferred_read_replica
            self.records: Records | None = records

    class EpochEndOffset(Struct):
        __slots__ = (
            "epoch",
            "end_offset",
        )

        def __init__(
            self,
            *,
            epoch: int = -1,
            end_offset: int = -1,
        ) -> None:
            self.epoch: int = epoch
            self.end_offset: int = end_offset

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

    class SnapshotId(Struct):
        __slots__ = (
            "end_offset",
            "epoch",
        )

        def __init__(
            self,
            *,
            end_offset: int = -1,
            epoch: int = -1,
        ) -> None:
            self.end_offset: int = end_offset
            self.epoch: int = epoch

    class AbortedTransaction(Struct):
        __slots__ = (
            "producer_id",
            "first_offset",
        )

        def __init__(
            self,
            *,
            producer_id: int = 0,
            first_offset: int = 0,
        ) -> None:
            self.producer_id: int = producer_id
            self.first_offset: int = first_offset

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
        throttle_time_ms: int = 0,
        error_code: int = 0,
        session_id: int = 0,
        responses: list[FetchResponse.FetchableTopicResponse] = EMPTY,
        node_endpoints: list[FetchResponse.NodeEndpoint] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.session_id: int = session_id
        self.responses: list[FetchResponse.FetchableTopicResponse] = [] if responses is EMPTY else responses
        self.node_endpoints: list[FetchResponse.NodeEndpoint] = [] if node_endpoints is EMPTY else node_endpoints


_DEFAULT_RESPONSE_EPOCH_END_OFFSET: Final = p.frozen_default(FetchResponse.EpochEndOffset)
_DEFAULT_RESPONSE_LEADER_ID_AND_EPOCH: Final = p.frozen_default(FetchResponse.LeaderIdAndEpoch)
_DEFAULT_RESPONSE_SNAPSHOT_ID: Final = p.frozen_default(FetchResponse.SnapshotId)


def _read_response_node_endpoint(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FetchResponse.NodeEndpoint], int]:
    items: list[FetchResponse.NodeEndpoint] = []
    for _ in range(count):
        x = new(FetchResponse.NodeEndpoint)
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


def _write_response_node_endpoint(out: Out, items: Sequence[FetchResponse.NodeEndpoint], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_i(x.node_id))
        w(p.compact_string(x.host))
        w(_pack_i(x.port))
        w(p.compact_nullable_string(x.rack))
        w(b"\0")


def _read_response_aborted_transaction(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FetchResponse.AbortedTransaction], int]:
    items: list[FetchResponse.AbortedTransaction] = []
    if version >= 12:
        for _ in range(count):
            x = new(FetchResponse.AbortedTransaction)
            (x.producer_id, x.first_offset, tags) = _unpack_qqB(buf, pos)
            pos += 17
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(FetchResponse.AbortedTransaction)
            (x.producer_id, x.first_offset) = _unpack_qq(buf, pos)
            pos += 16
            items.append(x)
    return items, pos


def _write_response_aborted_transaction(out: Out, items: Sequence[FetchResponse.AbortedTransaction], version: int) -> None:
    w = out.small.append
    if version >= 12:
        for x in items:
            w(_pack_qqx(x.producer_id, x.first_offset))
    else:
        for x in items:
            w(_pack_qq(x.producer_id, x.first_offset))


def _read_response_snapshot_id(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FetchResponse.SnapshotId], int]:
    items: list[FetchResponse.SnapshotId] = []
    for _ in range(count):
        x = new(FetchResponse.SnapshotId)
        (x.end_offset, x.epoch, tags) = _unpack_qiB(buf, pos)
        pos += 13
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_snapshot_id(out: Out, items: Sequence[FetchResponse.SnapshotId], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_qix(x.end_offset, x.epoch))


def _read_response_leader_id_and_epoch(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FetchResponse.LeaderIdAndEpoch], int]:
    items: list[FetchResponse.LeaderIdAndEpoch] = []
    for _ in range(count):
        x = new(FetchResponse.LeaderIdAndEpoch)
        (x.leader_id, x.leader_epoch, tags) = _unpack_iiB(buf, pos)
        pos += 9
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_leader_id_and_epoch(out: Out, items: Sequence[FetchResponse.LeaderIdAndEpoch], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_iix(x.leader_id, x.leader_epoch))


def _read_response_epoch_end_offset(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FetchResponse.EpochEndOffset], int]:
    items: list[FetchResponse.EpochEndOffset] = []
    for _ in range(count):
        x = new(FetchResponse.EpochEndOffset)
        (x.epoch, x.end_offset, tags) = _unpack_iqB(buf, pos)
        pos += 13
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_epoch_end_offset(out: Out, items: Sequence[FetchResponse.EpochEndOffset], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_iqx(x.epoch, x.end_offset))


def _read_response_partition_data(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FetchResponse.PartitionData], int]:
    items: list[FetchResponse.PartitionData] = []
    if version >= 12:
        for _ in range(count):
            x = new(FetchResponse.PartitionData)
            x.diverging_epoch = _DEFAULT_RESPONSE_EPOCH_END_OFFSET
            x.current_leader = _DEFAULT_RESPONSE_LEADER_ID_AND_EPOCH
            x.snapshot_id = _DEFAULT_RESPONSE_SNAPSHOT_ID
            (x.partition_index, x.error_code, x.high_watermark, x.last_stable_offset, x.log_start_offset) = _unpack_ihqqq(buf, pos)
            pos += 30
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                x.aborted_transactions = None
            else:
                x.aborted_transactions, pos = _read_response_aborted_transaction(buf, pos, n, version)
            (x.preferred_read_replica,) = _unpack_i(buf, pos)
            pos += 4
            x.records, pos = p.read_compact_nullable_records(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                if tags >= 128:
                    tags, pos = p.more_uvarint(buf, pos, tags)
                for _ in range(tags):
                    tag, pos = p.read_uvarint(buf, pos)
                    pos, end = p.read_tag_end(buf, pos)
                    if tag == 0:
                        ((x.diverging_epoch,), pos) = _read_response_epoch_end_offset(buf, pos, 1, version)
                        if pos != end:
                            raise p.bad_tag("DivergingEpoch")
                    elif tag == 1:
                        ((x.current_leader,), pos) = _read_response_leader_id_and_epoch(buf, pos, 1, version)
                        if pos != end:
                            raise p.bad_tag("CurrentLeader")
                    elif tag == 2:
                        ((x.snapshot_id,), pos) = _read_response_snapshot_id(buf, pos, 1, version)
                        if pos != end:
                            raise p.bad_tag("SnapshotId")
                    else:
                        pos = end
            items.append(x)
    elif version >= 11:
        for _ in range(count):
            x = new(FetchResponse.PartitionData)
            x.diverging_epoch = _DEFAULT_RESPONSE_EPOCH_END_OFFSET
            x.current_leader = _DEFAULT_RESPONSE_LEADER_ID_AND_EPOCH
            x.snapshot_id = _DEFAULT_RESPONSE_SNAPSHOT_ID
            (x.partition_index, x.error_code, x.high_watermark, x.last_stable_offset, x.log_start_offset) = _unpack_ihqqq(buf, pos)
            pos += 30
            n, pos = p.read_length(buf, pos)
            if n < 0:
                x.aborted_transactions = None
            else:
                x.aborted_transactions, pos = _read_response_aborted_transaction(buf, pos, n, version)
            (x.preferred_read_replica,) = _unpack_i(buf, pos)
            pos += 4
            x.records, pos = p.read_nullable_records(buf, pos)
            items.append(x)
    elif version >= 5:
        for _ in range(count):
            x = new(FetchResponse.PartitionData)
            x.diverging_epoch = _DEFAULT_RESPONSE_EPOCH_END_OFFSET
            x.current_leader = _DEFAULT_RESPONSE_LEADER_ID_AND_EPOCH
            x.snapshot_id = _DEFAULT_RESPONSE_SNAPSHOT_ID
            x.preferred_read_replica = -1
            (x.partition_index, x.error_code, x.high_watermark, x.last_stable_offset, x.log_start_offset) = _unpack_ihqqq(buf, pos)
            pos += 30
            n, pos = p.read_length(buf, pos)
            if n < 0:
                x.aborted_transactions = None
            else:
                x.aborted_transactions, pos = _read_response_aborted_transaction(buf, pos, n, version)
            x.records, pos = p.read_nullable_records(buf, pos)
            items.append(x)
    else:
        for _ in range(count):
            x = new(FetchResponse.PartitionData)
            x.log_start_offset = -1
            x.diverging_epoch = _DEFAULT_RESPONSE_EPOCH_END_OFFSET
            x.current_leader = _DEFAULT_RESPONSE_LEADER_ID_AND_EPOCH
            x.snapshot_id = _DEFAULT_RESPONSE_SNAPSHOT_ID
            x.preferred_read_replica = -1
            (x.partition_index, x.error_code, x.high_watermark, x.last_stable_offset) = _unpack_ihqq(buf, pos)
            pos += 22
            n, pos = p.read_length(buf, pos)
            if n < 0:
                x.aborted_transactions = None
            else:
                x.aborted_transactions, pos = _read_response_aborted_transaction(buf, pos, n, version)
            x.records, pos = p.read_nullable_records(buf, pos)
            items.append(x)
    return items, pos


def _write_response_partition_data(out: Out, items: Sequence[FetchResponse.PartitionData], version: int) -> None:
    w = out.small.append
    tagged: list[tuple[int, Out]]
    if version >= 12:
        for x in items:
            w(_pack_ihqqq(x.partition_index, x.error_code, x.high_watermark, x.last_stable_offset, x.log_start_offset))
            aborted_transactions = x.aborted_transactions
            if aborted_transactions is None:
                w(b"\0")
            else:
                n = len(aborted_transactions) + 1
                w(BYTE[n] if n < 128 else p.uvarint(n))
                if aborted_transactions:
                    _write_response_aborted_transaction(out, aborted_transactions, version)
            w(_pack_i(x.preferred_read_replica))
            p.write_compact_nullable_records(out, x.records)
            if (x.diverging_epoch is not _DEFAULT_RESPONSE_EPOCH_END_OFFSET and x.diverging_epoch != _DEFAULT_RESPONSE_EPOCH_END_OFFSET) or (x.current_leader is not _DEFAULT_RESPONSE_LEADER_ID_AND_EPOCH and x.current_leader != _DEFAULT_RESPONSE_LEADER_ID_AND_EPOCH) or (x.snapshot_id is not _DEFAULT_RESPONSE_SNAPSHOT_ID and x.snapshot_id != _DEFAULT_RESPONSE_SNAPSHOT_ID):
                tagged = []
                if x.diverging_epoch is not _DEFAULT_RESPONSE_EPOCH_END_OFFSET and x.diverging_epoch != _DEFAULT_RESPONSE_EPOCH_END_OFFSET:
                    inner = Out()
                    _write_response_epoch_end_offset(inner, (x.diverging_epoch,), version)
                    tagged.append((0, inner))
                if x.current_leader is not _DEFAULT_RESPONSE_LEADER_ID_AND_EPOCH and x.current_leader != _DEFAULT_RESPONSE_LEADER_ID_AND_EPOCH:
                    inner = Out()
                    _write_response_leader_id_and_epoch(inner, (x.current_leader,), version)
                    tagged.append((1, inner))
                if x.snapshot_id is not _DEFAULT_RESPONSE_SNAPSHOT_ID and x.snapshot_id != _DEFAULT_RESPONSE_SNAPSHOT_ID:
                    inner = Out()
                    _write_response_snapshot_id(inner, (x.snapshot_id,), version)
                    tagged.append((2, inner))
                p.write_tags(out, tagged)
            else:
                w(b"\0")
    elif version >= 11:
        for x in items:
            w(_pack_ihqqq(x.partition_index, x.error_code, x.high_watermark, x.last_stable_offset, x.log_start_offset))
            aborted_transactions = x.aborted_transactions
            if aborted_transactions is None:
                w(b"\xff\xff\xff\xff")
            else:
                w(_pack_i(len(aborted_transactions)))
                if aborted_transactions:
                    _write_response_aborted_transaction(out, aborted_transactions, version)
            w(_pack_i(x.preferred_read_replica))
            p.write_nullable_records(out, x.records)
    elif version >= 5:
        for x in items:
            w(_pack_ihqqq(x.partition_index, x.error_code, x.high_watermark, x.last_stable_offset, x.log_start_offset))
            aborted_transactions = x.aborted_transactions
            if aborted_transactions is None:
                w(b"\xff\xff\xff\xff")
            else:
                w(_pack_i(len(aborted_transactions)))
                if aborted_transactions:
                    _write_response_aborted_transaction(out, aborted_transactions, version)
            p.write_nullable_records(out, x.records)
    else:
        for x in items:
            w(_pack_ihqq(x.partition_index, x.error_code, x.high_watermark, x.last_stable_offset))
            aborted_transactions = x.aborted_transactions
            if aborted_transactions is None:
                w(b"\xff\xff\xff\xff")
            else:
                w(_pack_i(len(aborted_transactions)))
                if aborted_transactions:
                    _write_response_aborted_transaction(out, aborted_transactions, version)
            p.write_nullable_records(out, x.records)


def _read_response_fetchable_topic_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FetchResponse.FetchableTopicResponse], int]:
    items: list[FetchResponse.FetchableTopicResponse] = []
    if version >= 13:
        for _ in range(count):
            x = new(FetchResponse.FetchableTopicResponse)
            x.topic = ""
            (x.topic_id,) = _unpack_u(buf, pos)
            pos += 16
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_response_partition_data(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 12:
        for _ in range(count):
            x = new(FetchResponse.FetchableTopicResponse)
            x.topic_id = ZERO_UUID
            x.topic, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_response_partition_data(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(FetchResponse.FetchableTopicResponse)
            x.topic_id = ZERO_UUID
            x.topic, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_response_partition_data(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response_fetchable_topic_response(out: Out, items: Sequence[FetchResponse.FetchableTopicResponse], version: int) -> None:
    w = out.small.append
    if version >= 13:
        for x in items:
            w(_pack_u(x.topic_id))
            partitions = x.partitions
            n = len(partitions) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partitions:
                _write_response_partition_data(out, partitions, version)
            w(b"\0")
    elif version >= 12:
        for x in items:
            w(p.compact_string(x.topic))
            partitions = x.partitions
            n = len(partitions) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partitions:
                _write_response_partition_data(out, partitions, version)
            w(b"\0")
    else:
        for x in items:
            w(p.string(x.topic))
            partitions = x.partitions
            w(_pack_i(len(partitions)))
            if partitions:
                _write_response_partition_data(out, partitions, version)


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FetchResponse], int]:
    items: list[FetchResponse] = []
    if version >= 16:
        for _ in range(count):
            x = new(FetchResponse)
            x.node_endpoints = []
            (x.throttle_time_ms, x.error_code, x.session_id) = _unpack_ihi(buf, pos)
            pos += 10
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Responses")
            x.responses, pos = _read_response_fetchable_topic_response(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
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
    elif version >= 12:
        for _ in range(count):
            x = new(FetchResponse)
            x.node_endpoints = []
            (x.throttle_time_ms, x.error_code, x.session_id) = _unpack_ihi(buf, pos)
            pos += 10
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Responses")
            x.responses, pos = _read_response_fetchable_topic_response(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 7:
        for _ in range(count):
            x = new(FetchResponse)
            x.node_endpoints = []
            (x.throttle_time_ms, x.error_code, x.session_id) = _unpack_ihi(buf, pos)
            pos += 10
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Responses")
            x.responses, pos = _read_response_fetchable_topic_response(buf, pos, n, version)
            items.append(x)
    else:
        for _ in range(count):
            x = new(FetchResponse)
            x.error_code = 0
            x.session_id = 0
            x.node_endpoints = []
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Responses")
            x.responses, pos = _read_response_fetchable_topic_response(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[FetchResponse], version: int) -> None:
    w = out.small.append
    tagged: list[tuple[int, Out]]
    if version >= 16:
        for x in items:
            w(_pack_ihi(x.throttle_time_ms, x.error_code, x.session_id))
            responses = x.responses
            n = len(responses) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if responses:
                _write_response_fetchable_topic_response(out, responses, version)
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
    elif version >= 12:
        for x in items:
            w(_pack_ihi(x.throttle_time_ms, x.error_code, x.session_id))
            responses = x.responses
            n = len(responses) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if responses:
                _write_response_fetchable_topic_response(out, responses, version)
            w(b"\0")
    elif version >= 7:
        for x in items:
            w(_pack_ihi(x.throttle_time_ms, x.error_code, x.session_id))
            responses = x.responses
            w(_pack_i(len(responses)))
            if responses:
                _write_response_fetchable_topic_response(out, responses, version)
    else:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            responses = x.responses
            w(_pack_i(len(responses)))
            if responses:
                _write_response_fetchable_topic_response(out, responses, version)


FetchResponse.READ = _read_response
FetchResponse.WRITE = _write_response
