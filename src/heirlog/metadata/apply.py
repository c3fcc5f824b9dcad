"""What each metadata record does to an image: one function per record type.

Traps. ClearElr and a topic's deletion may be in one batch: a deleted topic must not come back (KAFKA-19383). A leader
epoch grows exactly when a record names a leader, even the same one again. Record types that are not in `APPLY` are
refused: after skipping one the image would be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

from heirlog.metadata.acl_messages import acl_of
from heirlog.metadata.basis import BASES, EARLIER_MAX, ElectionBasis, ReplicaAnswer
from heirlog.metadata.client_quotas import entity_of
from heirlog.metadata.delegation_tokens import DelegationToken
from heirlog.metadata.image import Image
from heirlog.metadata.journal import ImageJournal
from heirlog.metadata.state import (
    LEADER_UNCHANGED,
    RECOVERY_STATE_UNCHANGED,
    RECOVERY_VERSION,
    TOPIC_RESOURCE,
    BrokerRegistration,
    ControllerRegistration,
    ListenerState,
    PartitionRegistration,
    SupportedFeature,
    TopicImage,
)
from heirlog.protocol.records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)
from heirlog.protocol.types import (
    NO_BROKER_EPOCH,
    NO_LEADER,
    BrokerEpoch,
    BrokerId,
    Endpoint,
    LeaderEpoch,
    PartitionEpoch,
    Uuid,
)
from heirlog.security.scram import ScramCredential


class UnsupportedRecord(Exception):
    """The log holds a record that this version cannot apply: after skipping it the image would be wrong."""


def _apply_register_broker(
    image: Image, record: RegisterBrokerRecord, offset: int, journal: ImageJournal | None
) -> None:
    broker_id = BrokerId(record.broker_id)
    state = BrokerRegistration(
        id=broker_id,
        epoch=BrokerEpoch(record.broker_epoch),
        incarnation_id=Uuid(record.incarnation_id),
        listeners=_listeners(record.end_points),
        features=_features(record.features),
        rack=record.rack,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        directories=tuple(sorted(Uuid(directory) for directory in record.log_dirs or ())),
        clean_stop_epoch=BrokerEpoch(record.clean_stop_epoch),
        registration_offset=offset,
    )
    image.set_broker(broker_id, state, journal)


def _apply_unregister_broker(
    image: Image, record: UnregisterBrokerRecord, offset: int, journal: ImageJournal | None
) -> None:
    image.set_broker(BrokerId(record.broker_id), None, journal)


def _apply_broker_change(
    image: Image, record: BrokerRegistrationChangeRecord, offset: int, journal: ImageJournal | None
) -> None:
    before = _registered(image, record.broker_id, record.broker_epoch, offset)
    directories = before.directories
    if record.log_dirs:
        directories = tuple(sorted(Uuid(directory) for directory in record.log_dirs))
    fenced = before.fenced if record.fenced == 0 else record.fenced == 1
    # `replace` takes three times as long, and every node applies each change
    after = BrokerRegistration(
        id=before.id,
        epoch=before.epoch,
        incarnation_id=before.incarnation_id,
        listeners=before.listeners,
        features=before.features,
        rack=before.rack,
        fenced=fenced,
        in_controlled_shutdown=before.in_controlled_shutdown or record.in_controlled_shutdown == 1,
        directories=directories,
        clean_stop_epoch=before.clean_stop_epoch if fenced else NO_BROKER_EPOCH,
        registration_offset=before.registration_offset,
    )
    image.set_broker(before.id, after, journal)


def _apply_fence_broker(image: Image, record: FenceBrokerRecord, offset: int, journal: ImageJournal | None) -> None:
    before = _registered(image, record.id, record.epoch, offset)
    image.set_broker(before.id, replace(before, fenced=True), journal)


def _apply_unfence_broker(image: Image, record: UnfenceBrokerRecord, offset: int, journal: ImageJournal | None) -> None:
    before = _registered(image, record.id, record.epoch, offset)
    image.set_broker(before.id, replace(before, fenced=False, clean_stop_epoch=NO_BROKER_EPOCH), journal)


def _registered(image: Image, broker_id: int, epoch: int, offset: int) -> BrokerRegistration:
    broker = image.brokers.get(BrokerId(broker_id))
    if broker is None or broker.epoch != epoch:
        raise UnsupportedRecord(
            f"offset {offset} of the metadata log changes broker {broker_id} with epoch {epoch}, "
            f"but its current registration is {broker and broker.epoch}"
        )
    return broker


def _apply_topic(image: Image, record: TopicRecord, offset: int, journal: ImageJournal | None) -> None:
    topic_id = Uuid(record.topic_id)
    other = image.topic_ids.get(record.name)
    if other is not None and other != topic_id:
        raise UnsupportedRecord(f"offset {offset} of the metadata log creates topic {record.name!r} a second time")
    image.set_topic(topic_id, TopicImage(record.name, topic_id), journal)


def _apply_remove_topic(image: Image, record: RemoveTopicRecord, offset: int, journal: ImageJournal | None) -> None:
    topic_id = Uuid(record.topic_id)
    topic = image.topics[topic_id]
    for partition in list(image.partitions[topic_id]):
        image.set_partition(topic_id, partition, None, journal)
    image.set_topic(topic_id, None, journal)
    for key in list(image.configs.get((TOPIC_RESOURCE, topic.name), ())):
        image.set_config(TOPIC_RESOURCE, topic.name, key, None, journal)


def _apply_partition(image: Image, record: PartitionRecord, offset: int, journal: ImageJournal | None) -> None:
    ids = image.share_ids
    state = PartitionRegistration(
        replicas=ids(record.replicas),
        isr=ids(record.isr),
        leader=BrokerId(record.leader),
        leader_epoch=LeaderEpoch(record.leader_epoch),
        partition_epoch=PartitionEpoch(record.partition_epoch),
        elr=ids(sorted(record.eligible_leader_replicas or ())),
        last_known_elr=ids(record.last_known_elr or ()),
        adding=ids(record.adding_replicas),
        removing=ids(record.removing_replicas),
        directories=image.share_directories(record.directories or ()),
        leader_recovery_state=record.leader_recovery_state,
        basis=_read_basis(record.election_basis),
        earlier=tuple(each for each in map(_read_basis, record.earlier_elections or ()) if each is not None),
        last_leader=BrokerId(record.last_leader),
    )
    image.set_partition(Uuid(record.topic_id), record.partition_id, state, journal)


def _apply_partition_change(
    image: Image, record: PartitionChangeRecord, offset: int, journal: ImageJournal | None
) -> None:
    topic_id = Uuid(record.topic_id)
    before = image.partitions[topic_id][record.partition_id]
    image.set_partition(topic_id, record.partition_id, merged(image, before, record), journal)


def merged(image: Image, before: PartitionRegistration, record: PartitionChangeRecord) -> PartitionRegistration:
    """The state after the record: `before` with the record's fields."""
    ids = image.share_ids
    names_leader = record.leader != LEADER_UNCHANGED
    recovery = record.leader_recovery_state
    return PartitionRegistration(
        replicas=before.replicas if record.replicas is None else ids(record.replicas),
        isr=before.isr if record.isr is None else ids(record.isr),
        leader=BrokerId(record.leader) if names_leader else before.leader,
        leader_epoch=LeaderEpoch(before.leader_epoch + 1) if names_leader else before.leader_epoch,
        partition_epoch=PartitionEpoch(before.partition_epoch + 1),
        elr=before.elr if record.eligible_leader_replicas is None else ids(sorted(record.eligible_leader_replicas)),
        last_known_elr=before.last_known_elr if record.last_known_elr is None else ids(record.last_known_elr),
        adding=before.adding if record.adding_replicas is None else ids(record.adding_replicas),
        removing=before.removing if record.removing_replicas is None else ids(record.removing_replicas),
        directories=before.directories if record.directories is None else image.share_directories(record.directories),
        leader_recovery_state=before.leader_recovery_state if recovery == RECOVERY_STATE_UNCHANGED else recovery,
        basis=before.basis if record.election_basis is None else _read_basis(record.election_basis),
        earlier=before.earlier if record.election_basis is None else _with_basis(before),
        last_leader=_last_leader(before, record.leader),
    )


