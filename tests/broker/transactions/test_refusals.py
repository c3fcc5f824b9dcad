"""Requests that a coordinator refuses before it looks at the transaction, or because of what it finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from heirlog.broker.transactions import describe
from heirlog.broker.transactions.partition_requests import add_partitions_to_txn
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AddPartitionsToTxnRequest, DescribeTransactionsRequest

from ..fakes import answer_of, context
from .test_coordinator import Coordinating, added, code, listed, producer

REQUESTS: dict[str, Callable[[Coordinating, tuple[int, int]], Any]] = {
    "InitProducerId": lambda rig, me: code(rig.init()),
    "InitProducerId that continues": lambda rig, me: code(rig.init(given=me)),
    "AddPartitionsToTxn": lambda rig, me: added(rig.add(me, 0))[0],
    "AddPartitionsToTxn, looked up": lambda rig, me: rig.verify(me, 0)[0],
    "EndTxn 4": lambda rig, me: code(rig.end(me)),
    "EndTxn 5": lambda rig, me: code(rig.end(me, v=5)),
    "DescribeTransactions": lambda rig, me: ErrorCode(rig.described().error_code).name,
}


@pytest.mark.parametrize("request_name", REQUESTS)
def test_another_broker_is_the_coordinator(request_name: str) -> None:
    rig = Coordinating()
    me = producer(rig.init())
    rig.lead(6, leader=2)
    assert REQUESTS[request_name](rig, me) == "NOT_COORDINATOR"


@pytest.mark.parametrize("request_name", REQUESTS)
def test_the_coordinator_is_loading(request_name: str) -> None:
    rig = Coordinating([1, 2])
    rig.followed()
    starting = rig.init()
    rig.followed()
    me = producer(starting)
    # loading waits until the follower has this record
    rig.init("another")
    rig.lead(6)
    assert REQUESTS[request_name](rig, me) == "COORDINATOR_LOAD_IN_PROGRESS"


@pytest.mark.parametrize("request_name", [name for name in REQUESTS if not name.startswith(("Init", "Describe"))])
def test_an_unknown_id_has_no_producer(request_name: str) -> None:
    assert REQUESTS[request_name](Coordinating(), (5, 0)) == "INVALID_PRODUCER_ID_MAPPING"


def test_an_empty_id_is_no_id() -> None:
    rig = Coordinating()
    assert added(rig.add((5, 0), 0, name="")) == ["INVALID_REQUEST"]
    request = DescribeTransactionsRequest(transactional_ids=[""])
    (found,) = describe.describe_transactions(rig.broker.transactions, request).transaction_states
    assert found.error_code == ErrorCode.INVALID_REQUEST


def test_a_new_id_takes_no_producer_id_of_its_client() -> None:
    rig = Coordinating()
    given = (4000, 7)
    made = producer(rig.init(given=given))
    assert made[0] != given[0] and made[1] == 0


@pytest.mark.parametrize("version", [4, 5])
def test_after_the_end_of_a_transaction_the_next_one_waits_for_its_markers(version: int) -> None:
    for commit in (True, False):
        rig = Coordinating()
        me = producer(rig.init())
        rig.add(me, 0)
        rig.end(me, commit=commit, v=version)
        following = me if version == 4 else (me[0], me[1] + 1)
        assert added(rig.add(following, 0)) == ["CONCURRENT_TRANSACTIONS"]
        assert code(rig.init()) == "CONCURRENT_TRANSACTIONS"
        assert code(rig.init(given=following)) == "CONCURRENT_TRANSACTIONS"
        rig.answer_markers()
        assert added(rig.add(following, 0)) == ["NONE"]


def test_an_expiring_id_is_described_until_it_is_gone() -> None:
    rig = Coordinating([1, 2], transactional_id_expiration_ms="1000")
    rig.followed()
    starting = rig.init()
    rig.followed()
    producer(starting)
    rig.env.advance(3_600_001)
    assert rig.state_name == "Empty", "its tombstone is not committed"
    assert code(rig.init()) == "CONCURRENT_TRANSACTIONS"
    rig.followed()
    assert rig.described().error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert "t" not in listed(rig)
    assert answer_of(rig.init()) is None, "a new id"


def test_an_id_that_is_twice_has_each_of_its_entries_judged() -> None:
    rig = Coordinating()
    me = producer(rig.init())
    nested = AddPartitionsToTxnRequest
    entries = [
        nested.AddPartitionsToTxnTransaction(
            transactional_id="t",
            producer_id=me[0],
            producer_epoch=me[1],
            topics=[nested.AddPartitionsToTxnTopic(name="foo", partitions=[index])],
        )
        for index in (1, 9)
    ]
    request = AddPartitionsToTxnRequest(transactions=entries)
    answer = answer_of(add_partitions_to_txn(rig.broker.transactions, rig.image, request, context(5)))
    codes = {
        (found.partition_index, ErrorCode(found.partition_error_code).name)
        for result in answer.results_by_transaction
        for topic in result.topic_results
        for found in topic.results_by_partition
    }
    assert codes == {(1, "NONE"), (9, "UNKNOWN_TOPIC_OR_PARTITION")}
    assert rig.verify(me, 1) == ["NONE"]
