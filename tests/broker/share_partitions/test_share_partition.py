"""One share partition: what is delivered, how often, to whom. `test_against_model.py` has random sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from heirlog.broker.share_coordinator.batches import StateBatch
from heirlog.broker.share_partitions.acquisition import AcquiredRecords, FetchedBatch, ShareLimits, Wanted
from heirlog.broker.share_partitions.delivery_window import RecordState
from heirlog.broker.share_partitions.share_partition import Acknowledgement, SharePartition, check_acknowledgements
from heirlog.protocol.errors import ErrorCode, KafkaError

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
LOCKED_UNTIL_MS = 1000


def opened(start_offset: int = 0, batches: Sequence[StateBatch] = (), **limits: int) -> SharePartition:
    return SharePartition(ShareLimits(**limits), start_offset, batches)


def fetch(share: SharePartition, *batches: tuple[int, int], member: str = "m", **more: Any) -> list[AcquiredRecords]:
    """Acquire from the log's batches, as far as a read from the next offset on finds them."""
    offset = share.next_fetch_offset
    values: dict[str, Any] = {"max_records": 500, "batch_size": 500, "is_exact": False}
    found = [FetchedBatch(*batch) for batch in batches if batch[1] >= offset]
    return share.acquire(member, offset, found, Wanted(**(values | more)), LOCKED_UNTIL_MS)


def acknowledge(share: SharePartition, first: int, last: int, *types: int, member: str = "m") -> Any:
    change = share.acknowledge(member, [Acknowledgement(first, last, types)], 5000)
    share.settle(change, is_stored=True)
    return change


def states(share: SharePartition) -> list[tuple[int, int, str, int]]:
    return [(run.first, run.last, run.state.name.lower(), run.delivery_count) for run in share.window.runs]


def test_accepted_records_move_the_start_offset() -> None:
    share = opened()
    assert fetch(share, (0, 9)) == [(0, 9, 1)]
    change = acknowledge(share, 0, 4, ACCEPT)
    assert change.batches == (StateBatch(0, 4, RecordState.ACKNOWLEDGED, 1),)
    assert (share.start_offset, share.end_offset) == (5, 10)
    acknowledge(share, 5, 9, ACCEPT)
    assert (share.start_offset, states(share)) == (10, [])


def test_an_acknowledgement_counts_only_once_it_is_stored() -> None:
    share = opened()
    fetch(share, (0, 9))
    change = share.acknowledge("m", [Acknowledgement(0, 9, [ACCEPT])], 0)
    assert share.start_offset == 0
    with pytest.raises(KafkaError) as refused:
        share.acknowledge("m", [Acknowledgement(0, 9, [ACCEPT])], 0)
    assert refused.value.code is ErrorCode.INVALID_RECORD_STATE
    share.settle(change, is_stored=False)
    assert states(share) == [(0, 9, "acquired", 1)]


def test_a_lock_does_not_end_while_an_acknowledgement_is_stored_but_ends_if_that_fails() -> None:
    share = opened()
    fetch(share, (0, 9))
    change = share.acknowledge("m", [Acknowledgement(0, 9, [ACCEPT])], 0)
    assert share.next_lock_end_ms() is None
    assert share.end_locks(LOCKED_UNTIL_MS) is None
    share.settle(change, is_stored=False)
    assert share.next_lock_end_ms() == LOCKED_UNTIL_MS
    ended = share.end_locks(LOCKED_UNTIL_MS)
    assert ended is not None and ended.batches == (StateBatch(0, 9, RecordState.AVAILABLE, 1),)
    assert states(share) == [(0, 9, "available", 1)]


def test_one_type_for_each_offset_splits_a_run_only_where_they_differ() -> None:
    share = opened()
    fetch(share, (0, 5))
    acknowledge(share, 0, 5, ACCEPT, RELEASE, RELEASE, REJECT, GAP, ACCEPT)
    assert states(share) == [
        (1, 2, "available", 1),
        (3, 3, "archived", 1),
        (4, 4, "archived", 1),
        (5, 5, "acknowledged", 1),
    ]
    assert share.start_offset == 1


