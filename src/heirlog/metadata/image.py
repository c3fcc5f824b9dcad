"""The cluster as the metadata log up to one offset describes it.

    record --apply--> image           the only way in (`set_*` below are for `apply` and `Journal.undo`)
    image --records--> snapshot       the records that rebuild it, FeatureLevel first

What a reader may rely on:

* States are frozen values; two images (speculative and committed) share them.
* Partition changes pass through `set_partition`, which alone keeps `leaders`, `in_isr` and `in_elr` in step.
* Records between BeginTransaction and EndTransaction are held back and applied at the End; an Abort drops them.
  `offset` moves on meanwhile (they *have* been read), so take no snapshot while `open_transaction` is not None.
* The image does not judge: what a record says is applied. Rules live with those who make records.

Traps. ClearElr and a topic's deletion may stand in one batch: a topic that is gone must not come back (KAFKA-19383).
A leader epoch grows exactly when a record names a leader, also the same one again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, cast

from heirlog.metadata.journal import Journal
from heirlog.metadata.seats import Seats
from heirlog.metadata.state import (
    BrokerState,
    ControllerState,
    Ids,
    ListenerState,
    PartitionState,
    SupportedFeature,
    TopicState,
)
from heirlog.protocol.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    ZkMigrationStateRecord,
)
from heirlog.protocol.types import BrokerEpoch, BrokerId, Endpoint, LeaderEpoch, PartitionEpoch, Uuid

METADATA_VERSION: Final = "metadata.version"
ELR_VERSION: Final = "eligible.leader.replicas.version"
KRAFT_VERSION: Final = "kraft.version"

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4

LEADER_UNCHANGED: Final = -2
RECOVERY_STATE_UNCHANGED: Final = -1

ConfigKey = tuple[int, str]
"""(resource type, resource name); the name "" of BROKER_RESOURCE is the cluster-wide default."""


class UnsupportedRecord(Exception):
    """The log holds a record this version cannot apply: to go on would be to believe in a wrong cluster."""


class Image:
    def __init__(self) -> None:
        self.offset = -1
        """Offset of the last record applied; -1 before the first."""
        self.epoch = -1
        """Controller epoch (raft term) of that record."""
        self.brokers: dict[BrokerId, BrokerState] = {}
        self.controllers: dict[BrokerId, ControllerState] = {}
        self.topics: dict[Uuid, TopicState] = {}
        self.topic_ids: dict[str, Uuid] = {}
        self.partitions: dict[Uuid, dict[int, PartitionState]] = {}
        self.configs: dict[ConfigKey, dict[str, str]] = {}
        self.features: dict[str, int] = {}
        self.next_producer_id = 0
        self.leaders = Seats()
        """Also under -1: the leaderless partitions."""
        self.in_isr = Seats()
        self.in_elr = Seats()
        self.open_transaction: list[tuple[Any, int]] | None = None
        self._shared_ids: dict[Ids, Ids] = {}
        self._shared_directories: dict[tuple[Uuid, ...], tuple[Uuid, ...]] = {}

    # -- reading ------------------------------------------------------------------------------------------------

    @property
    def elr_enabled(self) -> bool:
        return self.features.get(ELR_VERSION, 0) >= 1

    @property
    def metadata_version(self) -> int:
        """0 before the first FeatureLevel record: nobody has bootstrapped this log."""
        return self.features.get(METADATA_VERSION, 0)

    def partition(self, topic_id: Uuid, partition: int) -> PartitionState | None:
        return self.partitions.get(topic_id, {}).get(partition)

    def topic_named(self, name: str) -> TopicState | None:
        topic_id = self.topic_ids.get(name)
        return None if topic_id is None else self.topics[topic_id]

    def partition_named(self, topic: str, partition: int) -> PartitionState | None:
        topic_id = self.topic_ids.get(topic)
        return None if topic_id is None else self.partitions[topic_id].get(partition)

    def config(self, kind: int, name: str, key: str) -> str | None:
        """The value stored for exactly this resource, no defaults."""
        return self.configs.get((kind, name), {}).get(key)

    def replicas_on(self, broker: BrokerId) -> Iterator[tuple[Uuid, int, PartitionState]]:
        """Every partition assigned to the broker. Looks at all partitions: for start-up and rare events."""
        for topic_id, partitions in self.partitions.items():
            for partition, state in partitions.items():
                if broker in state.replicas:
                    yield topic_id, partition, state

    def leaderless(self) -> list[tuple[Uuid, int]]:
        return self.leaders.of(BrokerId(-1))

    @property
    def partition_count(self) -> int:
        return sum(len(partitions) for partitions in self.partitions.values())

    def __eq__(self, other: object) -> bool:
        """Same cluster at the same place of the log, indexes included."""
        return isinstance(other, Image) and all(
            getattr(self, name) == getattr(other, name)
            for name in (
                "offset",
                "epoch",
                "brokers",
                "controllers",
                "topics",
                "topic_ids",
                "partitions",
                "configs",
                "features",
                "next_producer_id",
                "leaders",
                "in_isr",
                "in_elr",
                "open_transaction",
            )
        )

    __hash__ = None  # type: ignore[assignment]  # mutable

    # -- applying -----------------------------------------------------------------------------------------------

    def apply(self, record: Any, offset: int, epoch: int, journal: Journal | None = None) -> None:
        """Apply the record at `offset`. Raises UnsupportedRecord for a record type without meaning here."""
        self.offset, self.epoch = offset, epoch
        if self.open_transaction is not None:
            self._apply_in_transaction(record, offset, journal)
            return
        self._apply_now(record, offset, journal)

    def apply_all(self, records: Iterable[Any], base_offset: int, epoch: int, journal: Journal | None = None) -> None:
        for offset, record in enumerate(records, base_offset):
            self.apply(record, offset, epoch, journal)

    @classmethod
    def from_snapshot(cls, records: Iterable[Any], offset: int, epoch: int) -> Image:
        """The image that `records` of a snapshot describe; `offset` is the last offset the snapshot contains."""
        image = cls()
        for record in records:
            image.apply(record, offset, epoch)
        return image

    def _apply_now(self, record: Any, offset: int, journal: Journal | None) -> None:
        apply = _APPLY.get(type(record))
        if apply is None:
            raise UnsupportedRecord(
                f"offset {offset} of the metadata log holds a {type(record).__name__}, which this version of heirlog "
                "does not know how to apply; use a version that does"
            )
        apply(self, record, offset, journal)

    def _apply_in_transaction(self, record: Any, offset: int, journal: Journal | None) -> None:
        held = self.open_transaction
        assert held is not None
        if isinstance(record, EndTransactionRecord):
            self.open_transaction = None
            for held_record, held_offset in held:
                self._apply_now(held_record, held_offset, journal)
        elif isinstance(record, AbortTransactionRecord):
            self.open_transaction = None
        elif isinstance(record, BeginTransactionRecord):
            raise UnsupportedRecord(f"offset {offset} of the metadata log begins a transaction inside another one")
        elif not isinstance(record, NoOpRecord):
            held.append((record, offset))

    # -- the setters: one per kind of state, journal first ------------------------------------------------------

    def set_partition(
        self, topic_id: Uuid, partition: int, after: PartitionState | None, journal: Journal | None = None
    ) -> None:
        partitions = self.partitions[topic_id]
        before = partitions.get(partition)
        if journal is not None:
            journal.partitions.setdefault((topic_id, partition), before)
        if after is None:
            partitions.pop(partition, None)
        else:
            partitions[partition] = after
        isr, elr, leader = _seats(before)
        new_isr, new_elr, new_leader = _seats(after)
        if isr is not new_isr:
            self.in_isr.move(topic_id, partition, isr, new_isr)
        if elr is not new_elr:
            self.in_elr.move(topic_id, partition, elr, new_elr)
        if leader != new_leader:
            self.leaders.move(topic_id, partition, leader, new_leader)

    def set_topic(self, topic_id: Uuid, after: TopicState | None, journal: Journal | None = None) -> None:
        """Only a topic without partitions may be taken away."""
        before = self.topics.get(topic_id)
        if journal is not None:
            journal.topics.setdefault(topic_id, before)
        if before is not None and self.topic_ids.get(before.name) == topic_id:
            del self.topic_ids[before.name]
        if after is None:
            self.topics.pop(topic_id, None)
            left = self.partitions.pop(topic_id, None)
            assert not left, "a topic goes after its partitions"
            return
        self.topics[topic_id] = after
        self.topic_ids[after.name] = topic_id
        self.partitions.setdefault(topic_id, {})

    def set_broker(self, broker_id: BrokerId, after: BrokerState | None, journal: Journal | None = None) -> None:
        if journal is not None:
            journal.brokers.setdefault(broker_id, self.brokers.get(broker_id))
        _put(self.brokers, broker_id, after)

    def set_controller(self, node_id: BrokerId, after: ControllerState | None, journal: Journal | None = None) -> None:
        if journal is not None:
            journal.controllers.setdefault(node_id, self.controllers.get(node_id))
        _put(self.controllers, node_id, after)

    def set_config(self, kind: int, name: str, key: str, value: str | None, journal: Journal | None = None) -> None:
        stored = self.configs.get((kind, name), {})
        if journal is not None:
            journal.configs.setdefault((kind, name, key), stored.get(key))
        after = dict(stored)
        _put(after, key, value)
        if after:
            self.configs[(kind, name)] = after
        else:
            self.configs.pop((kind, name), None)

    def set_feature(self, name: str, level: int | None, journal: Journal | None = None) -> None:
        if journal is not None:
            journal.features.setdefault(name, self.features.get(name))
        _put(self.features, name, level)

    # -- snapshot -----------------------------------------------------------------------------------------------

    def records(self) -> Iterator[Any]:
        """The records that rebuild this image, in an order in which each finds what it refers to.

        Version-dependent fields are left to the encoder; feature levels come first, metadata.version before all.
        """
        assert self.open_transaction is None, "a snapshot inside a transaction would tear it"
        for name in sorted(self.features, key=lambda name: (name != METADATA_VERSION, name)):
            yield FeatureLevelRecord(name=name, feature_level=self.features[name])
        for node_id in sorted(self.controllers):
            yield _controller_record(self.controllers[node_id])
        for broker_id in sorted(self.brokers):
            yield broker_record(self.brokers[broker_id])
        for topic_id in sorted(self.topics):
            yield TopicRecord(name=self.topics[topic_id].name, topic_id=topic_id)
            partitions = self.partitions[topic_id]
            for partition in sorted(partitions):
                yield partition_record(topic_id, partition, partitions[partition])
        for kind, name in sorted(self.configs):
            for key, value in sorted(self.configs[(kind, name)].items()):
                yield ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)
        if self.next_producer_id:
            yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=self.next_producer_id)

    # -- sharing equal lists: 100,000 partitions have a few hundred distinct assignments ------------------------

    def share_ids(self, ids: Iterable[int]) -> Ids:
        value = cast(Ids, tuple(ids))
        return self._shared_ids.setdefault(value, value)

    def share_directories(self, directories: Iterable[bytes]) -> tuple[Uuid, ...]:
        value = cast(tuple[Uuid, ...], tuple(directories))
        return self._shared_directories.setdefault(value, value)


def _seats(state: PartitionState | None) -> tuple[Ids, Ids, Ids]:
    return ((), (), ()) if state is None else (state.isr, state.elr, (state.leader,))


def _put(target: dict[Any, Any], key: Any, value: Any) -> None:
    if value is None:
        target.pop(key, None)
    else:
        target[key] = value


# -- one function per record type -------------------------------------------------------------------------------


def _apply_register_broker(image: Image, record: RegisterBrokerRecord, offset: int, journal: Journal | None) -> None:
    broker_id = BrokerId(record.broker_id)
    state = BrokerState(
        id=broker_id,
        epoch=BrokerEpoch(record.broker_epoch),
        incarnation_id=Uuid(record.incarnation_id),
        listeners=_listeners(record.end_points),
        features=_features(record.features),
        rack=record.rack,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        directories=tuple(sorted(Uuid(directory) for directory in record.log_dirs or ())),
        registration_offset=offset,
    )
    image.set_broker(broker_id, state, journal)


def _apply_unregister_broker(
    image: Image, record: UnregisterBrokerRecord, offset: int, journal: Journal | None
) -> None:
    image.set_broker(BrokerId(record.broker_id), None, journal)


def _apply_broker_change(
    image: Image, record: BrokerRegistrationChangeRecord, offset: int, journal: Journal | None
) -> None:
    before = _registered(image, record.broker_id, record.broker_epoch, offset)
    directories = before.directories
    if record.log_dirs:
        directories = tuple(sorted(Uuid(directory) for directory in record.log_dirs))
    after = replace(
        before,
        fenced=before.fenced if record.fenced == 0 else record.fenced == 1,
        in_controlled_shutdown=before.in_controlled_shutdown or record.in_controlled_shutdown == 1,
        directories=directories,
    )
    image.set_broker(before.id, after, journal)


def _apply_fence_broker(image: Image, record: FenceBrokerRecord, offset: int, journal: Journal | None) -> None:
    before = _registered(image, record.id, record.epoch, offset)
    image.set_broker(before.id, replace(before, fenced=True), journal)


def _apply_unfence_broker(image: Image, record: UnfenceBrokerRecord, offset: int, journal: Journal | None) -> None:
    before = _registered(image, record.id, record.epoch, offset)
    image.set_broker(before.id, replace(before, fenced=False), journal)


def _registered(image: Image, broker_id: int, epoch: int, offset: int) -> BrokerState:
    broker = image.brokers.get(BrokerId(broker_id))
    if broker is None or broker.epoch != epoch:
        raise UnsupportedRecord(
            f"offset {offset} of the metadata log changes broker {broker_id} with epoch {epoch}, "
            f"but the registration at hand is {broker and broker.epoch}"
        )
    return broker


def _apply_topic(image: Image, record: TopicRecord, offset: int, journal: Journal | None) -> None:
    topic_id = Uuid(record.topic_id)
    other = image.topic_ids.get(record.name)
    if other is not None and other != topic_id:
        raise UnsupportedRecord(f"offset {offset} of the metadata log creates topic {record.name!r} a second time")
    image.set_topic(topic_id, TopicState(record.name, topic_id), journal)


def _apply_remove_topic(image: Image, record: RemoveTopicRecord, offset: int, journal: Journal | None) -> None:
    topic_id = Uuid(record.topic_id)
    topic = image.topics[topic_id]
    for partition in list(image.partitions[topic_id]):
        image.set_partition(topic_id, partition, None, journal)
    image.set_topic(topic_id, None, journal)
    for key in list(image.configs.get((TOPIC_RESOURCE, topic.name), ())):
        image.set_config(TOPIC_RESOURCE, topic.name, key, None, journal)


def _apply_partition(image: Image, record: PartitionRecord, offset: int, journal: Journal | None) -> None:
    ids = image.share_ids
    state = PartitionState(
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
    )
    image.set_partition(Uuid(record.topic_id), record.partition_id, state, journal)


def _apply_partition_change(image: Image, record: PartitionChangeRecord, offset: int, journal: Journal | None) -> None:
    topic_id = Uuid(record.topic_id)
    before = image.partitions[topic_id][record.partition_id]
    image.set_partition(topic_id, record.partition_id, merged(image, before, record), journal)


def merged(image: Image, before: PartitionState, record: PartitionChangeRecord) -> PartitionState:
    """`before` with the record's fields laid over it: what a reader of the record will see."""
    ids = image.share_ids
    names_leader = record.leader != LEADER_UNCHANGED
    recovery = record.leader_recovery_state
    return PartitionState(
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
    )


