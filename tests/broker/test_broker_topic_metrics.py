"""Counts of topics, and of those that are gone."""

from __future__ import annotations

import pytest

from heirlog.broker.broker_topic_metrics import BrokerTopicMetrics, BrokerTopicStats
from heirlog.protocol.errors import ErrorCode


def test_a_topic_that_has_left_is_in_the_sum_and_one_of_its_name_begins_anew() -> None:
    traffic = BrokerTopicStats()
    traffic.of("t").messages_in += 5
    traffic.of("t").bytes_out += 7
    traffic.retire("t")
    traffic.retire("t")
    assert traffic.of("t").messages_in == 0
    assert (traffic.gone.messages_in, traffic.gone.bytes_out) == (5, 7)


@pytest.mark.parametrize(
    ("code", "failed", "rejected", "corrupt"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, 1, 0, 0),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, 0, 0, 0),
        (ErrorCode.MESSAGE_TOO_LARGE, 0, 100, 0),
        (ErrorCode.CORRUPT_MESSAGE, 0, 0, 1),
    ],
)
def test_a_refusal_counts_by_its_reason(code: ErrorCode, failed: int, rejected: int, corrupt: int) -> None:
    topic = BrokerTopicMetrics()
    topic.produce_failed(code, 100)
    assert (topic.produces_failed, topic.bytes_rejected, topic.corrupt) == (failed, rejected, corrupt)
