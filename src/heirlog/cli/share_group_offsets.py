"""Start offsets of share groups, for the commands of `heirlog groups`: shown, moved, and deleted.

A share group has one start offset in each partition: everything below it is finished. The brokers store it, so it is
read and moved by requests of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from heirlog.cli.errors import CommandError
from heirlog.cli.next_steps import with_next_step
from heirlog.protocol.errors import ErrorCode, error_code

if TYPE_CHECKING:
    from heirlog.blocking import Client

TopicPartition = tuple[str, int]


class ShareOffset(NamedTuple):
    start: int | None
    """None: no member has fetched the partition yet."""
    lag: int | None
    """Records that are not finished; None if the broker does not know it."""


def share_offsets(client: Client, group: str) -> dict[TopicPartition, ShareOffset]:
    """Of every partition of the group. Raises CommandError."""
    from heirlog.protocol.messages import DescribeShareGroupOffsetsRequest

    R = DescribeShareGroupOffsetsRequest
    request = R(groups=[R.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)])
    (found,) = client.send_to_coordinator(group, request, error_code=lambda got: int(got.groups[0].error_code)).groups
    _raise_refusal(f"cannot read the offsets of group {group}", found.error_code)
    return {
        (topic.topic_name, part.partition_index): ShareOffset(_known(part.start_offset), _known(part.lag))
        for topic in found.topics
        for part in topic.partitions
        if not part.error_code
    }


def _known(number: int) -> int | None:
    return None if number < 0 else number


def alter_share_offsets(client: Client, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Raises CommandError, also if the group has members."""
    from heirlog.protocol.messages import AlterShareGroupOffsetsRequest

    R = AlterShareGroupOffsetsRequest
    topics: dict[str, AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic] = {}
    for (name, index), offset in sorted(offsets.items()):
        topic = topics.setdefault(name, R.AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=[]))
        part = R.AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
        topic.partitions.append(part)
    answer = client.send_to_coordinator(
        group, R(group_id=group, topics=list(topics.values())), error_code=lambda got: int(got.error_code)
    )
    _raise_refusal(f"cannot move the offsets of group {group}", answer.error_code)
    for topic in answer.responses:
        for part in topic.partitions:
            _raise_refusal(f"cannot move group {group} in {topic.topic_name}-{part.partition_index}", part.error_code)


def delete_share_offsets(client: Client, group: str, topics: Collection[str]) -> list[dict[str, Any]]:
    """A row for each topic. Raises CommandError, also if the group has members."""
    from heirlog.protocol.messages import DeleteShareGroupOffsetsRequest

    R = DeleteShareGroupOffsetsRequest
    named = [R.DeleteShareGroupOffsetsRequestTopic(topic_name=topic) for topic in topics]
    answer = client.send_to_coordinator(
        group, R(group_id=group, topics=named), error_code=lambda got: int(got.error_code)
    )
    _raise_refusal(f"cannot delete offsets of group {group}", answer.error_code)
    return [
        {"topic": topic.topic_name, "partition": None, "result": error_code(topic.error_code).name}
        for topic in answer.responses
    ]


def _raise_refusal(what: str, code: int) -> None:
    if code != ErrorCode.NONE:
        failure = error_code(code)
        raise CommandError(with_next_step(f"{what}: {failure.name}", failure))
