"""What `heirlog recover` and `heirlog elect` say. On a cluster: tests/processes/test_recovery.py."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Heirlog

from heirlog.cli import recovery_plan
from heirlog.cli.elections import ElectionType, recovery_of, state_sentence
from heirlog.cli.errors import CommandError
from heirlog.cli.recover import StrategyOption, report_rows
from heirlog.cli.recovery_plan import choice_row, loss_text, partition_as_json
from heirlog.cli.recovery_watch import Leaderless
from heirlog.client.recovery import Described, choices
from heirlog.metadata.basis import Basis, ElectionBasis, ReplicaAnswer
from heirlog.metadata.loss_report import Loss, LossReport
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import DescribeRecoveryResponse
from heirlog.protocol.types import BrokerEpoch, BrokerId, LeaderEpoch, Uuid

Replica = DescribeRecoveryResponse.ReplicaReport
Partition = DescribeRecoveryResponse.RecoveryPartition


def answered(broker: int, epoch: int, end: int, **more: Any) -> Replica:
    fields: dict[str, Any] = {
        "is_registered": True,
        "is_acceptable": True,
        "serves_recovery": True,
        "is_valid": True,
        "answer_age_ms": 300,
        "broker_epoch": 100 + broker,
        "current_leader_epoch": 8,
        "last_written_leader_epoch": epoch,
        "log_end_offset": end,
    }
    return Replica(broker_id=broker, **{**fields, **more})


def changed(message: Any, **fields: Any) -> Any:
    copy = deepcopy(message)
    for name, value in fields.items():
        setattr(copy, name, value)
    return copy


WAITING = Partition(
    partition_index=3,
    leader_epoch=8,
    min_isr=2,
    replica_nodes=[1, 2, 3],
    last_known_elr=[2, 1],
    state="WaitingForQuorum",
    strategy="Balanced",
    quorum=[2, 1],
    quorum_reason="LastKnownELR names 2 replicas, min.insync.replicas is 2",
    waits_for=[2],
    replicas=[
        answered(1, 5, 2000),
        Replica(broker_id=2, is_registered=True, is_fenced=True, error_message="disconnected"),
        answered(3, 5, 988),
    ],
)


def test_a_plan_says_who_holds_what_and_what_each_choice_costs(capsys: pytest.CaptureFixture[str]) -> None:
    recovery_plan.show_all([("orders", WAITING)], manager_enabled=True)
    received = [line.split() for line in capsys.readouterr().out.splitlines()]
    text = [" ".join(words) for words in received]
    assert text[0] == (
        "orders-3: no leader, leader epoch 8; strategy Balanced: waits for replicas that may have every committed "
        "record: broker 2"
    )
    assert text[1] == "quorum 2, 1: LastKnownELR names 2 replicas, min.insync.replicas is 2"
    assert "1 LastKnownELR can lead 5 2000 0.3 s ago" in text
    assert "2 LastKnownELR fenced none none disconnected" in text
    assert "3 - can lead 5 988 0.3 s ago" in text
    assert "balanced 1 unknown waits for 2" in text
    assert "designation 3 unknown not known: what 2 holds" in text


def test_a_plan_says_whose_logs_may_lack_records(capsys: pytest.CaptureFixture[str]) -> None:
    """Where no other replica has them, no count of lost records has them either."""
    recovery_plan.show_all([("orders", WAITING)], manager_enabled=True)
    assert "MayLackRecords" not in capsys.readouterr().out
    replicas = [changed(WAITING.replicas[0], may_lack_records=True), *WAITING.replicas[1:]]
    lacking = changed(WAITING, replicas=replicas)
    recovery_plan.show_all([("orders", lacking)], manager_enabled=True)
    text = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "1 LastKnownELR can lead 5 2000 0.3 s ago yes" in text
    assert "3 - can lead 5 988 0.3 s ago -" in text
    assert any(line.startswith("records may be missing from the end of the log of 1, ") for line in text)
    received = partition_as_json("orders", lacking, manager_enabled=True)
    assert [replica["may_lack_records"] for replica in received["replicas"]] == [True, None, False]


def test_many_plans_begin_with_the_brokers_to_start() -> None:
    other = Partition(state="WaitingForEligible", waits_for=[3, 2])
    operator = Partition(state="ManualElectionRequired")
    assert recovery_plan.summary([WAITING, other]) == "2 partitions have no leader; brokers for which they wait: 2, 3"
    assert recovery_plan.summary([operator, operator]) == "2 partitions have no leader"


def test_plans_that_say_the_same_are_shown_once_and_internal_topics_last(capsys: pytest.CaptureFixture[str]) -> None:
    failed = changed(
        WAITING.replicas[1],
        error_code=ErrorCode.NETWORK_EXCEPTION,
        error_message="disconnected: 127.0.0.1:19094: Connect call failed ('127.0.0.1', 19094)",
    )
    waiting = changed(WAITING, replicas=[failed, WAITING.replicas[0], WAITING.replicas[2]])
    later = changed(
        waiting,
        leader_epoch=9,
        runs_for_ms=2,
        replica_nodes=[2, 3, 1],
        replicas=[
            changed(one, answer_age_ms=one.answer_age_ms + 1, current_leader_epoch=9) if one.is_valid else one
            for one in waiting.replicas
        ],
    )
    other = changed(waiting, partition_index=4, replicas=[failed, answered(1, 5, 2001), answered(3, 5, 988)])
    internal = [("__consumer_offsets", changed(later, partition_index=index)) for index in (0, 1, 2, 7)]
    recovery_plan.show_all([*internal, ("orders", waiting), ("orders", other)], manager_enabled=True)
    shown = capsys.readouterr().out
    first, _, *rest = shown.splitlines()
    assert first == "6 partitions have no leader; brokers for which they wait: 2"
    plans = [line.partition(";")[0] for line in rest if "no leader" in line]
    assert plans == [
        "orders-3, __consumer_offsets-0 to 2, 7: no leader, leader epoch 8 to 9",
        "orders-4: no leader, leader epoch 8",
    ]
    assert "NETWORK_EXCEPTION disconnected: 127.0.0.1:19094: no process listens\n" in shown


def test_without_the_manager_only_what_can_be_asked_for_is_offered() -> None:
    received = partition_as_json("orders", WAITING, manager_enabled=False)
    assert [choice["choice"] for choice in received["choices"]] == ["unclean"]


def test_a_plan_for_programs_has_everything_and_null_where_nothing_is_known() -> None:
    received = json.loads(json.dumps(partition_as_json("orders", WAITING, manager_enabled=True)))
    assert (received["topic"], received["partition"], received["state"], received["waits_for"]) == (
        "orders",
        3,
        "WaitingForQuorum",
        [2],
    )
    assert [replica["end_offset"] for replica in received["replicas"]] == [2000, None, 988]
    assert received["wait_ends_in_ms"] is None and received["runs_for_ms"] is None
    assert {(choice["choice"], choice["leader"]) for choice in received["choices"]} == {
        ("balanced", 1),
        ("aggressive", 1),
        ("unclean", 1),
        ("designation", 1),
        ("designation", 3),
    }


def watched(partition: Partition, as_json: bool = False) -> list[dict[str, Any]]:
    """The rows of one look at it. No client: none had no leader before, so nothing else is asked."""
    topic = DescribeRecoveryResponse.RecoveryTopic(name="orders", partitions=[partition])
    client: Any = None
    return Leaderless(client, lambda: Described(True, [topic]), as_json).rows()


@pytest.mark.parametrize("as_json", [False, True])
def test_a_watched_plan_changes_with_what_happens_and_not_with_time(as_json: bool) -> None:
    later = deepcopy(WAITING)
    later.runs_for_ms, later.wait_ends_in_ms = 9000, 100
    for replica in later.replicas:
        replica.answer_age_ms = max(-1, replica.answer_age_ms * 3)
    returned = deepcopy(later)
    returned.replicas[1] = answered(2, 5, 2000)
    assert watched(WAITING, as_json) == watched(later, as_json) != watched(returned, as_json)


def test_a_watched_plan_says_what_an_election_now_would_lose() -> None:
    (row,) = watched(WAITING)
    assert (row["end_offsets"], row["would_lead"], row["loss"]) == (["1:2000", "3:988"], 1, "unknown")
    without = deepcopy(WAITING)
    for replica in without.replicas:
        replica.is_acceptable = False
    (row,) = watched(without)
    assert (row["would_lead"], row["loss"]) == ("-", "-")


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        (Loss(988, 2000, True, (), ()), "1012 (988 to 1999)"),
        (Loss(2000, 2000, True, (), ()), "0"),
        (Loss(988, 2000, False, (), ()), "at most 1012"),
        (Loss(None, 2000, False, (), ()), "at most 2000"),
        (Loss(None, None, False, (), ()), "unknown"),
    ],
)
def test_a_loss_is_a_number_a_limit_or_unknown(loss: Loss, text: str) -> None:
    assert loss_text(loss) == text


def test_a_wait_with_an_end_says_so() -> None:
    partition = Partition(state="Recovering", waits_for=[1, 2], wait_ends_in_ms=4200)
    assert state_sentence(partition) == "compares the logs of its replicas, waits for brokers 1, 2 for at most 4.2 s"


def test_election_types_have_their_numbers_on_the_wire() -> None:
    assert [kind.code for kind in ElectionType] == [0, 1, 2, 3, 4]
    assert [strategy.election_type.code for strategy in StrategyOption] == [2, 3, 1, 4]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["recover", "plan", "--partition", "0"], "--partition goes with one TOPIC"),
        (["recover", "run", "a", "b", "--partition", "0"], "--partition goes with one TOPIC"),
        (["recover", "run", "--strategy", "designation"], "--leader go together"),
        (["recover", "run", "--leader", "1"], "--leader go together"),
        (["elect", "--election-type", "designation", "--all-topic-partitions"], "names a leader for each partition"),
        (["elect", "--election-type", "designation", "--topic", "t", "--partition", "0"], "needs --desired-leader"),
        (
            ["elect", "--election-type", "unclean", "--topic", "t", "--partition", "0", "--desired-leader", "1"],
            "--desired-leader needs",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_before_anybody_is_asked(
    heirlog: Heirlog, arguments: list[str], sentence: str
) -> None:
    outcome = heirlog(*arguments)
    assert outcome.code == 2 and sentence in outcome.err


def test_a_designation_from_a_file_needs_its_leaders(heirlog: Heirlog, tmp_path: Path) -> None:
    file = tmp_path / "leaders.json"
    file.write_text('{"partitions": [{"topic": "t", "partition": 0}]}')
    outcome = heirlog("elect", "--election-type", "designation", "--path-to-json-file", file)
    assert outcome.code == 1 and "desiredLeader" in outcome.err


class NoController:
    """A client whose cluster has none."""

    def run(self, call: Any) -> Any:
        next(call)
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no controller is active: start those on c:9093, and ask again")


def test_without_a_controller_the_brokers_sentence_stands_alone() -> None:
    with pytest.raises(CommandError) as refused:
        recovery_of(NoController(), None)  # type: ignore[arg-type]
    assert str(refused.value) == "no controller is active: start those on c:9093, and ask again"


def loss_report(topic: str, partition: int, end_offset: int = 5) -> LossReport:
    answer = ReplicaAnswer(BrokerId(1), BrokerEpoch(7), 0, end_offset)
    election = ElectionBasis(Basis.RECOVERED, BrokerId(1), LeaderEpoch(3), end_offset, 1, 1_700_000_000_000, (answer,))
    return LossReport(topic, Uuid(topic.encode().ljust(16)), partition, election)


def test_partitions_of_which_a_report_says_the_same_share_a_row() -> None:
    found = [loss_report("internal", index) for index in (0, 1, 2, 5, 7, 8)]
    found += [loss_report("internal", 3, end_offset=6), loss_report("orders", 4)]
    rows = [(row["topic"], row["partition"], row["leader_end_offset"]) for row in report_rows(found)]
    assert rows == [("internal", "0-2, 5, 7-8", 5), ("internal", "3", 6), ("orders", "4", 5)]


def test_a_note_about_several_brokers_is_in_the_plural() -> None:
    replicas = [Replica(broker_id=1), Replica(broker_id=2), answered(3, 5, 988)]
    silent = Partition(replica_nodes=[1, 2, 3], replicas=replicas, leader_epoch=8)
    notes = [choice_row(choice)["note"] for choice in choices(silent) if choice.name == "designation"]
    assert notes == ["not known: what 1 and 2 hold"]
