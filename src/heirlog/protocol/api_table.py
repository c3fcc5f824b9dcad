"""Written by `python -m heirlog.protocol.generator` from specs/messages. Do not edit."""

# fmt: off

from __future__ import annotations

# key: (name, first version, last version, first flexible version, module)
TABLE: dict[int, tuple[str, int, int, int, str]] = {
    0: ("Produce", 3, 13, 9, "produce"),
    1: ("Fetch", 4, 18, 12, "fetch"),
    2: ("ListOffsets", 1, 11, 6, "list_offsets"),
    3: ("Metadata", 0, 13, 9, "metadata"),
    8: ("OffsetCommit", 2, 10, 8, "offset_commit"),
    9: ("OffsetFetch", 1, 10, 6, "offset_fetch"),
    10: ("FindCoordinator", 0, 6, 3, "find_coordinator"),
    11: ("JoinGroup", 0, 9, 6, "join_group"),
    12: ("Heartbeat", 0, 4, 4, "heartbeat"),
    13: ("LeaveGroup", 0, 5, 4, "leave_group"),
    14: ("SyncGroup", 0, 5, 4, "sync_group"),
    15: ("DescribeGroups", 0, 6, 5, "describe_groups"),
    16: ("ListGroups", 0, 5, 3, "list_groups"),
    18: ("ApiVersions", 0, 4, 3, "api_versions"),
    19: ("CreateTopics", 2, 7, 5, "create_topics"),
    20: ("DeleteTopics", 1, 6, 4, "delete_topics"),
    22: ("InitProducerId", 0, 5, 2, "init_producer_id"),
    23: ("OffsetForLeaderEpoch", 2, 4, 4, "offset_for_leader_epoch"),
    32: ("DescribeConfigs", 1, 4, 4, "describe_configs"),
    42: ("DeleteGroups", 0, 2, 2, "delete_groups"),
    43: ("ElectLeaders", 0, 2, 2, "elect_leaders"),
    44: ("IncrementalAlterConfigs", 0, 1, 1, "incremental_alter_configs"),
    47: ("OffsetDelete", 0, 0, 32767, "offset_delete"),
    52: ("Vote", 0, 2, 0, "vote"),
    53: ("BeginQuorumEpoch", 0, 1, 1, "begin_quorum_epoch"),
    54: ("EndQuorumEpoch", 0, 1, 1, "end_quorum_epoch"),
    55: ("DescribeQuorum", 0, 2, 0, "describe_quorum"),
    56: ("AlterPartition", 2, 3, 2, "alter_partition"),
    58: ("Envelope", 0, 0, 0, "envelope"),
    59: ("FetchSnapshot", 0, 1, 0, "fetch_snapshot"),
    60: ("DescribeCluster", 0, 2, 0, "describe_cluster"),
    62: ("BrokerRegistration", 0, 4, 0, "broker_registration"),
    63: ("BrokerHeartbeat", 0, 1, 0, "broker_heartbeat"),
    67: ("AllocateProducerIds", 0, 0, 0, "allocate_producer_ids"),
    70: ("ControllerRegistration", 0, 0, 0, "controller_registration"),
    75: ("DescribeTopicPartitions", 0, 0, 0, "describe_topic_partitions"),
}
