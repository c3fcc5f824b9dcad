"""When a metadata record is committed: the arithmetic of the quorum, without any I/O.

A record is committed once a majority of the voters has *flushed* it. Each voter has one number, its flushed end. For a
follower that is its fetch offset (it flushes before it fetches more), for the leader its own flushed end.

    committed(ends, start of the epoch) = the highest end that a majority has reached, if it is above the start of
                                          the current epoch; otherwise nothing new is committed

Two traps. A leader that counted its *written* end would acknowledge records that a power cut can remove (guard 14). A
record of an older epoch must not be committed by counting copies alone, because a later leader without it may still
win. So a leader commits it together with the first record of its own epoch (guard 18; the Raft paper, section 5.4.2).

A follower may have records that the leader has not flushed: the leader sends what it has written (fetch_service.py).
They are committed once a majority has flushed them, with or without the leader. If the leader loses others in a power
cut, the follower's log is longer than that of the next leader, or differs from it. Then the follower truncates its log
to the leader's (divergence.py), but never below the offset that it knows to be committed (committed_offset.py).
"""

from __future__ import annotations

from collections.abc import Iterable


def flush_reached(end_offset: int, flushed_offset: int) -> bool:
    """Guard 14: an acknowledgement by the quorum waits for the flush.

    True if everything below `end_offset` is flushed, so that this end may be counted (leader) or sent as the next fetch
    offset (follower). Called through this module's global, so that the simulator can remove the guard.
    """
    return end_offset <= flushed_offset


def countable_end(log_end_offset: int, flushed_offset: int) -> int:
    """The end of one's own log that may be counted as an acknowledgement."""
    return log_end_offset if flush_reached(log_end_offset, flushed_offset) else flushed_offset


def ends_in_own_epoch(end_offset: int, epoch_start_offset: int) -> bool:
    """Guard 18: a record of an older epoch is committed together with one of the leader's own epoch.

    Called through this module's global, so that the simulator can remove the guard.
    """
    return end_offset > epoch_start_offset


def committed_end(voter_ends: Iterable[int], epoch_start_offset: int) -> int | None:
    """The offset below which everything is committed; None while nothing of the current epoch is.

    voter_ends: the flushed end of each voter, including the leader's own (-1: no fetch in this epoch yet).
    """
    descending = sorted(voter_ends, reverse=True)
    reached_by_majority = descending[len(descending) // 2]
    return reached_by_majority if ends_in_own_epoch(reached_by_majority, epoch_start_offset) else None
