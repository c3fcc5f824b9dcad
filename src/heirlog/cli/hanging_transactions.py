"""`heirlog transactions describe-producers|find-hanging|abort`: transactions that no coordinator will end.

An abort writes a marker into one partition, and the coordinator does not know of it. If the coordinator commits the
transaction later, it is committed in the other partitions only. So an abort is refused while the coordinator lists the
partition, unless it is forced.

Source: KIP-664; what hangs is `heirlog.blocking.hanging_transactions`.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer, connected
from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.names import Place, one_partition
from heirlog.cli.next_steps import with_next_step
from heirlog.cli.render import Json, show_rows
from heirlog.protocol.errors import error_code

if TYPE_CHECKING:
    from heirlog.blocking import Client
    from heirlog.blocking.hanging_transactions import Hanging, Producer, TopicPartition

MAX_TRANSACTION_TIMEOUT_MIN: Final = 15
"""As the brokers' transaction.max.timeout.ms: an older transaction was aborted, or it hangs."""
COORDINATORS_WAIT_S: Final = 30.0
MS_PER_MIN: Final = 60_000

TopicOption = Annotated[str | None, typer.Option("--topic", help="Its topic, in Kafka's words.")]
PartitionOption = Annotated[int | None, typer.Option("--partition", min=0, help="With --topic.")]


