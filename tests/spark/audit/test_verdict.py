"""What is a finding and what the life of a cluster explains, for replicas of one partition."""

from __future__ import annotations

from typing import Any

from heirlog.metadata.state import PartitionRegistration
from heirlog.protocol.types import BrokerId, LeaderEpoch, PartitionEpoch
from heirlog.spark.audit import verdict
from heirlog.spark.audit.divergence import Difference
from heirlog.spark.audit.inventory import LogCopy
from heirlog.spark.audit.producer_runs import GAP, REPEATED, Break
from heirlog.spark.audit.replica_log import OffsetRange, ReplicaLog, put_together, report_gaps
from heirlog.spark.audit.verdict import Lineage, PartitionView


def copy(node: int, *, mark: int = -1, clean: bool = True, **more: Any) -> LogCopy:
    fields: dict[str, Any] = {
        "number": node,
        "node": node,
        "path": f"/{node}/t-0",
        "topic": "t",
        "topic_id": "x",
        "partition": 0,
        "segments": (0,),
        "stopped_cleanly": clean,
        "recovery_point": 0,
        "log_start_offset": 0,
        "high_watermark": mark,
        "cleaned_to": 0,
        "epochs": None,
        "was_being_cleaned": False,
    }
    return LogCopy(**{**fields, **more})


def log(node: int, end: int, *, epoch: int = 3, **more: Any) -> ReplicaLog:
    return ReplicaLog(copy(node, **more), end_offset=end, last_epoch=epoch)


def ids(*brokers: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, brokers))


def view(*logs: ReplicaLog, isr: tuple[int, ...] = (1,), elr: tuple[int, ...] = (), leader: int = 1) -> PartitionView:
    state = PartitionRegistration(
        ids(1, 2, 3), ids(*isr), BrokerId(leader), LeaderEpoch(3), PartitionEpoch(9), elr=ids(*elr)
    )
    marks = [each.copy.high_watermark for each in logs]
    return PartitionView(0, "t", "x", 0, list(logs), state, 2, high_watermark=max(marks))


def kinds(found: list[Any]) -> list[tuple[str, int, int]]:
    return [(finding.kind, finding.replica, finding.offset) for finding in found]


def test_members_and_no_others_must_reach_the_high_watermark() -> None:
    logs = (log(1, 100, mark=100), log(2, 90, mark=80), log(3, 90, mark=80))
    assert kinds(verdict.lacking(view(*logs, isr=(1, 2)))) == [("below-high-watermark", 2, 90)]
    # a follower that lags, but not behind its own high watermark
    assert kinds(verdict.lacking(view(*logs))) == []
    assert kinds(verdict.lacking(view(logs[0], log(2, 70, mark=80)))) == [("below-high-watermark", 2, 70)]


def test_a_high_watermark_from_before_a_lossy_election_counts_only_up_to_where_it_gave_up() -> None:
    old = log(2, 200, epoch=2, mark=200)
    found = view(log(1, 150, mark=150), old)
    found.lineages = [Lineage(3, 140)]
    assert found.known_high_watermark(old) == 140
    assert found.known_high_watermark(found.replicas[0]) == 150


def test_the_last_leader_has_every_record_of_its_epoch() -> None:
    leader, follower = log(1, 50, clean=False), log(2, 60, clean=False)
    found = view(leader, follower)
    found.last_elected = (1, 3)
    assert kinds(verdict.lacking(found)) == [("leader-lost-records", 1, 50)]
    # the longer one is of an older epoch and not truncated yet
    follower.last_epoch = 2
    assert verdict.lacking(found) == []


def test_a_leader_that_was_cut_has_one_finding() -> None:
    leader, follower = log(1, 50, mark=60), log(2, 60, mark=60)
    found = view(leader, follower)
    found.last_elected = (1, 3)
    assert kinds(verdict.lacking(found)) == [("below-high-watermark", 1, 50)]


def test_files_that_know_more_than_a_log_that_was_cut_are_no_findings_of_their_own() -> None:
    found = view(log(1, 50, mark=60), log(2, 60, mark=60))
    (cut,) = verdict.lacking(found)
    index, epochs = (found.found(kind, found.replicas[0], 50, "") for kind in ("index-wrong", "leader-epochs-wrong"))
    elsewhere = [
        found.found("index-wrong", found.replicas[0], 0, ""),
        found.found("index-wrong", found.replicas[1], 50, ""),
    ]
    assert verdict.without_consequences([cut, index, epochs, *elsewhere]) == {cut, *elsewhere}
    assert verdict.without_consequences([index, epochs]) == {index, epochs}


def judged(found: PartitionView, difference: Difference) -> list[tuple[str, int, int]]:
    return kinds(verdict.judge_differences([found], [difference], {each.copy.number: each for each in found.replicas}))


def test_one_epoch_never_has_two_histories() -> None:
    found = view(log(1, 100, mark=10), log(2, 100, mark=10))
    assert judged(found, Difference(2, 1, 50, 3, 3)) == [("diverged", 2, 50)]
    assert judged(found, Difference(2, 1, 50, -1, 3)) == [("diverged", 2, 50)]


def test_a_damaged_leader_is_not_what_healthy_replicas_are_compared_with() -> None:
    found = view(log(1, 100, mark=10), log(2, 100, mark=10), isr=(1, 2))
    leader, follower = found.replicas
    assert (found.rank(leader), found.rank(follower)) == (3, 2)
    leader.found("offsets-go-back", 60, "a batch at offset 60 follows where offset 61 was expected")
    assert found.rank(leader) < found.rank(follower)
    (finding,) = verdict.judge_differences([found], [Difference(1, 2, 59, 3, 3)], {1: leader, 2: follower})
    assert finding.replica == 1
    assert "replica 2 is right, as the log of replica 1 is damaged" in finding.sentence


