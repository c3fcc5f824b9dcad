"""Elections that nobody's coming or going caused: by an operator, and by the controller's own tasks.

    type 0, preferred   not needed if the first replica leads; else a PREFERRED election, and
                        PREFERRED_LEADER_NOT_AVAILABLE if that does not put the first replica in charge
    type 1, unclean     not needed if anyone leads; else an UNCLEAN election whatever the topic allows (KIP-460), and
                        ELIGIBLE_LEADERS_NOT_AVAILABLE if nobody can lead. A live ISR or ELR member goes first and then
                        the election is clean

A null list asks for every partition and leaves out those that need no election; an empty one asks for nothing. Any
other type is INVALID_REQUEST for the whole request. Each partition is its own change: records may span several batches.

The tasks: the balancer gives partitions back to their first replica; the unclean task elects for leaderless partitions
of topics that allow it, because turning the flag on elects nobody by itself (C091); with the recovery manager on it has
nothing to do. Both stop at a number of elections
per run and say so.

Source: KIP-460.
"""

from __future__ import annotations

from collections.abc import Iterator

from heirlog.controller.election import Election
from heirlog.controller.leadership import Changes, Leadership
from heirlog.controller.outcome import Outcome, answer
from heirlog.controller.refusals import elect_leaders_refused
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.image import LEADER_UNCHANGED, Image
from heirlog.metadata.state import PartitionState
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from heirlog.protocol.types import Uuid

PREFERRED_TYPE = 0
UNCLEAN_TYPE = 1

MAX_ELECTIONS_PER_RUN = 1000

Result = ElectLeadersResponse.PartitionResult
TopicResult = ElectLeadersResponse.ReplicaElectionResult

_SENTENCES = {
    ErrorCode.NONE: None,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "No such topic or partition.",
    ErrorCode.ELECTION_NOT_NEEDED: "Leader election not needed for topic partition.",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred leader was not available.",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "No replica that may lead is available.",
}


def elect_leaders(image: Image, static: StaticConfig, request: ElectLeadersRequest) -> Outcome:
    """Records and results of one request."""
    if request.election_type not in (PREFERRED_TYPE, UNCLEAN_TYPE):
        return answer(elect_leaders_refused(request, ErrorCode.INVALID_REQUEST))
    kind = Election.PREFERRED if request.election_type == PREFERRED_TYPE else Election.UNCLEAN
    leadership, changes = Leadership(image, static), Changes()
    topics: dict[str, TopicResult] = {}
    seen: set[tuple[str, int]] = set()
    for name, partition in _asked(image, request):
        if (name, partition) in seen:
            continue
        seen.add((name, partition))
        code = _elect(image, leadership, changes, name, partition, kind)
        if request.topic_partitions is None and code is ErrorCode.ELECTION_NOT_NEEDED:
            continue
        result = Result(partition_id=partition, error_code=code, error_message=_SENTENCES[code])
        topics.setdefault(name, TopicResult(topic=name)).partition_result.append(result)
    response = ElectLeadersResponse(replica_election_results=list(topics.values()))
    return Outcome(lambda base_offset: response, [*changes.records], changes.elections)


def _asked(image: Image, request: ElectLeadersRequest) -> Iterator[tuple[str, int]]:
    if request.topic_partitions is None:
        for name in sorted(image.topic_ids):
            for partition in sorted(image.partitions[image.topic_ids[name]]):
                yield name, partition
        return
    for topic in request.topic_partitions:
        for partition in topic.partitions:
            yield topic.topic, partition


def _elect(
    image: Image, leadership: Leadership, changes: Changes, topic: str, partition: int, kind: Election
) -> ErrorCode:
    topic_id = image.topic_ids.get(topic)
    state = None if topic_id is None else image.partitions[topic_id].get(partition)
    if topic_id is None or state is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if state.leader == state.replicas[0] or (kind is Election.UNCLEAN and state.has_leader):
        return ErrorCode.ELECTION_NOT_NEEDED
    built = leadership.change(topic_id, partition, election=kind)
    leader = state.leader
    if built.record is not None and built.record.leader != LEADER_UNCHANGED:
        leader = built.record.leader  # type: ignore[assignment]  # the codec's int is a broker id here
    if kind is Election.PREFERRED and leader != state.replicas[0]:
        if built.basis is not None and not state.has_leader:
            # nobody led before and somebody can now: refusing that would serve no one
            changes.add(built)
        return ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    if built.basis is None:
        return ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    changes.add(built)
    return ErrorCode.NONE


def balance(image: Image, static: StaticConfig, limit: int = MAX_ELECTIONS_PER_RUN) -> tuple[Changes, bool]:
    """Give partitions back to their first replicas; whether the limit cut the run short."""
    leadership, changes = Leadership(image, static), Changes()
    for topic_id, partition, state in _imbalanced(image):
        if len(changes.records) >= limit:
            return changes, True
        built = leadership.change(topic_id, partition, election=Election.PREFERRED)
        if built.record is not None and built.record.leader == state.replicas[0]:
            changes.add(built)
    return changes, False


def elect_unclean(image: Image, static: StaticConfig, limit: int = MAX_ELECTIONS_PER_RUN) -> tuple[Changes, bool]:
    """Elect for leaderless partitions of topics that allow unclean elections; whether the limit cut the run short."""
    leadership, changes = Leadership(image, static), Changes()
    if leadership.manager_enabled:
        return changes, False
    for topic_id, partition in image.leaderless():
        if not leadership.allows_unclean(topic_id):
            continue
        if len(changes.records) >= limit:
            return changes, True
        built = leadership.change(topic_id, partition, election=Election.UNCLEAN)
        if built.basis is not None:
            changes.add(built)
    return changes, False


def _imbalanced(image: Image) -> Iterator[tuple[Uuid, int, PartitionState]]:
    for topic_id in sorted(image.partitions):
        partitions = image.partitions[topic_id]
        for partition in sorted(partitions):
            state = partitions[partition]
            if state.has_leader and state.leader != state.replicas[0]:
                yield topic_id, partition, state
