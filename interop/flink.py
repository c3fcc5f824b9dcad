"""Apache Flink 2.1: a job whose Kafka sink is EXACTLY_ONCE fails twice, and a broker is killed (SIGKILL) under it.

The job runs in one process, without a cluster of Flink. Its sink commits a transaction of each task after each
checkpoint; restored from the last one, it takes over the producer ids and epochs that the checkpoint names, commits
what was prepared there, and aborts what came after it. So under read_committed each number is in the topic once.

The same job, AT_LEAST_ONCE, shows that the failures repeat records.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import jars
from clients import HERE, compiled
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from heirlog.testing import Cluster

PLACE = jars.CACHE / "flink-jars"
RECORDS = 1600
PARTITIONS = 3
PATIENCE_S = 120.0
ENDED, FAILED = "done", "failed"


def check() -> str:
    jars.need("java", "javac", install="a JDK (on Debian: apt install openjdk-17-jdk-headless)")
    jars.resolved(HERE / "flink-pom.xml", PLACE, HERE / "flink-jars.sha256")
    with Cluster(nodes=3, ledger=False) as running, tempfile.TemporaryDirectory(prefix="heirlog-interop-") as directory:
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers, "log_level": 0})
        topics = [NewTopic(topic, PARTITIONS, 3) for topic in ("once", "repeated")]
        for future in admin.create_topics(topics).values():
            future.result(PATIENCE_S)
        output = Path(directory) / "output"
        _play(running, output)
        times = _times(running, "once")
        truth = {str(number): 1 for number in range(RECORDS)}
        assert times == truth, f"not there once: {_differing(times)}"
        repeated = _play_at_least_once(running, output)
    return f"{RECORDS} records there once each; at-least-once repeated {repeated}"


def _job(running: Cluster, output: Path, topic: str, guarantee: str) -> subprocess.Popen[bytes]:
    classpath = f"{PLACE}/*"
    command = ["java", "-Xmx512m", "--add-opens=java.base/java.util=ALL-UNNAMED", "-cp"]
    command += [f"{compiled('FlinkJob', classpath)}:{classpath}", "FlinkJob", running.bootstrap_servers, topic]
    with output.open("wb") as file:
        return subprocess.Popen([*command, str(RECORDS), guarantee], stdout=file, stderr=file)


def _play(running: Cluster, output: Path) -> None:
    job = _job(running, output, "once", "EXACTLY_ONCE")
    try:
        _wait_for(job, output, FAILED, 1)
        leader = running.leader("once")
        running.kill(leader)
        _wait_for(job, output, FAILED, 2)
        running.start(leader)
        _wait_for(job, output, ENDED, 1)
        running.wait_until_ready()
    finally:
        job.kill()
        job.wait()


def _play_at_least_once(running: Cluster, output: Path) -> int:
    """How many records are there more than once."""
    job = _job(running, output, "repeated", "AT_LEAST_ONCE")
    try:
        _wait_for(job, output, ENDED, 1)
    finally:
        job.kill()
        job.wait()
    times = _times(running, "repeated")
    repeated = sum(1 for count in times.values() if count > 1)
    assert len(times) == RECORDS and repeated, f"{len(times)} numbers, {repeated} of them repeated: no failure was seen"
    return repeated


def _wait_for(job: subprocess.Popen[bytes], output: Path, line: str, times: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while output.read_text().splitlines().count(line) < times:
        assert job.poll() in (None, 0), f"the job ended with {job.returncode}:\n{output.read_text()[-3000:]}"
        assert time.monotonic() < deadline, f"the job did not print {line!r}:\n{output.read_text()[-3000:]}"
        time.sleep(0.05)


def _times(running: Cluster, topic: str) -> Counter[str]:
    """How often a reader of committed records finds each number."""
    config = {"bootstrap.servers": running.bootstrap_servers, "group.id": "reader", "isolation.level": "read_committed"}
    consumer = Consumer({**config, "enable.partition.eof": True, "log_level": 0})
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    times: Counter[str] = Counter()
    ended: set[int] = set()
    deadline = time.monotonic() + PATIENCE_S
    while len(ended) < PARTITIONS:
        assert time.monotonic() < deadline, f"{topic} cannot be read up to its end"
        message = consumer.poll(1.0)
        if message is None:
            continue
        if message.error() is not None:
            ended.add(message.partition())
        else:
            times[message.value().decode()] += 1
    consumer.close()
    return times


def _differing(times: Counter[str]) -> dict[str, int]:
    return {str(number): times[str(number)] for number in range(RECORDS) if times[str(number)] != 1}
