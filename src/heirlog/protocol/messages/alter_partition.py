"""Written by `python -m heirlog.protocol.generator` from specs/messages/alter_partition.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, ZERO_UUID, Message, Out, Struct, new

_unpack_u = _Shape(">16s").unpack_from
_pack_u = _Shape(">16s").pack
_pack_bi = _Shape(">bi").pack
_unpack_biB = _Shape(">biB").unpack_from
_pack_bix = _Shape(">bix").pack
_unpack_ih = _Shape(">ih").unpack_from
_pack_ih = _Shape(">ih").pack
_unpack_ihii = _Shape(">ihii").unpack_from
_pack_ihii = _Shape(">ihii").pack
_unpack_ii = _Shape(">ii").unpack_from
_pack_ii = _Shape(">ii").pack
_unpack_iq = _Shape(">iq").unpack_from
_pack_iq = _Shape(">iq").pack
_unpack_iqB = _Shape(">iqB").unpack_from
_pack_iqx = _Shape(">iqx").pack
_unpack_q = _Shape(">q").unpack_from
_pack_q = _Shape(">q").pack


class AlterPartitionRequest(Message):
    __slots__ = (
        "broker_id",
        "broker_epoch",
        "topics",
    )
    API_KEY = 56
    MIN_VERSION = 2
    MAX_VERSION = 3
    FLEXIBLE_VERSION = 2

    class TopicData(Struct):
        __slots__ = (
            "topic_id",
            "partitions",
        )

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO_UUID,
            partitions: list[AlterPartitionRequest.PartitionData] = EMPTY,
        ) -> None:
            self.topic_id: bytes = topic_id
            self.partitions: list[AlterPartitionRequest.PartitionData] = [] if partitions is EMPTY else partitions

    class PartitionData(Struct):
        __slots__ = (
            "partition_index",
            "leader_epoch",
            "new_isr",
            "new_isr_with_epochs",
            "leader_recovery_state",
            "partition_epoch",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            leader_epoch: int = 0,
            new_isr: list[int] = EMPTY,
            new_isr_with_epochs: list[AlterPartitionRequest.BrokerState] = EMPTY,
            leader_recovery_state: int = 0,
            partition_epoch: int = 0,
        ) -> None:
            self.partition_index: int = partition_index
            self.leader_epoch: int = leader_epoch
            self.new_isr: list[int] = [] if new_isr is EMPTY else new_isr
            self.new_isr_with_epochs: list[AlterPartitionRequest.BrokerState] = [] if new_isr_with_epochs is EMPTY else new_isr_with_epochs
            self.leader_recovery_state: int = leader_recovery_state
            self.partition_epoch: int = partition_epoch

    class BrokerState(Struct):
        __slots__ = (
            "broker_id",
            "broker_epoch",
        )

        def __init__(
            self,
            *,
            broker_id: int = 0,
            broker_epoch: int = -1,
        ) -> None:
            self.broker_id: int = broker_id
            self.broker_epoch: int = broker_epoch

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        topics: list[AlterPartitionRequest.TopicData] = EMPTY,
    ) -> None:
        self.broker_id: int = broker_id
        self.broker_epoch: int = broker_epoch
        self.topics: list[AlterPartitionRequest.TopicData] = [] if topics is EMPTY else topics


def _read_request_broker_state(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AlterPartitionRequest.BrokerState], int]:
    items: list[AlterPartitionRequest.BrokerState] = []
    if count > 1:
        p.spend(count)
    for _ in range(count):
        x = new(AlterPartitionRequest.BrokerState)
        (x.broker_id, x.broker_epoch, tags) = _unpack_iqB(buf, pos)
        pos += 13
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request_broker_state(out: Out, items: Sequence[AlterPartitionRequest.BrokerState], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_iqx(x.broker_id, x.broker_epoch))


def _read_request_partition_data(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AlterPartitionRequest.PartitionData], int]:
    items: list[AlterPartitionRequest.PartitionData] = []
    if count > 1:
        p.spend(count)
    if version >= 3:
        for _ in range(count):
            x = new(AlterPartitionRequest.PartitionData)
            x.new_isr = []
            (x.partition_index, x.leader_epoch) = _unpack_ii(buf, pos)
            pos += 8
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("NewIsrWithEpochs")
            x.new_isr_with_epochs, pos = _read_request_broker_state(buf, pos, n, version)
            (x.leader_recovery_state, x.partition_epoch, tags) = _unpack_biB(buf, pos)
            pos += 6
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(AlterPartitionRequest.PartitionData)
            x.new_isr_with_epochs = []
            (x.partition_index, x.leader_epoch) = _unpack_ii(buf, pos)
            pos += 8
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("NewIsr")
            x.new_isr, pos = p.read_int32s(buf, pos, n)
            (x.leader_recovery_state, x.partition_epoch, tags) = _unpack_biB(buf, pos)
            pos += 6
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    return items, pos


def _write_request_partition_data(out: Out, items: Sequence[AlterPartitionRequest.PartitionData], version: int) -> None:
    w = out.small.append
    if version >= 3:
        for x in items:
            w(_pack_ii(x.partition_index, x.leader_epoch))
            new_isr_with_epochs = x.new_isr_with_epochs
            n = len(new_isr_with_epochs) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if new_isr_with_epochs:
                _write_request_broker_state(out, new_isr_with_epochs, version)
            w(_pack_bix(x.leader_recovery_state, x.partition_epoch))
    else:
        for x in items:
            w(_pack_ii(x.partition_index, x.leader_epoch))
            new_isr = x.new_isr
            n = len(new_isr) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if new_isr:
                w(p.int32s(new_isr))
            w(_pack_bix(x.leader_recovery_state, x.partition_epoch))


def _read_request_topic_data(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AlterPartitionRequest.TopicData], int]:
    items: list[AlterPartitionRequest.TopicData] = []
    if count > 1:
        p.spend(count)
    for _ in range(count):
        x = new(AlterPartitionRequest.TopicData)
        (x.topic_id,) = _unpack_u(buf, pos)
        pos += 16
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Partitions")
        x.partitions, pos = _read_request_partition_data(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request_topic_data(out: Out, items: Sequence[AlterPartitionRequest.TopicData], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_u(x.topic_id))
        partitions = x.partitions
        n = len(partitions) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if partitions:
            _write_request_partition_data(out, partitions, version)
        w(b"\0")


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AlterPartitionRequest], int]:
    items: list[AlterPartitionRequest] = []
    for _ in range(count):
        x = new(AlterPartitionRequest)
        (x.broker_id, x.broker_epoch) = _unpack_iq(buf, pos)
        pos += 12
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Topics")
        x.topics, pos = _read_request_topic_data(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[AlterPartitionRequest], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_iq(x.broker_id, x.broker_epoch))
        topics = x.topics
        n = len(topics) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if topics:
            _write_request_topic_data(out, topics, version)
        w(b"\0")


AlterPartitionRequest.READ = _read_request
AlterPartitionRequest.WRITE = _write_request


class AlterPartitionResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "topics",
    )
    API_KEY = 56
    MIN_VERSION = 2
    MAX_VERSION = 3
    FLEXIBLE_VERSION = 2

    class TopicData(Struct):
        __slots__ = (
            "topic_id",
            "partitions",
        )

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO_UUID,
            partitions: list[AlterPartitionResponse.PartitionData] = EMPTY,
        ) -> None:
            self.topic_id: bytes = topic_id
            self.partitions: list[AlterPartitionResponse.PartitionData] = [] if partitions is EMPTY else partitions

    class PartitionData(Struct):
        __slots__ = (
            "partition_index",
            "error_code",
            "leader_id",
            "leader_epoch",
            "isr",
            "leader_recovery_state",
            "partition_epoch",
            "committed_offset",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            leader_id: int = 0,
            leader_epoch: int = 0,
            isr: list[int] = EMPTY,
            leader_recovery_state: int = 0,
            partition_epoch: int = 0,
            committed_offset: int = -1,
        ) -> None:
            self.partition_index: int = partition_index
            self.error_code: int = error_code
            self.leader_id: int = leader_id
            self.leader_epoch: int = leader_epoch
            self.isr: list[int] = [] if isr is EMPTY else isr
            self.leader_recovery_state: int = leader_recovery_state
            self.partition_epoch: int = partition_epoch
            self.committed_offset: int = committed_offset

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: list[AlterPartitionResponse.TopicData] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.topics: list[AlterPartitionResponse.TopicData] = [] if topics is EMPTY else topics


def _read_response_partition_data(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AlterPartitionResponse.PartitionData], int]:
    items: list[AlterPartitionResponse.PartitionData] = []
    for _ in range(count):
        x = new(AlterPartitionResponse.PartitionData)
        x.committed_offset = -1
        (x.partition_index, x.error_code, x.leader_id, x.leader_epoch) = _unpack_ihii(buf, pos)
        pos += 14
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Isr")
        x.isr, pos = p.read_int32s(buf, pos, n)
        (x.leader_recovery_state, x.partition_epoch, tags) = _unpack_biB(buf, pos)
        pos += 6
        if tags:
            if tags >= 128:
                tags, pos = p.more_uvarint(buf, pos, tags)
            for _ in range(tags):
                tag, pos = p.read_uvarint(buf, pos)
                pos, end = p.read_tag_end(buf, pos)
                if tag == 10000:
                    (x.committed_offset,) = _unpack_q(buf, pos)
                    pos += 8
                    if pos != end:
                        raise p.bad_tag("CommittedOffset")
                else:
                    pos = end
        items.append(x)
    return items, pos


def _write_response_partition_data(out: Out, items: Sequence[AlterPartitionResponse.PartitionData], version: int) -> None:
    w = out.small.append
    tagged: list[tuple[int, Out]]
    for x in items:
        w(_pack_ihii(x.partition_index, x.error_code, x.leader_id, x.leader_epoch))
        isr = x.isr
        n = len(isr) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if isr:
            w(p.int32s(isr))
        w(_pack_bi(x.leader_recovery_state, x.partition_epoch))
        if x.committed_offset != -1:
            tagged = []
            if x.committed_offset != -1:
                inner = Out()
                inner.small.append(_pack_q(x.committed_offset))
                tagged.append((10000, inner))
            p.write_tags(out, tagged)
        else:
            w(b"\0")


def _read_response_topic_data(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AlterPartitionResponse.TopicData], int]:
    items: list[AlterPartitionResponse.TopicData] = []
    for _ in range(count):
        x = new(AlterPartitionResponse.TopicData)
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
    return items, pos


def _write_response_topic_data(out: Out, items: Sequence[AlterPartitionResponse.TopicData], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_u(x.topic_id))
        partitions = x.partitions
        n = len(partitions) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if partitions:
            _write_response_partition_data(out, partitions, version)
        w(b"\0")


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AlterPartitionResponse], int]:
    items: list[AlterPartitionResponse] = []
    for _ in range(count):
        x = new(AlterPartitionResponse)
        (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
        pos += 6
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Topics")
        x.topics, pos = _read_response_topic_data(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[AlterPartitionResponse], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_ih(x.throttle_time_ms, x.error_code))
        topics = x.topics
        n = len(topics) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if topics:
            _write_response_topic_data(out, topics, version)
        w(b"\0")


AlterPartitionResponse.READ = _read_response
AlterPartitionResponse.WRITE = _write_response
