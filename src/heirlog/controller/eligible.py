"""Eligible leader replicas: members that left the ISR and still hold every committed record.

A record is committed only while the ISR has at least M members (M: effective min ISR). While the ISR has fewer, nothing
is committed. So a replica that leaves the ISR when the ISR falls below M misses no committed record until the ISR is
back at M. Until then it may become leader without loss.

    |ISR| >= M    the ELR is empty: the next committed record may be missing on every replica outside the ISR
    |ISR| <  M    a replica that leaves the ISR enters the ELR. It stays until it
                  joins the ISR | stops uncleanly | loses its directory | leaves the assignment
                  or another rule empties or shortens the list:
                      it is elected, or a lossy election elects another replica    partition_change.py
                      min.insync.replicas changes (ClearElr record)                cleared_elr.py
                      the feature is downgraded                                    update_features.py
                      its broker is unregistered                                   leadership.py
                      the metadata is older than the replicas' logs                reset_partition.py

Two traps. A fenced member stays: its log is as complete as before, it only cannot lead *now*. A replica that stopped
uncleanly leaves: records that were not flushed may be gone, and no later answer can prove that they are not.

LastKnownELR is what remains when the ELR is empty too. It has two forms:

    recovery manager off    one last known leader, as in Apache Kafka. Two changes of the leader change it:
                                leader := -1, list empty    list = [the former leader]
                                leader := a broker          list = []
                            Later losses do not change it, and a growing ISR does not clear it
    recovery manager on     all lost replicas: members of ISR and ELR whose data may be gone, in the order in which they
                            were lost (a leader lost by the same record before the others). Emptied when the ISR reaches
                            M or a leader is elected on a lossy basis; a fenced leader is not added

Neither form names a replica outside the assignment, or a broker that was unregistered.

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
    """The ELR once `isr` is the ISR and `replicas` the assignment, ascending.

    lost: replicas whose data may be gone because of this very change (unclean stop, failed directory).
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
    """Apache Kafka's list after a record that names `named_leader` (-1: no leader; None: the leader stays)."""
    # otherwise the partition would wait for a broker that has no replica any more
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
    """All lost replicas once `isr` and `elr` are the lists and `replicas` the assignment, oldest loss first."""
    if len(isr) >= min_isr:
        return ()
    members = [before.leader, *before.isr, *before.elr]
    lost_now = [replica for replica in members if replica in lost and (replica in before.isr or replica in before.elr)]
    known = dict.fromkeys((*before.last_known_elr, *lost_now))
    return tuple(replica for replica in known if replica in replicas and replica not in isr and replica not in elr)
