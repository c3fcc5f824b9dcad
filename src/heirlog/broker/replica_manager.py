"""The partitions of this broker: which exist, who leads them, and what they wait for.

It follows the metadata image: `on_image` is called after every committed change, and works off deleted partitions
first (their names may be taken again in the same change), then leaders (followers elsewhere want to fetch), then
followers. Logs are opened by the log directories before the first image; the first image decides which of them are
still wanted, and the others are strays: topics deleted while this broker was away.

It is the one place that wakes who waits for a partition:

    the high watermark moved   produce (acks=all), consumer fetches
    the log grew               follower fetches; once per turn of the loop, so that one answer carries what several
                               requests brought
    a follower fetched         DeleteRecords: its log start may have moved. Also when brokers come or go
    role or leader changed     all of them

Fetch sessions hear the same, and besides of changes of the ISR, of the log start and of brokers, which end no wait.

A partition whose disk fails goes offline here, with every other of that directory; the controller hears of it with the
next heartbeat (`offline_directories`), and clients get KAFKA_STORAGE_ERROR. Nothing comes back before the next start. A
replica that the controller has placed in a directory that is offline is not begun anew in another one: an empty log
would take the seat of the one that is out of reach. The node ends where no directory is left, or the one of the
metadata log has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeAlias

from heirlog.broker.alter_partition_sender import AlterPartitionSender
from heirlog.broker.directory_reports import DirectoryReports
from heirlog.broker.discarding import Discarding
from heirlog.broker.followers import Peers
from heirlog.broker.isr import IsrProposal
from heirlog.broker.log_config import log_config_of
from heirlog.broker.news import Exchange, News
from heirlog.broker.partition import Partition, Role
from heirlog.broker.purgatory import Purgatory
from heirlog.broker.replica_fetchers import ReplicaFetchers
from heirlog.broker.traffic import Traffic
from heirlog.env import Env
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, Image
from heirlog.metadata.journal import Journal
from heirlog.metadata.min_isr import min_isr_of
from heirlog.metadata.state import MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY, BrokerState, PartitionState
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code
from heirlog.protocol.messages.alter_partition import AlterPartitionResponse
from heirlog.protocol.types import BrokerId, Endpoint, Uuid, uuid_text
from heirlog.storage.config import LogConfig
from heirlog.storage.log import Log
from heirlog.storage.log_directory import LogDirectory

PartitionKey: TypeAlias = tuple[Uuid, int]

_NO_PARTITIONS: Mapping[int, Partition] = {}


class ReplicaManager:
    def __init__(
        self,
        env: Env,
        static: StaticConfig,
        directories: list[LogDirectory],
        peers: Peers,
        sender: AlterPartitionSender,
        fetchers: ReplicaFetchers,
        reports: DirectoryReports,
    ) -> None:
        self._env = env
        self._static = static
        self._directories = directories
        self._peers = peers
        self._sender = sender
        self._fetchers = fetchers
        self._reports = reports
        self._image = Image()
        self._started = False
        self._by_id: dict[Uuid, dict[int, Partition]] = {}
        self._by_name: dict[str, dict[int, Partition]] = {}
        self._directory_of: dict[PartitionKey, LogDirectory] = {}
        self._offline: list[LogDirectory] = []
        self._lag_max_ms: int = static["replica.lag.time.max.ms"]
        self.produce_waits: Purgatory[PartitionKey] = Purgatory(env)
        self.consumer_fetch_waits: Purgatory[PartitionKey] = Purgatory(env)
        self.follower_fetch_waits: Purgatory[PartitionKey] = Purgatory(env)
        self.delete_records_waits: Purgatory[PartitionKey] = Purgatory(env)
        self.exchange: Exchange[PartitionKey] = Exchange()
        self.traffic = Traffic()
        self._grown: dict[PartitionKey, None] = {}
        self.discarding = Discarding(env, static, self.directory_of)
        for directory in directories:
            directory.on_failure = partial(self.directory_failed, directory)
        self.on_brokers_changed: Callable[[set[BrokerId] | None], None] = lambda changed: None
        """Set by the broker: which registrations are new, None for perhaps all."""
        self.on_directory_failed: Callable[[], None] = lambda: None
        """Set by the broker: the controller should hear of it."""
        fetchers.replicas = self

    # -- finding partitions -------------------------------------------------------------------------------------

    def partitions_of(self, topic_id: bytes) -> Mapping[int, Partition]:
        return self._by_id.get(Uuid(topic_id), _NO_PARTITIONS)

    def partitions_named(self, topic: str) -> Mapping[int, Partition]:
        return self._by_name.get(topic, _NO_PARTITIONS)

    def partition(self, key: PartitionKey) -> Partition | None:
        return self._by_id.get(key[0], _NO_PARTITIONS).get(key[1])

    def all_partitions(self) -> Iterable[Partition]:
        for partitions in self._by_id.values():
            yield from partitions.values()

    def topic_name(self, topic_id: bytes) -> str | None:
        """None: no topic that this broker knows has the id."""
        topic = self._image.topics.get(Uuid(topic_id))
        return None if topic is None else topic.name

    def no_partition(self, topic: str | bytes, index: int) -> KafkaError:
        """Why a partition is not here: it exists elsewhere, or nowhere."""
        if isinstance(topic, str):
            named = self._image.partition_named(topic, index)
            if named is None:
                return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{index}")
            if self._peers.broker_id in named.replicas:
                return _directory_is_offline(f"{topic}-{index}")
            return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker has no replica of {topic}-{index}")
        topic_id = Uuid(topic)
        if topic_id not in self._image.topics:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with id {uuid_text(topic_id)}")
        state = self._image.partition(topic_id, index)
        if state is not None and self._peers.broker_id in state.replicas:
            return _directory_is_offline(f"{uuid_text(topic_id)}-{index}")
        if state is None:
            return KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {uuid_text(topic_id)} has no partition {index}"
            )
        return KafkaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker has no replica of {uuid_text(topic_id)}-{index}"
        )

    def state_of(self, topic_id: bytes, topic: str, index: int) -> PartitionState | None:
        """What the image says; `topic` counts where it is not empty."""
        return self._image.partition_named(topic, index) if topic else self._image.partition(Uuid(topic_id), index)

    def endpoints_of(self, brokers: Iterable[int], listener: str) -> list[tuple[BrokerState, Endpoint]]:
        """Where clients of `listener` reach these brokers; those not registered there are left out."""
        found = []
        for broker_id in brokers:
            broker = self._image.brokers.get(BrokerId(broker_id))
            endpoint = None if broker is None else broker.endpoint(listener)
            if broker is not None and endpoint is not None:
                found.append((broker, endpoint))
        return found

    # -- the image ----------------------------------------------------------------------------------------------

    def on_image(self, image: Image, changed: Journal | None) -> None:
        """`changed` is None where everything may differ: the first image, or one loaded from a snapshot."""
        self._image = image
        self._peers.brokers = image.brokers
        if changed is None or not self._started:
            self._started = True
            self._take_over_logs()
            touched = self._everything()
        else:
            touched = sorted(changed.partitions)
            if changed.configs:
                self._on_configs(changed)
        self._apply(touched)
        if changed is None or changed.brokers:
            self.on_brokers_changed(None if changed is None else set(changed.brokers))
        if changed is not None and changed.brokers:
            # a fenced follower outside the ISR no longer holds the watermark back
            for partition in self.all_partitions():
                self._advance(partition)
            self.low_watermarks_may_have_moved(list(self.all_partitions()))
        self._fetchers.wake_up()

    def _everything(self) -> list[PartitionKey]:
        here = {(p.topic_id, p.index) for p in self.all_partitions()}
        assigned = {(topic_id, index) for topic_id, index, _ in self._image.replicas_on(self._peers.broker_id)}
        return sorted(here | assigned)

    def _apply(self, touched: list[PartitionKey]) -> None:
        me = self._peers.broker_id
        leaders: list[tuple[PartitionKey, PartitionState]] = []
        followers: list[tuple[PartitionKey, PartitionState]] = []
        for key in touched:
            state = self._image.partition(*key)
            if state is None or me not in state.replicas:
                self._remove(key)
            elif state.leader == me:
                leaders.append((key, state))
            else:
                followers.append((key, state))
        for key, state in leaders:
            self._lead(key, state)
        for key, state in followers:
            self._follow(key, state)

    def _lead(self, key: PartitionKey, state: PartitionState) -> None:
        partition = self._existing_or_new(key, state)
        if partition is None:
            return
        was_leader = partition.role is Role.LEADER
        epoch, watermark = partition.leader_epoch, partition.high_watermark
        self._fetchers.remove(partition)
        try:
            partition.become_leader(state, min_isr_of(self._image, self._static, key[0], state), self._env.now_ms())
        except OSError as error:
            # the new leader epoch could not be written down
            self.storage_failed(partition, error)
            return
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
            self._wake_all(key)
        else:
            self.exchange.mark(key)
            self.watermark_may_have_moved(partition, watermark)

    def _follow(self, key: PartitionKey, state: PartitionState) -> None:
        partition = self._existing_or_new(key, state)
        if partition is None:
            return
        restart = partition.become_follower(state, min_isr_of(self._image, self._static, key[0], state))
        if restart:
            self._wake_all(key)
        self._fetchers.follow(partition, restart)

    def _existing_or_new(self, key: PartitionKey, state: PartitionState) -> Partition | None:
        partition = self.partition(key)
        if partition is None:
            partition = self._created(key, state)
            if partition is None:
                return None
        directory = self._directory_of[key].directory_id
        if directory == state.directory_of(self._peers.broker_id):
            self._reports.settle(key)
        else:
            self._reports.report(key, directory)
        return None if partition.offline else partition

    def _created(self, key: PartitionKey, state: PartitionState) -> Partition | None:
        topic = self._image.topics[key[0]].name
        while (directory := self._directory_for(state)) is not None:
            try:
                log = directory.create_log(topic, key[1], key[0], log_config_of(self._image, self._static, topic))
            except OSError as error:
                self.directory_failed(directory, error)
            else:
                return self._add(directory, key, topic, log, high_watermark=0)
        return None

    def _directory_for(self, state: PartitionState) -> LogDirectory | None:
        """The one that the controller named, None if that is offline; else the online one with the fewest logs, which
        the controller is told."""
        named = state.directory_of(self._peers.broker_id)
        online = self.online_directories
        for directory in online:
            if directory.directory_id == named:
                return directory
        if named not in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
            return None
        return min(online, key=lambda directory: len(directory.logs), default=None)

    def _add(self, directory: LogDirectory, key: PartitionKey, topic: str, log: Log, high_watermark: int) -> Partition:
        partition = Partition(
            key[0],
            topic,
            key[1],
            log,
            self._peers,
            high_watermark=high_watermark,
            lag_max_ms=self._lag_max_ms,
            traffic=self.traffic.of(topic),
        )
        self._by_id.setdefault(key[0], {})[key[1]] = partition
        # one mapping under both names
        self._by_name[topic] = self._by_id[key[0]]
        self._directory_of[key] = directory
        log.on_start_moved = partial(self.exchange.mark, key)
        return partition

    def _take_over_logs(self) -> None:
        """The logs that were on disk at start: those that the image still assigns here, and strays."""
        me = self._peers.broker_id
        for directory in self.online_directories:
            for (topic, index), log in sorted(directory.logs.items()):
                owner = None if log.topic_id is None else self._directory_of.get((log.topic_id, index))
                if owner is directory:
                    continue
                if log.topic_id is None and log.log_end_offset > log.log_start_offset:
                    self._set_aside(directory, topic, index)
                    continue
                state = None if log.topic_id is None else self._image.partition(log.topic_id, index)
                if log.topic_id is None or state is None or me not in state.replicas:
                    self._env.log("info", "stray-log-deleted", topic=topic, partition=index)
                    self._delete_log(directory, topic, index)
                    continue
                if owner is not None or self._belongs_elsewhere(directory, state):
                    # a copy from before its directory was away: the controller has placed the replica anew since
                    self._set_aside(directory, topic, index)
                    continue
                log.config = log_config_of(self._image, self._static, topic)
                watermark = directory.high_watermarks.get((topic, index), 0)
                self._add(directory, (log.topic_id, index), topic, log, watermark)

    def _belongs_elsewhere(self, directory: LogDirectory, state: PartitionState) -> bool:
        named = state.directory_of(self._peers.broker_id)
        return any(other.directory_id == named for other in self._directories if other is not directory)

    def _set_aside(self, directory: LogDirectory, topic: str, index: int) -> None:
        """Nobody can say that these records are superfluous: an operator may want to look at them."""
        try:
            path = directory.set_aside(topic, index)
        except OSError as error:
            self.directory_failed(directory, error)
            return
        self._env.log("warning", "stray-log-set-aside", topic=topic, partition=index, path=path)

    def _remove(self, key: PartitionKey) -> None:
        """No longer assigned here: its topic is deleted, or a reassignment moved it away."""
        partition = self.partition(key)
        if partition is None:
            return
        self._fetchers.remove(partition)
        partition.become_idle()
        self.traffic.isr_expands += partition.isr_expands
        self.traffic.isr_shrinks += partition.isr_shrinks
        self.traffic.failed_isr_updates += partition.failed_isr_updates
        siblings = self._by_id[key[0]]
        del siblings[key[1]]
        if not siblings:
            del self._by_id[key[0]]
            # a topic created anew under the same name has its own mapping by now
            if self._by_name.get(partition.topic) is siblings:
                del self._by_name[partition.topic]
                self.traffic.retire(partition.topic)
        directory = self._directory_of.pop(key)
        self._reports.settle(key)
        self._wake_all(key)
        if directory not in self._offline:
            self._delete_log(directory, partition.topic, key[1])

    def _delete_log(self, directory: LogDirectory, topic: str, index: int) -> None:
        delay_ms = directory.logs[(topic, index)].config.file_delete_delay_ms

        def remove() -> None:
            try:
                remove_bytes()
            except OSError as error:
                self.directory_failed(directory, error)

        try:
            remove_bytes = directory.delete_log(topic, index)
        except OSError as error:
            self.directory_failed(directory, error)
            return
        self._env.call_later(delay_ms, remove)

    def _on_configs(self, changed: Journal) -> None:
        resources = changed.changed_config_resources()
        # of another broker's values this one resolves nothing
        mine = ((BROKER_RESOURCE, ""), (BROKER_RESOURCE, str(self._peers.broker_id)))
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
        state = self._image.partition(partition.topic_id, partition.index)
        if state is not None and partition.role is Role.LEADER:
            watermark = partition.high_watermark
            partition.min_isr_changed(
                min_isr_of(self._image, self._static, partition.topic_id, state), self._env.now_ms()
            )
            self.watermark_may_have_moved(partition, watermark)

    # -- waking -------------------------------------------------------------------------------------------------

    def log_grew(self, partition: Partition, watermark_before: int, wall_ms: int) -> None:
        """A producer's batch was appended."""
        self.flush_if_due(partition, wall_ms)
        key = (partition.topic_id, partition.index)
        # a fetch that comes before the turn is over has to look at it as well
        self.exchange.mark(key)
        if not self._grown:
            self._env.call_later(0, self._tell_of_growth)
        self._grown[key] = None
        self.watermark_may_have_moved(partition, watermark_before)

    def _tell_of_growth(self) -> None:
        grown, self._grown = self._grown, {}
        for key in grown:
            self.follower_fetch_waits.wake(key)
            self.exchange.tell(key, News.LOG_GREW)

    def watermark_may_have_moved(self, partition: Partition, watermark_before: int) -> None:
        if partition.high_watermark != watermark_before:
            key = (partition.topic_id, partition.index)
            self.produce_waits.wake(key)
            self.consumer_fetch_waits.wake(key)
            self.exchange.tell(key, News.WATERMARK_MOVED)

    def watermarks_may_have_moved(self, moved: list[tuple[Partition, int]]) -> None:
        """With the watermarks before."""
        if len(moved) > 1:
            self.exchange.mark_all((partition.topic_id, partition.index) for partition, _ in moved)
        for partition, watermark_before in moved:
            self.watermark_may_have_moved(partition, watermark_before)

    def low_watermarks_may_have_moved(self, partitions: Iterable[Partition | None]) -> None:
        if not len(self.delete_records_waits):
            return
        for partition in partitions:
            if partition is not None:
                self.delete_records_waits.wake((partition.topic_id, partition.index))

    def _wake_all(self, key: PartitionKey) -> None:
        self.produce_waits.wake(key)
        self.consumer_fetch_waits.wake(key)
        self.follower_fetch_waits.wake(key)
        self.delete_records_waits.wake(key)
        self.exchange.tell(key, News.SERVED_ANEW)

    def _advance(self, partition: Partition) -> None:
        watermark = partition.high_watermark
        if partition.advance_high_watermark(self._env.now_ms()):
            self.watermark_may_have_moved(partition, watermark)

    def stop_serving(self) -> None:
        """The broker is about to close its logs: nobody leads or follows here any more, and who waits is told so."""
        for partition in self.all_partitions():
            self._fetchers.remove(partition)
            partition.become_idle()
            self._wake_all((partition.topic_id, partition.index))

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
        # whoever is outside the ISR now, and thought to be inside, may ask to join
        self.exchange.mark((proposal.topic_id, proposal.partition))
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
        self.watermark_may_have_moved(partition, watermark)

    def check_isr_lag(self) -> None:
        """Every `replica.lag.time.max.ms` / 2: ask for the removal of members that fell behind."""
        now_ms = self._env.now_ms()
        for partition in self.all_partitions():
            proposal = partition.check_lag(now_ms)
            if proposal is not None:
                self.propose(proposal)
            # a follower outside the ISR that stopped fetching counts for the watermark only so long
            self._advance(partition)

    # -- disks --------------------------------------------------------------------------------------------------

    def directory_of(self, partition: Partition) -> LogDirectory | None:
        """None if the partition is no longer here."""
        return self._directory_of.get((partition.topic_id, partition.index))

    @property
    def online_directories(self) -> list[LogDirectory]:
        return [directory for directory in self._directories if directory not in self._offline]

    @property
    def offline_directories(self) -> list[Uuid]:
        return [directory.directory_id for directory in self._offline]

    def flush_if_due(self, partition: Partition, wall_ms: int) -> None:
        """By `flush.messages` or `flush.ms`. What fails later is told by `LogDirectory.on_failure`."""
        if not partition.log.needs_flush(wall_ms):
            return

        def flushed(error: OSError | None) -> None:
            if error is None:
                self.flush_if_due(partition, self._env.wall_ms())  # for what came meanwhile

        try:
            partition.log.flush(flushed)
        except OSError as error:
            self.storage_failed(partition, error)

    def storage_failed(self, partition: Partition, error: OSError) -> None:
        """A read or write of this partition failed: its directory is offline from now on."""
        directory = self._directory_of.get((partition.topic_id, partition.index))
        if directory is not None:
            self.directory_failed(directory, error)

    def file_failed(self, path: str, error: OSError) -> None:
        """A region that was handed out could not be read when it was sent."""
        for directory in self._directories:
            if path.startswith(f"{directory.path}/"):
                self.directory_failed(directory, error)

    def directory_failed(self, directory: LogDirectory, error: OSError) -> None:
        if directory in self._offline:
            return
        self._offline.append(directory)
        self._env.log("error", "log-directory-offline", directory=directory.path, error=str(error))
        for key, owner in self._directory_of.items():
            partition = self.partition(key)
            if owner is directory and partition is not None:
                partition.offline = True
                self._fetchers.remove(partition)
                partition.become_idle()
                self._wake_all(key)
        self.on_directory_failed()
        if not self.online_directories:
            self._env.stop(1, f"every log directory has failed, the last one, {directory.path}, with: {error}")
        elif directory.path == self._static.metadata_log_dir:
            self._env.stop(1, f"the directory of the metadata log, {directory.path}, has failed with: {error}")


def _directory_is_offline(partition: str) -> KafkaError:
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log directory of {partition} is offline")
