"""Checks the voters of the quorum: which set each controller has in force, how it changes, and who asks for votes.

Q11    the set that a controller has in force is the one that the record at its offset names; neighbouring committed
       sets differ by at most one voter
Q12    a leader appends another set only once the one before and a record of its own epoch are committed
Q13    a controller that is not in its own set does not ask for votes, unless it does not know yet that its removal is
       committed: the voters that lack the removal still count it
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from heirlog.raft.control import Voter
from heirlog.raft.epoch_state import EpochState, QuorumRole
from heirlog.raft.metadata_log import MetadataLog
from heirlog.raft.replica_key import ReplicaKey
from heirlog.raft.voter_history import changed_voters


class VotingQuorum(Protocol):
    """What is read of `heirlog.raft.quorum.Quorum`."""

    @property
    def high_watermark(self) -> int: ...

    @property
    def key(self) -> ReplicaKey: ...

    @property
    def is_voter(self) -> bool: ...


class VoterChecker:
    """broken(rule, sentence): called for each broken rule."""

    def __init__(self, broken: Callable[[str, str], None]) -> None:
        self._broken = broken
        self._committed: dict[int, tuple[Voter, ...]] = {}
        """By the offset of the batch that names them."""
        self._newest: tuple[Voter, ...] = ()
        self._seen: dict[str, tuple[MetadataLog, int, int]] = {}
        """Of each controller: its log, the offset of the set in force and its high watermark, when it was seen last."""

    def committed(self, offset: int, voters: tuple[Voter, ...]) -> None:
        """The controllers have committed this set, which the batch at `offset` names."""
        if self._newest and changed_voters(self._newest, voters) > 1:
            self._broken("Q11", f"the voters at offset {offset} differ by more than one from those before")
        self._committed[offset] = self._newest = voters

    def observe(self, name: str, quorum: VotingQuorum, log: MetadataLog, state: EpochState) -> None:
        """After an event of the controller on this machine."""
        offset = log.voters_offset
        before = self._seen.get(name)
        self._seen[name] = (log, offset, quorum.high_watermark)
        if before is None or before[0] is not log or before[1] != offset:
            committed = self._committed.get(offset)
            if committed is not None and _keys(log.voters) != _keys(committed):
                self._broken("Q11", f"{name} has other voters in force than the record at offset {offset} names")
            if before is not None and before[0] is log and state.role is QuorumRole.LEADER:
                self._check_change(name, log, state, before[1], before[2], offset)
        if state.role in (QuorumRole.PROSPECTIVE, QuorumRole.CANDIDATE) and not quorum.is_voter:
            removed = log.removed_voter(quorum.key)
            if removed is None or removed.offset < quorum.high_watermark:
                self._broken("Q13", f"{name} asks for votes in epoch {state.epoch} and is not a voter")

    def _check_change(
        self, name: str, log: MetadataLog, state: EpochState, before: int, high_watermark: int, offset: int
    ) -> None:
        """Q12. The first batch of an epoch may name the voters again."""
        if log.epoch_below(offset) != state.epoch:
            return
        if before >= high_watermark:
            self._broken("Q12", f"{name} changes the voters at {offset}; the change at {before} is not committed")
        if log.epoch_below(high_watermark) != state.epoch:
            self._broken("Q12", f"{name} changes the voters at {offset} before a record of its epoch is committed")


def _keys(voters: tuple[Voter, ...]) -> set[ReplicaKey]:
    return {voter.key for voter in voters}
