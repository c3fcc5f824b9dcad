"""TxnOffsetCommit through a node: offsets that count with their transaction, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from apis.guarded import ADMIN, G_DENIED, GROUP, T_DENIED, TOPIC, X_DENIED, Guarded

from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    AddOffsetsToTxnRequest,
    DescribeGroupsRequest,
    EndTxnRequest,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
)

UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT


def committing(producer: tuple[int, int], offset: int, *topics: str, **more: Any) -> TxnOffsetCommitRequest:
    nested = TxnOffsetCommitRequest
    return nested(
        transactional_id="x",
        group_id="g",
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=[
            nested.TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=[nested.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)],
            )
            for topic in topics or ("t",)
        ],
        **more,
    )


EXAMPLE = committing((0, 0), 1), None


def codes(answer: Any) -> dict[str, int]:
    return {topic.name: topic.partitions[0].error_code for topic in answer.topics}


def began(node: Guarded) -> tuple[int, int]:
    """A transaction with partition 0 of t and the partition of the group."""
    producer = node.begin_transaction("x", "t")
    add = AddOffsetsToTxnRequest(
        transactional_id="x", group_id="g", producer_id=producer[0], producer_epoch=producer[1]
    )
    assert node.ask_again(add, principal=ADMIN).error_code == ErrorCode.NONE
    return producer


def end(node: Guarded, producer: tuple[int, int], *, commit: bool) -> None:
    request = EndTxnRequest(transactional_id="x", producer_id=producer[0], producer_epoch=producer[1], committed=commit)
    assert node.ask(request, 4, ADMIN).error_code == ErrorCode.NONE


def committed(node: Guarded, *, stable: bool = True) -> Any:
    """The committed offset of t, or the error."""
    wanted = OffsetFetchRequest.OffsetFetchRequestGroup(
        group_id="g", topics=[OffsetFetchRequest.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    )
    (found,) = node.ask(OffsetFetchRequest(groups=[wanted], require_stable=stable), 9, ADMIN).groups
    place = found.topics[0].partitions[0]
    return ErrorCode(place.error_code) if place.error_code else place.committed_offset


def wait_until_stable(node: Guarded) -> Any:
    node.wait(lambda: committed(node) is not UNSTABLE)
    return committed(node)


@pytest.mark.parametrize("version", range(6))
def test_offsets_count_once_their_transaction_is_committed(node: Guarded, version: int) -> None:
    producer = began(node)
    before = committed(node, stable=False)
    assert codes(node.ask(committing(producer, 5 + version), version, ADMIN)) == {"t": ErrorCode.NONE}
    assert (committed(node), committed(node, stable=False)) == (UNSTABLE, before)
    end(node, producer, commit=True)
    assert wait_until_stable(node) == 5 + version
    producer = began(node)
    assert codes(node.ask(committing(producer, 99), version, ADMIN)) == {"t": ErrorCode.NONE}
    end(node, producer, commit=False)
    assert wait_until_stable(node) == 5 + version


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_new_group_exists_once_its_transaction_is_committed(node: Guarded, is_committed: bool) -> None:
    group = f"new-{is_committed}"
    add = AddOffsetsToTxnRequest(transactional_id="x", group_id=group)
    add.producer_id, add.producer_epoch = producer = node.begin_transaction("x", "t")
    assert node.ask_again(add, principal=ADMIN).error_code == ErrorCode.NONE
    asked = committing(producer, 7)
    asked.group_id = group
    assert codes(node.ask(asked, 5, ADMIN)) == {"t": ErrorCode.NONE}

    def state() -> str:
        (found,) = node.ask(DescribeGroupsRequest(groups=[group]), 5, ADMIN).groups
        return str(found.group_state)

    assert state() == "Dead"
    end(node, producer, commit=is_committed)
    # the next transaction begins once this one has all its markers
    node.begin_transaction("x", "t")
    assert state() == ("Empty" if is_committed else "Dead")


def test_until_version_4_the_groups_partition_has_to_be_added_before(node: Guarded) -> None:
    producer = node.begin_transaction("x", "t")
    assert codes(node.ask(committing(producer, 1), 3, ADMIN)) == {"t": ErrorCode.INVALID_TXN_STATE}
    assert codes(node.ask(committing(producer, 1), 4, ADMIN)) == {"t": ErrorCode.TRANSACTION_ABORTABLE}
    assert codes(node.ask(committing(producer, 1), 5, ADMIN)) == {"t": ErrorCode.NONE}


def test_a_fenced_producer_and_a_former_member_are_refused(node: Guarded) -> None:
    producer = began(node)
    stale = committing((producer[0], producer[1] - 1), 1)
    assert codes(node.ask(stale, 5, ADMIN)) == {"t": ErrorCode.INVALID_PRODUCER_EPOCH}
    former = committing(producer, 1, generation_id=4, member_id="m")
    assert codes(node.ask(former, 5, ADMIN))["t"] in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)
    both = codes(node.ask(committing(producer, 1, "t", "none"), 5, ADMIN))
    assert both == {"t": ErrorCode.NONE, "none": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_the_transaction_coordinator_decides_before_the_group(node: Guarded) -> None:
    producer = began(node)  # both coordinators are there
    stranger = (4000, 0)
    former = committing(stranger, 1, generation_id=4, member_id="m")
    assert codes(node.ask(former, 5, ADMIN)) == {"t": ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    long = committing(stranger, 1)
    long.topics[0].partitions[0].committed_metadata = "m" * 5000
    assert codes(node.ask(long, 3, ADMIN)) == {"t": ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    empty = committing(stranger, 1)
    empty.topics[0].partitions = []
    assert codes(node.ask(empty, 5, ADMIN)) == {}, "a topic without partitions has no result"
    long.producer_id, long.producer_epoch = producer
    assert codes(node.ask(long, 3, ADMIN)) == {"t": ErrorCode.OFFSET_METADATA_TOO_LARGE}


def test_a_topic_without_partitions_has_a_result_only_if_it_is_refused(node: Guarded) -> None:
    producer = began(node)
    asked = committing(producer, 1, "t", "none")
    for topic in asked.topics:
        topic.partitions = []
    assert [topic.name for topic in node.ask(asked, 5, ADMIN).topics] == ["none"]
    node.allow(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, "x")
    node.allow(AclOperation.READ, GROUP, "g")
    assert [topic.name for topic in node.ask(asked, 5).topics] == ["t", "none"]


def test_the_id_the_group_and_each_topic_have_permissions_of_their_own(node: Guarded) -> None:
    producer = began(node)
    asked = committing(producer, 1)
    assert codes(node.ask(asked)) == {"t": X_DENIED}
    node.allow(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, "x")
    assert codes(node.ask(asked)) == {"t": G_DENIED}
    node.allow(AclOperation.READ, GROUP, "g")
    assert codes(node.ask(asked)) == {"t": T_DENIED}
    node.allow(AclOperation.READ, TOPIC, "t")
    assert codes(node.ask(asked)) == {"t": ErrorCode.NONE}
