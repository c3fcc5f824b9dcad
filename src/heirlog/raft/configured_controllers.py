"""The controllers that a node's configuration names, and what that decides.

    controller.quorum.bootstrap.servers   addresses only: where a node asks for the leader
    controller.quorum.voters              addresses as well; and, as long as neither the log nor a snapshot names voters
                                          (kraft.version 0), who votes

Trap: with `controller.quorum.voters` a controller whose disk was replaced votes although it has lost its log and its
vote: at kraft.version 0 its id is its identity. With voters in the log it is another replica, and has to be added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heirlog.protocol.types import Endpoint
from heirlog.raft.control import Voter
from heirlog.raft.local_replica import LocalReplica


@dataclass(frozen=True, slots=True)
class ConfiguredControllers:
    me: Voter | None
    """On a controller this node itself, at its current address."""
    static_voters: tuple[Voter, ...] = ()
    """controller.quorum.voters, without directory ids."""
    bootstrap_endpoints: Sequence[Endpoint] = ()
    """Where an observer asks for the leader, in addition to the voters' endpoints."""

    def current(self, replica: LocalReplica, in_log: Sequence[Voter]) -> tuple[Voter, ...]:
        """The log's voters, with this node's current endpoint (a port may change between two starts)."""
        return tuple(self.me if self.me and replica.is_voter(voter) else voter for voter in in_log)

    def endpoints(self, replica: LocalReplica, in_log: Sequence[Voter]) -> list[Endpoint]:
        """Where this node asks for the leader while it does not know it."""
        others = [voter.endpoint for voter in (*self.static_voters, *in_log) if voter.id != replica.node_id]
        found = dict.fromkeys((*self.bootstrap_endpoints, *others))
        return [one for one in found if self.me is None or one != self.me.endpoint]
