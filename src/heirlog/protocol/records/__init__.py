"""Metadata and control records, written by `heirlog.protocol.generator` from specs/records."""

# fmt: off

from __future__ import annotations

from heirlog.protocol.primitives import Message
from heirlog.protocol.records.abort_transaction import AbortTransactionRecord
from heirlog.protocol.records.access_control_entry import AccessControlEntryRecord
from heirlog.protocol.records.begin_transaction import BeginTransactionRecord
from heirlog.protocol.records.broker_registration_change import BrokerRegistrationChangeRecord
from heirlog.protocol.records.clear_elr import ClearElrRecord
from heirlog.protocol.records.config import ConfigRecord
from heirlog.protocol.records.end_transaction import EndTransactionRecord
from heirlog.protocol.records.feature_level import FeatureLevelRecord
from heirlog.protocol.records.fence_broker import FenceBrokerRecord
from heirlog.protocol.records.group_metadata_key import GroupMetadataKey
from heirlog.protocol.records.group_metadata_value import GroupMetadataValue
from heirlog.protocol.records.k_raft_version import KRaftVersionRecord
from heirlog.protocol.records.leader_change_message import LeaderChangeMessage
from heirlog.protocol.records.no_op import NoOpRecord
from heirlog.protocol.records.offset_commit_key import OffsetCommitKey
from heirlog.protocol.records.offset_commit_value import OffsetCommitValue
from heirlog.protocol.records.partition import PartitionRecord
from heirlog.protocol.records.partition_change import PartitionChangeRecord
from heirlog.protocol.records.producer_ids import ProducerIdsRecord
from heirlog.protocol.records.register_broker import RegisterBrokerRecord
from heirlog.protocol.records.register_controller import RegisterControllerRecord
from heirlog.protocol.records.remove_access_control_entry import RemoveAccessControlEntryRecord
from heirlog.protocol.records.remove_topic import RemoveTopicRecord
from heirlog.protocol.records.snapshot_footer import SnapshotFooterRecord
from heirlog.protocol.records.snapshot_header import SnapshotHeaderRecord
from heirlog.protocol.records.topic import TopicRecord
from heirlog.protocol.records.unfence_broker import UnfenceBrokerRecord
from heirlog.protocol.records.unregister_broker import UnregisterBrokerRecord
from heirlog.protocol.records.voters import VotersRecord
from heirlog.protocol.records.zk_migration_state import ZkMigrationStateRecord

METADATA_RECORDS: dict[int, type[Message]] = {
    0: RegisterBrokerRecord,
    1: UnregisterBrokerRecord,
    2: TopicRecord,
    3: PartitionRecord,
    4: ConfigRecord,
    5: PartitionChangeRecord,
    7: FenceBrokerRecord,
    8: UnfenceBrokerRecord,
    9: RemoveTopicRecord,
    12: FeatureLevelRecord,
    15: ProducerIdsRecord,
    17: BrokerRegistrationChangeRecord,
    18: AccessControlEntryRecord,
    19: RemoveAccessControlEntryRecord,
    20: NoOpRecord,
    21: ZkMigrationStateRecord,
    23: BeginTransactionRecord,
    24: EndTransactionRecord,
    25: AbortTransactionRecord,
    27: RegisterControllerRecord,
    28: ClearElrRecord,
}

CONTROL_RECORDS: dict[int, type[Message]] = {
    2: LeaderChangeMessage,
    3: SnapshotHeaderRecord,
    4: SnapshotFooterRecord,
    5: KRaftVersionRecord,
    6: VotersRecord,
}

__all__ = [
    "CONTROL_RECORDS",
    "METADATA_RECORDS",
    "AbortTransactionRecord",
    "AccessControlEntryRecord",
    "BeginTransactionRecord",
    "BrokerRegistrationChangeRecord",
    "ClearElrRecord",
    "ConfigRecord",
    "EndTransactionRecord",
    "FeatureLevelRecord",
    "FenceBrokerRecord",
    "GroupMetadataKey",
    "GroupMetadataValue",
    "KRaftVersionRecord",
    "LeaderChangeMessage",
    "NoOpRecord",
    "OffsetCommitKey",
    "OffsetCommitValue",
    "PartitionChangeRecord",
    "PartitionRecord",
    "ProducerIdsRecord",
    "RegisterBrokerRecord",
    "RegisterControllerRecord",
    "RemoveAccessControlEntryRecord",
    "RemoveTopicRecord",
    "SnapshotFooterRecord",
    "SnapshotHeaderRecord",
    "TopicRecord",
    "UnfenceBrokerRecord",
    "UnregisterBrokerRecord",
    "VotersRecord",
    "ZkMigrationStateRecord",
]
