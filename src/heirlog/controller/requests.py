"""What brokers and clients ask of the active controller: one method per API, named as the API is.

Each names the handler that reads the image, where the rules of that API are, and the answer of a node that is not the
active controller. What becomes of the records and when the answer leaves is one rule for all (`Controller.submit`).
AlterPartition alone may have to wait before it is handled: for elections of partitions that have no leader.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from heirlog.context import Context
from heirlog.controller.acls import create_acls, delete_acls
from heirlog.controller.alter_configs import alter_configs, incremental_alter_configs
from heirlog.controller.alter_partition import alter_partition
from heirlog.controller.assign_directories import assign_directories
from heirlog.controller.create_partitions import create_partitions
from heirlog.controller.elect_leaders import elect_leaders
from heirlog.controller.heartbeat import heartbeat
from heirlog.controller.outcome import answer
from heirlog.controller.producer_ids import allocate_producer_ids
from heirlog.controller.reassignments import alter_reassignments, list_reassignments
from heirlog.controller.recovery.manager import MANY_ELECTIONS_MS
from heirlog.controller.recovery.status import ask_replicas, describe_recovery
from heirlog.controller.refusals import (
    alter_configs_refused,
    alter_partition_refused,
    alter_reassignments_refused,
    assign_directories_refused,
    create_acls_refused,
    create_partitions_refused,
    create_topics_refused,
    delete_acls_refused,
    delete_topics_refused,
    describe_recovery_refused,
    elect_leaders_refused,
    heartbeat_refused,
    incremental_alter_configs_refused,
    list_reassignments_refused,
    producer_ids_refused,
    registration_refused,
    unregister_broker_refused,
    update_features_refused,
)
from heirlog.controller.registration import register_broker
from heirlog.controller.topics import create_topics, delete_topics
from heirlog.controller.unregister import unregister_broker
from heirlog.controller.update_features import update_features
from heirlog.env import Env
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.image import Image
from heirlog.pending import Pending
from heirlog.protocol.messages import (
    AllocateProducerIdsRequest,
    AlterConfigsRequest,
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    AssignReplicasToDirsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    CreateAclsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteAclsRequest,
    DeleteTopicsRequest,
    DescribeRecoveryRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    ListPartitionReassignmentsRequest,
    UnregisterBrokerRequest,
    UpdateFeaturesRequest,
)

if TYPE_CHECKING:
    from heirlog.controller.controller import Controller


ISR_CHANGE_WAITS_MS: Final = 1000
"""A leader's request, for elections of partitions that have none; a follower is out of sync for 30 s before it has to
leave."""


class Requests:
    def __init__(self, env: Env, static: StaticConfig, cluster_id: str, controller: Controller) -> None:
        self._env = env
        self._static = static
        self._cluster_id = cluster_id
        self._controller = controller
        self._submit = controller.submit
        self._sessions = controller.sessions
        self._recovery = controller.recovery

    @property
    def _image(self) -> Image:
        return self._controller.image

    def alter_partition(self, request: AlterPartitionRequest, context: Context) -> Any:
        return self._after_elections(
            lambda: self._submit(
                lambda: alter_partition(
                    self._image, self._static, request, context.api_version, self._controller.next_offset
                ),
                alter_partition_refused,
            ),
            self._env.now_ms() + ISR_CHANGE_WAITS_MS,
        )

    def _after_elections(self, handle: Callable[[], Any], latest_ms: int) -> Any:
        """Where thousands of partitions recover, the first leaders ask for their followers at once, which is as much
        work as all elections: those without a leader would wait for that."""
        if not self._recovery.elects_many or self._env.now_ms() >= latest_ms:
            return handle()
        pending: Pending[Any] = Pending()

        def later() -> None:
            answered = self._after_elections(handle, latest_ms)
            if isinstance(answered, Pending):
                answered.then(pending.complete)
            else:
                pending.complete(answered)

        self._env.call_later(MANY_ELECTIONS_MS, later)
        return pending

    def broker_registration(self, request: BrokerRegistrationRequest, context: Context) -> Any:
        return self._submit(
            lambda: register_broker(
                self._image,
                self._static,
                self._sessions,
                request,
                context.api_version,
                self._cluster_id,
                self._controller.next_offset,
            ),
            registration_refused,
        )

    def broker_heartbeat(self, request: BrokerHeartbeatRequest, context: Context) -> Any:
        answered = self._submit(
            lambda: heartbeat(
                self._image, self._static, self._sessions, request, self._env.now_ms(), context.connection
            ),
            heartbeat_refused,
        )
        self._recovery.heartbeat()
        return answered

    def create_topics(self, request: CreateTopicsRequest, context: Context) -> Any:
        return self._submit(
            lambda: create_topics(self._image, self._static, request, self._env.random),
            partial(create_topics_refused, request),
        )

    def delete_topics(self, request: DeleteTopicsRequest, context: Context) -> Any:
        return self._submit(
            lambda: delete_topics(self._image, self._static, request), partial(delete_topics_refused, request)
        )

    def create_partitions(self, request: CreatePartitionsRequest, context: Context) -> Any:
        return self._submit(
            lambda: create_partitions(self._image, self._static, request, self._env.random),
            partial(create_partitions_refused, request),
        )

    def alter_configs(self, request: AlterConfigsRequest, context: Context) -> Any:
        return self._submit(
            lambda: alter_configs(self._image, self._static, request), partial(alter_configs_refused, request)
        )

    def incremental_alter_configs(self, request: IncrementalAlterConfigsRequest, context: Context) -> Any:
        return self._submit(
            lambda: incremental_alter_configs(self._image, self._static, request),
            partial(incremental_alter_configs_refused, request),
        )

    def elect_leaders(self, request: ElectLeadersRequest, context: Context) -> Any:
        return self._submit(
            lambda: elect_leaders(self._image, self._static, request, context.api_version, self._recovery),
            partial(elect_leaders_refused, request),
        )

    def describe_recovery(self, request: DescribeRecoveryRequest, context: Context) -> Any:
        if self._controller.is_active and request.ask_replicas:
            ask_replicas(self._image, self._static, self._recovery, request)
        return self._submit(
            lambda: answer(
                describe_recovery(
                    self._image, self._static, self._recovery, request, self._env.now_ms(), self._controller.epoch
                )
            ),
            describe_recovery_refused,
        )

    def alter_partition_reassignments(self, request: AlterPartitionReassignmentsRequest, context: Context) -> Any:
        return self._submit(
            lambda: alter_reassignments(self._image, self._static, request), alter_reassignments_refused
        )

    def list_partition_reassignments(self, request: ListPartitionReassignmentsRequest, context: Context) -> Any:
        return self._submit(lambda: answer(list_reassignments(self._image, request)), list_reassignments_refused)

    def update_features(self, request: UpdateFeaturesRequest, context: Context) -> Any:
        return self._submit(
            lambda: update_features(self._image, self._static, request, context.api_version),
            partial(update_features_refused, request),
        )

    def unregister_broker(self, request: UnregisterBrokerRequest, context: Context) -> Any:
        return self._submit(
            lambda: unregister_broker(self._image, self._static, self._sessions, request), unregister_broker_refused
        )

    def assign_replicas_to_dirs(self, request: AssignReplicasToDirsRequest, context: Context) -> Any:
        return self._submit(lambda: assign_directories(self._image, self._static, request), assign_directories_refused)

    def create_acls(self, request: CreateAclsRequest, context: Context) -> Any:
        return self._submit(
            lambda: create_acls(self._image, request, self._env.random), partial(create_acls_refused, request)
        )

    def delete_acls(self, request: DeleteAclsRequest, context: Context) -> Any:
        return self._submit(lambda: delete_acls(self._image, request), partial(delete_acls_refused, request))

    def allocate_producer_ids(self, request: AllocateProducerIdsRequest, context: Context) -> Any:
        return self._submit(lambda: allocate_producer_ids(self._image, request), producer_ids_refused)
