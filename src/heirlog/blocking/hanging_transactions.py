"""Transactions that are open in a log and that no coordinator will end: they hold the last stable offset for ever.

    open in the leader's log                 DescribeProducers
    unknown to every coordinator, or of a    ListTransactions at all coordinators, then DescribeTransactions
    transaction without this partition, or
    older than the one that it has open
    still open in the leader's log           DescribeProducers again

Two traps. A transaction that ends between the first two questions looks like a hanging one; its marker is in the log
before its coordinator forgets the partition, so the third question shows that it has ended. An id that moves between
two coordinators while they are asked is named by neither; so the answers count only if the leaders of
`__transaction_state` are the same before and after, and all of them are known.

Source: KIP-664.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from heirlog.blocking.client import Client
from heirlog.metadata.topic_name import TRANSACTIONS_TOPIC
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from heirlog.protocol.primitives import Message

NO_TRANSACTION: Final = -1
ONGOING: Final = "Ongoing"
RETRY_S: Final = 0.2

TopicPartition = tuple[str, int]
Producer = DescribeProducersResponse.ProducerState
Described = DescribeTransactionsResponse.TransactionState


class Hanging(NamedTuple):
    """An open transaction in a partition that no coordinator will end."""

    topic: str
    partition: int
    producer: Producer
    described: Described | None
    """The newest transaction of the producer id, which does not have the partition; None: no coordinator knows the id.
    """


class Producers(NamedTuple):
    by_partition: dict[TopicPartition, list[Producer]]
    not_asked: list[TopicPartition]
    """Partitions without a leader, or whose leader did not answer for them."""


def producers_of(client: Client, places: Iterable[TopicPartition]) -> Producers:
    """The producers that the leader of each partition remembers. Raises OSError if no broker answers."""
    leaders = _leaders(client, sorted({topic for topic, _ in places}))
    by_leader: dict[int, list[TopicPartition]] = {}
    for place in places:
        by_leader.setdefault(leaders.get(place, -1), []).append(place)
    found = Producers({}, by_leader.pop(-1, []))
    for leader, asked in by_leader.items():
        answer: DescribeProducersResponse | None = _answer(client, leader, _question(asked))
        if answer is None:
            found.not_asked.extend(asked)
            continue
        for topic in answer.topics:
            for each in topic.partitions:
                place = topic.name, each.partition_index
                if each.error_code:
                    found.not_asked.append(place)
                else:
                    found.by_partition[place] = each.active_producers
    return found


def find_hanging(
    client: Client, places: Sequence[TopicPartition], idle_ms: int, wait_s: float
) -> tuple[list[Hanging], Producers]:
    """The hanging transactions whose producers have written nothing to the partition for more than `idle_ms`.

    wait_s: for coordinators that are loading or moving. An id that this client may not describe counts as unknown.
    Raises KafkaError if the coordinators cannot be asked, OSError.
    """
    before = producers_of(client, places)
    latest_ms = time.time() * 1000 - idle_ms
    open_before = {
        (*place, producer.producer_id): producer
        for place, producers in before.by_partition.items()
        for producer in producers
        if producer.current_txn_start_offset != NO_TRANSACTION and producer.last_timestamp < latest_ms
    }
    if not open_before:
        return [], before
    known = transactions_of(client, {producer_id for _, _, producer_id in open_before}, wait_s)
    after = producers_of(client, sorted({(topic, partition) for topic, partition, _ in open_before}))
    hanging = []
    for (topic, partition), producers in after.by_partition.items():
        for producer in producers:
            earlier = open_before.get((topic, partition, producer.producer_id))
            if earlier is None or earlier.current_txn_start_offset != producer.current_txn_start_offset:
                continue
            described = known.get(producer.producer_id)
            if described is None or not will_end(described, topic, partition, producer.producer_epoch):
                hanging.append(Hanging(topic, partition, producer, described))
    return hanging, Producers(after.by_partition, sorted({*before.not_asked, *after.not_asked}))


def transactions_of(client: Client, producer_ids: Iterable[int], wait_s: float) -> dict[int, Described]:
    """What the coordinators know of these producer ids; unknown ids are left out.

    wait_s: as in `find_hanging`. Raises COORDINATOR_NOT_AVAILABLE if not every coordinator can be asked.
    """
    request = ListTransactionsRequest(producer_id_filters=sorted(producer_ids))
    deadline = time.monotonic() + wait_s
    while True:
        leaders = _leaders(client, [TRANSACTIONS_TOPIC])
        if -1 not in leaders.values():
            found = _known_to(client, set(leaders.values()), request)
            if found is not None and _leaders(client, [TRANSACTIONS_TOPIC]) == leaders:
                return found
        if time.monotonic() >= deadline:
            raise KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                f"not every partition of {TRANSACTIONS_TOPIC} has a leader that answers, so nothing can be said "
                "about the transactions whose coordinators are missing",
            )
        time.sleep(RETRY_S)


def _known_to(client: Client, brokers: Iterable[int], request: ListTransactionsRequest) -> dict[int, Described] | None:
    """None: a coordinator does not answer, is loading, or has moved since."""
    found = {}
    for broker in brokers:
        listed: ListTransactionsResponse | None = _answer(client, broker, request)
        if listed is None or listed.error_code:
            return None
        names = [each.transactional_id for each in listed.transaction_states]
        if not names:
            continue
        answer = _answer(client, broker, DescribeTransactionsRequest(transactional_ids=names))
        if answer is None:
            return None
        for described in answer.transaction_states:
            if described.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                continue
            if described.error_code:
                return None
            found[described.producer_id] = described
    return found


def will_end(described: Described, topic: str, partition: int, producer_epoch: int) -> bool:
    """Whether the coordinator will end the transaction that is open in this partition at this epoch.

    If the coordinator has a transaction of a higher epoch open, it has ended the one of this epoch before.
    """
    is_later = described.transaction_state == ONGOING and described.producer_epoch > producer_epoch
    return not is_later and any(each.topic == topic and partition in each.partitions for each in described.topics)


def _answer(client: Client, broker: int, message: Message) -> Any:
    """None: the broker is lost, and the metadata do not say so yet. Raises KafkaError."""
    try:
        return client.send_to_broker(broker, message)
    except OSError:
        return None
    except KafkaError as error:
        if error.code is ErrorCode.BROKER_NOT_AVAILABLE:
            return None
        raise


def _leaders(client: Client, topics: Sequence[str]) -> dict[TopicPartition, int]:
    """-1: none. Topics that do not exist are left out."""
    if not topics:
        return {}
    return {
        (topic.name or "", each.partition_index): each.leader_id
        for topic in client.metadata(topics).topics
        for each in topic.partitions
    }


def _question(places: Iterable[TopicPartition]) -> DescribeProducersRequest:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in places:
        by_topic.setdefault(topic, []).append(partition)
    return DescribeProducersRequest(
        topics=[
            DescribeProducersRequest.TopicRequest(name=name, partition_indexes=indexes)
            for name, indexes in by_topic.items()
        ]
    )
