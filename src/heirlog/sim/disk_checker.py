"""What a broker's disk may lose, and what a start may change on it, checked at the disk itself (T16, T18).

    a log is removed            only after a committed record removed the topic, or this broker's replica: a topic that
                                the metadata merely do not know was not removed (T16)
    metadata that are older     than what this broker has applied before: nothing is removed or truncated (T16)
    a clean stop ... a start    that ends before its registration is committed: every file but those of the metadata
                                log is what it was, the clean-shutdown file included (T18)

Committed removals are remembered when their records are committed. No later state of a controller can undo or add one,
not even that of a controller restored from an older copy.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from zlib import crc32

from heirlog.metadata.state import PartitionRegistration
from heirlog.node.node import Node
from heirlog.protocol.types import METADATA_TOPIC, BrokerId, Uuid
from heirlog.sim.cluster import Machine, says_clean
from heirlog.sim.disk import SimDisk
from heirlog.sim.invariants import (
    t16_log_was_given_up,
    t16_metadata_are_not_older,
    t18_start_changed_nothing,
)
from heirlog.sim.oracle import Key, Oracle
from heirlog.sim.world import LogLine, Process
from heirlog.storage.directory_names import DELETE_SUFFIX
from heirlog.storage.identity import PARTITION_METADATA, parse_partition_metadata

Digest = dict[str, int]
"""Path to checksum."""


@dataclass(slots=True)
class _Held:
    """Of one broker."""

    applied_end: int = 0
    """One past the newest metadata that any incarnation has applied."""
    stopped: Digest | None = None
    """Its files as the last clean stop left them; None once an incarnation was registered after it."""
    starts: int = 0
    """Incarnations that have ended before they were registered, since that stop."""
    process: Process | None = None
    """The one that was started last."""
    found: Digest | None = None
    """The files that it found; None without clean-shutdown files."""
    is_damaged: bool = False
    """Its files have changed while it was down, and it has not been registered since."""


@dataclass(slots=True)
class DiskChecker:
    _seen: Oracle
    _removed: dict[Uuid, None] = field(default_factory=dict)
    """Topics that a committed record has removed."""
    _left: dict[tuple[Key, BrokerId], None] = field(default_factory=dict)
    """Replicas that a committed record has removed from this broker."""
    _held: dict[str, _Held] = field(default_factory=dict)

    # what is committed

    def topic_removed(self, topic_id: Uuid) -> None:
        self._removed[topic_id] = None

    def partition_changed(self, key: Key, before: PartitionRegistration, after: PartitionRegistration) -> None:
        for broker in before.replicas:
            if broker not in after.replicas:
                self._left[key, broker] = None

    def registered(self, broker: BrokerId) -> None:
        """From now on its files change."""
        held = self._of(self._seen.cluster.broker(broker).name)
        held.stopped, held.starts, held.is_damaged = None, 0, False

    # what a broker does

    def applied(self, machine: Machine, node: Node) -> None:
        held = self._of(machine.name)
        held.applied_end = max(held.applied_end, node.image.offset + 1)

    def metadata_seeded(self) -> None:
        """The broker's copy of the metadata is lost, so what it had applied from it no longer counts."""
        for held in self._held.values():
            held.applied_end = 0

    def disk_replaced(self, name: str) -> None:
        """The new disk has nothing of what was on the old one."""
        self._held[name] = _Held()

    def disk_damaged(self, name: str) -> None:
        """Files of a machine that is down have changed, and no start did it: the former stop does not count, and a
        start may repair a log that it finds damaged.
        """
        held = self._of(name)
        held.stopped = held.found = None
        held.is_damaged = True

    def truncated(self, line: LogLine) -> None:
        """A replica has truncated its log: check that the metadata are not older than what this broker has applied."""
        machine = self._seen.cluster.machines_by_host[line.node]
        what = f"truncated {line.values['topic']}-{line.values['partition']}"
        self._seen.must_not("T16", self._older(machine, what))

    def directory_removed(self, host: str, path: str) -> None:
        """Of the logs that are deleted, before they are."""
        machine = self._seen.cluster.machines_by_host.get(host)
        name = path.rpartition("/")[2]
        if machine is None or not name.endswith(DELETE_SUFFIX):
            return
        topic, _, index = name.rpartition(".")[0].rpartition("-")
        files = dict(self._seen.cluster.machines.disk(host).contents(path))
        topic_id = _topic_id(files.get(f"{path}/{PARTITION_METADATA}"))
        if topic_id is None or not any(path.endswith(".log") and data for path, data in files.items()):
            return
        key = (topic_id, int(index))
        given_up = topic_id in self._removed or (key, BrokerId(machine.node_id)) in self._left
        self._seen.world.counters["disk.log-removed"] += 1
        self._seen.must_not("T16", t16_log_was_given_up(machine.node_id, topic, key[1], given_up))

    def _older(self, machine: Machine, what: str) -> str | None:
        node = machine.running
        if node is None:
            return None
        return t16_metadata_are_not_older(
            machine.node_id, what, node.image.offset + 1, self._of(machine.name).applied_end
        )

    # starts

    def started(self, machine: Machine, process: Process) -> None:
        """Before the first event of the new incarnation."""
        disk = self._seen.cluster.machines.disk(machine.name)
        if not machine.config.is_broker or disk.is_broken or machine.name in self._seen.directory_failed_on:
            return
        held = self._of(machine.name)
        self._compare(machine, held, "before it")
        found = _digest(disk) if says_clean(disk, machine) else None
        if found is not None and found == held.found:
            _left_as_found(held.process)
        held.process, held.found = process, found
        if held.stopped is None and not held.is_damaged:
            held.stopped = found
        process.on_end.append(lambda: self._ended(machine, held))

    def _ended(self, machine: Machine, held: _Held) -> None:
        if held.stopped is not None:
            held.starts += 1
            self._seen.world.counters["start.failed"] += 1
            self._compare(machine, held, "by then")

    def _compare(self, machine: Machine, held: _Held, when: str) -> None:
        if machine.config["heirlog.accept.older.metadata"]:
            # the operator has decided that the clean stop does not count
            held.stopped = None
        if held.stopped is None or machine.name in self._seen.directory_failed_on:
            return
        now = _digest(self._seen.cluster.machines.disk(machine.name))
        sentence = t18_start_changed_nothing(machine.node_id, held.starts, held.stopped, now)
        self._seen.must_not("T18", sentence)

    def _of(self, name: str) -> _Held:
        found = self._held.get(name)
        if found is None:
            found = self._held[name] = _Held()
        return found


def _digest(disk: SimDisk) -> Digest:
    """Checksums of all files except two kinds: the metadata log, because an observer may fetch before it is registered,
    and files that were given up already, because a clean stop does not flush them and any start may remove them.
    """
    return {
        path: crc32(data)
        for path, data in disk.contents()
        if f"/{METADATA_TOPIC}-" not in path
        and f"{DELETE_SUFFIX}/" not in path
        and not path.endswith((".deleted", ".cleaned"))
    }


def _left_as_found(process: Process | None) -> None:
    """It was perhaps registered, and changed nothing: then the clean stop before it counts as its own."""
    if process is not None and process.exit is not None:
        process.exit = replace(process.exit, finished=True)


def _topic_id(content: bytes | bytearray | None) -> Uuid | None:
    return None if content is None else parse_partition_metadata(bytes(content))
