"""What controllers promise by their answers, each promise seen to be broken."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from heirlog.metadata.image import Image
from heirlog.metadata.state import BrokerRegistration, PartitionRegistration
from heirlog.protocol.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    VoteRequest,
    VoteResponse,
)
from heirlog.protocol.types import BrokerEpoch, BrokerId, LeaderEpoch, PartitionEpoch, Uuid
from heirlog.raft.quorum_state import QuorumState
from heirlog.raft.replica_key import ReplicaKey
from heirlog.sim.answer_checker import AnswerChecker

TOPIC_ID = Uuid(bytes(range(16)))


@dataclass
class Voter:
    durable_state: QuorumState | None
    key: ReplicaKey = field(default_factory=lambda: ReplicaKey(2, Uuid(bytes([2]) * 16)))


@pytest.fixture
def found() -> list[str]:
    return []


@pytest.fixture
def image() -> Image:
    image = Image()
    image.offset = 40
    image.next_producer_id = 1000
    image.brokers[BrokerId(1)] = BrokerRegistration(BrokerId(1), BrokerEpoch(30), TOPIC_ID)
    ids = (BrokerId(1), BrokerId(2))
    state = PartitionRegistration(ids, ids, BrokerId(1), LeaderEpoch(4), PartitionEpoch(9))
    image.partitions[TOPIC_ID] = {0: state}
    return image


@pytest.fixture
def checker(image: Image, found: list[str]) -> AnswerChecker:
    return AnswerChecker(lambda: image, lambda rule, sentence: found.append(rule))


def vote(
    checker: AnswerChecker, candidate: int, on_disk: tuple[int, int], *, granted: bool = True, pre_vote: bool = False
) -> None:
    """In epoch 7. on_disk: epoch and vote."""
    asked = VoteRequest.PartitionData(replica_epoch=7, replica_id=candidate, pre_vote=pre_vote)
    answer = VoteResponse.PartitionData(leader_epoch=7, vote_granted=granted)
    request = VoteRequest(topics=[VoteRequest.TopicData(topic_name="m", partitions=[asked])])
    response = VoteResponse(topics=[VoteResponse.TopicData(topic_name="m", partitions=[answer])])
    checker.rules[type(request)]("b", Voter(QuorumState(-1, on_disk[0], on_disk[1])), request, response)


def test_a_vote_that_is_flushed_and_given_once_is_right(checker: AnswerChecker, found: list[str]) -> None:
    vote(checker, 1, (7, 1))
    vote(checker, 1, (7, 1))
    vote(checker, 3, (7, 1), granted=False)
    vote(checker, 3, (6, -1), pre_vote=True)
    assert found == []


def test_two_votes_in_an_epoch_are_found(checker: AnswerChecker, found: list[str]) -> None:
    vote(checker, 1, (7, 1))
    vote(checker, 3, (7, 3))
    assert found == ["Q2"]


@pytest.mark.parametrize("on_disk", [(7, -1), (6, 1)])
def test_a_vote_that_is_not_flushed_is_found(
    checker: AnswerChecker, found: list[str], on_disk: tuple[int, int]
) -> None:
    vote(checker, 1, on_disk)
    assert found == ["Q2"]


def promise(checker: AnswerChecker, request: Any, response: Any) -> None:
    checker.rules[type(request)]("a", Voter(None), request, response)
    checker.judge()


@pytest.mark.parametrize(("epoch", "rules"), [(30, []), (29, []), (31, ["Q10"]), (41, ["Q10"])])
def test_a_registration_is_committed(checker: AnswerChecker, found: list[str], epoch: int, rules: list[str]) -> None:
    promise(checker, BrokerRegistrationRequest(broker_id=1), BrokerRegistrationResponse(broker_epoch=epoch))
    assert found == rules


@pytest.mark.parametrize(("epoch", "error", "rules"), [(9, 0, []), (10, 0, ["Q10"]), (10, 1, [])])
def test_a_change_of_an_isr_is_committed(
    checker: AnswerChecker, found: list[str], epoch: int, error: int, rules: list[str]
) -> None:
    changed = AlterPartitionResponse.PartitionData(partition_epoch=epoch, error_code=error)
    topic = AlterPartitionResponse.TopicData(topic_id=TOPIC_ID, partitions=[changed])
    promise(checker, AlterPartitionRequest(), AlterPartitionResponse(topics=[topic]))
    assert found == rules


@pytest.mark.parametrize(("length", "rules"), [(1000, []), (1001, ["Q10"])])
def test_a_block_of_producer_ids_is_committed(
    checker: AnswerChecker, found: list[str], length: int, rules: list[str]
) -> None:
    answer = AllocateProducerIdsResponse(producer_id_start=0, producer_id_len=length)
    promise(checker, AllocateProducerIdsRequest(), answer)
    assert found == rules
