"""What a node of the quorum is in its epoch: six roles, who may become what, and who gets its vote.

                     election timeout                majority grants pre-votes (epoch + 1)
    UNATTACHED ------------------------> PROSPECTIVE ------------------------------------> CANDIDATE
        ^  |  learns the leader               |  refused, or timeout                          | majority grants
        |  v                                  v                                               v
     FOLLOWER <---------------- (back where it came from)             RESIGNED <---------- LEADER
               fetch timeout: PROSPECTIVE                                steps down

    any role, an epoch above its own in a request or answer: UNATTACHED in that epoch, or FOLLOWER if it names a leader

A prospective node asks only whether it would be elected (KIP-996). It raises no epoch for that, so a node that was cut
off and returns cannot depose a leader that all others follow.

This is a value, and these functions are its only transitions. `quorum.py` writes the durable part (`durable`) before
the node acts in the new role: before a request, an answer or an append leaves it. After a restart `initial` derives the
role from the file.

Traps. A node votes once per epoch: the vote is in the file before its answer leaves. A leader that resigned keeps its
own name as the leader of the epoch in the file. It may neither vote nor lead in that epoch again, because one epoch and
offset must name one record; so it raises the epoch before it asks for votes. A node with another directory id has
another key, even if its id is the same: its disk was replaced, and it may have forgotten its vote.

Source: KIP-595, KIP-853 (keys), KIP-996 (pre-vote); the roles and refusals are Kafka's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from heirlog.protocol.types import ZERO_UUID, Endpoint
from heirlog.raft.quorum_state import NOBODY, QuorumState
from heirlog.raft.replica_key import ReplicaKey


class QuorumRole(Enum):
    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"
    RESIGNED = "resigned"
    FOLLOWER = "follower"


class IllegalTransition(Exception):
    """A transition that would break the rules of the quorum: a defect of this program, not of its peers."""


@dataclass(frozen=True, slots=True)
class EpochState:
    role: QuorumRole
    epoch: int
    leader_id: int = NOBODY
    """The leader of the epoch, -1 while unknown. A prospective node remembers the leader that it lost."""
    leader_endpoint: Endpoint | None = None
    """None: the leader's address is not known, so this node cannot follow it yet."""
    voted: ReplicaKey | None = None
    """To whom this node gave its vote in this epoch."""
    has_fetched: bool = False
    """Of a follower: its leader has answered a fetch, so it is alive."""

    @property
    def durable(self) -> QuorumState:
        """What must survive a power cut before this node acts in this state."""
        voted = self.voted or ReplicaKey(NOBODY, ZERO_UUID)
        return QuorumState(self.leader_id, self.epoch, voted.id, voted.directory_id)


def initial(
    stored: QuorumState,
    log_end_epoch: int,
    me: ReplicaKey,
    is_voter: bool,
    endpoint_of: Callable[[int], Endpoint | None],
) -> EpochState:
    """The state after a start.

    is_voter: whether `me` is in the voter set. endpoint_of: the address of a voter, None if the id is not a voter's.

    A file that is older than the log has lost its vote. That is harmless: the log has a record of that epoch, so the
    epoch had a leader, and no candidate asks for votes in it any more.
    """
    if stored.leader_epoch < log_end_epoch:
        return EpochState(QuorumRole.UNATTACHED, log_end_epoch)
    voted = None if stored.voted_id == NOBODY else ReplicaKey(stored.voted_id, stored.voted_directory_id)
    state = EpochState(QuorumRole.UNATTACHED, stored.leader_epoch, stored.leader_id, None, voted)
    if stored.leader_id == me.id:
        return replace(state, role=QuorumRole.RESIGNED)
    if stored.leader_id != NOBODY:
        endpoint = endpoint_of(stored.leader_id)
        return state if endpoint is None else replace(state, role=QuorumRole.FOLLOWER, leader_endpoint=endpoint)
    # at kraft.version 0 the file has no directory id of the vote
    return replace(state, role=QuorumRole.CANDIDATE) if voted is not None and voted.covers(me) and is_voter else state


# votes


def grants(state: EpochState, candidate: ReplicaKey, *, log_is_current: bool, pre_vote: bool) -> bool:
    """Whether this node votes for `candidate` in its own epoch.

    log_is_current: the candidate's log ends with a later epoch than this node's, or with the same and not earlier.
    """
    if state.role is QuorumRole.LEADER:
        return False
    if pre_vote:
        return log_is_current and not (state.role is QuorumRole.FOLLOWER and state.has_fetched)
    if state.role not in (QuorumRole.UNATTACHED, QuorumRole.PROSPECTIVE):
        return False
    if state.voted is not None:
        return state.voted.covers(candidate)
    return state.leader_id == NOBODY and log_is_current


