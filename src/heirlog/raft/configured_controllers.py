"""The controllers that a node's configuration names. It gives their addresses.

Only the log and the bootstrap snapshot say which nodes vote. Otherwise a controller with an empty log that should join
a quorum would start another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heirlog.protocol.types import Endpoint
from heirlog.raft.control import Voter
from heirlog.raft.local_replica import LocalReplica


@dataclass(frozen=True, slots=True)
class ConfiguredControllers:
    voters: Sequence[Voter]
    """As configured; on a controller this node itself, at its current address."""
    bootstrap_endpoints: Sequence[Endpoint] = ()
    """Where an observer asks for the leader, in addition to the voters' endpoints."""

    def current(self, replica: LocalReplica, in_log: Sequence[Voter]) -> tuple[Voter, ...]:
        """The log's voters, with this node's current endpoint (a port may change between two starts)."""
        configured = replica.among(self.voters)
        return tuple(configured if configured and replica.is_voter(voter) else voter for voter in in_log)

    def endpoints(self, replica: LocalReplica, in_log: Sequence[Voter]) -> list[Endpoint]:
        """Where this node asks for the leader while it does not know it."""
        me = replica.among(self.voters)
        others = [voter.endpoint for voter in (*self.voters, *in_log) if voter.id != replica.node_id]
        return [one for one in (*self.bootstrap_endpoints, *others) if me is None or one != me.endpoint]
