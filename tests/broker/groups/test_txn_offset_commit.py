"""What a group checks of offsets that a producer commits in a transaction, once its coordinator has confirmed it."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.broker.groups import offset_requests
from heirlog.broker.groups.txn_offset_requests import txn_offset_commit
from heirlog.broker.transactions.add_partitions_manager import TransactionPartitions
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import OffsetDeleteRequest, OffsetFetchRequest, TxnOffsetCommitRequest
from heirlog.protocol.transaction_marker import TransactionMarker

from ..fakes import Rig, answer_of, context
from .consumer.coordinating import Consumer
from .consumer.coordinating import Coordinating as ConsumerProtocol
from .coordinating import Coordinating, codes

VERSIONS = range(3, 6)
"""That name a member."""


def commit(rig: Rig, offset: int = 1, *, index: int = 0, version: int = 5, epoch: int = 0, **member: Any) -> str:
    """The error of a commit of producer 7, whose coordinator says that the partition takes part."""
    nested = TxnOffsetCommitRequest
    part = nested.TxnOffsetCommitRequestPartition(
        partition_index=index, committed_offset=offset, committed_leader_epoch=2, committed_metadata="said"
    )
    request = nested(
        transactional_id="x",
        group_id="g",
        producer_id=7,
        producer_epoch=epoch,
        topics=[nested.TxnOffsetCommitRequestTopic(name="foo", partitions=[part])],
        **member,
    )

    def confirm(asked: TransactionPartitions) -> None:
        asked.answer(dict.fromkeys(asked.partitions, ErrorCode.NONE))

    answer = txn_offset_commit(rig.broker.groups, rig.env, request, context(version), ask=confirm, is_verified=True)
    (code,) = codes(answer)
    return code


def end(rig: Rig, *, commit: bool, epoch: int = 0) -> None:
    answered: list[ErrorCode] = []
    writer = rig.broker.groups.shards()[0].writer
    writer.end_transaction(TransactionMarker(commit, 0), (7, epoch), 0, answered.append)
    assert answered == [ErrorCode.NONE]


def fetched(rig: Rig, *, stable: bool = False) -> dict[int, Any]:
    """Of all partitions of the group that have an offset: offset, leader epoch and metadata, or the error's name."""
    asked = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
    request = OffsetFetchRequest(groups=[asked], require_stable=stable)
    (group,) = answer_of(offset_requests.fetch(rig.broker.groups, request, context(9))).groups
    return {
        part.partition_index: ErrorCode(part.error_code).name
        if part.error_code
        else (part.committed_offset, part.committed_leader_epoch, part.metadata)
        for topic in group.topics
        for part in topic.partitions
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_a_member_of_a_classic_group_commits_in_its_generation_only(version: int) -> None:
    rig = Coordinating()
    member_id, generation = rig.member()
    mine = {"member_id": member_id, "version": version}
    assert commit(rig, generation_id=generation, **mine) == "NONE"
    assert commit(rig, generation_id=generation - 1, **mine) == "ILLEGAL_GENERATION"
    assert commit(rig, generation_id=generation + 1, **mine) == "ILLEGAL_GENERATION"
    assert commit(rig, generation_id=generation, member_id="stranger", version=version) == "UNKNOWN_MEMBER_ID"
    assert commit(rig, version=version) == "NONE", "who names no member is fenced by the transactional id alone"


def test_a_static_member_is_fenced_by_its_successor() -> None:
    rig = Coordinating()
    first = answer_of(rig.join(group_instance_id="i", version=5))
    second = answer_of(rig.join(group_instance_id="i", version=5))
    assert first.member_id != second.member_id
    of_instance = {"group_instance_id": "i", "generation_id": second.generation_id}
    assert commit(rig, member_id=first.member_id, **of_instance) == "FENCED_INSTANCE_ID"
    assert commit(rig, member_id=second.member_id, **of_instance) == "NONE"


def test_a_member_commits_while_its_group_rebalances() -> None:
    """Its transaction began before; a plain commit is refused then."""
    rig = Coordinating()
    member_id, generation = rig.member()
    rig.join()
    assert rig.heartbeat((member_id, generation)) == "REBALANCE_IN_PROGRESS"
    assert commit(rig, generation_id=generation, member_id=member_id) == "NONE"


def test_a_generation_needs_a_group() -> None:
    rig = Coordinating()
    assert commit(rig, generation_id=10, member_id="member") == "ILLEGAL_GENERATION"
    assert rig.described().group_state == "Dead"
    assert commit(rig) == "NONE"
    end(rig, commit=True)
    assert rig.described().group_state == "Empty"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_member_of_the_consumer_protocol_commits_in_its_epoch_only(version: int) -> None:
    rig = ConsumerProtocol()
    member = Consumer(rig, "a")
    member.join()
    mine = {"member_id": "a", "version": version}
    assert commit(rig, generation_id=member.epoch, **mine) == "NONE"
    assert commit(rig, generation_id=member.epoch - 1, **mine) == "ILLEGAL_GENERATION"
    assert commit(rig, generation_id=member.epoch + 1, **mine) == "ILLEGAL_GENERATION"
    assert commit(rig, generation_id=member.epoch, member_id="stranger", version=version) == "UNKNOWN_MEMBER_ID"
    assert commit(rig, version=version) == "NONE"


def test_all_offsets_of_a_group_are_those_that_are_committed_and_unstable_ones_are_named() -> None:
    rig = Coordinating()
    rig.commit(100)
    rig.commit(110, index=1)
    rig.env.advance(1)
    before = {0: (100, -1, ""), 1: (110, -1, "")}
    assert fetched(rig) == fetched(rig, stable=True) == before
    assert commit(rig, 111, index=1) == "NONE"
    assert fetched(rig) == before
    assert fetched(rig, stable=True) == {0: (100, -1, ""), 1: "UNSTABLE_OFFSET_COMMIT"}
    end(rig, commit=True)
    assert fetched(rig) == fetched(rig, stable=True) == {0: (100, -1, ""), 1: (111, 2, "said")}


def test_an_offset_that_only_a_transaction_has_is_not_listed_before_its_end() -> None:
    rig = Coordinating()
    rig.commit(100)
    rig.env.advance(1)
    assert commit(rig, 5, index=1) == "NONE"
    assert list(fetched(rig, stable=True)) == [0]
    end(rig, commit=False)
    assert list(fetched(rig, stable=True)) == [0]


def test_two_producers_make_a_partition_unstable_until_both_have_ended() -> None:
    rig = Coordinating()
    rig.commit(100)
    rig.env.advance(1)
    other: list[ErrorCode] = []
    assert commit(rig, 5) == "NONE"
    writer = rig.broker.groups.shards()[0].writer
    writer.end_transaction(TransactionMarker(commit=True, coordinator_epoch=0), (8, 0), 0, other.append)
    assert fetched(rig, stable=True) == {0: "UNSTABLE_OFFSET_COMMIT"}, "the marker is of another producer"
    end(rig, commit=False)
    assert fetched(rig, stable=True) == {0: (100, -1, "")}


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_deleted_offset_is_deleted_from_open_transactions_too(is_committed: bool) -> None:
    rig = Coordinating()
    rig.commit(100)
    rig.env.advance(1)
    assert commit(rig, 105) == "NONE"
    nested = OffsetDeleteRequest
    topic = nested.OffsetDeleteRequestTopic(
        name="foo", partitions=[nested.OffsetDeleteRequestPartition(partition_index=0)]
    )
    deleted = answer_of(offset_requests.delete(rig.broker.groups, nested(group_id="g", topics=[topic])))
    assert deleted.error_code == deleted.topics[0].partitions[0].error_code == 0
    assert fetched(rig, stable=True) == {}
    end(rig, commit=is_committed)
    assert fetched(rig, stable=True) == {}


def test_a_fenced_producer_commits_no_offsets() -> None:
    rig = Coordinating()
    assert commit(rig, 5) == "NONE"
    end(rig, commit=False, epoch=1)
    assert commit(rig, 6) == "INVALID_PRODUCER_EPOCH"
    assert commit(rig, 6, epoch=1) == "NONE"
