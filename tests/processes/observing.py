"""What tests ask of a running cluster: wait for a view of a partition, write, read, and look at files."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from heirlog.blocking import EARLIEST, LATEST, Client
from heirlog.blocking.connection import Connection
from heirlog.drill.observe import PartitionObserver, View
from heirlog.metadata.apply import apply
from heirlog.metadata.image import Image
from heirlog.metadata.state import PartitionRegistration
from heirlog.protocol.batch import InvalidBatch, decode_records, encode_batch, walk
from heirlog.protocol.messages import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    MetadataRequest,
    ProduceRequest,
    ProduceResponse,
)
from heirlog.protocol.metadata_record import decode_record
from heirlog.testing.cluster import Cluster

NO_LEADER = -1


@contextmanager
def client_of(cluster: Cluster, timeout_s: float = 30.0) -> Iterator[Client]:
    with Client(cluster.bootstrap_servers, timeout_s=timeout_s) as client:
        yield client


def create(
    cluster: Cluster,
    topic: str,
    replicas: list[int] | None = None,
    partitions: int = 1,
    config: Mapping[str, str] | None = None,
) -> None:
    """With `replicas`: one partition, led by the first of them; returns once it is led and everybody is in the ISR."""
    wanted = CreateTopicsRequest.CreatableTopic(
        name=topic,
        num_partitions=-1 if replicas else partitions,
        replication_factor=-1,
        assignments=[CreateTopicsRequest.CreatableReplicaAssignment(partition_index=0, broker_ids=replicas)]
        if replicas
        else [],
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=name, value=value) for name, value in (config or {}).items()
        ],
    )
    with client_of(cluster) as client:
        answer = client.send_to_any(CreateTopicsRequest(topics=[wanted])).topics[0]
    assert answer.error_code == 0, answer
    if replicas:
        wait_for(cluster, topic, lambda view: view.leader == replicas[0] and len(view.isr) == len(replicas))


def delete(cluster: Cluster, topic: str) -> None:
    with client_of(cluster) as client:
        request = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=topic)])
        answer = client.send_to_any(request).responses[0]
    assert answer.error_code == 0, answer


def topics(cluster: Cluster) -> dict[str, bytes]:
    """Name → id."""
    with client_of(cluster) as client:
        return {topic.name: topic.topic_id for topic in client.metadata().topics}


def view_of(cluster: Cluster, topic: str) -> View | None:
    with client_of(cluster) as client:
        return PartitionObserver(client, topic).view()


def wait_for(cluster: Cluster, topic: str, condition: Callable[[View], bool], timeout_s: float = 60.0) -> View:
    """The first view of partition 0 that satisfies the condition."""
    with client_of(cluster, 2.0) as client:
        return PartitionObserver(client, topic).wait(f"{topic}-0", condition, timeout_s)


def batch(*values: bytes) -> bytearray:
    now_ms = int(time.time() * 1000)
    return encode_batch([(None, value, [], now_ms) for value in values])


def write(
    cluster: Cluster, topic: str, *values: bytes, acks: int = -1, timeout_s: float = 60.0
) -> ProduceResponse.PartitionProduceResponse:
    """One batch; raises nothing for an error code, the caller looks at it."""
    with client_of(cluster) as client:
        return client.produce(topic, 0, batch(*values), acks=acks, timeout_s=timeout_s)


def write_once(
    cluster: Cluster, broker: int, topic: str, *values: bytes, acks: int, timeout_ms: int = 30_000
) -> ProduceResponse.PartitionProduceResponse | None:
    """One batch to this very broker without any retry; None for acks=0."""
    host, port = address_of(cluster, broker)
    with Connection(host, port, timeout_s=60.0) as connection:
        asked = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=topic)])
        topic_id = connection.request(asked).topics[0].topic_id
        data = ProduceRequest.PartitionProduceData(index=0, records=batch(*values))
        request = ProduceRequest(
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=[ProduceRequest.TopicProduceData(topic_id=topic_id, name=topic, partition_data=[data])],
        )
        if acks:
            answer: ProduceResponse = connection.request(request)
            return answer.responses[0].partition_responses[0]
        connection.send(request)
        return None


def address_of(cluster: Cluster, broker: int) -> tuple[str, int]:
    host, _, port = cluster.bootstrap_servers.split(",")[cluster.brokers.index(broker)].rpartition(":")
    return host, int(port)


def read(cluster: Cluster, topic: str) -> list[bytes]:
    """The values of everything below the high watermark, in order."""
    found: list[bytes] = []
    with client_of(cluster) as client:
        offset, end = (client.list_offsets({(topic, 0): at})[topic, 0].offset for at in (EARLIEST, LATEST))
        while offset < end:
            for record in records_of(client.fetch_at(topic, 0, offset).records):
                if record.offset >= offset:
                    found.append(record.value or b"")
                    offset = record.offset + 1
    return found


def latest(cluster: Cluster, topic: str) -> int:
    with client_of(cluster) as client:
        return client.list_offsets({(topic, 0): LATEST})[topic, 0].offset


def records_of(data: Any) -> list[Any]:
    return [record for position, _ in walk(data) for record in decode_records(data, position)]


def log_files(cluster: Cluster, node: int, directory: str, suffix: str = ".log") -> list[Path]:
    """Of one partition directory, in offset order; none if it is not there."""
    kind = "broker" if node in cluster.brokers else "controller"
    return sorted((cluster.data / f"{kind}-{node}" / "log" / directory).glob(f"*{suffix}"))


def whole_batches_size(path: Path) -> int:
    """How much of a segment file is whole batches; the rest is a torn tail."""
    data = path.read_bytes()
    size = 0
    try:
        for position, header in walk(data):
            if position + header.size > len(data):
                break
            size = position + header.size
    except InvalidBatch:
        return size
    return size


def metadata_records(cluster: Cluster, node: int) -> list[tuple[int, Any]]:
    """(offset, record) of the metadata log's files on that node, as far as whole batches reach."""
    found = []
    for path in log_files(cluster, node, "__cluster_metadata-0"):
        data = path.read_bytes()[: whole_batches_size(path)]
        for position, header in walk(data):
            if not header.is_control:
                for record in decode_records(data, position):
                    found.append((record.offset, decode_record(record.value)))
    return found


def history(cluster: Cluster, topic: str, controller: int = 100) -> list[PartitionRegistration]:
    """Every state that partition 0 has had, from the controller's metadata log.

    For a state that the next record ends: a poll may come too late for it.
    """
    image, found = Image(), []
    for offset, record in metadata_records(cluster, controller):
        apply(image, record, offset, 0)
        state = image.partition_named(topic, 0)
        if state is not None and (not found or state != found[-1]):
            found.append(state)
    return found


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    # nobody may be there to reap an orphan in a container
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
