"""The metadata log as a history: rules that were broken, elections, windows, and states that break none."""

from __future__ import annotations

from typing import Any

from heirlog.metadata.basis import Basis
from heirlog.metadata.state import ELR_VERSION, METADATA_VERSION, RECOVERY_VERSION
from heirlog.protocol.records import (
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from heirlog.protocol.types import Uuid
from heirlog.spark.audit import verdict
from heirlog.spark.audit.history import MetadataHistory, StateChange
from heirlog.spark.audit.metadata_log import BatchOfMetadata

T = Uuid(b"t" * 16)


class Log:
    """Feeds a history, one batch a second."""

    def __init__(self, *, ours: bool = True) -> None:
        self.states: list[StateChange] = []
        self.history = MetadataHistory(self.states.append)
        self._offset = 0
        self._batches = 0
        levels = {METADATA_VERSION: 27, ELR_VERSION: 1} | ({RECOVERY_VERSION: 1} if ours else {})
        self.add(*(FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items()))
        self.add(ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="2"))
        for broker in (1, 2, 3):
            self.register(broker, b"a")
            self.fence(broker, False)
        partition = PartitionRecord(
            partition_id=0, topic_id=T, replicas=[1, 2, 3], isr=[1, 2, 3], leader=1, leader_epoch=0, partition_epoch=0
        )
        self.add(TopicRecord(name="t", topic_id=T), partition)

    def add(self, *records: Any) -> int:
        first = self._offset
        numbered = list(enumerate(records, first))
        self.history.batch(BatchOfMetadata(first, 1, 1000 * self._batches, numbered))
        self._offset += len(records)
        self._batches += 1
        return first

    def register(self, broker: int, incarnation: bytes, clean: int = -1) -> None:
        self._epoch = {**getattr(self, "_epoch", {}), broker: self._offset}
        self.add(
            RegisterBrokerRecord(
                broker_id=broker,
                broker_epoch=self._offset,
                incarnation_id=incarnation * 16,
                fenced=True,
                clean_stop_epoch=clean,
            )
        )

    def fence(self, broker: int, fenced: bool) -> None:
        epoch = self._epoch[broker]
        self.add(BrokerRegistrationChangeRecord(broker_id=broker, broker_epoch=epoch, fenced=1 if fenced else -1))

    def change(self, **fields: Any) -> int:
        return self.add(change(**fields))

    def kinds(self) -> list[tuple[str, int]]:
        return [(finding.kind, finding.offset) for finding in self.history.findings]


def change(**fields: Any) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=0, topic_id=T, **fields)


def test_a_life_that_follows_the_rules_has_no_findings() -> None:
    log = Log()
    log.change(isr=[1, 2])
    log.change(isr=[1], eligible_leader_replicas=[2])
    log.change(isr=[], leader=-1, eligible_leader_replicas=[1, 2])
    log.change(isr=[2], leader=2, eligible_leader_replicas=[1])
    log.change(isr=[2, 1], eligible_leader_replicas=[])
    log.change(leader=1)
    log.history.ended()
    assert log.kinds() == []
    assert [(e.leader, e.leader_epoch, e.basis) for e in log.history.elections] == [
        (2, 2, Basis.ELR),
        (1, 3, Basis.PREFERRED),
    ]
    windows = {(w.kind, w.to_ms - w.from_ms) for w in log.history.windows}
    assert windows == {("under-min-isr", 3000), ("no-leader", 1000)}
    assert [state.state.isr for state in log.states][-2:] == [(2, 1), (2, 1)]
    assert log.history.last_elected == {(T, 0): (1, 3)}


def test_who_enters_the_elr_was_in_the_isr_or_the_elr() -> None:
    log = Log()
    log.change(isr=[1, 2])
    at = log.change(isr=[1], eligible_leader_replicas=[2, 3])
    assert log.kinds() == [("elr-entry", at)]


def test_lists_that_contradict_each_other_break_t2_once() -> None:
    log = Log()
    at = log.change(isr=[1, 2], eligible_leader_replicas=[3])
    log.change(leader_recovery_state=0)
    assert log.kinds() == [("T2", at)]


