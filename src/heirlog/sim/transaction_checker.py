"""Transactions in the logs of a running cluster: what is committed, what is stable, and whether it agrees.

    the true high watermark of a partition moves  ->  the batches below it, once each
        __transaction_state     ->  X1, X11, X14    (`heirlog.sim.transaction_log`)
        a marker                ->  X2    it repeats a decision that is committed
        a transactional batch   ->  X10   the sequences of an epoch have no gap and no repetition
                                    X19   the coordinator knew that the partition takes part
    a replica changes           ->  X7    its LSO never falls within a leader epoch, and is at most the HW; leaders that
                                          answer ListOffsets(latest) never expose a lower one than those before
    the end of a run            ->  X8    nothing is open
                                    X13   coordinators know what their log says
                                    X15   so do group coordinators            (`heirlog.sim.transaction_rules`)
                                    X16   the LSO and the index of aborted transactions are what the log's bytes say
                                    X17   a cleaned log shows what was committed
                                    X20   what producers got as an answer is what the logs say

An election on a lossy basis may lose decisions, markers and records. From then on nothing is judged of its partition,
and of the ids whose records it may have lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace

from heirlog.broker.groups import records as group_records
from heirlog.broker.groups.offsets import TopicPartition
from heirlog.broker.partition import Partition
from heirlog.broker.transactions.records import StoredTransaction, read_record
from heirlog.broker.transactions.state import Transaction, TransactionState
from heirlog.metadata.topic_name import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from heirlog.node.node import Node
from heirlog.protocol.batch import BatchHeader, decode_records, walk
from heirlog.protocol.transaction_marker import read_marker
from heirlog.sim.history import InitializedProducer
from heirlog.sim.oracle import Key, Oracle
from heirlog.sim.transaction_log import TransactionLog
from heirlog.sim.transaction_rules import (
    Ended,
    KeyedRecord,
    WrittenOffset,
    x7_stable_offset_never_falls,
    x15_offsets_are_those_of_the_log,
    x17_cleaning_keeps_what_is_committed,
    x20_answers_are_kept,
)

READ_BYTES = 1 << 20


class TransactionChecker:
    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self.topics: Collection[str] = ()
        """Topics with transactions, besides the internal ones; empty: nothing is judged."""
        self.recreated: Collection[str] = ()
        """Those that are deleted and created again."""
        self.record_listeners: list[Callable[[StoredTransaction], None]] = []
        """Called with each committed record of `__transaction_state`, before it is judged."""
        self.log = TransactionLog()
        self._ends: dict[Key, int] = {}
        """What has been read of each partition."""
        self._lossy: set[Key] = set()
        self._lossy_names: set[TopicPartition] = set()
        self._decisions_lost = False
        """A partition of `__transaction_state` had an election on a lossy basis."""
        self._open: dict[Key, dict[int, int]] = {}
        """Per partition, the producers with an open transaction, and its first offset."""
        self._sequences: dict[tuple[Key, int], tuple[int, int]] = {}
        """Per partition and producer id: epoch and last sequence."""
        self._stable: dict[tuple[str, Key], tuple[Partition, int, int, int]] = {}
        """Per machine and partition: leader epoch, LSO and log end."""
        self._exposed_stable: dict[Key, tuple[int, int]] = {}
        """Per partition, the highest LSO that a leader has exposed, and the newest epoch in which one did."""
        self.compacted: Collection[str] = ()
        """Those of the topics that are compacted."""
        self._records: dict[Key, dict[int, list[KeyedRecord]]] = {}
        """Per compacted partition and producer id, the records of the open transaction."""
        self._committed_records: dict[Key, list[KeyedRecord]] = {}

    def _is_judged(self, topic: str) -> bool:
        return bool(self.topics) and (topic in self.topics or topic in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC))

    # what is committed

    def exposed(self, key: Key, partition: Partition) -> None:
        """A leader exposes a higher high watermark than all before."""
        if not self._is_judged(partition.topic):
            return
        start = max(self._ends.get(key, 0), partition.log.log_start_offset)
        for data, position, header in _batches(partition, start, partition.high_watermark):
            if header.base_offset >= start:
                self._committed(key, partition, data, position, header)
                self._ends[key] = header.next_offset

    def _may_have_lost(self, partition: TopicPartition) -> bool:
        """Whether markers of this partition may be gone, or were not seen."""
        return partition[0] in self.recreated or partition in self._lossy_names or self._is_unseen(*partition)

    def _is_unseen(self, topic: str, index: int) -> bool:
        """Whether its log is offline on a broker: it may have led, and its high watermark may have moved in the event
        in which the disk failed.
        """
        found = (node.broker.replicas.partitions_named(topic).get(index) for _, node in self._oracle.running_brokers())
        return any(partition is not None and partition.offline for partition in found)

    def in_doubt(self, key: Key, topic: str) -> None:
        """An election on a lossy basis has lost nothing, which no coordinator can know."""
        if topic == TRANSACTIONS_TOPIC:
            self.log.in_doubt.add(key[1])

    def lineage_begins(self, key: Key, topic: str, start: int) -> None:
        """What is at and above `start` is lost."""
        if not self._is_judged(topic):
            return
        self._ends[key] = min(self._ends.get(key, 0), start)
        self._exposed_stable.pop(key, None)
        self._lossy.add(key)
        self._lossy_names.add((topic, key[1]))
        if topic == TRANSACTIONS_TOPIC:
            self.log.lost(key[1])
            self._decisions_lost = True
            self._oracle.world.counters["transaction.state-lost"] += 1

    def _broken(self, found: tuple[str, str] | None) -> None:
        if found is not None:
            self._oracle.broken(*found)

    def _committed(self, key: Key, partition: Partition, data: memoryview, position: int, header: BatchHeader) -> None:
        if partition.topic == TRANSACTIONS_TOPIC:
            self._take_records(partition.index, data, position, header)
        elif header.is_control:
            self._take_marker(key, partition, data, position, header)
        elif header.is_transactional:
            self._take_batch(key, partition, header)
            if partition.topic in self.compacted:
                records = self._records.setdefault(key, {}).setdefault(header.producer_id, [])
                records += _keyed(data, position)

    def _take_records(self, index: int, data: memoryview, position: int, header: BatchHeader) -> None:
        if header.is_control:
            return
        for record in decode_records(data, position, header=header):
            stored = read_record(record.key, record.value)
            if stored is None:
                continue
            for listener in self.record_listeners:
                listener(stored)
            self._broken(self.log.apply(index, stored, self._may_have_lost))
            if stored.transaction is not None:
                self._oracle.world.counters[f"transaction.{stored.transaction.state.text}"] += 1

    def _take_marker(
        self, key: Key, partition: Partition, data: memoryview, position: int, header: BatchHeader
    ) -> None:
        marker = read_marker(data[position : position + header.size], header)
        ended = self._records.get(key, {}).pop(header.producer_id, [])
        if marker is not None and marker.commit and ended:
            self._committed_records.setdefault(key, []).extend(ended)
        ends_open = self._open.get(key, {}).pop(header.producer_id, None) is not None
        if marker is None or key in self._lossy:
            return
        producer = (header.producer_id, header.producer_epoch)
        where = (partition.topic, partition.index)
        self._broken(self.log.marked(producer, where, commit=marker.commit, ends_open=ends_open))

    def _take_batch(self, key: Key, partition: Partition, header: BatchHeader) -> None:
        self._open.setdefault(key, {}).setdefault(header.producer_id, header.base_offset)
        if key in self._lossy or not self.log.is_judged(header.producer_id):
            return
        producer, where = (header.producer_id, header.producer_epoch), (partition.topic, partition.index)
        if where not in self.log.added.get(producer, ()):
            self._oracle.broken(
                "X19", f"{where}: offset {header.base_offset} is of producer {producer}, which has not added it"
            )
        if partition.topic not in self.topics or partition.topic in self.recreated:
            return  # group coordinators use no sequences, and a new topic does not know those of the one before
        epoch, last = self._sequences.get((key, header.producer_id), (-1, -1))
        expected = 0 if header.producer_epoch > epoch else last + 1
        if header.producer_epoch < epoch or header.base_sequence != expected:
            self._oracle.broken(
                "X10",
                f"{where}: offset {header.base_offset} has sequence {header.base_sequence} of producer {producer} "
                f"after sequence {last} of epoch {epoch}",
            )
        self._sequences[key, header.producer_id] = (header.producer_epoch, header.last_sequence)

    # what is stable

    def changed(self, machine: str, key: Key, partition: Partition) -> None:
        """X7 of a replica after an event that changed it."""
        if not self._is_judged(partition.topic):
            return
        stable, epoch = partition.last_stable_offset, partition.leader_epoch
        end = partition.log.log_end_offset
        before = self._stable.get((machine, key))
        self._stable[machine, key] = (partition, epoch, stable, end)
        if stable > partition.high_watermark:
            self._oracle.broken("X7", f"{_stable_offset_of(machine, partition)} is {stable}, above its HW")
        if before is None or before[0] is not partition or before[1] != epoch or end < before[3]:
            return  # another leader epoch, or a follower that truncates
        if stable < before[2]:
            name = _stable_offset_of(machine, partition)
            self._oracle.broken("X7", f"{name} falls from {before[2]} to {stable} in epoch {epoch}")

    def leads(self, key: Key, partition: Partition) -> None:
        """X7 of a leader that changed, and that answers ListOffsets(latest) for committed records."""
        if not self._is_judged(partition.topic) or not partition.knows_its_end:
            return
        epoch, stable = partition.leader_epoch, partition.last_stable_offset
        highest, newest_epoch = self._exposed_stable.get(key, (0, 0))
        if epoch < newest_epoch:
            return  # it does not know yet that it was replaced
        self._exposed_stable[key] = (max(highest, stable), epoch)
        self._broken_by(
            "X7", x7_stable_offset_never_falls(f"{partition.topic}-{partition.index}", highest, stable, epoch)
        )

    # the end

    def is_settled(self, nodes: Collection[Node]) -> bool:
        """X8: no transaction is open in any log, and no coordinator has one to finish."""
        if any(
            partition.log.producers.transactions.first_unstable_offset is not None
            for node in nodes
            for partition in node.broker.replicas.all_partitions()
            if self._is_judged(partition.topic) and not self._may_hang(partition)
        ):
            return False
        return all(
            transaction.state not in (TransactionState.ONGOING, *_PREPARED)
            for node in nodes
            for shard in node.broker.transactions.shards()
            for transaction in shard.all()
        )

    def hanging(self, nodes: Collection[Node]) -> set[str]:
        """Partitions, as histories name them, in which a transaction may stay open, and does: see `_may_hang`."""
        return {
            self._oracle.model(partition.key).name
            for node in nodes
            for partition in node.broker.replicas.all_partitions()
            if self._is_judged(partition.topic)
            and self._may_hang(partition)
            and partition.log.producers.transactions.first_unstable_offset is not None
        }

    @property
    def offsets_may_hang(self) -> bool:
        """A group may wait for ever for the end of a transaction."""
        return self._decisions_lost or any(
            self._oracle.model(key).name.startswith(f"{OFFSETS_TOPIC}-") for key in self._lossy
        )

    def _may_hang(self, partition: Partition) -> bool:
        """A marker, or the decision, was lost by an election on a lossy basis: an operator has to abort it."""
        return partition.key in self._lossy or self._decisions_lost

    def check_end(self, nodes: Collection[Node]) -> None:
        """X13, X15 to X17; once the cluster is quiet."""
        for node in nodes:
            for partition in node.broker.replicas.all_partitions():
                internal = partition.topic in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
                if self._is_judged(partition.topic) and not internal and not self._oracle.is_damaged(node, partition):
                    self._check_bytes(partition)
            self._check_coordinator(node)
            self._check_groups(node)

    def check_answers(self, initialized: Iterable[InitializedProducer]) -> None:
        """X20, once every transaction has ended."""
        promised = [
            (one.transactional_id, (one.producer_id, one.producer_epoch))
            for one in initialized
            if self.log.is_judged(one.producer_id)
        ]
        self._broken_by("X20", x20_answers_are_kept(promised, self.log.held))

    def _broken_by(self, rule: str, sentence: str | None) -> None:
        if sentence is not None:
            self._oracle.broken(rule, sentence)

    def _check_groups(self, node: Node) -> None:
        """X15 of the group coordinators of a broker."""
        for partition in node.broker.replicas.partitions_named(OFFSETS_TOPIC).values():
            shard = node.broker.groups.shard_at(partition.index)
            if shard is None or not shard.loaded or partition.key in self._lossy:
                continue
            if self._oracle.is_damaged(node, partition):
                continue
            committed = {
                (group.group_id, place): value
                for group in shard.groups.values()
                for place, value in group.offsets.committed.items()
            }
            unstable = [(name, place) for name in shard.groups for place in shard.registry.transactional.unstable(name)]
            found = x15_offsets_are_those_of_the_log(_offsets(partition), committed, unstable)
            self._broken_by("X15", None if found is None else f"{partition.topic}-{partition.index}, {found}")

    def _check_scan(self, partition: Partition) -> None:
        """X17 of one replica of a compacted topic."""
        log = partition.log
        start, end = log.log_start_offset, partition.last_stable_offset
        scanned = _committed_scan(partition, start, end)
        committed = self._committed_records.get(partition.key, [])
        found = x17_cleaning_keeps_what_is_committed(committed, scanned, start, end)
        self._broken_by("X17", None if found is None else f"{partition.topic}-{partition.index}: {found}")

    def _check_coordinator(self, node: Node) -> None:
        for shard in node.broker.transactions.shards():
            for held in shard.all() if shard.loaded else ():
                known = self.log.ids.get(held.transactional_id)
                logged = None if known is None else known.transaction
                if logged is not None and logged.producer_epoch == 0 and logged.state is TransactionState.EMPTY:
                    # unless its coordinator has failed since, it has the epoch that the run gave it
                    aged = self.log.aged.get(held.transactional_id)
                    logged = replace(logged, producer_epoch=aged) if held.producer_epoch == aged else logged
                if self.log.is_judged(held.producer_id) and (logged is None or _core(logged) != _core(held)):
                    self._oracle.broken("X13", f"a coordinator knows {held}, and its log says {logged}")

    def _check_bytes(self, partition: Partition) -> None:
        """X16 of one replica."""
        log = partition.log
        opened: dict[int, int] = {}
        aborted: list[tuple[int, int, int]] = []
        undecided = []
        for data, position, header in _batches(partition, log.log_start_offset, log.log_end_offset):
            if header.is_control:
                start = opened.pop(header.producer_id, None)
                marker = read_marker(data[position : position + header.size], header)
                if start is not None and marker is not None and not marker.commit:
                    aborted.append((header.producer_id, start, header.last_offset))
                if start is not None and header.last_offset >= partition.high_watermark:
                    undecided.append(start)
            elif header.is_transactional:
                opened.setdefault(header.producer_id, header.base_offset)
        if log.log_start_offset:
            return  # transactions may have begun before it
        name = f"{partition.topic}-{partition.index}"
        stable = min([partition.high_watermark, *opened.values(), *undecided])
        if partition.last_stable_offset != stable:
            self._oracle.broken("X16", f"{name}: the LSO is {partition.last_stable_offset}, and by its bytes {stable}")
        if partition.topic in self.compacted:
            # the first batches of an aborted transaction may be gone, and its entry in the index stays as it is
            if partition.key not in self._lossy:
                self._check_scan(partition)
            return
        found = sorted(entry[:3] for entry in log.aborted_transactions(0, log.log_end_offset))
        if found != sorted(aborted):
            self._oracle.broken("X16", f"{name}: the index has {found}, and its bytes say {sorted(aborted)}")


def _stable_offset_of(machine: str, partition: Partition) -> str:
    return f"{machine}: the LSO of {partition.topic}-{partition.index}"


def _core(transaction: Transaction) -> Transaction:
    """What every version of the record holds."""
    return replace(transaction, previous_producer_id=-1, next_producer_id=-1, last_producer_epoch=-1, client_version=0)


_PREPARED = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


def _keyed(data: memoryview, position: int) -> list[KeyedRecord]:
    return [KeyedRecord(each.offset, each.key, each.value) for each in decode_records(data, position)]


def _offsets(partition: Partition) -> Iterator[WrittenOffset | Ended]:
    """What a partition of `__consumer_offsets` says about offsets, below the high watermark."""
    for data, position, header in _batches(partition, partition.log.log_start_offset, partition.high_watermark):
        if header.is_control:
            marker = read_marker(data[position : position + header.size], header)
            if marker is not None:
                yield Ended(header.producer_id, marker.commit)
            continue
        for record in decode_records(data, position):
            stored = group_records.read_record(record.key, record.value)
            if isinstance(stored, group_records.StoredOffset):
                by = header.producer_id if header.is_transactional else None
                yield WrittenOffset(by, (stored.group, stored.partition), stored.value)


def _committed_scan(partition: Partition, start: int, end: int) -> Iterator[KeyedRecord]:
    """What a consumer of committed records gets, which filters as Apache Kafka's does."""
    upcoming = sorted(partition.log.aborted_transactions(start, end), key=lambda entry: entry.first_offset)
    aborted: set[int] = set()
    for data, position, header in _batches(partition, start, end):
        while upcoming and upcoming[0].first_offset <= header.last_offset:
            aborted.add(upcoming.pop(0).producer_id)
        if header.is_control:
            marker = read_marker(data[position : position + header.size], header)
            if marker is not None and not marker.commit:
                aborted.discard(header.producer_id)
        elif not header.is_transactional or header.producer_id not in aborted:
            yield from (each for each in _keyed(data, position) if start <= each.offset < end)


def _batches(partition: Partition, start: int, upto: int) -> Iterator[tuple[memoryview, int, BatchHeader]]:
    """The bytes of a part of the log, and each batch in it."""
    while start < upto:
        before = start
        try:
            regions = partition.log.read(start, READ_BYTES, upto).regions
            parts = [memoryview(region.read()) for region in regions]
        except OSError:
            return  # the disk is broken, or the node is stopping and has closed its files
        for data in parts:
            for position, header in walk(data):
                yield data, position, header
                start = header.next_offset
        if start == before:
            return
