"""When a metadata record is committed: the arithmetic of the quorum, without any I/O.

A record is committed once a majority of the voters has *flushed* it. Each voter has one number, its flushed end: what a
follower's fetch offset says (it flushes before it asks for more), and for the leader its own flushed end.

    committed(ends, start of the epoch) = the highest end that a majority has reached, if it lies past the start of
                                          the current epoch; otherwise nothing new is committed

Two traps. A leader that counted its *written* end would acknowledge what a power cut takes away (guard 14). And a
record of an older epoch must not be committed by counting copies alone: a later leader without it may still win, so a
leader commits it together with the first record of its own epoch (the Raft paper, section 5.4.2).
"""

from __future__ import annotations

from collections.abc import Iterable


def flush_reached(end_offset: int, flushed_offset: int) -> bool:
    """Guard 14: an acknowledgement by the quorum waits for the flush.

    True if everything below `end_offset` is flushed, so that this end may be counted (leader) or sent as the next
    fetch offset (follower). Called through this module's global, so that the simulator can take it away.
    """
    return end_offset <= flushed_offset


def countable_end(log_end_offset: int, flushed_offset: int) -> int:
    """The end of one's own log that may be counted as an acknowledgement."""
    return log_end_offset if flush_reached(log_end_offset, flushed_offset) else flushed_offset


def committed_end(voter_ends: Iterable[int], epoch_start_offset: int) -> int | None:
    """The offset below which everything is committed; None while nothing of the current epoch is.

    voter_ends: the flushed end of each voter, the leader's own among them (-1: never heard of in this epoch).
    """
    descending = sorted(voter_ends, reverse=True)
    reached_by_majority = descending[len(descending) // 2]
    return reached_by_majority if reached_by_majority > epoch_start_offset else None
