"""Groups of the consumer protocol in a run: what members received, what they committed, and whether that is allowed.

    owners        in what a coordinator has committed, a partition is with two members (G1), or epochs are out of order
                  (G4): member epoch <= assignment epoch <= group epoch, and none of them goes back
    late-owner    a member committed offsets of a partition after a commit of its next owner was answered (G3, G9)
    epoch         a member was answered with an epoch below one that it had (G4)
    instance      a member was fenced as if another one had its instance id, although no later one has joined
    lost-commit   as for classic groups (`group_history`)

A *term* is the time from the answer that gives a partition to a member until it gives it up, leaves, or is fenced. The
terms of a partition follow each other; a commit of an earlier term that was sent after one of a later term was answered
must be refused.

Elections on a lossy basis of `__consumer_offsets` excuse what came before them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from heirlog.broker.groups.consumer.state import ConsumerGroupState
from heirlog.sim.group_history import GroupHistory, lossy_moments, lost_commit
from heirlog.sim.history import Finding, KnownLoss

OWNERS = "group-owners"
LATE_OWNER = "late-owner"
EPOCH = "member-epoch"
INSTANCE = "fenced-instance"


@dataclass(slots=True, eq=False)
class Term:
    """A member has a partition. `begun`: a tick."""

    partition: int
    member: str
    begun: int
    begun_ms: int


@dataclass(slots=True)
class AnsweredEpoch:
    """An answer to a heartbeat."""

    member: str
    epoch: int
    sent: int
    answered: int
    sent_ms: int


@dataclass(slots=True)
class ConsumerGroupHistory(GroupHistory):
    """Of one group. Commits and reads are those of the base."""

    is_mixed: bool = False
    """The group also has members of the classic protocol, and changes its own. An empty group that does so begins with
    epoch 1 again."""
    term_of: dict[str, Term] = field(default_factory=dict)
    """By the token of a commit."""
    answers: list[AnsweredEpoch] = field(default_factory=list)
    fenced: list[str] = field(default_factory=list)
    """Members that got FENCED_INSTANCE_ID. Each instance id has one process, whose newest member asks."""
    _epochs: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Group and assignment epoch that were seen committed, by group and the life of its coordinator."""


def doubly_owned(state: ConsumerGroupState) -> str | None:
    """G1, G4: why this committed state of a group is not allowed."""
    owner: dict[tuple[bytes, int], str] = {}
    for member_id, current in state.currents.items():
        for held in (current.assigned, current.pending):
            for topic_id, numbers in held.items():
                for number in numbers:
                    before = owner.setdefault((topic_id, number), member_id)
                    if before != member_id:
                        return f"{state.group_id}: partition {number} is with {before} and with {member_id}"
        if current.epoch > state.assignment_epoch:
            return f"{state.group_id}: {member_id} is at {current.epoch}, the target at {state.assignment_epoch}"
    if state.assignment_epoch > state.epoch > 0:
        return f"{state.group_id}: the target is at {state.assignment_epoch}, the group at {state.epoch}"
    return None


def late_owners(history: ConsumerGroupHistory, lost_ms: int) -> Iterable[Finding]:
    accepted = [
        (history.commits[token], term)
        for token, term in history.term_of.items()
        if history.commits[token].answered is not None and history.commits[token].sent_ms > lost_ms
    ]
    for commit, term in accepted:
        for other, later in accepted:
            if (
                later.partition == term.partition
                and later.member != term.member
                and later.begun > term.begun
                and other.answered is not None
                and commit.sent > other.answered
            ):
                sentence = (
                    f"{history.group}: {term.member} committed offset {commit.offset} of partition {term.partition} "
                    f"after {later.member}, which got the partition later, had committed {other.offset}"
                )
                yield Finding(LATE_OWNER, sentence)


def epochs_back(history: ConsumerGroupHistory, lost_ms: int) -> Iterable[Finding]:
    highest: dict[str, AnsweredEpoch] = {}
    for one in history.answers:
        before = highest.get(one.member)
        if before is not None and one.sent > before.answered and one.epoch < before.epoch and before.sent_ms > lost_ms:
            yield Finding(EPOCH, f"{history.group}: {one.member} got epoch {one.epoch} after {before.epoch}")
        if before is None or one.epoch >= before.epoch:
            highest[one.member] = one


def fenced_instances(history: ConsumerGroupHistory, lost_ms: int) -> Iterable[Finding]:
    for member in history.fenced:
        joined_ms = next((one.sent_ms for one in history.answers if one.member == member), None)
        if joined_ms is None or joined_ms > lost_ms:
            yield Finding(INSTANCE, f"{history.group}: {member} was fenced, and no other member had its instance id")


def consumer_findings(history: ConsumerGroupHistory, losses: Collection[KnownLoss]) -> list[Finding]:
    lost_ms = lossy_moments(losses)
    return [
        *late_owners(history, lost_ms),
        *(() if history.is_mixed else epochs_back(history, lost_ms)),
        *fenced_instances(history, lost_ms),
        *lost_commit(history, lost_ms),
    ]
