"""ElectLeaders and the controller's own election tasks: elections that no broker's registration or failure caused.

    type 0, preferred    not needed if the first replica leads; else a PREFERRED election, and
                         PREFERRED_LEADER_NOT_AVAILABLE if that changes nothing. If the partition had no leader,
                         another replica may become leader; that is no error, as on Apache Kafka
    type 1, unclean      not needed if the partition has a leader; else an UNCLEAN election whatever the topic allows
                         (KIP-460), and ELIGIBLE_LEADERS_NOT_AVAILABLE if that changes nothing. A live member of ISR
                         or ELR is preferred, and then the election is clean. Never starts a recovery
    type 2, longest log  a recovery with the strategy Balanced, whatever the topic says; `SkipWait`: do not wait for
       balanced          replicas outside the quorum
    type 3, longest log  the same with the strategy Aggressive
       aggressive
    type 4, designation  the desired leader and no other replica. INVALID_REQUEST if it is not a replica, or if the
                         request names no leader or several. ELIGIBLE_LEADERS_NOT_AVAILABLE if it is fenced, shuts
                         down, or its log directory is offline

Types 2 to 4 need version 3 and the recovery manager; otherwise, and for any other number, the whole request gets
INVALID_REQUEST. They are not needed if the partition has a leader. A recovery takes time. If it does not end at once,
the answer is ELIGIBLE_LEADERS_NOT_AVAILABLE with a message that names the brokers it waits for. The recovery continues,
and DescribeRecovery shows its state.

A null list means every partition; those that need no election are not in the answer. An empty list means no partition,
for every type. Every topic is in the answer, even without a partition, as on Apache Kafka. A request of version 3
serves 1000 partitions. The others get REQUEST_LIMIT_REACHED, and the client asks for them again. No client of Apache
Kafka knows that error, so versions 0 to 2 have no limit. Each partition is its own change: the records may span several
batches.

The tasks: the balancer makes the first replica of each partition its leader. The unclean task elects leaders for
leaderless partitions of topics that allow it, because switching the flag on elects no leader on its own (case C091 of
docs/internals/kafka-behaviour.md). With the recovery manager on, the unclean task does nothing. Both tasks stop at a
number of elections per run, and report that they did.

Source: KIP-460; KIP-966, "ElectLeadersRequest" (the numbers of types 2 to 4 are ours: the KIP names none).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from heirlog.controller.controller_result import ControllerResult, answer
from heirlog.controller.election import Election, ElectionResult
from heirlog.controller.error_messages import sentence
from heirlog.controller.leadership import Changes, Leadership
from heirlog.controller.partition_change import ElectionRequest
from heirlog.controller.recovery.manager import RecoveryManager
from heirlog.controller.recovery.status import waiting_sentence
from heirlog.controller.recovery.strategy import Strategy
from heirlog.metadata.basis import Basis
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.image import Image
from heirlog.metadata.state import PartitionRegistration
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ElectLeadersRequest, ElectLeadersResponse
from heirlog.protocol.types import NO_LEADER, BrokerId, Uuid

PREFERRED_TYPE: Final = 0
UNCLEAN_TYPE: Final = 1
LONGEST_LOG_BALANCED_TYPE: Final = 2
LONGEST_LOG_AGGRESSIVE_TYPE: Final = 3
DESIGNATION_TYPE: Final = 4

RECOVERY_TYPES_VERSION: Final = 3
"""The first version that knows types 2 to 4."""
MAX_PARTITIONS: Final = 1000
"""Limit of one request from RECOVERY_TYPES_VERSION on (KIP-966)."""
MAX_ELECTIONS_PER_RUN = 1000

Result = ElectLeadersResponse.PartitionResult
TopicResult = ElectLeadersResponse.ReplicaElectionResult

_KINDS: Final = {PREFERRED_TYPE: Election.PREFERRED, UNCLEAN_TYPE: Election.UNCLEAN}
_UNCHANGED: Final = {
    Election.PREFERRED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    Election.UNCLEAN: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}
_STRATEGIES: Final = {
    LONGEST_LOG_BALANCED_TYPE: Strategy.BALANCED,
    LONGEST_LOG_AGGRESSIVE_TYPE: Strategy.AGGRESSIVE,
}
_SENTENCES: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "No such topic or partition.",
    ErrorCode.ELECTION_NOT_NEEDED: "Leader election not needed for topic partition.",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred leader was not available.",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "No replica that may lead is available.",
    ErrorCode.REQUEST_LIMIT_REACHED: f"One request can elect leaders for {MAX_PARTITIONS} partitions; repeat the "
    "request for this one.",
}


class _Asked(NamedTuple):
    topic: str
    partition: int
    desired: BrokerId | None
    """The leader that a designation names."""


class _Answered(NamedTuple):
    code: ErrorCode
    sentence: str | None = None
    """None: the default message of the error code."""


def refused(request: ElectLeadersRequest, code: ErrorCode) -> ElectLeadersResponse:
    """Refuse the whole request. Every partition gets the error too: version 0 has no error for the whole request."""
    return ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            TopicResult(
                topic=topic.topic,
                partition_result=[
                    Result(partition_id=partition, error_code=code, error_message=sentence(code))
                    for partition in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )


def elect_leaders(
    image: Image, static: StaticConfig, request: ElectLeadersRequest, version: int, recovery: RecoveryManager
) -> ControllerResult[ElectLeadersResponse]:
    """Returns the records and results of one request."""
    known = request.election_type in _KINDS or (
        request.election_type in (*_STRATEGIES, DESIGNATION_TYPE)
        and version >= RECOVERY_TYPES_VERSION
        and recovery.enabled
    )
    if not known and request.topic_partitions != []:
        return answer(refused(request, ErrorCode.INVALID_REQUEST))
    served_max = MAX_PARTITIONS if version >= RECOVERY_TYPES_VERSION else None
    handling = _Handling(image, static, request, recovery, served_max)
    named = image.topic_ids if request.topic_partitions is None else [t.topic for t in request.topic_partitions]
    topics = {name: TopicResult(topic=name) for name in sorted(named)}
    wanted: dict[tuple[str, int], list[_Asked]] = {}
    for asked in _asked(image, request):
        wanted.setdefault((asked.topic, asked.partition), []).append(asked)
    for asked, *again in wanted.values():
        code, sentence = handling.partition(asked, {asked.desired, *(other.desired for other in again)})
        if request.topic_partitions is None and code is ErrorCode.ELECTION_NOT_NEEDED:
            continue
        result = Result(partition_id=asked.partition, error_code=code, error_message=sentence or _SENTENCES.get(code))
        topics[asked.topic].partition_result.append(result)
    response = ElectLeadersResponse(replica_election_results=list(topics.values()))
    return ControllerResult(lambda base_offset: response, [*handling.changes.records], handling.changes.elections)


def _asked(image: Image, request: ElectLeadersRequest) -> Iterator[_Asked]:
    if request.topic_partitions is None:
        for name in sorted(image.topic_ids):
            for partition in sorted(image.partitions[image.topic_ids[name]]):
                yield _Asked(name, partition, None)
        return
    for topic in request.topic_partitions:
        desired = topic.desired_leaders or ()
        for position, partition in enumerate(topic.partitions):
            named = desired[position] if position < len(desired) else NO_LEADER
            yield _Asked(topic.topic, partition, None if named == NO_LEADER else BrokerId(named))


class _Handling:
    """The state of one request while it is handled."""

    def __init__(
        self,
        image: Image,
        static: StaticConfig,
        request: ElectLeadersRequest,
        recovery: RecoveryManager,
        served_max: int | None,
    ) -> None:
        """served_max: None for no limit."""
        self._image = image
        self._type = request.election_type
        self._skips_wait = request.skip_wait
        self._names_partitions = request.topic_partitions is not None
        self._leadership = Leadership(image, static)
        self._recovery = recovery
        self._served = 0
        self._served_max = served_max
        self.changes = Changes()

    def partition(self, asked: _Asked, desired: Collection[BrokerId | None]) -> _Answered:
        """desired: all leaders that the request names for this partition."""
        topic_id = self._image.topic_ids.get(asked.topic)
        state = None if topic_id is None else self._image.partitions[topic_id].get(asked.partition)
        needed = state is not None and self._is_needed(state)
        if self._names_partitions or needed:
            if self._served == self._served_max:
                return _Answered(ErrorCode.REQUEST_LIMIT_REACHED)
            self._served += 1
        if topic_id is None or state is None:
            return _Answered(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if not needed:
            return _Answered(ErrorCode.ELECTION_NOT_NEEDED)
        if self._type in _STRATEGIES:
            return self._recover((topic_id, asked.partition), _STRATEGIES[self._type])
        if self._type == DESIGNATION_TYPE:
            if len(desired) > 1:
                return _Answered(ErrorCode.INVALID_REQUEST, "Several leaders were named for it: name one.")
            return self._designate((topic_id, asked.partition), state, asked.desired)
        return _Answered(self._elect((topic_id, asked.partition), state, _KINDS[self._type]))

    def _is_needed(self, state: PartitionRegistration) -> bool:
        if self._type == PREFERRED_TYPE:
            return state.leader != state.replicas[0]
        return not state.has_leader

    def _elect(self, key: tuple[Uuid, int], state: PartitionRegistration, kind: Election) -> ErrorCode:
        built = self._leadership.change(
            *key,
            election_request=ElectionRequest(
                election=kind, answers=self._recovery.open_recoveries.recorded_answers(key, state)
            ),
        )
        if built.record is None:
            return _UNCHANGED[kind]
        self.changes.add(built)
        return ErrorCode.NONE

    def _recover(self, key: tuple[Uuid, int], strategy: Strategy) -> _Answered:
        elected = len(self.changes.records)
        verdict = self._recovery.request(key, strategy, self._skips_wait, self._leadership, self.changes)
        if len(self.changes.records) > elected:
            return _Answered(ErrorCode.NONE)
        return _Answered(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, waiting_sentence(verdict))

    def _designate(self, key: tuple[Uuid, int], state: PartitionRegistration, desired: BrokerId | None) -> _Answered:
        if desired is None:
            return _Answered(ErrorCode.INVALID_REQUEST, "No leader was named: a designation needs desiredLeader.")
        if desired not in state.replicas:
            replicas = ", ".join(str(replica) for replica in state.replicas)
            return _Answered(
                ErrorCode.INVALID_REQUEST, f"Broker {desired} has no replica of it; the replicas are {replicas}."
            )
        if not self._leadership.acceptable(state)(desired):
            return _Answered(
                ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
                f"Broker {desired} cannot lead now: it is fenced, shutting down, or its log directory is offline.",
            )
        answers = self._recovery.open_recoveries.recorded_answers(key, state)
        election_request = ElectionRequest(chosen=ElectionResult(desired, Basis.DESIGNATED), answers=answers)
        self.changes.add(self._leadership.change(*key, election_request=election_request))
        return _Answered(ErrorCode.NONE)


def balance(image: Image, static: StaticConfig, limit: int = MAX_ELECTIONS_PER_RUN) -> tuple[Changes, bool]:
    """Make the first replicas leaders again. Returns the changes, and whether the limit was reached."""
    leadership, changes = Leadership(image, static), Changes()
    for topic_id, partition in _imbalanced(image):
        if len(changes.records) >= limit:
            break
        changes.add(
            leadership.change(topic_id, partition, election_request=ElectionRequest(election=Election.PREFERRED))
        )
    return changes, len(changes.records) >= limit


def elect_unclean(image: Image, static: StaticConfig, limit: int = MAX_ELECTIONS_PER_RUN) -> tuple[Changes, bool]:
    """Elect leaders for leaderless partitions of topics that allow it, and return whether the limit was reached."""
    leadership, changes = Leadership(image, static), Changes()
    if leadership.manager_enabled:
        return changes, False
    for topic_id, partition in image.leaderless():
        if len(changes.records) >= limit:
            break
        if leadership.allows_unclean(topic_id):
            changes.add(
                leadership.change(topic_id, partition, election_request=ElectionRequest(election=Election.UNCLEAN))
            )
    return changes, len(changes.records) >= limit


def _imbalanced(image: Image) -> Iterator[tuple[Uuid, int]]:
    """Partitions whose leader is not their first replica, leaderless ones included."""
    for topic_id in sorted(image.partitions):
        partitions = image.partitions[topic_id]
        for partition in sorted(partitions):
            if partitions[partition].leader != partitions[partition].replicas[0]:
                yield topic_id, partition
