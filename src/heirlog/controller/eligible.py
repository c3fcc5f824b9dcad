"""Eligible leader replicas: members that left the ISR and still hold every committed record.

A record is committed only while the ISR has at least M members (M: effective min ISR). So whoever leaves an ISR that
falls below M misses nothing: nothing commits until the ISR is back at M. Such a replica may lead later without loss.

    |ISR| >= M    nobody to remember: the next commit may pass every outsider by
    |ISR| <  M    who leaves the ISR enters the ELR, and stays until it
                  joins the ISR | stops uncleanly | loses its directory | leaves the assignment | is elected

Two traps. Fencing is no reason to leave: a fenced member's log is as complete as before, it only cannot lead *now*. An
unclean stop is one: what was not flushed may be gone, and no later answer can prove otherwise.

The last known leader is what remains when even the ELR is gone (the shipped rule, with the recovery manager off): a
record that takes the leader away while the list is empty writes that leader; a record that names a leader while it is
not empty empties it. So it is neither rewritten by later losses nor cleared by a growing ISR.

Source: KIP-966, "ELR invariants", "Unclean shutdown".
"""

from __future__ import annotations

from collections.abc import Collection

from heirlog.metadata.state import Ids, PartitionState
from heirlog.protocol.types import NO_LEADER, BrokerId


def eligible_after(
    before: PartitionState, isr: Ids, replicas: Collection[BrokerId], min_isr: int, lost: Collection[BrokerId] = ()
) -> Ids:
    """Who is eligible once `isr` is the ISR and `replicas` the assignment, ascending.

    lost: replicas whose data this very change must count as gone (unclean stop, failed directory).
    """
    if len(isr) >= min_isr:
        return ()
    held_everything = {*before.elr, *before.isr}
    return tuple(
        sorted(
            replica for replica in held_everything if replica not in isr and replica not in lost and replica in replicas
        )
    )


def last_known_after(before: PartitionState, named_leader: BrokerId | None, replicas: Collection[BrokerId]) -> Ids:
    """LastKnownELR after a record that names `named_leader` (-1: takes the leader away; None: says nothing)."""
    # a name outside the assignment would wait for a broker that has no replica any more
    known = before.last_known_elr
    if known:
        known = tuple(replica for replica in known if replica in replicas)
    if named_leader is None:
        return known
    if named_leader != NO_LEADER:
        return ()
    if not known and before.leader in replicas:
        return (before.leader,)
    return known
