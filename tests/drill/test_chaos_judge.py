"""What the chaos drill makes of records that clients saw and of committed metadata."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from drill.metadata_logs import TOPIC_ID, committed, created, elr_on

from heirlog.drill.chaos_judge import AUDITOR, Judgement, judge
from heirlog.drill.chaos_record import KEPT, RECREATED, UNKNOWN_OFFSET, Answered, ClientRecord, RecordRead
from heirlog.metadata.basis import Basis
from heirlog.protocol.records import PartitionChangeRecord, RegisterBrokerRecord, RemoveTopicRecord
from heirlog.protocol.types import Uuid
from heirlog.sim.group_history import Commit, GroupHistory
from heirlog.sim.group_history import Read as CommitRead

AGAIN_ID, LAST_ID = Uuid(b"again" + bytes(11)), Uuid(b"last" + bytes(12))
MADE_MS = 1_000


class Story:
    """One partition of KEPT on brokers 1 and 2, and clients whose records have the numbers of their offsets."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.metadata: list[tuple[int, list[Any]]] = [(0, elr_on()), (MADE_MS, created(KEPT, TOPIC_ID, [1, 2]))]
        self.record = ClientRecord()
        self.audit: list[RecordRead] = []
        self.groups: list[GroupHistory] = []

    def acknowledged(
        self, *offsets: int, at_ms: int = 2_000, topic: str = KEPT, values: dict[int, int] | None = None
    ) -> None:
        for offset in offsets:
            sent, value = self.record.tick(), (values or {}).get(offset, offset)
            self.record.answered.append(
                Answered(topic, 0, offset, value, "writer", sent, self.record.tick(), at_ms, at_ms + 1, True)
            )

    def read(self, *offsets: int, epoch: int = 0, client: str = "reader", topic: str = KEPT, add: int = 0) -> None:
        into = self.audit if client == AUDITOR else self.record.read
        into += [RecordRead(client, topic, 0, offset, offset + add, epoch, self.record.tick()) for offset in offsets]

    def judged(self) -> Judgement:
        return judge(self.record, self.audit, committed(self._folder, self.metadata), self.groups)

    def checks(self) -> set[str]:
        return {finding.check for finding in self.judged().findings}


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path / "metadata")


def elected(leader: int, basis: Basis | None, epoch: int = 1) -> list[Any]:
    """None: as a member of the ISR."""
    change = PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, leader=leader, isr=[leader])
    if basis is not None:
        change.election_basis = change.ElectionBasis(basis=basis.number, leader=leader, leader_epoch=epoch)
    return [change]


def test_a_run_without_losses_has_no_findings(story: Story) -> None:
    story.acknowledged(0, 1, 2)
    story.read(0, 1, 2)
    story.read(0, 1, 2, client="aiokafka", epoch=-1)
    story.read(0, 1, 2, client=AUDITOR)
    judgement = story.judged()
    assert judgement.findings == [] and (judgement.readable, judgement.excused, judgement.unjudged) == (3, 0, 0)


def test_an_acknowledged_record_that_is_gone_is_found_although_an_isr_member_was_elected(story: Story) -> None:
    """As without the ELR: the last member of the ISR lost power and leads again, and nothing says that it lost any."""
    story.acknowledged(0, 1, 2)
    story.read(0, 1, 2)
    story.metadata.append((3_000, elected(2, None)))
    story.read(0, client=AUDITOR)
    story.read(1, client=AUDITOR, epoch=1, add=100)
    assert {"unseen", "inconsistent-offsets"} <= story.checks()


def test_a_lossy_election_on_record_excuses_what_was_sent_before_it(story: Story) -> None:
    story.acknowledged(0, 1, 2)
    story.read(0, 1, 2)
    story.metadata.append((3_000, elected(2, Basis.UNCLEAN)))
    story.read(0, client=AUDITOR)
    story.read(1, client=AUDITOR, epoch=1, add=100)
    judgement = story.judged()
    assert judgement.findings == []
    assert (judgement.readable, judgement.excused, judgement.lossy_elections) == (1, 2, {"unclean": 1})
    (loss,) = judgement.losses
    assert (loss.start_offset, loss.leader_epoch, loss.winner) == (1, 1, ((0, 0), (1, 1)))


