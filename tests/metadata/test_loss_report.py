"""What an election gave up, told from its record alone."""

from __future__ import annotations

import json

import pytest

from heirlog.metadata.basis import Basis, ElectionBasis, ReplicaAnswer
from heirlog.metadata.loss_report import Loss, LossReport, loss_of, read_report
from heirlog.protocol.types import BrokerEpoch, BrokerId, LeaderEpoch, Uuid


def said(broker: int, epoch: int, end: int) -> ReplicaAnswer:
    return ReplicaAnswer(BrokerId(broker), BrokerEpoch(100 + broker), epoch, end)


def silent(broker: int, epoch: int = -1, end: int = -1) -> ReplicaAnswer:
    """With `epoch` and `end`: it answered, and was started anew since."""
    return ReplicaAnswer(BrokerId(broker), last_written_epoch=epoch, end_offset=end)


def loss(winner: int, *replicas: ReplicaAnswer) -> Loss:
    return loss_of(BrokerId(winner), replicas)


def received(found: Loss) -> tuple[int | None, int | None, bool]:
    return found.first_offset, found.end_offset, found.is_exact


def test_the_longest_log_of_the_newest_epoch_loses_nothing() -> None:
    assert received(loss(1, said(1, 5, 200), said(2, 5, 150), said(3, 4, 300))) == (200, 200, True)


def test_a_shorter_log_of_the_same_epoch_loses_exactly_the_rest_of_the_longest() -> None:
    found = loss(2, said(1, 5, 200), said(2, 5, 150), said(3, 5, 180))
    assert received(found) == (150, 200, True)
    assert found.records_max == 50
    assert [answer.broker for answer in found.held_by] == [1, 3]


def test_nobody_knows_where_a_newer_epoch_left_the_winners_log() -> None:
    found = loss(2, said(1, 6, 120), said(2, 5, 150))
    assert received(found) == (None, 120, False)
    assert found.records_max == 120


def test_a_replica_that_never_answered_may_hold_anything() -> None:
    found = loss(2, silent(1), said(2, 5, 150))
    assert received(found) == (None, None, False)
    assert found.records_max is None and found.silent == (1,)


def test_what_a_silent_replica_said_before_its_restart_is_an_upper_bound() -> None:
    found = loss(2, silent(1, 5, 190), said(2, 5, 150))
    assert received(found) == (150, 190, False)


def test_a_silent_replica_that_had_less_before_its_restart_has_less_now() -> None:
    assert received(loss(2, silent(1, 5, 140), said(2, 5, 150))) == (150, 150, True)


def test_of_a_winner_that_nobody_asked_everything_may_be_lost() -> None:
    assert received(loss(2, said(1, 5, 200), silent(2))) == (None, 200, False)
    assert received(loss(2, silent(1), silent(2))) == (None, None, False)
    assert received(loss(2, said(1, 5, 200), silent(2, 5, 300))) == (None, 200, False)


def test_a_single_replica_loses_nothing_by_being_elected() -> None:
    assert received(loss(1, silent(1))) == (None, 0, True)
    assert received(loss(1, said(1, 3, 7))) == (7, 7, True)


def test_empty_logs_lose_nothing() -> None:
    assert received(loss(1, said(1, -1, 0), said(2, -1, 0))) == (0, 0, True)


REPORT = LossReport(
    "orders",
    Uuid(bytes(range(16))),
    3,
    ElectionBasis(
        Basis.DESIGNATED,
        BrokerId(2),
        LeaderEpoch(7),
        end_offset=150,
        controller_epoch=12,
        timestamp_ms=1_700_000_000_000,
        replicas=(said(1, 5, 200), said(2, 5, 150), silent(3)),
    ),
)


def test_a_report_can_be_read_again_and_says_everything_that_its_election_said() -> None:
    again = read_report(REPORT.value)
    assert again == REPORT and again is not None
    assert (again.key, again.value) == (REPORT.key, REPORT.value)


def test_a_report_names_replicas_whose_machines_have_stopped() -> None:
    """All have lost the same, perhaps: then the answers show no difference."""
    answers = (said(1, 5, 200), said(2, 5, 200)._replace(may_lack_records=True), silent(3))
    report = LossReport("t", Uuid(bytes(16)), 0, REPORT.election._replace(replicas=answers))
    assert read_report(report.value) == report
    value = json.loads(report.value)
    assert value["may_lack_records"] == [2] and REPORT.may_lack_records == ()
    for replica in value["replicas"]:
        del replica["may_lack_records"]
    earlier = read_report(json.dumps(value).encode())
    assert earlier is not None and earlier.may_lack_records == ()


def test_a_report_is_json_that_a_program_understands_without_us() -> None:
    value = json.loads(REPORT.value)
    assert (value["topic"], value["partition"], value["basis"]) == ("orders", 3, "designated")
    assert (value["first_offset"], value["end_offset"], value["leader_end_offset"]) == (None, None, 150)
    assert (value["records_max"], value["exact"]) == (None, False)
    assert (value["held_by"], value["silent"], value["leader"], value["exact"]) == ([1], [3], 2, False)
    assert json.loads(REPORT.key) == {"topic_id": value["topic_id"], "partition": 3, "leader_epoch": 7}


@pytest.mark.parametrize("value", [None, b"", b"\xff", b"[]", b"{}", b'{"format":2}', b'{"format":1,"topic":"t"}'])
def test_other_records_are_no_reports(value: bytes | None) -> None:
    assert read_report(value) is None
