"""What the groups of a broker have done since it started, for metrics. Plain counts, of all partitions that it led."""

from __future__ import annotations

from dataclasses import dataclass, field

from heirlog.raft.latency_window import LatencyWindow


@dataclass(slots=True)
class GroupActivity:
    completed_rebalances: int = 0
    """Generations of classic groups whose members got their assignments."""
    consumer_rebalances: int = 0
    """Times that the epoch of a consumer group rose."""
    share_rebalances: int = 0
    """Times that the epoch of a share group rose."""
    offset_commits: int = 0
    """Offsets, not requests, as in the next two."""
    offset_deletions: int = 0
    offset_expirations: int = 0
    load_times: LatencyWindow = field(default_factory=LatencyWindow)
    """Of partitions of `__consumer_offsets`."""
