"""One round of Vote requests: to every other voter, until a majority has granted or refused.

    send to all -> an answer          -> counted once per voter
                -> no answer, error   -> asked again after the back-off
                -> a newer epoch      -> the candidacy ends: `on_heard` notifies its owner

The owner closes the candidacy when its timeout is over, or when this node becomes anything else; answers that arrive
later change nothing (guard 19). They belong to another epoch than the one in which this node may ask now.

Trap: a voter without pre-votes (before KIP-996) answers UNSUPPORTED_VERSION. It cannot be asked without raising the
epoch, so the node does that at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heirlog.env import Cancel, Env, SendFailure
from heirlog.protocol.errors import ErrorCode, error_code
from heirlog.protocol.messages import VoteResponse
from heirlog.raft import epoch_messages
from heirlog.raft.control import Voter
from heirlog.raft.divergence import Position
from heirlog.raft.epoch_messages import CHANNEL, Heard
from heirlog.raft.quorum_config import QuorumConfig
from heirlog.raft.replica_key import ReplicaKey
from heirlog.raft.votes import Votes


@dataclass(frozen=True, slots=True)
class VoteRound:
    """What is asked of the voters."""

    cluster_id: str
    epoch: int
    end: Position
    """The end of the candidate's log."""
    pre_vote: bool


@dataclass(frozen=True, slots=True)
class CandidacyEvents:
    """At most one of the first two is called, once; never inside the constructor."""

    on_won: Callable[[Sequence[ReplicaKey]], None]
    """With the voters that granted."""
    on_lost: Callable[[], None]
    on_heard: Callable[[Heard], bool]
    """A voter answered. True if this candidacy ended by what it said."""


def is_still_asked(closed: bool) -> bool:
    """Guard 19: an answer counts only in the role and epoch that asked for it.

    Called through this module's global, so that the simulator can remove the guard.
    """
    return not closed


class Candidacy:
    def __init__(
        self,
        env: Env,
        vote_round: VoteRound,
        me: ReplicaKey,
        voters: Sequence[Voter],
        config: QuorumConfig,
        events: CandidacyEvents,
    ) -> None:
        self._env = env
        self._vote_round = vote_round
        self._me = me
        self._voters = {voter.key: voter for voter in voters}
        self._config = config
        self._events = events
        self._votes = Votes(self._voters, me)
        self._retries: dict[ReplicaKey, Cancel] = {}
        self._refused: set[ReplicaKey] = set()
        """Voters that refused the whole request, which was logged."""
        self._closed = False
        """By its owner."""
        self._decided = False
        """Won or lost."""

    def start(self) -> None:
        if self._votes.won:
            # it is the only voter
            self._env.call_later(0, self._won)
            return
        for key in self._votes.unanswered:
            self._ask(key)

    def close(self) -> None:
        self._closed = True
        self._cancel_retries()

    @property
    def _counts_answers(self) -> bool:
        return not self._decided and is_still_asked(self._closed)

    def _cancel_retries(self) -> None:
        for cancel in self._retries.values():
            cancel()

    def _ask(self, key: ReplicaKey) -> None:
        self._retries.pop(key, None)
        vote_round = self._vote_round
        request = epoch_messages.vote_request(
            vote_round.cluster_id, self._me, key, vote_round.epoch, vote_round.end, vote_round.pre_vote
        )

        def answered(result: VoteResponse | SendFailure) -> None:
            if self._counts_answers:
                self._answered(key, result)

        self._env.send(self._voters[key].endpoint, CHANNEL, request, answered, self._config.request_timeout_ms)

    def _answered(self, key: ReplicaKey, result: VoteResponse | SendFailure) -> None:
        if isinstance(result, SendFailure):
            if result.kind == "unsupported" and self._vote_round.pre_vote:
                self._won()
            else:
                self._ask_later(key)
            return
        if result.error_code == ErrorCode.UNSUPPORTED_VERSION and self._vote_round.pre_vote:
            self._won()
            return
        answer = epoch_messages.heard(result)
        if answer is None:
            self._log_refusal(key, result.error_code)
            self._ask_later(key)
            return
        if self._events.on_heard(answer) or not self._counts_answers:
            return
        if answer.error is not ErrorCode.NONE:
            self._ask_later(key)
            return
        self._votes.record(key, answer.granted)
        if self._votes.won:
            self._won()
        elif self._votes.lost:
            self._decide()
            self._events.on_lost()

    def _log_refusal(self, key: ReplicaKey, code: int) -> None:
        """Once per candidacy. Kafka's nodes end if a peer does not accept their principal; here an operator may correct
        that, and no node needs a restart.
        """
        if key not in self._refused:
            self._refused.add(key)
            endpoint = str(self._voters[key].endpoint)
            self._env.log("error", "quorum-vote-refused", voter=key.id, endpoint=endpoint, error=error_code(code).name)

    def _ask_later(self, key: ReplicaKey) -> None:
        self._retries[key] = self._env.call_later(self._config.retry_backoff_ms, lambda: self._ask(key))

    def _won(self) -> None:
        if self._counts_answers:
            self._decide()
            self._events.on_won(self._votes.granting)

    def _decide(self) -> None:
        self._decided = True
        self._cancel_retries()