def test_the_state_with_which_the_history_begins_is_judged_too() -> None:
    def begun(isr: list[int], elr: list[int]) -> list[tuple[str, int]]:
        history = MetadataHistory(lambda state: None)
        partition = PartitionRecord(
            partition_id=0, topic_id=T, replicas=[1, 2, 3], isr=isr, leader=1, eligible_leader_replicas=elr
        )
        level = FeatureLevelRecord(name=ELR_VERSION, feature_level=1)
        history.begin([level, TopicRecord(name="t", topic_id=T), partition], 40, 1, 1000)
        return [(finding.kind, finding.offset) for finding in history.findings]

    assert begun([1, 2], [1]) == [("T2", 40)]
    assert begun([1, 2], []) == []


def test_a_forgotten_member_breaks_t10_unless_the_cluster_has_no_recovery_manager() -> None:
    for ours in (True, False):
        log = Log(ours=ours)
        at = log.change(isr=[1], eligible_leader_replicas=[2])
        assert log.kinds() == ([("T10", at)] if ours else [])


def test_a_change_of_min_isr_that_moves_the_members_in_the_same_batch_breaks_nothing() -> None:
    log = Log()
    log.change(isr=[1], eligible_leader_replicas=[2, 3])
    config = ConfigRecord(resource_type=2, resource_name="t", name="min.insync.replicas", value="3")
    log.add(config, ClearElrRecord(topic_name="t"), change(last_known_elr=[2, 3]))
    assert log.kinds() == []
    assert log.states[-1].min_isr == 3


def test_a_broker_that_came_back_uncleanly_is_no_member_before_it_has_caught_up() -> None:
    log = Log()
    log.change(isr=[1, 2])
    log.change(isr=[1], eligible_leader_replicas=[2])
    log.fence(2, True)
    log.register(2, b"b", clean=-1)
    at = log.change(leader_recovery_state=0)
    assert log.kinds() == [("T11", at)]
    log.history.findings.clear()
    log.change(eligible_leader_replicas=[], last_known_elr=[2])
    log.fence(2, False)
    log.change(isr=[1, 2], last_known_elr=[])
    assert log.kinds() == []


def test_a_clean_return_keeps_the_seats() -> None:
    log = Log()
    log.change(isr=[1, 2])
    log.fence(3, True)
    log.register(3, b"b", clean=4)
    log.fence(3, False)
    log.change(isr=[1, 2, 3])
    assert log.kinds() == []


def test_an_unclean_election_without_a_record_has_no_report() -> None:
    log = Log(ours=False)
    log.change(isr=[1], eligible_leader_replicas=[2])
    log.change(isr=[3], leader=3, eligible_leader_replicas=[], leader_recovery_state=1)
    (election,) = log.history.elections
    assert (election.basis, election.report) == (Basis.UNCLEAN, None)
    (finding,) = verdict.unreported(log.history.elections, set())
    assert finding.kind == "loss-unreported"
    assert "was in neither ISR nor ELR" in finding.sentence


def test_a_loss_is_reported_or_a_finding() -> None:
    log = Log()
    answer = PartitionChangeRecord.ReplicaAnswer
    basis = PartitionChangeRecord.ElectionBasis(
        basis=Basis.RECOVERED.number,
        leader=2,
        leader_epoch=1,
        end_offset=10,
        replicas=[
            answer(broker_id=1, broker_epoch=1, last_written_leader_epoch=0, log_end_offset=15),
            answer(broker_id=2, broker_epoch=1, last_written_leader_epoch=0, log_end_offset=10),
            answer(broker_id=3, broker_epoch=1, last_written_leader_epoch=0, log_end_offset=10),
        ],
    )
    log.change(isr=[2], leader=2, election_basis=basis)
    (election,) = log.history.elections
    (finding,) = verdict.unreported([election], set())
    assert "gave up offsets from 10 to 14" in finding.sentence
    assert election.report is not None
    assert verdict.unreported([election], {election.report.key}) == []


def test_a_topic_that_is_removed_closes_its_windows() -> None:
    log = Log()
    log.change(isr=[], leader=-1, eligible_leader_replicas=[1, 2, 3])
    log.add(RemoveTopicRecord(topic_id=T))
    log.history.ended()
    assert {(window.kind, window.topic, window.to_ms - window.from_ms) for window in log.history.windows} == {
        ("under-min-isr", "t", 1000),
        ("no-leader", "t", 1000),
    }
