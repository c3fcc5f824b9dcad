"""What the judge of the chaos drill says of transactions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from drill.metadata_logs import TOPIC_ID, committed, created, elr_on

from heirlog.drill.chaos_judge import AUDITOR, COMMITTED_READER, judge
from heirlog.drill.chaos_record import COPIED, KEPT, Answered, ClientRecord, RecordRead
from heirlog.drill.chaos_transactions import LeftOver
from heirlog.metadata.basis import Basis
from heirlog.metadata.topic_name import TRANSACTIONS_TOPIC
from heirlog.protocol.records import PartitionChangeRecord
from heirlog.protocol.types import Uuid
from heirlog.sim.history import InitializedProducer, TransactionAttempt

COPIED_ID, STATE_ID = Uuid(b"copied" + bytes(10)), Uuid(b"state" + bytes(11))
FIRST_COPY = 100


class Copying:
    """Three records of KEPT-0 were written, and one transaction copied them to COPIED-0. Tests change the story."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.metadata: list[tuple[int, list[Any]]] = [
            (0, elr_on()),
            (1_000, created(KEPT, TOPIC_ID, [1, 2])),
            (1_000, created(COPIED, COPIED_ID, [1, 2])),
            (1_000, created(TRANSACTIONS_TOPIC, STATE_ID, [1, 2])),
        ]
        self.record = ClientRecord()
        self.audit: list[RecordRead] = []
        self.left = LeftOver(committed={0: 3})
        for offset in range(3):
            tick = self.record.tick()
            self.record.answered.append(
                Answered(KEPT, 0, offset, offset, "writer", tick, self.record.tick(), 2_000, 2_001, True)
            )
            self.read(AUDITOR, KEPT, offset, offset)
        self.attempt = self.attempted(*range(3))
        self.attempt.committed = True
        for offset in range(3):
            self.read(AUDITOR, COPIED, offset, FIRST_COPY + offset)

    def attempted(self, *inputs: int, first: int = FIRST_COPY) -> TransactionAttempt:
        """A transaction that copied these offsets of KEPT, each acknowledged, whose commit was asked for."""
        attempt = TransactionAttempt("copier", "copier", -1, -1, 3_000)
        for number, offset in enumerate(inputs):
            attempt.values[first + number] = f"{COPIED}-0"
            attempt.inputs[first + number] = (0, offset)
            attempt.acknowledged[first + number] = self.record.tick()
        attempt.commit_sent = self.record.tick()
        self.record.transactions.append(attempt)
        return attempt

    def read(self, client: str, topic: str, offset: int, value: int) -> None:
        into = self.audit if client == AUDITOR else self.record.read
        into.append(RecordRead(client, topic, 0, offset, value, 0, self.record.tick()))

    def unread(self, offset: int) -> None:
        """The auditor did not find the copy at this offset."""
        self.audit = [one for one in self.audit if (one.topic, one.offset) != (COPIED, offset)]

    def elected_unclean(self, topic_id: Uuid) -> None:
        change = PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=2, isr=[2])
        change.election_basis = change.ElectionBasis(basis=Basis.UNCLEAN.number, leader=2, leader_epoch=1)
        self.metadata.append((4_000, [change]))

    def checks(self) -> list[str]:
        judged = judge(self.record, self.audit, committed(self._folder, self.metadata), [], self.left)
        return sorted(finding.check for finding in judged.findings)


@pytest.fixture
def story(tmp_path: Path) -> Copying:
    return Copying(tmp_path / "metadata")


def test_a_topic_that_is_copied_once_has_no_findings(story: Copying) -> None:
    assert story.checks() == []


def test_a_committed_record_that_is_gone_is_lost_torn_and_not_copied(story: Copying) -> None:
    story.unread(1)
    assert story.checks() == ["copied-once", "lost-transaction", "torn-transaction"]


def test_a_lost_decision_on_record_excuses_it(story: Copying) -> None:
    story.unread(1)
    story.elected_unclean(STATE_ID)
    assert story.checks() == []


def test_an_input_that_a_second_transaction_copies_again_is_found(story: Copying) -> None:
    story.attempted(2, first=200).committed = True
    story.read(AUDITOR, COPIED, 5, 200)
    assert story.checks() == ["copied-once"]


@pytest.mark.parametrize("client", [AUDITOR, COMMITTED_READER])
def test_a_record_of_an_aborted_transaction_must_not_be_read(story: Copying, client: str) -> None:
    aborted = story.attempted(first=200)
    aborted.values[200] = f"{COPIED}-0"
    aborted.committed = False
    story.read(client, COPIED, 5, 200)
    assert story.checks() == ["aborted-read"]


def test_what_a_replaced_producer_still_commits_is_found(story: Copying) -> None:
    for epoch in (0, 1):
        sent = story.record.tick()
        story.record.initialized.append(
            InitializedProducer("fenced", f"fenced-{epoch}", 7, epoch, sent, story.record.tick())
        )
    zombie = TransactionAttempt("fenced", "fenced-0", 7, 0, 3_000, commit_sent=story.record.tick(), committed=True)
    story.record.transactions.append(zombie)
    assert story.checks() == ["zombie"]


def test_copiers_that_stop_before_the_end_are_found(story: Copying) -> None:
    story.left.committed[0] = 2
    assert story.checks() == ["copied-once", "copier-stuck"]


def test_a_transaction_that_stays_open_is_found_unless_an_election_lost_its_end(story: Copying) -> None:
    story.left.open = {0}
    assert story.checks() == ["open-transaction"]
    story.elected_unclean(STATE_ID)
    assert story.checks() == []