def _apply_clear_elr(image: Image, record: ClearElrRecord, offset: int, journal: Journal | None) -> None:
    if record.topic_name:
        topic_id = image.topic_ids.get(record.topic_name)
        cleared = [] if topic_id is None else [topic_id]
    else:
        cleared = list(image.partitions)
    for topic_id in cleared:
        for partition, before in list(image.partitions[topic_id].items()):
            if before.elr or before.last_known_elr:
                epoch = PartitionEpoch(before.partition_epoch + 1)
                after = replace(before, elr=(), last_known_elr=(), partition_epoch=epoch)
                image.set_partition(topic_id, partition, after, journal)


def _apply_config(image: Image, record: ConfigRecord, offset: int, journal: Journal | None) -> None:
    image.set_config(record.resource_type, record.resource_name, record.name, record.value, journal)


def _apply_feature_level(image: Image, record: FeatureLevelRecord, offset: int, journal: Journal | None) -> None:
    # level 0 of metadata.version does not exist; of every other feature it means "off", which is no entry
    image.set_feature(record.name, record.feature_level or None, journal)


def _apply_producer_ids(image: Image, record: ProducerIdsRecord, offset: int, journal: Journal | None) -> None:
    if journal is not None and journal.next_producer_id is None:
        journal.next_producer_id = image.next_producer_id
    image.next_producer_id = record.next_producer_id


