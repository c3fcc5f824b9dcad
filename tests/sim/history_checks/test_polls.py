from __future__ import annotations

from heirlog.sim.history import KnownLoss, Latest, Observed, Seek
from heirlog.sim.history_checks.polls import latest_went_back, nonmonotonic_poll, poll_skip


def test_the_latest_offset_must_not_go_back_for_one_client() -> None:
    answers = [Latest("t-0", 10, 1, "c"), Latest("t-0", 9, 2, "c")]
    (finding,) = latest_went_back(answers)
    assert finding.check == "high-watermark-regression"
    assert latest_went_back(answers, [KnownLoss("t-0", 9, 2, time_ms=0)]) == []
    assert latest_went_back([Latest("t-0", 10, 1, "c"), Latest("t-0", 9, 1, "d"), Latest("t-1", 3, 1, "c")]) == []


def read(offset: int, epoch: int = 1, client: str = "c", poll: int = 0) -> Observed:
    return Observed("t-0", offset, f"{epoch}/{offset}", epoch, client, poll)


def test_a_reader_continues_at_the_next_offset_or_goes_back() -> None:
    assert poll_skip([read(0), read(1), read(0), read(1), read(2), read(0, client="d")]) == []
    assert poll_skip([read(1)]) != []
    assert poll_skip([read(0), read(1, client="d")]) != []


def test_a_reader_sees_the_beginning_of_a_new_lineage() -> None:
    losses = [KnownLoss("t-0", 2, 5, time_ms=0, winner=((1, 0), (5, 2)))]
    before = [read(0), read(1), read(2), read(3)]
    assert poll_skip([*before, read(2, epoch=5), read(3, epoch=5)], losses) == []
    assert poll_skip([read(0), read(1), read(2, epoch=6)], losses) == []
    (finding,) = poll_skip([*before, read(4, epoch=5)], losses)
    assert "it never read what is at 2" in finding.sentence


def test_a_client_of_kafka_continues_where_the_epoch_of_its_last_record_ends() -> None:
    # offset 1 is in both logs: in the winner's of epoch 1, in the other one as a repeat in epoch 2
    losses = [KnownLoss("t-0", 1, 5, time_ms=0, winner=((1, 0), (5, 2)))]
    before = [read(0), read(1, epoch=2), read(2, epoch=2)]
    assert poll_skip([*before, read(2, epoch=5)], losses) != []
    assert poll_skip([*before, read(2, epoch=5)], losses, remember_epochs=False) == []
    (finding,) = poll_skip([*before, read(3, epoch=5)], losses, remember_epochs=False)
    assert "it never read what is at 2" in finding.sentence


def test_records_that_the_winner_has_are_of_the_new_lineage() -> None:
    older_tail = [read(2, epoch=0), read(3, epoch=0), read(4, epoch=5)]
    losses = [KnownLoss("t-0", 2, 5, time_ms=0, winner=((0, 0), (5, 4)))]
    assert poll_skip([read(0, epoch=0), read(1, epoch=0), *older_tail], losses) == []
    of_another_log = [read(2, epoch=1), read(3, epoch=1), read(4, epoch=5)]
    assert poll_skip([read(0, epoch=0), read(1, epoch=0), *of_another_log], losses) != []


def test_only_the_newest_lossy_election_decides_what_a_reader_goes_back_to() -> None:
    with_less = KnownLoss("t-0", 2, 3, time_ms=0, winner=((0, 0), (3, 2)))
    with_the_tail = KnownLoss("t-0", 2, 5, time_ms=1, winner=((0, 0), (5, 4)))
    tail = [read(offset, epoch=0) for offset in range(4)]
    assert poll_skip([*tail, read(4, epoch=5)], [with_less, with_the_tail]) == []
    assert poll_skip([*tail, read(2, epoch=3), read(4, epoch=5)], [with_less, with_the_tail]) != []
    (finding,) = poll_skip([*tail, read(4, epoch=3)], [with_less])
    assert "it never read what is at 2" in finding.sentence


def test_a_reader_does_not_continue_in_an_older_epoch() -> None:
    newer = [read(0, epoch=0), read(1, epoch=3), read(2, epoch=3)]
    (finding,) = poll_skip([*newer, read(3, epoch=0)])
    assert "it never read what is at 1" in finding.sentence
    assert poll_skip([*newer, read(1, epoch=0), read(2, epoch=0)]) == []


def test_a_skip_inside_a_poll_is_another_finding_than_one_between_polls() -> None:
    (inside,) = poll_skip([read(0, poll=1), read(2, poll=1), read(3, poll=2)])
    assert inside.check == "int-poll-skip"
    assert inside.sentence == (
        "t-0: c read offset 2 (epoch 1) after 0 (epoch 1), in the same poll; it never read what is at 1"
    )
    (between,) = poll_skip([read(0, poll=1), read(2, poll=2), read(3, poll=2)])
    assert between.check == "ext-poll-skip"
    (at_first,) = poll_skip([read(4, poll=1), read(5, poll=1)])
    assert at_first.check == "ext-poll-skip"


