"""Images and records with the names of a scenario file: only fields that are set on the wire, ids as numbers, epochs as
the file calls them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from heirlog.metadata.image import LEADER_UNCHANGED, RECOVERY_STATE_UNCHANGED, Image
from heirlog.metadata.state import BrokerRegistration
from heirlog.protocol.metadata_record import record_version, registration_change_version
from heirlog.protocol.records import (
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)

ShowEpoch = Callable[[int], int | str]
Row = dict[str, Any]


def partitions_shown(image: Image) -> list[Row]:
    """All of them, complete, by topic and partition."""
    rows = [
        {
            "topic": image.topics[topic_id].name,
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
        for topic_id, partitions in image.partitions.items()
        for number, state in partitions.items()
    ]
    return sorted(rows, key=lambda row: (row["topic"], row["partition"]))


def brokers_shown(image: Image, epoch: ShowEpoch) -> list[Row]:
    return [
        {"id": broker, "epoch": epoch(image.brokers[broker].epoch), "state": _state(image.brokers[broker])}
        for broker in sorted(image.brokers)
    ]


def _state(broker: BrokerRegistration) -> str:
    if broker.fenced:
        return "fenced"
    return "controlled_shutdown" if broker.in_controlled_shutdown else "unfenced"


def record_shown(record: Any, metadata_version: int, names: Mapping[bytes, str], epoch: ShowEpoch) -> Row | None:
    """None: a record that says nothing about the cluster."""
    row: Row = {"type": type(record).__name__, "version": record_version(type(record), metadata_version)}
    match record:
        case NoOpRecord() | BeginTransactionRecord() | EndTransactionRecord():
            return None
        case PartitionChangeRecord():
            row |= _partition_change(record, names)
        case PartitionRecord():
            row |= {"partition": record.partition_id, "replicas": list(record.replicas), "isr": list(record.isr)}
            row |= {"leader": record.leader, "leaderEpoch": record.leader_epoch}
            row["partitionEpoch"] = record.partition_epoch
        case BrokerRegistrationChangeRecord():
            row |= _broker_change(record, epoch)
        case RegisterBrokerRecord():
            row |= {"brokerId": record.broker_id, "brokerEpoch": epoch(record.broker_epoch), "fenced": record.fenced}
            row["inControlledShutdown"] = record.in_controlled_shutdown
        case UnregisterBrokerRecord():
            row |= {"brokerId": record.broker_id, "brokerEpoch": epoch(record.broker_epoch)}
        case TopicRecord():
            row["name"] = record.name
        case RemoveTopicRecord():
            row["topic"] = names[record.topic_id]
        case ConfigRecord():
            row |= {"resourceType": record.resource_type, "resourceName": record.resource_name}
            row |= {"name": record.name, "value": record.value}
        case FeatureLevelRecord():
            row |= {"name": record.name, "featureLevel": record.feature_level}
        case ClearElrRecord():
            row["topicName"] = record.topic_name
    return row


def _partition_change(record: PartitionChangeRecord, names: Mapping[bytes, str]) -> Row:
    row: Row = {"topic": names[record.topic_id], "partition": record.partition_id}
    lists = {
        "isr": record.isr,
        "replicas": record.replicas,
        "addingReplicas": record.adding_replicas,
        "removingReplicas": record.removing_replicas,
        "eligibleLeaderReplicas": record.eligible_leader_replicas,
        "lastKnownElr": record.last_known_elr,
    }
    row |= {name: list(members) for name, members in lists.items() if members is not None}
    if record.leader != LEADER_UNCHANGED:
        row["leader"] = record.leader
    if record.leader_recovery_state != RECOVERY_STATE_UNCHANGED:
        row["leaderRecoveryState"] = record.leader_recovery_state
    if record.directories is not None:
        row["directoriesChanged"] = True
    return row


def _broker_change(record: BrokerRegistrationChangeRecord, epoch: ShowEpoch) -> Row:
    row: Row = {"version": registration_change_version(record), "brokerId": record.broker_id}
    row["brokerEpoch"] = epoch(record.broker_epoch)
    if record.fenced:
        row["fenced"] = record.fenced
    if record.in_controlled_shutdown:
        row["inControlledShutdown"] = record.in_controlled_shutdown
    if record.log_dirs:
        row["onlineLogDirs"] = len(record.log_dirs)
    return row