def test_a_second_lossy_election_may_bring_back_what_the_first_one_gave_up(story: Story) -> None:
    """Broker 1 was away while broker 2 led without its records, and then leads without those of broker 2."""
    story.acknowledged(0, 1, 2, 3)
    story.read(0, 1, 2, 3)
    story.metadata.append((3_000, elected(2, Basis.UNCLEAN)))
    story.acknowledged(1, 2, at_ms=4_000, values={1: 101, 2: 102})
    story.read(1, 2, epoch=1, add=100)
    story.metadata.append((5_000, elected(1, Basis.UNCLEAN, 2)))
    story.acknowledged(4, at_ms=6_000)
    story.read(0, 1, 2, 3, client=AUDITOR)
    story.read(4, client=AUDITOR, epoch=2)
    judgement = story.judged()
    assert judgement.findings == []
    assert [loss.start_offset for loss in judgement.losses] == [1, 1]
    assert (judgement.readable, judgement.excused) == (5, 2)


def test_a_second_lossy_election_does_not_excuse_what_was_there_before_the_first_one(story: Story) -> None:
    story.acknowledged(0, 1, 2, 3)
    story.read(0, 1, 2, 3)
    story.metadata += [(3_000, elected(2, Basis.UNCLEAN)), (5_000, elected(1, Basis.UNCLEAN, 2))]
    story.read(2, epoch=1, add=100)
    story.read(0, client=AUDITOR)
    story.read(1, client=AUDITOR, add=100)
    story.read(2, 3, client=AUDITOR)
    story.read(4, client=AUDITOR, epoch=2)
    assert {"inconsistent-offsets", "unseen"} <= story.checks()


def sent_back(story: Story, elections: list[tuple[int, list[Any]]]) -> None:
    """The reader is sent back from 4 to 2, and reads 2 to 4 again as they were; nothing is lost."""
    story.acknowledged(0, 1, 2, 3, 4)
    story.read(0, 1, 2, 3, 4)
    story.metadata += elections
    story.acknowledged(5, at_ms=6_000)
    story.read(2, 3, 4)
    story.read(5, epoch=2)
    story.acknowledged(6, at_ms=7_000)
    for offset, epoch in ((0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 2), (6, 2)):
        story.read(offset, client=AUDITOR, epoch=epoch)


def test_a_leader_with_a_shorter_log_sends_readers_back_although_no_record_is_left_of_it(story: Story) -> None:
    """Broker 2 had lost its tail, and nothing was written while it led. Then broker 1 leads again, with everything."""
    sent_back(story, [(3_000, elected(2, Basis.UNCLEAN)), (5_000, elected(1, Basis.UNCLEAN, 2))])
    assert story.judged().findings == []


@pytest.mark.parametrize(
    "elections",
    [
        [],
        [(3_000, elected(2, None)), (5_000, elected(1, None))],
        # the only one on a lossy basis: its winner wrote what is at 5
        [(3_000, elected(2, None)), (5_000, elected(1, Basis.UNCLEAN, 2))],
        # both long before, and long after
        [(1_500, elected(2, Basis.UNCLEAN)), (1_600, elected(1, Basis.UNCLEAN, 2))],
        [(9_000, elected(2, Basis.UNCLEAN)), (9_500, elected(1, Basis.UNCLEAN, 2))],
    ],
)
def test_nothing_else_excuses_a_reader_that_goes_back(story: Story, elections: list[tuple[int, list[Any]]]) -> None:
    sent_back(story, elections)
    assert story.checks() == {"nonmonotonic-poll"}


@pytest.mark.parametrize(("fenced", "checks"), [(False, {"discarded-record"}), (True, set())])
def test_a_recovery_must_not_give_up_what_a_replica_that_could_be_elected_had(
    story: Story, fenced: bool, checks: set[str]
) -> None:
    registered = [
        RegisterBrokerRecord(
            broker_id=broker, incarnation_id=bytes(15) + bytes([broker]), fenced=fenced and broker == 1
        )
        for broker in (1, 2)
    ]
    (change,) = elected(2, Basis.RECOVERED)
    answer = change.ReplicaAnswer
    change.election_basis.replicas = [
        answer(broker_id=1, broker_epoch=5, last_written_leader_epoch=0, log_end_offset=3),
        answer(broker_id=2, broker_epoch=6, last_written_leader_epoch=0, log_end_offset=1),
    ]
    story.metadata += [(2_500, registered), (3_000, [change])]
    story.acknowledged(0, 1, 2)
    story.read(0, 1, 2)
    story.read(0, client=AUDITOR)
    story.read(1, client=AUDITOR, epoch=1, add=100)
    assert story.checks() == checks


