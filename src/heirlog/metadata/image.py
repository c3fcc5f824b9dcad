"""The cluster as the metadata log up to one offset describes it.

    record --apply--> image           the only way in (`set_*` below are for `apply` and `undo`)
    image --records--> snapshot       the records that rebuild it, FeatureLevel first

What a reader may rely on:

* States are frozen values; two images (speculative and committed) share them.
* Partition changes pass through `set_partition`, which alone keeps `leaders`, `in_isr` and `in_elr` in step.
* Records between BeginTransaction and EndTransaction are held back and applied at the End; an Abort drops them.
  `offset` still grows meanwhile (they *have* been read), so take no snapshot while `open_transaction` is not None.
* The image does not check records: it applies them. The code that makes records has the rules.

`apply.py` has the effect of each record, and `as_records.py` turns states into records again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from heirlog.metadata.acls import Acl, Acls
from heirlog.metadata.as_records import (
    acl_record,
    broker_record,
    client_quota_record,
    controller_record,
    delegation_token_record,
    partition_record,
    scram_record,
)
from heirlog.metadata.broker_partitions import BrokerPartitions
from heirlog.metadata.client_quotas import ClientQuotas, Entity
from heirlog.metadata.delegation_tokens import DelegationToken
from heirlog.metadata.journal import ImageJournal
from heirlog.metadata.state import (
    BROKER_RESOURCE,
    ELR_VERSION,
    GROUP_RESOURCE,
    GROUP_VERSION,
    KRAFT_VERSION,
    LEADER_UNCHANGED,
    METADATA_VERSION,
    RECOVERY_STATE_UNCHANGED,
    RECOVERY_VERSION,
    SHARE_VERSION,
    TOPIC_RESOURCE,
    TRANSACTION_VERSION,
    BrokerRegistration,
    ControllerRegistration,
    Ids,
    PartitionRegistration,
    ScramKey,
    TopicImage,
)
from heirlog.protocol.records import (
    ConfigRecord,
    FeatureLevelRecord,
    ProducerIdsRecord,
    TopicRecord,
)
from heirlog.protocol.types import BrokerId, PartitionKey, Uuid
from heirlog.security.scram import ScramCredential

__all__ = [
    "BROKER_RESOURCE",
    "ELR_VERSION",
    "GROUP_RESOURCE",
    "GROUP_VERSION",
    "KRAFT_VERSION",
    "LEADER_UNCHANGED",
    "METADATA_VERSION",
    "RECOVERY_STATE_UNCHANGED",
    "RECOVERY_VERSION",
    "SHARE_VERSION",
    "TOPIC_RESOURCE",
    "TRANSACTION_VERSION",
    "ConfigKey",
    "Image",
    "broker_record",
    "partition_record",
]

ConfigKey = tuple[int, str]
"""(resource type, resource name); the name "" of BROKER_RESOURCE is the cluster-wide default."""


class Image:
    def __init__(self) -> None:
        self.offset = -1
        """Offset of the last record applied; -1 before the first."""
        self.epoch = -1
        """Controller epoch (raft term) of that record."""
        self.brokers: dict[BrokerId, BrokerRegistration] = {}
        self.controllers: dict[BrokerId, ControllerRegistration] = {}
        self.topics: dict[Uuid, TopicImage] = {}
        self.topic_ids: dict[str, Uuid] = {}
        self.partitions: dict[Uuid, dict[int, PartitionRegistration]] = {}
        self.configs: dict[ConfigKey, dict[str, str]] = {}
        self.features: dict[str, int] = {}
        self.next_producer_id = 0
        self.acls = Acls()
        self.scram: dict[ScramKey, ScramCredential] = {}
        """What clients prove their passwords by."""
        self.delegation_tokens: dict[str, DelegationToken] = {}
        """By id."""
        self.client_quotas = ClientQuotas()
        self.leaders = BrokerPartitions()
        """Also under -1: the leaderless partitions."""
        self.in_isr = BrokerPartitions()
        self.in_elr = BrokerPartitions()
        self.open_transaction: list[tuple[Any, int]] | None = None
        self._shared_ids: dict[Ids, Ids] = {}
        self._shared_directories: dict[tuple[Uuid, ...], tuple[Uuid, ...]] = {}

    # -- reading ------------------------------------------------------------------------------------------------

    @property
    def elr_enabled(self) -> bool:
        return self.features.get(ELR_VERSION, 0) >= 1

    @property
    def recovery_manager_enabled(self) -> bool:
        """Whether the unclean recovery manager is on: everywhere, or nowhere."""
        return self.features.get(RECOVERY_VERSION, 0) >= 1

    @property
    def transaction_version(self) -> int:
        return self.features.get(TRANSACTION_VERSION, 0)

    @property
    def group_version(self) -> int:
        """Level of group.version: from 1 on groups may use the consumer protocol (KIP-848)."""
        return self.features.get(GROUP_VERSION, 0)

    @property
    def share_version(self) -> int:
        """Level of share.version: from 1 on there are share groups (KIP-932)."""
        return self.features.get(SHARE_VERSION, 0)

    @property
    def metadata_version(self) -> int:
        """0 before the first FeatureLevel record: this log is not bootstrapped yet."""
        return self.features.get(METADATA_VERSION, 0)

    def partition(self, topic_id: Uuid, partition: int) -> PartitionRegistration | None:
        return self.partitions.get(topic_id, {}).get(partition)

    def topic_named(self, name: str) -> TopicImage | None:
        topic_id = self.topic_ids.get(name)
        return None if topic_id is None else self.topics[topic_id]

    def partition_named(self, topic: str, partition: int) -> PartitionRegistration | None:
        topic_id = self.topic_ids.get(topic)
        return None if topic_id is None else self.partitions[topic_id].get(partition)

    def config(self, kind: int, name: str, key: str) -> str | None:
        """The value stored for exactly this resource, no defaults."""
        return self.configs.get((kind, name), {}).get(key)

    def replicas_on(self, broker: BrokerId) -> Iterator[tuple[Uuid, int, PartitionRegistration]]:
        """Every partition assigned to the broker. Looks at all partitions: for start-up and rare events."""
        for topic_id, partitions in self.partitions.items():
            for partition, state in partitions.items():
                if broker in state.replicas:
                    yield topic_id, partition, state

    def leaderless(self) -> list[PartitionKey]:
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
                "acls",
                "scram",
                "delegation_tokens",
                "client_quotas",
                "leaders",
                "in_isr",
                "in_elr",
                "open_transaction",
            )
        )

    __hash__ = None  # type: ignore[assignment]  # mutable

    def copy(self) -> Image:
        """An equal image; what is applied to one of the two does not change the other. The values are shared."""
        other = Image()
        other.offset, other.epoch, other.next_producer_id = self.offset, self.epoch, self.next_producer_id
        other.brokers, other.controllers = dict(self.brokers), dict(self.controllers)
        other.topics, other.topic_ids = dict(self.topics), dict(self.topic_ids)
        other.partitions = {topic_id: dict(partitions) for topic_id, partitions in self.partitions.items()}
        # `set_config` replaces the dictionary of a resource
        other.configs, other.features = dict(self.configs), dict(self.features)
        other.acls, other.client_quotas = self.acls.copy(), self.client_quotas.copy()
        other.scram, other.delegation_tokens = dict(self.scram), dict(self.delegation_tokens)
        other.leaders, other.in_isr, other.in_elr = self.leaders.copy(), self.in_isr.copy(), self.in_elr.copy()
        other.open_transaction = None if self.open_transaction is None else list(self.open_transaction)
        other._shared_ids, other._shared_directories = dict(self._shared_ids), dict(self._shared_directories)
        return other

    # -- the way back -------------------------------------------------------------------------------------------

    def journal(self) -> ImageJournal:
        """Remembers, from now on, what the records change that are applied with it."""
        return ImageJournal(self.offset, self.epoch, self.open_transaction)

    def undo(self, journal: ImageJournal) -> None:
        """Put everything back. The journal must be the newest one not yet undone."""
        for topic_id, topic in journal.topics.items():
            if topic is not None:
                self.set_topic(topic_id, topic)
        for (topic_id, partition), state in journal.partitions.items():
            # one that came and went together with its topic has nothing to be put back into
            if topic_id in self.partitions:
                self.set_partition(topic_id, partition, state)
        for topic_id, topic in journal.topics.items():
            if topic is None:
                self.set_topic(topic_id, None)
        for broker_id, broker in journal.brokers.items():
            self.set_broker(broker_id, broker)
        for controller_id, controller in journal.controllers.items():
            self.set_controller(controller_id, controller)
        for (kind, name, key), value in journal.configs.items():
            self.set_config(kind, name, key, value)
        for feature, level in journal.features.items():
            self.set_feature(feature, level)
        if journal.next_producer_id is not None:
            self.next_producer_id = journal.next_producer_id
        for acl_id, acl in journal.acls.items():
            self.set_acl(acl_id, acl)
        for of_user, credential in journal.scram.items():
            self.set_scram(of_user, credential)
        for token_id, token in journal.delegation_tokens.items():
            self.set_delegation_token(token_id, token)
        for (entity, key), quota in journal.client_quotas.items():
            self.set_client_quota(entity, key, quota)
        transaction = journal.transaction
        self.open_transaction = None if transaction is None else transaction[: journal.transaction_length]
        self.offset, self.epoch = journal.offset, journal.epoch

    # -- the setters: one per kind of state, journal first ------------------------------------------------------

    def set_partition(
        self, topic_id: Uuid, partition: int, after: PartitionRegistration | None, journal: ImageJournal | None = None
    ) -> None:
        partitions = self.partitions[topic_id]
        before = partitions.get(partition)
        if journal is not None:
            journal.partitions.setdefault((topic_id, partition), before)
        if after is None:
            partitions.pop(partition, None)
        else:
            partitions[partition] = after
        isr, elr, leader = _isr_elr_leader(before)
        new_isr, new_elr, new_leader = _isr_elr_leader(after)
        if isr is not new_isr:
            self.in_isr.move(topic_id, partition, isr, new_isr)
        if elr is not new_elr:
            self.in_elr.move(topic_id, partition, elr, new_elr)
        if leader != new_leader:
            self.leaders.move(topic_id, partition, leader, new_leader)

    def set_topic(self, topic_id: Uuid, after: TopicImage | None, journal: ImageJournal | None = None) -> None:
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

    def set_broker(
        self, broker_id: BrokerId, after: BrokerRegistration | None, journal: ImageJournal | None = None
    ) -> None:
        if journal is not None:
            journal.brokers.setdefault(broker_id, self.brokers.get(broker_id))
        _put(self.brokers, broker_id, after)

    def set_controller(
        self, node_id: BrokerId, after: ControllerRegistration | None, journal: ImageJournal | None = None
    ) -> None:
        if journal is not None:
            journal.controllers.setdefault(node_id, self.controllers.get(node_id))
        _put(self.controllers, node_id, after)

    def set_config(
        self, kind: int, name: str, key: str, value: str | None, journal: ImageJournal | None = None
    ) -> None:
        stored = self.configs.get((kind, name), {})
        if journal is not None:
            journal.configs.setdefault((kind, name, key), stored.get(key))
        after = dict(stored)
        _put(after, key, value)
        if after:
            self.configs[(kind, name)] = after
        else:
            self.configs.pop((kind, name), None)

    def set_feature(self, name: str, level: int | None, journal: ImageJournal | None = None) -> None:
        if journal is not None:
            journal.features.setdefault(name, self.features.get(name))
        _put(self.features, name, level)

    def set_acl(self, acl_id: Uuid, after: Acl | None, journal: ImageJournal | None = None) -> None:
        if journal is not None:
            journal.acls.setdefault(acl_id, self.acls.by_id.get(acl_id))
        self.acls.put(acl_id, after)

    def set_scram(self, key: ScramKey, after: ScramCredential | None, journal: ImageJournal | None = None) -> None:
        if journal is not None:
            journal.scram.setdefault(key, self.scram.get(key))
        _put(self.scram, key, after)

    def set_delegation_token(
        self, token_id: str, after: DelegationToken | None, journal: ImageJournal | None = None
    ) -> None:
        if journal is not None:
            journal.delegation_tokens.setdefault(token_id, self.delegation_tokens.get(token_id))
        _put(self.delegation_tokens, token_id, after)

    def set_client_quota(
        self, entity: Entity, key: str, after: float | None, journal: ImageJournal | None = None
    ) -> None:
        if journal is not None:
            journal.client_quotas.setdefault((entity, key), self.client_quotas.value(entity, key))
        self.client_quotas.put(entity, key, after)

    # -- snapshot -----------------------------------------------------------------------------------------------

    def records(self) -> Iterator[Any]:
        """The records that rebuild this image, in an order in which each finds what it refers to.

        All of them describe the image as it is now: a large one is read over several turns, and changes meanwhile.
        Version-dependent fields are left to the encoder; feature levels come first, metadata.version before all.
        """
        assert self.open_transaction is None, "a snapshot inside a transaction would tear it"
        features, next_producer_id = dict(self.features), self.next_producer_id
        controllers, brokers, topics = dict(self.controllers), dict(self.brokers), dict(self.topics)
        # the states are frozen; `set_config` and `set_client_quota` replace the dictionary of a resource
        partitions_of = {topic_id: dict(partitions) for topic_id, partitions in self.partitions.items()}
        configs, acls, scram = dict(self.configs), dict(self.acls.by_id), dict(self.scram)
        tokens, client_quotas = dict(self.delegation_tokens), dict(self.client_quotas.by_entity)

        def in_order() -> Iterator[Any]:
            for name in sorted(features, key=lambda name: (name != METADATA_VERSION, name)):
                yield FeatureLevelRecord(name=name, feature_level=features[name])
            for node_id in sorted(controllers):
                yield controller_record(controllers[node_id])
            for broker_id in sorted(brokers):
                yield broker_record(brokers[broker_id])
            for topic_id in sorted(topics):
                yield TopicRecord(name=topics[topic_id].name, topic_id=topic_id)
                partitions = partitions_of[topic_id]
                for partition in sorted(partitions):
                    yield partition_record(topic_id, partition, partitions[partition])
            for kind, name in sorted(configs):
                for key, value in sorted(configs[(kind, name)].items()):
                    yield ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)
            if next_producer_id:
                yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=next_producer_id)
            for acl_id in sorted(acls):
                yield acl_record(acl_id, acls[acl_id])
            for of_user in sorted(scram):
                yield scram_record(of_user, scram[of_user])
            for token_id in sorted(tokens):
                yield delegation_token_record(tokens[token_id])
            for entity, quotas in client_quotas.items():
                for quota, limit in sorted(quotas.items()):
                    yield client_quota_record(entity, quota, limit)

        return in_order()

    # -- sharing equal lists: 100,000 partitions have a few hundred distinct assignments ------------------------

    def share_ids(self, ids: Iterable[int]) -> Ids:
        value = cast(Ids, tuple(ids))
        return self._shared_ids.setdefault(value, value) if value else ()

    def share_directories(self, directories: Iterable[bytes]) -> tuple[Uuid, ...]:
        value = cast(tuple[Uuid, ...], tuple(directories))
        return self._shared_directories.setdefault(value, value)


def _isr_elr_leader(state: PartitionRegistration | None) -> tuple[Ids, Ids, Ids]:
    return ((), (), ()) if state is None else (state.isr, state.elr, (state.leader,))


def _put(target: dict[Any, Any], key: Any, value: Any) -> None:
    if value is None:
        target.pop(key, None)
    else:
        target[key] = value
