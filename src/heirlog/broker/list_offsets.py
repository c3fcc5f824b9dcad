"""ListOffsets: named positions of a partition, and the first offset at or after a timestamp.

    -1 latest           the high watermark; with isolation level read_committed the last stable offset; for a follower
                        replica the log's end
    -2 earliest, -4 earliest local    the log's start (there is no tier, so both are one)
    -3 max timestamp    the record with the largest timestamp
    -5 latest tiered, -6 earliest pending upload    nothing is tiered: offset -1
    >= 0                the first record with that timestamp or a later one; offset -1 if there is none

Each of these numbers came with a version of the API. In an older version, and for any other negative number, the answer
is UNSUPPORTED_VERSION; so a client does not use offset -1 as a position. A partition that the request names twice gets
one result, INVALID_REQUEST. With an unknown isolation level every partition gets INVALID_REQUEST. Timestamps are
searched below "latest".

Trap: a new leader's high watermark may be lower than the one that its predecessor exposed. Until it has reached the
start of the leader's own epoch, "latest" could be lower than in an earlier answer. The answer is OFFSET_NOT_AVAILABLE,
which clients retry (LEADER_NOT_AVAILABLE below version 5).
"""

from __future__ import annotations

from collections import Counter

from heirlog.broker.partition import Partition, ReplicaRole
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.context import Context
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import ListOffsetsRequest, ListOffsetsResponse

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
_OFFSET_NOT_AVAILABLE_VERSION = 5
_SINCE_VERSION = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_NEVER = 1 << 15
_READ_COMMITTED = 1
_ISOLATION_LEVELS = (0, _READ_COMMITTED)

_Answer = ListOffsetsResponse.ListOffsetsPartitionResponse


def list_offsets(replicas: ReplicaManager, request: ListOffsetsRequest, context: Context) -> ListOffsetsResponse:
    times = Counter((topic.name, asked.partition_index) for topic in request.topics for asked in topic.partitions)
    topics: dict[str, dict[int, _Answer]] = {}
    for topic in request.topics:
        partitions = replicas.partitions_named(topic.name)
        answers = topics.setdefault(topic.name, {})
        for asked in topic.partitions:
            partition = partitions.get(asked.partition_index)
            try:
                if request.isolation_level not in _ISOLATION_LEVELS:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, f"isolation level {request.isolation_level} is unknown")
                if times[topic.name, asked.partition_index] > 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, f"{topic.name}-{asked.partition_index} is named twice")
                _check_supported(asked.timestamp, context.api_version)
                if partition is None:
                    raise replicas.no_partition(topic.name, asked.partition_index)
                answer = offset_for(
                    partition,
                    asked.timestamp,
                    asked.current_leader_epoch,
                    for_follower=request.replica_id >= 0,
                    read_committed=request.isolation_level == _READ_COMMITTED,
                )
            except KafkaError as error:
                answer = _Answer(error_code=_code_for(error.code, context.api_version))
            except OSError as error:
                assert partition is not None
                replicas.storage_failed(partition, error)
                answer = _Answer(error_code=ErrorCode.KAFKA_STORAGE_ERROR)
            answer.partition_index = asked.partition_index
            answers[asked.partition_index] = answer
    return ListOffsetsResponse(
        topics=[
            ListOffsetsResponse.ListOffsetsTopicResponse(name=name, partitions=list(answers.values()))
            for name, answers in topics.items()
            if answers
        ]
    )


def _code_for(code: ErrorCode, version: int) -> ErrorCode:
    if code is ErrorCode.OFFSET_NOT_AVAILABLE and version < _OFFSET_NOT_AVAILABLE_VERSION:
        return ErrorCode.LEADER_NOT_AVAILABLE
    return code


def _check_supported(timestamp: int, version: int) -> None:
    if timestamp < 0 and version < _SINCE_VERSION.get(timestamp, _NEVER):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp} names no position in ListOffsets v{version}"
        )


def offset_for(
    partition: Partition,
    timestamp: int,
    current_leader_epoch: int,
    for_follower: bool,
    read_committed: bool = False,
) -> _Answer:
    """The offset for `timestamp`. Raises KafkaError: not the leader, another leader epoch, or not known yet."""
    if partition.role is not ReplicaRole.LEADER:
        raise partition.not_leader()
    partition.check_leader_epoch(current_leader_epoch)
    log = partition.log
    upto = partition.last_stable_offset if read_committed else partition.high_watermark
    if for_follower:
        upto = log.log_end_offset
    if timestamp == LATEST:
        _check_known(partition, for_follower)
        return _Answer(offset=upto, leader_epoch=log.epochs.latest)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return _Answer(offset=log.log_start_offset, leader_epoch=log.epochs.epoch_for_offset(log.log_start_offset))
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return _Answer()
    if timestamp == MAX_TIMESTAMP:
        found = log.max_timestamp_offset(upto)
    else:
        found = log.offset_for_timestamp(timestamp, upto)
    if found is None:
        # a record beyond the high watermark may be the one that was asked for
        if timestamp >= 0 and upto < log.log_end_offset:
            _check_known(partition, for_follower)
        return _Answer()
    return _Answer(timestamp=found.timestamp_ms, offset=found.offset, leader_epoch=found.leader_epoch)


def _check_known(partition: Partition, for_follower: bool) -> None:
    if not for_follower and not partition.knows_its_end:
        raise KafkaError(
            ErrorCode.OFFSET_NOT_AVAILABLE,
            f"{partition.topic}-{partition.index}: the high watermark {partition.high_watermark} has not reached the "
            f"start of leader epoch {partition.leader_epoch} at {partition.leader_epoch_start_offset}; try again",
        )
