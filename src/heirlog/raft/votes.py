"""The votes of one candidacy: the arithmetic of a majority, without any I/O.

A candidate counts over the voter set that it knew when it began. It fetches nothing meanwhile, so that set stays.

    won    as many voters have granted as a majority has
    lost   so many have refused that no majority can grant any more

Source: KIP-595, "Vote".
"""

from __future__ import annotations

from collections.abc import Iterable

from heirlog.raft.replica_key import ReplicaKey


def majority(voters: int) -> int:
    """How many of so many voters decide."""
    return voters // 2 + 1


class Votes:
    def __init__(self, voters: Iterable[ReplicaKey], me: ReplicaKey) -> None:
        """me: this candidate. If it is one of the voters, its own vote counts at once."""
        self._answers: dict[ReplicaKey, bool | None] = dict.fromkeys(voters)
        if me in self._answers:
            self._answers[me] = True

    @property
    def unanswered(self) -> list[ReplicaKey]:
        return [voter for voter, granted in self._answers.items() if granted is None]

    @property
    def granting(self) -> list[ReplicaKey]:
        return [voter for voter, granted in self._answers.items() if granted]

    @property
    def won(self) -> bool:
        return len(self.granting) >= majority(len(self._answers))

    @property
    def lost(self) -> bool:
        return len(self.granting) + len(self.unanswered) < majority(len(self._answers))

    def record(self, voter: ReplicaKey, granted: bool) -> None:
        """The answer of a voter. Raises ValueError if it contradicts an earlier one: votes are durable."""
        if self._answers[voter] is not None and self._answers[voter] is not granted:
            raise ValueError(f"voter {voter.id} has changed its vote within one candidacy")
        self._answers[voter] = granted
