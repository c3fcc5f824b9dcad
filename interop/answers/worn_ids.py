"""Transactional ids that have used up nearly all of their epochs, as if they had been in use for years.

Their states are records of `__transaction_state`, which brokers let an administrator's client write. A coordinator
reads them when it starts.
"""

from __future__ import annotations

import struct
import time
from collections import defaultdict

from suites import nodes

from answers.wire import PATIENCE_S, Connection
from heirlog.broker.internal_topic_shards import partition_for
from heirlog.broker.produce import ADMIN_CLIENT
from heirlog.broker.transactions.records import transaction_key
from heirlog.broker.transactions.state import TransactionState
from heirlog.metadata.topic_name import TRANSACTIONS_TOPIC
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.messages import ProduceRequest
from heirlog.protocol.primitives import encode_bytes
from heirlog.protocol.records import TransactionLogValue

SEQUENCES = 1000
LAST_EPOCH = 32_766
"""The last one that a producer gets."""
FIRST_PRODUCER_ID = 500_000
"""Above what a controller gives to the brokers of such a run."""
PRODUCE_VERSION, VALUE_VERSION = 12, 0
LIMIT_MS = 60_000


def store(port: int) -> None:
    """On the node at this port: for each sequence an id, whose last epoch is up to five epochs away."""
    records = defaultdict(list)
    now_ms = int(time.time() * 1000)
    for number in range(SEQUENCES):
        name = f"s{number}-t"
        value = TransactionLogValue(
            producer_id=FIRST_PRODUCER_ID + number,
            producer_epoch=LAST_EPOCH - number % 6,
            transaction_timeout_ms=LIMIT_MS,
            transaction_status=TransactionState.EMPTY,
            transaction_partitions=None,
            transaction_last_update_timestamp_ms=now_ms,
            transaction_start_timestamp_ms=-1,
        )
        stored = struct.pack(">h", VALUE_VERSION) + encode_bytes(value, VALUE_VERSION)
        place = partition_for(name, nodes.CONFIG["transaction.state.log.num.partitions"])
        records[place].append((transaction_key(name), stored, (), now_ms))
    parts = [
        ProduceRequest.PartitionProduceData(index=index, records=encode_batch(each)) for index, each in records.items()
    ]
    topic = ProduceRequest.TopicProduceData(name=TRANSACTIONS_TOPIC, partition_data=parts)
    connection = Connection(port, ADMIN_CLIENT)
    connection.send(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic]), PRODUCE_VERSION)
    answer = connection.receive(PATIENCE_S)
    connection.close()
    assert not isinstance(answer, str), answer
    results = [part for topic in answer.responses for part in topic.partition_responses]
    assert len(results) == len(parts) and not any(part.error_code for part in results), results
