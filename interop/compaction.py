"""Compacted topics as the Java client, franz-go and kafkajs write and read them.

The clients' programs carry tables: `write` sends lines `key TAB value` (without a TAB: a tombstone) to partition 0 of a
topic, `read` prints what is there, `offset TAB key TAB value`. Once one record of each key is left, what a client reads
last of each key has to be what was written last of it, in ascending offsets, from whichever replica leads.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from apache_kafka import PATIENCE_S, eventually

from heirlog.blocking import LATEST, Client
from heirlog.protocol.batch import decode_records, encode_batch, walk
from heirlog.protocol.messages import CreateTopicsRequest
from heirlog.testing import Cluster

KEYS = 20
ROUNDS = 15
DELETED = 5
"""Of the keys: they end with a tombstone."""
ROLL = "roll"
"""The key of what is written to fill segments."""
CONFIG = {"log.cleaner.backoff.ms": 100, "min.insync.replicas": 2}
COMPACTED = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "2000",
    "min.cleanable.dirty.ratio": "0.01",
    "file.delete.delay.ms": "100",
}
Command: TypeAlias = Callable[[str, str, str], Sequence[str]]
"""From "write" or "read", the bootstrap servers and a topic."""


@dataclass(frozen=True, slots=True)
class Row:
    offset: int
    key: str
    value: str | None


def keeps_last_values(command: Command) -> None:
    """Raises AssertionError for a value that is lost, old or back from the dead."""
    with Cluster(nodes=3, config=CONFIG, ledger=False) as cluster:
        table = Table(cluster, command)
        table.check("stays", {**COMPACTED, "delete.retention.ms": "86400000"}, tombstones_stay=True)
        table.check("goes", {**COMPACTED, "delete.retention.ms": "0"}, tombstones_stay=False)


class Table:
    def __init__(self, cluster: Cluster, command: Command) -> None:
        self._cluster = cluster
        self._command = command

    def check(self, topic: str, config: dict[str, str], *, tombstones_stay: bool) -> None:
        self._create(topic, config)
        last: dict[str, str | None] = {}
        lines = []
        for number in range(ROUNDS):
            for key in range(KEYS):
                gone = key < DELETED and number == ROUNDS - 1
                last[f"k{key}"] = None if gone else f"{number}:{'x' * 50}"
                lines.append(f"k{key}" if gone else f"k{key}\t{last[f'k{key}']}")
        self._write(topic, lines)
        alive = {key: value for key, value in last.items() if value is not None}

        self._waits_for(topic, len(last) if tombstones_stay else len(alive))
        self._reads(topic, last if tombstones_stay else alive)
        leader = self._leader(topic)
        self._cluster.kill(leader)
        eventually(lambda: self._leader(topic) not in (leader, -1), f"{topic}: another leader")
        # each replica compacts its own log
        self._waits_for(topic, len(last) if tombstones_stay else len(alive))
        self._reads(topic, last if tombstones_stay else alive)
        self._cluster.start(leader)
        self._cluster.wait_until_ready()

    def _waits_for(self, topic: str, records: int) -> None:
        eventually(lambda: self._records_after_a_roll(topic) == records, f"{topic}: one record of each key is left")

    def _reads(self, topic: str, expected: Mapping[str, str | None]) -> None:
        rows = self._read(topic)
        found = {row.key: row.value for row in rows if row.key != ROLL}
        assert found == expected, f"{topic}: {found} instead of {expected}"

    def _records_after_a_roll(self, topic: str) -> int:
        """How many records are left, once all of them but the last ones may be compacted: those fill a segment."""
        now_ms = int(time.time() * 1000)
        with Client(self._cluster.bootstrap_servers) as client:
            for number in range(3):
                batch = encode_batch([(ROLL.encode(), b"%d" % number * 1500, [], now_ms)])
                answer = client.produce(topic, 0, batch)
                assert answer.error_code == 0, answer
            keys = []
            offset, end = 0, client.list_offsets({(topic, 0): LATEST})[topic, 0].offset
            while offset < end:
                data = client.fetch_at(topic, 0, offset).records
                for position, header in walk(data):
                    keys += [record.key for record in decode_records(data, position)]
                    offset = header.next_offset
        return sum(key != ROLL.encode() for key in keys)

    def _create(self, topic: str, config: dict[str, str]) -> None:
        wanted = CreateTopicsRequest.CreatableTopic(
            name=topic,
            num_partitions=1,
            replication_factor=3,
            configs=[CreateTopicsRequest.CreatableTopicConfig(name=name, value=text) for name, text in config.items()],
        )
        with Client(self._cluster.bootstrap_servers) as client:
            answer = client.send_to_any(CreateTopicsRequest(topics=[wanted])).topics[0]
        assert answer.error_code == 0, answer.error_message

    def _leader(self, topic: str) -> int:
        with Client(self._cluster.bootstrap_servers) as client:
            leader: int = client.metadata([topic]).topics[0].partitions[0].leader_id
            return leader

    def _write(self, topic: str, lines: Sequence[str]) -> None:
        self._run("write", topic, "".join(f"{line}\n" for line in lines))

    def _read(self, topic: str) -> list[Row]:
        rows = []
        for line in self._run("read", topic).splitlines():
            offset, key, *value = line.split("\t")
            rows.append(Row(int(offset), key, value[0] if value else None))
        assert [row.offset for row in rows] == sorted({row.offset for row in rows}), f"{topic}: out of order"
        return rows

    def _run(self, what: str, topic: str, given: str = "") -> str:
        command = self._command(what, self._cluster.bootstrap_servers, topic)
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0, f"{command[0]} could not {what} {topic}: {done.stderr[-2000:]}"
        return done.stdout
