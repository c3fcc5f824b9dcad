"""Eligible leader replicas: members that left the ISR and still hold every committed record.

A record is committed only while the ISR has at least M members (M: effective min ISR). So whoever leaves an ISR that
falls below M misses nothing: nothing commits until the ISR is back at M. Such a replica may lead later without loss.

    |ISR| >= M    nobody to remember: the next commit may pass every outsider by
    |ISR| <  M    who leaves the ISR enters the ELR, and stays until it
                  joins the ISR | stops uncleanly | loses its directory | leaves the assignment | is elected

Two traps. Fencing is no reason to leave: a fenced member's log is as complete as before, it only cannot lead *now*. An
unclean stop is one: what was not flushed may be gone, and no later answer can prove otherwise.

LastKnownELR is what remains when even the ELR is gone. It has two forms:

    recovery manager off    one last known leader, as shipped: a record that takes the leader away while the list is
                            empty writes that leader; a record that names a leader while it is not empty empties it. So
                            it is neither rewritten by later losses nor cleared by a growing ISR
    recovery manager on     everyone lost: members of ISR and ELR whose data may be gone, in the order in which they
                            were lost (a leader lost by the same record before the others). Emptied when the ISR reaches
                            M or a leader is elected on a lossy basis; a fenced leader is not added

Neither form names a replica outside the assignment, nor a broker that was unregistered.

Source: KIP-966, "ELR invariants", "Unclean shutdown".
"""

from __future__ import annotations

from collections.abc import Collection

from heirlog.metadata.state import Ids, PartitionRegistration
from heirlog.protocol.types import NO_LEADER, BrokerId


def eligible_after(
    before: PartitionRegistration,
    isr: Ids,
    replicas: Collection[BrokerId],
    min_isr: int,
    lost: Collection[BrokerId] = (),
) -> Ids:
    """Who is eligible once `isr` is the ISR and `replicas` the assignment, ascending.

    lost: replicas whose data this very change must count as gone (unclean stop, failed directory).
    """
    held_everything = {*before.elr, *before.isr}
    if len(isr) >= min_isr or not held_everything:
        return ()
    return tuple(
        sorted(
            replica for replica in held_everything if replica not in isr and replica not in lost and replica in replicas
        )
    )


def last_known_after(
    before: PartitionRegistration, named_leader: BrokerId | None, replicas: Collection[BrokerId]
) -> Ids:
    """The shipped list after a record that names `named_leader` (-1: takes the leader away; None: says nothing)."""
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


def all_lost_after(
    before: PartitionRegistration,
    isr: Ids,
    elr: Ids,
    replicas: Collection[BrokerId],
    min_isr: int,
    lost: Collection[BrokerId] = (),
) -> Ids:
    """The full list once `isr` and `elr` are the lists and `replicas` the assignment, oldest loss first."""
    if len(isr) >= min_isr:
        return ()
    members = [before.leader, *before.isr, *before.elr]
    lost_now = [replica for replica in members if replica in lost and (replica in before.isr or replica in before.elr)]
    known = dict.fromkeys((*before.last_known_elr, *lost_now))
    return tuple(replica for replica in known if replica in replicas and replica not in isr and replica not in elr)
