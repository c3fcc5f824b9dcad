"""Consumer groups of a run: the answers to their members, and whether they are allowed.

    two-owners     two members of one generation were assigned the same partition
    generation     a group's generation went back, or one was given to two member lists
    lost-commit    a commit that was answered was missing in a later answer, and no later commit replaced it

Every commit has a token of its own, stored as its metadata. Time is the order in which events happened
(`GroupHistory.tick`), not a clock. A commit without an answer may take effect at any later moment, or never. A commit
that was refused as coming from an unknown member never does. So a read may return a commit unless another commit was
*sent* after this one was answered, and was itself answered before the read was sent.

A coordinator that does not know yet that another one has been elected answers SyncGroup and OffsetFetch from memory,
as Kafka's does. It cannot commit. So such an answer counts only once a commit of the same member, in the same
generation, was answered: then it is *confirmed*.

An election on a lossy basis of a partition of `__consumer_offsets` may lose any commit that was sent before it. These
commits are not checked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from heirlog.sim.history import Finding, KnownLoss

OFFSETS_TOPIC = "__consumer_offsets"
TWO_OWNERS = "two-owners"
GENERATION = "generation"
LOST_COMMIT = "lost-commit"


@dataclass(slots=True)
class Commit:
    """One partition of an OffsetCommit. `sent`, `answered`: ticks."""

    partition: int
    offset: int
    sent: int
    sent_ms: int
    answered: int | None = None
    refused: bool = False


@dataclass(slots=True)
class Read:
    """One partition of an answer to OffsetFetch. `token` None: nothing was committed."""

    partition: int
    token: str | None
    offset: int
    sent: int
    confirmed: bool = False


@dataclass(slots=True)
class Owned:
    """An answer to SyncGroup."""

    generation: int
    member: str
    partitions: tuple[int, ...]
    sent: int
    answered: int
    sent_ms: int
    confirmed: bool = False


@dataclass(slots=True)
class GroupHistory:
    """Of one group."""

    group: str
    commits: dict[str, Commit] = field(default_factory=dict)
    """By token."""
    reads: list[Read] = field(default_factory=list)
    owned: list[Owned] = field(default_factory=list)
    _tick: int = 0

    def tick(self) -> int:
        self._tick += 1
        return self._tick


def lossy_moments(losses: Iterable[KnownLoss]) -> int:
    """Commits sent up to this time (milliseconds) may be lost with a partition of the offsets topic; -1: none."""
    return max((loss.time_ms for loss in losses if loss.partition.startswith(OFFSETS_TOPIC)), default=-1)


def two_owners(history: GroupHistory) -> list[Finding]:
    found = []
    owner: dict[tuple[int, int], str] = {}
    for one in history.owned:
        for partition in one.partitions:
            before = owner.setdefault((one.generation, partition), one.member)
            if before != one.member:
                sentence = (
                    f"{history.group}: in generation {one.generation} partition {partition} was given to {before} and "
                    f"to {one.member}"
                )
                found.append(Finding(TWO_OWNERS, sentence))
    return found


def generation_went_back(history: GroupHistory, lost_ms: int) -> list[Finding]:
    """A request sent after the answer with a generation must not get an earlier one. lost_ms: see `lossy_moments`."""
    found = []
    for one in history.owned:
        if not one.confirmed:
            continue
        for other in history.owned:
            if other.sent_ms > lost_ms and other.answered < one.sent and other.generation > one.generation:
                sentence = (
                    f"{history.group}: {one.member} got generation {one.generation} after {other.member} had got "
                    f"{other.generation}"
                )
                found.append(Finding(GENERATION, sentence))
    return found


def lost_commit(history: GroupHistory, lost_ms: int) -> list[Finding]:
    """lost_ms: see `lossy_moments`."""
    found = []
    for read in history.reads:
        if not read.confirmed:
            continue
        sentence = _misread(history, read, lost_ms)
        if sentence is not None:
            found.append(Finding(LOST_COMMIT, f"{history.group}, partition {read.partition}: {sentence}"))
    return found


def _misread(history: GroupHistory, read: Read, lost_ms: int) -> str | None:
    seen = None if read.token is None else history.commits.get(read.token)
    if read.token is not None and (seen is None or (seen.partition, seen.offset) != (read.partition, read.offset)):
        return f"offset {read.offset} ({read.token}) was read and never committed"
    if seen is not None and seen.refused:
        return f"offset {read.offset} ({read.token}) was refused and stored all the same"
    settled = _settled_between(history.commits.values(), read, seen, lost_ms)
    if settled is None:
        return None
    return f"offset {settled.offset} was committed and answered, and then {read.offset if seen else 'nothing'} was read"


def _settled_between(commits: Collection[Commit], read: Read, seen: Commit | None, lost_ms: int) -> Commit | None:
    """A commit that was sent after the seen one was answered, and was answered before the read was sent."""
    if seen is not None and seen.answered is None:
        return None
    begin = -1 if seen is None or seen.answered is None else seen.answered
    for one in commits:
        if one.partition != read.partition or one.answered is None or one.sent_ms <= lost_ms:
            continue
        if one.sent > begin and one.answered < read.sent:
            return one
    return None


def findings(history: GroupHistory, losses: Collection[KnownLoss]) -> list[Finding]:
    lost_ms = lossy_moments(losses)
    return [
        *two_owners_after(history, lost_ms),
        *generation_went_back(history, lost_ms),
        *lost_commit(history, lost_ms),
    ]


def two_owners_after(history: GroupHistory, lost_ms: int) -> list[Finding]:
    """Generations that a lossy election lost may be given again."""
    return two_owners(GroupHistory(history.group, owned=[one for one in history.owned if one.sent_ms > lost_ms]))