def describe_producers(
    place: Place = None,
    named_topic: TopicOption = None,
    named_partition: PartitionOption = None,
    broker: Annotated[
        int | None,
        typer.Option("--broker", "--broker-id", min=0, metavar="ID", help="Ask this replica, not the leader."),
    ] = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Show the producers that a partition remembers, and where their open transactions start."""
    topic, partition = one_partition(place, named_topic, named_partition)
    with connected(bootstrap_server) as client:
        producers = _producers(client, topic, partition, broker)
    columns = {
        "producer_id": "ProducerId",
        "producer_epoch": "ProducerEpoch",
        "coordinator_epoch": "LatestCoordinatorEpoch",
        "last_sequence": "LastSequence",
        "last_timestamp": "LastTimestamp",
        "transaction_start_offset": "CurrentTransactionStartOffset",
    }
    show_rows(
        columns,
        [
            {
                "producer_id": each.producer_id,
                "producer_epoch": each.producer_epoch,
                "coordinator_epoch": _known(each.coordinator_epoch),
                "last_sequence": each.last_sequence,
                "last_timestamp": each.last_timestamp,
                "transaction_start_offset": _known(each.current_txn_start_offset),
            }
            for each in producers
        ],
        as_json,
    )


def find_hanging(
    broker: Annotated[
        int | None,
        typer.Option("--broker", "--broker-id", min=0, metavar="ID", help="Only partitions with a replica there."),
    ] = None,
    topic: Annotated[str | None, typer.Option(help="Only this topic.")] = None,
    partition: Annotated[int | None, typer.Option(min=0, help="Only this partition of --topic.")] = None,
    max_transaction_timeout: Annotated[
        int, typer.Option(min=0, metavar="MINUTES", help="Only transactions without a record for so long.")
    ] = MAX_TRANSACTION_TIMEOUT_MIN,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Find open transactions that no coordinator will end: consumers of committed records wait for them for ever.

    A transaction that you may not describe (ACL DESCRIBE of the transactional id) looks like a hanging one.
    """
    from heirlog.blocking.hanging_transactions import find_hanging as find

    if partition is not None and topic is None:
        raise UsageError("--partition goes with --topic")
    with connected(bootstrap_server) as client:
        hanging, asked = find(
            client, _places(client, broker, topic, partition), max_transaction_timeout * MS_PER_MIN, COORDINATORS_WAIT_S
        )
    for name, index in asked.not_asked:
        print(f"heirlog: {name}-{index} was not checked: it has no leader that answers", file=sys.stderr)
    columns = {
        "topic": "Topic",
        "partition": "Partition",
        "producer_id": "ProducerId",
        "producer_epoch": "ProducerEpoch",
        "coordinator_epoch": "CoordinatorEpoch",
        "start_offset": "StartOffset",
        "last_timestamp": "LastTimestamp",
        "duration_min": "Duration(min)",
        "transactional_id": "TransactionalId",
        "state": "TransactionState",
    }
    show_rows(columns, [hanging_row(each) for each in hanging], as_json)
    if hanging and not as_json:
        print(
            "heirlog: heirlog transactions abort TOPIC:PARTITION --start-offset OFFSET ends one",
            file=sys.stderr,
        )


def hanging_row(hanging: Hanging) -> dict[str, Any]:
    producer, described = hanging.producer, hanging.described
    return {
        "topic": hanging.topic,
        "partition": hanging.partition,
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "coordinator_epoch": _known(producer.coordinator_epoch),
        "start_offset": producer.current_txn_start_offset,
        "last_timestamp": producer.last_timestamp,
        "duration_min": max(0, int(time.time() * 1000) - producer.last_timestamp) // MS_PER_MIN,
        "transactional_id": None if described is None else described.transactional_id,
        "state": None if described is None else described.transaction_state,
    }


def sentence(hanging: Hanging) -> str:
    """What hangs, and the command that ends it."""
    producer, described = hanging.producer, hanging.described
    known = "no coordinator knows it"
    if described is not None:
        known = f"the last transaction of {described.transactional_id} is {described.transaction_state}"
    return (
        f"{hanging.topic}-{hanging.partition}: the transaction of producer {producer.producer_id}, epoch "
        f"{producer.producer_epoch}, hangs from offset {producer.current_txn_start_offset} on ({known}). Abort it in "
        f"this partition: heirlog transactions abort {hanging.topic}:{hanging.partition} --start-offset "
        f"{producer.current_txn_start_offset}"
    )


def abort(
    place: Place = None,
    named_topic: TopicOption = None,
    named_partition: PartitionOption = None,
    start_offset: Annotated[
        int | None, typer.Option(min=0, help="Where the transaction starts; its producer is looked up.")
    ] = None,
    producer_id: Annotated[int | None, typer.Option(min=0, help="With the two epochs, instead of an offset.")] = None,
    producer_epoch: Annotated[int | None, typer.Option(min=0, max=32767)] = None,
    coordinator_epoch: Annotated[
        int | None, typer.Option(min=-1, help="Of the producer's last marker there; -1: none.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also while the coordinator can still commit the transaction.")
    ] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
) -> None:
    """Abort a hanging transaction in one partition. Its coordinator is not notified, and other partitions keep theirs.

    Refused while the coordinator lists the partition: heirlog transactions force-terminate aborts that transaction.
    """
    topic, partition = one_partition(place, named_topic, named_partition)
    named = [producer_id, producer_epoch, coordinator_epoch]
    if (start_offset is None) == all(each is None for each in named) or (start_offset is None and None in named):
        raise UsageError(
            "name the transaction by --start-offset, or by --producer-id, --producer-epoch and --coordinator-epoch"
        )
    with connected(bootstrap_server) as client:
        if start_offset is not None:
            found = _producer_at(client, topic, partition, start_offset)
            producer_id, producer_epoch = found.producer_id, found.producer_epoch
            coordinator_epoch = found.coordinator_epoch
        assert producer_id is not None and producer_epoch is not None and coordinator_epoch is not None
        if not force:
            _refuse_if_listed(client, topic, partition, producer_id, producer_epoch)
        _write_abort(client, topic, partition, producer_id, producer_epoch, max(0, coordinator_epoch))


def _producer_at(client: Client, topic: str, partition: int, start_offset: int) -> Producer:
    """Raises CommandError."""
    for producer in _producers(client, topic, partition, None):
        if producer.current_txn_start_offset == start_offset:
            return producer
    raise CommandError(
        f"no open transaction of {topic}-{partition} starts at offset {start_offset}; heirlog transactions "
        f"describe-producers {topic}:{partition} shows the open ones"
    )


def _refuse_if_listed(client: Client, topic: str, partition: int, producer_id: int, producer_epoch: int) -> None:
    """Raises CommandError."""
    from heirlog.blocking.hanging_transactions import transactions_of, will_end

    described = transactions_of(client, [producer_id], COORDINATORS_WAIT_S).get(producer_id)
    if described is not None and will_end(described, topic, partition, producer_epoch):
        name = described.transactional_id
        raise CommandError(
            f"the coordinator has {topic}-{partition} in the transaction of {name} (state "
            f"{described.transaction_state}) and will end it; if it commits, an abort of this partition would break "
            f"the transaction apart. heirlog transactions force-terminate {name} aborts all of it; "
            "--force aborts this partition in spite of that"
        )


def _write_abort(
    client: Client, topic: str, partition: int, producer_id: int, producer_epoch: int, coordinator_epoch: int
) -> None:
    """Raises CommandError."""
    from heirlog.protocol.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse

    marker = WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transaction_result=False,
        topics=[WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
        coordinator_epoch=coordinator_epoch,
    )

    def code(answer: WriteTxnMarkersResponse) -> int:
        return answer.markers[0].topics[0].partitions[0].error_code

    answer = client.send_to_leader(topic, partition, WriteTxnMarkersRequest(markers=[marker]), error_code=code)
    if code(answer):
        failure = error_code(code(answer))
        raise CommandError(
            with_next_step(
                f"{topic}-{partition} did not abort the transaction of producer {producer_id}: {failure.name}", failure
            )
        )


def _producers(client: Client, topic: str, partition: int, broker: int | None) -> list[Producer]:
    """Raises CommandError, KafkaError."""
    from heirlog.protocol.messages import DescribeProducersRequest, DescribeProducersResponse

    request = DescribeProducersRequest(
        topics=[DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=[partition])]
    )

    def answered(response: DescribeProducersResponse) -> DescribeProducersResponse.PartitionResponse:
        return response.topics[0].partitions[0]

    client.topics([topic])
    if broker is None:
        response = client.send_to_leader(topic, partition, request, error_code=lambda got: answered(got).error_code)
    else:
        response = client.send_to_broker(broker, request)
    found = answered(response)
    if found.error_code:
        failure = error_code(found.error_code)
        raise CommandError(
            with_next_step(f"the producers of {topic}-{partition} cannot be described: {failure.name}", failure)
        )
    return found.active_producers


def _places(client: Client, broker: int | None, topic: str | None, partition: int | None) -> list[TopicPartition]:
    """The partitions to search. Raises CommandError, KafkaError."""
    if topic is not None:
        client.topics([topic])
    places = [
        (found.name or "", each.partition_index)
        for found in client.metadata(None if topic is None else [topic]).topics
        for each in found.partitions
        if partition in (None, each.partition_index) and (broker is None or broker in each.replica_nodes)
    ]
    if partition is not None and not places:
        raise CommandError(
            f"{topic} has no partition {partition}" + (f" on broker {broker}" if broker is not None else "")
        )
    return sorted(places)


def _known(number: int) -> int | None:
    return None if number < 0 else number
