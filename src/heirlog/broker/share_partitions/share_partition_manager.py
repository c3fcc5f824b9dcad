"""The share partitions of this broker: loaded at their first use, and dropped when they are not ours any more.

    first use --> loading --read--> active <--a session begins: compared with what is stored
                     |                |---leader epoch over, fenced by the coordinator, group without sessions--.
                     '---failed-------'                                                                         v
                                                                                                             dropped

Everything asynchronous about a share partition is here: its load, the storing of its changes, and the timer of its
locks. The rules are in `share_partition.py`.

Traps.
* A dropped share partition may have changes under way. They are answered, but touch nothing: the next use has loaded
  its own state. The persister sends the requests of one share partition in order, so that load sees those changes.
* A coordinator that says FENCED has seen a newer leader, or the group's offsets were reset. The state here is then
  worth nothing, and the next use loads it again.
* A share partition may stay here while its group has no members, with a connection that ended its sessions, or with the
  session of a member that hangs, which may hold records. Its offsets may be reset then, or the group be deleted and
  begin again. So the first use after a session has begun looks whether what was loaded here is still what is stored,
  and loads it otherwise. The epochs say it, because only this leader writes what it has loaded: a reset has another
  state epoch, and a group that began again has no leader epoch yet. Until then the coordinator refuses what is done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from heirlog.broker.list_offsets import EARLIEST, LATEST, offset_for
from heirlog.broker.partition import Partition, ReplicaRole
from heirlog.broker.partition_listeners import PartitionEvent
from heirlog.broker.purgatory import Purgatory
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.broker.share_coordinator.state import (
    LOWEST_STATE_EPOCH,
    NOT_READ,
    UNINITIALIZED_OFFSET,
    SharePartitionKey,
    StateWrite,
)
from heirlog.broker.share_partitions.acquisition import ShareLimits
from heirlog.broker.share_partitions.offset_reset import starting_timestamp
from heirlog.broker.share_partitions.share_partition import Acknowledgement, SharePartition, StateTransition
from heirlog.broker.share_partitions.state_persister import StateEpochs, StatePersister, StoredState
from heirlog.env import Cancel, Env
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.configs import group_value
from heirlog.metadata.image import Image
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.raft.latency_window import LatencyWindow

_FENCED: Final = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH)
_KEPT: Final = (
    ErrorCode.NONE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)

OnAcknowledged = Callable[[ErrorCode], None]


class LoadedSharePartition:
    """One share partition of this broker, while it is used. A `PartitionListener`."""

    def __init__(
        self, manager: SharePartitionManager, key: SharePartitionKey, partition: Partition, began_ms: int
    ) -> None:
        self._manager = manager
        self.key = key
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.state_epoch = 0
        self.share: SharePartition | None = None
        """None while it is loading."""
        self.error = ErrorCode.NONE
        """Why it was dropped."""
        self.began_ms = began_ms
        """When its load began."""
        self.is_in_doubt = False
        """A session has begun since it was loaded or compared with what is stored."""
        self.comparisons = 0
        """How often it was compared, since it is here."""
        self.waits_for: int | None = None
        """Nothing is delivered before this comparison: a session has begun while there was no other."""
        self.cancel_timer: Cancel | None = None
        self.timer_at_ms = 0

    @property
    def deliverable(self) -> SharePartition | None:
        """The share partition, if members may get its records now."""
        return self.share if self.waits_for is None else None

    @property
    def is_ours(self) -> bool:
        partition = self.partition
        return partition.role is ReplicaRole.LEADER and partition.leader_epoch == self.leader_epoch

    def mark(self) -> None:
        """The high watermark is looked at when it is needed."""

    def on_event(self, event: PartitionEvent) -> None:
        if event is PartitionEvent.LEADERSHIP_CHANGED and not self.is_ours:
            self._manager.drop(self, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif event is not PartitionEvent.LOG_APPENDED:
            self._manager.wake(self.key)


class SharePartitionManager:
    def __init__(
        self,
        env: Env,
        static: StaticConfig,
        replicas: ReplicaManager,
        image: Callable[[], Image],
        persister: StatePersister,
    ) -> None:
        self._env = env
        self._static = static
        self._replicas = replicas
        self._image = image
        self._persister = persister
        self._limits = ShareLimits(
            static.int("group.share.delivery.count.limit"), static.int("group.share.partition.max.record.locks")
        )
        self._loaded: dict[SharePartitionKey, LoadedSharePartition] = {}
        self._of_group: dict[str, dict[SharePartitionKey, None]] = {}
        self.waits: Purgatory[SharePartitionKey] = Purgatory(env)
        """Fetches that wait for records which their member may acquire."""
        self.acquired_records = 0
        self.expired_locks = 0
        """Records whose lock has ended."""
        self.acknowledged: Counter[int] = Counter()
        """Records by the type of their acknowledgement."""
        self.loads = 0
        self.load_times = LatencyWindow()

    def __len__(self) -> int:
        return len(self._loaded)

    def lock_duration_ms(self, group_id: str) -> int:
        """Within the broker's bounds of now, which may differ from those when the group was configured."""
        duration_ms = int(group_value(self._image(), self._static, group_id, "share.record.lock.duration.ms"))
        least = self._static.int("group.share.min.record.lock.duration.ms")
        most = self._static.int("group.share.max.record.lock.duration.ms")
        return min(max(duration_ms, least), most)

    def reads_committed(self, group_id: str) -> bool:
        return bool(group_value(self._image(), self._static, group_id, "share.isolation.level") == "read_committed")

    # -- which share partitions are here -------------------------------------------------------------------------

    def use(self, key: SharePartitionKey, partition: Partition) -> LoadedSharePartition:
        """The share partition of a partition that this broker leads; loads it if it is not here."""
        found = self._loaded.get(key)
        if found is not None and found.partition is partition and found.is_ours:
            if found.is_in_doubt:
                self._compare(found)
            return found
        if found is not None:
            self.drop(found, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        loaded = LoadedSharePartition(self, key, partition, self._env.now_ms())
        self._loaded[key] = loaded
        self._of_group.setdefault(key.group, {})[key] = None
        self._replicas.delayed.partition_listeners.listen(partition.key, loaded)
        self._load(loaded)
        return loaded

    def get(self, key: SharePartitionKey) -> LoadedSharePartition | None:
        """The share partition, if it is here and ours."""
        found = self._loaded.get(key)
        return found if found is not None and found.is_ours else None

    def all(self) -> list[LoadedSharePartition]:
        return list(self._loaded.values())

    def drop(self, loaded: LoadedSharePartition, why: ErrorCode) -> None:
        """Forget it; fetches that wait for it look again. Harmless if it is forgotten already."""
        key = loaded.key
        if self._loaded.get(key) is not loaded:
            return
        loaded.error = why
        del self._loaded[key]
        of_group = self._of_group[key.group]
        del of_group[key]
        if not of_group:
            del self._of_group[key.group]
        self._replicas.delayed.partition_listeners.forget(loaded.partition.key, loaded)
        if loaded.cancel_timer is not None:
            loaded.cancel_timer()
            loaded.cancel_timer = None
        self.wake(key)

    def group_gone(self, group_id: str) -> None:
        """The group has no session on this broker."""
        for loaded in list(self._shares_of(group_id)):
            self.drop(loaded, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def session_begins(self, group_id: str, *, is_only: bool) -> None:
        """A member of the group opens a session. is_only: no other member has one here."""
        for loaded in self._shares_of(group_id):
            if loaded.share is not None:
                loaded.is_in_doubt = True
                if is_only:
                    # one that is under way may not see what has happened before this session
                    loaded.waits_for = loaded.comparisons + 1

    def _shares_of(self, group_id: str) -> Iterator[LoadedSharePartition]:
        for key in self._of_group.get(group_id, ()):
            yield self._loaded[key]

    def wake(self, key: SharePartitionKey) -> None:
        self.waits.check_and_complete(key)

    # -- comparing with what is stored ---------------------------------------------------------------------------

    def _compare(self, loaded: LoadedSharePartition) -> None:
        loaded.is_in_doubt = False
        share = loaded.share
        if share is None:
            loaded.waits_for = None
            return
        loaded.comparisons += 1
        number = loaded.comparisons

        def answered(result: StateEpochs | ErrorCode) -> None:
            is_here = self._loaded.get(loaded.key) is loaded and loaded.share is share
            if is_here and (loaded.waits_for is None or loaded.waits_for <= number):
                self._compared(loaded, result)

        self._persister.look(loaded.key, answered)

    def _compared(self, loaded: LoadedSharePartition, result: StateEpochs | ErrorCode) -> None:
        is_awaited, loaded.waits_for = loaded.waits_for is not None, None
        if result is ErrorCode.COORDINATOR_NOT_AVAILABLE and not is_awaited:
            # members have sessions, and may hold records
            loaded.is_in_doubt = True
        elif isinstance(result, ErrorCode):
            self.drop(loaded, _for_clients(result))
        elif _has_loaded(loaded, result):
            self.wake(loaded.key)
        else:
            loaded.share, loaded.began_ms = None, self._env.now_ms()
            self._load(loaded)

    # -- loading -------------------------------------------------------------------------------------------------

    def _load(self, loaded: LoadedSharePartition) -> None:
        self._persister.read(loaded.key, loaded.leader_epoch, lambda result: self._read(loaded, result))

    def _read(self, loaded: LoadedSharePartition, result: StoredState | ErrorCode) -> None:
        if self._loaded.get(loaded.key) is not loaded:
            return
        if isinstance(result, ErrorCode):
            self.drop(loaded, _for_clients(result))
            return
        loaded.state_epoch = result.state_epoch
        start_offset = result.start_offset
        if start_offset != UNINITIALIZED_OFFSET:
            self._loaded_with(loaded, start_offset, result)
            return
        try:
            start_offset = self._first_offset(loaded)
        except KafkaError as error:
            self.drop(loaded, error.code)
            return
        except OSError as error:
            self._replicas.storage_failed(loaded.partition, error)
            self.drop(loaded, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        write = StateWrite(result.state_epoch, loaded.leader_epoch, start_offset, 0, ())

        def stored(code: ErrorCode) -> None:
            if self._loaded.get(loaded.key) is not loaded:
                return
            if code is ErrorCode.NONE:
                self._loaded_with(loaded, start_offset, result)
            else:
                self.drop(loaded, _for_clients(code))

        self._persister.write(loaded.key, write, stored)

    def _first_offset(self, loaded: LoadedSharePartition) -> int:
        """Where a group begins that has not read this partition: `share.auto.offset.reset`. Raises KafkaError, OSError.

        OFFSET_NOT_AVAILABLE for a moment after an election: an earlier leader's end may have been higher.
        """
        reset = str(group_value(self._image(), self._static, loaded.key.group, "share.auto.offset.reset"))
        timestamp = starting_timestamp(reset, self._env.wall_ms())
        partition = loaded.partition
        answer = offset_for(partition, timestamp, loaded.leader_epoch, for_follower=False)
        if answer.offset < 0 and timestamp not in (EARLIEST, LATEST):
            answer = offset_for(partition, LATEST, loaded.leader_epoch, for_follower=False)
        return answer.offset

    def _loaded_with(self, loaded: LoadedSharePartition, start_offset: int, stored: StoredState) -> None:
        loaded.share = SharePartition(self._limits, start_offset, stored.batches)
        now_ms = self._env.now_ms()
        self.loads += 1
        self.load_times.add(now_ms, now_ms - loaded.began_ms)
        self.wake(loaded.key)

    # -- changes -------------------------------------------------------------------------------------------------

    def acknowledge(
        self, loaded: LoadedSharePartition, member: str, given: list[Acknowledgement], on_done: OnAcknowledged
    ) -> None:
        """Raises KafkaError; otherwise `on_done` is called once, perhaps within this call."""
        share = loaded.share
        if share is None:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "the share partition is loading, the member holds nothing")
        duration_ms = self.lock_duration_ms(loaded.key.group)
        topic_metrics = loaded.partition.topic_metrics
        try:
            change = share.acknowledge(member, given, self._env.now_ms() + duration_ms)
        except KafkaError as error:
            topic_metrics.share_acknowledge_failed(error.code)
            raise
        for each in given:
            if len(each.types) == 1:
                self.acknowledged[each.types[0]] += each.last - each.first + 1
            else:
                self.acknowledged.update(each.types)
        if not change.runs:
            on_done(ErrorCode.NONE)
            return

        def stored(code: ErrorCode) -> None:
            share.settle(change, is_stored=code is ErrorCode.NONE)
            self._stored(loaded, share, code)
            if code is not ErrorCode.NONE:
                # a lock does not end, and has no timer, while an acknowledgement is being stored
                self._end_locks(loaded)
            if self._loaded.get(loaded.key) is loaded:
                self.wake(loaded.key)
            topic_metrics.share_acknowledge_failed(_for_clients(code))
            on_done(_for_clients(code))

        self._store(loaded, change, stored)

    def release(self, group_id: str, member: str) -> None:
        """The member's session has ended: it gives back what it holds here."""
        for loaded in list(self._shares_of(group_id)):
            if loaded.share is not None:
                self._in_effect(loaded, loaded.share.release(member))

    def locked(self, loaded: LoadedSharePartition, until_ms: int) -> None:
        """Records are locked until then."""
        if loaded.cancel_timer is not None:
            if loaded.timer_at_ms <= until_ms:
                return
            loaded.cancel_timer()
        loaded.timer_at_ms = until_ms
        delay_ms = max(0, until_ms - self._env.now_ms())
        loaded.cancel_timer = self._env.call_later(delay_ms, lambda: self._on_timer(loaded))

    def _on_timer(self, loaded: LoadedSharePartition) -> None:
        loaded.cancel_timer = None
        self._end_locks(loaded)

    def _end_locks(self, loaded: LoadedSharePartition) -> None:
        share = loaded.share
        if share is None or self._loaded.get(loaded.key) is not loaded:
            return
        change = share.end_locks(self._env.now_ms())
        if change is not None:
            self.expired_locks += sum(batch.last_offset - batch.first_offset + 1 for batch in change.batches)
        self._in_effect(loaded, change)
        next_ms = share.next_lock_end_ms()
        if next_ms is not None and self._loaded.get(loaded.key) is loaded:
            self.locked(loaded, next_ms)

    def _in_effect(self, loaded: LoadedSharePartition, change: StateTransition | None) -> None:
        """Store a change that does not wait for it."""
        share = loaded.share
        if change is None or share is None:
            return
        self._store(loaded, change, lambda code: self._stored(loaded, share, code))
        self.wake(loaded.key)

    def _store(self, loaded: LoadedSharePartition, change: StateTransition, on_done: OnAcknowledged) -> None:
        write = StateWrite(
            loaded.state_epoch, loaded.leader_epoch, change.start_offset, change.finished_count, tuple(change.batches)
        )
        self._persister.write(loaded.key, write, on_done)

    def _stored(self, loaded: LoadedSharePartition, share: SharePartition, code: ErrorCode) -> None:
        if code not in (ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE) and loaded.share is share:
            self._env.log(
                "info",
                "share-partition-dropped",
                group=loaded.key.group,
                topic=loaded.partition.topic,
                partition=loaded.key.partition,
                error=code.name,
            )
            self.drop(loaded, _for_clients(code))


def _for_clients(code: ErrorCode) -> ErrorCode:
    """What a client gets for an error of the coordinator."""
    if code in _FENCED:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return code if code in _KEPT else ErrorCode.UNKNOWN_SERVER_ERROR


def _has_loaded(loaded: LoadedSharePartition, stored: StateEpochs) -> bool:
    """Whether what is stored is what was loaded here, with what was written since."""
    if stored.state_epoch == LOWEST_STATE_EPOCH < loaded.state_epoch and stored.leader_epoch != NOT_READ:
        # an election has lost what is stored: this leader knows most, and its next change restores it
        return True
    is_same = (stored.state_epoch, stored.leader_epoch) == (loaded.state_epoch, loaded.leader_epoch)
    return is_same and stored.start_offset != UNINITIALIZED_OFFSET
