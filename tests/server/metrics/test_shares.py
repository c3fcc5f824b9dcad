"""What a broker shows of the share groups whose partitions it leads."""

from __future__ import annotations

from apis.guarded import Guarded
from apis.share_members import ACCEPT, RELEASE, Member, share_topic
from server.metrics.scraped import scrape


def test_deliveries_acknowledgements_and_sessions_are_counted() -> None:
    node = Guarded()
    topic = share_topic(node, "t", "g")
    node.write("t", b"a", b"b", b"c")
    member = Member(node, "g", topic)
    member.fetch()
    member.acknowledge((0, 2, [ACCEPT, RELEASE, ACCEPT]))
    member.acknowledge((0, 0, [ACCEPT]), (2, 2, [ACCEPT]))
    member.send(member.fetching(max_wait_ms=60_000, min_bytes=1000, max_records=1))
    found = scrape(node.node)
    assert found.of("kafka_server_sharegroupmetrics_recordacknowledgements_total", "ackType") == {
        "gap": 0,
        "accept": 2,
        "release": 1,
        "reject": 0,
        "renew": 0,
    }
    assert found("heirlog_share_acquired_records_total") == 4
    assert found("heirlog_share_partitions") == 1
    assert found("kafka_server_sharegroupmetrics_partitionloadtimems_count_total") == 1
    assert found("kafka_server_sharesessioncache_sharesessionscount") == 1
    assert found("kafka_server_sharesessioncache_sharepartitionscount") == 1
    requests = "kafka_server_brokertopicmetrics_totalshareacknowledgementrequests_total"
    assert found(requests, topic="t") == 2
    assert found("kafka_server_brokertopicmetrics_failedshareacknowledgementrequests_total", topic="t") == 1
    member.connection.closed()
    found = scrape(node.node)
    assert found("kafka_server_sharesessioncache_sharesessionevictions_total") == 1
    assert found("heirlog_share_partitions") == 0
