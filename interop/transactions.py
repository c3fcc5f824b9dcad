"""Transactions in a log that Apache Kafka wrote, read by heirlog from a copy of the directory, and the other way round.

Kafka runs     two transactional Java producers write; what a consumer of committed records reads, the offsets and
               the producers are noted
Kafka stops    heirlog opens a copy, trusting the files, and another one without `.txnindex`, `.snapshot` and
               `.kafka_cleanshutdown`, so that everything is rebuilt: the same must come out of both
heirlog stops  the files that it rebuilt: `.txnindex` has the same bytes as Kafka's, and kafka-dump-log shows the
               same of both snapshots. `heirlog dump` shows the states in `__transaction_state`
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import jars
from apache_kafka import PATIENCE_S, on_one_node, started
from clients import dump

from heirlog.blocking import LATEST, READ_COMMITTED, Client
from heirlog.cli.offline.decode import Decoder
from heirlog.local.format import Disk
from heirlog.protocol.batch import decode_records, walk
from heirlog.protocol.messages import CreateTopicsRequest, DescribeProducersRequest
from heirlog.protocol.transaction_marker import read_marker
from heirlog.storage.config import LogConfig
from heirlog.storage.log import Log
from heirlog.storage.log_loader import load_log
from heirlog.storage.recovery import CLOSED, LastStop, at_once
from heirlog.testing.apache_kafka import free_ports, write_properties

JAVA = Path(__file__).resolve().parent / "java"
TOPIC = "transactions"
PLACE = (TOPIC, 0)
SEGMENT_BYTES = 8000
"""Some segments, so that transactions reach over their ends."""


class Seen(NamedTuple):
    """What a reader gets of the partition."""

    values: list[str]
    last_stable_offset: int
    end_offset: int
    producers: list[tuple[int, int, int, int, int]]
    """Id, epoch, last sequence, coordinator epoch, start of the open transaction."""


def check() -> str:
    jars.fetch()
    with tempfile.TemporaryDirectory(prefix="heirlog-interop-") as name:
        home = Path(name)
        expected = _played_on_kafka(home / "kafka")
        assert len(expected.values) == 201, expected.values
        states = _states(home / "kafka" / "log")
        assert states == {"good": "Ongoing", "bad": "CompleteAbort"}, states
        source = home / "kafka" / "log" / f"{TOPIC}-0"
        trusted, rebuilt = home / "trusted" / source.name, home / "rebuilt" / source.name
        for copy in (trusted, rebuilt):
            shutil.copytree(source, copy)
        for path in [*rebuilt.glob("*.txnindex"), *rebuilt.glob("*.snapshot")]:
            path.unlink()
        for copy, last_stop in ((trusted, CLOSED), (rebuilt, LastStop())):
            with _opened(copy, last_stop) as log:
                found = _seen_by_heirlog(log)
            assert found == expected, f"{copy.parent.name}: {found} instead of {expected}"
        return _compare_files(source, rebuilt)


def _played_on_kafka(home: Path) -> Seen:
    plain, controller = (f"127.0.0.1:{port}" for port in free_ports(2))
    write_properties(home, on_one_node(home, plain, controller))
    with started(home) as node:
        node.wait_until_it_knows({1}, plain)
        with Client(plain) as client:
            _create_topic(client)
            command = ["java", "-Xmx256m", "-cp", jars.classpath(), str(JAVA / "Transactions.java"), plain]
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S * 4)
            assert done.returncode == 0, done.stderr[-2000:]
            return _seen_on_kafka(client)


def _create_topic(client: Client) -> None:
    config = CreateTopicsRequest.CreatableTopicConfig(name="internal.segment.bytes", value=str(SEGMENT_BYTES))
    topic = CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1, configs=[config])
    answer = client.send_to_any(CreateTopicsRequest(topics=[topic])).topics[0]
    assert answer.error_code == 0, answer.error_message


def _seen_on_kafka(client: Client) -> Seen:
    stable = client.list_offsets({PLACE: LATEST}, isolation=READ_COMMITTED)[PLACE].offset
    values: list[str] = []
    for part in client.fetch(*PLACE, 0, stable, isolation=READ_COMMITTED):
        values += _committed(part.records, list(part.aborted))
    topic = DescribeProducersRequest.TopicRequest(name=TOPIC, partition_indexes=[0])
    described = client.send_to_any(DescribeProducersRequest(topics=[topic])).topics[0].partitions[0]
    producers = [
        (one.producer_id, one.producer_epoch, one.last_sequence, one.coordinator_epoch, one.current_txn_start_offset)
        for one in described.active_producers
    ]
    return Seen(values, stable, client.list_offsets({PLACE: LATEST})[PLACE].offset, sorted(producers))


def _committed(data: bytes, aborted: list[tuple[int, int]]) -> list[str]:
    """The values in a Fetch answer, as Apache Kafka's consumer filters them. aborted: producer ids, first offsets."""
    waiting = sorted(aborted, key=lambda one: one[1])
    active: set[int] = set()
    values = []
    for at, header in walk(data):
        while waiting and waiting[0][1] <= header.last_offset:
            active.add(waiting.pop(0)[0])
        if header.is_control:
            marker = read_marker(data[at : at + header.size], header)
            if marker is not None and not marker.commit:
                active.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in active):
            values += [(record.value or b"").decode() for record in decode_records(data, at)]
    return values


