"""How brokers are asked: few requests, a bound, and ever longer pauses."""

from __future__ import annotations

import pytest
from controller.cluster import register
from controller.recovering import back, lost

from heirlog.controller.recovery import sender
from heirlog.controller.recovery.sender import MAX_BACKOFF_MS, PARTITIONS_MAX, REQUESTS_MAX
from heirlog.protocol.errors import ErrorCode


def test_refused_and_failed_questions_are_repeated_ever_more_slowly() -> None:
    cluster = back(lost(), 1, 2, 3)
    gaps = []
    for _ in range(12):
        cluster.reply(1, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
        waited = 0
        while 1 not in cluster.asked():
            cluster.advance(1)
            waited += 1
            assert waited < 10_000
        gaps.append(waited)
    assert gaps[0] <= 1 and gaps[1] >= 30
    assert all(gap <= MAX_BACKOFF_MS * 1.3 + 1 for gap in gaps) and gaps[-1] >= MAX_BACKOFF_MS * 0.7 - 1
    seen = cluster.described()
    assert 1 in seen.waits_for and seen.replicas[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_news_of_a_broker_end_its_rest() -> None:
    cluster = back(lost(), 1, 2, 3)
    for _ in range(8):
        cluster.fail(2)
        cluster.advance(MAX_BACKOFF_MS * 2)
    cluster.fail(2)
    assert 2 not in cluster.asked()
    assert cluster.described().replicas[1].error_code == ErrorCode.NETWORK_EXCEPTION
    cluster.fence(2)
    back(cluster, 2)
    assert 2 in cluster.asked()


def test_many_partitions_cost_one_request_per_thousand_and_broker() -> None:
    count = PARTITIONS_MAX + 1
    cluster = lost(partitions=count)
    back(cluster, 1, 2, 3).advance(1)
    before = len(cluster.harness.quorum.log)
    assert cluster.asked() == [1, 1, 2, 2, 3, 3], "the second request does not wait for the first one's answer"
    while cluster.env.sent:
        question = cluster.env.sent[0]
        assert question.partitions <= PARTITIONS_MAX
        cluster.reply(question.broker, 0, question.broker)
        cluster.advance(1)
    records = [record for batch in cluster.harness.quorum.log[before:] for record in batch.records]
    assert len(records) == count
    assert len(cluster.harness.quorum.log) - before <= 2
    assert {cluster.leader(partition) for partition in range(count)} == {3}


def test_a_broker_has_a_bounded_number_of_questions_to_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "PARTITIONS_MAX", 1)
    count = REQUESTS_MAX + 2
    cluster = back(lost(partitions=count), 1, 2, 3)
    assert cluster.asked().count(1) == REQUESTS_MAX
    cluster.reply(1)
    assert cluster.asked().count(1) == REQUESTS_MAX
    while 1 in cluster.asked():
        cluster.fail(1)
    cluster.advance(1)
    assert cluster.asked().count(1) == REQUESTS_MAX, "what failed with its connection is asked again"
    while cluster.env.sent:
        cluster.reply(cluster.env.sent[0].broker)
    assert [cluster.leader(partition) for partition in range(count)] == [1] * count


def test_what_a_broker_puts_off_is_asked_again_at_once_and_never_in_a_loop() -> None:
    cluster = back(lost(), 1, 2, 3)
    cluster.reply(1, error_code=ErrorCode.REQUEST_LIMIT_REACHED)
    assert 1 not in cluster.asked()
    cluster.advance(1)
    assert 1 in cluster.asked()


def test_a_broker_that_does_not_serve_the_api_counts_as_not_answering() -> None:
    cluster = lost()
    cluster.lives[3] += 1
    register(cluster.harness, 3, cluster.lives[3])
    back(cluster, 1, 2, 3)
    assert cluster.asked() == [1, 2]
    seen = cluster.described()
    assert [replica.serves_recovery for replica in seen.replicas] == [True, True, False]
    assert "3 cannot be asked" in seen.quorum_reason and "designate" in seen.quorum_reason
