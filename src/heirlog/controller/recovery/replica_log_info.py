"""The replicas' answers about their logs, which answers count, and which log is best.

An answer describes a log that must not change any more. So it has to come from the incarnation that is registered now,
and that incarnation must know the controller's leader epoch. Only then does it neither fetch from an old leader nor
append as one. An answer that fails a check is worth nothing, however recent; the replica is asked again.

Logs are compared by the leader epoch of the last record, then by length, then by position in the assignment. A longer
log of an earlier leader has a tail that its successor never had (KIP-101): that is not more data, it is different data.

Source: KIP-966, "Unclean recovery", verification and election rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from heirlog.metadata.basis import ReplicaAnswer
from heirlog.metadata.state import Ids
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.types import NO_BROKER_EPOCH, BrokerEpoch, BrokerId


class ReplicaLogInfo(NamedTuple):
    """One broker's answer about one replica. With an error the other fields mean nothing."""

    broker_epoch: int
    current_leader_epoch: int
    last_written_epoch: int
    end_offset: int
    at_ms: int
    """Time on the controller's clock."""
    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    may_lack_records: bool = False
    """The replica's machine has stopped, and what it had not flushed may be gone (tagged field 10000)."""


def is_of_this_registration(answer: ReplicaLogInfo, registered_epoch: int) -> bool:
    """Guard 10: the answer carries the registered broker epoch.

    Without it a replica that answered, restarted and lost its last records wins with the log that it had before.
    """
    return answer.broker_epoch == registered_epoch


def knows_the_leader_epoch(answer: ReplicaLogInfo, leader_epoch: int) -> bool:
    """Guard 11: the answer carries the controller's current leader epoch.

    Without it the log of a replica that still follows an old leader may grow or shrink after its answer.
    """
    return answer.current_leader_epoch == leader_epoch


def counts(answer: ReplicaLogInfo | None, registered_epoch: int, leader_epoch: int) -> bool:
    """Whether the answer may be used in a decision."""
    return (
        answer is not None
        and answer.error is ErrorCode.NONE
        and is_of_this_registration(answer, registered_epoch)
        and knows_the_leader_epoch(answer, leader_epoch)
    )


def bounds(answer: ReplicaLogInfo, leader_epoch: int) -> bool:
    """Whether the answer limits what the replica can hold.

    That is also true for an answer of an earlier incarnation, whose log was not shorter.
    """
    return answer.error is ErrorCode.NONE and knows_the_leader_epoch(answer, leader_epoch)


def length_may_decide(one: ReplicaLogInfo, other: ReplicaLogInfo) -> bool:
    """Guard 12: lengths are compared only between logs whose last record was written in one leader epoch.

    Without it the longer tail of an earlier leader beats the records that a later one acknowledged.
    """
    return one.last_written_epoch == other.last_written_epoch


def is_better(one: ReplicaLogInfo, other: ReplicaLogInfo) -> bool:
    if not length_may_decide(one, other):
        return one.last_written_epoch > other.last_written_epoch
    return one.end_offset > other.end_offset


def best(replicas: Ids, valid: Mapping[BrokerId, ReplicaLogInfo]) -> BrokerId:
    """The winner among `valid` (not empty); of equal logs the first one in the assignment."""
    candidates = [replica for replica in replicas if replica in valid]
    winner = candidates[0]
    for replica in candidates[1:]:
        if is_better(valid[replica], valid[winner]):
            winner = replica
    return winner


def recorded(broker: BrokerId, answer: ReplicaLogInfo, it_counts: bool) -> ReplicaAnswer:
    """The answer as the record of an election stores it; without a broker epoch if it does not count."""
    epoch = BrokerEpoch(answer.broker_epoch) if it_counts else NO_BROKER_EPOCH
    return ReplicaAnswer(
        broker, epoch, answer.last_written_epoch, answer.end_offset, may_lack_records=answer.may_lack_records
    )
