from hypothesis import given
from hypothesis import strategies as st

from heirlog.raft.divergence import Diverging, NeedsSnapshot, Position, Valid, judge, truncation_offset
from heirlog.raft.snapshot import BOOTSTRAP, SnapshotId


def ends(log: list[int]):
    """The rule of kafka's leader-epoch cache, on a log written as the epoch of each record."""

    def end_offset_for_epoch(epoch: int) -> tuple[int, int]:
        if not log or epoch < 0 or epoch > log[-1]:
            return -1, -1
        known = [e for e in log if e <= epoch]
        if not known:
            return epoch, 0
        return known[-1], len(known)

    return end_offset_for_epoch


def position(log: list[int]) -> Position:
    return Position(len(log), log[-1] if log else 0)


def test_an_empty_follower_starts_at_the_beginning() -> None:
    assert judge(Position(0, 0), 0, [BOOTSTRAP], ends([1, 1])) == Valid()


def test_a_follower_that_agrees_is_valid() -> None:
    assert judge(Position(2, 1), 0, [], ends([1, 1, 2])) == Valid()
    assert judge(Position(3, 2), 0, [], ends([1, 1, 2])) == Valid()


def test_a_tail_of_a_lost_leader_diverges_where_its_epoch_ends_here() -> None:
    assert judge(Position(5, 1), 0, [], ends([1, 1, 2])) == Diverging(1, 2)


def test_an_epoch_unknown_to_the_leader_diverges_at_the_one_before() -> None:
    assert judge(Position(4, 2), 0, [], ends([1, 1, 3])) == Diverging(1, 2)


def test_a_follower_without_anything_is_sent_to_the_newest_snapshot() -> None:
    snapshots = [BOOTSTRAP, SnapshotId(2, 1)]
    assert judge(Position(0, 0), 0, snapshots, ends([1, 1, 1])) == NeedsSnapshot(SnapshotId(2, 1))


def test_a_follower_behind_the_log_start_is_sent_to_the_newest_snapshot() -> None:
    snapshots = [SnapshotId(5, 1), SnapshotId(8, 2)]
    assert judge(Position(3, 1), 5, snapshots, ends([1] * 6)) == NeedsSnapshot(SnapshotId(8, 2))
    assert judge(Position(5, 3), 5, snapshots, ends([1] * 6)) == NeedsSnapshot(SnapshotId(8, 2))


def test_a_follower_at_the_end_of_the_oldest_snapshot_is_valid_though_the_log_before_is_gone() -> None:
    assert judge(Position(5, 1), 5, [SnapshotId(5, 1)], lambda epoch: (-1, -1)) == Valid()


@st.composite
def two_logs(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """A leader and a follower as Raft can make them: equal up to a point, then of different leaders' epochs."""
    shared = sorted(draw(st.lists(st.integers(1, 3), max_size=6)))
    last = shared[-1] if shared else 0
    of_leader = [last + 2 * i for i in sorted(draw(st.lists(st.integers(1, 3), max_size=5)))]
    of_follower = [last + 2 * i - 1 for i in sorted(draw(st.lists(st.integers(1, 3), max_size=5)))]
    top = max([1, *of_follower, last]) + 1
    return [*shared, *of_leader, *([top + top % 2 + last % 2] if not of_leader or of_leader[-1] < top else [])], [
        *shared,
        *of_follower,
    ]


@given(two_logs())
def test_truncating_as_told_ends_where_both_logs_agree(logs: tuple[list[int], list[int]]) -> None:
    leader, follower = logs
    for _ in range(20):
        verdict = judge(position(follower), 0, [], ends(leader))
        if verdict == Valid():
            break
        assert isinstance(verdict, Diverging)
        cut = truncation_offset(verdict, len(follower), ends(follower))
        assert cut < len(follower), "each answer shortens the log"
        follower = follower[:cut]
    assert follower == leader[: len(follower)]


def ends_from(log: list[int], start: int):
    """The same for a log whose records below `start` are deleted."""
    kept = ends(log)

    def end_offset_for_epoch(epoch: int) -> tuple[int, int]:
        if start < len(log) and epoch < log[start]:
            return epoch, start
        return kept(epoch)

    return end_offset_for_epoch


@given(two_logs(), st.data())
def test_a_shortened_log_of_the_leader_sends_a_follower_to_a_snapshot_or_ends_where_both_agree(
    logs: tuple[list[int], list[int]], data: st.DataObject
) -> None:
    leader, follower = logs
    start = data.draw(st.integers(1, len(leader)))
    newest = data.draw(st.integers(start, len(leader)))
    snapshots = [SnapshotId(end, leader[end - 1]) for end in dict.fromkeys((start, newest))]
    for _ in range(20):
        verdict = judge(position(follower), start, snapshots, ends_from(leader, start))
        if not isinstance(verdict, Diverging):
            break
        cut = truncation_offset(verdict, len(follower), ends(follower))
        assert cut < len(follower), "each answer shortens the log"
        follower = follower[:cut]
    if verdict == Valid():
        assert len(follower) >= start
        assert follower == leader[: len(follower)]
    else:
        assert verdict == NeedsSnapshot(snapshots[-1])


def test_a_tail_just_above_the_log_start_is_truncated_to_it() -> None:
    """The leader knows no epoch between the snapshot's and its first record's."""
    leader = [1, 1, 3, 3]
    assert judge(Position(3, 2), 2, [SnapshotId(2, 1)], ends_from(leader, 2)) == Diverging(2, 2)
    assert judge(Position(2, 1), 2, [SnapshotId(2, 1)], ends_from(leader, 2)) == Valid()
