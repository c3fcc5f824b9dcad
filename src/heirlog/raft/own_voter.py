"""A controller's own entry among the voters, which it keeps correct while it follows a leader.

    a voter, and the set has another address of it     UpdateRaftVoter: its listener or its port has changed
    no voter, but one has its id                       RemoveRaftVoter of that one: its disk was replaced
    no voter, and none has its id                      AddRaftVoter of itself

At kraft.version 0 the configuration names the voters. There, a voter sends one UpdateRaftVoter to each new leader,
which needs its directory id to raise the level.

It looks once per fetch timeout and sends one request at a time. Every refusal is tried again at the next look: another
change may be in progress, this node may not have caught up, or a request that seemed to fail may have been executed.

The last two are for `controller.quorum.auto.join.enable` only. Without it, an operator adds and removes controllers.
With it, a controller that an operator removes comes back, unless it is stopped first.

The addition is answered when its record is appended (KIP-1186): with two voters, only the next fetch of this node
commits it.

A leader writes its own address at the start of its epoch (`leader.py`).

Source: KIP-853 "UpdateRaftVoter", KIP-1186.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from heirlog.env import Cancel, Env, SendFailure
from heirlog.protocol.errors import ErrorCode, error_code
from heirlog.protocol.messages import (
    AddRaftVoterRequest,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from heirlog.protocol.types import Endpoint
from heirlog.raft.answers import LeaderAndEpoch
from heirlog.raft.control import KRAFT_VERSION, Voter, kraft_version_of
from heirlog.raft.quorum_config import QuorumConfig

CHANNEL = "own-voter"
"""A connection of its own: the leader answers only after it has asked this node for its versions."""


class OwnVoter:
    """For one leader; closed when the node no longer follows it."""

    def __init__(
        self,
        env: Env,
        cluster_id: str,
        me: Voter,
        leadership: LeaderAndEpoch,
        voters: Callable[[], Sequence[Voter]],
        config: QuorumConfig,
        on_leader_named: Callable[[LeaderAndEpoch], object],
    ) -> None:
        """me: this node with the address that it has now. voters: the set in force, as the log names it.

        on_leader_named: called with the leader that an answer names.
        """
        self._env = env
        self._cluster_id = cluster_id
        self._me = me
        self._leadership = leadership
        self._voters = voters
        self._config = config
        self._on_leader_named = on_leader_named
        self._cancel: Cancel | None = None
        self._is_updated = False
        """The leader has answered an UpdateRaftVoter of this node."""
        self._closed = False

    def start(self) -> None:
        self._cancel = self._env.call_later(self._config.fetch_timeout_ms, self._look)

    def close(self) -> None:
        self._closed = True
        if self._cancel is not None:
            self._cancel()

    def _look(self) -> None:
        request, target = self._request(), self._leadership.endpoint
        if request is None or target is None:
            self.start()
            return
        self._env.log("info", "quorum-voter-request", request=type(request).__name__, leader=str(target))
        self._env.send(target, CHANNEL, request, self._answered, self._config.request_timeout_ms)

    def _request(self) -> AddRaftVoterRequest | RemoveRaftVoterRequest | UpdateRaftVoterRequest | None:
        """The request that corrects the set of voters; None if it is correct."""
        voters = self._voters()
        known = next((voter for voter in voters if voter.id == self._me.id), None)
        if not kraft_version_of(voters):
            return None if known is None or self._is_updated else self._update()
        if known == self._me:
            return None
        if known is not None and known.key == self._me.key:
            return self._update()
        if not self._config.auto_join:
            return None
        if known is not None:
            return RemoveRaftVoterRequest(
                cluster_id=self._cluster_id, voter_id=known.id, voter_directory_id=known.directory_id
            )
        return self._add()

    def _add(self) -> AddRaftVoterRequest:
        me, listener = self._me, AddRaftVoterRequest.Listener
        return AddRaftVoterRequest(
            cluster_id=self._cluster_id,
            timeout_ms=self._config.request_timeout_ms,
            voter_id=me.id,
            voter_directory_id=me.directory_id,
            listeners=[listener(name=me.listener, host=me.endpoint.host, port=me.endpoint.port)],
            ack_when_committed=False,
        )

    def _update(self) -> UpdateRaftVoterRequest:
        me, message = self._me, UpdateRaftVoterRequest
        return message(
            cluster_id=self._cluster_id,
            current_leader_epoch=self._leadership.epoch,
            voter_id=me.id,
            voter_directory_id=me.directory_id,
            listeners=[message.Listener(name=me.listener, host=me.endpoint.host, port=me.endpoint.port)],
            k_raft_version_feature=message.KRaftVersionFeature(
                min_supported_version=0, max_supported_version=KRAFT_VERSION
            ),
        )

    def _answered(self, result: Any) -> None:
        """An answer to any of the three requests, or a SendFailure."""
        if self._closed:
            return
        self.start()
        if isinstance(result, SendFailure):
            self._env.log("info", "quorum-voter-request-failed", why=f"{result.kind} {result.detail}".strip())
            return
        code = error_code(result.error_code)
        if code is ErrorCode.NONE:
            self._is_updated = isinstance(result, UpdateRaftVoterResponse)
        else:
            message = getattr(result, "error_message", None)
            self._env.log("info", "quorum-voter-request-refused", error=code.name, message=message)
        named = getattr(result, "current_leader", None)
        if named is not None and named.leader_epoch >= 0:
            endpoint = Endpoint(named.host, named.port) if named.leader_id >= 0 and named.host else None
            self._on_leader_named(LeaderAndEpoch(named.leader_id, named.leader_epoch, endpoint))