def _apply_register_controller(
    image: Image, record: RegisterControllerRecord, offset: int, journal: Journal | None
) -> None:
    node_id = BrokerId(record.controller_id)
    state = ControllerState(
        id=node_id,
        incarnation_id=Uuid(record.incarnation_id),
        listeners=_listeners(record.end_points),
        features=_features(record.features),
    )
    image.set_controller(node_id, state, journal)


def _apply_begin_transaction(
    image: Image, record: BeginTransactionRecord, offset: int, journal: Journal | None
) -> None:
    image.open_transaction = []


def _apply_end_outside(
    image: Image, record: EndTransactionRecord | AbortTransactionRecord, offset: int, journal: Journal | None
) -> None:
    raise UnsupportedRecord(f"offset {offset} of the metadata log ends a transaction that was never begun")


def _apply_nothing(image: Image, record: Any, offset: int, journal: Journal | None) -> None:
    """NoOp, and the ZooKeeper migration state (always "none") that Kafka writes into every bootstrap."""


_APPLY: dict[type[Any], Callable[[Image, Any, int, Journal | None], None]] = {
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
    BeginTransactionRecord: _apply_begin_transaction,
    EndTransactionRecord: _apply_end_outside,
    AbortTransactionRecord: _apply_end_outside,
    NoOpRecord: _apply_nothing,
    ZkMigrationStateRecord: _apply_nothing,
}


