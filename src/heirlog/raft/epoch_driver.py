"""The epoch of this node: drives `epoch_state` by time, by votes and by what other nodes say.

    timeout, answer, request -> next state -> `on_leave`: nothing leaves this node in its old role any more
                                           -> the durable part is written, if it changed
                                           -> `on_enter`: the node acts in its new role, and only now it answers

While the file is written, requests wait in order and are handled afterwards, in the new state. So the write looks as if
it blocked: an answer never shows an epoch or a vote that a power cut could undo, and no second decision is based on the
first one before that is durable. Timers and answers to requests of the old role count no more: each role has objects of
its own, which are closed when it ends.

How long each role lasts without an event:

    UNATTACHED, PROSPECTIVE, CANDIDATE, RESIGNED    election timeout, drawn again for each, up to twice as long; a newer
                                                    epoch alone does not restart it
    FOLLOWER                                        fetch timeout, from the last answered fetch on, and a little longer
                                                    for each voter with a lower id
    a node that is not a voter                      forever: it only fetches, and votes if it is asked

A controller may be a voter and not know it: the record that added it has not arrived, and its vote may be the one that
is missing. So it answers as a voter does. Once its leader has answered nothing for the fetch timeout, it grants
pre-votes as well.

A node that was removed from the voters counts as one until it knows that the removal is committed (`Quorum`).

The leader answers the waiting fetches of all followers at the same moment, with each record. So the fetch timeouts of
all would end at the same moment, too: each would ask for votes, get only its own, and wait for its election timeout.
Each waits GONE_STEP_MS longer than the one with the next lower id. Those that are still waiting refuse, and those that
have asked grant: the first one that finds a majority of them wins.

A voter that asks for pre-votes and refuses another one, whose log is shorter, asks once more: the other one may have
refused it before, when its own fetch timeout was not over yet.

A follower whose leader refuses connections does not wait for the fetch timeout: the process is gone. The voter with the
lowest id asks for pre-votes first, and the next one soon after it, in case that the first one is gone too or has a
shorter log. If a voter is wrong the others, which can still fetch, refuse.

Source: KIP-595, KIP-996; the state machine of Kafka's `KafkaRaftClient`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from heirlog.env import Cancel, Env
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.types import Endpoint
from heirlog.raft import epoch_state, quorum_state
from heirlog.raft.answers import LeaderAndEpoch
from heirlog.raft.candidacy import Candidacy, CandidacyEvents, VoteRound
from heirlog.raft.control import Voter
from heirlog.raft.divergence import Position
from heirlog.raft.epoch_messages import Heard
from heirlog.raft.epoch_state import EpochState, QuorumRole
from heirlog.raft.local_replica import LocalReplica
from heirlog.raft.quorum_config import QuorumConfig
from heirlog.raft.quorum_state import NOBODY, QuorumStateFile
from heirlog.raft.replica_key import ReplicaKey
from heirlog.raft.resignation import Resignation

HELD_REQUESTS_MAX = 10_000
"""Requests that wait until a state is durable; one more is refused."""
GONE_DELAY_MS = 25
"""A voter that finds its leader gone waits this long before it asks for votes: the others find it too by then, and
without that they refuse."""
GONE_STEP_MS = 100
"""How much longer each voter waits than the one with the next lower id: more than two rounds of votes and two flushes
take. If two ask for votes at the same time each may get only its own, and both wait for their election timeouts."""
_WITHOUT_LEADER = (QuorumRole.UNATTACHED, QuorumRole.PROSPECTIVE, QuorumRole.CANDIDATE, QuorumRole.RESIGNED)

R = TypeVar("R")
Answer: TypeAlias = R | Pending[R]


@dataclass(frozen=True, slots=True)
class EpochEvents:
    on_leave: Callable[[], None]
    """The role ends now: close everything that acts in it."""
    on_enter: Callable[[EpochState], None]
    """The state is durable: lead, or fetch from the leader or from a node that knows it."""
    on_handed_over: Callable[[], None]
    """The other voters know that this node has resigned."""
    fatal: Callable[[str], None]
    """The node cannot continue."""


class EpochDriver:
    def __init__(
        self,
        env: Env,
        file: QuorumStateFile,
        replica: LocalReplica,
        voters: Callable[[], Sequence[Voter]],
        me: Callable[[], Voter | None],
        log_end: Callable[[], Position],
        config: QuorumConfig,
        events: EpochEvents,
    ) -> None:
        """voters: the set in force. me: this node, while it may ask for votes. log_end: end of this node's log, as
        votes compare it.
        """
        self._env = env
        self._file = file
        self._replica = replica
        self._voters = voters
        self._find_me = me
        self._log_end = log_end
        self._config = config
        self._events = events
        self._round: Candidacy | Resignation | None = None
        self._hand_over_from: tuple[Voter, Sequence[Voter]] | None = None
        """Of a resigned leader: itself, as the voter that was elected, and its successors."""
        self._enter_once_durable: Callable[[], None] | None = None
        """Set while the file is written."""
        self._held: deque[Callable[[], None]] = deque()
        self._resigned_epoch = -1
        """The newest epoch whose leader has announced its resignation."""
        self._deadline_ms: int | None = None
        self._cancel_timer: Cancel | None = None
        self._closed = False
        self.granting: Sequence[ReplicaKey] = ()
        """The voters that elected this node, if it leads."""
        self.state = epoch_state.initial(
            file.stored, log_end().epoch, replica.key, self._me is not None, self._endpoint_of
        )

    @property
    def _me(self) -> Voter | None:
        return self._find_me()

    @property
    def _is_writing(self) -> bool:
        return self._enter_once_durable is not None

    def _others(self) -> list[Voter]:
        return [voter for voter in self._voters() if not self._replica.is_voter(voter)]

    def _endpoint_of(self, node_id: int) -> Endpoint | None:
        return next((voter.endpoint for voter in self._voters() if voter.id == node_id), None)

    @property
    def leadership(self) -> LeaderAndEpoch:
        """Leader and epoch for answers; never this node unless it leads: a follower would fetch from it for ever."""
        state = self.state
        if state.leader_id == self._replica.node_id and state.role is not QuorumRole.LEADER:
            return LeaderAndEpoch(NOBODY, state.epoch, None)
        return LeaderAndEpoch(state.leader_id, state.epoch, state.leader_endpoint)

    def start(self) -> None:
        """Enter the first role. The file is written in any case: it may have been read before it was durable."""
        me = self._me
        if me is not None and not self._others():
            self.granting = [me.key]
            self.become(epoch_state.sole_voter(self.state, me.key, me.endpoint), write=True)
            return
        if self.state.role is QuorumRole.RESIGNED:
            self._hand_over_from = None if me is None else (me, self._others())
        self.become(self.state, write=True)

    def close(self) -> None:
        self._closed = True
        self._leave()
        self._held.clear()

    # from one state to the next

    def become(self, state: EpochState, then: Callable[[], None] = lambda: None, *, write: bool = False) -> None:
        """Take over `state`, and call `then` once it is durable."""
        before = self.state
        if state == before and not write:
            then()
            return
        deadline_ms = self._deadline_ms
        self._leave()
        self.state = state

        def enter() -> None:
            self._enter(before, deadline_ms)
            then()

        if write or state.durable != before.durable:
            self._write(state)
        if quorum_state.is_flushed(state.durable, self._file.flushed):
            enter()
        else:
            self._enter_once_durable = enter

    def _write(self, state: EpochState) -> None:
        def written(error: OSError | None) -> None:
            if self._closed:
                return
            if error is not None:
                self._write_failed(state, error)
                return
            enter, self._enter_once_durable = self._enter_once_durable, None
            if enter is not None:
                enter()
                self._handle_held()

        try:
            self._file.write(state.durable, written)
        except OSError as error:
            self._write_failed(state, error)

    def _write_failed(self, state: EpochState, error: OSError) -> None:
        where = self._replica.log_directory
        self._events.fatal(f"epoch {state.epoch} and the vote in it could not be written to {where}: {error}")

    def _leave(self) -> None:
        if self._round is not None:
            self._round.close()
            self._round = None
        if self._cancel_timer is not None:
            self._cancel_timer()
            self._cancel_timer = None
        self._deadline_ms = None
        self._events.on_leave()

    def _enter(self, before: EpochState, deadline_ms: int | None) -> None:
        state, me = self.state, self._me
        left_ms = 0 if deadline_ms is None else deadline_ms - self._env.now_ms()
        if self._replica.is_controller and state.role is QuorumRole.FOLLOWER:
            self._expire_in(self._fetch_timeout_ms())
        elif me is not None and left_ms > 0 and _keeps_timeout(before, state):
            self._expire_in(left_ms)
        elif state.role is QuorumRole.RESIGNED or (me is not None and state.role is not QuorumRole.LEADER):
            self._expire_in(self._election_timeout_ms())
        if me is not None and state.role in (QuorumRole.PROSPECTIVE, QuorumRole.CANDIDATE):
            self._ask_for_votes(me)
        elif state.role is QuorumRole.RESIGNED:
            self._hand_over()
        self._events.on_enter(state)

    # time

    def _election_timeout_ms(self) -> int:
        timeout_ms = self._config.election_timeout_ms
        return timeout_ms + self._env.random.randrange(0, max(timeout_ms, 1))

    def _fetch_timeout_ms(self) -> int:
        timeout_ms = self._config.fetch_timeout_ms
        return timeout_ms + self._rank() * min(GONE_STEP_MS, timeout_ms // 20)

    def _rank(self) -> int:
        """How many voters ask for votes before this node when the leader is lost."""
        return sum(voter.id < self._replica.node_id for voter in self._others() if voter.id != self.state.leader_id)

    def _expire_in(self, delay_ms: int) -> None:
        """The role ends after this long. A later end costs no timer: the one that runs looks again."""
        self._deadline_ms = self._env.now_ms() + delay_ms
        if self._cancel_timer is not None and delay_ms < self._config.fetch_timeout_ms:
            self._cancel_timer()
            self._cancel_timer = None
        if self._cancel_timer is None:
            self._cancel_timer = self._env.call_later(delay_ms, self._look_at_deadline)

    def _look_at_deadline(self) -> None:
        self._cancel_timer = None
        if self._deadline_ms is None:
            return
        left_ms = self._deadline_ms - self._env.now_ms()
        if left_ms > 0:
            self._cancel_timer = self._env.call_later(left_ms, self._look_at_deadline)
        else:
            self._expired()

    def _expired(self) -> None:
        state = self.state
        if state.role is QuorumRole.RESIGNED:
            self.become(epoch_state.unattached(state, state.epoch + 1))
        elif state.role is QuorumRole.PROSPECTIVE:
            self.become(epoch_state.not_elected(state))
        elif self._me is not None:
            self._env.log("info", "quorum-leader-timed-out", role=state.role.value, epoch=state.epoch)
            self.become(epoch_state.prospective(state))
        elif state.role is QuorumRole.FOLLOWER:
            self.state = epoch_state.leader_is_lost(state)

    # elections

    def _ask_for_votes(self, me: Voter) -> None:
        state = self.state
        pre_vote = state.role is QuorumRole.PROSPECTIVE
        vote_round = VoteRound(self._replica.cluster_id, state.epoch, self._log_end(), pre_vote)
        events = CandidacyEvents(self._won, self._lost, self._heard)
        candidacy = self._round = Candidacy(self._env, vote_round, me.key, self._voters(), self._config, events)
        candidacy.start()

    def refused_shorter_log(self) -> None:
        """A voter that has lost the leader asked for a pre-vote, and its log is shorter than that of this node."""
        me = self._me
        if self.state.role is QuorumRole.PROSPECTIVE and self._round is not None and me is not None:
            self._round.close()
            self._ask_for_votes(me)

    def _won(self, granting: Sequence[ReplicaKey]) -> None:
        me = self._me
        if me is None:
            return
        if self.state.role is QuorumRole.PROSPECTIVE:
            self.become(epoch_state.candidate(self.state, me.key))
        else:
            self.granting = granting
            self.become(epoch_state.leader(self.state, me.key, me.endpoint))

    def _lost(self) -> None:
        """A candidate waits for the end of its timeout: another one may have won."""
        if self.state.role is QuorumRole.PROSPECTIVE:
            self.become(epoch_state.not_elected(self.state))

    def _heard(self, heard: Heard) -> bool:
        return self.learn(heard.leadership)

    # what other nodes say

    def learn(self, named: LeaderAndEpoch, *, claimed: bool = False) -> bool:
        """A node named the leader and the epoch that it knows. True if this ended the role of this node.

        claimed: the leader itself said so, so it is alive, and listens at that endpoint.
        """
        known = self.state_with(named, claimed)
        if self._closed or known is None:
            return False
        self.become(known)
        return True

    def state_with(self, named: LeaderAndEpoch, claimed: bool) -> EpochState | None:
        """The next state by what was named; None if that is nothing new."""
        state = self.state
        leader_id = NOBODY if named.leader_id == self._replica.node_id else named.leader_id
        if named.epoch < state.epoch or (named.epoch == state.epoch and leader_id == NOBODY):
            return None
        if named.epoch == state.epoch and state.leader_id not in (NOBODY, leader_id):
            self._events.fatal(
                f"nodes {state.leader_id} and {leader_id} both claim to lead epoch {state.epoch} of the metadata "
                "quorum: a disk was copied, or quorum-state was removed or restored on a voter. Stop both, and compare "
                "their metadata logs before you start one of them"
            )
            return None
        is_known = named.epoch == state.epoch and state.leader_id == leader_id
        if is_known and state.leader_endpoint is not None and not claimed:
            return None
        endpoint = named.endpoint or (state.leader_endpoint if is_known else None) or self._endpoint_of(leader_id)
        if endpoint is None and named.epoch == state.epoch and state.role is QuorumRole.CANDIDATE:
            return None
        if leader_id == NOBODY or endpoint is None:
            known = epoch_state.unattached(state, named.epoch, leader_id)
        else:
            known = epoch_state.follower(state, named.epoch, leader_id, endpoint, self._replica.key)
        return None if known == replace(state, has_fetched=False) else known

    def fetched(self) -> None:
        """The leader has answered a fetch of this follower.

        An answer that arrives after the leader's resignation changes nothing: it was given before, and the next leader
        needs the vote of this node.
        """
        if self.state.role is QuorumRole.FOLLOWER and self.state.epoch != self._resigned_epoch:
            self.state = epoch_state.fetched(self.state)
            if self._replica.is_controller:
                self._expire_in(self._fetch_timeout_ms())

    def leader_resigned(self, delay_ms: int) -> None:
        """The leader of this follower has announced its resignation: ask for votes after `delay_ms`."""
        self._resigned_epoch = self.state.epoch
        if self.state.role is QuorumRole.FOLLOWER:
            self.state = epoch_state.leader_is_lost(self.state)
            if self._me is not None:
                self._expire_in(delay_ms)

    def leader_is_gone(self) -> None:
        """The leader's connection was reset, and its port refuses another one."""
        if self.state.role is not QuorumRole.FOLLOWER:
            return
        self.state = epoch_state.leader_is_lost(self.state)
        if self._me is not None and self._deadline_ms is not None:
            delay_ms = GONE_DELAY_MS + self._rank() * GONE_STEP_MS
            if self._deadline_ms - self._env.now_ms() > delay_ms:
                self._expire_in(delay_ms)

    # resigning

    def resign(self, me: Voter, successors: Sequence[Voter]) -> None:
        """This leader steps down.

        me: this node, which may be a voter no more. successors: the other voters, the one with the longest log first.
        """
        if self._is_writing:
            self._held.append(lambda: self.resign(me, successors))
        elif self.state.role is QuorumRole.LEADER:
            self._hand_over_from = me, successors
            self._env.log("warning", "quorum-leader-resigned", epoch=self.state.epoch)
            self.become(epoch_state.resigned(self.state))

    def _hand_over(self) -> None:
        if self._hand_over_from is None:
            return
        me, successors = self._hand_over_from
        if successors:
            self._round = Resignation(
                self._env,
                self._replica.cluster_id,
                me,
                self.state.epoch,
                successors,
                self._config,
                self._heard,
                self._events.on_handed_over,
            )
            self._round.start()

    # requests

    def when_settled(self, handle: Callable[[], Answer[R]], refuse: Callable[[ErrorCode], R]) -> Answer[R]:
        """Handle a request in a durable state: at once, or after those that wait already."""
        if not self._is_writing and not self._held:
            return handle()
        if len(self._held) >= HELD_REQUESTS_MAX:
            return refuse(ErrorCode.REQUEST_TIMED_OUT)
        pending: Pending[R] = Pending()

        def run() -> None:
            answer = handle()
            if isinstance(answer, Pending):
                answer.then(pending.complete)
            else:
                pending.complete(answer)

        self._held.append(run)
        return pending

    def _handle_held(self) -> None:
        while self._held and not self._is_writing and not self._closed:
            self._held.popleft()()


def _keeps_timeout(before: EpochState, state: EpochState) -> bool:
    """Whether the node waits only for what is left of the timeout of `before`.

    Only a vote restarts it. Otherwise a candidate that cannot win could keep the others from asking, with epoch after
    epoch. After lost pre-votes the timeout is a new one: meanwhile the node fetches, also from bootstrap servers. They
    may be the only ones that know the leader, if this node has missed its removal (KAFKA-17030).
    """
    if state.role is not QuorumRole.UNATTACHED:
        return False
    if state.epoch == before.epoch:
        return before.role is QuorumRole.UNATTACHED and state.voted == before.voted
    return state.voted is None and before.role in _WITHOUT_LEADER
