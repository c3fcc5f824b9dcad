"""Unclean recovery as an operator sees it: what replicas hold, who would win, and what each choice would give up.

`describe_recovery` is a call as those of `admin.py` (key 10094); the rest is arithmetic on its answer:

    balanced      a member of ISR or ELR, once one can lead; if none is left, the longest log of the newest
                  epoch, once all members of the quorum have answered
    aggressive    the same at once, among those that have answered by now
    unclean       a live member of ISR or ELR, else the first replica that can lead
    designation   one per replica that can lead

An election of a member of ISR or ELR loses nothing.

What a choice gives up is reckoned by the same rule as the report after an election (`metadata/loss_report.py`), from
the answers that the controller has at that moment.

Source: KIP-966, "Unclean recovery", "Leader election strategies".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from heirlog.client.admin import after
from heirlog.client.call import Ask, Conversation, To
from heirlog.metadata.basis import ReplicaAnswer
from heirlog.metadata.loss_report import Loss, loss_of
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code
from heirlog.protocol.messages import DescribeRecoveryRequest, DescribeRecoveryResponse
from heirlog.protocol.types import BrokerEpoch, BrokerId

RecoveryTopic: TypeAlias = DescribeRecoveryResponse.RecoveryTopic
RecoveryPartition: TypeAlias = DescribeRecoveryResponse.RecoveryPartition
Replica: TypeAlias = DescribeRecoveryResponse.ReplicaReport

PAGE_PARTITIONS = 2000

NO_LOSS = Loss(None, 0, True, (), ())
"""Of a clean election."""


class Described(NamedTuple):
    manager_enabled: bool
    topics: list[RecoveryTopic]
    """By name; an error of a topic stands at the topic."""
    controller_epoch: int = -1
    """Epoch of the controller that answered last. Another controller does not know operators' earlier requests."""


def describe_recovery(
    topics: Mapping[str, Sequence[int] | None] | None = None, *, ask_replicas: bool = False
) -> Conversation[Described]:
    """The partitions without a leader: of these topics (None for a topic: all of its own), or of all.

    A partition that is named is described even if it has a leader. ask_replicas: the controller asks the replicas whose
    answers are not current; those answers are in a later description. Raises KafkaError.
    """
    found: dict[str, RecoveryTopic] = {}
    enabled = False
    cursor: DescribeRecoveryRequest.Cursor | None = None
    failure: KafkaError | None = None
    while True:
        asked = [
            DescribeRecoveryRequest.TopicRequest(name=name, partitions=None if indexes is None else list(indexes))
            for name, indexes in sorted((topics or {}).items())
        ]
        response: DescribeRecoveryResponse = yield Ask(
            DescribeRecoveryRequest(
                topics=asked, ask_replicas=ask_replicas, response_partition_limit=PAGE_PARTITIONS, cursor=cursor
            ),
            To.ANY,
            failure,
        )
        code = error_code(response.error_code)
        if code in _RETRIABLE:
            failure = KafkaError(code, response.error_message or "no controller describes the recovery")
            continue
        if code is not ErrorCode.NONE:
            raise KafkaError(code, response.error_message or "the description of the recovery was refused")
        failure = None
        enabled = response.manager_enabled
        for topic in response.topics:
            known = found.setdefault(topic.name or "", topic)
            if known is not topic:
                known.partitions.extend(topic.partitions)
        following = response.next_cursor
        if following is None:
            return Described(enabled, [found[name] for name in sorted(found)], response.controller_epoch)
        place = after(cursor, following)
        cursor = DescribeRecoveryRequest.Cursor(topic_name=place[0], partition_index=place[1])


_RETRIABLE = (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.BROKER_NOT_AVAILABLE)


class Choice(NamedTuple):
    name: str
    """balanced, aggressive, unclean, or designation."""
    leader: int | None
    """The winner with the current answers; None: no replica can be elected."""
    loss: Loss
    """If that were the leader."""
    waits_for: tuple[int, ...] = ()
    """Replicas that have to answer first, or to come back (`waits_for_one`). If not empty, no leader is elected now."""
    waits_for_one: bool = False
    """One of them suffices: each has every committed record."""


def choices(partition: RecoveryPartition, manager_enabled: bool = True) -> Iterator[Choice]:
    """What an operator can do about a partition without a leader, and what it would cost now."""
    answers = answers_of(partition)
    acceptable = [replica.broker_id for replica in partition.replicas if replica.is_acceptable]
    eligible = tuple(partition.isr_nodes or partition.eligible_leader_replicas)
    clean = next((broker for broker in acceptable if broker in eligible), None)

    def choice(name: str, leader: int | None) -> Choice:
        if leader is None or leader in eligible:
            return Choice(name, leader, NO_LOSS)
        return Choice(name, leader, loss_of(BrokerId(leader), answers))

    if manager_enabled:
        longest = choice("aggressive", _longest(partition) if clean is None else clean)
        balanced = longest._replace(name="balanced")
        if clean is None and eligible:
            yield balanced._replace(leader=None, loss=NO_LOSS, waits_for=eligible, waits_for_one=True)
        elif clean is None:
            yield balanced._replace(waits_for=_without_valid_answer(partition))
        else:
            yield balanced
        yield longest
    yield choice("unclean", _unclean(partition, acceptable, manager_enabled) if clean is None else clean)
    if manager_enabled:
        for broker in acceptable:
            yield choice("designation", broker)


def _unclean(partition: RecoveryPartition, acceptable: Sequence[int], manager_enabled: bool) -> int | None:
    """Without the manager the one last known leader goes first, as on Apache Kafka."""
    known = partition.last_known_elr
    if not manager_enabled and not partition.eligible_leader_replicas and len(known) == 1 and known[0] in acceptable:
        return known[0]
    return next(iter(acceptable), None)


def answers_of(partition: RecoveryPartition) -> list[ReplicaAnswer]:
    """What the controller would write down of the replicas, were it to elect now."""
    return [_answer_of(partition, replica) for replica in partition.replicas]


def _answer_of(partition: RecoveryPartition, replica: Replica) -> ReplicaAnswer:
    broker = BrokerId(replica.broker_id)
    # an answer from before this leader epoch is no limit: the log may have grown since
    if replica.error_code or replica.log_end_offset < 0 or replica.current_leader_epoch != partition.leader_epoch:
        return ReplicaAnswer(broker)
    if replica.is_valid:
        epoch = BrokerEpoch(replica.broker_epoch)
        return ReplicaAnswer(broker, epoch, replica.last_written_leader_epoch, replica.log_end_offset)
    return ReplicaAnswer(
        broker, last_written_epoch=replica.last_written_leader_epoch, end_offset=replica.log_end_offset
    )


def _longest(partition: RecoveryPartition) -> int | None:
    """max() keeps the first of equals: assignment order."""
    answered = [replica for replica in partition.replicas if replica.is_valid and replica.is_acceptable]
    best = max(answered, key=lambda replica: (replica.last_written_leader_epoch, replica.log_end_offset), default=None)
    return None if best is None else best.broker_id


def _without_valid_answer(partition: RecoveryPartition) -> tuple[int, ...]:
    """Of the quorum of Balanced, those that have not answered so that it counts."""
    valid = {replica.broker_id for replica in partition.replicas if replica.is_valid}
    return tuple(broker for broker in partition.quorum if broker not in valid)