@pytest.mark.parametrize(
    ("first", "last", "member", "code"),
    [
        (0, 9, "other", ErrorCode.INVALID_RECORD_STATE),
        (5, 10, "m", ErrorCode.INVALID_REQUEST),
        (20, 25, "m", ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_refused_acknowledgement_changes_nothing(first: int, last: int, member: str, code: ErrorCode) -> None:
    share = opened()
    fetch(share, (0, 9))
    with pytest.raises(KafkaError) as refused:
        share.acknowledge(member, [Acknowledgement(0, 1, [ACCEPT]), Acknowledgement(first, last, [ACCEPT])], 0)
    assert refused.value.code is code
    assert states(share) == [(0, 9, "acquired", 1)]


def test_an_offset_that_is_acknowledged_twice_changes_nothing() -> None:
    share = opened()
    fetch(share, (0, 9))
    with pytest.raises(KafkaError) as refused:
        share.acknowledge("m", [Acknowledgement(0, 4, [ACCEPT]), Acknowledgement(4, 5, [REJECT])], 0)
    assert refused.value.code is ErrorCode.INVALID_RECORD_STATE
    assert states(share) == [(0, 9, "acquired", 1)]
    change = share.acknowledge("m", [Acknowledgement(0, 4, [RENEW]), Acknowledgement(4, 5, [ACCEPT])], 0)
    assert [batch[:2] for batch in change.batches] == [(4, 5)], "a renewed lock changes no state"


def test_where_nothing_is_delivered_nothing_can_be_acknowledged() -> None:
    share = opened(3)
    for given in (Acknowledgement(3, 3, [ACCEPT]), Acknowledgement(0, 9, [ACCEPT])):
        with pytest.raises(KafkaError) as refused:
            share.acknowledge("m", [given], 0)
        assert refused.value.code is ErrorCode.INVALID_RECORD_STATE
    assert share.acknowledge("m", [Acknowledgement(0, 2, [ACCEPT])], 0).batches == ()


def test_offsets_below_the_start_offset_are_ignored() -> None:
    share = opened()
    fetch(share, (0, 9))
    acknowledge(share, 0, 9, ACCEPT)
    fetch(share, (10, 19))
    change = acknowledge(share, 5, 11, RELEASE, RELEASE, RELEASE, RELEASE, RELEASE, ACCEPT, REJECT)
    assert [batch[:3] for batch in change.batches] == [
        (10, 10, RecordState.ACKNOWLEDGED),
        (11, 11, RecordState.ARCHIVED),
    ]


def test_released_records_come_back_with_their_count_until_the_limit_archives_them() -> None:
    share = opened(delivery_count=2)
    assert fetch(share, (0, 9)) == [(0, 9, 1)]
    acknowledge(share, 0, 9, RELEASE)
    assert share.next_fetch_offset == 0
    assert fetch(share, (0, 9), member="n") == [(0, 9, 2)]
    change = acknowledge(share, 0, 9, RELEASE, member="n")
    assert change.batches == (StateBatch(0, 9, RecordState.ARCHIVED, 2),)
    assert share.start_offset == 10


def test_a_batch_is_halved_before_its_last_delivery_and_then_each_record_is_alone() -> None:
    share = opened(delivery_count=5)
    log = (0, 7)
    for count in (1, 2, 3):
        assert fetch(share, log) == [(0, 7, count)]
        acknowledge(share, 0, 7, RELEASE)
    assert fetch(share, log) == [(0, 3, 4)]
    acknowledge(share, 0, 3, RELEASE)
    assert fetch(share, log) == [(0, 0, 5)], "the last delivery of a record is alone"
    acknowledge(share, 0, 0, ACCEPT)
    assert fetch(share, log) == [(1, 1, 5)]


def test_what_a_member_held_comes_back_when_its_session_ends() -> None:
    share = opened()
    fetch(share, (0, 4))
    fetch(share, (5, 9), member="n")
    change = share.release("m")
    assert change is not None and change.batches == (StateBatch(0, 4, RecordState.AVAILABLE, 1),)
    assert states(share) == [(0, 4, "available", 1), (5, 9, "acquired", 1)]
    assert share.release("m") is None


def test_a_renewed_lock_ends_later_and_is_not_stored() -> None:
    share = opened()
    fetch(share, (0, 9))
    change = acknowledge(share, 0, 4, RENEW)
    assert change.runs == []
    assert share.end_locks(LOCKED_UNTIL_MS) is not None
    assert states(share) == [(0, 4, "acquired", 1), (5, 9, "available", 1)]
    assert share.next_lock_end_ms() == 5000


def test_whole_batches_may_exceed_the_wanted_records_unless_the_limit_is_exact() -> None:
    log = ((0, 9), (10, 19))
    assert fetch(opened(), *log, max_records=12) == [(0, 19, 1)]
    share = opened()
    assert fetch(share, *log, max_records=12, is_exact=True) == [(0, 11, 1)]
    assert share.next_fetch_offset == 12
    assert fetch(share, *log, max_records=12, is_exact=True) == [(12, 19, 1)]


def test_the_rest_of_a_batch_behind_an_exact_limit_is_in_the_window_and_not_held() -> None:
    share = opened()
    assert fetch(share, (0, 9), (10, 19), max_records=2, is_exact=True) == [(0, 1, 1)]
    assert states(share) == [(0, 1, "acquired", 1), (2, 9, "available", 0)]
    with pytest.raises(KafkaError) as refused:
        acknowledge(share, 0, 2, ACCEPT)
    assert refused.value.code is ErrorCode.INVALID_RECORD_STATE
    assert fetch(share, (0, 9), (10, 19), member="n", max_records=3) == [(2, 9, 1)], "one batch with the first two"


def test_records_that_were_read_together_come_back_together() -> None:
    log = ((0, 4), (5, 9), (10, 14))
    share = opened()
    assert fetch(share, *log, max_records=10) == [(0, 9, 1)]
    acknowledge(share, 0, 9, RELEASE)
    assert fetch(share, *log, max_records=1) == [(0, 9, 2)]
    acknowledge(share, 0, 3, RELEASE)
    acknowledge(share, 4, 9, RELEASE)
    assert fetch(share, *log, max_records=2, is_exact=True) == [(0, 1, 3)]
    acknowledge(share, 0, 1, REJECT)
    assert fetch(share, *log, max_records=9) == [(2, 9, 3), (10, 14, 1)]


def test_parts_of_an_answer_have_one_delivery_count_and_end_with_their_batch() -> None:
    log = ((0, 4), (5, 9))
    share = opened(delivery_count=10)
    fetch(share, log[0])
    fetch(share, log[1])
    acknowledge(share, 0, 9, RELEASE)
    assert fetch(share, *log, max_records=2, is_exact=True) == [(0, 1, 2)]
    acknowledge(share, 0, 1, RELEASE)
    assert fetch(share, *log) == [(0, 1, 3), (2, 4, 2), (5, 9, 2)]


def test_a_batch_that_is_delivered_often_is_alone_in_its_answer() -> None:
    log = ((0, 1), (2, 3), (4, 11))
    share = opened(delivery_count=6)
    for first, last in log:
        assert fetch(share, (first, last)) == [(first, last, 1)]
    acknowledge(share, 0, 1, RELEASE)
    for _ in range(2):
        fetch(share, *log)
        acknowledge(share, 0, 1, RELEASE)
    acknowledge(share, 2, 3, RELEASE)
    assert fetch(share, *log) == [(0, 0, 4)]
    assert fetch(share, *log) == [(1, 1, 4)]
    assert fetch(share, *log) == [(2, 3, 2)]


def test_records_that_were_delivered_less_often_may_use_up_the_half() -> None:
    share = opened(delivery_count=5)
    fetch(share, (0, 1))
    for _ in range(2):
        acknowledge(share, 1, 1, RELEASE)
        fetch(share, (0, 1))
    share.release("m")
    assert states(share) == [(0, 0, "available", 1), (1, 1, "available", 3)]
    assert fetch(share, (0, 1), (2, 3)) == [(0, 0, 2), (1, 1, 4)], "and nothing of another batch"


def test_acquired_records_are_divided_at_batches_of_the_log() -> None:
    log = tuple((first, first + 9) for first in range(0, 60, 10))
    assert fetch(opened(), *log, batch_size=25) == [(0, 29, 1), (30, 59, 1)]
    assert fetch(opened(), *log, batch_size=25, is_exact=True) == [(0, 59, 1)], "not where the limit is exact"


def test_the_locks_of_a_partition_are_limited() -> None:
    share = opened(record_locks=15)
    assert fetch(share, (0, 9), (10, 19), (20, 29)) == [(0, 19, 1)], "the last batch may exceed the limit"
    assert not share.may_acquire(share.next_fetch_offset)
    assert fetch(share, (20, 29)) == []
    acknowledge(share, 5, 9, RELEASE)
    assert share.may_acquire(share.next_fetch_offset)
    assert fetch(share, (0, 9), (10, 19), (20, 29)) == [(5, 9, 2)]
    acknowledge(share, 0, 9, ACCEPT)
    assert fetch(share, (20, 29)) == [(20, 29, 1)]


def test_an_exact_fetch_stays_within_the_locks() -> None:
    assert fetch(opened(record_locks=15), (0, 99), is_exact=True) == [(0, 14, 1)]


def test_offsets_that_the_log_does_not_have_are_finished() -> None:
    share = opened()
    assert fetch(share, (5, 9)) == [(5, 9, 1)]
    assert share.start_offset == 5
    assert fetch(share, (20, 29)) == [(20, 29, 1)]
    assert (10, 19, "archived", 0) in states(share)
    acknowledge(share, 5, 9, ACCEPT)
    assert share.start_offset == 20


def test_records_that_were_compacted_away_meanwhile_are_finished() -> None:
    share = opened()
    fetch(share, (0, 9))
    acknowledge(share, 0, 9, RELEASE)
    assert fetch(share, (6, 9)) == [(6, 9, 2)]
    assert share.start_offset == 6


def test_aborted_transactions_are_never_delivered() -> None:
    share = opened()
    batches = [FetchedBatch(0, 4), FetchedBatch(5, 9, is_aborted=True), FetchedBatch(10, 14)]
    acquired = share.acquire("m", 0, batches, Wanted(500, 500, is_exact=False), 1)
    assert acquired == [(0, 4, 1), (10, 14, 1)]
    acknowledge(share, 0, 4, ACCEPT)
    assert share.start_offset == 10


def test_the_log_start_passes_what_nobody_may_read_any_more() -> None:
    share = opened()
    fetch(share, (0, 9))
    fetch(share, (10, 19), member="n")
    share.log_starts_at(15)
    assert (share.start_offset, states(share)) == (15, [(15, 19, "acquired", 1)])
    acknowledge(share, 10, 19, ACCEPT, member="n")
    assert share.start_offset == 20
    share.log_starts_at(50)
    assert (share.start_offset, share.end_offset) == (50, 50)


def test_the_log_start_may_pass_records_whose_acknowledgement_is_being_stored() -> None:
    share = opened()
    fetch(share, (0, 9))
    change = share.acknowledge("m", [Acknowledgement(0, 9, [ACCEPT])], 0)
    share.log_starts_at(5)
    assert share.start_offset == 5
    share.settle(change, is_stored=True)
    assert share.start_offset == 10


def test_a_loaded_state_continues_and_its_holes_are_delivered() -> None:
    stored = [
        StateBatch(15, 19, RecordState.AVAILABLE, 2),
        StateBatch(5, 9, RecordState.ACKNOWLEDGED, 1),
        StateBatch(20, 24, RecordState.ARCHIVED, 5),
    ]
    share = opened(5, stored)
    assert (share.start_offset, share.end_offset) == (10, 25)
    assert fetch(share, (0, 12), (13, 24)) == [(10, 14, 1), (15, 19, 3)]
    assert fetch(share, (25, 29)) == [(25, 29, 1)]


def test_loaded_records_that_were_delivered_too_often_are_not_delivered_again() -> None:
    share = opened(0, [StateBatch(0, 4, RecordState.AVAILABLE, 3)], delivery_count=3)
    assert share.start_offset == 5


def test_loaded_batches_may_overlap_and_begin_below_the_start_offset() -> None:
    share = opened(5, [StateBatch(0, 8, RecordState.ACKNOWLEDGED, 1), StateBatch(6, 12, RecordState.AVAILABLE, 1)])
    assert (share.start_offset, states(share)) == (9, [(9, 12, "available", 1)])


def test_the_count_of_finished_records_includes_those_of_the_change() -> None:
    share = opened()
    fetch(share, (0, 9))
    assert acknowledge(share, 3, 4, ACCEPT).finished_count == 2
    assert acknowledge(share, 6, 6, REJECT).finished_count == 3
    change = acknowledge(share, 0, 2, ACCEPT)
    assert (change.start_offset, change.finished_count) == (0, 6)


def test_only_as_much_is_read_as_can_be_acquired() -> None:
    share = opened(0, [StateBatch(2, 9, RecordState.ACKNOWLEDGED, 1)])
    assert share.last_wanted(Wanted(2, 500, is_exact=False)) == 1
    assert share.last_wanted(Wanted(5, 500, is_exact=False)) == 12
    released = opened(0, [StateBatch(0, 9, RecordState.AVAILABLE, 1)])
    assert released.last_wanted(Wanted(2, 500, is_exact=True)) == 1
    assert released.last_wanted(Wanted(2, 500, is_exact=False)) == 9


@pytest.mark.parametrize(
    "given",
    [
        [Acknowledgement(5, 4, [1])],
        [Acknowledgement(0, 4, [1]), Acknowledgement(3, 5, [1])],
        [Acknowledgement(-2, 4, [1])],
        [Acknowledgement(0, 4, [])],
        [Acknowledgement(0, 4, [1, 1])],
        [Acknowledgement(0, 0, [5])],
        [Acknowledgement(0, 0, [-1])],
        [Acknowledgement(0, 0, [RENEW])],
    ],
)
def test_acknowledgements_that_no_member_may_send(given: list[Acknowledgement]) -> None:
    with pytest.raises(KafkaError) as refused:
        check_acknowledgements(given, may_renew=False)
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_acknowledgements_that_a_member_may_send() -> None:
    check_acknowledgements([Acknowledgement(0, 1, [GAP, RENEW]), Acknowledgement(2, 9, [ACCEPT])], may_renew=True)
