"""Deletes expired offsets and unused groups of a partition of `__consumer_offsets`, by tombstones.

    every offsets.retention.check.interval.ms   expired offsets (`offset_expiry.py`), and groups without any
    a topic is deleted                          its offsets: a new topic of the same name is a different one
    an operator deletes a group                 the group with its offsets, open transactions' included

What open transactions have written does not expire. Share groups have no offsets here, and are deleted elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from heirlog.broker.groups.activity import GroupActivity
from heirlog.broker.groups.consumer.group import ConsumerGroup
from heirlog.broker.groups.consumer.heartbeats import group_tombstones
from heirlog.broker.groups.group_registry import Group, GroupRegistry
from heirlog.broker.groups.group_writer import GroupWriter
from heirlog.broker.groups.offset_expiry import expired_offsets
from heirlog.broker.groups.offsets import OffsetAndMetadata, TopicPartition
from heirlog.broker.groups.records import group_record
from heirlog.broker.internal_topic_writer import nothing
from heirlog.env import Cancel, Env
from heirlog.protocol.errors import ErrorCode

RECORDS_PER_BATCH: Final = 500
"""Limit for deletions of offsets; a client's commit is always one batch."""


class GroupCleanup:
    def __init__(
        self,
        env: Env,
        registry: GroupRegistry,
        writer: GroupWriter,
        activity: GroupActivity,
        retention_ms: int,
        check_interval_ms: int,
        leads: Callable[[], bool],
    ) -> None:
        """retention_ms: offsets.retention.minutes. leads: whether this broker still leads the partition."""
        self._env = env
        self._registry = registry
        self._writer = writer
        self._activity = activity
        self._retention_ms = retention_ms
        self._check_interval_ms = check_interval_ms
        self._leads = leads
        self._cancel_sweep: Cancel | None = None

    def begin(self) -> None:
        """The partition is loaded."""
        self._cancel_sweep = self._env.call_later(self._check_interval_ms, self._sweep)

    def stop(self) -> None:
        if self._cancel_sweep is not None:
            self._cancel_sweep()

    def _sweep(self) -> None:
        if not self._leads():
            return
        wall_ms = self._env.wall_ms()
        for group in list(self._registry.groups.values()):
            unstable = self._registry.transactional.unstable(group.group_id)
            expired = [
                partition
                for partition in expired_offsets(group, wall_ms, self._retention_ms)
                if partition not in unstable
            ]
            self._activity.offset_expirations += len(expired)
            if unstable:
                self._forget_offsets(group.group_id, expired)
            elif _is_unused(group) and len(expired) == len(group.offsets.committed):
                self.delete_group(group, nothing)
            else:
                self._forget_offsets(group.group_id, expired)
        self.begin()

    def forget_topics(self, topics: frozenset[str]) -> None:
        for group_id in dict.fromkeys([*self._registry.groups, *self._registry.transactional.groups()]):
            group = self._registry.groups.get(group_id)
            stable = [] if group is None else group.offsets.of_topics(topics)
            unstable = [each for each in self._registry.transactional.unstable(group_id) if each[0] in topics]
            self._forget_offsets(group_id, [*stable, *unstable])

    def delete_group(self, group: Group, answer: Callable[[ErrorCode], None]) -> None:
        """Delete an empty group with its offsets."""
        unstable = self._registry.transactional.unstable(group.group_id)
        self._forget_offsets(group.group_id, [*group.offsets.committed, *unstable])
        if isinstance(group, ConsumerGroup):
            self._writer.write_consumer(group, group_tombstones(group.state), nothing, answer)
            return

        group.records_written = number = group.records_written + 1

        def apply() -> None:
            is_known = self._registry.groups.get(group.group_id) is group
            # a record that was written after the tombstone stays; a member that has joined meanwhile stays as well:
            # the next generation writes the group again
            if is_known and group.records_written == number and group.is_empty:
                self._registry.forget_classic(group.group_id)

        def committed(code: ErrorCode) -> None:
            if code is ErrorCode.NONE:
                apply()
            answer(code)

        if group.protocol_type is None and group.generation == 0:
            # there is no record of the group: it exists only through its offsets
            self._writer.after_writes(committed)
        else:
            self._writer.append([group_record(group.group_id, None)], apply, answer)

    def _forget_offsets(self, group_id: str, partitions: list[TopicPartition]) -> None:
        for start in range(0, len(partitions), RECORDS_PER_BATCH):
            chunk: dict[TopicPartition, OffsetAndMetadata | None] = dict.fromkeys(
                partitions[start : start + RECORDS_PER_BATCH]
            )
            self._writer.commit_offsets(group_id, chunk, nothing)


def _is_unused(group: Group) -> bool:
    return group.is_empty and (isinstance(group, ConsumerGroup) or not group.pending_members)
