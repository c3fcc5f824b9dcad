"""Reassignment of partitions to other replicas: AlterPartitionReassignments and ListPartitionReassignments.

    start     the replicas are the targets, followed by those that leave, ascending; `adding` are the targets that the
              partition does not have yet, `removing` the replicas that are not targets. If nothing has to be copied,
              the same record completes it
    run       the leader takes adding replicas into the ISR; any change of the partition may complete the reassignment
              (`partition_change.py` has the conditions)
    replace   another start while one runs: replicas that were being added and are not targets any more are removed
    cancel    the adding replicas leave the assignment, the ISR and the ELR

Like a completion, a cancellation needs an ISR that reaches min ISR without the adding replicas. If no member of the ISR
would be left, an election among the original replicas decides. It may be a clean one from the ELR. It may be an unclean
one if the topic allows it (with the recovery manager on: if its strategy is Aggressive); the partition is then
RECOVERING, and the ISR must reach min ISR as always. If the partition has no leader and the recovery manager is on,
there is no such election: the manager compares logs before a leader is elected, and the cancellation waits for that.

A partition without a leader can also cancel below min ISR if that gives no record up: ISR, ELR or LastKnownELR name at
least one replica, and none of the adding ones. Then an adding replica holds no committed record that the original
replicas lack, and the partition waits for fewer replicas. This cannot elect a leader that could not have been elected
before.

Each partition succeeds or fails independently of the others. A null list means all running reassignments. Topics and
partitions that are unknown or have no reassignment are left out, without an error.

Source: KIP-455; KIP-860 (a fixed replication factor); KIP-966, "Other behaviors".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from heirlog.controller.assignments import bad_assignment, check_replicas
from heirlog.controller.controller_result import ControllerResult
from heirlog.controller.election import Election
from heirlog.controller.leadership import Changes, Leadership
from heirlog.controller.partition_change import BuiltChange, ElectionRequest, TargetState
from heirlog.metadata.apply import merged
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.image import Image
from heirlog.metadata.state import Ids, PartitionRegistration
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from heirlog.protocol.types import BrokerId, Uuid

Topic = ListPartitionReassignmentsResponse.OngoingTopicReassignment
Partition = ListPartitionReassignmentsResponse.OngoingPartitionReassignment
Asked = AlterPartitionReassignmentsRequest.ReassignablePartition
Answered = AlterPartitionReassignmentsResponse.ReassignablePartitionResponse


def alter_reassignments(
    image: Image, static: StaticConfig, request: AlterPartitionReassignmentsRequest
) -> ControllerResult[AlterPartitionReassignmentsResponse]:
    """Records of every reassignment that can be started or cancelled, and a result for each requested partition."""
    handling = _Handling(image, static, request.allow_replication_factor_change)
    response = AlterPartitionReassignmentsResponse(
        # an answer without topics does not repeat the request's value
        allow_replication_factor_change=request.allow_replication_factor_change or not request.topics,
        error_message=None if request.topics else "",
        responses=[
            AlterPartitionReassignmentsResponse.ReassignableTopicResponse(
                name=topic.name,
                partitions=[handling.partition(topic.name, asked) for asked in topic.partitions],
            )
            for topic in request.topics
        ],
    )
    return ControllerResult(lambda base_offset: response, [*handling.changes.records], handling.changes.elections)


class _Handling:
    """The state of one request while it is handled."""

    def __init__(self, image: Image, static: StaticConfig, may_change_factor: bool) -> None:
        self._image = image
        self._leadership = Leadership(image, static)
        self._may_change_factor = may_change_factor
        self._seen: set[tuple[str, int]] = set()
        self.changes = Changes()

    def partition(self, topic: str, asked: Asked) -> AlterPartitionReassignmentsResponse.ReassignablePartitionResponse:
        try:
            self.changes.add(self._changed(topic, asked))
        except KafkaError as error:
            return Answered(partition_index=asked.partition_index, error_code=error.code, error_message=error.message)
        return Answered(partition_index=asked.partition_index, error_message=None)

    def _changed(self, topic: str, asked: Asked) -> BuiltChange:
        index = asked.partition_index
        state = self._image.partition_named(topic, index)
        if state is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {index} of {topic!r}.")
        if (topic, index) in self._seen:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Partition {topic}-{index} was named twice; name it once.")
        self._seen.add((topic, index))
        topic_id = self._image.topic_ids[topic]
        if asked.replicas is None:
            return self._cancelled(topic_id, index, state)
        return self._started(topic_id, index, state, tuple(BrokerId(replica) for replica in asked.replicas))

    def _started(self, topic_id: Uuid, index: int, state: PartitionRegistration, targets: Ids) -> BuiltChange:
        check_replicas(self._image, targets)
        factor = len(state.replicas) - len(state.removing)
        if not self._may_change_factor and len(targets) != factor:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"The replication factor would change from {factor} to {len(targets)}, which the request forbids.",
            )
        leaving = tuple(sorted(replica for replica in state.replicas if replica not in targets))
        coming = tuple(
            sorted(replica for replica in targets if replica not in state.replicas or replica in state.adding)
        )
        return self._leadership.change(
            topic_id,
            index,
            TargetState(replicas=targets + leaving, adding=coming, removing=leaving),
            election_request=ElectionRequest(election=Election.ONLINE),
        )

    def _cancelled(self, topic_id: Uuid, index: int, state: PartitionRegistration) -> BuiltChange:
        if not state.is_reassigning:
            raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
        isr = tuple(replica for replica in state.isr if replica not in state.adding)
        original = tuple(replica for replica in state.replicas if replica not in state.adding)
        target = TargetState(isr=isr, replicas=original, adding=(), removing=())
        built = self._leadership.change(
            topic_id,
            index,
            target,
            election_request=ElectionRequest(
                election=Election.UNCLEAN if self._may_lose(topic_id, state) else Election.ONLINE
            ),
        )
        after = state if built.record is None else merged(self._image, state, built.record)
        # without ELR an empty ISR is not written: the ISR may still name replicas that leave
        members = [member for member in after.isr if member in original]
        required = self._leadership.min_isr(topic_id, original)
        if len(members) >= required:
            return built
        if not state.has_leader and _gives_nothing_up(state):
            return self._leadership.change(
                topic_id, index, target, election_request=ElectionRequest(election=Election.ONLINE)
            )
        if not isr and self._leadership.manager_enabled and not state.has_leader:
            raise bad_assignment(
                "The partition has no leader, and an adding replica may be the only one that has every committed "
                "record. Wait until the partition has a leader (heirlog recover plan says for which replicas it waits)."
            )
        if not isr:
            raise bad_assignment(
                "No original replica is in sync: a cancellation would need an unclean leader election, which the topic "
                "does not allow or no replica can win. Wait until an original replica is in sync again."
            )
        raise bad_assignment(
            f"Only {len(members)} of the original replicas are in sync, {required} are required "
            "(min.insync.replicas). Wait until more are, or assign other replicas."
        )

    def _may_lose(self, topic_id: Uuid, state: PartitionRegistration) -> bool:
        """Whether a cancellation may hold an election that does not compare logs."""
        if self._leadership.manager_enabled and not state.has_leader:
            return False
        return self._leadership.may_lose(topic_id)


def _gives_nothing_up(state: PartitionRegistration) -> bool:
    """Whether the lists name the members of the ISR, and no adding replica among them."""
    named = (*state.isr, *state.elr, *state.last_known_elr)
    return bool(named) and not any(replica in state.adding for replica in named)


def list_reassignments(image: Image, request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
    asked: Iterable[tuple[str, list[int] | None]]
    if request.topics is None:
        asked = [(name, None) for name in sorted(image.topic_ids)]
    else:
        asked = [(topic.name, topic.partition_indexes) for topic in request.topics]
    topics = [Topic(name=name, partitions=list(_ongoing(image, name, indexes))) for name, indexes in asked]
    return ListPartitionReassignmentsResponse(
        error_message=None, topics=[topic for topic in topics if topic.partitions]
    )


def _ongoing(image: Image, name: str, indexes: list[int] | None) -> Iterator[Partition]:
    """indexes: None for all of them."""
    topic_id = image.topic_ids.get(name)
    if topic_id is None:
        return
    states = image.partitions[topic_id]
    for index in sorted(states) if indexes is None else indexes:
        state = states.get(index)
        if state is not None and (state.adding or state.removing):
            yield Partition(
                partition_index=index,
                replicas=list(state.replicas),
                adding_replicas=list(state.adding),
                removing_replicas=list(state.removing),
            )