def _last_leader(before: PartitionRegistration, named: int) -> BrokerId:
    if named == LEADER_UNCHANGED or (named == NO_LEADER and not before.has_leader):
        return before.last_leader
    return before.leader if named == NO_LEADER else NO_LEADER


def _with_basis(before: PartitionRegistration) -> tuple[ElectionBasis, ...]:
    """The earlier elections once another one follows."""
    return before.earlier if before.basis is None else (before.basis, *before.earlier)[:EARLIER_MAX]


def _read_basis(
    stored: PartitionRecord.ElectionBasis | PartitionChangeRecord.ElectionBasis | None,
) -> ElectionBasis | None:
    return None if stored is None else read_basis(stored)


def read_basis(stored: PartitionRecord.ElectionBasis | PartitionChangeRecord.ElectionBasis) -> ElectionBasis:
    """The election on a lossy basis in a record. Raises UnsupportedRecord for an unknown basis."""
    if stored.basis not in range(len(BASES)):
        raise UnsupportedRecord(f"a leader was elected on basis {stored.basis}, which this version of heirlog lacks")
    return ElectionBasis(
        basis=BASES[stored.basis],
        leader=BrokerId(stored.leader),
        leader_epoch=LeaderEpoch(stored.leader_epoch),
        end_offset=stored.end_offset,
        controller_epoch=stored.controller_epoch,
        timestamp_ms=stored.timestamp_ms,
        replicas=tuple(
            [
                ReplicaAnswer(
                    BrokerId(answer.broker_id),
                    BrokerEpoch(answer.broker_epoch),
                    answer.last_written_leader_epoch,
                    answer.log_end_offset,
                    answer.may_lack_records,
                )
                for answer in stored.replicas
            ]
        ),
    )


