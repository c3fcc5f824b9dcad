"""Vote, BeginQuorumEpoch and EndQuorumEpoch on the node that receives them: what is refused, and what changes.

    Vote              a newer epoch is taken over; the vote is granted by `epoch_state.grants`
    BeginQuorumEpoch  the sender leads the epoch: follow it
    EndQuorumEpoch    the sender led the epoch and has resigned: ask for votes, the first successor at once

In this order: another cluster or another partition, for the whole request; numbers that cannot be, an older epoch, for
the partition; then the epoch of the request takes effect; then a key that is not this voter's is refused. The sender
need not be in this node's voter set, which may be the older one of the two.

An answer leaves once the state that it shows is durable (`epoch_driver.py`).

Source: KIP-595, KIP-853 (keys), KIP-996 (pre-vote).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from heirlog.env import EventLog
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    VoteRequest,
    VoteResponse,
)
from heirlog.protocol.types import ZERO_UUID, Uuid
from heirlog.raft import epoch_messages, epoch_state
from heirlog.raft.answers import LeaderAndEpoch
from heirlog.raft.divergence import Position
from heirlog.raft.epoch_driver import Answer, EpochDriver
from heirlog.raft.local_replica import LocalReplica
from heirlog.raft.quorum_state import NOBODY
from heirlog.raft.replica_key import ReplicaKey
from heirlog.raft.resignation import successor_delay_ms

R = TypeVar("R")


class EpochRequests:
    def __init__(
        self,
        driver: EpochDriver,
        replica: LocalReplica,
        log_end: Callable[[], Position],
        log: EventLog,
        backoff_max_ms: int,
    ) -> None:
        """log_end: end of this node's log, as votes compare it. backoff_max_ms: of `QuorumConfig`."""
        self._driver = driver
        self._replica = replica
        self._log_end = log_end
        self._log = log
        self._backoff_max_ms = backoff_max_ms

    def vote(self, request: VoteRequest) -> Answer[VoteResponse]:
        def refuse(code: ErrorCode) -> VoteResponse:
            return VoteResponse(error_code=code, topics=[])

        if self._is_other_cluster(request.cluster_id):
            return refuse(ErrorCode.INCONSISTENT_CLUSTER_ID)
        asked = epoch_messages.vote_partition(request)
        if asked is None:
            return refuse(ErrorCode.INVALID_REQUEST)
        return self._driver.when_settled(lambda: self._vote(request, asked), refuse)

    def _vote(self, request: VoteRequest, asked: VoteRequest.PartitionData) -> Answer[VoteResponse]:
        latest_allowed = asked.replica_epoch if asked.pre_vote else asked.replica_epoch - 1
        if asked.last_offset < 0 or not 0 <= asked.last_offset_epoch <= latest_allowed:
            return epoch_messages.vote_answer(self._driver.leadership, ErrorCode.INVALID_REQUEST)
        state = self._driver.state
        if asked.replica_epoch < state.epoch:
            return epoch_messages.vote_answer(self._driver.leadership, ErrorCode.FENCED_LEADER_EPOCH)
        if asked.replica_id < 0:
            return epoch_messages.vote_answer(self._driver.leadership, ErrorCode.INVALID_REQUEST)
        if asked.replica_epoch > state.epoch:
            state = epoch_state.unattached(state, asked.replica_epoch)
        error, granted, is_current = ErrorCode.INVALID_VOTER_KEY, False, True
        if self._is_me(request.voter_id, asked.voter_directory_id):
            error = ErrorCode.NONE
            candidate = ReplicaKey(asked.replica_id, Uuid(asked.replica_directory_id))
            end = self._log_end()
            is_current = (asked.last_offset_epoch, asked.last_offset) >= (end.epoch, end.offset)
            granted = epoch_state.grants(state, candidate, log_is_current=is_current, pre_vote=asked.pre_vote)
            if granted and not asked.pre_vote:
                state = epoch_state.vote(state, candidate)
        pending: Pending[VoteResponse] = Pending()
        self._driver.become(
            state, lambda: pending.complete(epoch_messages.vote_answer(self._driver.leadership, error, granted=granted))
        )
        if asked.pre_vote and not is_current:
            self._driver.refused_shorter_log()
        return pending

    def begin_quorum_epoch(self, request: BeginQuorumEpochRequest) -> Answer[BeginQuorumEpochResponse]:
        def refuse(code: ErrorCode) -> BeginQuorumEpochResponse:
            return BeginQuorumEpochResponse(error_code=code, topics=[])

        if self._is_other_cluster(request.cluster_id):
            return refuse(ErrorCode.INCONSISTENT_CLUSTER_ID)
        asked = epoch_messages.begin_partition(request)
        if asked is None:
            return refuse(ErrorCode.INVALID_REQUEST)

        def handle() -> Answer[BeginQuorumEpochResponse]:
            error = self._claim_error(asked.leader_id, asked.leader_epoch)
            if error is not ErrorCode.NONE:
                return epoch_messages.begin_answer(self._driver.leadership, error)
            endpoint = epoch_messages.leader_endpoint(request)
            if not self._is_me(request.voter_id, asked.voter_directory_id):
                error = ErrorCode.INVALID_VOTER_KEY
            return self._after_claim(
                LeaderAndEpoch(asked.leader_id, asked.leader_epoch, endpoint),
                lambda: epoch_messages.begin_answer(self._driver.leadership, error),
            )

        return self._driver.when_settled(handle, refuse)

    def end_quorum_epoch(self, request: EndQuorumEpochRequest) -> Answer[EndQuorumEpochResponse]:
        def refuse(code: ErrorCode) -> EndQuorumEpochResponse:
            return EndQuorumEpochResponse(error_code=code, topics=[])

        if self._is_other_cluster(request.cluster_id):
            return refuse(ErrorCode.INCONSISTENT_CLUSTER_ID)
        asked = epoch_messages.end_partition(request)
        if asked is None:
            return refuse(ErrorCode.INVALID_REQUEST)

        def handle() -> Answer[EndQuorumEpochResponse]:
            error = self._claim_error(asked.leader_id, asked.leader_epoch)
            if error is not ErrorCode.NONE:
                return epoch_messages.end_answer(self._driver.leadership, error)

            def ended() -> EndQuorumEpochResponse:
                self._driver.leader_resigned(self._successor_delay_ms(asked))
                return epoch_messages.end_answer(self._driver.leadership)

            endpoint = epoch_messages.leader_endpoint(request)
            return self._after_claim(LeaderAndEpoch(asked.leader_id, asked.leader_epoch, endpoint), ended)

        return self._driver.when_settled(handle, refuse)

    def _successor_delay_ms(self, asked: EndQuorumEpochRequest.PartitionData) -> int:
        keys = [ReplicaKey(one.candidate_id, Uuid(one.candidate_directory_id)) for one in asked.preferred_candidates]
        # below version 1 only ids are named
        keys = keys or [ReplicaKey(successor, ZERO_UUID) for successor in asked.preferred_successors]
        return successor_delay_ms(keys, self._replica.key, self._backoff_max_ms)

    def _claim_error(self, leader_id: int, epoch: int) -> ErrorCode:
        """Why a request in which a node says that it leads `epoch` is refused."""
        state = self._driver.state
        if epoch < state.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if leader_id < 0 or leader_id == self._replica.node_id:
            return ErrorCode.INVALID_REQUEST
        if epoch == state.epoch and state.leader_id not in (NOBODY, leader_id):
            # two leaders of one epoch: a peer must not be able to end this node by claiming it
            self._log("error", "two-leaders-claimed", epoch=epoch, leader=state.leader_id, other=leader_id)
            return ErrorCode.INVALID_REQUEST
        return ErrorCode.NONE

    def _after_claim(self, claimed: LeaderAndEpoch, answer: Callable[[], R]) -> Pending[R]:
        """Follow the node that leads; the answer leaves once that is durable."""
        pending: Pending[R] = Pending()
        self._driver.become(
            self._driver.state_with(claimed, claimed=True) or self._driver.state, lambda: pending.complete(answer())
        )
        return pending

    def _is_other_cluster(self, cluster_id: str | None) -> bool:
        return cluster_id is not None and cluster_id != self._replica.cluster_id

    def _is_me(self, voter_id: int, directory_id: bytes) -> bool:
        """Whether a request is meant for this voter. What it does not name is not compared."""
        if voter_id not in (NOBODY, self._replica.node_id):
            return False
        return directory_id in (ZERO_UUID, self._replica.directory_id)
