"""A leader's contact with the other voters: it announces its epoch to those that are silent, and resigns without them.

    at the start, then every half fetch timeout    BeginQuorumEpoch to each voter that has not fetched meanwhile
    a fetch of a voter                             counts for the majority, and needs no announcement
    no majority within 1.5 fetch timeouts          `on_isolated`: another leader may have been elected

Without the last rule a leader that was cut off would go on accepting requests that can never be committed, and its
brokers would stay with it (KAFKA-15489). A leader that is the only voter needs no other. A leader that is not a voter
any more does not count itself.

An answer with a newer epoch ends the leadership: `on_heard` notifies the owner.

Source: KIP-595 "BeginQuorumEpoch", KIP-853 (sent repeatedly, as a voter may learn its leader's address only by it).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heirlog.env import Cancel, Env, SendFailure
from heirlog.protocol.messages import BeginQuorumEpochResponse
from heirlog.protocol.types import ZERO_UUID
from heirlog.raft import epoch_messages
from heirlog.raft.control import Voter
from heirlog.raft.epoch_messages import CHANNEL, Heard
from heirlog.raft.quorum_config import QuorumConfig
from heirlog.raft.replica_key import ReplicaKey
from heirlog.raft.votes import majority


@dataclass(frozen=True, slots=True)
class ContactEvents:
    on_heard: Callable[[Heard], bool]
    """A voter answered. True if this leadership ended by what it said."""
    on_isolated: Callable[[], None]
    """No majority has fetched for too long."""


class VoterContact:
    def __init__(
        self,
        env: Env,
        cluster_id: str,
        me: Voter,
        epoch: int,
        voters: Callable[[], Sequence[Voter]],
        config: QuorumConfig,
        events: ContactEvents,
    ) -> None:
        """voters: the set in force, which may change."""
        self._env = env
        self._cluster_id = cluster_id
        self._me = me
        self._epoch = epoch
        self._voters = voters
        self._config = config
        self._events = events
        self._fetched: set[ReplicaKey] = set()
        """Replicas that fetched since the last announcements, each with and without its directory id."""
        self._present: set[ReplicaKey] = set()
        """Those that fetched since the last time that a majority was there."""
        self._in_flight: set[ReplicaKey] = set()
        self._cancel_begin: Cancel | None = None
        self._cancel_check: Cancel | None = None
        self._closed = False

    def voters_changed(self) -> None:
        """The leadership starts, or another set is in force."""
        if self._cancel_begin is None and self._others():
            self._expect_majority()
            self._begin()

    def close(self) -> None:
        self._closed = True
        for cancel in (self._cancel_begin, self._cancel_check):
            if cancel is not None:
                cancel()

    def fetched(self, key: ReplicaKey) -> None:
        """A replica fetched records or a part of a snapshot."""
        if key in self._fetched and key in self._present:
            return
        # a voter of the configuration has no directory id
        keys = {key, ReplicaKey(key.id, ZERO_UUID)}
        self._fetched |= keys
        if key in self._present:
            return
        self._present |= keys
        # a leader without other voters misses no majority
        if self._cancel_begin is not None and self._has_majority():
            self._expect_majority()

    def _others(self) -> list[Voter]:
        return [voter for voter in self._voters() if voter.key != self._me.key]

    # BeginQuorumEpoch

    def _begin(self) -> None:
        self._cancel_begin = self._env.call_later(self._config.fetch_timeout_ms // 2, self._begin)
        silent = [voter for voter in self._others() if voter.key not in self._fetched | self._in_flight]
        self._fetched.clear()
        for voter in silent:
            self._announce(voter)

    def _announce(self, voter: Voter) -> None:
        self._in_flight.add(voter.key)
        request = epoch_messages.begin_request(self._cluster_id, self._me, voter.key, self._epoch)

        def answered(result: BeginQuorumEpochResponse | SendFailure) -> None:
            self._in_flight.discard(voter.key)
            if self._closed or isinstance(result, SendFailure):
                return
            answer = epoch_messages.heard(result)
            if answer is not None:
                self._events.on_heard(answer)

        self._env.send(voter.endpoint, CHANNEL, request, answered, self._config.request_timeout_ms)

    # the majority

    def _has_majority(self) -> bool:
        voters = [voter.key for voter in self._voters()]
        present = sum(key == self._me.key or key in self._present for key in voters)
        return present >= majority(len(voters))

    def _expect_majority(self) -> None:
        self._present.clear()
        if self._cancel_check is not None:
            self._cancel_check()
        self._cancel_check = self._env.call_later(self._config.fetch_timeout_ms * 3 // 2, self._check)

    def _check(self) -> None:
        if self._has_majority():
            self._expect_majority()
        else:
            self._events.on_isolated()