def _apply_clear_elr(image: Image, record: ClearElrRecord, offset: int, journal: ImageJournal | None) -> None:
    if record.topic_name:
        topic_id = image.topic_ids.get(record.topic_name)
        cleared = [] if topic_id is None else [topic_id]
    else:
        cleared = list(image.partitions)
    for topic_id in cleared:
        for partition, before in list(image.partitions[topic_id].items()):
            if before.elr or before.last_known_elr:
                epoch = PartitionEpoch(before.partition_epoch + 1)
                after = before._replace(elr=(), last_known_elr=(), partition_epoch=epoch)
                image.set_partition(topic_id, partition, after, journal)


def _apply_config(image: Image, record: ConfigRecord, offset: int, journal: ImageJournal | None) -> None:
    image.set_config(record.resource_type, record.resource_name, record.name, record.value, journal)


def _apply_feature_level(image: Image, record: FeatureLevelRecord, offset: int, journal: ImageJournal | None) -> None:
    # level 0 of metadata.version does not exist; of every other feature it means "off", which is no entry. Except of
    # the recovery manager: no entry means that the log is older than the feature, and its level is still to be written
    off = 0 if record.name == RECOVERY_VERSION else None
    image.set_feature(record.name, record.feature_level or off, journal)


def _apply_producer_ids(image: Image, record: ProducerIdsRecord, offset: int, journal: ImageJournal | None) -> None:
    if journal is not None and journal.next_producer_id is None:
        journal.next_producer_id = image.next_producer_id
    image.next_producer_id = record.next_producer_id


def _apply_register_controller(
    image: Image, record: RegisterControllerRecord, offset: int, journal: ImageJournal | None
) -> None:
    node_id = BrokerId(record.controller_id)
    state = ControllerRegistration(
        id=node_id,
        incarnation_id=Uuid(record.incarnation_id),
        listeners=_listeners(record.end_points),
        features=_features(record.features),
    )
    image.set_controller(node_id, state, journal)


def _apply_acl(image: Image, record: AccessControlEntryRecord, offset: int, journal: ImageJournal | None) -> None:
    acl_id = Uuid(record.id)
    if acl_id in image.acls.by_id:
        raise UnsupportedRecord(f"offset {offset} of the metadata log creates an ACL a second time")
    image.set_acl(acl_id, acl_of(record, record), journal)


def _apply_remove_acl(
    image: Image, record: RemoveAccessControlEntryRecord, offset: int, journal: ImageJournal | None
) -> None:
    acl_id = Uuid(record.id)
    if acl_id not in image.acls.by_id:
        raise UnsupportedRecord(f"offset {offset} of the metadata log removes an ACL that does not exist")
    image.set_acl(acl_id, None, journal)


def _apply_scram(image: Image, record: UserScramCredentialRecord, offset: int, journal: ImageJournal | None) -> None:
    credential = ScramCredential(
        bytes(record.salt), bytes(record.stored_key), bytes(record.server_key), record.iterations
    )
    image.set_scram((record.name, record.mechanism), credential, journal)


def _apply_remove_scram(
    image: Image, record: RemoveUserScramCredentialRecord, offset: int, journal: ImageJournal | None
) -> None:
    key = (record.name, record.mechanism)
    if key not in image.scram:
        raise UnsupportedRecord(f"offset {offset} of the metadata log removes a SCRAM credential that does not exist")
    image.set_scram(key, None, journal)


def _apply_delegation_token(
    image: Image, record: DelegationTokenRecord, offset: int, journal: ImageJournal | None
) -> None:
    token = DelegationToken(
        record.token_id,
        record.owner,
        record.requester,
        tuple(record.renewers),
        record.issue_timestamp,
        record.max_timestamp,
        record.expiration_timestamp,
    )
    image.set_delegation_token(token.id, token, journal)


def _apply_remove_delegation_token(
    image: Image, record: RemoveDelegationTokenRecord, offset: int, journal: ImageJournal | None
) -> None:
    if record.token_id not in image.delegation_tokens:
        raise UnsupportedRecord(f"offset {offset} of the metadata log removes a delegation token that does not exist")
    image.set_delegation_token(record.token_id, None, journal)


def _apply_client_quota(image: Image, record: ClientQuotaRecord, offset: int, journal: ImageJournal | None) -> None:
    entity = entity_of((part.entity_type, part.entity_name) for part in record.entity)
    image.set_client_quota(entity, record.key, None if record.remove else record.value, journal)


