"""AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter on the node that receives them (KIP-853).

In this order: a request of another cluster; for an update, an epoch that is not this node's; a node that does not lead;
a voter without an id, a directory id, or an endpoint that voters can reach; then the rules of `voter_changes.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from heirlog.env import EventLog
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from heirlog.protocol.types import ZERO_UUID, BrokerId, Endpoint, Uuid
from heirlog.raft.control import Voter
from heirlog.raft.epoch_driver import Answer, EpochDriver
from heirlog.raft.fetch_service import epoch_error
from heirlog.raft.leader import LeaderState
from heirlog.raft.local_replica import LocalReplica
from heirlog.raft.replica_key import ReplicaKey
from heirlog.raft.voter_changes import KRaftVersions, Outcome, VoterChanges

R = TypeVar("R")


class NamedListener(Protocol):
    name: str
    host: str
    port: int


class VoterRequests:
    def __init__(
        self, driver: EpochDriver, replica: LocalReplica, leading: Callable[[], LeaderState | None], log: EventLog
    ) -> None:
        """leading: None while this node does not lead."""
        self._driver = driver
        self._replica = replica
        self._leading = leading
        self._log = log

    def add(self, request: AddRaftVoterRequest) -> Answer[AddRaftVoterResponse]:
        def change(changes: VoterChanges, listener: str) -> Pending[Outcome]:
            key = _key(request.voter_id, request.voter_directory_id)
            endpoint = _endpoints(request.listeners).get(listener)
            if endpoint is None:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"controller {key.id} has no endpoint for the listener {listener}, on which voters reach each "
                    "other: name one",
                )
            voter = Voter(BrokerId(key.id), key.directory_id, endpoint, listener)
            return changes.add(voter, is_answered_at_append=not request.ack_when_committed)

        return self._handle(
            request.cluster_id,
            None,
            change,
            lambda outcome: AddRaftVoterResponse(error_code=outcome.error, error_message=outcome.message),
        )

    def remove(self, request: RemoveRaftVoterRequest) -> Answer[RemoveRaftVoterResponse]:
        return self._handle(
            request.cluster_id,
            None,
            lambda changes, _: changes.remove(_key(request.voter_id, request.voter_directory_id)),
            lambda outcome: RemoveRaftVoterResponse(error_code=outcome.error, error_message=outcome.message),
        )

    def update(self, request: UpdateRaftVoterRequest) -> Answer[UpdateRaftVoterResponse]:
        def change(changes: VoterChanges, listener: str) -> Pending[Outcome]:
            key = _key(request.voter_id, request.voter_directory_id)
            feature = request.k_raft_version_feature
            versions = KRaftVersions(feature.min_supported_version, feature.max_supported_version)
            if not 0 <= versions.min_version <= versions.max_version:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"voter {key.id} names the kraft.version range {versions.min_version} to {versions.max_version}",
                )
            return changes.update(key, _endpoints(request.listeners), versions)

        return self._handle(request.cluster_id, request.current_leader_epoch, change, self._updated)

    def _updated(self, outcome: Outcome) -> UpdateRaftVoterResponse:
        if outcome.message is not None:
            # the answer has no message
            self._log("warning", "raft-voter-not-updated", error=outcome.error.name, reason=outcome.message)
        leadership = self._driver.leadership
        endpoint = leadership.endpoint or Endpoint("", 0)
        leader = UpdateRaftVoterResponse.CurrentLeader(
            leader_id=leadership.leader_id, leader_epoch=leadership.epoch, host=endpoint.host, port=endpoint.port
        )
        return UpdateRaftVoterResponse(error_code=outcome.error, current_leader=leader)

    def _handle(
        self,
        cluster_id: str | None,
        epoch: int | None,
        change: Callable[[VoterChanges, str], Pending[Outcome]],
        answer: Callable[[Outcome], R],
    ) -> Answer[R]:
        """epoch: that of the request; None if it names none."""

        def handle() -> Answer[R]:
            try:
                leader = self._leader(cluster_id, epoch)
                outcome = change(leader.changes, leader.me.listener)
            except KafkaError as refused:
                return answer(Outcome(refused.code, refused.message))
            answered: Pending[R] = Pending()
            outcome.then(lambda found: answered.complete(answer(found)))
            return answered

        return self._driver.when_settled(handle, lambda code: answer(Outcome(code, "this node is busy: try again")))

    def _leader(self, cluster_id: str | None, epoch: int | None) -> LeaderState:
        if cluster_id is not None and cluster_id != self._replica.cluster_id:
            raise KafkaError(
                ErrorCode.INCONSISTENT_CLUSTER_ID,
                f"the request is for cluster {cluster_id}, and this controller is part of {self._replica.cluster_id}",
            )
        leader, leadership = self._leading(), self._driver.leadership
        code = epoch_error(leadership.epoch if epoch is None else epoch, leadership, leader is not None)
        if code is ErrorCode.NONE and leader is not None:
            return leader
        if leadership.endpoint is None:
            where = "no leader is known at present: try again"
        else:
            where = f"send the request to its leader, controller {leadership.leader_id} at {leadership.endpoint}"
        raise KafkaError(
            code, f"controller {self._replica.node_id} does not lead the metadata quorum in this epoch; {where}"
        )


def _key(voter_id: int, directory_id: bytes) -> ReplicaKey:
    if voter_id < 0 or directory_id == ZERO_UUID:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "a voter is named by its node id and the id of its metadata log directory: name both",
        )
    return ReplicaKey(voter_id, Uuid(directory_id))


def _endpoints(listeners: Sequence[NamedListener]) -> dict[str, Endpoint]:
    return {listener.name: Endpoint(listener.host, listener.port) for listener in listeners}
