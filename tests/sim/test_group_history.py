"""What may be held against a consumer group, on histories written by hand."""

from __future__ import annotations

import pytest

from heirlog.sim.group_history import (
    GENERATION,
    LOST_COMMIT,
    TWO_OWNERS,
    Commit,
    GroupHistory,
    Owned,
    Read,
    findings,
)
from heirlog.sim.history import KnownLoss


def group_history(
    commits: dict[str, tuple[int, int | None]] | None = None, read: tuple[str | None, int] | None = None
) -> GroupHistory:
    """commits: per token (sent, answered), offsets 1, 2, ... in order; read: token, when it was asked for."""
    made = GroupHistory("g")
    for offset, (token, (sent, answered)) in enumerate((commits or {}).items(), 1):
        made.commits[token] = Commit(0, offset, sent, sent_ms=sent, answered=answered)
    if read is not None:
        token, sent = read
        made.reads.append(Read(0, token, made.commits[token].offset if token else -1, sent, confirmed=True))
    return made


def checks(one: GroupHistory, *losses: KnownLoss) -> list[str]:
    return [finding.check for finding in findings(one, losses)]


def test_the_last_answered_commit_is_read() -> None:
    assert checks(group_history({"a": (1, 2), "b": (3, 4)}, read=("b", 5))) == []


@pytest.mark.parametrize("token", ["a", None])
def test_a_former_commit_or_nothing_is_a_lost_commit(token: str | None) -> None:
    assert checks(group_history({"a": (1, 2), "b": (3, 4)}, read=(token, 5))) == [LOST_COMMIT]


def test_commits_that_overlap_may_come_in_either_order() -> None:
    assert checks(group_history({"a": (1, 4), "b": (2, 3)}, read=("a", 5))) == []


def test_a_commit_that_was_answered_after_the_question_need_not_be_seen() -> None:
    assert checks(group_history({"a": (1, 2), "b": (3, 6)}, read=("a", 5))) == []


def test_a_commit_without_an_answer_may_come_late_or_never() -> None:
    assert checks(group_history({"a": (1, None), "b": (3, 4)}, read=("a", 5))) == []
    assert checks(group_history({"a": (1, None), "b": (3, 4)}, read=("b", 5))) == []


def test_a_commit_that_was_refused_is_not_stored() -> None:
    refused = group_history({"a": (1, 2), "b": (3, None)}, read=("b", 5))
    refused.commits["b"].refused = True
    assert checks(refused) == [LOST_COMMIT]


def test_what_nobody_committed_is_not_read() -> None:
    made_up = group_history({"a": (1, 2)})
    made_up.reads.append(Read(0, "z", 7, 5, confirmed=True))
    assert checks(made_up) == [LOST_COMMIT]


def test_a_lossy_election_of_the_offsets_topic_takes_what_was_committed_before() -> None:
    lost = group_history({"a": (1, 2), "b": (3, 4)}, read=("a", 9))
    assert checks(lost, KnownLoss("__consumer_offsets-0.x", 0, 5, time_ms=3)) == []
    assert checks(lost, KnownLoss("__consumer_offsets-0.x", 0, 5, time_ms=2)) == [LOST_COMMIT]
    assert checks(lost, KnownLoss("t-0.x", 0, 5, time_ms=3)) == [LOST_COMMIT]


def owned(generation: int, member: str, partitions: tuple[int, ...], sent: int) -> Owned:
    return Owned(generation, member, partitions, sent, answered=sent + 1, sent_ms=sent, confirmed=True)


def test_a_generation_shares_out_each_partition_once() -> None:
    shared = GroupHistory("g", owned=[owned(1, "a", (0, 1), 1), owned(1, "b", (2,), 2), owned(2, "b", (0, 1, 2), 5)])
    assert checks(shared) == []
    shared.owned.append(owned(2, "c", (2,), 6))
    assert checks(shared) == [TWO_OWNERS]


def test_generations_do_not_go_back() -> None:
    back = GroupHistory("g", owned=[owned(3, "a", (0,), 1), owned(2, "b", (0,), 5)])
    assert checks(back) == [GENERATION]
    assert checks(back, KnownLoss("__consumer_offsets-0.x", 0, 5, time_ms=1)) == []


def test_an_answer_that_was_on_its_way_may_name_a_former_generation() -> None:
    late = GroupHistory("g", owned=[Owned(3, "a", (0,), 4, 5, 4), Owned(2, "b", (0,), 1, 9, 1, True)])
    assert checks(late) == []


def test_what_a_former_coordinator_says_from_memory_counts_only_once_a_commit_confirms_it() -> None:
    stale = GroupHistory("g", owned=[owned(3, "a", (0,), 1), Owned(2, "b", (0,), 5, 6, 5)])
    assert checks(stale) == []
    stale.owned[1].confirmed = True
    assert checks(stale) == [GENERATION]
    read = group_history({"a": (1, 2), "b": (3, 4)}, read=("a", 5))
    read.reads[0].confirmed = False
    assert checks(read) == []
