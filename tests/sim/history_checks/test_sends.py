from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heirlog.sim.history import AcknowledgedBatch, AcknowledgedBy, Copies, KnownLoss
from heirlog.sim.history_checks.sends import few_copies, nonmonotonic_send, two_leaders


def batch(
    offset: int,
    sent: int,
    answered: int,
    *,
    size: int = 1,
    client: str = "p",
    partition: str = "t-0",
    in_order: bool = False,
) -> AcknowledgedBatch:
    return AcknowledgedBatch(partition, client, offset, offset + size - 1, sent, answered, sent, in_order)


def test_a_batch_that_is_sent_after_the_answer_to_another_gets_a_higher_offset() -> None:
    assert nonmonotonic_send([batch(0, 1, 2, size=3), batch(3, 3, 4), batch(9, 5, 6)]) == []
    (finding,) = nonmonotonic_send([batch(5, 1, 2, size=3), batch(3, 3, 4)])
    assert finding.check == "nonmonotonic-send"
    assert finding.sentence == "t-0: p sent a batch that got offset 3 after one that had got 5 to 7"
    assert nonmonotonic_send([batch(5, 1, 2, size=3), batch(7, 3, 4)]) != []
    assert nonmonotonic_send([batch(5, 1, 2), batch(5, 3, 4)]) != []


def test_the_order_in_which_answers_are_recorded_does_not_matter() -> None:
    assert len(nonmonotonic_send([batch(3, 3, 4), batch(5, 1, 2)])) == 1
    assert nonmonotonic_send([batch(5, 3, 4), batch(3, 1, 2)]) == []


def test_batches_in_flight_together_have_an_order_only_if_the_producer_is_idempotent() -> None:
    assert nonmonotonic_send([batch(5, 1, 4), batch(3, 2, 3)]) == []
    assert nonmonotonic_send([batch(5, 1, 4, in_order=True), batch(3, 2, 3, in_order=True)]) != []
    assert nonmonotonic_send([batch(3, 1, 4, in_order=True), batch(5, 2, 3, in_order=True)]) == []


def test_a_batch_is_compared_with_all_batches_before_it() -> None:
    found = nonmonotonic_send([batch(9, 1, 2), batch(3, 3, 4), batch(5, 5, 6)])
    assert [finding.sentence.split("after")[0] for finding in found] == [
        "t-0: p sent a batch that got offset 3 ",
        "t-0: p sent a batch that got offset 5 ",
    ]


def test_other_producers_and_partitions_have_orders_of_their_own() -> None:
    assert nonmonotonic_send([batch(5, 1, 2), batch(3, 3, 4, client="q"), batch(1, 3, 4, partition="t-1")]) == []


def test_a_loss_excuses_the_order_of_what_it_gave_up() -> None:
    given_up, again = batch(5, 1, 2), batch(3, 30, 40)
    assert nonmonotonic_send([given_up, again], [KnownLoss("t-0", 3, 7, time_ms=20)]) == []
    assert nonmonotonic_send([given_up, again], [KnownLoss("t-0", 6, 7, time_ms=20)]) != []
    assert nonmonotonic_send([given_up, again], [KnownLoss("t-0", 3, 7, time_ms=0)]) != []
    assert nonmonotonic_send([given_up, again], [KnownLoss("t-1", 3, 7, time_ms=20)]) != []


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 20), st.integers(0, 8), st.booleans()), max_size=8))
def test_the_findings_are_those_of_comparing_every_pair(drawn: list[tuple[int, int, int, bool]]) -> None:
    sends = [
        batch(offset, 3 * sent, 3 * sent + 1 + lasted, in_order=in_order) for offset, sent, lasted, in_order in drawn
    ]
    wrong = [
        one
        for one in sends
        if any(
            (other.sent if other.in_order else other.answered) < one.sent and one.first_offset <= other.last_offset
            for other in sends
        )
    ]
    assert len(nonmonotonic_send(sends)) == len(wrong)


def test_two_brokers_that_acknowledge_in_one_epoch_are_two_leaders() -> None:
    fine = [AcknowledgedBy("t-0", 3, 1), AcknowledgedBy("t-0", 4, 2), AcknowledgedBy("t-1", 3, 2)]
    assert two_leaders(fine) == []
    (finding,) = two_leaders([*fine, AcknowledgedBy("t-0", 3, 2)])
    assert finding.check == "two-leaders"
    assert finding.sentence == "t-0: in leader epoch 3 both broker 1 and broker 2 acknowledged records"


def test_what_is_committed_has_min_isr_copies() -> None:
    assert few_copies([Copies("t-0", 10, 2, 2), Copies("t-0", 20, 3, 2)]) == []
    (finding,) = few_copies([Copies("t-0", 10, 1, 2)])
    assert finding.check == "few-copies"
    assert finding.sentence == ("t-0: what is below offset 10 was committed while 1 replicas had it; min ISR is 2")
