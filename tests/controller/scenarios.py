"""Runs the scenario files: sets up an image, plays the events on a real Controller, reports what can be observed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from controller.fakes import CLUSTER, Harness, static

from heirlog.controller.alter_configs import Operation
from heirlog.controller.elect_leaders import balance, elect_unclean
from heirlog.controller.election import Election
from heirlog.controller.outcome import Outcome
from heirlog.controller.partition_change import PartitionChange
from heirlog.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from heirlog.metadata.min_isr import min_isr_of
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages.alter_configs import AlterConfigsRequest
from heirlog.protocol.messages.alter_partition import AlterPartitionRequest
from heirlog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from heirlog.protocol.messages.broker_registration import BrokerRegistrationRequest
from heirlog.protocol.messages.create_topics import CreateTopicsRequest
from heirlog.protocol.messages.delete_topics import DeleteTopicsRequest
from heirlog.protocol.messages.elect_leaders import ElectLeadersRequest
from heirlog.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from heirlog.protocol.metadata_record import record_version, registration_change_version
from heirlog.protocol.records import (
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from heirlog.protocol.types import BrokerId, Uuid

STATES = {"RECOVERED": 0, "RECOVERING": 1}
SUPPORTED = {
    "alter_config",
    "alter_partition",
    "clear_elr_record",
    "create_topic",
    "delete_topic",
    "elect_leaders",
    "fence_broker",
    "heartbeat",
    "partition_change",
    "periodic",
    "register_broker",
}
_ELR_FEATURE = "eligible.leader.replicas.version"


class Unsupported(Exception):
    """The scenario needs an event that nothing here plays."""


def directory(broker: int, index: int) -> Uuid:
    return Uuid(b"dir" + bytes([index]) + broker.to_bytes(12, "big"))


def incarnation(broker: int, number: int) -> Uuid:
    return Uuid(b"inc" + bytes([number]) + broker.to_bytes(12, "big"))


class Runner:
    def __init__(self, scenario: Mapping[str, Any]) -> None:
        setup = scenario["setup"]
        config = setup.get("config", {})
        self.harness = Harness(static(**config.get("static", {})))
        self.limit = setup.get("maxElectionsPerImbalance", 1000)
        self.incarnations: dict[int, int] = {}
        self.topic_ids: dict[str, Uuid] = {}
        self._setup(setup, config)

    @property
    def image(self) -> Any:
        return self.harness.controller.image

    def _setup(self, setup: Mapping[str, Any], config: Mapping[str, Any]) -> None:
        harness = self.harness
        # its own registration is written now, so that no step shows it
        harness.load([FeatureLevelRecord(name="metadata.version", feature_level=29)])
        harness.lead()
        harness.commit()
        features = setup.get("features", {})
        records: list[Any] = [
            FeatureLevelRecord(name=name, feature_level=level) for name, level in sorted(features.items())
        ]
        records += [self._broker_record(broker) for broker in setup.get("brokers", [])]
        for partition in setup.get("partitions", []):
            name = partition.get("topic", "foo")
            if name not in self.topic_ids:
                self.topic_ids[name] = Uuid(len(self.topic_ids).to_bytes(16, "big"))
                records.append(TopicRecord(name=name, topic_id=self.topic_ids[name]))
            records.append(self._partition_record(partition, self.topic_ids[name]))
        for kind, values in (("cluster", {"": config.get("cluster", {})}), ("broker", config.get("broker", {}))):
            records += self._config_records(BROKER_RESOURCE, values, kind)
        records += self._config_records(TOPIC_RESOURCE, config.get("topic", {}), "topic")
        self._append(records)
        # epochs of the setup are offsets of the past
        harness.quorum.log_end_offset = 1000
        self.image.offset = 999
        harness.controller.sessions.clear()

    def _append(self, records: list[Any]) -> None:
        self.harness.controller.submit(lambda: Outcome(lambda _: None, records), lambda code: code)
        self.harness.commit()

    def _broker_record(self, broker: Mapping[str, Any]) -> RegisterBrokerRecord:
        number, state = broker["id"], broker.get("state", "unfenced")
        return RegisterBrokerRecord(
            broker_id=number,
            incarnation_id=incarnation(number, 0),
            broker_epoch=broker.get("epoch", 100 + number),
            fenced=state == "fenced",
            in_controlled_shutdown=state == "controlled_shutdown",
            log_dirs=[directory(number, index) for index in range(broker.get("logDirs", 1))],
        )

    def _partition_record(self, partition: Mapping[str, Any], topic_id: Uuid) -> PartitionRecord:
        replicas = partition["replicas"]
        indexes = partition.get("dirIndex", [0] * len(replicas))
        return PartitionRecord(
            partition_id=partition.get("partition", 0),
            topic_id=topic_id,
            replicas=replicas,
            isr=partition["isr"],
            removing_replicas=partition.get("removing", []),
            adding_replicas=partition.get("adding", []),
            leader=partition["leader"],
            leader_recovery_state=STATES[partition.get("leaderRecoveryState", "RECOVERED")],
            leader_epoch=partition["leaderEpoch"],
            partition_epoch=partition["partitionEpoch"],
            directories=[directory(replica, index) for replica, index in zip(replicas, indexes, strict=True)],
            eligible_leader_replicas=partition.get("elr", []),
            last_known_elr=partition.get("lastKnownElr", []),
        )

    def _config_records(self, kind: int, resources: Mapping[str, Any], _: str) -> list[Any]:
        return [
            ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)
            for name, values in resources.items()
            for key, value in values.items()
        ]

    # -- events -------------------------------------------------------------------------------------------------

    def play(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """One event; what is observed after it."""
        kind = event["type"]
        if kind not in SUPPORTED:
            raise Unsupported(kind)
        before = len(self.harness.quorum.log)
        observed = getattr(self, f"_{kind}")(event)
        self.harness.commit()
        records = [record for batch in self.harness.quorum.log[before:] for record in batch.records]
        observed["records"] = [self._described(record) for record in records]
        observed["partitions"] = self._partitions()
        observed["brokers"] = self._brokers()
        return observed

    def _alter_partition(self, event: Mapping[str, Any]) -> dict[str, Any]:
        number, version = event.get("partition", 0), event.get("version", 3)
        topic_id = self.topic_ids["foo"]
        state = self.image.partitions[topic_id][number]
        members = []
        for member in event["newIsr"]:
            if isinstance(member, dict):
                members.append((member["id"], member["epoch"]))
            else:
                known = self.image.brokers.get(member)
                members.append((member, known.epoch if known else -1))
        asked = AlterPartitionRequest.PartitionData(
            partition_index=number,
            leader_epoch=event.get("leaderEpoch", state.leader_epoch),
            new_isr=[broker for broker, _ in members],
            new_isr_with_epochs=[
                AlterPartitionRequest.BrokerState(broker_id=broker, broker_epoch=epoch) for broker, epoch in members
            ],
            leader_recovery_state=STATES[event["leaderRecoveryState"]]
            if "leaderRecoveryState" in event and not isinstance(event["leaderRecoveryState"], int)
            else event.get("leaderRecoveryState", 0),
            partition_epoch=event.get("partitionEpoch", state.partition_epoch),
        )
        asked_topic = Uuid(b"x" * 16) if event.get("unknownTopicId") else topic_id
        request = AlterPartitionRequest(
            broker_id=event["broker"],
            broker_epoch=event.get("brokerEpoch", self.image.brokers[event["broker"]].epoch),
            topics=[AlterPartitionRequest.TopicData(topic_id=asked_topic, partitions=[asked])],
        )
        response = self.harness.ask("alter_partition", request, version)
        if response.error_code:
            return {"error": ErrorCode(response.error_code).name}
        (answered,) = response.topics[0].partitions
        error = ErrorCode(answered.error_code).name
        if error != "NONE":
            return {"error": error}
        return {
            "error": error,
            "response": {
                "leaderId": answered.leader_id,
                "leaderEpoch": answered.leader_epoch,
                "partitionEpoch": answered.partition_epoch,
                "isr": answered.isr,
                "leaderRecoveryState": answered.leader_recovery_state,
            },
        }

    def _fence_broker(self, event: Mapping[str, Any]) -> dict[str, Any]:
        broker = self.image.brokers[BrokerId(event["broker"])]
        if broker.fenced:
            return {"error": "NONE"}
        self.harness.controller.expire_session(broker.id, "as the scenario says")
        return {"error": "NONE"}

    def _heartbeat(self, event: Mapping[str, Any]) -> dict[str, Any]:
        broker = self.image.brokers[BrokerId(event["broker"])]
        if "registrationOffset" in event:
            self.image.set_broker(broker.id, replace(broker, registration_offset=event["registrationOffset"]))
        request = BrokerHeartbeatRequest(
            broker_id=broker.id,
            broker_epoch=event.get("brokerEpoch", broker.epoch),
            current_metadata_offset=event.get("currentMetadataOffset", 1_000_000),
            want_fence=event.get("wantFence", False),
            want_shut_down=event.get("wantShutDown", False),
            offline_log_dirs=[directory(broker.id, index) for index in event.get("offlineLogDirs", [])],
        )
        response = self.harness.ask("broker_heartbeat", request, 1)
        if response.error_code:
            return {"error": ErrorCode(response.error_code).name}
        return {
            "error": "NONE",
            "response": {
                "isCaughtUp": response.is_caught_up,
                "isFenced": response.is_fenced,
                "shouldShutDown": response.should_shut_down,
            },
        }

    def _register_broker(self, event: Mapping[str, Any]) -> dict[str, Any]:
        number = event["broker"]
        controller, quorum = self.harness.controller, self.harness.quorum
        known = self.image.brokers.get(BrokerId(number))
        if event.get("incarnation", "new") == "new":
            self.incarnations[number] = self.incarnations.get(number, 0) + 1
        controller.sessions.end(BrokerId(number))
        if event.get("sessionValid") and known is not None:
            controller.sessions.start(known.id, known.epoch, self.harness.env.now_ms())
        if "newBrokerEpoch" in event:
            # nothing of the partition is touched before the registration record in such a step
            quorum.log_end_offset = event["newBrokerEpoch"]
        features = {"metadata.version": (7, 29), _ELR_FEATURE: (0, 1)}
        if event.get("noElrFeature"):
            del features[_ELR_FEATURE]
        request = BrokerRegistrationRequest(
            broker_id=number,
            cluster_id=event.get("clusterId", CLUSTER),
            incarnation_id=incarnation(number, self.incarnations.get(number, 0)),
            features=[
                BrokerRegistrationRequest.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in features.items()
            ],
            log_dirs=list(known.directories) if known else [directory(number, 0)],
            previous_broker_epoch=event.get("previousBrokerEpoch", -1),
        )
        response = self.harness.ask("broker_registration", request, event.get("version", 4))
        error = ErrorCode(response.error_code).name
        return (
            {"error": error}
            if error != "NONE"
            else {
                "error": error,
                "response": {"brokerEpoch": response.broker_epoch},
            }
        )

    def _elect_leaders(self, event: Mapping[str, Any]) -> dict[str, Any]:
        asked: list[Any] | None = None
        if event.get("partitions") is not None:
            asked = [
                ElectLeadersRequest.TopicPartitions(topic=p["topic"], partitions=[p["partition"]])
                for p in event["partitions"]
            ]
        request = ElectLeadersRequest(election_type=event["electionType"], topic_partitions=asked)
        response = self.harness.ask("elect_leaders", request, 2)
        if response.error_code:
            return {"error": ErrorCode(response.error_code).name}
        return {
            "error": "NONE",
            "response": [
                {"topic": topic.topic, "partition": result.partition_id, "error": ErrorCode(result.error_code).name}
                for topic in response.replica_election_results
                for result in topic.partition_result
            ],
        }

    def _alter_config(self, event: Mapping[str, Any]) -> dict[str, Any]:
        kind = TOPIC_RESOURCE if event["resourceType"] == "topic" else BROKER_RESOURCE
        name = event["resourceName"]
        request: Any
        if event.get("legacy"):
            resource = AlterConfigsRequest.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    AlterConfigsRequest.AlterableConfig(name=key, value=value) for key, value in event["values"].items()
                ],
            )
            request, method = AlterConfigsRequest(resources=[resource]), "alter_configs"
        else:
            increment = IncrementalAlterConfigsRequest.AlterableConfig(
                name=event["name"], config_operation=Operation[event["op"]], value=event.get("value")
            )
            request, method = (
                IncrementalAlterConfigsRequest(
                    resources=[
                        IncrementalAlterConfigsRequest.AlterConfigsResource(
                            resource_type=kind, resource_name=name, configs=[increment]
                        )
                    ]
                ),
                "incremental_alter_configs",
            )
        (result,) = self.harness.ask(method, request, 1).responses
        return {"error": ErrorCode(result.error_code).name}

    def _create_topic(self, event: Mapping[str, Any]) -> dict[str, Any]:
        request = CreateTopicsRequest(
            topics=[
                CreateTopicsRequest.CreatableTopic(
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
            ]
        )
        (result,) = self.harness.ask("create_topics", request, 7).topics
        return {"error": ErrorCode(result.error_code).name}

    def _delete_topic(self, event: Mapping[str, Any]) -> dict[str, Any]:
        request = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=event["topic"])])
        (result,) = self.harness.ask("delete_topics", request, 6).responses
        return {"error": ErrorCode(result.error_code).name}

    def _periodic(self, event: Mapping[str, Any]) -> dict[str, Any]:
        task = {"electPreferred": balance, "electUnclean": elect_unclean}[event["task"]]
        changes, again = task(self.image, self.harness.static, self.limit)
        self._append(list(changes.records))
        return {"error": "NONE", "response": {"rescheduleImmediately": again}}

    def _clear_elr_record(self, event: Mapping[str, Any]) -> dict[str, Any]:
        self._append([ClearElrRecord(topic_name=event["topic"])])
        return {"error": "NONE"}

    def _partition_change(self, event: Mapping[str, Any]) -> dict[str, Any]:
        topic_id = self.topic_ids["foo"]
        active = [broker.id for broker in self.image.brokers.values() if broker.is_active]
        acceptable = event.get("acceptableLeaders", active)

        def ids(name: str) -> tuple[BrokerId, ...] | None:
            return tuple(BrokerId(b) for b in event[name]) if name in event else None

        built = PartitionChange(
            topic_id=topic_id,
            partition=0,
            before=self.image.partitions[topic_id][0],
            election=Election(event.get("election", "ONLINE").lower()),
            acceptable=lambda broker: broker in acceptable,
            min_isr=event.get(
                "minIsr", min_isr_of(self.image, self.harness.static, topic_id, self.image.partitions[topic_id][0])
            ),
            elr_enabled=self.image.elr_enabled,
            isr=ids("targetIsr"),
            replicas=ids("targetReplicas"),
            adding=ids("targetAdding"),
            removing=ids("targetRemoving"),
            lost=ids("uncleanShutdownReplicas") or (),
        ).build()
        self._append([built.record] if built.record is not None else [])
        return {"error": "NONE"}

    # -- what is seen -------------------------------------------------------------------------------------------

    def _partitions(self) -> list[dict[str, Any]]:
        names = {topic.id: topic.name for topic in self.image.topics.values()}
        found = []
        for topic_id, partitions in self.image.partitions.items():
            for number, state in partitions.items():
                row = {
                    "topic": names[topic_id],
                    "partition": number,
                    "replicas": list(state.replicas),
                    "isr": list(state.isr),
                    "elr": list(state.elr),
                    "lastKnownElr": list(state.last_known_elr),
                    "leader": state.leader,
                    "leaderEpoch": state.leader_epoch,
                    "partitionEpoch": state.partition_epoch,
                    "leaderRecoveryState": "RECOVERING" if state.leader_recovery_state else "RECOVERED",
                    "adding": list(state.adding),
                    "removing": list(state.removing),
                }
                found.append(row)
        return sorted(found, key=lambda row: (row["topic"], row["partition"]))

    def _brokers(self) -> list[dict[str, Any]]:
        rows = []
        for broker in sorted(self.image.brokers.values(), key=lambda broker: broker.id):
            state = "fenced" if broker.fenced else "unfenced"
            if broker.in_controlled_shutdown and not broker.fenced:
                state = "controlled_shutdown"
            rows.append({"id": broker.id, "epoch": broker.epoch, "state": state})
        return rows

    def _described(self, record: Any) -> dict[str, Any]:
        """Only what is set on the wire."""
        name = type(record).__name__
        row: dict[str, Any] = {"type": name, "version": record_version(type(record), self.image.metadata_version)}
        names = {topic_id: name for name, topic_id in self.topic_ids.items()}
        names |= {topic.id: topic.name for topic in self.image.topics.values()}
        match record:
            case PartitionChangeRecord():
                row |= {"topic": names[record.topic_id], "partition": record.partition_id}
                row |= _set(record, "isr", "replicas", "addingReplicas", "removingReplicas")
                row |= _set(record, "eligibleLeaderReplicas", "lastKnownElr")
                if record.leader != -2:
                    row["leader"] = record.leader
                if record.leader_recovery_state != -1:
                    row["leaderRecoveryState"] = record.leader_recovery_state
                if record.directories is not None:
                    row["directoriesChanged"] = True
            case BrokerRegistrationChangeRecord():
                row |= {"brokerId": record.broker_id, "brokerEpoch": record.broker_epoch}
                row["version"] = registration_change_version(record)
                if record.fenced:
                    row["fenced"] = record.fenced
                if record.in_controlled_shutdown:
                    row["inControlledShutdown"] = record.in_controlled_shutdown
                if record.log_dirs:
                    row["onlineLogDirs"] = len(record.log_dirs)
            case RegisterBrokerRecord():
                row |= {"brokerId": record.broker_id, "brokerEpoch": record.broker_epoch, "fenced": record.fenced}
                row["inControlledShutdown"] = record.in_controlled_shutdown
            case TopicRecord():
                row["name"] = record.name
            case PartitionRecord():
                row |= {"partition": record.partition_id, "replicas": record.replicas, "isr": record.isr}
                row |= {"leader": record.leader, "leaderEpoch": record.leader_epoch}
                row["partitionEpoch"] = record.partition_epoch
            case ConfigRecord():
                row |= {"resourceType": record.resource_type, "resourceName": record.resource_name}
                row |= {"name": record.name, "value": record.value}
            case RemoveTopicRecord():
                row["topic"] = names[record.topic_id]
            case ClearElrRecord():
                row["topicName"] = record.topic_name
            case RegisterControllerRecord():
                raise AssertionError("the controller registers before the first step")
        return row


def _set(record: Any, *names: str) -> dict[str, Any]:
    found = {}
    for name in names:
        value = getattr(record, "".join(f"_{c.lower()}" if c.isupper() else c for c in name))
        if value is not None:
            found[name] = list(value)
    return found
