"""The partitions of this broker: which ones exist, who leads them, and in which log directory each is.

It follows the metadata image: `on_image` is called after every committed change. It processes deleted partitions first
(the same change may use their names again), then leaders (followers on other brokers want to fetch), then followers.
The log directories open the logs before the first image; the first image decides which of them are still wanted.

This module wakes the requests that wait for a partition (`delayed_operations.py`). If a disk fails, this module takes
all partitions of that directory offline (`log_directories.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain

from heirlog.broker.alter_partition_sender import AlterPartitionSender
from heirlog.broker.assignments_manager import AssignmentsManager
from heirlog.broker.broker_topic_metrics import BrokerTopicStats
from heirlog.broker.damaged_logs import DamagedLogs
from heirlog.broker.delayed_operations import DelayedOperations
from heirlog.broker.discarded_records import DiscardedRecordsManager
from heirlog.broker.followers import RegisteredBrokers
from heirlog.broker.isr import IsrProposal
from heirlog.broker.log_config import log_config_of
from heirlog.broker.log_directories import LogDirectories
from heirlog.broker.lost_leaders import LostLeaders
from heirlog.broker.partition import Partition, ReplicaRole
from heirlog.broker.replica_fetcher import ReplicaFetcherPorts, ReplicaFetcherSettings
from heirlog.broker.replica_fetcher_manager import ReplicaFetcherManager
from heirlog.broker.replication_throttle import FOLLOWER, LEADER, ReplicationThrottle
from heirlog.env import Env
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, Image
from heirlog.metadata.journal import ImageJournal
from heirlog.metadata.min_isr import min_isr_of
from heirlog.metadata.state import BrokerRegistration, PartitionRegistration
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code
from heirlog.protocol.messages import AlterPartitionResponse
from heirlog.protocol.types import BrokerId, Endpoint, PartitionKey, Uuid, uuid_text
from heirlog.storage.config import LogConfig
from heirlog.storage.errors import DamagedLog
from heirlog.storage.log import Log
from heirlog.storage.log_directory import LogDirectory

_NO_PARTITIONS: Mapping[int, Partition] = {}


@dataclass(frozen=True, slots=True)
class ReplicaEvents:
    """Events for the broker."""

    on_brokers_changed: Callable[[set[BrokerId] | None], None]
    """These registrations have changed; None: all of them may have."""
    on_directory_failed: Callable[[], None]
    """The controller has to be notified. The partitions of the directory are offline by then."""


class ReplicaManager:
    def __init__(
        self,
        env: Env,
        static: StaticConfig,
        directories: list[LogDirectory],
        registered_brokers: RegisteredBrokers,
        sender: AlterPartitionSender,
        reports: AssignmentsManager,
        endpoint_of: Callable[[BrokerId], Endpoint | None],
        events: ReplicaEvents,
    ) -> None:
        """endpoint_of: the endpoint of a leader; None if it is not registered."""
        self._env = env
        self._static = static
        self._registered_brokers = registered_brokers
        self._sender = sender
        self._reports = reports
        self._events = events
        self._image = Image()
        self._started = False
        self._by_id: dict[Uuid, dict[int, Partition]] = {}
        self._by_name: dict[str, dict[int, Partition]] = {}
        self._all: list[Partition] | None = None
        """None: `_by_id` has changed since."""
        self._directory_of: dict[PartitionKey, LogDirectory] = {}
        self._lag_max_ms: int = static["replica.lag.time.max.ms"]
        self.directories = LogDirectories(
            env, static, directories, registered_brokers.broker_id, self._directory_failed
        )
        self.damaged_logs = DamagedLogs(env, registered_brokers.broker_id, self.directories, self.directory_of)
        self.delayed = DelayedOperations(env)
        self.lost_leaders = LostLeaders(env)
        self.topic_stats = BrokerTopicStats()
        self.discarded_records = DiscardedRecordsManager(env, static, self.directory_of)
        self.leader_throttle = ReplicationThrottle(LEADER, static, env.now_ms)
        self._follower_throttle = ReplicationThrottle(FOLLOWER, static, env.now_ms)
        self.fetchers = ReplicaFetcherManager(
            ReplicaFetcherPorts(
                env,
                ReplicaFetcherSettings.of(static),
                registered_brokers,
                endpoint_of,
                self.discarded_records,
                self.topic_stats,
                self.flush_if_due,
                self.storage_failed,
                self._follower_throttle,
                self.lost_leaders.connection_closed,
            )
        )

    # -- finding partitions -------------------------------------------------------------------------------------

    def partitions_of(self, topic_id: bytes) -> Mapping[int, Partition]:
        return self._by_id.get(Uuid(topic_id), _NO_PARTITIONS)

    def partitions_named(self, topic: str) -> Mapping[int, Partition]:
        return self._by_name.get(topic, _NO_PARTITIONS)

    def partition(self, key: PartitionKey) -> Partition | None:
        return self._by_id.get(key[0], _NO_PARTITIONS).get(key[1])

    def all_partitions(self) -> list[Partition]:
        """Not to be changed. The same list as before, unless a partition was added or removed."""
        if self._all is None:
            self._all = [*chain.from_iterable(map(dict.values, self._by_id.values()))]
        return self._all

    def topic_name(self, topic_id: bytes) -> str | None:
        """The topic's name; None if this broker knows no topic with this id."""
        topic = self._image.topics.get(Uuid(topic_id))
        return None if topic is None else topic.name

    def no_partition(self, topic: str | bytes, index: int, was_named: str = "") -> KafkaError:
        """The error for a partition that this broker does not have: other brokers have it, or it does not exist.

        was_named: the former name of a topic that is requested by its id, if the caller knows it.
        """
        if isinstance(topic, str):
            named, state = topic, self._image.partition_named(topic, index)
        elif topic in self._image.topics:
            named, state = uuid_text(topic), self._image.partition(Uuid(topic), index)
        elif not was_named:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with id {uuid_text(topic)}")
        elif self._image.topic_named(was_named) is not None:
            return KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID, f"{was_named} is not the topic {uuid_text(topic)}")
        else:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {was_named} was deleted")
        if state is None:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {named}-{index}")
        if self._registered_brokers.broker_id in state.replicas:
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log directory of {named}-{index} is offline")
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker has no replica of {named}-{index}")

    def state_of(self, topic_id: bytes, topic: str, index: int) -> PartitionRegistration | None:
        """The partition's state in the image; by `topic` if that is not empty, else by `topic_id`."""
        return self._image.partition_named(topic, index) if topic else self._image.partition(Uuid(topic_id), index)

    def endpoints_of(self, brokers: Iterable[int], listener: str) -> list[tuple[BrokerRegistration, Endpoint]]:
        """The brokers' endpoints on `listener`; brokers without that listener are left out."""
        found = []
        for broker_id in brokers:
            broker = self._image.brokers.get(BrokerId(broker_id))
            endpoint = None if broker is None else broker.endpoint(listener)
            if broker is not None and endpoint is not None:
                found.append((broker, endpoint))
        return found

    # -- the image ----------------------------------------------------------------------------------------------

    def on_image(self, image: Image, changed: ImageJournal | None) -> None:
        """`changed` is None if anything may differ: the first image, or one loaded from a snapshot."""
        self._image = image
        self._registered_brokers.brokers = image.brokers
        is_ordered = self._started and changed is not None and not changed.is_of_snapshot
        for throttle in (self.leader_throttle, self._follower_throttle):
            throttle.on_image(image, changed if self._started else None)
        if changed is None or not self._started:
            self._started = True
            self._take_over_logs()
            self._apply(self._everything(), is_ordered)
        else:
            self._apply(sorted(changed.partitions), is_ordered)
            if changed.configs:
                # after the partitions: a lower min ISR together with the older image's ISR or leadership would commit
                # records that members of the newer ISR lack
                self._on_configs(changed)
        if changed is None or changed.brokers:
            self._events.on_brokers_changed(None if changed is None else set(changed.brokers))
        if changed is not None and changed.brokers:
            # a fenced follower outside the ISR no longer holds the watermark back
            for partition in self.all_partitions():
                self._advance(partition)
            self.delayed.low_watermarks_may_have_moved(self.all_partitions())
        self.fetchers.wake_up(more_elections_may_follow=is_ordered)
        self.lost_leaders.on_image(image, changed)

    def _everything(self) -> list[PartitionKey]:
        here = {p.key for p in self.all_partitions()}
        assigned = {
            (topic_id, index) for topic_id, index, _ in self._image.replicas_on(self._registered_brokers.broker_id)
        }
        return sorted(here | assigned)

    def _apply(self, touched: list[PartitionKey], is_ordered: bool) -> None:
        """is_ordered: committed records made the changes; else they come from a snapshot that lacks older state."""
        me = self._registered_brokers.broker_id
        leaders: list[tuple[PartitionKey, PartitionRegistration]] = []
        followers: list[tuple[PartitionKey, PartitionRegistration]] = []
        for key in touched:
            state = self._image.partition(*key)
            if state is None or me not in state.replicas:
                self._remove(key, is_ordered)
            elif state.leader == me:
                leaders.append((key, state))
            else:
                followers.append((key, state))
        for key, state in leaders:
            self._lead(key, state)
        for key, state in followers:
            self._follow(key, state)

    def _lead(self, key: PartitionKey, state: PartitionRegistration) -> None:
        partition = self._existing_or_new(key, state)
        if partition is None:
            return
        was_leader = partition.role is ReplicaRole.LEADER
        epoch, watermark = partition.leader_epoch, partition.high_watermark
        self.fetchers.remove(partition)
        partition.become_leader(state, min_isr_of(self._image, self._static, key[0], state), self._env.now_ms())
        if key in self.damaged_logs.kept:
            # the directory may have other partitions of the same change
            self._env.call_later(0, lambda: self.damaged_logs.give_up(key, self.partition(key)))
        if not was_leader or partition.leader_epoch != epoch:
            self._env.log(
                "info",
                "partition-led",
                topic=partition.topic,
                partition=partition.index,
                leader_epoch=partition.leader_epoch,
                start_offset=partition.leader_epoch_start_offset,
                high_watermark=partition.high_watermark,
                isr=list(state.isr),
            )
            self.delayed.leadership_changed(key)
        else:
            self.delayed.partition_listeners.mark(key)
            self.delayed.watermark_may_have_moved(partition, watermark)

    def _follow(self, key: PartitionKey, state: PartitionRegistration) -> None:
        partition = self._existing_or_new(key, state)
        if partition is None:
            return
        restart = partition.become_follower(state, min_isr_of(self._image, self._static, key[0], state))
        if restart:
            self.delayed.leadership_changed(key)
        self.fetchers.follow(partition, restart)

    def _existing_or_new(self, key: PartitionKey, state: PartitionRegistration) -> Partition | None:
        partition = self.partition(key)
        if partition is None:
            partition = self._created(key, state)
            if partition is None:
                return None
        directory = self._directory_of[key].directory_id
        if directory == state.directory_of(self._registered_brokers.broker_id):
            self._reports.settle(key)
        else:
            self._reports.report(key, directory)
        return None if partition.offline else partition

    def _created(self, key: PartitionKey, state: PartitionRegistration) -> Partition | None:
        topic = self._image.topics[key[0]].name
        made = self.directories.create_log(key, topic, state, log_config_of(self._image, self._static, topic))
        if made is None:
            return None
        directory, log = made
        # the partition had a leader before: what this replica held was on a disk that is gone
        log.may_lack_records = state.leader_epoch > 0
        return self._add(key, topic, directory, log, high_watermark=0)

    def _add(self, key: PartitionKey, topic: str, directory: LogDirectory, log: Log, high_watermark: int) -> Partition:
        partition = Partition(
            key[0],
            topic,
            key[1],
            log,
            self._registered_brokers,
            high_watermark=high_watermark,
            lag_max_ms=self._lag_max_ms,
            topic_metrics=self.topic_stats.of(topic),
        )
        self._by_id.setdefault(key[0], {})[key[1]] = partition
        self._all = None
        # one mapping under both the name and the id
        self._by_name[topic] = self._by_id[key[0]]
        self._directory_of[key] = directory
        return partition

    def _take_over_logs(self) -> None:
        def config_of(topic: str) -> LogConfig:
            return log_config_of(self._image, self._static, topic)

        for key, directory, log in self.directories.take_over(self._image, self._directory_of, config_of):
            log.config = config_of(log.topic)
            watermark = directory.high_watermarks.get((log.topic, log.partition), 0)
            self._add(key, log.topic, directory, log, watermark)

    def _remove(self, key: PartitionKey, is_ordered: bool) -> None:
        """Remove a partition that is no longer assigned here: its topic was deleted, or it was reassigned."""
        partition = self.partition(key)
        if partition is None:
            return
        self.fetchers.remove(partition)
        partition.become_idle()
        self.topic_stats.isr_expands += partition.isr_expands
        self.topic_stats.isr_shrinks += partition.isr_shrinks
        self.topic_stats.failed_isr_updates += partition.failed_isr_updates
        siblings = self._by_id[key[0]]
        del siblings[key[1]]
        self._all = None
        if not siblings:
            del self._by_id[key[0]]
            # a recreated topic of the same name has its own mapping by now
            if self._by_name.get(partition.topic) is siblings:
                del self._by_name[partition.topic]
                self.topic_stats.retire(partition.topic)
        directory = self._directory_of.pop(key)
        self.damaged_logs.forget(key)
        self._reports.settle(key)
        self.delayed.leadership_changed(key)
        if is_ordered:
            self.directories.delete_log(directory, partition.topic, key[1])
        else:
            self.directories.set_aside(directory, partition.topic, key[1])

    def _on_configs(self, changed: ImageJournal) -> None:
        resources = changed.changed_config_resources()
        # another broker's values do not matter here
        mine = ((BROKER_RESOURCE, ""), (BROKER_RESOURCE, str(self._registered_brokers.broker_id)))
        topics: Iterable[str] = [name for kind, name in resources if kind == TOPIC_RESOURCE]
        if any(resource in mine for resource in resources):
            topics = sorted(self._by_name)
        for topic in topics:
            partitions = self.partitions_named(topic)
            if partitions:
                config = log_config_of(self._image, self._static, topic)
                for partition in partitions.values():
                    self._reconfigure(partition, config)

    def _reconfigure(self, partition: Partition, config: LogConfig) -> None:
        partition.log.config = config
        state = self._image.partition(*partition.key)
        if state is not None and partition.role is ReplicaRole.LEADER:
            watermark = partition.high_watermark
            partition.min_isr_changed(
                min_isr_of(self._image, self._static, partition.topic_id, state), self._env.now_ms()
            )
            self.delayed.watermark_may_have_moved(partition, watermark)

    # -- waking -------------------------------------------------------------------------------------------------

    def log_grew(self, partition: Partition, watermark_before: int, wall_ms: int) -> None:
        """A producer's batch was appended."""
        self.flush_if_due(partition, wall_ms)
        self.delayed.log_grew(partition, watermark_before)

    def _advance(self, partition: Partition) -> None:
        watermark = partition.high_watermark
        if partition.advance_high_watermark(self._env.now_ms()):
            self.delayed.watermark_may_have_moved(partition, watermark)

    def stop_serving(self) -> None:
        """The broker is about to close its logs: stop leading and following, and answer the waiting requests."""
        for partition in self.all_partitions():
            self._stop_serving(partition)
            self.delayed.leadership_changed(partition.key)

    def _stop_serving(self, partition: Partition) -> None:
        self.fetchers.remove(partition)
        partition.become_idle()

    # -- ISR changes --------------------------------------------------------------------------------------------

    def propose(self, proposal: IsrProposal) -> None:
        if self._sender.submit(proposal):
            self._env.log(
                "info",
                "isr-change-asked",
                topic=self._image.topics[proposal.topic_id].name if proposal.topic_id in self._image.topics else "",
                partition=proposal.partition,
                isr=[member for member, _ in proposal.isr_with_epochs],
            )
            return
        partition = self.partition((proposal.topic_id, proposal.partition))
        if partition is not None:
            partition.not_attempted(proposal)

    def on_alter_partition_answer(self, proposal: IsrProposal, answer: AlterPartitionResponse.PartitionData) -> None:
        partition = self.partition((proposal.topic_id, proposal.partition))
        if partition is None:
            return
        # a follower that turns out to be outside the ISR may join again
        self.delayed.partition_listeners.mark((proposal.topic_id, proposal.partition))
        if answer.error_code != ErrorCode.NONE:
            again = partition.proposal_failed(proposal, error_code(answer.error_code))
            if again is not None:
                self.propose(again)
            return
        watermark = partition.high_watermark
        committed_offset = answer.committed_offset
        partition.proposal_committed(
            proposal,
            isr=tuple(BrokerId(member) for member in answer.isr),
            leader_epoch=answer.leader_epoch,
            partition_epoch=answer.partition_epoch,
            image_has_it=0 <= committed_offset <= self._image.offset,
            now_ms=self._env.now_ms(),
        )
        self.delayed.watermark_may_have_moved(partition, watermark)

    def check_isr_lag(self) -> None:
        """Called every `replica.lag.time.max.ms` / 2: request the removal of members that fell behind."""
        now_ms = self._env.now_ms()
        for partition in self.all_partitions():
            proposal = partition.check_lag(now_ms)
            if proposal is not None:
                self.propose(proposal)
            # a follower outside the ISR that stopped fetching does not hold the high watermark back for longer
            self._advance(partition)

    # -- disks --------------------------------------------------------------------------------------------------

    def directory_of(self, partition: Partition) -> LogDirectory | None:
        """The partition's directory; None if the partition is no longer on this broker."""
        return self._directory_of.get(partition.key)

    def flush_if_due(self, partition: Partition, wall_ms: int) -> None:
        """Flush by `flush.messages` or `flush.ms`. A later failure is reported to the `LogDirectoryListener`."""
        if not partition.log.needs_flush(wall_ms):
            return

        def flushed(error: OSError | None) -> None:
            if error is None:
                self.flush_if_due(partition, self._env.wall_ms())  # for records that came meanwhile

        try:
            partition.log.flush(flushed)
        except OSError as error:
            self.storage_failed(partition, error)

    def storage_failed(self, partition: Partition, error: OSError) -> None:
        """A read or write of this partition failed: its directory is offline from now on."""
        if isinstance(error, DamagedLog):
            self.damaged_logs.found(partition, error)
            return
        directory = self._directory_of.get(partition.key)
        if directory is not None:
            self.directories.failed(directory, error)

    def log_start_moved(self, key: PartitionKey) -> None:
        self.delayed.partition_listeners.mark(key)

    def _directory_failed(self, directory: LogDirectory) -> None:
        lost = []
        for key, owner in self._directory_of.items():
            partition = self.partition(key)
            if owner is directory and partition is not None:
                partition.offline = True
                self._stop_serving(partition)
                lost.append(key)
        # later: the caller may be a waiting request that found the failure and is still running
        self._env.call_later(0, lambda: self._leadership_lost(lost))
        self._events.on_directory_failed()

    def _leadership_lost(self, lost: Iterable[PartitionKey]) -> None:
        for key in lost:
            self.delayed.leadership_changed(key)
