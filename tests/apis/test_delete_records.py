"""DeleteRecords through a node: low watermarks, offsets out of range, and topics without permission."""

from __future__ import annotations

from typing import Any

import pytest
from apis.guarded import ADMIN, T_DENIED, TOPIC, Guarded

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DeleteRecordsRequest


def deleting(offset: int, *topics: str) -> DeleteRecordsRequest:
    Topic, Partition = DeleteRecordsRequest.DeleteRecordsTopic, DeleteRecordsRequest.DeleteRecordsPartition
    return DeleteRecordsRequest(
        topics=[Topic(name=name, partitions=[Partition(offset=offset)]) for name in topics], timeout_ms=1000
    )


EXAMPLE = deleting(0, "t"), None


def outcome(answer: Any) -> dict[str, tuple[int, int]]:
    """Error code and low watermark by topic."""
    return {t.name: (t.partitions[0].error_code, t.partitions[0].low_watermark) for t in answer.topics}


@pytest.mark.parametrize(("version", "offset", "low_watermark"), [(0, 1, 1), (1, 2, 2), (2, -1, 3)])
def test_records_below_the_offset_go_and_minus_one_is_the_high_watermark(
    node: Guarded, version: int, offset: int, low_watermark: int
) -> None:
    name = f"records-{version}"
    node.create_topics(name)
    node.write(name, b"a", b"b", b"c")
    assert outcome(node.ask(deleting(offset, name), version, ADMIN)) == {name: (ErrorCode.NONE, low_watermark)}


def test_an_offset_above_the_high_watermark_and_an_unknown_topic_are_refused(node: Guarded) -> None:
    assert outcome(node.ask(deleting(99, "t"), principal=ADMIN)) == {"t": (ErrorCode.OFFSET_OUT_OF_RANGE, -1)}
    unknown = outcome(node.ask(deleting(0, "none"), principal=ADMIN))
    assert unknown == {"none": (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)}


def test_only_topics_that_may_be_deleted_lose_records(node: Guarded) -> None:
    node.allow(AclOperation.DELETE, TOPIC, "t")
    node.allow(AclOperation.READ, TOPIC, "hidden")
    answer = outcome(node.ask(deleting(0, "hidden", "t", "none")))
    assert answer == {"t": (0, 0), "hidden": (T_DENIED, -1), "none": (T_DENIED, -1)}
