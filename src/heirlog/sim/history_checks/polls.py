"""Whether each reader saw the log in its order, without gaps and without going back.

A reader begins at offset 0 and continues at the next offset. Only a seek changes that (`history.Seek`): the reader
noticed that the log diverged from what it had read, or its partitions were assigned again. So in the partitions that
these checks get, every offset has a record: they are not compacted, and no transaction wrote markers there.

    int-poll-skip        offsets are missing between two records of one poll: a log with a hole, a lost batch
    ext-poll-skip        offsets are missing between two polls, or a reader went over the beginning of a new lineage
    nonmonotonic-poll    an offset at or below the last one, without a seek

A new lineage is the difficult case. Before a reader gets records that were written after a lossy election, it must have
gone back to the offset at which the winner's log diverges from what it has read (KIP-320). Only the newest election
before such a record counts: its winner may have a tail that an earlier winner did not have.

A client of Kafka knows the epoch of the last record only. It asks where the largest epoch that is not above it ends in
the winner's log, and continues there. If both logs have records of that epoch at the same offsets, one as a repeat that
the other leader stored in its own epoch, it never reads the winner's; a reader that remembers all epochs goes back far
enough.

Source: Jepsen's Kafka workload (poll-skip, nonmonotonic-poll, and int- for inside one operation).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from heirlog.sim.history import Finding, KnownLoss, Latest, Observed, Seek
from heirlog.sim.history_checks.losses import touches

INT_POLL_SKIP = "int-poll-skip"
EXT_POLL_SKIP = "ext-poll-skip"
NONMONOTONIC_POLL = "nonmonotonic-poll"
LATEST_WENT_BACK = "high-watermark-regression"


class _Seeks:
    """The seeks of all readers, to be taken in the order of their polls."""

    def __init__(self, seeks: Iterable[Seek]) -> None:
        self._waiting: dict[tuple[str, str], list[Seek]] = {}
        for one in reversed(list(seeks)):
            self._waiting.setdefault((one.client, one.partition), []).append(one)

    def before(self, seen: Observed) -> Seek | None:
        """The last seek since the record before; None: there was none."""
        if not self._waiting:
            return None
        waiting = self._waiting.get((seen.client, seen.partition))
        newest = None
        while waiting and waiting[-1].poll <= seen.poll:
            newest = waiting.pop()
        return newest


def poll_skip(
    observed: Iterable[Observed],
    losses: Collection[KnownLoss] = (),
    seeks: Iterable[Seek] = (),
    *,
    remember_epochs: bool = True,
) -> list[Finding]:
    """Records that a reader left out. A seek to a known position never excuses that the reader continues above it.

    remember_epochs: the readers know the epochs of all that they have read.
    """
    waiting = _Seeks(seeks)
    read: dict[tuple[str, str], list[tuple[int, int]]] = {}
    last: dict[tuple[str, str], Observed] = {}
    found = []
    for seen in observed:
        key = (seen.client, seen.partition)
        before, epochs = last.get(key), read.setdefault(key, [])
        if before is None:
            expected = 0
        elif before.leader_epoch == seen.leader_epoch:
            expected = before.offset + 1
        else:
            expected = _continues_at(epochs, before, seen, losses, remember_epochs)
        seek = waiting.before(seen)
        if seek is not None:
            expected = _after_seek(seek, seen, None if before is None else expected)
        if seen.offset > expected:
            found.append(_skipped(before, seen, expected))
        last[key] = seen
        while epochs and epochs[-1][1] >= seen.offset:
            epochs.pop()
        if not epochs or epochs[-1][0] != seen.leader_epoch:
            epochs.append((seen.leader_epoch, seen.offset))
    return found


def _after_seek(seek: Seek, seen: Observed, expected: int | None) -> int:
    if seek.position is None:
        return seen.offset
    return seek.position if expected is None else min(expected, seek.position)


def _skipped(before: Observed | None, seen: Observed, expected: int) -> Finding:
    inside = before is not None and before.poll == seen.poll
    after = "nothing" if before is None else f"{before.offset} (epoch {before.leader_epoch})"
    sentence = (
        f"{seen.partition}: {seen.client} read offset {seen.offset} (epoch {seen.leader_epoch}) after {after}"
        f"{', in the same poll' if inside else ''}; it never read what is at {expected}"
    )
    return Finding(INT_POLL_SKIP if inside else EXT_POLL_SKIP, sentence)


def _continues_at(
    epochs: Sequence[tuple[int, int]],
    before: Observed,
    seen: Observed,
    losses: Collection[KnownLoss],
    remember_epochs: bool,
) -> int:
    """The highest offset at which a reader of `before` may read `seen`, of another epoch, next.

    epochs: (leader epoch, first offset) of what it has read, ascending.
    """
    end = before.offset + 1
    if seen.leader_epoch < before.leader_epoch:
        # no log has an older epoch behind a newer one: `seen` is of a log without the newer one
        return next(start for epoch, start in epochs if epoch > seen.leader_epoch)
    entered = [
        loss
        for loss in losses
        if loss.partition == seen.partition and before.leader_epoch < loss.leader_epoch <= seen.leader_epoch
    ]
    if not entered:
        return end
    winner = max(entered, key=lambda loss: loss.leader_epoch).winner
    if not remember_epochs:
        return min([end, *(start for epoch, start in winner if epoch > before.leader_epoch)])
    while end > 0:
        ours, theirs = _entry_at(epochs, end - 1), _entry_at(winner, end - 1)
        if ours[0] == theirs[0]:
            break
        end = max(ours, theirs)[1]
    return end


def _entry_at(epochs: Sequence[tuple[int, int]], offset: int) -> tuple[int, int]:
    return next((entry for entry in reversed(epochs) if entry[1] <= offset), (-1, 0))


def nonmonotonic_poll(
    observed: Iterable[Observed], losses: Collection[KnownLoss] = (), seeks: Iterable[Seek] = ()
) -> list[Finding]:
    """Records at or below the last offset that the reader got, or below the position that it sought.

    A library that resets its position after a lossy election, without a word to the program, goes back too: an election
    between the epochs of the two records excuses it.
    """
    waiting = _Seeks(seeks)
    last: dict[tuple[str, str], Observed] = {}
    found = []
    for seen in observed:
        key = (seen.client, seen.partition)
        before = last.get(key)
        last[key] = seen
        seek = waiting.before(seen)
        if seek is not None:
            if seek.position is not None and seen.offset < seek.position:
                sentence = (
                    f"{seen.partition}: {seen.client} read offset {seen.offset} after it had sought {seek.position}"
                )
                found.append(Finding(NONMONOTONIC_POLL, sentence))
        elif before is not None and seen.offset <= before.offset and not _was_reset(before, seen, losses):
            where = "in the same poll" if seen.poll == before.poll else "in a later poll, without a seek"
            sentence = f"{seen.partition}: {seen.client} read offset {seen.offset} after {before.offset}, {where}"
            found.append(Finding(NONMONOTONIC_POLL, sentence))
    return found


def _was_reset(before: Observed, seen: Observed, losses: Collection[KnownLoss]) -> bool:
    """Whether a lossy election explains that the reader was sent back between two polls."""
    return before.poll != seen.poll and any(
        touches(loss, before.partition, before.offset) and before.leader_epoch < loss.leader_epoch for loss in losses
    )


def latest_went_back(answers: Iterable[Latest], losses: Collection[KnownLoss] = ()) -> list[Finding]:
    """Answers to ListOffsets(latest) that went back within a lineage, for one client."""
    last: dict[tuple[str, str], Latest] = {}
    found = []
    for answer in answers:
        key = (answer.client, answer.partition)
        before = last.get(key)
        last[key] = answer
        if before is None or answer.offset >= before.offset:
            continue
        if any(loss.partition == answer.partition and loss.leader_epoch > before.leader_epoch for loss in losses):
            continue
        sentence = (
            f"{answer.partition}: {answer.client} got the latest offset {before.offset} (leader epoch "
            f"{before.leader_epoch}) and then {answer.offset} (leader epoch {answer.leader_epoch})"
        )
        found.append(Finding(LATEST_WENT_BACK, sentence))
    return found
