"""What a scenario asks a run to set up (`heirlog.sim.simulation` does it)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class RunPlan:
    """What a scenario asks the run to set up."""

    elr: bool = True
    brokers: int = 3
    racks: Sequence[str] = ()
    """Brokers are in them in turn; then topics are created whose replicas the controller places."""
    partitions: int = 2
    many: int = 0
    """Partitions of a topic besides that is hardly ever written."""
    min_isr: int = 2
    config: Mapping[str, str] = field(default_factory=dict)
    wire: bool = False
    idempotent: bool = True
    pipelined: bool = False
    """An idempotent producer with several batches in flight."""
    leader_acks: bool = True
    batch_records: int = 10
    interval_ms: int = 200
    members: int = 0
    """Of a consumer group that shares out the topic."""
    compacted: bool = False
    """A compacted topic besides."""
    recreated: bool = False
    """One more topic, which is deleted and recreated under its name all the time."""
    min_isr_changes: bool = False
    manager: bool = True
    """The unclean recovery manager is on."""
    topic_config: Mapping[str, str] = field(default_factory=dict)
    """Of the topic, besides min ISR."""
    strategy_changes: bool = False
    """Of unclean.recovery.strategy, all the time."""
    feature_changes: bool = False
    """The eligible leader replicas are switched off and on, all the time."""
    manager_changes: bool = False
    """The recovery manager is switched off and on, all the time, and on in the end."""
    script_recreates_topic: bool = False
    """The script deletes the topic and makes it again under its name."""
    keeps_everything: bool = False
    """Whatever elections are held: nothing that was acknowledged may be lost."""
