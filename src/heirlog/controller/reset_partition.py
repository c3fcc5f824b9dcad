"""A partition whose lists cannot be trusted, because the metadata is older than the replicas' logs.

    ISR, ELR, LastKnownELR   empty, no leader: the recovery manager asks every assigned replica before it elects one
    leader epoch             above every epoch that a log may hold: an epoch with two leaders would mix their records,
                             and a replica whose log has a newer epoch than its leader could not follow it

There are two cases: a controller that was restored from a copy (`seeding.py`), and a broker that accepted metadata
older than its own (`registration.py`).
"""

from __future__ import annotations

from typing import Final

from heirlog.metadata.state import PartitionRegistration
from heirlog.protocol.types import NO_LEADER, LeaderEpoch, PartitionEpoch

LEADER_EPOCH_MARGIN: Final = 1 << 16
"""Elections of a partition that may be missing in all available copies and logs."""


def reset_partition(state: PartitionRegistration, found_epoch: int) -> PartitionRegistration:
    """found_epoch: the newest leader epoch in an available log. Raises ValueError if no higher epoch is left."""
    leader_epoch = max(state.leader_epoch, found_epoch) + LEADER_EPOCH_MARGIN
    if leader_epoch >= 2**31 - LEADER_EPOCH_MARGIN:
        raise ValueError(f"its leader epochs cannot grow further: one is at {max(state.leader_epoch, found_epoch)}")
    return state._replace(
        isr=(),
        elr=(),
        last_known_elr=(),
        leader=NO_LEADER,
        leader_epoch=LeaderEpoch(leader_epoch),
        partition_epoch=PartitionEpoch(state.partition_epoch + 1),
    )
