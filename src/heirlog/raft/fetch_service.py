"""A leader's side of replication: Fetch and FetchSnapshot on the metadata partition (KIP-595, KIP-630, KIP-1166).

A follower asks with (its epoch, its end, the epoch of its last record). Checked in this order:

    another cluster, another partition                      -> refused as a whole
    a number that cannot be, a fetch by the leader itself   -> INVALID_REQUEST (+ the leader)
    its epoch is older, newer                               -> FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH (+ the leader)
    its log does not agree, or the start is gone            -> DivergingEpoch, SnapshotId (`divergence`)
    there are records to send, or a newer high watermark    -> answered at once
    otherwise                                               -> a Pending, until one of the two or max_wait_ms

A valid fetch offset is an acknowledgement: the follower has flushed all records below it. It counts even if the answer
has to wait. Records are sent up to the log end, flushed and committed or not; the high watermark says which are
committed (commit.py).

A v18 fetch says which high watermark the follower knows, so that a commit reaches the follower at once and not with the
next record. A fetch of an older version is answered at the first change of the high watermark while it waits.

Each replica has one waiting fetch: a newer fetch ends the older one (its connection is gone). The number of all waits
is limited.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from heirlog.env import Cancel, Env, Region
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import FetchRequest, FetchResponse, FetchSnapshotRequest, FetchSnapshotResponse
from heirlog.protocol.types import Uuid
from heirlog.raft import answers
from heirlog.raft.answers import HIGH_WATERMARK_NOT_SENT, LeaderAndEpoch
from heirlog.raft.divergence import Diverging, NeedsSnapshot, Position, judge
from heirlog.raft.metadata_log import MetadataLog
from heirlog.raft.quorum_state import NOBODY
from heirlog.raft.replica_key import ReplicaKey
from heirlog.raft.snapshot import BOOTSTRAP, SnapshotId

MAX_WAITS = 10_000
MAX_FETCH_BYTES = 8 << 20

FetchAnswer: TypeAlias = FetchResponse | Pending[FetchResponse]
OnAcknowledged: TypeAlias = Callable[[ReplicaKey, int], None]
"""A replica has flushed everything below the offset."""


@dataclass(slots=True)
class _Wait:
    key: object
    position: Position
    max_bytes: int
    known_high_watermark: int
    answer: Pending[FetchResponse]
    cancel_timeout: Cancel


def refusal(request: FetchRequest, cluster_id: str, leadership: LeaderAndEpoch, leads: bool) -> FetchResponse | None:
    """The error response of this request; None if it may get data. The same rule on leaders and on other nodes."""
    if request.cluster_id is not None and request.cluster_id != cluster_id:
        return answers.fetch_refused(ErrorCode.INCONSISTENT_CLUSTER_ID)
    asked = answers.metadata_partition(request)
    if asked is None:
        return answers.fetch_refused(ErrorCode.INVALID_REQUEST)
    numbers = (asked.fetch_offset, asked.current_leader_epoch, asked.last_fetched_epoch, request.max_wait_ms)
    if min(numbers) < 0 or asked.last_fetched_epoch > asked.current_leader_epoch:
        return answers.fetch_answer(leadership, error=ErrorCode.INVALID_REQUEST)
    if leads and replica_of(request) == leadership.leader_id:
        # it would acknowledge its own records in place of a follower
        return answers.fetch_answer(leadership, error=ErrorCode.INVALID_REQUEST)
    code = epoch_error(asked.current_leader_epoch, leadership, leads)
    return None if code is ErrorCode.NONE else answers.fetch_answer(leadership, error=code)


def replica_of(request: FetchRequest) -> int:
    """Id of the replica that fetches; -1 for a consumer. Below version 15 it is a field of the request itself."""
    replica_id = request.replica_state.replica_id
    return replica_id if replica_id >= 0 else request.replica_id


def epoch_error(epoch: int, leadership: LeaderAndEpoch, leads: bool) -> ErrorCode:
    if epoch < leadership.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > leadership.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE if leads else ErrorCode.NOT_LEADER_OR_FOLLOWER


class FetchService:
    def __init__(
        self,
        env: Env,
        log: MetadataLog,
        leadership: LeaderAndEpoch,
        high_watermark: Callable[[], int],
        on_acknowledged: OnAcknowledged,
    ) -> None:
        self._env = env
        self._log = log
        self._leadership = leadership
        self._high_watermark = high_watermark
        self._on_acknowledged = on_acknowledged
        self._waits: dict[object, _Wait] = {}

    def fetch(self, request: FetchRequest, asked: FetchRequest.FetchPartition) -> FetchAnswer:
        """Serve a fetch that passed `refusal`."""
        position = Position(asked.fetch_offset, asked.last_fetched_epoch)
        replica_id = replica_of(request)
        verdict = judge(position, self._log.start_offset, self._log.snapshots, self._log.end_offset_for_epoch)
        if isinstance(verdict, Diverging):
            end = FetchResponse.EpochEndOffset(epoch=verdict.epoch, end_offset=verdict.end_offset)
            return self._answer(diverging=end)
        if isinstance(verdict, NeedsSnapshot):
            needed = FetchResponse.SnapshotId(end_offset=verdict.id.end_offset, epoch=verdict.id.epoch)
            return self._answer(snapshot_id=needed)
        key = ReplicaKey(replica_id, Uuid(asked.replica_directory_id))
        if replica_id >= 0:
            self._on_acknowledged(key, position.offset)
        known = asked.high_watermark
        if known == HIGH_WATERMARK_NOT_SENT:
            known = self._high_watermark()
        max_bytes = min(max(asked.partition_max_bytes, 0), max(request.max_bytes, 0), MAX_FETCH_BYTES)
        if self._has_new_data(position.offset, known) or request.max_wait_ms == 0:
            return self._records(position.offset, max_bytes)
        return self._wait(key if replica_id >= 0 else object(), position, max_bytes, known, request.max_wait_ms)

    def moved(self) -> None:
        """The log end or the high watermark moved: answer the waiting fetches that this concerns."""
        for wait in list(self._waits.values()):
            if self._has_new_data(wait.position.offset, wait.known_high_watermark):
                self._release(wait)

    def close(self) -> None:
        """This node does not lead any more: end all waits."""
        for wait in list(self._waits.values()):
            self._forget(wait)
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            nobody = LeaderAndEpoch(NOBODY, self._leadership.epoch, None)
            wait.answer.complete(answers.fetch_answer(nobody, error=code))

    def _has_new_data(self, offset: int, known_high_watermark: int) -> bool:
        return self._log.end_offset > offset or self._high_watermark() > known_high_watermark

    def _records(self, offset: int, max_bytes: int) -> FetchResponse:
        try:
            records = self._log.read(offset, max_bytes, self._log.end_offset)
        except OSError as error:
            self._log.read_failed(error)
            return answers.fetch_answer(self._leadership, error=ErrorCode.KAFKA_STORAGE_ERROR)
        return self._answer(records=records)

    def _answer(
        self,
        *,
        records: list[Region] | None = None,
        diverging: FetchResponse.EpochEndOffset | None = None,
        snapshot_id: FetchResponse.SnapshotId | None = None,
    ) -> FetchResponse:
        return answers.fetch_answer(
            self._leadership,
            high_watermark=self._high_watermark(),
            log_start_offset=self._log.start_offset,
            records=records,
            diverging=diverging,
            snapshot_id=snapshot_id,
        )

    def _wait(self, key: object, position: Position, max_bytes: int, known: int, max_wait_ms: int) -> FetchAnswer:
        older = self._waits.get(key)
        if older is None and len(self._waits) >= MAX_WAITS:
            older = next(iter(self._waits.values()))
        if older is not None:
            self._release(older)
        pending: Pending[FetchResponse] = Pending(lambda: self._forget(wait))
        cancel = self._env.call_later(max_wait_ms, lambda: self._release(wait))
        wait = _Wait(key, position, max_bytes, known, pending, cancel)
        self._waits[key] = wait
        return pending

    def _release(self, wait: _Wait) -> None:
        self._forget(wait)
        wait.answer.complete(self._records(wait.position.offset, wait.max_bytes))

    def _forget(self, wait: _Wait) -> None:
        wait.cancel_timeout()
        if self._waits.get(wait.key) is wait:
            del self._waits[wait.key]

    # FetchSnapshot

    def fetch_snapshot(
        self, request: FetchSnapshotRequest, asked: FetchSnapshotRequest.PartitionSnapshot
    ) -> FetchSnapshotResponse:
        """A byte range of a snapshot that a Fetch answer has named."""
        wanted = SnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
        if wanted not in self._log.snapshots or wanted == BOOTSTRAP:
            # the bootstrap one has no metadata, and its voters are in the log
            return answers.snapshot_answer(self._leadership, wanted, error=ErrorCode.SNAPSHOT_NOT_FOUND)
        try:
            file = self._log.store.open(wanted)
        except OSError as error:
            self._log.read_failed(error)
            return answers.snapshot_answer(self._leadership, wanted, error=ErrorCode.KAFKA_STORAGE_ERROR)
        if not 0 <= asked.position < file.size:
            return answers.snapshot_answer(self._leadership, wanted, error=ErrorCode.POSITION_OUT_OF_RANGE)
        size = min(file.size - asked.position, max(request.max_bytes, 1), MAX_FETCH_BYTES)
        piece = Region(file, asked.position, size)
        return answers.snapshot_answer(
            self._leadership, wanted, size=file.size, position=asked.position, records=[piece]
        )
