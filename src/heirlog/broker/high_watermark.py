"""The high watermark: the offset below which every record is committed.

A leader moves it to the lowest end offset among the replicas that may be elected, and never back:

    |committed ISR| <  effective min ISR    it does not move: a replica that leaves such an ISR enters the ELR and may
                                            lead later, so no record may be committed that it lacks (KIP-966)
    |committed ISR| >= effective min ISR    min over the leader and every follower that is in the maximal ISR, or
                                            that is caught up and may join (otherwise a follower that is about to
                                            join might never reach the moving high watermark)

Trap: ISR and min ISR must be from *one* metadata image. Suppose the controller raises the min ISR and then confirms a
shrink. A leader that knows the small ISR (from the answer) and the small min ISR (from its older image) would move the
high watermark beyond the log of a member that is now in the ELR. So until the image has reached the offset at which a
change was committed, the ISR of the image *and* those of all answers since are used: each must be large enough, and the
members of each count for the minimum (docs/internals/design.md, "high watermark"). The image alone is not enough, as
the simulation found:

    1  the image of leader 1 has ISR 1,3
    2  the controller confirms ISR 1,3,2, and then ISR 1: replicas 2 and 3 enter the ELR
    3  the leader has both answers, and still the image with ISR 1,3. By the image alone it waits for replica 3 only,
       and moves the high watermark beyond the log of replica 2, which may be elected

Source: KIP-966 "ELR invariants"; kafka-behaviour 4.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from heirlog.broker.followers import Follower, RegisteredBrokers
from heirlog.broker.isr import Members
from heirlog.protocol.types import BrokerId


def committed_isr_is_large_enough(isr_size: int, min_isr: int) -> bool:
    """Guard 8: the high watermark needs a committed ISR of at least the effective min ISR (KIP-966).

    Called through this module's global, so that the simulator can remove the guard.
    """
    return isr_size >= min_isr


def next_high_watermark(
    current: int,
    *,
    leader_end_offset: int,
    committed_isrs: Sequence[Members],
    image_min_isr: int,
    maximal_isr: Members,
    followers: Mapping[BrokerId, Follower],
    registered_brokers: RegisteredBrokers,
    lag_limit_ms: int,
) -> int:
    """The leader's next high watermark; `current` if it does not move.

    committed_isrs: the image's ISR, and those of answers that the image does not contain yet.
    """
    for isr in committed_isrs:
        if not committed_isr_is_large_enough(len(isr), image_min_isr):
            return current
    lowest = leader_end_offset
    for broker_id, follower in followers.items():
        if follower.log_end_offset >= lowest:
            continue
        if (
            broker_id in maximal_isr
            or any(broker_id in isr for isr in committed_isrs)
            or (follower.is_caught_up(leader_end_offset, lag_limit_ms) and registered_brokers.may_join_isr(follower))
        ):
            lowest = follower.log_end_offset
            if lowest <= current:
                return current
    return lowest if lowest > current else current
