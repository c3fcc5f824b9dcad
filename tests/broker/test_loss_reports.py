"""The topic of reports: one of every election that gave something up, whoever is killed when."""

from __future__ import annotations

import pytest

from heirlog.broker.loss_reports import FIRST_MS, REPORTS_PER_BATCH, RETRY_MS
from heirlog.metadata.basis import Basis, ElectionBasis, ReplicaAnswer
from heirlog.metadata.loss_report import LossReport, read_report
from heirlog.metadata.topic_name import RECOVERIES_TOPIC
from heirlog.protocol.batch import decode_records, encode_batch, walk
from heirlog.protocol.types import BrokerEpoch, BrokerId, LeaderEpoch

from .fakes import TOPIC_IDS, Rig, state


def given_up(leader_epoch: int = 7, leader: int = 2) -> ElectionBasis:
    answers = (
        ReplicaAnswer(BrokerId(1), BrokerEpoch(101), 5, 200),
        ReplicaAnswer(BrokerId(2), BrokerEpoch(102), 5, 150),
    )
    return ElectionBasis(
        Basis.DESIGNATED, BrokerId(leader), LeaderEpoch(leader_epoch), 150, 12, 1_700_000_000_000, answers
    )


def lost(rig: Rig, index: int = 0, leader_epoch: int = 7, topic: str = "foo", leader: int = 2) -> None:
    """The partition has a leader that gave something up."""
    rig.set_partition(
        state([1, 2], [leader], leader=leader, leader_epoch=leader_epoch, basis=given_up(leader_epoch)),
        topic=topic,
        index=index,
    )


def lead_reports(rig: Rig, leader_epoch: int = 0, leader: int = 1) -> None:
    rig.show(state([1], leader=leader, leader_epoch=leader_epoch), topic=RECOVERIES_TOPIC)


def written(rig: Rig) -> list[LossReport]:
    log = rig.partition(RECOVERIES_TOPIC).log
    found: list[LossReport] = []
    at = log.log_start_offset
    while at < log.log_end_offset:
        data = b"".join(region.read() for region in log.read(at, 1 << 30, log.log_end_offset).regions)
        for position, header in walk(data):
            for record in decode_records(data, position):
                report = read_report(record.value)
                assert report is not None and record.key == report.key
                found.append(report)
            at = header.next_offset
    return found


def keys(rig: Rig) -> list[tuple[int, int]]:
    return [(report.partition, report.election.leader_epoch) for report in written(rig)]


def test_who_leads_the_topic_writes_what_the_image_says() -> None:
    rig = Rig().started()
    lead_reports(rig)
    lost(rig)
    rig.publish()
    rig.env.advance(FIRST_MS)
    assert written(rig) == [LossReport("foo", TOPIC_IDS["foo"], 0, given_up())]


def test_another_change_of_the_same_partition_is_no_other_report() -> None:
    rig = Rig().started()
    lead_reports(rig)
    lost(rig)
    rig.publish()
    rig.env.advance(FIRST_MS)
    rig.show(state([1, 2], [1, 2], leader=1, leader_epoch=9, partition_epoch=4, basis=given_up()))
    rig.env.advance(FIRST_MS)
    assert keys(rig) == [(0, 7)]


def test_the_next_election_that_gives_something_up_is_another_report() -> None:
    rig = Rig().started()
    lead_reports(rig)
    for epoch in (7, 9):
        lost(rig, leader_epoch=epoch)
        rig.publish()
        rig.env.advance(FIRST_MS)
    assert keys(rig) == [(0, 7), (0, 9)]


def test_an_election_that_another_one_followed_before_anybody_reported_it_is_reported_too() -> None:
    rig = Rig().started()
    rig.show(state([1, 2], leader=2, leader_epoch=9, basis=given_up(9), earlier=(given_up(8), given_up(7))))
    lead_reports(rig)
    rig.env.advance(FIRST_MS)
    assert keys(rig) == [(0, 7), (0, 8), (0, 9)]


def test_what_was_never_written_the_next_leader_of_the_topic_writes() -> None:
    rig = Rig().started()
    for index in range(3):
        lost(rig, index)
    rig.publish()
    lead_reports(rig)
    rig.env.advance(FIRST_MS)
    assert keys(rig) == [(0, 7), (1, 7), (2, 7)]


def test_what_the_log_has_is_not_written_again_after_a_restart_or_another_leader() -> None:
    rig = Rig().started()
    lead_reports(rig)
    lost(rig)
    rig.publish()
    rig.env.advance(FIRST_MS)
    lead_reports(rig, leader_epoch=1)
    rig.env.advance(FIRST_MS)
    assert keys(rig) == [(0, 7)]

    rig.env.sent.clear()
    again = Rig(env=rig.env).started(epoch=200)
    lost(again)
    lost(again, 1)
    lead_reports(again, leader_epoch=2)
    again.env.advance(FIRST_MS)
    assert keys(again) == [(0, 7), (1, 7)]


def test_a_report_that_the_topic_lost_is_written_again() -> None:
    rig = Rig().started()
    lead_reports(rig)
    lost(rig)
    rig.publish()
    rig.env.advance(FIRST_MS)
    rig.show(state([1, 2], leader=2, leader_epoch=1, partition_epoch=2), topic=RECOVERIES_TOPIC)
    rig.partition(RECOVERIES_TOPIC).log.truncate_to(0)
    lead_reports(rig, leader_epoch=2)
    rig.env.advance(FIRST_MS)
    assert keys(rig) == [(0, 7)]