def test_a_finding_says_what_most_replicas_hold() -> None:
    logs = log(1, 100, mark=10), log(2, 100, mark=10), log(3, 100, mark=10)
    found = view(*logs, isr=(1, 2, 3))
    by_number = {each.copy.number: each for each in logs}

    def sentences(*differences: Difference) -> list[str]:
        return [each.sentence for each in verdict.judge_differences([found], differences, by_number)]

    (leader,) = sentences(Difference(1, 2, 5, 3, 3))
    assert "most replicas agree with replica 2, none with replica 1 (leader)" in leader
    (one,) = sentences(Difference(2, 1, 5, 2, 3))
    assert "replica 1 is right by the metadata (leader) (T6)" in one
    for each in sentences(Difference(2, 1, 5, 2, 3), Difference(3, 1, 5, 2, 3)):
        assert "replica 1 is right by the metadata (leader), but most replicas differ from it" in each


def test_an_older_tail_is_explained_above_the_high_watermark_that_counts_for_it() -> None:
    logs = (log(1, 100, mark=100), log(2, 60, epoch=2, mark=40))
    assert judged(view(*logs), Difference(2, 1, 50, 2, 3)) == []
    assert judged(view(*logs), Difference(2, 1, 30, 2, 3)) == [("diverged", 2, 30)]
    # a member has everything that is committed
    assert judged(view(*logs, isr=(1, 2)), Difference(2, 1, 50, 2, 3)) == [("diverged", 2, 50)]
    # a replica that has left the assignment is no replica
    assert judged(view(logs[0], log(9, 60, epoch=2, mark=60)), Difference(9, 1, 30, 2, 3)) == []


def test_what_a_lossy_election_gave_up_is_no_divergence() -> None:
    found = view(log(1, 100, mark=100), log(2, 60, epoch=2, mark=60))
    found.lineages = [Lineage(3, 45)]
    assert judged(found, Difference(2, 1, 50, 2, 3)) == []
    assert judged(found, Difference(2, 1, 40, 2, 3)) == [("diverged", 2, 40)]


def test_a_break_is_named_once_for_all_replicas_and_not_where_something_else_explains_it() -> None:
    first, second = log(1, 100), log(2, 100)
    found = view(first, second)
    logs = {1: first, 2: second}
    both = [Break(number, GAP, 10, 10, "a gap") for number in (2, 1)]
    (finding,) = verdict.judge_breaks([found], both, logs)
    assert (finding.replica, finding.sentence) == (1, "a gap (in the logs of replicas 2, 1)")
    first.missing.append(OffsetRange(10, 20))
    assert verdict.judge_breaks([found], [Break(1, GAP, 10, 20, "a gap")], logs) == []
    second.found("batch-doubled", 7, "twice")
    assert verdict.judge_breaks([found], [Break(2, REPEATED, 8, 7, "again")], logs) == []


# segments put together


def segment(base: int, end: int, **more: Any) -> dict[str, Any]:
    row = {
        "base_offset": base,
        "end_offset": end,
        "first_offset": base,
        "bytes": 1,
        "batches": 1,
        "records": end - base,
        "first_epoch": 0,
        "last_epoch": 0,
        "max_timestamp_ms": 0,
        "rewritten_to": -1,
        "ends_damaged": False,
        "gaps": [],
        "findings": [],
    }
    return row | more


def found_in(*rows: dict[str, Any], everywhere: bool = False, **more: Any) -> list[tuple[str, int, int]]:
    put = put_together(copy(1, **{"epochs": ((0, 0),), **more}), rows)
    report_gaps([put], cleaned_everywhere=everywhere)
    return kinds(put.findings)


def test_a_missing_segment_is_a_gap_unless_the_log_cleaner_was_there() -> None:
    rows = segment(0, 10), segment(20, 30)
    assert found_in(*rows) == [("offsets-missing", 1, 10)]
    assert found_in(*rows, cleaned_to=20) == []
    assert found_in(*rows, was_being_cleaned=True) == []
    assert found_in(*rows, everywhere=True) == []
    # a record that the cleaner has removed shows that it was there
    assert found_in(segment(0, 10), segment(20, 30, rewritten_to=25)) == []


def test_a_missing_first_segment_is_seen_by_the_first_leader_epoch() -> None:
    assert found_in(segment(10, 20)) == [("offsets-missing", 1, 0)]
    assert found_in(segment(10, 20), epochs=((0, 10),)) == []
    # what was deleted on request is in the middle of a segment
    assert found_in(segment(10, 20), epochs=((0, 15),), log_start_offset=15) == []


def test_epochs_and_checkpoints_that_do_not_fit_are_found() -> None:
    assert found_in(segment(0, 10, last_epoch=2), segment(10, 20, first_epoch=1)) == [("epoch-goes-back", 1, 10)]
    assert found_in(segment(0, 10), segment(8, 20)) == [("offsets-go-back", 1, 8)]
    assert found_in(segment(0, 10), epochs=((0, 0), (1, 11))) == [("leader-epochs-wrong", 1, 10)]
    assert found_in(segment(0, 10), epochs=((0, 0), (1, 10))) == []
    assert found_in(segment(0, 10), epochs=None) == [("leader-epochs-wrong", 1, 0)]
    assert found_in(segment(0, 10), epochs=()) == [("leader-epochs-wrong", 1, 0)]
    assert found_in(segment(0, 10), epochs=None, stopped_cleanly=False) == []
    assert ("checkpoint-wrong", 1, 10) in found_in(segment(0, 10), log_start_offset=11)
