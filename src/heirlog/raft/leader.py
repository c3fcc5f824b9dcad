"""The leader of one epoch: it orders the records, and knows when they are committed.

    begin     {LeaderChange, and the voters if the log does not name them as they are} at the new epoch; at
              kraft.version 0 LeaderChange alone
    change    the voters are changed by a record in a batch of its own (`voter_changes.py`)
    append    encode -> log (page cache) -> a flush is due         returns the base offset at once
    turn      after the current callback: one flush for everything appended meanwhile; waiting fetches are answered
    flushed   own end counts -> committed end -> high watermark -> listeners

The state file that says "epoch E, voted for myself" is flushed before `begin`. Otherwise a crash could bring back an
older epoch, and two different histories would have the same epoch number.

The high watermark is unknown (-1) to followers until a record of this epoch is on a majority: what this node knew as a
follower may be below what others know, and they must not see it fall.

The listeners are notified of the leadership once the epoch's first batch is committed and everything before it was
delivered. From then on the controller's image is complete, and it may append.

A leader that has removed itself from the voters leads on without counting its own log. It resigns once the removal is
committed, because only then the other voters can elect a leader without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heirlog.env import Env
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.primitives import Message
from heirlog.raft import commit, control
from heirlog.raft.answers import LeaderAndEpoch
from heirlog.raft.control import Voter, encode_controls
from heirlog.raft.epoch_messages import Heard
from heirlog.raft.fetch_service import FetchService
from heirlog.raft.metadata_log import MetadataLog
from heirlog.raft.quorum_config import QuorumConfig
from heirlog.raft.replay import CommittedBatch, Replay
from heirlog.raft.replica_key import ReplicaKey
from heirlog.raft.replica_states import ReplicaStates
from heirlog.raft.values import MAX_BATCH_BYTES, MAX_RECORDS_PER_BATCH, encode_value
from heirlog.raft.voter_changes import ChangeParts, VoterChanges
from heirlog.raft.voter_contact import ContactEvents, VoterContact


class NotLeader(KafkaError):
    """An append on a node that does not lead, or does not lead yet."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.NOT_LEADER_OR_FOLLOWER, message)


