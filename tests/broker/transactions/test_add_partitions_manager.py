from __future__ import annotations

import pytest

from heirlog.broker.broker_requests import BrokerRequests
from heirlog.broker.transactions.add_partitions_manager import (
    CHANNEL,
    AddPartitionsToTxnManager,
    TransactionPartitions,
)
from heirlog.broker.transactions.state import ProducerIdAndEpoch
from heirlog.env import SendFailure
from heirlog.metadata.image import Image
from heirlog.metadata.state import TopicImage
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AddPartitionsToTxnResponse
from heirlog.protocol.types import BrokerId, Endpoint

from ..fakes import TOPIC_IDS, FakeEnv, state

TRANSACTIONS = TOPIC_IDS["__transaction_state"]


class Asking:
    """A broker whose coordinator is broker 2 for every transactional id."""

    def __init__(self, leader: int = 2) -> None:
        self.env = FakeEnv()
        self.image = Image()
        journal = self.image.journal()
        self.image.set_topic(TRANSACTIONS, TopicImage("__transaction_state", TRANSACTIONS), journal)
        self.image.set_partition(TRANSACTIONS, 0, state([2], leader=leader, leader_epoch=1), journal)
        brokers = BrokerRequests(self.env, BrokerId(1), lambda broker: Endpoint(f"b{broker}", 9092), {})
        self.manager = AddPartitionsToTxnManager(self.env, lambda: self.image, lambda name: 0, brokers, 30_000)
        self.heard: list[str] = []

    def ask(
        self, name: str = "t", epoch: int = 0, *, said_as: str = "", verify_only: bool = True, partition: int = 0
    ) -> None:
        def answer(codes: object) -> None:
            assert isinstance(codes, dict)
            self.heard.append(f"{said_as or name} {' '.join(code.name for code in codes.values())}")

        wanted = TransactionPartitions(name, ProducerIdAndEpoch(5, epoch), [("foo", partition)], verify_only, answer)
        self.manager.ask(wanted)
        self.env.advance(0)

    def answer(self, code: ErrorCode = ErrorCode.NONE) -> list[str]:
        """Answers the request in flight; returns the transactional ids in it."""
        sent = self.env.take(CHANNEL)
        nested = AddPartitionsToTxnResponse
        results = [
            nested.AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id,
                topic_results=[
                    nested.AddPartitionsToTxnTopicResult(
                        name="foo",
                        results_by_partition=[
                            nested.AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
                            for index in transaction.topics[0].partitions
                        ],
                    )
                ],
            )
            for transaction in sent.request.transactions
        ]
        sent.on_result(nested(results_by_transaction=results))
        return [transaction.transactional_id for transaction in sent.request.transactions]


def test_what_is_asked_while_a_request_is_in_flight_shares_the_next_one() -> None:
    asking = Asking()
    for name in ("t", "u", "v"):
        asking.ask(name)
    assert asking.answer() == ["t"]
    assert asking.answer(ErrorCode.TRANSACTION_ABORTABLE) == ["u", "v"]
    assert asking.heard == ["t NONE", "u TRANSACTION_ABORTABLE", "v TRANSACTION_ABORTABLE"]


def test_the_newest_epoch_of_an_id_is_asked_for_and_older_ones_are_fenced() -> None:
    asking = Asking()
    asking.ask("t")
    asking.ask("u", 3, said_as="third")
    asking.ask("u", 2, said_as="second")
    asking.ask("u", 4, said_as="fourth")
    assert asking.heard == ["second INVALID_PRODUCER_EPOCH", "third INVALID_PRODUCER_EPOCH"]
    asking.answer()
    asking.answer()
    assert asking.heard[2:] == ["t NONE", "fourth NONE"]


def test_what_one_producer_asks_at_once_shares_an_entry_and_each_is_answered() -> None:
    """A client may write records while it commits offsets: neither has to be repeated."""
    asking = Asking()
    asking.ask("t")
    asking.ask("u", said_as="records", verify_only=False)
    asking.ask("u", said_as="offsets", verify_only=False, partition=1)
    asking.ask("u", said_as="only a question")
    assert asking.heard == []
    asking.answer()
    (in_flight,) = [sent for sent in asking.env.sent if sent.channel == CHANNEL]
    (entry,) = in_flight.request.transactions
    assert (entry.verify_only, [(topic.name, topic.partitions) for topic in entry.topics]) == (False, [("foo", [0, 1])])
    assert asking.answer() == ["u"]
    assert asking.answer(ErrorCode.TRANSACTION_ABORTABLE) == ["u"]
    assert asking.heard == ["t NONE", "records NONE", "offsets NONE", "only a question TRANSACTION_ABORTABLE"]


@pytest.mark.parametrize(
    ("failure", "expected"),
    [("disconnected", "NETWORK_EXCEPTION"), ("timed-out", "NETWORK_EXCEPTION"), ("unsupported", "NONE")],
)
def test_a_coordinator_that_does_not_answer(failure: str, expected: str) -> None:
    asking = Asking()
    asking.ask()
    asking.ask("next")
    asking.env.take(CHANNEL).on_result(SendFailure(failure))
    assert asking.heard == [f"t {expected}"]
    assert asking.answer() == ["next"]


def test_an_id_without_a_coordinator_is_answered_at_once() -> None:
    asking = Asking(leader=-1)
    asking.ask()
    assert asking.heard == ["t COORDINATOR_NOT_AVAILABLE"]


def test_an_answer_that_leaves_a_partition_out_says_nothing_of_it() -> None:
    asking = Asking()
    asking.ask()
    asking.env.take(CHANNEL).on_result(AddPartitionsToTxnResponse())
    asking.ask()
    refused = AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    asking.env.take(CHANNEL).on_result(refused)
    assert asking.heard == ["t NETWORK_EXCEPTION", "t INVALID_TXN_STATE"]


def test_the_request_says_who_asks_for_what() -> None:
    asking = Asking()
    asking.ask("t", 7, verify_only=False)
    (transaction,) = asking.env.take(CHANNEL).request.transactions
    assert (transaction.producer_id, transaction.producer_epoch, transaction.verify_only) == (5, 7, False)
    assert [(topic.name, topic.partitions) for topic in transaction.topics] == [("foo", [0])]


def test_what_is_not_confirmed_and_how_long_answers_take_is_counted() -> None:
    asking = Asking()
    asking.ask("t")
    for name in ("u", "v"):
        asking.ask(name)
    asking.env.advance(7)
    asking.answer()
    asking.env.advance(100)
    asking.answer(ErrorCode.TRANSACTION_ABORTABLE)
    asking.ask("w")
    asking.env.take(CHANNEL).on_result(SendFailure("timed-out"))
    manager = asking.manager
    assert (manager.answered, manager.failures) == (4, 3)
    assert manager.times.quantiles_ms(asking.env.now_ms(), [0.25, 0.5, 0.75]) == [0, 7, 100]