def test_reading_waits_for_the_watermark_of_what_the_former_leader_wrote() -> None:
    rig = Rig().started()
    report = LossReport("foo", TOPIC_IDS["foo"], 0, given_up())
    rig.show(state([1, 2], leader=2), topic=RECOVERIES_TOPIC)
    log = rig.partition(RECOVERIES_TOPIC).log
    log.append_as_follower(
        encode_batch([(report.key, report.value, (), 0)], base_offset=0, leader_epoch=5), max_epoch=5
    )
    lost(rig)
    lost(rig, 1)
    rig.show(state([1, 2], leader=1, leader_epoch=6, partition_epoch=2), topic=RECOVERIES_TOPIC)
    rig.env.advance(100)
    assert keys(rig) == [(0, 7)]
    rig.fetch(1, replica=2, leader_epoch=6, last_fetched_epoch=5, topic=RECOVERIES_TOPIC)
    rig.env.advance(FIRST_MS)
    assert keys(rig) == [(0, 7), (1, 7)]


def test_ten_thousand_at_once_are_written_in_batches() -> None:
    rig = Rig().started()
    count = 2 * REPORTS_PER_BATCH + 1
    lead_reports(rig)
    for index in range(count):
        lost(rig, index)
    rig.publish()
    rig.env.advance(FIRST_MS + 5)
    assert keys(rig) == [(index, 7) for index in range(count)]
    assert len(rig.env.files.list(f"/data/{RECOVERIES_TOPIC}-0")) > 0


def test_a_topic_below_its_min_isr_is_tried_again() -> None:
    rig = Rig().started()
    rig.set_config("min.insync.replicas", "2", topic=RECOVERIES_TOPIC)
    rig.show(state([1, 2], [1], leader=1, leader_epoch=0), topic=RECOVERIES_TOPIC)
    lost(rig)
    rig.publish()
    rig.env.advance(RETRY_MS * 3)
    assert written(rig) == []
    assert [event for event, _ in rig.env.events].count("loss-report-refused") == 1, "once a minute is enough"
    rig.set_config("min.insync.replicas", "1", topic=RECOVERIES_TOPIC)
    rig.publish()
    rig.env.advance(RETRY_MS)
    assert keys(rig) == [(0, 7)]


def test_the_leader_of_the_partition_asks_for_the_topic_until_it_is_there() -> None:
    rig = Rig().started()
    lost(rig, leader=1)
    rig.publish()
    assert rig.asked_for == [RECOVERIES_TOPIC]
    rig.env.advance(2 * RETRY_MS)
    assert len(rig.asked_for) == 3
    lead_reports(rig)
    rig.env.advance(5 * RETRY_MS)
    assert len(rig.asked_for) == 3
    assert keys(rig) == [(0, 7)]


def test_a_cluster_that_gave_nothing_up_has_no_such_topic() -> None:
    rig = Rig().started()
    rig.show(state([1, 2], leader=1))
    lost(rig, index=1, leader=2)
    rig.publish()
    rig.env.advance(5 * RETRY_MS)
    assert rig.asked_for == []


def test_a_report_outlives_its_topic() -> None:
    rig = Rig().started()
    lead_reports(rig)
    lost(rig)
    rig.publish()
    rig.env.advance(FIRST_MS)
    rig.delete_topic()
    rig.publish()
    lead_reports(rig, leader_epoch=1)
    rig.env.advance(FIRST_MS)
    assert keys(rig) == [(0, 7)]


def test_what_is_no_report_is_passed_over() -> None:
    rig = Rig().started()
    lead_reports(rig)
    log = rig.partition(RECOVERIES_TOPIC).log
    log.append_as_follower(encode_batch([(None, b"junk", (), 0)], base_offset=0, leader_epoch=0), max_epoch=0)
    lost(rig)
    lead_reports(rig, leader_epoch=1)
    rig.env.advance(FIRST_MS)
    assert log.log_end_offset == 2


@pytest.mark.parametrize("received", ["first_offset", "end_offset", "exact"])
def test_operators_read_of_it_in_the_log(received: str) -> None:
    rig = Rig().started()
    lead_reports(rig)
    lost(rig)
    rig.publish()
    rig.env.advance(FIRST_MS)
    (values,) = [values for event, values in rig.env.events if event == "records-given-up"]
    assert values[received] == {"first_offset": 150, "end_offset": 200, "exact": True}[received]


@pytest.mark.parametrize("lost_power", [False, True])
def test_an_election_that_lost_nothing_is_a_warning_only_after_a_power_cut(lost_power: bool) -> None:
    rig = Rig().started()
    lead_reports(rig)
    replicas = tuple(answer._replace(may_lack_records=lost_power) for answer in given_up().replicas)
    whole = ElectionBasis(Basis.RECOVERED, BrokerId(1), LeaderEpoch(7), 200, 12, 0, replicas)
    rig.show(state([1, 2], [1], leader=2, leader_epoch=7, basis=whole))
    rig.env.advance(FIRST_MS)
    assert keys(rig) == [(0, 7)] and written(rig)[0].loss.records_max == 0
    events = {event: values for event, values in rig.env.events if event.startswith(("records-", "nothing-"))}
    (found,) = events
    assert found == ("records-may-be-missing" if lost_power else "nothing-given-up")
    assert events[found]["may_lack_records"] == ([1, 2] if lost_power else [])
