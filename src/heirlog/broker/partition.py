"""One partition on this broker: a state machine that is leader, follower or idle.

    idle ----------> leader      the image names this broker; a new leader epoch begins at the log's end
      \\------------> follower    the image names another broker (or no leader yet)
    leader <-------> follower    with each newer leader epoch
    any -----------> idle        no longer assigned here, or its disk failed

The methods return what the caller has to do. The caller sends an `IsrProposal` to the controller. It compares high
watermark and log end before and after a call, and wakes the requests that wait for this partition. Nothing in this
module sends or waits.

Traps (K046 and others are scenarios of docs/internals/kafka-behaviour.md).
* A new leader epoch forgets the offsets that followers fetched before, even if the leader is the same: the followers
  may have truncated since.
* Metadata older than an AlterPartition answer does not replace that answer (K046). But its ISR and min ISR are from one
  image, and the high watermark needs such a pair (`high_watermark.py`).
* An answer belongs to the proposal that it answers: newer metadata drops a pending change, and a late answer is then
  ignored (K033).
* A follower's high watermark never goes back unless its log is truncated: a new leader may have a lower one for a
  moment.
* A leader elected on a lossy basis (RECOVERING) is marked RECOVERED locally at once; the controller learns it with the
  next ISR change (K047).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from heirlog.broker.broker_topic_metrics import BrokerTopicMetrics
from heirlog.broker.doubts import Doubts
from heirlog.broker.followers import NEVER_MS, Follower, RegisteredBrokers
from heirlog.broker.high_watermark import next_high_watermark
from heirlog.broker.isr import (
    CommittedPartitionState,
    Isr,
    IsrProposal,
    Members,
    PendingExpandIsr,
    PendingShrinkIsr,
    may_expand,
    out_of_sync,
    with_epochs,
)
from heirlog.broker.truncation import cut_for
from heirlog.env import Buffer
from heirlog.metadata.state import PartitionRegistration
from heirlog.metadata.topic_name import TRANSACTIONS_TOPIC
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.transaction_marker import TransactionMarker
from heirlog.protocol.types import NO_LEADER, BrokerId, LeaderEpoch, PartitionEpoch, PartitionKey, Uuid
from heirlog.storage.log import Log, LogAppendInfo
from heirlog.storage.verification import VerificationGuard

ALL_IN_SYNC = -1
"""acks=all."""

_NO_RETRY_BACK_TO_COMMITTED = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
_WAIT_FOR_METADATA = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)


class ReplicaRole(Enum):
    LEADER = "leader"
    FOLLOWER = "follower"
    IDLE = "idle"


@dataclass(slots=True)
class FetchStart:
    """Where a follower continues: its next offset, and the epoch of the record before it (-1: none).

    Never changed. It is not frozen because one is made per partition of a fetch, and freezing costs a microsecond.
    """

    fetch_offset: int
    last_fetched_epoch: int


def keeps_fetched_offsets(new_epoch: bool) -> bool:
    """Guard 3: a follower's fetched offset counts only in the leader epoch in which it fetched.

    Without it the high watermark moves beyond a follower that has truncated its log under another leader meanwhile.
    """
    return not new_epoch


def is_newer_epoch(named: int, known: int) -> bool:
    """Guard 2: a fetcher (re)starts only for a higher leader epoch.

    Without it nothing is lost (docs/internals/simulation.md, "Guards"): each change of an ISR would make the followers
    drop the answers that they wait for, and ask again.
    """
    return named > known


def is_committed(high_watermark: int, required_offset: int) -> bool:
    """Guard 16: acks=all is answered, even for a repeat, once the high watermark has reached the end of the records.

    Without it a leader confirms records that the next election may lose. It decides twice: whether the request has to
    wait (produce.py), and whether its wait ends (`outcome_of`).
    """
    return high_watermark >= required_offset


class Partition:
    __slots__ = (
        "_answered_isrs",
        "_proposal",
        "_registered_brokers",
        "doubts",
        "failed_isr_updates",
        "followers",
        "high_watermark",
        "image_isr",
        "index",
        "isr",
        "isr_expands",
        "isr_shrinks",
        "key",
        "lag_max_ms",
        "leader",
        "leader_epoch",
        "leader_epoch_start_offset",
        "log",
        "min_isr",
        "offline",
        "partition_epoch",
        "replicas",
        "role",
        "topic",
        "topic_id",
        "topic_metrics",
    )

    def __init__(
        self,
        topic_id: Uuid,
        topic: str,
        index: int,
        log: Log,
        registered_brokers: RegisteredBrokers,
        *,
        high_watermark: int,
        lag_max_ms: int,
        topic_metrics: BrokerTopicMetrics | None = None,
    ) -> None:
        """`high_watermark`: from replication-offset-checkpoint; it is limited to the log's range. `topic_metrics`:
        shared by all partitions of the topic.
        """
        self.topic_metrics = BrokerTopicMetrics() if topic_metrics is None else topic_metrics
        self.topic_id = topic_id
        self.topic = topic
        self.index = index
        self.key: PartitionKey = (topic_id, index)
        self.log = log
        self._registered_brokers = registered_brokers
        self.lag_max_ms = lag_max_ms
        self.high_watermark = min(max(high_watermark, log.log_start_offset), log.log_end_offset)
        # its disk has lost committed records, or the folder is an older copy
        log.may_lack_records |= high_watermark > log.log_end_offset
        self.doubts = Doubts(log)
        self._decide_transactions()
        self.role = ReplicaRole.IDLE
        self.offline = False
        self.leader: BrokerId = NO_LEADER
        self.leader_epoch = LeaderEpoch(-1)
        self.partition_epoch = PartitionEpoch(-1)
        self.leader_epoch_start_offset = 0
        self.replicas: Members = ()
        self.isr: Isr = CommittedPartitionState(())
        self.image_isr: Members = ()
        self.min_isr = 1
        self.followers: dict[BrokerId, Follower] = {}
        self._proposal: IsrProposal | None = None
        self._answered_isrs: tuple[Members, ...] = ()
        """ISRs that the controller has confirmed since our image."""
        self.failed_isr_updates = 0
        self.isr_expands = 0
        self.isr_shrinks = 0

    # metadata

    def become_leader(self, state: PartitionRegistration, min_isr: int, now_ms: int) -> None:
        """The image says that this broker leads, or that a partition which it leads has changed."""
        self.image_isr = state.isr
        self.min_isr = min_isr
        if self.role is ReplicaRole.LEADER and state.partition_epoch < self.partition_epoch:
            self.advance_high_watermark(now_ms)
            return
        self._answered_isrs = ()
        new_epoch = self.role is not ReplicaRole.LEADER or state.leader_epoch > self.leader_epoch
        if new_epoch or state.partition_epoch > self.partition_epoch:
            self.isr = CommittedPartitionState(state.isr)
            self._proposal = None
        self._take_assignment(state, new_epoch, now_ms)
        if new_epoch:
            self.doubts.lead(state, has_transactions=self.topic == TRANSACTIONS_TOPIC)
            self.leader_epoch = state.leader_epoch
            self.leader_epoch_start_offset = self.log.log_end_offset
            self.log.producers.guards.clear()
            self.log.epochs.begin(state.leader_epoch, self.log.log_end_offset)
        self.partition_epoch = state.partition_epoch
        self.leader = self._registered_brokers.broker_id
        self.role = ReplicaRole.LEADER
        self.advance_high_watermark(now_ms)

    def become_follower(self, state: PartitionRegistration, min_isr: int) -> bool:
        """Another broker leads (or none). True if replication has to restart: only for a newer leader epoch."""
        restart = self.role is not ReplicaRole.FOLLOWER or is_newer_epoch(state.leader_epoch, self.leader_epoch)
        self.role = ReplicaRole.FOLLOWER
        self._stop_leading()
        self.replicas = state.replicas
        self.image_isr = state.isr
        self.min_isr = min_isr
        self.leader = state.leader
        self.leader_epoch = state.leader_epoch
        self.doubts.follow(state, self._registered_brokers.broker_id)
        self.partition_epoch = state.partition_epoch
        return restart

    def become_idle(self) -> None:
        self.role = ReplicaRole.IDLE
        self.leader = NO_LEADER
        self._stop_leading()

    def min_isr_changed(self, min_isr: int, now_ms: int) -> None:
        self.min_isr = min_isr
        self.advance_high_watermark(now_ms)

    def _stop_leading(self) -> None:
        self.isr = CommittedPartitionState(())
        self._answered_isrs = ()
        self._proposal = None
        self.followers = {}

    def _take_assignment(self, state: PartitionRegistration, new_epoch: bool, now_ms: int) -> None:
        keeps_offsets = keeps_fetched_offsets(new_epoch)
        if not keeps_offsets:
            self.followers = {}
        if new_epoch or self.replicas != state.replicas:
            me = self._registered_brokers.broker_id
            known = self.followers
            self.followers = {b: known.get(b) or Follower(b) for b in state.replicas if b != me}
            self.replicas = state.replicas
        for broker_id, follower in self.followers.items():
            follower.directory = state.directory_of(broker_id)
        if not keeps_offsets:
            for broker_id, follower in self.followers.items():
                follower.forget(now_ms if broker_id in state.isr else NEVER_MS)

    # leader: append

    def append(
        self,
        records: bytearray | memoryview,
        acks: int,
        wall_ms: int,
        now_ms: int,
        guard: VerificationGuard | None = None,
        *,
        of_coordinator: bool = False,
    ) -> LogAppendInfo:
        """Append a producer's batches. Raises KafkaError; then nothing was appended.

        guard: what allows a transactional batch to begin a transaction here (`storage/verification.py`).
        of_coordinator: a coordinator writes its state; the sequences of such batches mean nothing.
        NOT_LEADER_OR_FOLLOWER; NOT_ENOUGH_REPLICAS for acks=all while the committed ISR is below the effective min
        ISR; KAFKA_STORAGE_ERROR if the disk has failed; else what `Log.append_as_leader` refuses.
        """
        if self.role is not ReplicaRole.LEADER:
            raise self.not_leader()
        if acks == ALL_IN_SYNC and len(self.isr.committed) < self.min_isr:
            raise self._not_enough_replicas()
        appended = self.log.append_as_leader(records, self.leader_epoch, wall_ms, guard, of_coordinator=of_coordinator)
        if not appended.duplicate:
            topic_metrics = self.topic_metrics
            topic_metrics.messages_in += appended.last_offset - appended.first_offset + 1
            topic_metrics.bytes_in += len(records)
        # with a follower in the ISR the high watermark waits for its fetch, not for our own log
        if len(self.isr.maximal) == 1:
            self.advance_high_watermark(now_ms)
        return appended

    def _not_enough_replicas(self) -> KafkaError:
        return KafkaError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"the ISR of {self.topic}-{self.index} is {list(self.isr.committed)}, acks=all needs {self.min_isr}",
        )

    def append_marker(
        self,
        marker: TransactionMarker,
        producer_id: int,
        producer_epoch: int,
        transaction_version: int,
        wall_ms: int,
        now_ms: int,
    ) -> LogAppendInfo:
        """Append a coordinator's transaction marker, with acks=all. Raises KafkaError; then nothing was appended.

        The errors are those of `append` and of `Log.append_marker`.
        """
        if self.role is not ReplicaRole.LEADER:
            raise self.not_leader()
        if len(self.isr.committed) < self.min_isr:
            raise self._not_enough_replicas()
        appended = self.log.append_marker(
            marker, producer_id, producer_epoch, transaction_version, self.leader_epoch, wall_ms
        )
        if len(self.isr.maximal) == 1:
            self.advance_high_watermark(now_ms)
        return appended

    def has_committed(self, required_offset: int) -> bool:
        """Whether every record below `required_offset` is committed."""
        return is_committed(self.high_watermark, required_offset)

    def outcome_of(self, required_offset: int, leader_epoch: int) -> ErrorCode | None:
        """The result of an acks=all append that ended at `required_offset`; None: not replicated yet.

        NOT_ENOUGH_REPLICAS_AFTER_APPEND if it is committed but the ISR is now below the min ISR (a race).
        """
        if self.role is not ReplicaRole.LEADER or self.leader_epoch != leader_epoch:
            return ErrorCode.KAFKA_STORAGE_ERROR if self.offline else ErrorCode.NOT_LEADER_OR_FOLLOWER
        if not self.has_committed(required_offset):
            return None
        if len(self.isr.maximal) < self.min_isr:
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return ErrorCode.NONE

    def not_leader(self) -> KafkaError:
        if self.offline:
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the disk of {self.topic}-{self.index} has failed")
        return KafkaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"this broker does not lead {self.topic}-{self.index} (now: {self.leader})",
        )

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """Raises KafkaError if the client's leader epoch is not this leader's; -1 means that the client names none."""
        if current_leader_epoch == -1 or current_leader_epoch == self.leader_epoch:
            return
        code = (
            ErrorCode.FENCED_LEADER_EPOCH
            if current_leader_epoch < self.leader_epoch
            else ErrorCode.UNKNOWN_LEADER_EPOCH
        )
        raise KafkaError(
            code, f"leader epoch {current_leader_epoch} of {self.topic}-{self.index}, which is at {self.leader_epoch}"
        )

    # leader: followers

    def check_follower(self, broker_id: BrokerId, broker_epoch: int, current_leader_epoch: int) -> None:
        """Raises KafkaError if a fetch of this replica must not be served (kafka-behaviour 4.3, KIP-903)."""
        if broker_id not in self.followers:
            # with a leader epoch, the follower knows a newer assignment than we do and should retry
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER if current_leader_epoch < 0 else ErrorCode.UNKNOWN_LEADER_EPOCH
            raise KafkaError(code, f"broker {broker_id} is no replica of {self.topic}-{self.index}")
        if self._registered_brokers.is_from_before_its_registration(broker_id, broker_epoch):
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker {broker_id} fetched with epoch {broker_epoch}, older than its registration",
            )

    def follower_fetched(
        self, broker_id: BrokerId, fetch_offset: int, log_start_offset: int, broker_epoch: int, now_ms: int
    ) -> IsrProposal | None:
        """The follower has all records below `fetch_offset`. Returns an ISR expansion to request."""
        follower = self.followers[broker_id]
        leader_end_offset = self.log.log_end_offset
        before = follower.log_end_offset
        follower.fetched(fetch_offset, log_start_offset, broker_epoch, leader_end_offset, now_ms)
        proposal = None
        if follower.broker_id not in self.isr.maximal and may_expand(
            follower,
            isr=self.isr,
            min_isr=self.min_isr,
            registered_brokers=self._registered_brokers,
            high_watermark=self.high_watermark,
            epoch_start_offset=self.leader_epoch_start_offset,
            leader_end_offset=leader_end_offset,
            lag_limit_ms=now_ms - self.lag_max_ms,
        ):
            self.isr = PendingExpandIsr(self.isr.committed, follower.broker_id)
            proposal = self._propose(self.isr.proposed)
        if before != fetch_offset or proposal is not None:
            self.advance_high_watermark(now_ms)
        return proposal

    def advance_high_watermark(self, now_ms: int) -> bool:
        """Move the high watermark if the rule allows; True if it moved."""
        if self.role is not ReplicaRole.LEADER:
            return False
        after = next_high_watermark(
            self.high_watermark,
            leader_end_offset=self.log.log_end_offset,
            committed_isrs=(self.image_isr, *self._answered_isrs),
            image_min_isr=self.min_isr,
            maximal_isr=self.isr.maximal,
            followers=self.followers,
            registered_brokers=self._registered_brokers,
            lag_limit_ms=now_ms - self.lag_max_ms,
        )
        moved = after > self.high_watermark
        self.high_watermark = after
        self._decide_transactions()
        return moved

    def _decide_transactions(self) -> None:
        """The high watermark may have moved beyond transaction markers."""
        transactions = self.log.producers.transactions
        if transactions.first_unstable_offset is not None:
            transactions.high_watermark_moved(self.high_watermark)

    @property
    def last_stable_offset(self) -> int:
        """The offset below which every transaction is decided, and its decision committed (`transactions.py`)."""
        first_unstable = self.log.producers.transactions.first_unstable_offset
        if first_unstable is None:
            return self.high_watermark
        return min(max(first_unstable, self.log.log_start_offset), self.high_watermark)

    # leader: ISR changes

    def check_lag(self, now_ms: int) -> IsrProposal | None:
        """Called every `replica.lag.time.max.ms` / 2. Returns an ISR shrink to request."""
        if self.role is not ReplicaRole.LEADER:
            return None
        removed = out_of_sync(self.isr, self.followers, self.log.log_end_offset, now_ms - self.lag_max_ms)
        if not removed:
            return None
        self.isr = PendingShrinkIsr(self.isr.committed, removed)
        return self._propose(self.isr.proposed)

    def _propose(self, members: Members) -> IsrProposal:
        self._proposal = IsrProposal(
            self.topic_id,
            self.index,
            self.leader_epoch,
            self.partition_epoch,
            with_epochs(members, self.followers, self._registered_brokers),
        )
        return self._proposal

    def not_attempted(self, proposal: IsrProposal) -> None:
        """The sender still holds an earlier proposal of this partition."""
        self.proposal_failed(proposal, ErrorCode.OPERATION_NOT_ATTEMPTED)

    def proposal_failed(self, proposal: IsrProposal, error: ErrorCode) -> IsrProposal | None:
        """The controller refused. Returns a proposal to send again, or None."""
        if proposal is not self._proposal:
            return None
        self.failed_isr_updates += 1
        if error in _NO_RETRY_BACK_TO_COMMITTED:
            self.isr = CommittedPartitionState(self.isr.committed)
            self._proposal = None
            return None
        if error in _WAIT_FOR_METADATA:
            # the controller has newer metadata; the proposed members keep counting until we have it too
            return None
        assert not isinstance(self.isr, CommittedPartitionState)
        return self._propose(self.isr.proposed)

    def proposal_committed(
        self,
        proposal: IsrProposal,
        *,
        isr: Members,
        leader_epoch: int,
        partition_epoch: int,
        image_has_it: bool,
        now_ms: int,
    ) -> None:
        """The controller wrote `isr`. `image_has_it`: our image has reached the offset at which that was committed."""
        if proposal is not self._proposal:
            return
        if leader_epoch != self.leader_epoch or partition_epoch < self.partition_epoch:
            self.failed_isr_updates += 1
            return
        if len(isr) > len(self.isr.committed):
            self.isr_expands += 1
        elif len(isr) < len(self.isr.committed):
            self.isr_shrinks += 1
        self.isr = CommittedPartitionState(isr)
        self.partition_epoch = PartitionEpoch(partition_epoch)
        self._proposal = None
        if image_has_it:
            self.image_isr = isr
            self._answered_isrs = ()
        else:
            self._answered_isrs = (*self._answered_isrs, isr)
        self.advance_high_watermark(now_ms)

    # leader: what clients may see

    @property
    def knows_its_end(self) -> bool:
        """Whether the high watermark has reached the start of this leader epoch.

        Before that a new leader's high watermark may be below the one that the former leader exposed, and
        ListOffsets(latest) would go back.
        """
        return self.high_watermark >= self.leader_epoch_start_offset

    def diverging_epoch(self, fetch_offset: int, last_fetched_epoch: int) -> tuple[int, int] | None:
        """Where a fetcher's log diverges from ours, as (epoch, end offset); None if it does not.

        Raises KafkaError OFFSET_OUT_OF_RANGE below the log start or for an epoch that we do not know.
        """
        log = self.log
        if fetch_offset < log.log_start_offset:
            raise self.out_of_range(fetch_offset)
        if last_fetched_epoch == log.epochs.latest and fetch_offset <= log.log_end_offset:
            return None
        epoch, end_offset = log.end_offset_for_epoch(last_fetched_epoch)
        if end_offset == -1:
            raise self.out_of_range(fetch_offset)
        if epoch < last_fetched_epoch or end_offset < fetch_offset:
            return epoch, end_offset
        return None

    def out_of_range(self, fetch_offset: int) -> KafkaError:
        return KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"offset {fetch_offset} of {self.topic}-{self.index} is outside the log, which begins at "
            f"{self.log.log_start_offset} and ends at {self.log.log_end_offset}",
        )

    @property
    def is_under_min_isr(self) -> bool:
        return self.role is ReplicaRole.LEADER and len(self.isr.committed) < self.min_isr

    @property
    def is_at_min_isr(self) -> bool:
        return self.role is ReplicaRole.LEADER and len(self.isr.committed) == self.min_isr

    @property
    def is_under_replicated(self) -> bool:
        return self.role is ReplicaRole.LEADER and len(self.isr.committed) < len(self.replicas)

    # follower

    @property
    def watermark_to_cut_to(self) -> int | None:
        """Where to truncate a log without epochs, which cannot be compared with a leader's. None: not needed."""
        if self.log.epochs.latest >= 0 or self.high_watermark >= self.log.log_end_offset:
            return None
        return self.high_watermark

    @property
    def precedes_lossy_election(self) -> bool:
        """Whether this log has no record yet from after the newest lossy election.

        If so, every record that it has to truncate is one that the election gave up."""
        return self.log.epochs.latest < self.doubts.lossy_epoch

    def fetch_position(self) -> FetchStart:
        return FetchStart(self.log.log_end_offset, self.log.epochs.latest)

    def append_from_leader(self, records: Buffer, max_epoch: int) -> None:
        """Append the leader's batches. Batches newer than the leader epoch of the fetch are refused (KAFKA-18723)."""
        self.log.append_as_follower(records, max_epoch)

    def follow(self, leader_high_watermark: int, leader_log_start_offset: int) -> None:
        """Take over the leader's high watermark, limited to our log's end, and its log start, limited to that."""
        reachable = min(leader_high_watermark, self.log.log_end_offset)
        if reachable > self.high_watermark:
            self.high_watermark = reachable
            self._decide_transactions()
        if self.log.log_start_offset < leader_log_start_offset <= self.high_watermark:
            self.log.increment_log_start(leader_log_start_offset)

    def truncate_for(self, leader_epoch: int, leader_end_offset: int, initial_offset: int) -> bool:
        """Truncate records that the leader lacks (DivergingEpoch). True if the logs agree then; else fetch again."""
        cut = cut_for(self.log, leader_epoch, leader_end_offset, initial_offset)
        self.truncate_to(cut.offset)
        return cut.settled

    def truncate_to(self, offset: int) -> None:
        if offset < self.high_watermark:
            self.doubts.give_up_committed(self.leader_epoch)
        self.log.truncate_to(offset)
        self.high_watermark = min(self.high_watermark, self.log.log_end_offset)
        self._decide_transactions()

    def start_over_at(self, offset: int) -> None:
        """The leader no longer has the records after our end: start an empty log at `offset`."""
        self.log.truncate_fully_and_start_at(offset)
        self.high_watermark = offset
