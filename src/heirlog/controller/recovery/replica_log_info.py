"""What replicas say of their logs, which answers count, and whose log is best.

An answer is a snapshot of a log that must not change any more, so it has to be of the incarnation that is registered
now, and that incarnation must know the controller's leader epoch: only then does it neither fetch from an old leader
nor append as one. An answer that fails a check is worth nothing, however recent; the replica is asked again.

Rank: the leader epoch of the last record first, the length second, the place in the assignment last. A longer log of an
earlier leader is a tail that its successor never had (KIP-101): not more data, other data.

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
    """Controller's clock."""
    error: ErrorCode = ErrorCode.NONE
    message: str = ""


def is_of_this_registration(answer: ReplicaLogInfo, registered_epoch: int) -> bool:
    """Guard 10: the answer carries the registered broker epoch.

    Without it a replica that answered, rebooted and lost its tail wins with the log that it had.
    """
    return answer.broker_epoch == registered_epoch


def knows_the_leader_epoch(answer: ReplicaLogInfo, leader_epoch: int) -> bool:
    """Guard 11: the answer carries the controller's current leader epoch.

    Without it a replica that still follows an old leader is judged by a log that grows or shrinks after the answer.
    """
    return answer.current_leader_epoch == leader_epoch


def counts(answer: ReplicaLogInfo | None, registered_epoch: int, leader_epoch: int) -> bool:
    """Whether the answer may decide anything."""
    return (
        answer is not None
        and answer.error is ErrorCode.NONE
        and is_of_this_registration(answer, registered_epoch)
        and knows_the_leader_epoch(answer, leader_epoch)
    )


def bounds(answer: ReplicaLogInfo, leader_epoch: int) -> bool:
    """Whether it tells how much the replica can hold at most: true also of an earlier incarnation, whose log was not
    shorter.
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
    """The winner among `valid` (not empty): of equal logs the one that comes first in the assignment."""
    candidates = [replica for replica in replicas if replica in valid]
    winner = candidates[0]
    for replica in candidates[1:]:
        if is_better(valid[replica], valid[winner]):
            winner = replica
    return winner


def recorded(broker: BrokerId, answer: ReplicaLogInfo, it_counts: bool) -> ReplicaAnswer:
    """As the record of an election keeps it. One that does not count keeps its figures without a broker epoch."""
    epoch = BrokerEpoch(answer.broker_epoch) if it_counts else NO_BROKER_EPOCH
    return ReplicaAnswer(broker, epoch, answer.last_written_epoch, answer.end_offset)