@contextmanager
def _opened(path: Path, last_stop: LastStop) -> Iterator[Log]:
    """Stopped cleanly afterwards, so that its files are written."""
    with Disk() as disk:
        log = at_once(load_log(disk.files, str(path), TOPIC, 0, LogConfig(), last_stop, wall_ms=0))
        yield log
        disk.wait(log.finish, "stopping")
        log.close()


def _seen_by_heirlog(log: Log) -> Seen:
    transactions = log.producers.transactions
    transactions.high_watermark_moved(log.log_end_offset)
    first_unstable = transactions.first_unstable_offset
    stable = log.log_end_offset if first_unstable is None else first_unstable
    at, values = 0, []
    while at < stable:
        found = log.read_for_client(at, 1000, stable)
        data = b"".join(region.read() for region in found.regions)
        values += _committed(data, [(one.producer_id, one.first_offset) for one in log.aborted_in(at, found, stable)])
        at = [header.next_offset for _, header in walk(data)][-1]
    producers = [
        (
            producer_id,
            state.epoch,
            state.batches[-1].last_sequence if state.batches else -1,
            state.coordinator_epoch,
            state.transaction_start,
        )
        for producer_id, state in log.producers.producers.items()
    ]
    return Seen(values, stable, log.log_end_offset, sorted(producers))


def _states(log_dir: Path) -> dict[str, str]:
    """The last state of each transactional id, as `heirlog dump` shows the coordinator's log."""
    states = {}
    for path in sorted(log_dir.glob("__transaction_state-*/*.log")):
        for row in Decoder(str(path)).rows():
            if row.get("record") == "TransactionMetadata":
                states[row["transactional_id"]] = row["state"]
    return states


def _compare_files(by_kafka: Path, by_heirlog: Path) -> str:
    indexes = {path.name: path.read_bytes() for path in by_kafka.glob("*.txnindex") if path.stat().st_size}
    assert len(indexes) > 1, f"aborted transactions in {list(indexes)} only"
    assert {path.name: path.read_bytes() for path in by_heirlog.glob("*.txnindex") if path.stat().st_size} == indexes
    newest = sorted(by_kafka.glob("*.snapshot"))[-1].name
    assert _dumped(by_heirlog / newest) == _dumped(by_kafka / newest)
    dump([by_heirlog / name for name in sorted(indexes)])
    return f"{len(indexes)} indexes of aborted transactions, {len(list(by_kafka.glob('*.log')))} segments"


def _dumped(snapshot: Path) -> list[str]:
    """The producers in a snapshot as kafka-dump-log shows them."""
    lines = sorted(line for line in dump([snapshot]).splitlines() if line.startswith("producerId"))
    assert lines, f"kafka-dump-log shows no producer of {snapshot}"
    return [re.sub(r"\s+", " ", line) for line in lines]
