"""ListOffsets through a node: named positions by version, and topics without permission."""

from __future__ import annotations

from typing import Any

import pytest
from apis.guarded import ADMIN, T_DENIED, TOPIC, Guarded

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ListOffsetsRequest


def asking(*topics: str, timestamp: int = -1, **more: Any) -> ListOffsetsRequest:
    Topic, Partition = ListOffsetsRequest.ListOffsetsTopic, ListOffsetsRequest.ListOffsetsPartition
    return ListOffsetsRequest(
        topics=[Topic(name=name, partitions=[Partition(timestamp=timestamp)]) for name in topics], **more
    )


EXAMPLE = asking("t"), None


def found(answer: Any) -> dict[str, tuple[int, int]]:
    """Error code and offset by topic."""
    return {t.name: (t.partitions[0].error_code, t.partitions[0].offset) for t in answer.topics}


@pytest.mark.parametrize("version", [1, 4, 6, 11])
def test_the_first_and_the_last_offset_in_every_version(node: Guarded, version: int) -> None:
    if "listed" not in node.node.image.topic_ids:
        node.create_topics("listed")
        node.write("listed", b"a", b"b", b"c")
    assert found(node.ask(asking("listed", timestamp=-2), version, ADMIN)) == {"listed": (ErrorCode.NONE, 0)}
    assert found(node.ask(asking("listed", timestamp=-1), version, ADMIN)) == {"listed": (ErrorCode.NONE, 3)}
    (topic,) = node.ask(asking("listed"), version, ADMIN).topics
    assert (topic.partitions[0].leader_epoch >= 0) is (version >= 4)


@pytest.mark.parametrize(("timestamp", "first_version"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11)])
def test_a_named_position_is_refused_before_the_version_that_brought_it(
    node: Guarded, timestamp: int, first_version: int
) -> None:
    code, _ = found(node.ask(asking("t", timestamp=timestamp), first_version - 1, ADMIN))["t"]
    assert code == ErrorCode.UNSUPPORTED_VERSION
    code, _ = found(node.ask(asking("t", timestamp=timestamp), first_version, ADMIN))["t"]
    assert code == ErrorCode.NONE


def test_a_stale_leader_epoch_and_an_unknown_topic_are_refused_one_by_one(node: Guarded) -> None:
    request = asking("t", "nowhere")
    request.topics[0].partitions[0].current_leader_epoch = 9
    codes = {name: code for name, (code, _) in found(node.ask(request, 11, ADMIN)).items()}
    assert codes == {"t": ErrorCode.UNKNOWN_LEADER_EPOCH, "nowhere": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_topics_that_must_not_be_described_are_refused_whether_they_exist_or_not(node: Guarded) -> None:
    node.allow(AclOperation.READ, TOPIC, "t")
    codes = {name: code for name, (code, _) in found(node.ask(asking("hidden", "t", "none"))).items()}
    assert codes == {"t": 0, "hidden": T_DENIED, "none": T_DENIED}
