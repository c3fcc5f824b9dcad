"""Produce with one partition, as a broker reads and answers it: what a producer sends that fills its batches.

As in `one_partition_fetch.py`, everything at a fixed place is read or written by one `struct` call:

    request   v9+   no transactional id, acks, timeout | 1 topic | its name or id | 1 partition | index | records
                    | no tags
    response  v9+   1 topic | its name or id | 1 partition | offsets, no errors of records, no message | throttle
                    | no tags

Every other message, and one with any other field, goes to the generated functions. Both ways give the same bytes and
the same objects (tests/protocol/test_one_partition_produce.py). `messages.py` imports this module with that of Produce.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

from heirlog.env import Buffer
from heirlog.protocol import primitives as p
from heirlog.protocol._generated.messages.produce import ProduceRequest, ProduceResponse
from heirlog.protocol.primitives import ZERO_UUID, Out, new

_FLEXIBLE_VERSION: Final = 9
_TOPIC_ID_VERSION: Final = 13
_ONE: Final = 2
"""A compact array of one item: its length plus one."""
_EMPTY: Final = 1
_NULL: Final = 0
_LONG: Final = 128
"""From here on the size of a name has two bytes."""
_BEFORE_TOPIC: Final = Struct(">BhiB")
_INDEX: Final = Struct(">i")
_AFTER_TOPIC: Final = Struct(">BihqqqBBxxix")
_NO_TAGS: Final[Buffer] = b"\0\0\0"
"""Of the partition, the topic and the request."""
_NO_LEADER: Final = ProduceResponse.PartitionProduceResponse().current_leader

_read_any_request = ProduceRequest.READ
_write_any_response = ProduceResponse.WRITE


def read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ProduceRequest], int]:
    if version < _FLEXIBLE_VERSION:
        return _read_any_request(buf, pos, count, version)
    x = new(ProduceRequest)
    transactional, x.acks, x.timeout_ms, topics = _BEFORE_TOPIC.unpack_from(buf, pos)
    if transactional or topics != _ONE:
        return _read_any_request(buf, pos, count, version)
    topic = new(ProduceRequest.TopicProduceData)
    start = pos + _BEFORE_TOPIC.size
    if version >= _TOPIC_ID_VERSION:
        end = start + 16
        topic.topic_id, topic.name = bytes(buf[start:end]), ""
    else:
        size = buf[start]
        if not 0 < size < _LONG:
            return _read_any_request(buf, pos, count, version)
        end = start + size
        topic.topic_id, topic.name = ZERO_UUID, str(buf[start + 1 : end], "utf-8")
    if buf[end] != _ONE:
        return _read_any_request(buf, pos, count, version)
    data = new(ProduceRequest.PartitionProduceData)
    (data.index,) = _INDEX.unpack_from(buf, end + 1)
    data.records, end = p.read_compact_nullable_records(buf, end + 5)
    if buf[end:] != _NO_TAGS:
        return _read_any_request(buf, pos, count, version)
    topic.partition_data = [data]
    x.transactional_id = None
    x.topic_data = [topic]
    return [x], end + len(_NO_TAGS)


def write_response(out: Out, items: Sequence[ProduceResponse], version: int) -> None:
    (x,) = items
    if (
        version < _FLEXIBLE_VERSION
        or len(x.responses) != 1
        or len(x.responses[0].partition_responses) != 1
        or x.node_endpoints
    ):
        _write_any_response(out, items, version)
        return
    topic = x.responses[0]
    answer = topic.partition_responses[0]
    if answer.record_errors or answer.error_message is not None or answer.current_leader is not _NO_LEADER:
        _write_any_response(out, items, version)
        return
    out.small.append(
        b"\2"
        + (topic.topic_id if version >= _TOPIC_ID_VERSION else p.compact_string(topic.name))
        + _AFTER_TOPIC.pack(
            _ONE,
            answer.index,
            answer.error_code,
            answer.base_offset,
            answer.log_append_time_ms,
            answer.log_start_offset,
            _EMPTY,
            _NULL,
            x.throttle_time_ms,
        )
    )


ProduceRequest.READ = read_request
ProduceResponse.WRITE = write_response
