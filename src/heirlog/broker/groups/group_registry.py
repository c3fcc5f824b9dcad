"""The groups of one partition of `__consumer_offsets`, and what committed records change in them.

A group id names one group, of any protocol. All but share groups are here. A group exists with a client's first
request or with its first record; one that has neither members, offsets nor a record is forgotten.
"""

from __future__ import annotations

from functools import partial
from typing import TypeAlias

from heirlog.broker.groups.consumer.group import ConsumerGroup
from heirlog.broker.groups.group import ClassicGroup, MemoryUse
from heirlog.broker.groups.member_answers import refuse
from heirlog.broker.groups.offsets import OffsetAndMetadata, TopicPartition
from heirlog.broker.groups.transactional_offsets import TransactionalOffsets
from heirlog.env import Env
from heirlog.protocol.errors import ErrorCode

Group: TypeAlias = ClassicGroup | ConsumerGroup


class GroupRegistry:
    def __init__(self, env: Env) -> None:
        self.groups: dict[str, Group] = {}
        self.transactional = TransactionalOffsets()
        self.memory_use = MemoryUse()
        self._env = env

    def group_or_new(self, group_id: str) -> Group:
        """A group that does not exist is a classic one; a member of the consumer protocol may turn it into its own."""
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = ClassicGroup(group_id, memory_use=self.memory_use)
        return group

    def classic_or_new(self, group_id: str) -> ClassicGroup:
        """A classic group under this id, in the place of one of another protocol."""
        group = self.groups.get(group_id)
        if isinstance(group, ClassicGroup):
            return group
        classic = ClassicGroup(group_id, memory_use=self.memory_use)
        if group is not None:
            classic.offsets = group.offsets
            group.close()
        self.groups[group_id] = classic
        return classic

    def consumer_or_new(self, group_id: str) -> ConsumerGroup:
        """A consumer group under this id, in the place of a classic one without members."""
        group = self.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        consumer = ConsumerGroup.new(group_id, None if group is None else group.offsets)
        self.groups[group_id] = consumer
        return consumer

    def replace(self, group: ConsumerGroup) -> None:
        """This group takes the place of a classic one, whose members join again, with the other protocol."""
        known = self.groups.get(group.group_id)
        if isinstance(known, ClassicGroup):
            group.offsets = known.offsets
            self._forget_members(known)
            known.mark_dead(self._env.wall_ms(), partial(refuse, code=ErrorCode.REBALANCE_IN_PROGRESS))
        self.groups[group.group_id] = group

    def restore(self, classic: ClassicGroup, group: ConsumerGroup) -> None:
        """The classic group takes the place of this one, with its offsets."""
        group.close()
        classic.offsets = group.offsets
        classic.memory_use = self.memory_use
        self.memory_use.bytes += sum(member.counted_bytes for member in classic.members.values())
        self.groups[group.group_id] = classic

    def forget_if_no_record(self, group: ClassicGroup) -> None:
        if group.has_no_record and self.groups.get(group.group_id) is group:
            del self.groups[group.group_id]

    def forget_if_gone(self, group: ConsumerGroup) -> None:
        """A deleted group is forgotten once no write of it is in flight; offsets that are left make a classic one."""
        if group.state.exists or group.writes_in_flight or self.groups.get(group.group_id) is not group:
            return
        group.close()
        del self.groups[group.group_id]
        if group.offsets.committed:
            self.group_or_new(group.group_id).offsets = group.offsets

    def forget_classic(self, group_id: str) -> None:
        """Apply a classic group's tombstone. Its offsets have tombstones of their own."""
        group = self.groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            return
        self._forget_members(group)
        group.mark_dead(self._env.wall_ms(), partial(refuse, code=ErrorCode.NOT_COORDINATOR))
        del self.groups[group_id]
        if group.offsets.committed:
            self.group_or_new(group_id).offsets = group.offsets

    def _forget_members(self, group: ClassicGroup) -> None:
        self.memory_use.bytes -= sum(member.counted_bytes for member in group.members.values())

    def set_offset(self, group_id: str, partition: TopicPartition, committed: OffsetAndMetadata | None) -> None:
        """Apply a committed offset record."""
        if committed is not None:
            self.transactional.replaced(group_id, partition)
            self.group_or_new(group_id).offsets.committed[partition] = committed
            return
        self.transactional.forgotten(group_id, partition)
        if group_id in self.groups:
            self.groups[group_id].offsets.committed.pop(partition, None)

    def transaction_ended(self, producer_id: int, *, commit: bool) -> None:
        """Apply a transaction marker."""
        for (group_id, partition), committed in self.transactional.ended(producer_id, commit=commit):
            self.group_or_new(group_id).offsets.committed[partition] = committed

    def close(self) -> None:
        """Forget all groups; every waiting request is answered with NOT_COORDINATOR."""
        groups = list(self.groups.values())
        self.groups.clear()
        for group in groups:
            if isinstance(group, ConsumerGroup):
                group.close()
            else:
                group.mark_dead(self._env.wall_ms(), partial(refuse, code=ErrorCode.NOT_COORDINATOR))
