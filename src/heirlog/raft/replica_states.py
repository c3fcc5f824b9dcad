"""The end offset of each replica of the metadata log, as its leader knows it: for commits and for DescribeQuorum.

A replica's end is its last valid fetch offset. It has *caught up* at the time of a fetch that reaches the leader's end,
or at the time of the fetch before, if it reaches the end that the leader had then (KIP-595, as `isr.py` does for data).

A new leader knows no ends: an end from an older epoch may be in a part of the log that was truncated since.

Trap. A voter is a node and its disk. The same node with a new disk is another replica, which has lost what the voter
had flushed: its fetches must not count as the voter's (guard 20).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from heirlog.protocol.types import ZERO_UUID
from heirlog.raft.control import Voter
from heirlog.raft.replica_key import ReplicaKey

OBSERVER_SESSION_MS = 300_000
"""An observer that has not fetched for this long is no longer listed."""
MAX_REPLICAS = 10_000


@dataclass(slots=True)
class ReplicaState:
    end_offset: int = -1
    last_fetch_ms: int = -1
    """Wall time, like the two others."""
    last_caught_up_ms: int = -1
    leader_end_at_last_fetch: int = -1


_NEVER_FETCHED = ReplicaState()


def is_disk_of(key: ReplicaKey, voter: Voter) -> bool:
    """Guard 20: a fetch counts for a commit only if it comes from the disk of a voter (KIP-853).

    A voter of the configuration (kraft.version 0) names no disk: the newest fetch of its node counts. Called through
    this module's global, so that the simulator can remove the guard.
    """
    return voter.key.covers(key)


class ReplicaStates:
    def __init__(self) -> None:
        self._replicas: dict[ReplicaKey, ReplicaState] = {}
        self._keys: dict[int, list[ReplicaKey]] = {}
        """Those of each node: one for each of its disks, the one that fetched last at the end."""

    def fetched(self, key: ReplicaKey, end_offset: int, leader_end_offset: int, wall_ms: int) -> bool:
        """Note a fetch. True if a voter's end may be another one since: more may be committed."""
        progress = self._replicas.pop(key, None)
        disks = self._keys.setdefault(key.id, [])
        has_moved = progress is None or progress.end_offset != end_offset or disks[-1] != key
        if progress is None:
            progress = ReplicaState()
            disks.append(key)
        elif disks[-1] != key:
            disks.remove(key)
            disks.append(key)
        self._replicas[key] = progress  # at the end: the first one has not fetched for the longest time
        if len(self._replicas) > MAX_REPLICAS:
            self._forget(next(iter(self._replicas)))
        if end_offset >= leader_end_offset:
            progress.last_caught_up_ms = wall_ms
        elif 0 <= progress.leader_end_at_last_fetch <= end_offset:
            progress.last_caught_up_ms = progress.last_fetch_ms
        progress.end_offset = end_offset
        progress.last_fetch_ms = wall_ms
        progress.leader_end_at_last_fetch = leader_end_offset
        return has_moved

    def of_voter(self, voter: Voter) -> ReplicaState:
        """The voter's state. A fetch from another disk than the voter's is an observer's: it counts for no commit."""
        own = (self._replicas[key] for key in reversed(self._keys.get(voter.id, ())) if is_disk_of(key, voter))
        return next(own, _NEVER_FETCHED)

    def observers(self, voters: Iterable[Voter], wall_ms: int) -> list[tuple[ReplicaKey, ReplicaState]]:
        """All replicas that are not voters, by id."""
        voting = {voter.key for voter in voters}
        silent = [k for k, p in self._replicas.items() if wall_ms - p.last_fetch_ms > OBSERVER_SESSION_MS]
        for key in silent:
            self._forget(key)
        listed = [(k, p) for k, p in self._replicas.items() if voting.isdisjoint((k, ReplicaKey(k.id, ZERO_UUID)))]
        return sorted(listed, key=lambda entry: entry[0])

    def _forget(self, key: ReplicaKey) -> None:
        del self._replicas[key]
        self._keys[key.id].remove(key)
        if not self._keys[key.id]:
            del self._keys[key.id]
