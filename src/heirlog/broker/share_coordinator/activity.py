"""What the share coordinator of a broker has done since it started, for metrics."""

from __future__ import annotations

from dataclasses import dataclass, field

from heirlog.raft.latency_window import LatencyWindow


@dataclass(slots=True)
class ShareStateActivity:
    writes: int = 0
    """Batches that were committed."""
    write_times: LatencyWindow = field(default_factory=LatencyWindow)
    """From the append of a batch until it was committed."""
    load_times: LatencyWindow = field(default_factory=LatencyWindow)
    """Of partitions of `__share_group_state`."""
