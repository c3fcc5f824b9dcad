"""When a group changes its protocol, and what takes the place of what (`conversion.py` says how it is converted).

    a member of the consumer protocol joins a classic group    its consumer group is used from now on, and takes the
                                                               place with the first records that it writes
    only members of the classic protocol are left              the classic group takes the place in the same batch
    a classic member joins a consumer group without members    a new classic group takes the place

`group.consumer.migration.policy` allows the first and the second for groups that have members.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heirlog.broker.groups.consumer.conversion import (
    DOWNGRADES,
    UPGRADES,
    as_classic,
    may_become_classic,
    upgrade_records,
)
from heirlog.broker.groups.consumer.group import ConsumerGroup
from heirlog.broker.groups.consumer.heartbeats import group_tombstones
from heirlog.broker.groups.consumer.protocol import ConsumerGroupConfig
from heirlog.broker.groups.group import ClassicGroup, MemoryUse
from heirlog.broker.groups.group_registry import GroupRegistry
from heirlog.broker.groups.group_writer import GroupWriter
from heirlog.broker.groups.membership import Membership
from heirlog.broker.groups.records import group_record
from heirlog.env import Env
from heirlog.metadata.image import Image
from heirlog.protocol.errors import ErrorCode


class ProtocolMigration:
    def __init__(
        self,
        env: Env,
        config: ConsumerGroupConfig,
        classic_max_size: int,
        image: Callable[[], Image],
        registry: GroupRegistry,
        writer: GroupWriter,
        membership: Membership,
    ) -> None:
        """classic_max_size: group.max.size. membership: continues with what has become a classic group."""
        self._env = env
        self._config = config
        self._classic_max_size = classic_max_size
        self._image = image
        self._registry = registry
        self._writer = writer
        self._membership = membership

    def upgraded(self, group: ClassicGroup) -> ConsumerGroup | None:
        """The consumer group that a classic one becomes with its first record; None if it may not."""
        upgraded = ConsumerGroup.new(group.group_id)
        if not group.is_empty:
            if self._config.migration_policy not in UPGRADES:
                return None
            records = upgrade_records(group, self._image(), self._config.max_size)
            if records is None:
                return None
            upgraded.unwritten = records
            upgraded.state.apply(records)
        return upgraded

    def downgrade(self, group: ConsumerGroup, leaving: Sequence[str], answer: Callable[[ErrorCode], None]) -> bool:
        """Without these members the group becomes a classic one, if it may; whether it does."""
        if self._config.migration_policy not in DOWNGRADES or not may_become_classic(
            group.state, leaving, self._classic_max_size
        ):
            return False
        classic = as_classic(group.state, leaving, self._image(), MemoryUse(), self._env.wall_ms())
        assignments = {member.member_id: member.assignment for member in classic.members.values()}

        def applied() -> None:
            classic.records_written = 1
            self._registry.restore(classic, group)
            self._membership.take_over(classic, "the last member of the consumer protocol is gone")

        record = group_record(group.group_id, classic.as_record(assignments))
        self._writer.write_consumer(group, group_tombstones(group.state), applied, answer, behind=[record])
        return True

    def replace_by_classic(self, group: ConsumerGroup) -> ErrorCode:
        """A classic group takes the place of a consumer group without members; an error if that cannot be written."""
        refused = [ErrorCode.NONE]

        def applied() -> None:
            self._registry.classic_or_new(group.group_id)

        self._writer.write_consumer(group, group_tombstones(group.state), applied, refused.append)
        return ErrorCode.NONE if group.is_closed else refused[-1]
