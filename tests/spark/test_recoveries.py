"""A truncation is told with the election that it comes from. On a cluster: tests/processes/test_recovery.py."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from pyarrow import parquet

from heirlog.metadata.basis import Basis, ElectionBasis, ReplicaAnswer
from heirlog.metadata.loss_report import LossReport
from heirlog.protocol.types import BrokerEpoch, BrokerId, LeaderEpoch, Uuid
from heirlog.spark.loss import Cause, Loss, write_to_quarantine
from heirlog.spark.recoveries import recovery_of, sentence

LOSS = Loss("orders", 3, 988, 2000, 988, Cause.TRUNCATED.value)


def report(leader_epoch: int = 7, partition: int = 3, silent: bool = False) -> LossReport:
    answers = (
        ReplicaAnswer(BrokerId(1)) if silent else ReplicaAnswer(BrokerId(1), BrokerEpoch(11), 5, 2000),
        ReplicaAnswer(BrokerId(2), BrokerEpoch(12), 5, 988),
    )
    election = ElectionBasis(Basis.UNCLEAN, BrokerId(2), LeaderEpoch(leader_epoch), 988, 3, 1_700_000_000_000, answers)
    return LossReport("orders", Uuid(bytes(16)), partition, election)


def test_it_is_the_first_election_after_the_epoch_that_was_read() -> None:
    reports = [report(9), report(7), report(5), report(6, partition=2)]
    found = recovery_of(LOSS, 5, reports)
    assert found is not None and found.election.leader_epoch == 7
    assert recovery_of(LOSS, 9, reports) is None
    assert recovery_of(replace(LOSS, cause=Cause.RETENTION.value), 5, reports) is None


def test_the_sentence_says_who_when_on_what_basis_and_what() -> None:
    assert sentence(report()) == (
        "the election of broker 2 at 2023-11-14T22:13:20+00:00 (leader epoch 7, basis unclean) gave up offsets 988 to "
        "1999: heirlog recover report"
    )
    assert "gave up records behind offset 988, or before:" in sentence(report(silent=True))


def test_the_recovery_is_told_and_does_not_make_another_loss_of_it(tmp_path: Path) -> None:
    received = replace(LOSS, recovery=sentence(report()))
    assert received == LOSS and hash(received) == hash(LOSS)
    assert str(received).endswith("; " + received.recovery)
    assert Loss.from_json(json.loads(json.dumps(received.as_json()))).recovery == received.recovery
    assert "recovery" not in LOSS.as_json()
    for loss in (LOSS, received):
        write_to_quarantine(str(tmp_path), loss)
    assert parquet.read_table(tmp_path).num_rows == 1
