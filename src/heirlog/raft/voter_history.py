"""Which nodes vote, by offset: every voter set that the log names, so that a truncation restores the one before.

    base        the set of the newest snapshot, of the bootstrap checkpoint, or of the configuration (offset -1)
    offset 12   the set of the Voters record at offset 12
    offset 40   ...

A set is in force as soon as its record is in the log, committed or not: on the leader when it appends the record, on a
follower when it fetches it, and at a start when the log is scanned. So a set can be taken back, by truncation only.

Two traps. A snapshot contains committed state, so its set is the one at its end, never the newest one: a newer set may
still be truncated. Two neighbouring sets differ by at most one voter. Then any majority of the one and any majority of
the other have a voter in common, and two leaders of one epoch are impossible.

Source: KIP-853, "Voter Changes".
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

from heirlog.raft.control import Voter, kraft_version_of
from heirlog.raft.replica_key import ReplicaKey

BASE_OFFSET = -1
"""Offset of a set that no record of the log names."""


class RemovedVoter(NamedTuple):
    offset: int
    """Offset of the batch that names the voters without it."""
    voter: Voter


class VotersAt(NamedTuple):
    offset: int
    """Offset of the batch that names the voters; `BASE_OFFSET` if it is not in the log."""
    voters: tuple[Voter, ...]


def changed_voters(before: Iterable[Voter], after: Iterable[Voter]) -> int:
    """How many voters were added, or how many were removed, whichever is more. Another endpoint is no change.

    Nor is the step from kraft.version 0 to 1, by which the same voters get directory ids.
    """
    old, new = tuple(before), tuple(after)
    has_disks = kraft_version_of(old) and kraft_version_of(new)
    keys = [{voter.key if has_disks else voter.id for voter in voters} for voters in (old, new)]
    return max(len(keys[0] - keys[1]), len(keys[1] - keys[0]))


class VoterHistory:
    def __init__(self, base: tuple[Voter, ...] = (), offset: int = BASE_OFFSET) -> None:
        self._sets = [VotersAt(offset, base)]

    @property
    def latest(self) -> tuple[Voter, ...]:
        """The set in force."""
        return self._sets[-1].voters

    @property
    def latest_offset(self) -> int:
        """Where the set in force was named; the set is committed once the high watermark is above it."""
        return self._sets[-1].offset

    def at(self, end_offset: int) -> tuple[Voter, ...]:
        """The set in force for a log that ends at `end_offset` (exclusive); the oldest known one for earlier ends."""
        return self._sets[max(self._first_at(end_offset) - 1, 0)].voters

    def removed(self, key: ReplicaKey) -> RemovedVoter | None:
        """When the voter was removed; None if it is in the set in force, or in none that is known."""
        removed_at = None
        for known in reversed(self._sets):
            voter = next((voter for voter in known.voters if voter.key.covers(key)), None)
            if voter is not None:
                return None if removed_at is None else RemovedVoter(removed_at, voter)
            removed_at = known.offset
        return None

    def add(self, offset: int, voters: tuple[Voter, ...]) -> None:
        """A Voters record was appended at `offset`, at or above all others. Raises ValueError for one below."""
        if offset <= self.latest_offset:
            raise ValueError(f"voters at offset {offset}, and the newest known ones are at {self.latest_offset}")
        self._sets.append(VotersAt(offset, voters))

    def truncate_to(self, end_offset: int) -> None:
        """The log ends at `end_offset` now: sets named at or above it are no longer in force."""
        del self._sets[max(self._first_at(end_offset), 1) :]

    def trim_to(self, start_offset: int) -> None:
        """The log starts at `start_offset` now: only the newest set below it can still be needed."""
        del self._sets[: max(self._first_at(start_offset) - 1, 0)]

    def _first_at(self, offset: int) -> int:
        """Index of the first set named at or above `offset`."""
        return bisect_left(self._sets, offset, key=lambda known: known.offset)