# -- states as records ------------------------------------------------------------------------------------------


def broker_record(broker: BrokerState) -> RegisterBrokerRecord:
    """The registration record that recreates `broker`, its fencing and shutdown flags included."""
    return RegisterBrokerRecord(
        broker_id=broker.id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[
            RegisterBrokerRecord.BrokerEndpoint(
                name=listener.name,
                host=listener.endpoint.host,
                port=listener.endpoint.port,
                security_protocol=listener.security_protocol,
            )
            for listener in broker.listeners
        ],
        features=[
            RegisterBrokerRecord.BrokerFeature(
                name=feature.name,
                min_supported_version=feature.min_version,
                max_supported_version=feature.max_version,
            )
            for feature in broker.features
        ],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.directories),
    )


def partition_record(topic_id: Uuid, partition: int, state: PartitionState) -> PartitionRecord:
    return PartitionRecord(
        partition_id=partition,
        topic_id=topic_id,
        replicas=list(state.replicas),
        isr=list(state.isr),
        removing_replicas=list(state.removing),
        adding_replicas=list(state.adding),
        leader=state.leader,
        leader_recovery_state=state.leader_recovery_state,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        directories=list(state.directories),
        # null and empty mean the same to a reader; null is what Kafka writes and costs no bytes
        eligible_leader_replicas=list(state.elr) or None,
        last_known_elr=list(state.last_known_elr) or None,
    )


def _controller_record(controller: ControllerState) -> RegisterControllerRecord:
    return RegisterControllerRecord(
        controller_id=controller.id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=False,
        end_points=[
            RegisterControllerRecord.ControllerEndpoint(
                name=listener.name,
                host=listener.endpoint.host,
                port=listener.endpoint.port,
                security_protocol=listener.security_protocol,
            )
            for listener in controller.listeners
        ],
        features=[
            RegisterControllerRecord.ControllerFeature(
                name=feature.name,
                min_supported_version=feature.min_version,
                max_supported_version=feature.max_version,
            )
            for feature in controller.features
        ],
    )


def _listeners(end_points: Iterable[Any]) -> tuple[ListenerState, ...]:
    return tuple(
        ListenerState(point.name, Endpoint(point.host, point.port), point.security_protocol) for point in end_points
    )


def _features(features: Iterable[Any]) -> tuple[SupportedFeature, ...]:
    return tuple(
        SupportedFeature(feature.name, feature.min_supported_version, feature.max_supported_version)
        for feature in features
    )
