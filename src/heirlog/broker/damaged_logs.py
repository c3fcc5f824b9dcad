"""Logs in which records are not what was written.

another replica is in the ISR    the log directory goes offline, as if the disk had reported the failure. Its next
                                 start reads the segment, and cuts the log at the damage; then the replica copies
                                 the rest
no other one is                  the log is kept and led: it may be the only copy of the records after the damage.
                                 Only what is damaged cannot be read. Once another replica is in the ISR, this one
                                 is given up as above
"""

from __future__ import annotations

from collections.abc import Callable

from heirlog.broker.log_directories import LogDirectories
from heirlog.broker.partition import Partition, ReplicaRole
from heirlog.env import Env
from heirlog.protocol.types import BrokerId, PartitionKey
from heirlog.storage.errors import DamagedLog
from heirlog.storage.log_directory import LogDirectory


class DamagedLogs:
    def __init__(
        self,
        env: Env,
        broker_id: BrokerId,
        directories: LogDirectories,
        directory_of: Callable[[Partition], LogDirectory | None],
    ) -> None:
        """directory_of: a partition's directory; None if the partition is no longer on this broker."""
        self._env = env
        self._broker_id = broker_id
        self._directories = directories
        self._directory_of = directory_of
        self._given_up: set[PartitionKey] = set()
        """Their directories are about to go offline."""
        self.kept: dict[PartitionKey, DamagedLog] = {}
        """What was found in those that are led although no other replica is in the ISR."""

    def forget(self, key: PartitionKey) -> None:
        """The partition is no longer on this broker."""
        self.kept.pop(key, None)

    def found(self, partition: Partition, error: DamagedLog) -> bool:
        """Records of this partition are damaged. False if this copy is kept, else another replica's takes its place."""
        values = {
            "topic": partition.topic,
            "partition": partition.index,
            "path": error.filename,
            "byte": error.position,
        }
        others = [broker for broker in partition.isr.committed if broker != self._broker_id]
        if partition.role is ReplicaRole.LEADER and not others:
            known = self.kept.get(partition.key)
            if known is None or not partition.log.has_damage(known):
                self.kept[partition.key] = error
                self._env.log("error", "damaged-batch-kept", **values, why="no other replica is in the ISR")
            return False
        directory = self._directory_of(partition)
        if directory is None or partition.key in self._given_up:
            return True
        self._given_up.add(partition.key)
        self._env.log("error", "damaged-batch-found", **values)
        try:
            directory.distrust(partition.log, error.base_offset, lambda _: self._directories.failed(directory, error))
        except OSError as failure:
            self._directories.failed(directory, failure)
        return True

    def give_up(self, key: PartitionKey, partition: Partition | None) -> None:
        """If another replica is in the ISR by now: it has the damaged records, which coordinators skipped."""
        error = self.kept.get(key)
        if error is None or partition is None or not partition.log.has_damage(error):
            self.kept.pop(key, None)
        elif partition.role is ReplicaRole.LEADER:
            self.found(partition, error)
