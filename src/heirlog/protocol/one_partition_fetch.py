"""Fetch with one partition, which is what a follower or a consumer of a busy partition sends and gets.

Read and written by the generated code, such a message takes a call for each struct and each field of variable size.
Yet almost all of it lies at the same places every time, so here one `struct` call handles everything but the records:

    request   v15+   limits, session | 1 topic | its id | 1 partition | offsets | no tags, nothing forgotten, no rack
                     | no tags, or the follower's id and epoch
    response  v13+   error, session  | 1 topic | its id | 1 partition | offsets, no aborted transactions | records
                     | no tags

Every other message, and one with any other field, goes to the generated functions. Both ways give the same bytes and
the same objects (tests/protocol/test_one_partition_fetch.py). `messages.py` imports this module with that of Fetch.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

from heirlog.env import Buffer
from heirlog.protocol import primitives as p
from heirlog.protocol._generated.messages.fetch import FetchRequest, FetchResponse
from heirlog.protocol.primitives import ZERO_UUID, Out, new

_REQUEST_VERSION: Final = 15
_RESPONSE_VERSION: Final = 13
_ONE: Final = 2
"""A compact array of one item: its length plus one."""
_REQUEST: Final = Struct(">iiibiiB16sBiiqiqi4s")
_AFTER_PARTITION: Final = b"\0\0\1\1"
"""No tags of the partition and of the topic, no forgotten topics, no rack."""
_REPLICA_STATE: Final = Struct(">3siqx")
_REPLICA_STATE_TAG: Final = b"\1\1\x0d"
"""One tagged field, its number, its size."""
_CONSUMER_SIZE: Final = _REQUEST.size + 1
_FOLLOWER_SIZE: Final = _REQUEST.size + _REPLICA_STATE.size
_RESPONSE: Final = Struct(">ihiB16sBihqqqBi")
_NO_TAGS: Final[Buffer] = b"\0\0\0"
"""Of the partition, the topic and the response."""

_NO_REPLICA: Final = FetchRequest().replica_state
_ANY_WATERMARK: Final = FetchRequest.FetchPartition().high_watermark
_NOTHING: Final = FetchResponse.PartitionData()
_NO_DIVERGENCE: Final = _NOTHING.diverging_epoch
_NO_LEADER: Final = _NOTHING.current_leader
_NO_SNAPSHOT: Final = _NOTHING.snapshot_id

_read_any_request = FetchRequest.READ
_write_any_request = FetchRequest.WRITE
_read_any_response = FetchResponse.READ
_write_any_response = FetchResponse.WRITE


def read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FetchRequest], int]:
    size = len(buf) - pos
    if version < _REQUEST_VERSION or (size != _FOLLOWER_SIZE and size != _CONSUMER_SIZE):
        return _read_any_request(buf, pos, count, version)
    x = new(FetchRequest)
    topic = new(FetchRequest.FetchTopic)
    asked = new(FetchRequest.FetchPartition)
    (
        x.max_wait_ms,
        x.min_bytes,
        x.max_bytes,
        x.isolation_level,
        x.session_id,
        x.session_epoch,
        topics,
        topic.topic_id,
        partitions,
        asked.partition,
        asked.current_leader_epoch,
        asked.fetch_offset,
        asked.last_fetched_epoch,
        asked.log_start_offset,
        asked.partition_max_bytes,
        rest,
    ) = _REQUEST.unpack_from(buf, pos)
    if topics != _ONE or partitions != _ONE or rest != _AFTER_PARTITION:
        return _read_any_request(buf, pos, count, version)
    if size == _FOLLOWER_SIZE:
        state = x.replica_state = new(FetchRequest.ReplicaState)
        tag, state.replica_id, state.replica_epoch = _REPLICA_STATE.unpack_from(buf, pos + _REQUEST.size)
        if tag != _REPLICA_STATE_TAG or buf[-1]:
            return _read_any_request(buf, pos, count, version)
    elif buf[-1]:
        return _read_any_request(buf, pos, count, version)
    else:
        x.replica_state = _NO_REPLICA
    asked.replica_directory_id = ZERO_UUID
    asked.high_watermark = _ANY_WATERMARK
    topic.topic = ""
    topic.partitions = [asked]
    x.cluster_id = None
    x.replica_id = -1
    x.topics = [topic]
    x.forgotten_topics_data = []
    x.rack_id = ""
    return [x], pos + size


def write_request(out: Out, items: Sequence[FetchRequest], version: int) -> None:
    (x,) = items
    if (
        version < _REQUEST_VERSION
        or len(x.topics) != 1
        or len(x.topics[0].partitions) != 1
        or x.forgotten_topics_data
        or x.rack_id
        or x.cluster_id is not None
    ):
        _write_any_request(out, items, version)
        return
    topic = x.topics[0]
    asked = topic.partitions[0]
    if asked.high_watermark != _ANY_WATERMARK or asked.replica_directory_id != ZERO_UUID:
        _write_any_request(out, items, version)
        return
    fixed = _REQUEST.pack(
        x.max_wait_ms,
        x.min_bytes,
        x.max_bytes,
        x.isolation_level,
        x.session_id,
        x.session_epoch,
        _ONE,
        topic.topic_id,
        _ONE,
        asked.partition,
        asked.current_leader_epoch,
        asked.fetch_offset,
        asked.last_fetched_epoch,
        asked.log_start_offset,
        asked.partition_max_bytes,
        _AFTER_PARTITION,
    )
    state = x.replica_state
    if state.replica_id == -1 and state.replica_epoch == -1:
        out.small.append(fixed + b"\0")
    else:
        out.small.append(fixed + _REPLICA_STATE.pack(_REPLICA_STATE_TAG, state.replica_id, state.replica_epoch))


def read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FetchResponse], int]:
    if version < _RESPONSE_VERSION or len(buf) - pos < _RESPONSE.size:
        return _read_any_response(buf, pos, count, version)
    x = new(FetchResponse)
    topic = new(FetchResponse.FetchableTopicResponse)
    data = new(FetchResponse.PartitionData)
    (
        x.throttle_time_ms,
        x.error_code,
        x.session_id,
        topics,
        topic.topic_id,
        partitions,
        data.partition_index,
        data.error_code,
        data.high_watermark,
        data.last_stable_offset,
        data.log_start_offset,
        aborted,
        data.preferred_read_replica,
    ) = _RESPONSE.unpack_from(buf, pos)
    if topics != _ONE or partitions != _ONE or aborted:
        return _read_any_response(buf, pos, count, version)
    data.records, end = p.read_compact_nullable_records(buf, pos + _RESPONSE.size)
    if buf[end:] != _NO_TAGS:
        return _read_any_response(buf, pos, count, version)
    data.diverging_epoch = _NO_DIVERGENCE
    data.current_leader = _NO_LEADER
    data.snapshot_id = _NO_SNAPSHOT
    data.aborted_transactions = None
    topic.topic = ""
    topic.partitions = [data]
    x.responses = [topic]
    x.node_endpoints = []
    return [x], end + len(_NO_TAGS)


def write_response(out: Out, items: Sequence[FetchResponse], version: int) -> None:
    (x,) = items
    if version < _RESPONSE_VERSION or len(x.responses) != 1 or len(x.responses[0].partitions) != 1 or x.node_endpoints:
        _write_any_response(out, items, version)
        return
    topic = x.responses[0]
    data = topic.partitions[0]
    if (
        data.aborted_transactions is not None
        or data.diverging_epoch is not _NO_DIVERGENCE
        or data.current_leader is not _NO_LEADER
        or data.snapshot_id is not _NO_SNAPSHOT
    ):
        _write_any_response(out, items, version)
        return
    out.small.append(
        _RESPONSE.pack(
            x.throttle_time_ms,
            x.error_code,
            x.session_id,
            _ONE,
            topic.topic_id,
            _ONE,
            data.partition_index,
            data.error_code,
            data.high_watermark,
            data.last_stable_offset,
            data.log_start_offset,
            0,
            data.preferred_read_replica,
        )
    )
    p.write_compact_nullable_records(out, data.records)
    out.small.append(_NO_TAGS)


FetchRequest.READ = read_request
FetchRequest.WRITE = write_request
FetchResponse.READ = read_response
FetchResponse.WRITE = write_response
