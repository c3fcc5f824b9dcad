"""How many records one admin request may make, and the error above it.

Its records must take effect together: a topic with half of its partitions, or half of a filter's ACLs, would be worse
than none. One batch is the most that takes effect together without a metadata transaction.

Changes that stand for themselves have no limit: DeleteTopics, AlterPartitionReassignments and ElectLeaders up to
version 2. The controller appends them in several batches, each of which is safe without the next.

Apache Kafka has the same number (MAX_RECORDS_PER_USER_OP) for every admin request. It answers POLICY_VIOLATION for the
whole request, or UNKNOWN_SERVER_ERROR for the element that is too much (DeleteAcls, CreatePartitions, DeleteTopics,
AlterPartitionReassignments).
"""

from __future__ import annotations

from typing import Final

from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.raft.values import MAX_RECORDS_PER_BATCH

MAX_RECORDS_PER_USER_OP: Final = MAX_RECORDS_PER_BATCH


def too_large(refused: str, next_step: str) -> KafkaError:
    """refused: what was too much, as the beginning of a sentence; next_step: what the client can do instead."""
    return KafkaError(
        ErrorCode.POLICY_VIOLATION,
        f"{refused}: one request can make {MAX_RECORDS_PER_USER_OP} metadata records; {next_step}.",
    )
