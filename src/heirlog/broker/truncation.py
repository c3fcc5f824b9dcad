"""Where a follower truncates its log when the leader says that their logs diverge.

The leader names the largest epoch in its log that is not above ours, and its end offset. The follower then truncates:

    the leader has no end for it             to where fetching began in this leader epoch
    our log has that epoch (or only newer)   to the lower of the two ends: settled
    our log does not have it                 to the end of our largest lower epoch, and asks about that one

Source: KIP-101, KIP-279, KIP-595; docs/internals/kafka-behaviour.md 4.5, scenarios K055 - K057.
"""

from __future__ import annotations

from typing import NamedTuple

from heirlog.storage.log import Log

UNDEFINED = -1


class TruncationPoint(NamedTuple):
    offset: int
    settled: bool
    """False: the next fetch may diverge again, further down."""


def cut_for(log: Log, leader_epoch: int, leader_end_offset: int, initial_offset: int) -> TruncationPoint:
    end = log.log_end_offset
    if leader_end_offset == UNDEFINED:
        return TruncationPoint(initial_offset, True)
    if leader_epoch == UNDEFINED:
        return TruncationPoint(min(leader_end_offset, end), True)
    own_epoch, own_end = log.end_offset_for_epoch(leader_epoch)
    if own_end == UNDEFINED:
        return TruncationPoint(min(leader_end_offset, end), True)
    if own_epoch != leader_epoch:
        return TruncationPoint(min(own_end, end), False)
    return TruncationPoint(min(own_end, leader_end_offset, end), True)