def vote(state: EpochState, candidate: ReplicaKey) -> EpochState:
    """A standard vote was granted in this epoch."""
    if state.role not in (QuorumRole.UNATTACHED, QuorumRole.PROSPECTIVE):
        raise IllegalTransition(f"{state} cannot vote for {candidate.id}")
    if state.voted is None and state.leader_id == NOBODY:
        return replace(state, voted=candidate)
    if state.voted is None or not state.voted.covers(candidate):
        raise IllegalTransition(f"{state} has voted, or knows a leader, and cannot vote for {candidate.id}")
    return state


# transitions


def unattached(state: EpochState, epoch: int, leader_id: int = NOBODY) -> EpochState:
    """In `epoch` without a leader that can be followed; its name may be known.

    A follower, or a prospective node, may come back to it in the same epoch: with what it knows of that epoch.
    """
    if epoch == state.epoch:
        if state.role in (QuorumRole.LEADER, QuorumRole.RESIGNED, QuorumRole.CANDIDATE):
            raise IllegalTransition(f"{state} cannot forget its role in the same epoch")
        if leader_id != NOBODY and state.leader_id not in (NOBODY, leader_id):
            raise IllegalTransition(f"{state} knows another leader than {leader_id}")
        known = state.leader_id if leader_id == NOBODY else leader_id
        return EpochState(QuorumRole.UNATTACHED, epoch, known, None, state.voted)
    _check_rises(state, epoch)
    return EpochState(QuorumRole.UNATTACHED, epoch, leader_id)


def follower(state: EpochState, epoch: int, leader_id: int, endpoint: Endpoint, me: ReplicaKey) -> EpochState:
    """Follows a leader whose address is known."""
    if leader_id == me.id:
        raise IllegalTransition(f"{state} cannot follow itself")
    if epoch == state.epoch:
        if state.role in (QuorumRole.LEADER, QuorumRole.RESIGNED):
            raise IllegalTransition(f"{state} leads the epoch that {leader_id} claims to lead")
        if state.leader_id not in (NOBODY, leader_id):
            raise IllegalTransition(f"{state} knows another leader of the epoch than {leader_id}")
        return EpochState(QuorumRole.FOLLOWER, epoch, leader_id, endpoint, state.voted)
    _check_rises(state, epoch)
    return EpochState(QuorumRole.FOLLOWER, epoch, leader_id, endpoint)


def fetched(state: EpochState) -> EpochState:
    """The leader has answered a fetch of this follower."""
    return state if state.has_fetched else replace(state, has_fetched=True)


def leader_is_lost(state: EpochState) -> EpochState:
    """The leader of this follower has announced its resignation (KAFKA-20895), or its process is gone: other candidates
    get pre-votes.
    """
    return replace(state, has_fetched=False)


def prospective(state: EpochState) -> EpochState:
    """Ask for pre-votes: no leader was heard of for the timeout of the role."""
    if state.role not in (QuorumRole.UNATTACHED, QuorumRole.FOLLOWER, QuorumRole.CANDIDATE):
        raise IllegalTransition(f"{state} cannot ask for pre-votes")
    return replace(state, role=QuorumRole.PROSPECTIVE, has_fetched=False)


def not_elected(state: EpochState) -> EpochState:
    """A prospective node was refused, or had no answer in time: it returns to the leader that it knows."""
    if state.role is not QuorumRole.PROSPECTIVE:
        raise IllegalTransition(f"{state} asked for no pre-votes")
    if state.leader_id != NOBODY and state.leader_endpoint is not None:
        return replace(state, role=QuorumRole.FOLLOWER)
    return unattached(state, state.epoch)


def candidate(state: EpochState, me: ReplicaKey) -> EpochState:
    """A majority has granted its pre-vote: ask for votes in the next epoch, with one's own vote."""
    if state.role is not QuorumRole.PROSPECTIVE:
        raise IllegalTransition(f"{state} has no pre-votes")
    return EpochState(QuorumRole.CANDIDATE, state.epoch + 1, voted=me)


def leader(state: EpochState, me: ReplicaKey, endpoint: Endpoint) -> EpochState:
    """A majority has voted for this candidate."""
    if state.role is not QuorumRole.CANDIDATE:
        raise IllegalTransition(f"{state} has no votes")
    return EpochState(QuorumRole.LEADER, state.epoch, me.id, endpoint, me)


def sole_voter(state: EpochState, me: ReplicaKey, endpoint: Endpoint) -> EpochState:
    """The only voter needs no other vote: it leads a new epoch at once."""
    return EpochState(QuorumRole.LEADER, state.epoch + 1, me.id, endpoint, me)


def resigned(state: EpochState) -> EpochState:
    """The leader steps down: it neither appends nor serves from now on."""
    if state.role is not QuorumRole.LEADER:
        raise IllegalTransition(f"{state} does not lead")
    return replace(state, role=QuorumRole.RESIGNED, leader_endpoint=None)


def _check_rises(state: EpochState, epoch: int) -> None:
    if epoch < state.epoch:
        raise IllegalTransition(f"{state} cannot return to epoch {epoch}")