class BatchTooLarge(KafkaError):
    """The records are too many for one batch; the caller splits them, such that each prefix is safe on its own."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.RECORD_LIST_TOO_LARGE, message)


@dataclass(frozen=True, slots=True)
class LeaderParts:
    """The parts that a leader uses, owned by the `Quorum`."""

    env: Env
    log: MetadataLog
    replay: Replay
    voters: Callable[[], tuple[Voter, ...]]
    """The set in force, which may change."""
    fatal: Callable[[str], None]
    on_announced: Callable[[], None]
    """The first batch of the epoch is committed, and everything before it was delivered."""
    on_heard: Callable[[Heard], bool]
    """A voter named an epoch. True if that ended this leadership."""
    resign: Callable[[], None]
    """Step down: no majority of the voters fetches any more, or this node is not a voter any more."""


class LeaderState:
    def __init__(
        self,
        parts: LeaderParts,
        cluster_id: str,
        me: Voter,
        epoch: int,
        granting: Sequence[ReplicaKey],
        config: QuorumConfig,
    ) -> None:
        """granting: the voters that elected it."""
        self._env = parts.env
        self._log = parts.log
        self._replay = parts.replay
        self._voters = parts.voters
        self._fatal = parts.fatal
        self._on_announced = parts.on_announced
        self._resign = parts.resign
        self.me = me
        """This node, as the voter that was elected."""
        self._granting = granting
        self._epoch_start_offset = parts.log.end_offset
        self._update_is_scheduled = False
        self._flushing = False
        self._closed = False
        self.announced = False
        self.high_watermark = -1
        """As this leader tells it to others; -1 until a record of its epoch is committed."""
        self.leadership = LeaderAndEpoch(me.id, epoch, me.endpoint)
        self.progress = ReplicaStates()
        self.service = FetchService(
            parts.env, parts.log, self.leadership, lambda: self.high_watermark, self._acknowledged
        )
        events = ContactEvents(parts.on_heard, parts.resign)
        self._contact = VoterContact(parts.env, cluster_id, me, epoch, parts.voters, config, events)
        change_parts = ChangeParts(
            parts.env,
            me.listener,
            parts.voters,
            lambda: parts.log.kraft_version,
            lambda: parts.log.voters_offset,
            lambda: self.high_watermark,
            self.progress,
            self._append_voters,
        )
        self.changes = VoterChanges(change_parts, config)

    def begin(self) -> None:
        """Append the first batch of the epoch."""
        voters = self._voters()
        granting = [key.id for key in self._granting]
        head: list[Message] = [control.leader_change(self.me.id, [v.id for v in voters], granting)]
        if self._log.kraft_version and (self._log.end_offset == 0 or self._log.voters != voters):
            head += [control.kraft_version(), control.voters_record(voters)]
        self._append_controls(head)
        self._replay.when_delivered(self._log.end_offset, self._announce)
        self._contact.voters_changed()

    def append(self, records: Sequence[Message]) -> int:
        """Append one batch; returns the offset of its first record. It is committed when `on_commit` delivers it.

        Raises NotLeader, BatchTooLarge, ValueError without records; nothing is appended then. If the disk fails the
        node stops (NotLeader is raised as well, for the caller's own answer).
        """
        if self._closed or not self.announced:
            raise NotLeader("this node is not the leader of the metadata quorum, or not yet")
        if len(records) > MAX_RECORDS_PER_BATCH:
            raise BatchTooLarge(f"{len(records)} records in one batch; at most {MAX_RECORDS_PER_BATCH}: split them")
        now_ms = self._env.wall_ms()
        base_offset = self._log.end_offset
        epoch = self.leadership.epoch
        values = [encode_value(record) for record in records]
        batch = encode_batch([(None, value, (), now_ms) for value in values], base_offset, epoch)
        if len(batch) > MAX_BATCH_BYTES:
            raise BatchTooLarge(f"a batch of {len(batch)} bytes; at most {MAX_BATCH_BYTES}: split the records")
        try:
            self._log.append(batch, epoch)
        except OSError as error:
            self._fatal(f"the metadata log in {self._log.directory} could not be written: {error}")
            raise NotLeader("the disk of the metadata log failed") from error
        last_offset = self._log.end_offset - 1
        self._replay.remember(CommittedBatch(base_offset, last_offset, epoch, now_ms, list(records), len(values[-1])))
        self._schedule_update()
        return base_offset

    def _append_voters(self, voters: Sequence[Voter]) -> int:
        """Append a set of voters, which is in force from now on; the offset of its batch. Raises NotLeader."""
        records: list[Message] = [control.voters_record(voters)]
        if not self._log.kraft_version:
            records.insert(0, control.kraft_version())
        try:
            offset = self._append_controls(records)
        except OSError as error:
            self._fatal(f"the metadata log in {self._log.directory} could not be written: {error}")
            raise NotLeader("the disk of the metadata log failed") from error
        self._env.log("info", "quorum-voters-changed", offset=offset, voters=[voter.id for voter in voters])
        self._contact.voters_changed()
        return offset

    def _append_controls(self, records: Sequence[Message]) -> int:
        base_offset, epoch, now_ms = self._log.end_offset, self.leadership.epoch, self._env.wall_ms()
        self._log.append(encode_controls(records, base_offset, epoch, now_ms), epoch)
        self._replay.remember(CommittedBatch(base_offset, self._log.end_offset - 1, epoch, now_ms, []))
        self._schedule_update()
        return base_offset

    def close(self) -> None:
        """Stop leading: waits end, and records that were appended may never be committed."""
        self._closed = True
        self.changes.close()
        self._contact.close()
        self.service.close()

    def successors(self) -> list[Voter]:
        """The other voters, the one with the longest log first."""
        others = [voter for voter in self._voters() if voter.key != self.me.key]
        return sorted(others, key=lambda voter: -self.progress.of_voter(voter).end_offset)

    def fetched_snapshot(self, key: ReplicaKey) -> None:
        """A replica fetched a part of a snapshot: it is there, though it acknowledges nothing."""
        self._contact.fetched(key)

    # from an append to the commit

    def _schedule_update(self) -> None:
        if not self._update_is_scheduled:
            self._update_is_scheduled = True
            self._env.call_later(0, self._update)

    def _update(self) -> None:
        self._update_is_scheduled = False
        if self._closed:
            return
        self._moved()
        if not self._flushing and self._log.flushed_offset < self._log.end_offset:
            self._flush()

    def _flush(self) -> None:
        self._flushing = True
        self._log.flush(self._flushed)

    def _flushed(self, error: OSError | None) -> None:
        self._flushing = False
        if self._closed:
            return
        if error is not None:
            self._fatal(f"the metadata log in {self._log.directory} could not be flushed: {error}")
            return
        self._moved()
        if self._log.flushed_offset < self._log.end_offset and not self._closed and not self._update_is_scheduled:
            self._flush()

    def _acknowledged(self, key: ReplicaKey, end_offset: int) -> None:
        has_moved = self.progress.fetched(key, end_offset, self._log.end_offset, self._env.wall_ms())
        self._contact.fetched(key)
        if has_moved and any(voter.id == key.id for voter in self._voters()):
            # later, because delivering to listeners inside a request's handler would be a call in a call
            self._schedule_update()

    def _moved(self) -> None:
        """The end of this node or of a voter moved: advance the high watermark, and answer waiting fetches."""
        committed = commit.committed_end(map(self._end_of, self._voters()), self._epoch_start_offset)
        has_advanced = committed is not None and committed > self.high_watermark
        if committed is not None and has_advanced:
            self.high_watermark = committed
            self._log.committed_to(committed)
            self._replay.committed_to(committed)
        if not self._closed:
            if has_advanced:
                # as a follower of a later epoch it must not truncate them, nor vote without them
                self._log.remember_committed(self._replay.changed_offset, self._remembered)
            self.service.moved()
        if has_advanced and not self._closed:
            self.changes.high_watermark_moved()
            if self._log.voters_offset < self.high_watermark and self._is_removed:
                self._resign()

    def _remembered(self, error: OSError | None) -> None:
        if error is not None and not self._closed:
            self._fatal(f"the metadata log in {self._log.directory} could not be written: {error}")

    @property
    def _is_removed(self) -> bool:
        return all(voter.key != self.me.key for voter in self._voters())

    def _end_of(self, voter: Voter) -> int:
        if voter.key == self.me.key:
            return commit.countable_end(self._log.end_offset, self._log.flushed_offset)
        return self.progress.of_voter(voter).end_offset

    def _announce(self) -> None:
        if self._closed:
            return
        self.announced = True
        self._on_announced()
