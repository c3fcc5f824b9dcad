"""What a scenario asks a run to set up (`heirlog.sim.simulation` does it)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from heirlog.sim.releases import NEWEST, Release


@dataclass(slots=True)
class RunPlan:
    """What a scenario asks the run to set up."""

    elr: bool = True
    brokers: int = 3
    replication_factor: int = 3
    """At most; never more than brokers."""
    controllers: int = 1
    """Voters of the metadata quorum."""
    racks: Sequence[str] = ()
    """Brokers are assigned to them in turn. With racks, topics are created whose replicas the controller places."""
    partitions: int = 2
    many: int = 0
    """Partitions of an additional topic that is rarely written."""
    min_isr: int = 2
    config: Mapping[str, str] = field(default_factory=dict)
    wire: bool = False
    without_faults: Set[int] = frozenset()
    """Numbers of faults that are left out (`heirlog.sim.fault_numbers`)."""
    idempotent: bool = True
    pipelined: bool = False
    """An idempotent producer with several batches in flight."""
    leader_acks: bool = True
    batch_records: int = 10
    interval_ms: int = 200
    reader_interval_ms: int = 100
    """Between an answer to a reader and its next request to that partition."""
    latest_interval_ms: int = 700
    """The same for ListOffsets(latest)."""
    members: int = 0
    """Members of a consumer group that reads the topic."""
    transactions: bool = False
    """Producers of transactions, consume-transform-produce loops, and readers of committed records."""
    transaction_pause_ms: int = 200
    """Between two transactions of a producer."""
    drowsy: bool = False
    """Producers of transactions sleep in most of them, have the longest timeout, and know version 0, unless all of them
    know version 2.
    """
    used_up_epochs: bool = False
    """The producers of transactions begin near the last epoch of their ids."""
    transaction_version: int = 0
    """The level with which the cluster is formatted, if its release knows the feature."""
    transaction_version_changes: bool = False
    """transaction.version is switched off and on, all the time."""
    only_version_2: bool = False
    """All producers of transactions know version 2."""
    expiring_ids: bool = False
    """Transactional ids are deleted soon after their last transaction."""
    late_repeats: bool = False
    """Producers of transactions that know version 2 send the bytes of answered requests once more, later."""
    cleaned_transactions: bool = False
    """An additional, compacted topic that producers of transactions write."""
    two_phase_commit: bool = False
    """The transactions of one transactional id have no time limit (KIP-939)."""
    overtaken_offsets: bool = False
    """A group whose offsets are committed plainly while a transaction has written earlier ones."""
    compacted: bool = False
    """An additional, compacted topic."""
    recreated: bool = False
    """One more topic, which is deleted and recreated under its name all the time."""
    min_isr_changes: bool = False
    manager: bool = True
    """The unclean recovery manager is on."""
    topic_config: Mapping[str, str] = field(default_factory=dict)
    """Configurations of the topic in addition to min ISR."""
    strategy_changes: bool = False
    """unclean.recovery.strategy changes all the time."""
    release: Release = NEWEST
    """Of all nodes, at first."""
    metadata_changes: bool = False
    """metadata.version goes up and down, all the time."""
    feature_changes: bool = False
    """The eligible leader replicas are switched off and on, all the time."""
    manager_changes: bool = False
    """The recovery manager is switched off and on, all the time, and on in the end."""
    script_recreates_topic: bool = False
    """The script deletes the topic and creates it again under its name."""
    keeps_everything: bool = False
    """No acknowledged record may be lost, whichever elections happen."""
