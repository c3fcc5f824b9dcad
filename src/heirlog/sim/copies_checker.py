"""Counts the replicas that have what a leader commits, for the check `few-copies` (`heirlog.sim.history_checks.sends`).

A high watermark that moves was counted by the leader, from the fetches of its followers. Here the followers' own logs
are read, at the moment at which it moves. A follower that fetched, and lost its log since by an unclean stop, counts:
no leader can know that yet. It counts with the furthest end that its log had, unless it was truncated after that.
"""

from __future__ import annotations

from collections import defaultdict

from heirlog.broker.partition import Partition
from heirlog.metadata.min_isr import min_isr_of
from heirlog.metadata.state import PartitionRegistration
from heirlog.protocol.types import BrokerId
from heirlog.sim.cluster import Machine
from heirlog.sim.history import Copies
from heirlog.sim.invariants import EpochsView, LogView
from heirlog.sim.oracle import Key, Oracle
from heirlog.sim.partition_model import LOOKED_AT_EACH_TIME


class CopiesChecker:
    def __init__(self, oracle: Oracle) -> None:
        self._seen = oracle
        self._furthest: defaultdict[Key, dict[BrokerId, tuple[int, int]]] = defaultdict(dict)
        """By broker: the furthest end of its log, and the leader epoch of the record below."""

    def changed(self, key: Key, broker: BrokerId, log: LogView, *, truncated: bool) -> None:
        """truncated: the log became shorter while its process ran."""
        end = log.log_end_offset
        furthest = self._furthest[key]
        if truncated or end > furthest.get(broker, (0, -1))[0]:
            furthest[broker] = (end, log.epochs.epoch_for_offset(end - 1))

    def committed(self, key: Key, leader: Machine, state: PartitionRegistration, partition: Partition) -> None:
        """The leader exposes a higher high watermark than all before."""
        node = leader.running
        if node is None or self._has_many():
            return
        image = node.image
        topic = image.partition(*key)
        if topic is None:
            return
        end, epochs = partition.high_watermark, partition.log.epochs
        epoch = epochs.epoch_for_offset(end - 1)
        held = 0
        for broker in {*state.replicas, *topic.replicas}:
            held += broker == leader.node_id or self._holds(key, broker, end, epoch, epochs)
        min_isr = min_isr_of(image, leader.config, key[0], topic)
        self._seen.history.copies.append(Copies(self._seen.model(key).name, end, held, min_isr))

    def _has_many(self) -> bool:
        """Followers are then looked at only now and then: what one had before it lost power is not known."""
        return sum(map(len, self._seen.image.partitions.values())) > LOOKED_AT_EACH_TIME

    def _holds(self, key: Key, broker: BrokerId, end: int, epoch: int, epochs: EpochsView) -> bool:
        """epoch: of the record below `end` in the leader's log, and epochs: all of that log."""
        node = self._seen.cluster.broker(broker).running
        found = None if node is None else node.broker.replicas.partition(key)
        if found is not None and not found.offline and found.log.log_end_offset >= end:
            return found.log.epochs.epoch_for_offset(end - 1) == epoch
        furthest_end, furthest_epoch = self._furthest[key].get(broker, (0, -1))
        return furthest_end >= end and epochs.epoch_for_offset(furthest_end - 1) == furthest_epoch
