"""Fetch, FetchSnapshot and DescribeQuorum on the node that receives them: only the leader of the quorum serves them.

Every refusal names the leader and the epoch that this node knows. It never names itself unless it leads: a follower
would fetch from it for ever.
"""

from __future__ import annotations

from collections.abc import Callable

from heirlog.env import Env
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    DescribeQuorumResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
)
from heirlog.protocol.types import Uuid
from heirlog.raft import answers, describe
from heirlog.raft.answers import LeaderAndEpoch
from heirlog.raft.epoch_driver import EpochDriver
from heirlog.raft.fetch_service import epoch_error, refusal, replica_of
from heirlog.raft.leader import LeaderState
from heirlog.raft.local_replica import LocalReplica
from heirlog.raft.metadata_log import MetadataLog
from heirlog.raft.quorum_state import NOBODY
from heirlog.raft.replica_key import ReplicaKey
from heirlog.raft.snapshot import SnapshotId


class LeaderRequests:
    def __init__(
        self,
        env: Env,
        replica: LocalReplica,
        log: MetadataLog,
        driver: EpochDriver,
        leading: Callable[[], LeaderState | None],
        on_replica_knows: Callable[[int, int], None] | None,
    ) -> None:
        """leading: None while this node does not lead. on_replica_knows: see `Quorum`."""
        self._env = env
        self._replica = replica
        self._log = log
        self._driver = driver
        self._leading = leading
        self._on_replica_knows = on_replica_knows

    def fetch(self, request: FetchRequest) -> FetchResponse | Pending[FetchResponse]:
        return self._driver.when_settled(lambda: self._fetch(request), answers.fetch_refused)

    def _fetch(self, request: FetchRequest) -> FetchResponse | Pending[FetchResponse]:
        leader = self._leading()
        refused = refusal(request, self._replica.cluster_id, self._leader_and_epoch(leader), leader is not None)
        if refused is not None:
            return refused
        asked = answers.metadata_partition(request)
        assert asked is not None and leader is not None, "refusal lets nothing else pass"
        if self._on_replica_knows is not None:
            known = asked.high_watermark
            self._on_replica_knows(
                replica_of(request),
                asked.fetch_offset if known == answers.HIGH_WATERMARK_NOT_SENT else known,
            )
        return leader.service.fetch(request, asked)

    def fetch_snapshot(self, request: FetchSnapshotRequest) -> FetchSnapshotResponse | Pending[FetchSnapshotResponse]:
        return self._driver.when_settled(lambda: self._fetch_snapshot(request), answers.snapshot_refused)

    def _fetch_snapshot(self, request: FetchSnapshotRequest) -> FetchSnapshotResponse:
        if request.cluster_id is not None and request.cluster_id != self._replica.cluster_id:
            return answers.snapshot_refused(ErrorCode.INCONSISTENT_CLUSTER_ID)
        asked = answers.metadata_snapshot(request)
        if asked is None:
            return answers.snapshot_of_another(request)
        leader = self._leading()
        leadership = self._leader_and_epoch(leader)
        code = epoch_error(asked.current_leader_epoch, leadership, leader is not None)
        if code is not ErrorCode.NONE or leader is None:
            wanted = SnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
            return answers.snapshot_answer(leadership, wanted, error=code)
        leader.fetched_snapshot(ReplicaKey(request.replica_id, Uuid(asked.replica_directory_id)))
        return leader.service.fetch_snapshot(request, asked)

    def describe_quorum(self) -> DescribeQuorumResponse:
        leader = self._leading()
        if leader is None:
            return describe.not_leader(self._leader_and_epoch(leader))
        return describe.described(
            leader.leadership,
            self._log.voters,
            leader.progress,
            leader.high_watermark,
            self._log.end_offset,
            self._env.wall_ms(),
        )

    def _leader_and_epoch(self, leader: LeaderState | None) -> LeaderAndEpoch:
        known = self._driver.leadership
        if leader is None and known.leader_id == self._replica.node_id:
            return LeaderAndEpoch(NOBODY, known.epoch, None)
        return known