def test_a_lossy_election_does_not_excuse_what_was_sent_after_it(story: Story) -> None:
    story.metadata.append((3_000, elected(2, Basis.UNCLEAN)))
    story.acknowledged(0, at_ms=2_000)
    story.acknowledged(1, 2, at_ms=4_000)
    story.read(0, client=AUDITOR)
    story.read(1, client=AUDITOR, epoch=1)
    assert story.checks() == {"unseen"}


def test_a_record_that_was_acknowledged_without_an_offset_must_be_somewhere(story: Story) -> None:
    story.acknowledged(UNKNOWN_OFFSET, values={UNKNOWN_OFFSET: 7})
    story.read(0, client=AUDITOR)
    assert story.checks() == {"unseen"}


def test_what_a_reader_without_epochs_read_around_a_loss_is_counted_and_not_judged(story: Story) -> None:
    story.metadata.append((3_000, elected(2, Basis.UNCLEAN)))
    story.read(0, 1, client="aiokafka", epoch=-1)
    story.read(1, client="aiokafka", epoch=-1, add=100)
    story.read(0, client=AUDITOR)
    story.read(1, client=AUDITOR, epoch=1, add=100)
    judgement = story.judged()
    assert judgement.findings == [] and judgement.unjudged == 2


def test_what_a_reader_without_epochs_read_before_a_loss_is_judged(story: Story) -> None:
    story.metadata.append((3_000, elected(2, Basis.UNCLEAN)))
    story.read(0, 2, client="aiokafka", epoch=-1)
    story.read(0, 1, 2, client=AUDITOR)
    story.read(3, client=AUDITOR, epoch=1)
    assert story.checks() == {"ext-poll-skip"}


def test_a_reader_that_steps_over_records_is_found(story: Story) -> None:
    story.read(0, 2)
    story.read(0, 1, 2, client=AUDITOR)
    assert story.checks() == {"ext-poll-skip"}


def test_a_reader_may_enter_an_earlier_lineage_anywhere_but_not_the_last_one(story: Story) -> None:
    story.metadata += [(3_000, elected(2, Basis.UNCLEAN)), (5_000, elected(1, Basis.UNCLEAN, 2))]
    story.read(0, 1, epoch=0)
    story.read(5, epoch=1)
    story.read(0, client=AUDITOR)
    story.read(1, 2, 3, client=AUDITOR, epoch=2, add=100)
    assert story.checks() == set()
    story.read(3, epoch=2, add=100)
    assert story.checks() == {"ext-poll-skip"}


def test_a_record_of_a_deleted_topic_must_not_be_in_the_next_one_of_its_name(story: Story) -> None:
    story.metadata += [
        (2_000, created(RECREATED, AGAIN_ID, [1, 2])),
        (9_000, [RemoveTopicRecord(topic_id=AGAIN_ID)]),
        (9_100, created(RECREATED, LAST_ID, [1, 2])),
    ]
    story.acknowledged(0, at_ms=3_000, topic=RECREATED, values={0: 500})
    assert story.checks() == set(), "what was deleted need not be found"
    story.read(0, client=AUDITOR, topic=RECREATED, add=500)
    assert story.checks() == {"stray"}


def test_records_of_a_new_topic_are_judged_once_no_broker_can_take_it_for_the_old_one(story: Story) -> None:
    story.metadata += [
        (2_000, created(RECREATED, AGAIN_ID, [1, 2])),
        (3_000, [RemoveTopicRecord(topic_id=AGAIN_ID)]),
        (3_100, created(RECREATED, LAST_ID, [1, 2])),
    ]
    story.acknowledged(0, at_ms=4_000, topic=RECREATED, values={0: 500})
    judgement = story.judged()
    assert judgement.findings == [] and judgement.unjudged == 1
    story.acknowledged(1, at_ms=60_000, topic=RECREATED, values={1: 501})
    assert story.checks() == {"unseen"}


def test_bytes_that_nobody_wrote_and_lost_commits_are_findings(story: Story) -> None:
    story.record.changed.append("reader read bytes that nobody wrote")
    group = GroupHistory("g")
    group.commits["a"] = Commit(0, 5, sent=1, sent_ms=2_000, answered=2)
    group.reads.append(CommitRead(0, None, -1001, sent=3, confirmed=True))
    story.groups.append(group)
    assert story.checks() == {"changed-value", "lost-commit"}