def test_a_reader_that_sought_an_offset_reads_it_first() -> None:
    before = [read(offset, poll=1) for offset in range(6)]
    back = [Seek("t-0", "c", 2, 3)]
    assert poll_skip([*before, read(3, poll=2), read(4, poll=2)], seeks=back) == []
    (finding,) = poll_skip([*before, read(4, poll=2)], seeks=back)
    assert finding.check == "ext-poll-skip" and finding.sentence.endswith("it never read what is at 3")
    assert poll_skip([read(100, poll=1)], seeks=[Seek("t-0", "c", 1, 100)]) == []
    assert poll_skip([read(101, poll=1)], seeks=[Seek("t-0", "c", 1, 100)]) != []


def test_only_the_last_seek_before_a_record_counts() -> None:
    before = [read(offset, poll=1) for offset in range(6)]
    seeks = [Seek("t-0", "c", 2, 1), Seek("t-0", "c", 2, 3), Seek("t-0", "d", 2, 0), Seek("t-1", "c", 2, 0)]
    assert poll_skip([*before, read(3, poll=2)], seeks=seeks) == []
    assert nonmonotonic_poll([*before, read(3, poll=2)], seeks=seeks) == []
    assert nonmonotonic_poll([*before, read(2, poll=2)], seeks=seeks) != []


def test_a_seek_does_not_excuse_that_the_beginning_of_a_lineage_was_left_out() -> None:
    losses = [KnownLoss("t-0", 2, 5, time_ms=0, winner=((1, 0), (5, 2)))]
    before = [read(offset, poll=1) for offset in range(6)]
    assert poll_skip([*before, read(2, epoch=5, poll=2)], losses, [Seek("t-0", "c", 2, 2)]) == []
    assert poll_skip([*before, read(4, epoch=5, poll=2)], losses, [Seek("t-0", "c", 2, 4)]) != []


def test_after_a_rebalance_a_reader_may_begin_anywhere() -> None:
    before = [read(0, poll=1), read(1, poll=1)]
    rebalanced = [Seek("t-0", "c", 2, None)]
    for offset in (0, 1, 7):
        assert poll_skip([*before, read(offset, poll=2)], seeks=rebalanced) == []
        assert nonmonotonic_poll([*before, read(offset, poll=2)], seeks=rebalanced) == []
    assert poll_skip([*before, read(7, poll=2), read(9, poll=3)], seeks=rebalanced) != []
    assert nonmonotonic_poll([*before, read(7, poll=2), read(7, poll=3)], seeks=rebalanced) != []


def test_a_reader_goes_back_only_by_a_seek() -> None:
    forward = [read(0, poll=1), read(1, poll=1), read(2, poll=2), read(0, client="d", poll=1)]
    assert nonmonotonic_poll(forward) == []
    (again,) = nonmonotonic_poll([*forward, read(2, poll=3)])
    assert again.check == "nonmonotonic-poll"
    assert again.sentence == "t-0: c read offset 2 after 2, in a later poll, without a seek"
    (inside,) = nonmonotonic_poll([read(1, poll=1), read(0, poll=1)])
    assert inside.sentence == "t-0: c read offset 0 after 1, in the same poll"
    assert nonmonotonic_poll([*forward, read(1, poll=3)], seeks=[Seek("t-0", "c", 3, 1)]) == []
    assert nonmonotonic_poll([*forward, read(0, poll=3)], seeks=[Seek("t-0", "c", 3, 1)]) != []
    late = [Seek("t-0", "c", 4, 1)]
    assert nonmonotonic_poll([*forward, read(1, poll=3)], seeks=late) != []


def test_a_lossy_election_may_send_a_reader_back_between_two_polls() -> None:
    losses = [KnownLoss("t-0", 1, 5, time_ms=0)]
    before = [read(offset, poll=1) for offset in range(3)]
    assert nonmonotonic_poll([*before, read(0, poll=2)], losses) == []
    assert nonmonotonic_poll([*before, read(0, poll=1)], losses) != []
    assert nonmonotonic_poll([*before, read(0, poll=2)], [KnownLoss("t-0", 3, 5, time_ms=0)]) != []
    assert nonmonotonic_poll([*before, read(0, poll=2)], [KnownLoss("t-0", 1, 1, time_ms=0)]) != []
    assert nonmonotonic_poll([*before, read(0, poll=2)], [KnownLoss("t-1", 1, 5, time_ms=0)]) != []
