"""What no sequence sends: after it, nodes of Apache Kafka do not answer, or hold other things than heirlog."""

from __future__ import annotations

from answers.scene import NODE_ID
from answers.shape import Plan
from answers.world import Batch

PRODUCE, JOIN, CREATE_TOPICS, WRITE_TXN_MARKERS, ALTER_CONFIGS, UNREGISTER = 0, 11, 19, 27, 33, 64
ADD_PARTITIONS_TO_TXN = 24
CONSUMER_GROUP_HEARTBEAT, SHARE_FETCH, SHARE_ACKNOWLEDGE, DESCRIBE_SHARE_GROUP_OFFSETS = 68, 78, 79, 90
PARTITIONS = {"a": 3, "b": 1}
"""Of the topics of a sequence, by the last letter of their names."""
CHANGES_CONFIGS = (ALTER_CONFIGS, 44)
CLIENT_METRICS = 16
INT_MAX = 2**31 - 1


def is_stored_in_two_ways(plan: Plan) -> bool:
    """A Produce with a transactional batch, or with a partition twice, which deviations.py names."""
    if plan.key != PRODUCE:
        return False
    by = "topic_id" if plan.version >= 13 else "name"
    parts = [(topic[by], part) for topic in plan.fields["topic_data"] for part in topic["partition_data"]]
    is_transactional = any(isinstance(part["records"], Batch) and part["records"].transactional for _, part in parts)
    return is_transactional or len({(topic, part["index"]) for topic, part in parts}) < len(parts)


def goes_ahead(plan: Plan, changed: Plan) -> bool:
    """A marker with an epoch that its producer has not reached: Apache Kafka never completes that one's transaction."""
    if plan.key != WRITE_TXN_MARKERS:
        return False
    (most,) = [marker["producer_epoch"] for marker in plan.fields["markers"]]
    return any(marker["producer_epoch"] > most for marker in changed.fields["markers"])


def ends_it(plan: Plan) -> bool:
    """Whether a node does not answer any more, or has from then on what others do not have.

    Apache Kafka does not answer null for records, a resource twice in AlterConfigs, a protocol twice in JoinGroup, a
    partition twice in a marker of WriteTxnMarkers, an AddPartitionsToTxn without transactions, and several partitions
    of which one does not exist in DescribeShareGroupOffsets; a broker that is unregistered does not answer. Only Apache
    Kafka keeps configurations of client metrics. Of what is twice in a ShareAcknowledge it takes the last item.
    """
    if plan.key == CREATE_TOPICS:
        # which Apache Kafka adds up in 32 bits, and then places them all
        return sum(topic["num_partitions"] for topic in plan.fields["topics"]) > INT_MAX
    if plan.key == JOIN:
        protocols = [protocol["name"] for protocol in plan.fields["protocols"]]
        # a member without an id that no client knows would be sorted by an id that each node makes itself
        return len(set(protocols)) < len(protocols) or not plan.fields["member_id"]
    if plan.key == CONSUMER_GROUP_HEARTBEAT:
        # an id that each node makes itself, by which it sorts the member
        return plan.version == 0 and not plan.fields["member_id"]
    if plan.key == UNREGISTER:
        return bool(plan.fields["broker_id"] == NODE_ID)
    if plan.key == PRODUCE:
        return any(not part["records"] for topic in plan.fields["topic_data"] for part in topic["partition_data"])
    if plan.key in (SHARE_FETCH, SHARE_ACKNOWLEDGE):
        parts = [(t["topic_id"], part["partition_index"]) for t in plan.fields["topics"] for part in t["partitions"]]
        return len(set(parts)) < len(parts)
    if plan.key == DESCRIBE_SHARE_GROUP_OFFSETS:
        return any(
            len(topic["partitions"]) > 1
            and not all(0 <= index < PARTITIONS.get(topic["topic_name"][-1:], 0) for index in topic["partitions"])
            for group in plan.fields["groups"]
            for topic in group["topics"] or ()
        )
    if plan.key == ADD_PARTITIONS_TO_TXN:
        return plan.version >= 4 and not plan.fields["transactions"]
    if plan.key == WRITE_TXN_MARKERS:
        return any(
            len(set(parts)) < len(parts)
            for marker in plan.fields["markers"]
            for parts in [[(t["name"], index) for t in marker["topics"] for index in t["partition_indexes"]]]
        )
    named = [(resource["resource_type"], resource["resource_name"]) for resource in plan.fields.get("resources", ())]
    if plan.key in CHANGES_CONFIGS and any(kind == CLIENT_METRICS for kind, _ in named):
        return True
    return plan.key == ALTER_CONFIGS and len(set(named)) < len(named)
