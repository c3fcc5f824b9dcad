"""confluent-kafka, newest and 2.5.0, over real sockets against a real cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from heirlog.blocking import Client
from heirlog.protocol.batch import walk
from heirlog.protocol.messages import FetchRequest, MetadataRequest
from heirlog.testing.cluster import Cluster

ROOT = Path(__file__).resolve().parents[2]
SESSION = Path(__file__).with_name("librdkafka_session.py")
OLD_CLIENT = Path(
    os.environ.get("HEIRLOG_CONFLUENT_KAFKA_2_5_0", ROOT / ".venv-confluent-kafka-2.5.0" / "bin" / "python")
)
CLIENTS = {"newest": Path(sys.executable), "2.5.0": OLD_CLIENT}
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=3) as running:
        yield running


@pytest.fixture(params=sorted(CLIENTS))
def python(request: pytest.FixtureRequest) -> Path:
    path = CLIENTS[request.param]
    if not path.exists():
        pytest.skip(f"{path} is not there: `make test` makes it")
    return path


def create(cluster: Cluster, topic: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for created in admin.create_topics([NewTopic(topic, partitions, 3)]).values():
        created.result(60)


def session(python: Path, cluster: Cluster, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(python), str(SESSION), cluster.bootstrap_servers, *words], stdout=subprocess.PIPE, text=True
    )


def result_of(running: subprocess.Popen[str]) -> dict[str, Any]:
    """It ends by itself: what it waits for has limits. (`communicate` would lose the lines that were read ahead.)"""
    assert running.stdout is not None
    lines = list(running.stdout)
    assert running.wait() == 0, lines
    result: dict[str, Any] = json.loads(lines[-1])
    return result


def stored_codecs(cluster: Cluster, topic: str) -> set[int]:
    """The compression that the stored batches' attributes name."""
    with Client(cluster.bootstrap_servers) as client:
        metadata = client.send_to_any(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=topic)]))
        topic_id = metadata.topics[0].topic_id
        response = client.send_to_leader(
            topic,
            0,
            FetchRequest(
                max_wait_ms=100,
                min_bytes=1,
                max_bytes=50_000_000,
                topics=[
                    FetchRequest.FetchTopic(
                        topic=topic,
                        topic_id=topic_id,
                        partitions=[FetchRequest.FetchPartition(partition=0, partition_max_bytes=50_000_000)],
                    )
                ],
            ),
        )
    records = response.responses[0].partitions[0].records
    return {header.compression for _, header in walk(records)}


@pytest.mark.parametrize("codec", sorted(CODECS))
def test_every_codec_is_stored_as_the_client_sent_it_and_read_back(cluster: Cluster, python: Path, codec: str) -> None:
    topic = f"codec-{codec}-{'old' if python == OLD_CLIENT else 'new'}"
    create(cluster, topic)
    result = result_of(session(python, cluster, "codec", topic, codec, "2000"))
    assert result["problems"] == []
    assert stored_codecs(cluster, topic) == {CODECS[codec]}


def test_a_leader_killed_mid_produce_loses_nothing_doubles_nothing_and_keeps_the_order(
    cluster: Cluster, python: Path
) -> None:
    topic = f"survive-{'old' if python == OLD_CLIENT else 'new'}"
    create(cluster, topic, partitions=3)
    running = session(python, cluster, "survive", topic, "30000")
    assert running.stdout is not None
    killed = None
    for line in running.stdout:
        progress = json.loads(line)
        if progress.get("acknowledged", 0) >= 5_000:
            killed = leader_of(cluster, topic)
            cluster.kill(killed)
            break
    assert killed is not None, "the session ended before a leader could be killed"
    result = result_of(running)
    cluster.start(killed)
    cluster.wait_until_ready()
    assert result["problems"] == []


def leader_of(cluster: Cluster, topic: str) -> int:
    with Client(cluster.bootstrap_servers) as client:
        metadata = client.send_to_any(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=topic)]))
    leader: int = metadata.topics[0].partitions[0].leader_id
    return leader
