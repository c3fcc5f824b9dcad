"""What DescribeRecovery tells."""

from __future__ import annotations

from controller.recovering import back, lost

from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeRecoveryRequest


def test_replicas_can_be_asked_where_nothing_recovers() -> None:
    cluster = back(lost(unclean_recovery_strategy="None"), 1, 3)
    assert cluster.describe().topics[0].partitions[0].state == "ManualElectionRequired"
    assert cluster.asked() == []
    seen = cluster.describe(ask_replicas=True).topics[0].partitions[0]
    assert cluster.asked() == [1, 2, 3]
    assert [replica.is_being_asked for replica in seen.replicas] == [True, True, True]
    cluster.reply(1, 3, 30)
    cluster.fail(2)
    seen = cluster.describe().topics[0].partitions[0]
    assert [(r.is_valid, r.log_end_offset, r.is_fenced) for r in seen.replicas] == [
        (True, 30, False),
        (False, -1, True),
        (False, -1, False),
    ]
    assert cluster.leader() == -1
    cluster.advance(60_000)
    cluster.fail(3)
    assert 3 not in cluster.asked(), "an operator's question is not repeated for ever"


def test_a_description_says_whose_logs_may_lack_records() -> None:
    cluster = back(lost(unclean_recovery_strategy="None"), 1, 3)
    cluster.describe(ask_replicas=True)
    cluster.reply(1, 3, 30, may_lack_records=True)
    cluster.reply(3, 3, 30)
    seen = cluster.describe().topics[0].partitions[0]
    assert [replica.may_lack_records for replica in seen.replicas] == [True, False, False]


def test_a_description_comes_in_pages() -> None:
    cluster = lost(partitions=5)
    first = cluster.describe(topics=[], response_partition_limit=3)
    assert [p.partition_index for topic in first.topics for p in topic.partitions] == [0, 1, 2]
    cursor = DescribeRecoveryRequest.Cursor(
        topic_name=first.next_cursor.topic_name, partition_index=first.next_cursor.partition_index
    )
    second = cluster.describe(topics=[], response_partition_limit=3, cursor=cursor)
    assert [p.partition_index for topic in second.topics for p in topic.partitions] == [3, 4]
    assert second.next_cursor is None
    unknown = cluster.describe(topics=[DescribeRecoveryRequest.TopicRequest(name="nope")])
    assert unknown.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