def _apply_begin_transaction(
    image: Image, record: BeginTransactionRecord, offset: int, journal: ImageJournal | None
) -> None:
    image.open_transaction = []


def _apply_end_outside(
    image: Image, record: EndTransactionRecord | AbortTransactionRecord, offset: int, journal: ImageJournal | None
) -> None:
    raise UnsupportedRecord(f"offset {offset} of the metadata log ends a transaction that was never begun")


def _apply_nothing(image: Image, record: Any, offset: int, journal: ImageJournal | None) -> None:
    """NoOp, and the ZooKeeper migration state (always "none") that Kafka writes into every bootstrap."""


APPLY: Final[dict[type[Any], Callable[[Image, Any, int, ImageJournal | None], None]]] = {
    RegisterBrokerRecord: _apply_register_broker,
    UnregisterBrokerRecord: _apply_unregister_broker,
    BrokerRegistrationChangeRecord: _apply_broker_change,
    FenceBrokerRecord: _apply_fence_broker,
    UnfenceBrokerRecord: _apply_unfence_broker,
    TopicRecord: _apply_topic,
    RemoveTopicRecord: _apply_remove_topic,
    PartitionRecord: _apply_partition,
    PartitionChangeRecord: _apply_partition_change,
    ClearElrRecord: _apply_clear_elr,
    ConfigRecord: _apply_config,
    FeatureLevelRecord: _apply_feature_level,
    ProducerIdsRecord: _apply_producer_ids,
    RegisterControllerRecord: _apply_register_controller,
    AccessControlEntryRecord: _apply_acl,
    RemoveAccessControlEntryRecord: _apply_remove_acl,
    UserScramCredentialRecord: _apply_scram,
    RemoveUserScramCredentialRecord: _apply_remove_scram,
    DelegationTokenRecord: _apply_delegation_token,
    RemoveDelegationTokenRecord: _apply_remove_delegation_token,
    ClientQuotaRecord: _apply_client_quota,
    BeginTransactionRecord: _apply_begin_transaction,
    EndTransactionRecord: _apply_end_outside,
    AbortTransactionRecord: _apply_end_outside,
    NoOpRecord: _apply_nothing,
    ZkMigrationStateRecord: _apply_nothing,
}


def _listeners(end_points: Iterable[Any]) -> tuple[ListenerState, ...]:
    return tuple(
        ListenerState(point.name, Endpoint(point.host, point.port), point.security_protocol) for point in end_points
    )


def _features(features: Iterable[Any]) -> tuple[SupportedFeature, ...]:
    return tuple(
        SupportedFeature(feature.name, feature.min_supported_version, feature.max_supported_version)
        for feature in features
    )


def apply(image: Image, record: Any, offset: int, epoch: int, journal: ImageJournal | None = None) -> None:
    """Apply the record at `offset`. Raises UnsupportedRecord for a record type without meaning here."""
    image.offset, image.epoch = offset, epoch
    if image.open_transaction is not None:
        _apply_in_transaction(image, image.open_transaction, record, offset, journal)
    else:
        _apply_now(image, record, offset, journal)


def apply_all(
    image: Image, records: Iterable[Any], base_offset: int, epoch: int, journal: ImageJournal | None = None
) -> None:
    """Apply consecutive records. Raises UnsupportedRecord."""
    for offset, record in enumerate(records, base_offset):
        apply(image, record, offset, epoch, journal)


def image_of_snapshot(records: Iterable[Any], offset: int, epoch: int) -> Image:
    """The image that `records` of a snapshot describe; `offset` is the last offset the snapshot contains."""
    image = Image()
    for record in records:
        apply(image, record, offset, epoch)
    image.offset, image.epoch = offset, epoch
    return image


def _apply_now(image: Image, record: Any, offset: int, journal: ImageJournal | None) -> None:
    found = APPLY.get(type(record))
    if found is None:
        raise UnsupportedRecord(
            f"offset {offset} of the metadata log holds a {type(record).__name__}, which this version of heirlog "
            "does not know how to apply; use a version that does"
        )
    found(image, record, offset, journal)


def _apply_in_transaction(
    image: Image, held: list[tuple[Any, int]], record: Any, offset: int, journal: ImageJournal | None
) -> None:
    if isinstance(record, EndTransactionRecord):
        image.open_transaction = None
        for held_record, held_offset in held:
            _apply_now(image, held_record, held_offset, journal)
    elif isinstance(record, AbortTransactionRecord):
        image.open_transaction = None
    elif isinstance(record, BeginTransactionRecord):
        raise UnsupportedRecord(f"offset {offset} of the metadata log begins a transaction inside another one")
    elif not isinstance(record, NoOpRecord):
        held.append((record, offset))
