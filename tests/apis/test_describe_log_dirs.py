"""DescribeLogDirs through a node: sizes by version, unknown topics, and clients without permission."""

from __future__ import annotations

import pytest
from apis.guarded import ADMIN, C_DENIED, CLUSTER, Guarded

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeLogDirsRequest


def asking(*topics: str) -> DescribeLogDirsRequest:
    Topic = DescribeLogDirsRequest.DescribableLogDirTopic
    return DescribeLogDirsRequest(topics=[Topic(topic=name, partitions=[0, 9]) for name in topics])


EXAMPLE = DescribeLogDirsRequest(topics=None), None


@pytest.mark.parametrize("version", range(1, 5))
def test_partitions_that_are_there_have_a_size_and_the_others_are_left_out(node: Guarded, version: int) -> None:
    node.write("t", b"v")
    (directory,) = node.ask(asking("t", "none"), version, ADMIN).results
    assert directory.error_code == ErrorCode.NONE
    (topic,) = directory.topics
    assert topic.name == "t"
    (partition,) = topic.partitions
    assert (partition.partition_index, partition.offset_lag, partition.is_future_key) == (0, 0, False)
    assert partition.partition_size > 0
    assert (directory.total_bytes > 0, directory.usable_bytes > 0) == ((True, True) if version >= 4 else (False, False))


def test_null_asks_for_everything_and_an_empty_list_for_nothing(node: Guarded) -> None:
    (everything,) = node.ask(DescribeLogDirsRequest(topics=None), principal=ADMIN).results
    assert {"t", "hidden"} <= {topic.name for topic in everything.topics}
    (nothing,) = node.ask(asking(), principal=ADMIN).results
    assert nothing.topics == []


@pytest.mark.parametrize(("version", "code"), [(2, ErrorCode.NONE), (3, C_DENIED), (4, C_DENIED)])
def test_a_client_without_permission_gets_nothing_and_from_version_3_on_an_error(
    node: Guarded, version: int, code: ErrorCode
) -> None:
    refused = node.ask(asking("t"), version)
    assert (refused.error_code, refused.results) == (code, [])
    node.allow(AclOperation.DESCRIBE, CLUSTER)
    assert len(node.ask(asking("t"), version).results) == 1
