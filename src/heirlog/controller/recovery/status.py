"""DescribeRecovery (key 10094): the state of partitions without a leader, for people and tools.

    Led                        nothing to recover
    WaitingForEligible         a member of ISR or ELR has every record and is away: it leads as soon as it is back
    WaitingForQuorum           Balanced: a replica that may hold the lost records is away
    Recovering                 replicas are asked; `WaitsFor` and `WaitEndsInMs` say whose answers are missing
    ManualElectionRequired     the strategy is None, or no rule elects a leader: an operator decides
    WaitingForLastKnownLeader  manager off: Apache Kafka's rule
    WaitingForAnyReplica       manager off, unclean elections allowed: the first replica that is back leads

Topics are in ascending order of their names, in pages with a cursor as in DescribeTopicPartitions. A request without
topics describes all partitions without a leader. A topic without partitions describes those of the topic. A partition
that is named is described in any state. With `AskReplicas`, replicas whose answers do not count yet are asked. The
response does not wait for them: send the request again while `IsBeingAsked`.

Reads the controller's image and the manager's memory; decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from heirlog.controller.leadership import Leadership
from heirlog.controller.recovery.decision import Phase, RecoveryDecision, quorum_of
from heirlog.controller.recovery.manager import RecoveryManager
from heirlog.controller.recovery.open_recoveries import OpenRecovery
from heirlog.controller.recovery.replica_log_info import ReplicaLogInfo
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.image import Image
from heirlog.metadata.state import RECOVERY_VERSION, Ids, PartitionRegistration
from heirlog.metadata.survey import Survey, in_groups
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import DescribeRecoveryRequest, DescribeRecoveryResponse
from heirlog.protocol.types import BrokerId, PartitionKey

Topic = DescribeRecoveryResponse.RecoveryTopic
Partition = DescribeRecoveryResponse.RecoveryPartition
Report = DescribeRecoveryResponse.ReplicaReport
Cursor = DescribeRecoveryResponse.Cursor


class _Wanted(NamedTuple):
    topic: str
    partition: int
    """-1: the topic itself is unknown."""


class Counts(NamedTuple):
    """Current counts over all partitions of the image (KIP-966, "Metrics")."""

    recovery_partitions: int
    """Partitions that are recovering, or that wait for the quorum of Balanced."""
    manual_election_required: int


def describe_recovery(
    image: Image,
    static: StaticConfig,
    manager: RecoveryManager,
    request: DescribeRecoveryRequest,
    now_ms: int,
    controller_epoch: int,
) -> DescribeRecoveryResponse:
    """Describe one page of partitions."""
    try:
        page, rest = _page(image, static, request)
    except KafkaError as error:
        return DescribeRecoveryResponse(error_code=error.code, error_message=error.message)
    describing = _Describing(image, static, manager, now_ms)
    topics: dict[str, DescribeRecoveryResponse.RecoveryTopic] = {}
    for topic, partition in page:
        described = topics.setdefault(topic, describing.topic(topic))
        if partition >= 0 and not described.error_code:
            described.partitions.append(describing.partition(topic, partition))
    return DescribeRecoveryResponse(
        error_message=None,
        manager_enabled=manager.enabled,
        controller_epoch=controller_epoch,
        topics=list(topics.values()),
        next_cursor=Cursor(topic_name=rest[0].topic, partition_index=rest[0].partition) if rest else None,
    )


def ask_replicas(
    image: Image, static: StaticConfig, manager: RecoveryManager, request: DescribeRecoveryRequest
) -> None:
    """Ask the page's replicas, before the page is described, so that it can say which are being asked."""
    try:
        page, _ = _page(image, static, request)
    except KafkaError:
        return
    manager.survey((image.topic_ids[topic], partition) for topic, partition in page if topic in image.topic_ids)
    manager.settle()


def count(image: Image, static: StaticConfig, manager: RecoveryManager) -> Survey[Counts]:
    """Count over every partition without a leader."""
    recovering = manual = 0
    for group in in_groups(image.leaderless()):
        leadership = Leadership(image, static)  # records may have been applied since the last one
        for topic_id, partition in group:
            state = image.partition(topic_id, partition)
            if state is not None and not state.has_leader:
                phase = manager.judge((topic_id, partition), state, leadership).phase
                recovering += phase in (Phase.RECOVERING, Phase.WAITING_FOR_QUORUM)
                manual += phase is Phase.MANUAL
        yield
    return Counts(recovering, manual)


def waiting_sentence(verdict: RecoveryDecision) -> str:
    """Which brokers a requested recovery waits for, if it has not ended at once."""
    brokers = ", ".join(str(broker) for broker in verdict.waits_for)
    match verdict.phase:
        case Phase.WAITING_FOR_ELIGIBLE:
            return f"It waits for one of the brokers {brokers}, which have every committed record."
        case Phase.WAITING_FOR_QUORUM:
            return f"It waits for the brokers {brokers} to come back: they may have the lost records."
        case _:
            limit = "" if verdict.wait_ends_ms is None else ", up to its time limit"
            return (
                "The controller asks the replicas how long their logs are, and waits for the answers of the "
                f"brokers {brokers}{limit}."
            )


def _page(image: Image, static: StaticConfig, request: DescribeRecoveryRequest) -> tuple[list[_Wanted], list[_Wanted]]:
    """The partitions that this response describes, and those left for the next ones."""
    wanted = _from_cursor(_wanted(image, request), request.cursor)
    limit = max(1, min(static.int("max.request.partition.size.limit"), request.response_partition_limit))
    return wanted[:limit], wanted[limit:]


