"""The log directories of this broker: which are online, where each replica's log is, and which logs are strays.

    online --read, write or flush fails--> offline     until the next start: it does not come back earlier

* When a directory fails, all partitions in it go offline. The controller learns of it with the next heartbeat, and
  clients get KAFKA_STORAGE_ERROR. The node stops if no directory is left, or if that of the metadata log fails.
* A new replica goes to the directory that the controller chose, else to the online directory with the fewest logs,
  which is reported to the controller (`assignments_manager.py`). If the chosen directory is offline, the replica is not
  recreated in another one: an empty log would take the place of the log that is out of reach.
* A log that was found at start and is not assigned here is a stray. Perhaps its topic was deleted, or the replica moved
  away, while this broker was stopped; or the metadata is older than the log. This code cannot distinguish these cases,
  so it moves the log aside and never deletes it. Only a committed record that this broker sees while it runs deletes a
  log. Logs that a snapshot no longer names are moved aside too.
* A log that was moved aside comes back at a start at which the metadata assigns it here (same topic id), if there is no
  other log of the partition. A follower truncates records that its leader does not have, and a recovery counts those it
  holds. `assigned_strays.py` has checked the log by then.

Source: KIP-112, KIP-858.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from heirlog.env import Env
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.image import Image
from heirlog.metadata.state import MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY, PartitionRegistration
from heirlog.protocol.types import BrokerId, PartitionKey, Uuid
from heirlog.storage.config import LogConfig
from heirlog.storage.log import Log
from heirlog.storage.log_directory import LogDirectory
from heirlog.storage.removed_logs import Stray

_ANYWHERE = (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY)


class LogDirectories:
    def __init__(
        self,
        env: Env,
        static: StaticConfig,
        directories: list[LogDirectory],
        broker_id: BrokerId,
        on_failed: Callable[[LogDirectory], None],
    ) -> None:
        """on_failed: this directory is offline from now on."""
        self._env = env
        self._static = static
        self._all = directories
        self._broker_id = broker_id
        self._on_failed = on_failed
        self._offline: list[LogDirectory] = []

    @property
    def online(self) -> list[LogDirectory]:
        return [directory for directory in self._all if directory not in self._offline]

    @property
    def offline_ids(self) -> list[Uuid]:
        return [directory.directory_id for directory in self._offline]

    # -- logs ---------------------------------------------------------------------------------------------------

    def create_log(
        self, key: PartitionKey, topic: str, state: PartitionRegistration, config: LogConfig
    ) -> tuple[LogDirectory, Log] | None:
        """None: the replica's directory is offline, or no directory is left."""
        while (directory := self._directory_for(state)) is not None:
            try:
                return directory, directory.create_log(topic, key[1], key[0], config)
            except OSError as error:
                self.failed(directory, error)
        return None

    def _directory_for(self, state: PartitionRegistration) -> LogDirectory | None:
        named = state.directory_of(self._broker_id)
        online = self.online
        for directory in online:
            if directory.directory_id == named:
                return directory
        if named not in _ANYWHERE:
            return None
        return min(online, key=lambda directory: len(directory.logs), default=None)

    def delete_log(self, directory: LogDirectory, topic: str, index: int) -> None:
        """Delete a log; its files are removed after `file.delete.delay.ms`. Does nothing in an offline directory."""
        if directory in self._offline:
            return
        delay_ms = directory.logs[(topic, index)].config.file_delete_delay_ms

        def remove() -> None:
            try:
                remove_bytes()
            except OSError as error:
                self.failed(directory, error)

        try:
            remove_bytes = directory.delete_log(topic, index)
        except OSError as error:
            self.failed(directory, error)
            return
        self._env.call_later(delay_ms, remove)

    def take_over(
        self, image: Image, owners: Mapping[PartitionKey, LogDirectory], config_of: Callable[[str], LogConfig]
    ) -> Iterator[tuple[PartitionKey, LogDirectory, Log]]:
        """The logs that were on disk at start and are assigned here; the others are moved aside meanwhile.

        owners: the directory of each log that was taken over before. The caller adds to it while it iterates.
        """
        yield from self._assigned(image, owners)
        for directory in self.online:
            for stray in list(directory.removed.checked):
                key = (stray.topic_id, stray.partition)
                if key not in owners and self._is_assigned(image, directory, stray):
                    log = self._brought_back(directory, stray, image.topics[stray.topic_id].name, config_of)
                    if log is not None:
                        yield key, directory, log

    def assigned_strays(self, image: Image) -> Iterator[tuple[LogDirectory, Stray]]:
        """Logs that were moved aside, are assigned here, and are the only logs of their partitions."""
        present = {(log.topic_id, log.partition) for directory in self.online for log in directory.logs.values()}
        for directory in self.online:
            for stray in directory.removed.strays:
                if (stray.topic_id, stray.partition) in present or not self._is_assigned(image, directory, stray):
                    continue
                copies = [
                    f"{d.path}/{one.name}" for d in self.online for one in d.removed.strays if one[1:] == stray[1:]
                ]
                if len(copies) == 1:
                    yield directory, stray
                    continue
                # an operator decides which of them to use
                topic = image.topics[stray.topic_id].name
                self._env.log("error", "stray-log-ambiguous", topic=topic, partition=stray.partition, paths=copies)

    def _is_assigned(self, image: Image, directory: LogDirectory, stray: Stray) -> bool:
        state = image.partition(stray.topic_id, stray.partition)
        if state is None or self._broker_id not in state.replicas:
            return False
        return state.directory_of(self._broker_id) in (directory.directory_id, *_ANYWHERE)

    def _brought_back(
        self, directory: LogDirectory, stray: Stray, topic: str, config_of: Callable[[str], LogConfig]
    ) -> Log | None:
        try:
            log = directory.bring_back(stray, topic, config_of(topic), self._env.wall_ms())
        except OSError as error:
            self.failed(directory, error)
            return None
        path = f"{directory.path}/{stray.name}"
        values = {"topic": topic, "partition": stray.partition, "path": path, "end_offset": log.log_end_offset}
        self._env.log("warning", "stray-log-brought-back", **values)
        return log

    def _assigned(
        self, image: Image, owners: Mapping[PartitionKey, LogDirectory]
    ) -> Iterator[tuple[PartitionKey, LogDirectory, Log]]:
        for directory in self.online:
            for (topic, index), log in sorted(directory.logs.items()):
                owner = None if log.topic_id is None else owners.get((log.topic_id, index))
                if owner is directory:
                    continue
                if log.topic_id is None and log.log_end_offset == 0:
                    # created by an incarnation that stopped before it wrote which topic id the log belongs to
                    self._env.log("info", "empty-log-removed", topic=topic, partition=index)
                    self.delete_log(directory, topic, index)
                    continue
                state = None if log.topic_id is None else image.partition(log.topic_id, index)
                if log.topic_id is None or state is None or self._broker_id not in state.replicas:
                    self.set_aside(directory, topic, index)
                elif owner is not None or self._belongs_elsewhere(directory, state):
                    # a copy from before its directory was missing: the controller has placed the replica elsewhere
                    # since
                    self.set_aside(directory, topic, index)
                else:
                    yield (log.topic_id, index), directory, log

    def _belongs_elsewhere(self, directory: LogDirectory, state: PartitionRegistration) -> bool:
        named = state.directory_of(self._broker_id)
        return any(other.directory_id == named for other in self._all if other is not directory)

    def set_aside(self, directory: LogDirectory, topic: str, index: int) -> None:
        """Move a log aside. Does nothing in an offline directory."""
        if directory in self._offline:
            return
        try:
            path = directory.set_aside(topic, index)
        except OSError as error:
            self.failed(directory, error)
            return
        self._env.log("warning", "stray-log-set-aside", topic=topic, partition=index, path=path)

    # -- failures -----------------------------------------------------------------------------------------------

    def file_failed(self, path: str, error: OSError) -> None:
        """A file region of a response could not be read when it was sent."""
        for directory in self._all:
            if path.startswith(f"{directory.path}/"):
                self.failed(directory, error)

    def failed(self, directory: LogDirectory, error: OSError) -> None:
        if directory in self._offline:
            return
        self._offline.append(directory)
        self._env.log("error", "log-directory-offline", directory=directory.path, error=str(error))
        self._on_failed(directory)
        if not self.online:
            self._env.stop(1, f"every log directory has failed, the last one, {directory.path}, with: {error}")
        elif directory.path == self._static.metadata_log_dir:
            self._env.stop(1, f"the directory of the metadata log, {directory.path}, has failed with: {error}")
