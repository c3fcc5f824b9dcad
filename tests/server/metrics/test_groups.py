"""What a broker shows of the groups and of the states of share groups that it coordinates."""

from __future__ import annotations

from apis import groups, shares, test_consumer_group_heartbeat
from apis.guarded import ADMIN, Guarded
from apis.share_members import ACCEPT, Member, share_topic
from server.metrics.scraped import scrape

from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import OffsetDeleteRequest

COORDINATOR = "kafka_server_group_coordinator_metrics_"
STATES = "kafka_server_share_coordinator_metrics_"


def test_rebalances_count_by_the_type_of_the_group() -> None:
    node = Guarded()
    node.create_topics("t", "__consumer_offsets")
    groups.joined(node, "classic")
    for member in ("m", "n"):
        node.ask(test_consumer_group_heartbeat.joining("next", member), principal=ADMIN)
    shares.joined(node, "shared")
    found = scrape(node.node)
    assert found(COORDINATOR + "group_completed_rebalance_count") == 1
    assert found(COORDINATOR + "consumer_group_rebalance_count") == 2
    # when its member joined, and when the state of its topic was initialized
    assert found(COORDINATOR + "share_group_rebalance_count") == 2


def test_offsets_count_when_they_are_committed_and_deleted() -> None:
    node = Guarded()
    node.create_topics("t", "u", "__consumer_offsets")
    groups.coordinate(node)
    assert not node.ask(groups.committing("g", "t", "u"), 8, ADMIN).topics[0].partitions[0].error_code
    R = OffsetDeleteRequest
    partition = R.OffsetDeleteRequestPartition(partition_index=0)
    answer = node.ask(
        R(group_id="g", topics=[R.OffsetDeleteRequestTopic(name="t", partitions=[partition])]), principal=ADMIN
    )
    assert answer.error_code == ErrorCode.NONE
    found = scrape(node.node)
    assert found(COORDINATOR + "offset_commit_count") == 2
    assert found(COORDINATOR + "offset_deletion_count") == 1
    assert found(COORDINATOR + "offset_expiration_count") == 0


def test_writes_of_the_share_coordinator_count() -> None:
    node = Guarded()
    topic = share_topic(node, "t", "g")
    node.write("t", b"a")
    before = scrape(node.node)(STATES + "write_total")
    member = Member(node, "g", topic)
    member.fetch()
    member.acknowledge((0, 0, [ACCEPT]))
    node.wait(lambda: scrape(node.node)(STATES + "write_total") > before)
