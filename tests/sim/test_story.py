"""The story of a run: what broke, and why each leader was chosen."""

from __future__ import annotations

from dataclasses import replace

from heirlog.metadata.basis import Basis, ElectionBasis, ReplicaAnswer
from heirlog.metadata.state import NO_LEADER, BrokerRegistration, PartitionRegistration
from heirlog.protocol.types import BrokerId, LeaderEpoch, PartitionEpoch, Uuid
from heirlog.sim.run import run_seed
from heirlog.sim.story import FAULT, METADATA, TRANSACTIONS, Story, broker_change, partition_change

A, B, C = BrokerId(1), BrokerId(2), BrokerId(3)
LED = PartitionRegistration((A, B, C), (A, B), A, LeaderEpoch(4), PartitionEpoch(9), elr=(C,))
BROKER = BrokerRegistration(A, 7, Uuid(bytes(16)))


def led_by(leader: BrokerId) -> PartitionRegistration:
    return LED._replace(leader=leader, leader_epoch=LeaderEpoch(5))


def test_a_leader_is_explained_by_where_it_was() -> None:
    isr = led_by(B)._replace(isr=(B,), elr=(A,))
    assert partition_change(LED, isr) == (
        "broker 2 leads in place of 1 in epoch 5 (it was in the ISR); ISR 1,2 -> 2; ELR 3 -> 1"
    )
    assert "broker 3 leads in place of 1 in epoch 5 (it was in the ELR)" in partition_change(LED, led_by(C))


def test_a_lossy_election_is_explained_by_the_answers() -> None:
    answers = (ReplicaAnswer(A), ReplicaAnswer(B, 12, 4, 80), ReplicaAnswer(C, 13, 3, 70))
    basis = ElectionBasis(Basis.RECOVERED, B, LeaderEpoch(5), 80, replicas=answers)
    nobody = LED._replace(leader=NO_LEADER, isr=(), elr=())
    after = nobody._replace(leader=B, leader_epoch=LeaderEpoch(5), isr=(B,), basis=basis)
    assert partition_change(nobody, after) == (
        "broker 2 leads in epoch 5 (recovered, which may lose records: 2 ends at 80 in epoch 4; 3 ends at 70 in epoch "
        "3); ISR - -> 2"
    )


def test_without_a_leader_the_story_says_who_is_waited_for() -> None:
    gone = LED._replace(leader=NO_LEADER, leader_epoch=LeaderEpoch(5), isr=(), elr=(A, B))
    assert partition_change(LED, gone) == (
        "no leader after broker 1: waits for broker 1,2 of the ELR; ISR 1,2 -> -; ELR 3 -> 1,2"
    )


def test_other_changes_of_a_partition_are_told_too() -> None:
    assert partition_change(None, LED) == "begins with replicas 1,2,3, leader 1, ISR 1,2"
    assert partition_change(LED, LED._replace(leader_epoch=LeaderEpoch(5))) == "broker 1 leads on in epoch 5"
    assert partition_change(LED, LED._replace(last_known_elr=(C,))) == "LastKnownELR - -> 3"
    assert partition_change(LED, LED._replace(partition_epoch=PartitionEpoch(10))) == "partition epoch 10"


def test_what_happens_to_a_broker() -> None:
    unfenced = replace(BROKER, fenced=False)
    assert broker_change(None, BROKER) == "registers with epoch 7"
    assert broker_change(BROKER, unfenced) == "is unfenced"
    assert broker_change(unfenced, BROKER) == "is fenced"
    assert broker_change(unfenced, replace(unfenced, in_controlled_shutdown=True)).startswith("stops cleanly")
    assert broker_change(unfenced, unfenced) == ""


def test_the_story_of_a_run_has_its_faults_and_its_elections_and_changes_nothing() -> None:
    stories: list[Story] = []
    told = run_seed(1, scenario="U1", watch=lambda simulation: stories.append(Story(simulation)))
    assert told.hash == run_seed(1, scenario="U1").hash
    (story,) = stories
    lines = list(story.until(None))
    assert [line.time_us for line in lines] == sorted(line.time_us for line in lines)
    assert sum(line.who == FAULT for line in lines) == len(told.faults)
    metadata = [line.what for line in lines if line.who == METADATA]
    assert any("leads in place of" in what and "(it was in the" in what for what in metadata)
    assert any("(recovered, which may lose records: " in what for what in metadata)
    early = list(story.until(1.0))
    assert 0 < len(early) < len(lines) and all(line.time_us <= 1_000_000 for line in early)


def test_the_story_of_a_run_with_transactions_has_their_outcomes() -> None:
    stories: list[Story] = []
    run_seed(1, scenario="zombie-copiers", watch=lambda simulation: stories.append(Story(simulation)))
    told = [line.what for line in stories[0].until(None) if line.who == TRANSACTIONS]
    for outcome in ("PrepareCommit", "CompleteCommit", "PrepareAbort", "CompleteAbort"):
        assert any(what.startswith("alone: " + outcome) for what in told)
    assert any(": PrepareCommit, producer " in what and what.endswith(" x-0 x-1") for what in told)