def _wanted(image: Image, request: DescribeRecoveryRequest) -> list[_Wanted]:
    """The requested partitions, in order of topic and partition."""
    if not request.topics:
        return sorted(_Wanted(image.topics[topic_id].name, partition) for topic_id, partition in image.leaderless())
    return sorted({wanted for asked in request.topics for wanted in _wanted_of(image, asked)})


def _wanted_of(image: Image, asked: DescribeRecoveryRequest.TopicRequest) -> Iterator[_Wanted]:
    topic_id = image.topic_ids.get(asked.name)
    if topic_id is None:
        yield _Wanted(asked.name, -1)
    elif asked.partitions is not None:
        yield from (_Wanted(asked.name, partition) for partition in asked.partitions)
    else:
        states = image.partitions[topic_id]
        yield from (_Wanted(asked.name, partition) for partition in states if not states[partition].has_leader)


def _from_cursor(wanted: list[_Wanted], cursor: DescribeRecoveryRequest.Cursor | None) -> list[_Wanted]:
    if cursor is None:
        return wanted
    if cursor.partition_index < -1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the cursor's partition is negative")
    first = _Wanted(cursor.topic_name, cursor.partition_index)
    return [row for row in wanted if row >= first]


class _Describing:
    """Builds one response."""

    def __init__(self, image: Image, static: StaticConfig, manager: RecoveryManager, now_ms: int) -> None:
        self._image = image
        self._manager = manager
        self._now_ms = now_ms
        self._leadership = Leadership(image, static)

    def topic(self, name: str) -> DescribeRecoveryResponse.RecoveryTopic:
        topic_id = self._image.topic_ids.get(name)
        if topic_id is None:
            return Topic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name)
        return Topic(name=name, topic_id=topic_id)

    def partition(self, topic: str, index: int) -> DescribeRecoveryResponse.RecoveryPartition:
        topic_id = self._image.topic_ids[topic]
        state = self._image.partition(topic_id, index)
        if state is None:
            return Partition(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, partition_index=index)
        key = (topic_id, index)
        recovery = self._manager.open_recoveries.recoveries.get(key)
        if recovery is not None and recovery.leader_epoch != state.leader_epoch:
            recovery = None
        verdict = self._manager.judge(key, state, self._leadership)
        min_isr = self._leadership.min_isr(topic_id, state.replicas)
        quorum = quorum_of(state, min_isr)
        began_ms = None if recovery is None else recovery.began_ms
        return Partition(
            partition_index=index,
            leader_id=state.leader,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            min_isr=min_isr,
            replica_nodes=list(state.replicas),
            isr_nodes=list(state.isr),
            eligible_leader_replicas=list(state.elr),
            last_known_elr=list(state.last_known_elr),
            state=verdict.phase.value,
            strategy=self._manager.strategy(key, self._leadership).value,
            is_requested=recovery is not None and recovery.requested is not None,
            quorum=list(quorum.members),
            quorum_reason=quorum.reason + self._who_cannot_answer(quorum.members),
            waits_for=list(verdict.waits_for),
            runs_for_ms=-1 if began_ms is None else self._now_ms - began_ms,
            wait_ends_in_ms=-1 if verdict.wait_ends_ms is None else max(0, verdict.wait_ends_ms - self._now_ms),
            replicas=[self._replica(key, state, recovery, replica) for replica in state.replicas],
        )

    def _who_cannot_answer(self, members: Ids) -> str:
        """The members that cannot answer, and what to do about them."""
        unreachable = [str(member) for member in members if self._manager.endpoint_of(member) is None]
        if not unreachable:
            return ""
        brokers = ", ".join(unreachable)
        return f"; {brokers} cannot be asked (not registered, or without {RECOVERY_VERSION}): designate a leader"

    def _replica(
        self, key: PartitionKey, state: PartitionRegistration, recovery: OpenRecovery | None, replica: BrokerId
    ) -> DescribeRecoveryResponse.ReplicaReport:
        broker = self._image.brokers.get(replica)
        report = Report(
            broker_id=replica,
            is_registered=broker is not None,
            is_fenced=broker is not None and broker.fenced,
            is_acceptable=self._leadership.acceptable(state)(replica),
            serves_recovery=self._manager.endpoint_of(replica) is not None,
            registered_epoch=-1 if broker is None else broker.epoch,
            is_being_asked=not state.has_leader and self._manager.sender.is_asking(replica, key),
            is_valid=replica in self._manager.open_recoveries.answers_that_count(key, state),
            error_message=None,
        )
        answer = None if recovery is None else recovery.answers.get(replica)
        failure = self._manager.failures.get(replica)
        if answer is not None:
            self._fill_in(report, answer)
        if failure is not None and (answer is None or failure.at_ms > answer.at_ms):
            report.error_code, report.error_message = ErrorCode.NETWORK_EXCEPTION, failure.what
        return report

    def _fill_in(self, report: DescribeRecoveryResponse.ReplicaReport, answer: ReplicaLogInfo) -> None:
        report.answer_age_ms = self._now_ms - answer.at_ms
        report.error_code, report.error_message = answer.error, answer.message or None
        if answer.error is ErrorCode.NONE:
            report.broker_epoch = answer.broker_epoch
            report.current_leader_epoch = answer.current_leader_epoch
            report.last_written_leader_epoch = answer.last_written_epoch
            report.log_end_offset = answer.end_offset
            report.may_lack_records = answer.may_lack_records
