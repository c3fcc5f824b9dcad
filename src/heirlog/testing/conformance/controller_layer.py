"""Layers `controller` and `partition_builder`: events become requests to a real `Controller`.

The setup is appended as metadata records (`setup_records.py`), so that the image is built as in the product. Broker
epochs that the run creates are offsets of its own log, which a file cannot know. `Epochs` translates them: after an
event with `newBrokerEpoch` the new epoch has the name given there; any other new epoch is called "new".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final

from heirlog.apis.common.api import Role
from heirlog.context import Context
from heirlog.controller.alter_configs import AlterConfigOpType
from heirlog.controller.controller import Controller
from heirlog.controller.controller_result import ControllerResult
from heirlog.controller.elect_leaders import MAX_ELECTIONS_PER_RUN, balance, elect_unclean
from heirlog.controller.election import Election
from heirlog.controller.partition_change import ChangeCause, PartitionChangeBuilder, PartitionRules, TargetState
from heirlog.metadata.features import NO_BUMP_ON_SHRINK, recovery_level
from heirlog.metadata.image import (
    BROKER_RESOURCE,
    ELR_VERSION,
    METADATA_VERSION,
    RECOVERY_VERSION,
    TOPIC_RESOURCE,
    Image,
)
from heirlog.metadata.min_isr import configured_min_isr
from heirlog.metadata.state import Ids, PartitionRegistration
from heirlog.node.router import ROUTES
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    AlterConfigsRequest,
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    UnregisterBrokerRequest,
    UpdateFeaturesRequest,
)
from heirlog.protocol.records import (
    ClearElrRecord,
    FeatureLevelRecord,
)
from heirlog.protocol.types import BrokerId, Uuid
from heirlog.testing.conformance.body import ManualEnv, Quorum
from heirlog.testing.conformance.setup_records import (
    CONTROLLER_ID,
    LISTENER,
    PORT,
    RECOVERY_STATES,
    Members,
    broker_features,
    directory,
    incarnation,
    setup_records,
    static_config,
)
from heirlog.testing.conformance.shown import brokers_shown, partitions_shown, record_shown
from heirlog.testing.conformance.vocabulary import UnknownName

Observed = dict[str, Any]

CLUSTER_ID: Final = "conformance"
FAR: Final = 1_000_000
"""A metadata offset that every broker has applied."""
FIRST_OFFSET: Final = 100_000
"""Offset of the first step: greater than every epoch and offset that a file names."""

_TASKS: Final = {"electPreferred": balance, "electUnclean": elect_unclean}


def error_named(code: int) -> str:
    return ErrorCode(code).name


class Epochs:
    """The name of a broker epoch in a file, and its value."""

    def __init__(self) -> None:
        self._given: dict[tuple[int, int], int] = {}
        self._shown: dict[int, int | str] = {}

    def made(self, broker: int, epoch: int, name: int | None) -> None:
        """The run created this epoch; the file calls it `name`, if it names it."""
        if epoch in self._shown:
            return
        self._shown[epoch] = "new" if name is None else name
        if name is not None:
            self._given[broker, name] = epoch

    def meant(self, broker: int, given: int) -> int:
        return self._given.get((broker, given), given)

    def shown(self, epoch: int) -> int | str:
        return self._shown.get(epoch, epoch)


class ControllerScenario:
    """One scenario at work. `play` returns what is observed after one event."""

    def __init__(self, setup: Members, *, manager: bool, manager_in_builder: bool | None = None) -> None:
        """manager_in_builder: whether it is on where one change is built; None: as in the cluster."""
        config = setup.get("config", {})
        self._manager_in_builder = manager if manager_in_builder is None else manager_in_builder
        self.static = static_config(config.get("static", {}), manager)
        self.env = ManualEnv()
        self.quorum = Quorum()
        self.controller = Controller(self.env, self.static, self.quorum, cluster_id=CLUSTER_ID)
        self.epochs = Epochs()
        self._limit: int = setup.get("maxElectionsPerImbalance", MAX_ELECTIONS_PER_RUN)
        self._lives: dict[int, int] = {}
        self._names: dict[bytes, str] = {}
        self.written: list[Any] = []
        """By the last event."""
        self._set_up(setup, config)

    @property
    def image(self) -> Image:
        return self.controller.image

    # -- setup --------------------------------------------------------------------------------------------------

    def _set_up(self, setup: Members, config: Members) -> None:
        # levels that are there: a controller without them would write them; its own registration comes before any step
        first = {METADATA_VERSION: 29, RECOVERY_VERSION: recovery_level(self.controller.static)}
        self._load([FeatureLevelRecord(name=name, feature_level=level) for name, level in first.items()])
        self.controller.on_leader_change(CONTROLLER_ID, self.quorum.epoch, True)
        self.commit()
        self.append(setup_records(setup, config))
        self.quorum.log_end_offset = FIRST_OFFSET
        self.image.offset = FIRST_OFFSET - 1
        self.controller.sessions.clear()

    def _load(self, records: Sequence[Any]) -> None:
        self.quorum.append(records)
        self.controller.on_commit(self.quorum.take())

    def append(self, records: Sequence[Any]) -> list[Any]:
        """As if the controller had made them; all that this has written."""
        self.controller.submit(lambda: ControllerResult(lambda _: None, list(records)), lambda code: None)
        return self.commit()

    def commit(self) -> list[Any]:
        batches = self.quorum.take()
        self.controller.on_commit(batches)
        return [record for batch in batches for record in batch.records]

    # -- steps --------------------------------------------------------------------------------------------------

    def play(self, event: Members) -> Observed:
        handler: Callable[[Members], Observed] | None = getattr(self, f"_on_{event['type']}", None)
        if handler is None:
            raise UnknownName(f"event {event['type']} is not implemented")
        self._names |= {topic.id: topic.name for topic in self.image.topics.values()}
        self.written = []
        observed = handler(event)
        self.written += self.commit()
        names = self._names | {topic.id: topic.name for topic in self.image.topics.values()}
        observed["records"] = [
            shown
            for record in self.written
            if (shown := record_shown(record, self.image.metadata_version, names, self.epochs.shown)) is not None
        ]
        observed["partitions"] = partitions_shown(self.image)
        observed["brokers"] = brokers_shown(self.image, self.epochs.shown)
        return observed

    def ask(self, request: Any, version: int) -> Any:
        """The response, once what it waits for is committed."""
        context = Context(version, "client", "host", "CONTROLLER", SimpleNamespace(when_closed=lambda fn: None))
        given = ROUTES[Role.CONTROLLER][request.API_KEY].handle(self, request, context)
        if not isinstance(given, Pending):
            return given
        responses: list[Any] = []
        given.then(responses.append)
        self.written += self.commit()
        (response,) = responses
        return response

    def _epoch_of(self, broker: int) -> int:
        registered = self.image.brokers.get(BrokerId(broker))
        return -1 if registered is None else registered.epoch

    def _epoch_meant(self, event: Members) -> int:
        broker = event["broker"]
        if "brokerEpoch" in event:
            return self.epochs.meant(broker, event["brokerEpoch"])
        return self._epoch_of(broker)

    def _state(self, topic: str, partition: int) -> PartitionRegistration:
        state = self.image.partition_named(topic, partition)
        if state is None:
            raise UnknownName(f"there is no partition {topic}-{partition}")
        return state

    # -- partitions ---------------------------------------------------------------------------------------------

    def _on_alter_partition(self, event: Members) -> Observed:
        number, version = event.get("partition", 0), event.get("version", 3)
        # what a correct sender would send for a partition that does not exist
        state = self.image.partition_named("foo", number)
        leader_epoch, partition_epoch = (0, 0) if state is None else (state.leader_epoch, state.partition_epoch)
        sender = event.get("broker", -1 if state is None else state.leader)
        given = event.get("newIsr", () if state is None else state.isr)
        members = [self._member(member, number) for number, member in enumerate(given, 1)]
        wanted = event.get("leaderRecoveryState", "RECOVERED")
        asked = AlterPartitionRequest.PartitionData(
            partition_index=number,
            leader_epoch=event.get("leaderEpoch", leader_epoch),
            new_isr=[broker for broker, _ in members],
            new_isr_with_epochs=[
                AlterPartitionRequest.BrokerState(broker_id=broker, broker_epoch=epoch) for broker, epoch in members
            ],
            leader_recovery_state=RECOVERY_STATES[wanted],
            partition_epoch=event.get("partitionEpoch", partition_epoch),
        )
        known = None if event.get("unknownTopicId") else self.image.topic_ids.get("foo")
        topic_id = known or Uuid(b"x" * 16)
        request = AlterPartitionRequest(
            broker_id=sender,
            broker_epoch=self._epoch_meant({**event, "broker": sender}),
            topics=[AlterPartitionRequest.TopicData(topic_id=topic_id, partitions=[asked])],
        )
        response = self.ask(request, version)
        if response.error_code:
            return {"error": error_named(response.error_code)}
        (answered,) = response.topics[0].partitions
        if answered.error_code:
            return {"error": error_named(answered.error_code)}
        return {
            "error": "NONE",
            "response": {
                "leaderId": answered.leader_id,
                "leaderEpoch": answered.leader_epoch,
                "partitionEpoch": answered.partition_epoch,
                "isr": list(answered.isr),
                "leaderRecoveryState": answered.leader_recovery_state,
            },
        }

    def _member(self, member: Any, position: int) -> tuple[int, int]:
        """position: the broker that a member without an id is."""
        if isinstance(member, dict):
            broker = member.get("id", position)
            return broker, self.epochs.meant(broker, member.get("epoch", self._epoch_of(broker)))
        return member, self._epoch_of(member)

    def _on_alter_reassignment(self, event: Members) -> Observed:
        topic, number = event.get("topic", "foo"), event.get("partition", 0)
        request = AlterPartitionReassignmentsRequest(
            allow_replication_factor_change=event.get("allowReplicationFactorChange", True),
            topics=[
                AlterPartitionReassignmentsRequest.ReassignableTopic(
                    name=topic,
                    partitions=[
                        AlterPartitionReassignmentsRequest.ReassignablePartition(
                            partition_index=number, replicas=event.get("replicas")
                        )
                    ],
                )
            ],
        )
        response = self.ask(request, 1)
        return {"error": error_named(response.error_code or response.responses[0].partitions[0].error_code)}

    def _on_elect_leaders(self, event: Members) -> Observed:
        asked: list[Any] | None = None
        if event.get("partitions") is not None:
            asked = [
                ElectLeadersRequest.TopicPartitions(
                    topic=named.get("topic", "foo"), partitions=[named.get("partition", 0)]
                )
                for named in event["partitions"]
            ]
        request = ElectLeadersRequest(election_type=event["electionType"], topic_partitions=asked)
        response = self.ask(request, 2)
        if response.error_code:
            return {"error": error_named(response.error_code)}
        rows = [
            {"topic": topic.topic, "partition": result.partition_id, "error": error_named(result.error_code)}
            for topic in response.replica_election_results
            for result in topic.partition_result
        ]
        return {"error": "NONE", "response": rows}

    def _on_periodic(self, event: Members) -> Observed:
        task = _TASKS.get(event["task"])
        if task is None:
            raise UnknownName(f"event periodic: task {event['task']}")
        changes, again = task(self.image, self.static, self._limit)
        self.controller.submit(
            lambda: ControllerResult(lambda _: None, [*changes.records], changes.elections), lambda code: None
        )
        return {"error": "NONE", "response": {"rescheduleImmediately": again}}

    def _on_partition_change(self, event: Members) -> Observed:
        state = self._state("foo", 0)
        topic_id = self.image.topic_ids["foo"]
        active = [broker.id for broker in self.image.brokers.values() if broker.is_active]
        acceptable = event.get("acceptableLeaders", active)
        kind = event.get("election", "ONLINE")
        if kind not in Election.__members__:
            raise UnknownName(f"event partition_change: election {kind}")
        built = PartitionChangeBuilder(
            topic_id=topic_id,
            partition=0,
            before=state,
            rules=PartitionRules(
                usual_election=Election[kind],
                configured_min_isr=event.get("minIsr", configured_min_isr(self.image, self.static, "foo")),
                elr_enabled=self.image.elr_enabled,
                manager_enabled=not event.get("useLastKnownLeader", not self._manager_in_builder),
                bumps_on_shrink=self.image.metadata_version < NO_BUMP_ON_SHRINK,
            ),
            acceptable=lambda broker: broker in acceptable,
            target=TargetState(isr=_ids(event.get("targetIsr"))),
            cause=ChangeCause(lost=_ids(event.get("uncleanShutdownReplicas")) or ()),
        ).build()
        records = [] if built.record is None else [built.record]
        self.controller.submit(lambda: ControllerResult(lambda _: None, [*records]), lambda code: None)
        return {"error": "NONE"}

    # -- brokers ------------------------------------------------------------------------------------------------

    def _on_fence_broker(self, event: Members) -> Observed:
        self.controller.expire_session(BrokerId(event["broker"]), "as the scenario says")
        return {"error": "NONE"}

    def _on_heartbeat(self, event: Members) -> Observed:
        number = BrokerId(event["broker"])
        broker = self.image.brokers.get(number)
        if broker is not None and "registrationOffset" in event:
            self.image.set_broker(number, replace(broker, registration_offset=event["registrationOffset"]))
        request = BrokerHeartbeatRequest(
            broker_id=number,
            broker_epoch=self._epoch_meant(event),
            current_metadata_offset=event.get("currentMetadataOffset", FAR),
            want_fence=event.get("wantFence", False),
            want_shut_down=event.get("wantShutDown", False),
            offline_log_dirs=[directory(number, index) for index in event.get("offlineLogDirs", [])],
        )
        response = self.ask(request, 1)
        if response.error_code:
            return {"error": error_named(response.error_code)}
        return {
            "error": "NONE",
            "response": {
                "isCaughtUp": response.is_caught_up,
                "isFenced": response.is_fenced,
                "shouldShutDown": response.should_shut_down,
            },
        }

    def _on_register_broker(self, event: Members) -> Observed:
        number = event["broker"]
        known = self.image.brokers.get(BrokerId(number))
        life = event.get("incarnation", "new")
        if life not in ("new", "same"):
            raise UnknownName(f"event register_broker: incarnation {life}")
        if life == "new":
            self._lives[number] = self._lives.get(number, 0) + 1
        sessions = self.controller.sessions
        began = None if known is None else sessions.shutdown_offset(known.id, known.epoch)
        sessions.end(BrokerId(number))
        if event.get("sessionValid") and known is not None:
            sessions.start(known.id, known.epoch, self.env.now_ms())
        features = broker_features()
        if event.get("noElrFeature"):
            del features[ELR_VERSION]
        request = BrokerRegistrationRequest(
            broker_id=number,
            cluster_id=event.get("clusterId", CLUSTER_ID),
            incarnation_id=incarnation(number, self._lives.get(number, 0)),
            listeners=[BrokerRegistrationRequest.Listener(name=LISTENER, host=f"broker-{number}", port=PORT)],
            features=[
                BrokerRegistrationRequest.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in features.items()
            ],
            log_dirs=[*known.directories] if known is not None and known.directories else [directory(number, 0)],
            previous_broker_epoch=self.epochs.meant(number, event.get("previousBrokerEpoch", -1)),
        )
        response = self.ask(request, event.get("version", 4))
        if began is not None and known is not None and self._epoch_of(number) == known.epoch:
            # its session expired; the controller still knows that it is in controlled shutdown
            sessions.start(known.id, known.epoch, self.env.now_ms()).shutdown_offset = began
        if response.error_code:
            return {"error": error_named(response.error_code)}
        if known is None or response.broker_epoch != known.epoch:
            self.epochs.made(number, response.broker_epoch, event.get("newBrokerEpoch"))
        return {"error": "NONE", "response": {"brokerEpoch": self.epochs.shown(response.broker_epoch)}}

    def _on_unregister_broker(self, event: Members) -> Observed:
        response = self.ask(UnregisterBrokerRequest(broker_id=event["broker"]), 0)
        return {"error": error_named(response.error_code)}

    # -- configurations, features, topics -----------------------------------------------------------------------

    def _on_alter_config(self, event: Members) -> Observed:
        kinds = {"topic": TOPIC_RESOURCE, "broker": BROKER_RESOURCE}
        if event["resourceType"] not in kinds:
            raise UnknownName(f"event alter_config: resourceType {event['resourceType']}")
        kind, name = kinds[event["resourceType"]], event["resourceName"]
        response: Any
        if event.get("legacy"):
            values = [AlterConfigsRequest.AlterableConfig(name=key, value=value) for key, value in _values(event)]
            whole = AlterConfigsRequest.AlterConfigsResource(resource_type=kind, resource_name=name, configs=values)
            response = self.ask(AlterConfigsRequest(resources=[whole]), 2)
        else:
            if event["op"] not in AlterConfigOpType.__members__:
                raise UnknownName(f"event alter_config: op {event['op']}")
            increment = IncrementalAlterConfigsRequest.AlterableConfig(
                name=event["name"], config_operation=AlterConfigOpType[event["op"]], value=event.get("value")
            )
            resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
                resource_type=kind, resource_name=name, configs=[increment]
            )
            request = IncrementalAlterConfigsRequest(resources=[resource])
            response = self.ask(request, 1)
        (result,) = response.responses
        return {"error": error_named(result.error_code)}

    def _on_update_feature(self, event: Members) -> Observed:
        update = UpdateFeaturesRequest.FeatureUpdateKey(
            feature=event["feature"], max_version_level=event["level"], upgrade_type=event.get("upgradeType", 1)
        )
        request = UpdateFeaturesRequest(feature_updates=[update], validate_only=event.get("validateOnly", False))
        return {"error": error_named(self.ask(request, 2).error_code)}

    def _on_create_topic(self, event: Members) -> Observed:
        topic = CreateTopicsRequest.CreatableTopic(
            name=event["topic"],
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                CreateTopicsRequest.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
                for index, brokers in enumerate(event["assignments"])
            ],
            configs=[
                CreateTopicsRequest.CreatableTopicConfig(name=name, value=value)
                for name, value in event.get("configs", {}).items()
            ],
        )
        (result,) = self.ask(CreateTopicsRequest(topics=[topic]), 7).topics
        return {"error": error_named(result.error_code)}

    def _on_delete_topic(self, event: Members) -> Observed:
        request = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=event["topic"])])
        (result,) = self.ask(request, 6).responses
        return {"error": error_named(result.error_code)}

    def _on_clear_elr_record(self, event: Members) -> Observed:
        record = ClearElrRecord(topic_name=event["topic"])
        self.controller.submit(lambda: ControllerResult(lambda _: None, [record]), lambda code: None)
        return {"error": "NONE"}


def _values(event: Members) -> list[tuple[str, str]]:
    return list(event["values"].items())


def _ids(given: Sequence[int] | None) -> Ids | None:
    return None if given is None else tuple(BrokerId(broker) for broker in given)
