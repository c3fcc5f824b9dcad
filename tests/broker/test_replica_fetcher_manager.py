"""When the copies of many partitions start."""

from __future__ import annotations

import pytest

from heirlog.broker import replica_fetcher_manager as manager

from .fakes import Rig, state


@pytest.fixture(autouse=True)
def two_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager, "MANY_ELECTIONS", 2)


def elect(rig: Rig, *indexes: int, isr: tuple[int, ...] = (2,), leader: int = 2, leader_epoch: int = 5) -> None:
    """One change of the metadata makes the broker `leader` the leader of all these partitions."""
    for index in indexes:
        to = state([1, 2], isr=list(isr), leader=leader, leader_epoch=leader_epoch, partition_epoch=leader_epoch)
        rig.set_partition(to, index=index)
    rig.publish()


def copied(rig: Rig) -> list[int]:
    fetches = [sent.request for sent in rig.env.sent if sent.channel == "replica-fetch-0"]
    return sorted(each.partition for request in fetches for topic in request.topics for each in topic.partitions)


def test_followers_of_leaders_that_are_alone_wait_while_further_elections_follow() -> None:
    rig = Rig().started()
    elect(rig, 0, 1)
    rig.env.advance(manager.MORE_ELECTIONS_MS - 1)
    elect(rig, 2, 3)
    rig.env.advance(manager.MORE_ELECTIONS_MS - 1)
    assert copied(rig) == []
    rig.env.advance(1)
    assert copied(rig) == [0, 1, 2, 3]


def test_they_do_not_wait_for_ever() -> None:
    rig = Rig().started()
    for index in range(0, 20, 2):
        elect(rig, index, index + 1)
        rig.env.advance(manager.MORE_ELECTIONS_MAX_MS // 10)
    assert len(copied(rig)) == 20


def test_acks_all_never_waits_for_a_copy_that_has_not_started() -> None:
    rig = Rig().started()
    elect(rig, 0, 1, isr=(1, 2))
    assert copied(rig) == [0, 1]


def test_few_elections_are_followed_at_once() -> None:
    rig = Rig().started()
    elect(rig, 0)
    assert copied(rig) == [0]


def test_a_broker_that_starts_does_not_wait() -> None:
    rig = Rig()
    for index in range(3):
        rig.set_partition(state([1, 2], isr=[2], leader=2), index=index)
    rig.started()
    assert copied(rig) == [0, 1, 2]


def test_a_follower_that_became_the_leader_meanwhile_copies_nothing() -> None:
    rig = Rig().started()
    elect(rig, 0, 1)
    elect(rig, 1, isr=(1,), leader=1, leader_epoch=6)
    rig.env.advance(manager.MORE_ELECTIONS_MS)
    assert copied(rig) == [0]


def test_a_newer_election_among_many_waits_in_place_of_the_older_one() -> None:
    rig = Rig().started()
    elect(rig, 0, 1)
    elect(rig, 0, 1, leader_epoch=6)
    rig.env.advance(manager.MORE_ELECTIONS_MS)
    fetched = rig.env.take("replica-fetch-0").request.topics[0].partitions
    assert [partition.current_leader_epoch for partition in fetched] == [6, 6]
