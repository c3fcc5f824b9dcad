"""A node that follows the metadata log: every broker, and a controller that may not vote (yet).

    seeking     ask one known endpoint after the other; every answer names the leader it knows
    comparing   fetch the last batch that is known to be committed, and compare it with this node's copy
    following   fetch from the leader, one request at a time:
                    records     -> append -> apply what is committed -> flush -> next fetch
                    diverging   -> truncate what is not committed -> next fetch
                    snapshot    -> download -> install -> next fetch
                    refused     -> learn the leader and its epoch, seek
                    no answer   -> seek, after a back-off

The next fetch offset is an acknowledgement, so it is sent only after the flush (guard 14). Applying does not wait for
the flush: records below the leader's high watermark are committed without this node. If records take several turns to
apply, the next fetch waits for them, because it names the high watermark that this node has applied.

Traps. An answer counts only for the epoch and the end of its request: one request is in flight, and any change of epoch
or end makes it stale.

The leader's log may be older than this node's, or have another history: its controller was restored from a copy, or
formatted again. Then this node truncates and applies nothing; `older` decides what happens. Detected in four ways:

    its epoch is below ours, and no other controller is    the epoch of a lone controller never goes back
    known
    it diverges below what we know to be committed
    its snapshot ends below what we know to be committed
    the leader has a different last committed batch        a restored controller counts epochs and offsets again, so
                                                           both may agree although the records do not

The last one is checked before anything else is accepted from a leader: at the start, and after each failed request,
because a controller cannot be replaced without one.

A leader that refuses this node's principal is asked again, and the refusal is logged as an error. Kafka's nodes end
then. Here the operator corrects `super.users` or the key store of one controller, and no other node needs a restart.

Source: KIP-595 (fetch), KIP-630 (snapshots), KIP-853 (bootstrap servers), KIP-1166 (the known high watermark).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from heirlog.env import Cancel, Env, SendFailure
from heirlog.failure_log import FailureLog
from heirlog.protocol.batch import InvalidBatch, crc_matches, walk
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code
from heirlog.protocol.messages import FetchRequest, FetchResponse
from heirlog.protocol.primitives import records_view
from heirlog.protocol.types import METADATA_TOPIC, METADATA_TOPIC_ID, Endpoint
from heirlog.raft import commit
from heirlog.raft.answers import LeaderAndEpoch
from heirlog.raft.divergence import Diverging, Position, truncation_offset
from heirlog.raft.local_replica import LocalReplica
from heirlog.raft.metadata_log import CommittedBatchBytes, MetadataLog
from heirlog.raft.quorum_config import QuorumConfig
from heirlog.raft.replay import Replay
from heirlog.raft.snapshot import Snapshot, SnapshotId
from heirlog.raft.snapshot_download import CHANNEL, SnapshotDownload

FETCH_WAIT_MS = 500
FETCH_MAX_BYTES = 8 << 20
RETRY_BACKOFF_MAX_MS = 1_000
SHORT_BACKOFF_MAX_MS = 100
"""After an answer of a controller that does not lead: a new leader is being elected, or was just elected."""


@dataclass(frozen=True, slots=True)
class ObserverParts:
    """The parts and callbacks of an observer, owned by the `Quorum`."""

    env: Env
    log: MetadataLog
    replay: Replay
    fatal: Callable[[str], None]
    older: Callable[[str], None]
    """Called if the leader lacks records that this node knows to be committed; the argument says what was found."""
    epochs: FollowedEpochs
    silent: dict[Endpoint, int]
    """How often in a row a controller did not answer in time."""
    failures: FailureLog


class FollowedEpochs(Protocol):
    """`epoch_driver.EpochDriver`, as an observer uses it."""

    def learn(self, named: LeaderAndEpoch, *, claimed: bool = False) -> bool: ...

    def fetched(self) -> None: ...

    def leader_is_gone(self) -> None: ...


class Observer:
    def __init__(
        self,
        parts: ObserverParts,
        replica: LocalReplica,
        leadership: LeaderAndEpoch,
        endpoints: Callable[[], Sequence[Endpoint]],
        config: QuorumConfig,
    ) -> None:
        """leadership: as this node knows it.

        endpoints: what to ask while the leader is not known, by the newest records of the log: at least one, here or as
            the leader's.
        """
        self._env = parts.env
        self._log = parts.log
        self._replay = parts.replay
        self._fatal = parts.fatal
        self._older = parts.older
        self._epochs = parts.epochs
        self._replica = replica
        self._leadership = leadership
        self._endpoints = endpoints
        self._config = config
        self._asked: Endpoint | None = None
        self._failures = 0
        self._disconnects = 0
        """How often in a row the leader's connection was reset or refused."""
        self._silent = parts.silent
        self._failure_log = parts.failures
        self._was_answered = False
        """A leader of our own cluster has answered, so an answer of another cluster is not this node's
        misconfiguration.
        """
        self._closed = False
        self._cancel_retry: Cancel | None = None
        self._download: SnapshotDownload | None = None
        self.agrees = False
        """The leader has every record that this node knows to be committed, according to the last request."""

    def start(self) -> None:
        self._fetch()

    def close(self) -> None:
        self._closed = True
        if self._cancel_retry is not None:
            self._cancel_retry()
        if self._download is not None:
            self._download.close()

    # one request at a time

    def _fetch(self) -> None:
        self._cancel_retry = None
        if self._closed:
            return
        if not commit.flush_reached(self._log.end_offset, self._log.flushed_offset):
            self._log.flush(self._flushed)
            return
        try:
            compared = None if self.agrees else self._log.last_committed_batch()
        except OSError as error:
            self._disk_failed(error)
            return
        except InvalidBatch as error:
            self._fatal(
                f"the metadata log is damaged below offset {self._log.committed_offset}: {error}. Move "
                f"{self._log.directory} away and start this node again: it fetches everything again"
            )
            return
        target = self._asked = self._target()
        max_wait_ms, timeout_ms = self._time_limits(target)
        request, asked = self._request(self._log.end if compared is None else compared.before, max_wait_ms)

        def answered(result: FetchResponse | SendFailure) -> None:
            if self._closed:
                return
            try:
                self._answered(target, asked, compared, result)
            except OSError as error:
                self._disk_failed(error)

        self._env.send(target, CHANNEL, request, answered, timeout_ms)

    def _flushed(self, error: OSError | None) -> None:
        if self._closed:
            return
        if error is not None:
            self._fatal(f"the metadata log in {self._log.directory} could not be flushed: {error}")
            return
        self._fetch()

    def _disk_failed(self, error: OSError) -> None:
        self._fatal(f"the metadata log in {self._log.directory} could not be read or written: {error}")

    def _target(self) -> Endpoint:
        """The leader while it answers; otherwise all known endpoints in rotation, including the leader.

        A leader whose connection was reset is asked once more: if its port refuses, the process is gone.
        """
        known = [self._leadership.endpoint] if self._leadership.endpoint is not None else []
        if known and (self._failures == 0 or self._disconnects == 1):
            return known[0]
        everybody = list(dict.fromkeys([*known, *self._endpoints()]))
        return everybody[self._failures % len(everybody)]

    def _time_limits(self, target: Endpoint) -> tuple[int, int]:
        """How long a fetch may wait for new records, and how long its answer may take. In ms.

        One that did not answer in time is asked for an answer at once, and given up early, so that a new leader is
        found meanwhile; but each time later, since it may only be slow.
        """
        # the wait is part of the whole: brokers look for a new leader about when the voters elect one
        timeout_ms = max(self._config.request_timeout_ms, 2 * FETCH_WAIT_MS)
        silences = self._silent.get(target, 0)
        if silences == 0:
            return FETCH_WAIT_MS, timeout_ms
        return 0, timeout_ms >> max(5 - silences, 0)

    def _request(self, position: Position, max_wait_ms: int) -> tuple[FetchRequest, FetchRequest.FetchPartition]:
        asked = FetchRequest.FetchPartition(
            partition=0,
            current_leader_epoch=self._leadership.epoch,
            fetch_offset=position.offset,
            last_fetched_epoch=position.epoch,
            log_start_offset=self._log.start_offset,
            partition_max_bytes=FETCH_MAX_BYTES,
            replica_directory_id=self._replica.directory_id,
            high_watermark=self._replay.high_watermark,
        )
        topic = FetchRequest.FetchTopic(topic_id=METADATA_TOPIC_ID, topic=METADATA_TOPIC, partitions=[asked])
        request = FetchRequest(
            cluster_id=self._replica.cluster_id,
            replica_state=FetchRequest.ReplicaState(replica_id=self._replica.node_id),
            replica_id=self._replica.node_id,
            max_wait_ms=max_wait_ms,
            min_bytes=0,
            max_bytes=FETCH_MAX_BYTES,
            topics=[topic],
        )
        return request, asked

    def _retry_later(self, why: str, level: str = "info", longest_ms: int = RETRY_BACKOFF_MAX_MS) -> None:
        """Ask another endpoint after a back-off that grows with each failure in a row, with jitter."""
        self.agrees = False
        # with 0 a controller that is down would be asked without a pause
        first_ms = max(1, self._config.retry_backoff_ms)
        wait_ms = min(first_ms << min(self._failures, 10), max(first_ms, longest_ms))
        wait_ms = wait_ms // 2 + self._env.random.randrange(0, wait_ms // 2 + 1)
        endpoint = str(self._asked)
        self._failure_log.failed(level, (endpoint, why), endpoint=endpoint, why=why, retry_in_ms=wait_ms)
        self._failures += 1
        self._cancel_retry = self._env.call_later(wait_ms, self._fetch)

    # answers

    def _answered(
        self,
        target: Endpoint,
        asked: FetchRequest.FetchPartition,
        compared: CommittedBatchBytes | None,
        result: FetchResponse | SendFailure,
    ) -> None:
        if isinstance(result, SendFailure):
            if result.kind == "timed-out":
                self._silent[target] = self._silent.get(target, 0) + 1
            self._count_disconnects(target, result)
            # who waited in vain has paused enough
            longest_ms = SHORT_BACKOFF_MAX_MS if result.kind == "timed-out" else RETRY_BACKOFF_MAX_MS
            self._retry_later(f"{result.kind} {result.detail}".strip(), longest_ms=longest_ms)
            return
        self._silent.pop(target, None)
        if result.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID and not self._was_answered:
            self._fatal(
                f"the controller at {target} belongs to another cluster than {self._replica.cluster_id}, to which this "
                "node's directories belong: correct controller.quorum.bootstrap.servers, or log.dirs"
            )
            return
        if result.error_code:
            self._retry_later(error_code(result.error_code).name, "error")
            return
        if not result.responses or not result.responses[0].partitions:
            self._retry_later("an answer without the metadata partition", "error")
            return
        partition = result.responses[0].partitions[0]
        if self._leads_an_older_epoch(target, partition):
            self._older(
                f"it leads epoch {partition.current_leader.leader_epoch}, and this node has seen epoch "
                f"{self._leadership.epoch}"
            )
            return
        named = partition.current_leader
        endpoint = next((Endpoint(e.host, e.port) for e in result.node_endpoints if e.node_id == named.leader_id), None)
        if self._epochs.learn(LeaderAndEpoch(named.leader_id, named.leader_epoch, endpoint)) or self._closed:
            return
        if partition.error_code:
            self._retry_later(error_code(partition.error_code).name, longest_ms=SHORT_BACKOFF_MAX_MS)
            return
        expected = self._log.end_offset if compared is None else compared.before.offset
        if asked.current_leader_epoch != self._leadership.epoch or asked.fetch_offset != expected:
            self._fetch()
            return
        if self._leadership.endpoint != target and self._epochs.learn(
            self._leadership._replace(endpoint=target), claimed=True
        ):
            # a node that answers with data leads; below v16 no answer names endpoints
            return
        self._epochs.fetched()
        self._failure_log.worked()
        self._failures = self._disconnects = 0
        self._was_answered = True
        if compared is not None and not self._has(partition, compared):
            return
        self.agrees = True
        if compared is None:
            self._apply(partition)
        else:
            self._fetch()

    def _count_disconnects(self, target: Endpoint, failure: SendFailure) -> None:
        if target != self._leadership.endpoint:
            return
        self._disconnects = self._disconnects + 1 if failure.kind == "disconnected" else 0
        if self._disconnects > 1:
            self._epochs.leader_is_gone()

    def _leads_an_older_epoch(self, target: Endpoint, partition: FetchResponse.PartitionData) -> bool:
        """Whether the only controller leads an epoch below ours. One of several may be an old leader that does not know
        it yet, and a controller that is not a voter may have raised its epoch alone.
        """
        named = partition.current_leader
        if named.leader_epoch >= self._leadership.epoch:
            return False
        known = {*self._endpoints(), self._leadership.endpoint or target}
        is_alone = known == {target} and [voter.id for voter in self._log.voters] == [named.leader_id]
        return is_alone and error_code(partition.error_code) is ErrorCode.UNKNOWN_LEADER_EPOCH

    def _has(self, partition: FetchResponse.PartitionData, own: CommittedBatchBytes) -> bool:
        """Whether the leader has our last committed batch; else this node has stopped."""
        known = f"offset {own.end_offset}, up to which this node knows them to be committed"
        if partition.snapshot_id.end_offset >= 0:
            # its log before the snapshot is deleted: only the snapshot's end can be compared
            return self._reaches(SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch))
        if partition.diverging_epoch.end_offset >= 0 or partition.diverging_epoch.epoch >= 0:
            end = max(partition.diverging_epoch.end_offset, 0)
            self._older(f"its metadata differ from this node's at or before offset {end}, below {known}")
            return False
        records = records_view(partition.records)
        if not len(records):
            self._older(f"its metadata end at or before offset {own.before.offset}, below {known}")
            return False
        if bytes(records[: len(own.data)]) != own.data:
            if not _is_whole(records, own.before.offset):
                # nothing follows from it about the leader's log
                self._retry_later("a damaged batch where the last committed one was asked for", "error")
                return False
            self._older(f"its record at offset {own.before.offset} is another one, below {known}")
            return False
        return True

    def _reaches(self, snapshot_id: SnapshotId) -> bool:
        """Whether the snapshot may hold what this node knows to be committed; else this node has stopped."""
        committed = self._log.committed_offset
        if snapshot_id.end_offset >= committed and snapshot_id.epoch >= self._log.epoch_below(committed):
            return True
        self._older(
            f"it offers the snapshot {snapshot_id.file_name}, and this node knows metadata to be committed up to "
            f"offset {committed} (epoch {self._log.epoch_below(committed)})"
        )
        return False

    def _apply(self, partition: FetchResponse.PartitionData) -> None:
        if partition.snapshot_id.end_offset >= 0:
            self._begin_download(SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch))
            return
        if partition.diverging_epoch.end_offset >= 0:
            self._truncate(Diverging(partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset))
            return
        records = records_view(partition.records)
        try:
            if records:
                self._log.append(records, self._leadership.epoch)
        except KafkaError as error:
            self._retry_later(f"records that cannot be appended: {error}", "error")
            return
        except OSError as error:
            self._disk_failed(error)
            return
        committed = min(partition.high_watermark, self._log.end_offset)
        self._log.committed_to(committed)
        # send the next fetch before applying: a client's change is answered once the leader knows that all brokers have
        # it, and no request of a client is handled in between
        at_once = self._replay.will_be_committed_to(committed)
        if at_once:
            self._fetch()
        self._replay.committed_to(committed)
        self._log.remember_committed(self._replay.changed_offset, self._remembered)
        if not at_once:
            self._fetch_once_applied()

    def _fetch_once_applied(self) -> None:
        """Fetch after everything is applied.

        An earlier fetch that named the new high watermark would be wrong; one that named the old one would be answered
        at once (KIP-1166), repeatedly."""
        if self._replay.slice_is_coming and not self._closed:
            self._env.call_later(0, self._fetch_once_applied)
        else:
            self._fetch()

    def _remembered(self, error: OSError | None) -> None:
        if error is not None and not self._closed:
            self._disk_failed(error)

    def _truncate(self, leader: Diverging) -> None:
        offset = truncation_offset(leader, self._log.end_offset, self._log.end_offset_for_epoch)
        committed = max(self._replay.high_watermark, self._log.committed_offset)
        if offset < committed:
            self._older(
                f"its metadata differ from this node's at offset {offset}, below offset {committed}, up to which "
                "this node "
                "knows them to be committed"
            )
            return
        self._env.log("warning", "metadata-log-truncated", offset=offset, end_offset=self._log.end_offset)
        try:
            self._log.truncate_to(offset)
        except OSError as error:
            self._disk_failed(error)
            return
        self._fetch()

    # snapshots

    def _begin_download(self, snapshot_id: SnapshotId) -> None:
        if not self._reaches(snapshot_id):
            return
        self._download = SnapshotDownload(
            self._env, self._replica, self._target(), self._leadership.epoch, self._epochs.fetched
        )
        self._env.log("info", "metadata-snapshot-download", file=snapshot_id.file_name)
        self._download.start(snapshot_id, self._downloaded)

    def _downloaded(self, result: Snapshot | str | OSError) -> None:
        self._download = None
        if isinstance(result, OSError):
            self._disk_failed(result)
            return
        if isinstance(result, str):
            self._retry_later(f"the download of a snapshot failed: {result}", "warning")
            return
        if result.id.end_offset < self._replay.high_watermark:
            self._retry_later("a snapshot older than what was applied", "error")
            return
        try:
            self._log.install_snapshot(result)
            self._log.committed_to(result.id.end_offset)
        except OSError as error:
            self._disk_failed(error)
            return
        self._replay.load(result)
        self._fetch()


def _is_whole(records: memoryview, offset: int) -> bool:
    """Whether the first batch is as a leader wrote it, and may have the record at `offset`."""
    try:
        position, header = next(walk(records, partial_tail=True), (0, None))
    except InvalidBatch:
        return False
    return header is not None and crc_matches(records, position, header) and header.base_offset <= offset
