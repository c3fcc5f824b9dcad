"""DescribeLogDirs: which partitions are in which log directory, and how much space they use.

A directory that has failed is listed with KAFKA_STORAGE_ERROR and without partitions. Partitions that this broker does
not have are left out, without an error. Replicas are not moved between directories, so no replica is a future one, and
the lag of a log is the distance to its own high watermark.

Source: KIP-113, KIP-827 (total and usable bytes).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from heirlog.broker.replica_manager import ReplicaManager
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeLogDirsRequest, DescribeLogDirsResponse
from heirlog.storage.log import Log
from heirlog.storage.log_directory import LogDirectory

UNKNOWN_LAG = -1

_Wanted: TypeAlias = Mapping[str, set[int]]
_Partition: TypeAlias = DescribeLogDirsResponse.DescribeLogDirsPartition


def describe_log_dirs(
    replicas: ReplicaManager, directories: Iterable[LogDirectory], request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    wanted: dict[str, set[int]] | None = None
    if request.topics is not None:
        wanted = {}
        for topic in request.topics:
            wanted.setdefault(topic.topic, set()).update(topic.partitions)
    online = replicas.directories.online
    return DescribeLogDirsResponse(
        results=[_describe(replicas, directory, wanted, directory in online) for directory in directories]
    )


def _describe(
    replicas: ReplicaManager, directory: LogDirectory, wanted: _Wanted | None, online: bool
) -> DescribeLogDirsResponse.DescribeLogDirsResult:
    result = DescribeLogDirsResponse.DescribeLogDirsResult(log_dir=directory.path)
    try:
        if not online:
            raise OSError(f"{directory.path} is offline")
        result.total_bytes, result.usable_bytes = directory.space()
    except OSError:
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        return result
    by_topic: dict[str, list[_Partition]] = {}
    for (topic, index), log in sorted(directory.logs.items()):
        if wanted is None or index in wanted.get(topic, ()):
            by_topic.setdefault(topic, []).append(
                _Partition(partition_index=index, partition_size=log.size_bytes, offset_lag=_lag(replicas, log))
            )
    result.topics = [
        DescribeLogDirsResponse.DescribeLogDirsTopic(name=topic, partitions=partitions)
        for topic, partitions in by_topic.items()
    ]
    return result


def _lag(replicas: ReplicaManager, log: Log) -> int:
    partition = replicas.partitions_named(log.topic).get(log.partition)
    return UNKNOWN_LAG if partition is None else max(partition.high_watermark - log.log_end_offset, 0)
