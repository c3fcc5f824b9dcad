"""The broker role of a node: connects its parts.

    start      the clean-shutdown files are read, then the logs are loaded, then the broker registers
        registered the clean-shutdown files are removed: from now on a crash must not look like a clean stop. If a start
               ends earlier, for whatever reason, the files stay as they are
    caught up  the image holds our own registration, the files are removed from the disks, and logs that come back are
               checked (`stray_log_checker.py`): the node may publish metadata to us (`on_caught_up`)
    on_image   partitions are created, led, followed, deleted; then the groups and transactional ids whose partitions
               we lead are loaded, and the others dropped; the losses of elections are reported
    shutdown   controlled shutdown with the controller, then stop serving, then the logs are flushed and closed, last
               the clean-shutdown files are written with this registration's epoch

Every request method returns a response or a `Pending`; `produce` may also return NO_ANSWER or CLOSE
(`heirlog.context`). Requests that arrive before the first image find no partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from heirlog.broker import leader_epochs, list_offsets
from heirlog.broker.alter_partition_sender import AlterPartitionSender
from heirlog.broker.assignments_manager import AssignmentsManager
from heirlog.broker.broker_lifecycle_manager import BrokerLifecycleManager, BrokerState, LifecycleEvents
from heirlog.broker.broker_requests import BrokerRequests
from heirlog.broker.delete_records import DeleteRecordsHandler
from heirlog.broker.describe_log_dirs import describe_log_dirs
from heirlog.broker.describe_producers import describe_producers
from heirlog.broker.fetch import FetchHandler
from heirlog.broker.fetch_session import FetchSessionCache
from heirlog.broker.followers import RegisteredBrokers
from heirlog.broker.groups.coordinator import GroupCoordinator
from heirlog.broker.groups.share.end_offsets import EndOffsets
from heirlog.broker.groups.share.state_requests import StateRequests
from heirlog.broker.groups.txn_offset_requests import txn_offset_commit
from heirlog.broker.isr import IsrProposal
from heirlog.broker.log_config import log_config_of
from heirlog.broker.loss_reports import LossReports
from heirlog.broker.periodic_tasks import PeriodicTasks
from heirlog.broker.produce import ProduceHandler
from heirlog.broker.producer_id_manager import ProducerIdManager
from heirlog.broker.replica_log_info import replica_log_info
from heirlog.broker.replica_manager import ReplicaEvents, ReplicaManager
from heirlog.broker.replica_manager_metrics import ReplicaManagerMetrics, count_replicas, late_since_ms
from heirlog.broker.share_coordinator.coordinator import ShareCoordinator
from heirlog.broker.share_partitions.leader import SharePartitionLeader
from heirlog.broker.stray_log_checker import StrayLogChecker
from heirlog.broker.transactional_produce import TransactionalProduce
from heirlog.broker.transactions.add_partitions_manager import AddPartitionsToTxnManager
from heirlog.broker.transactions.coordinator import TransactionCoordinator
from heirlog.broker.transactions.partition_requests import add_batched
from heirlog.broker.write_txn_markers import WriteTxnMarkersHandler
from heirlog.context import Context
from heirlog.env import Env
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.configs import server_value
from heirlog.metadata.image import Image
from heirlog.metadata.journal import ImageJournal
from heirlog.metadata.survey import Survey, at_once
from heirlog.protocol.messages import (
    AddPartitionsToTxnRequest,
    AlterPartitionResponse,
    DeleteRecordsRequest,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeProducersRequest,
    DescribeProducersResponse,
    FetchRequest,
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
    InitProducerIdRequest,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    ProduceRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
)
from heirlog.protocol.types import NO_BROKER_EPOCH, BrokerEpoch, BrokerId, Endpoint
from heirlog.raft.older_metadata import mark_registered, unregistered_copies
from heirlog.storage.clean_shutdown import decide_previous_broker_epoch
from heirlog.storage.log_directory import LogDirectory

LOGGED_MAX = 20
"""Names in a line of the log."""


class Broker:
    def __init__(
        self,
        env: Env,
        static: StaticConfig,
        log_directories: list[LogDirectory],
        controller_endpoint: Callable[[], Endpoint | None],
        image: Callable[[], Image],
        *,
        cluster_id: str,
        on_caught_up: Callable[[], None],
        create_topics: Callable[[list[str]], None],
        trusts_controller: Callable[[], bool] = lambda: True,
    ) -> None:
        """`image`: the committed image, current at every call. `on_caught_up`: from now on call `on_image`.

        `create_topics`: asks the controller for internal topics that are missing; may be called again and again.
        `trusts_controller`: False while its metadata may be older than our own copy; until then we do not register.
        """
        self._env = env
        self._static = static
        self._directories = log_directories
        self._image = image
        self._on_caught_up = on_caught_up
        self._loading = 0
        self._closing = 0
        self._claiming: int | None = None
        """Directories whose clean-shutdown file is being removed; None until the broker is registered."""
        self._is_caught_up = False
        self._previous_broker_epoch = NO_BROKER_EPOCH
        self._newest_start = NO_BROKER_EPOCH
        """Broker epoch of the newest earlier start of this broker that is known."""
        self._has_image = False
        self._on_shut_down: Callable[[], None] | None = None
        self.registered_brokers = RegisteredBrokers(static.node_id, image().brokers)
        request_timeout_ms = static.int("request.timeout.ms")
        controller_timeout_ms = static.int("controller.socket.timeout.ms")
        self._sender = AlterPartitionSender(
            env, controller_endpoint, self.registered_brokers, controller_timeout_ms, self._on_alter_partition_answer
        )
        reports = AssignmentsManager(env, controller_endpoint, self.registered_brokers, controller_timeout_ms)
        self.replicas = ReplicaManager(
            env,
            static,
            log_directories,
            self.registered_brokers,
            self._sender,
            reports,
            self._endpoint_of,
            ReplicaEvents(self._brokers_changed, self._directory_failed),
        )
        self.fetchers = self.replicas.fetchers
        self.lost_leaders = self.replicas.lost_leaders
        self._stray_log_checker = StrayLogChecker(env, self.replicas.directories, self._is_closing)
        self._produce = ProduceHandler(env, self.replicas)
        sessions = FetchSessionCache(
            env, static.int("max.incremental.fetch.session.cache.slots"), self.replicas.delayed.partition_listeners
        )
        self.fetch_sessions = sessions
        self._fetch = FetchHandler(env, self.replicas, static.int("fetch.max.bytes"), sessions)
        brokers = BrokerRequests(
            env,
            static.node_id,
            self._endpoint_of,
            {
                AddPartitionsToTxnRequest: lambda request: add_batched(self.transactions, image(), request),
                WriteTxnMarkersRequest: self.write_txn_markers,
            },
        )
        self.coordinators = AddPartitionsToTxnManager(
            env, image, lambda name: self.transactions.partition_of(name), brokers, request_timeout_ms
        )
        self._transactional_produce = TransactionalProduce(
            env,
            self.replicas,
            self.coordinators,
            self._produce.produce,
            is_verified=self._is_verified,
            retry_ms=static.int("add.partitions.to.txn.retry.backoff.ms"),
            retry_max_ms=static.int("add.partitions.to.txn.retry.backoff.max.ms"),
        )
        self._delete_records = DeleteRecordsHandler(self.replicas, self.registered_brokers)
        self._producer_ids = ProducerIdManager(env, controller_endpoint, self.registered_brokers, request_timeout_ms)
        share_states = StateRequests(env, image, self._endpoint_of, create_topics, request_timeout_ms)
        self.groups = GroupCoordinator(env, static, self.replicas, image, share_states)
        self.end_offsets = EndOffsets(env, image, self._endpoint_of, request_timeout_ms)
        self.shares = SharePartitionLeader(env, static, self.replicas, image, self._endpoint_of)
        self._markers = WriteTxnMarkersHandler(env, self.replicas, self.groups, request_timeout_ms)
        self.transactions = TransactionCoordinator(
            env, static, self.replicas, image, self._producer_ids.next_id, brokers
        )
        self.share_coordinator = ShareCoordinator(env, static, self.replicas, image)
        self._loss_reports = LossReports(env, self.replicas, image, create_topics)
        self._periodic_tasks = PeriodicTasks(env, static, self.replicas, image)
        self.lifecycle = BrokerLifecycleManager(
            env,
            static,
            cluster_id,
            self.registered_brokers,
            controller_endpoint,
            lambda: image().offset,
            lambda: self.replicas.directories.offline_ids,
            LifecycleEvents(self._registered, self._caught_up, self._release),
            trusts_controller,
        )

    # -- life ---------------------------------------------------------------------------------------------------

    @property
    def state(self) -> BrokerState:
        return self.lifecycle.state

    def start(self) -> None:
        """Load the logs and register. Log configurations follow with the first image."""
        epochs = [directory.clean_broker_epoch for directory in self._directories]
        # a directory that the node could not open counts as one without a clean-shutdown file
        missing: list[BrokerEpoch | None] = [None] * (len(self._static.log_dirs) - len(epochs))
        image = self._image()
        if self._unregistered_copies():
            # an earlier start accepted older metadata, and ended before the controllers knew it
            self.lifecycle.accept_older_metadata(self._newest_leader_epoch)
        self._previous_broker_epoch = decide_previous_broker_epoch([*epochs, *missing])
        self._loading = len(self._directories)
        for directory in self._directories:
            directory.load_logs(
                lambda topic: log_config_of(image, self._static, topic), self._env.wall_ms(), self._loaded
            )

    def _loaded(self, error: OSError | None) -> None:
        if error is not None:
            # nothing proves that the logs in that directory are complete
            self._previous_broker_epoch = NO_BROKER_EPOCH
        self._loading -= 1
        if self._loading == 0:
            self._log_missing_partitions()
        if any(directory.clean_broker_epoch is None for directory in self._directories):
            # even if only loading showed that records of the clean stop are missing
            self._previous_broker_epoch = NO_BROKER_EPOCH
        if self._loading == 0 and self._on_shut_down is None:
            self.lifecycle.start(
                [directory.directory_id for directory in self.replicas.directories.online],
                self._previous_broker_epoch,
            )

    def _registered(self) -> None:
        """The logs may be changed once the clean-shutdown files are removed."""
        if self._claiming is not None:
            return
        self._doubt_older_copies()
        self._periodic_tasks.start()
        for path in self._unregistered_copies():
            try:
                mark_registered(self._env.files, path, self._marked)
            except OSError as error:
                self._marked(error)
        online = self.replicas.directories.online
        self._claiming = len(online)
        for directory in online:
            try:
                directory.claim(self._claimed)
            except OSError as error:
                self.replicas.directories.failed(directory, error)
                self._claimed(error)

    def _doubt_older_copies(self) -> None:
        """A directory that was stopped cleanly, but not as the last time, was put back from a backup. (Or it was not in
        use in later starts: nothing tells the two apart.)
        """
        known = self._image().brokers.get(self.registered_brokers.broker_id)
        if known is not None and known.incarnation_id != self.lifecycle.incarnation_id:
            self._newest_start = max(self._newest_start, known.epoch)
        stops = [each.clean_broker_epoch for each in self._directories if each.clean_broker_epoch is not None]
        for directory in self._directories:
            directory.doubt_older_copy(max(self._newest_start, *stops, NO_BROKER_EPOCH))

    def _unregistered_copies(self) -> list[str]:
        path = self._static.metadata_log_dir
        try:
            return unregistered_copies(self._env.files, path)
        except OSError as error:
            self._env.stop(1, f"{path} cannot be read: {error}; repair it, or the permissions of what it names")
            return []

    def _marked(self, error: OSError | None) -> None:
        if error is not None:
            # the next start registers in the same way again: that costs a recovery, and no records
            self._env.log("error", "older-metadata-not-marked", reason=str(error))

    def _claimed(self, error: OSError | None) -> None:
        """A directory in which the removal failed is offline by now."""
        assert self._claiming is not None
        self._claiming -= 1
        self._check_stray_logs()

    def _caught_up(self) -> None:
        self._is_caught_up = True
        self._check_stray_logs()

    def _check_stray_logs(self) -> None:
        """Called once the logs may be changed and the image says which of them belong to this broker."""
        if self._claiming != 0 or not self._is_caught_up or self._is_closing():
            return
        image = self._image()
        self._stray_log_checker.check(
            image, lambda topic: log_config_of(image, self._static, topic), self._on_caught_up
        )

    def _is_closing(self) -> bool:
        return self.state is BrokerState.SHUTTING_DOWN

    def _brokers_changed(self, brokers: set[BrokerId] | None) -> None:
        self.fetch_sessions.brokers_changed(brokers)

    def _directory_failed(self) -> None:
        self.lifecycle.directory_failed()

    def _log_missing_partitions(self) -> None:
        for directory in self._directories:
            for (topic, partition), log in sorted(directory.logs.items()):
                if log.cut_bytes:
                    self._env.log(
                        "warning",
                        "log-cut-by-recovery",
                        directory=directory.path,
                        topic=topic,
                        partition=partition,
                        end_offset=log.log_end_offset,
                        bytes=log.cut_bytes,
                    )
            if directory.removed.kept:
                names = directory.removed.kept
                self._env.log(
                    "warning", "stray-logs-kept", directory=directory.path, count=len(names), names=names[:LOGGED_MAX]
                )
            for (topic, partition), flushed, end in directory.missing:
                self._env.log(
                    "error",
                    "log-shorter-than-flushed",
                    directory=directory.path,
                    topic=topic,
                    partition=partition,
                    flushed_offset=flushed,
                    end_offset=end,
                )

    def on_metadata_applied(self) -> None:
        """The image has new records; it may not be published to us yet."""
        if not self._is_caught_up:
            self._doubt_older_copies()
        self.lifecycle.metadata_applied()

    def on_image(self, image: Image, changed: ImageJournal | None) -> None:
        """`changed`: what differs from the last call; None: anything may differ.

        Nothing happens once the logs are being closed. Otherwise a partition could get records after the flush which
        the clean-shutdown file certifies.
        """
        if self.state is BrokerState.SHUTTING_DOWN:
            return
        if self.lifecycle.has_lost_its_place(image.brokers):
            self._has_image = False
            return
        changed = changed if self._has_image else None
        self.replicas.on_image(image, changed)
        self.groups.on_image(image, changed)
        self.transactions.on_image(image, changed)
        self.share_coordinator.on_image(image, changed)
        self._loss_reports.on_image(changed)
        if self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            self._stop_fetching_outside_isr()
        self._has_image = True
        self.lifecycle.first_image_applied()

    def shutdown(self, on_done: Callable[[], None]) -> None:
        """Stop cleanly: move leaders to other brokers, flush the logs, and write the clean-shutdown files last."""
        if self._on_shut_down is not None:
            return
        self._on_shut_down = on_done
        self.lifecycle.shut_down()
        if self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            self._stop_fetching_outside_isr()

    def stop_at_once(self, on_done: Callable[[], None]) -> None:
        """Close the logs cleanly without asking the controller, even during a controlled shutdown."""
        self._on_shut_down = on_done
        self.lifecycle.shut_down_at_once()

    def accept_older_metadata(self, on_done: Callable[[OSError | None], None]) -> None:
        """Before the registration: treat the last stop as unclean, whatever the clean-shutdown files say.

        The older metadata may name the same broker epoch, with an ISR from before this broker fell behind. on_done:
        called once this is durable.
        """
        left, first_error = len(self._directories), None

        def forgotten(error: OSError | None) -> None:
            nonlocal left, first_error
            left -= 1
            first_error = first_error or error
            if left == 0:
                on_done(first_error)

        for directory in self._directories:
            directory.clean_broker_epoch = None
        self.lifecycle.accept_older_metadata(self._newest_leader_epoch)
        for directory in self._directories:
            try:
                directory.claim(forgotten)
            except OSError as error:
                forgotten(error)

    def _newest_leader_epoch(self) -> int:
        logs = (log for directory in self._directories for log in directory.logs.values())
        return max((0, *(log.epochs.latest for log in logs)))

    def _stop_fetching_outside_isr(self) -> None:
        self.fetchers.start_controlled_shutdown(self.replicas.all_partitions())

    def _release(self) -> None:
        """The controller allows the shutdown: stop serving, then close the logs."""
        self._periodic_tasks.stop()
        watermarks = self._periodic_tasks.high_watermarks()
        self.replicas.stop_serving()
        self.groups.stop()
        self.transactions.stop()
        self.share_coordinator.stop()
        self._loss_reports.stop()
        closing = self.replicas.directories.online
        self._closing = len(closing)
        for directory in closing:
            if directory.was_clean and not self.lifecycle.was_registered:
                # this start changed nothing: the clean stop before it is still proven
                directory.close()
                self._env.call_later(0, lambda: self._closed(None))
                continue
            try:
                directory.close_cleanly(self.registered_brokers.broker_epoch, self._closed, watermarks)
            except OSError as error:
                self._closed(error)

    def _closed(self, error: OSError | None) -> None:
        if error is not None:
            self._env.log("warning", "log-directory-not-closed-cleanly", error=str(error))
        self._closing -= 1
        if self._closing == 0 and self._on_shut_down is not None:
            self._on_shut_down()

    # -- requests -----------------------------------------------------------------------------------------------

    def produce(self, request: ProduceRequest, context: Context) -> Any:
        if request.transactional_id is not None:
            return self._transactional_produce.produce(request.transactional_id, request, context)
        return self._produce.produce(request, context)

    def fetch(self, request: FetchRequest, context: Context) -> Any:
        return self._fetch.fetch(request, context)

    def share_fetch(self, request: ShareFetchRequest, context: Context) -> Any:
        return self.shares.fetch.share_fetch(request, context)

    def share_acknowledge(self, request: ShareAcknowledgeRequest, context: Context) -> Any:
        return self.shares.acknowledge.share_acknowledge(request, context)

    def list_offsets(self, request: ListOffsetsRequest, context: Context) -> ListOffsetsResponse:
        return list_offsets.list_offsets(self.replicas, request, context)

    def offset_for_leader_epoch(
        self, request: OffsetForLeaderEpochRequest, context: Context
    ) -> OffsetForLeaderEpochResponse:
        return leader_epochs.offset_for_leader_epoch(self.replicas, request)

    def init_producer_id(self, request: InitProducerIdRequest, context: Context) -> Any:
        if request.transactional_id is not None:
            return self.transactions.init_producer_id(request, context)
        return self._producer_ids.init_producer_id(request)

    def _is_verified(self) -> bool:
        return bool(server_value(self._image(), self._static, "transaction.partition.verification.enable"))

    def txn_offset_commit(self, request: TxnOffsetCommitRequest, context: Context) -> Any:
        return txn_offset_commit(
            self.groups, self._env, request, context, ask=self.coordinators.ask, is_verified=self._is_verified()
        )

    def write_txn_markers(self, request: WriteTxnMarkersRequest) -> Any:
        return self._markers.write_txn_markers(request)

    def delete_records(self, request: DeleteRecordsRequest) -> Any:
        return self._delete_records.delete_records(request)

    def describe_log_dirs(self, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
        return describe_log_dirs(self.replicas, self._directories, request)

    def replica_log_info(self, request: GetReplicaLogInfoRequest) -> GetReplicaLogInfoResponse:
        return replica_log_info(self.replicas, self.registered_brokers, request)

    def describe_producers(self, request: DescribeProducersRequest) -> DescribeProducersResponse:
        return describe_producers(self.replicas, request)

    # -- state for metrics --------------------------------------------------------------------------------------

    def metrics(self) -> ReplicaManagerMetrics:
        """All metrics at once; looks at every partition. With many partitions use `survey`."""
        return at_once(self.survey())

    def survey(self) -> Survey[ReplicaManagerMetrics]:
        return count_replicas(self.replicas, self._image(), late_since_ms(self._static, self._env.wall_ms()))

    def high_watermarks(self) -> Mapping[tuple[str, int], int]:
        return self._periodic_tasks.high_watermarks()

    # -- between the parts --------------------------------------------------------------------------------------

    def _on_alter_partition_answer(self, proposal: IsrProposal, answer: AlterPartitionResponse.PartitionData) -> None:
        self.replicas.on_alter_partition_answer(proposal, answer)

    def _endpoint_of(self, broker: BrokerId) -> Endpoint | None:
        state = self.registered_brokers.brokers.get(broker)
        return None if state is None else state.endpoint(self._static.inter_broker_listener_name)
