"""A small world for quorums: virtual time, disks that forget what was not flushed, a network that loses messages.

Smaller than the product's simulator and independent of it: these tests must not fail for its reasons.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from heirlog.env import Buffer, SendFailure
from heirlog.pending import Pending
from heirlog.protocol.messages import (
    AddRaftVoterRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    BeginQuorumEpochRequest,
    DescribeQuorumRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
    VoteRequest,
)
from heirlog.protocol.primitives import Message, decode, encode, records_view
from heirlog.protocol.records import NoOpRecord, TopicRecord
from heirlog.protocol.types import ZERO_UUID, BrokerId, Endpoint, Uuid
from heirlog.raft.bootstrap import write_bootstrap
from heirlog.raft.configured_controllers import ConfiguredControllers
from heirlog.raft.control import Voter
from heirlog.raft.local_replica import LocalReplica
from heirlog.raft.metadata_log import MetadataLogConfig
from heirlog.raft.quorum import Quorum
from heirlog.raft.quorum_config import QuorumConfig
from heirlog.raft.replay import CommittedBatch

CLUSTER_ID = "ABEiM0RVZneImaq7zN3u_w"
LEADER_ENDPOINT = Endpoint("controller", 9093)
METADATA_DIR = "/data"
FLUSH_MS = 3
VOTE_API = ApiVersionsResponse.ApiVersion(api_key=VoteRequest.API_KEY, min_version=0, max_version=2)
"""What each node says that it serves."""
CHANNELS = {
    ApiVersionsRequest: "api-versions",
    **dict.fromkeys((VoteRequest, BeginQuorumEpochRequest, EndQuorumEpochRequest), "vote"),
    **dict.fromkeys((AddRaftVoterRequest, RemoveRaftVoterRequest, UpdateRaftVoterRequest), "own-voter"),
}
"""All others are sent on "raft"."""


# ---------------------------------------------------------------------------------------------------------------- disk


class Inode:
    def __init__(self) -> None:
        self.data = bytearray()
        self.durable = b""
        self.modified_ms = 0


class MemoryFile:
    def __init__(self, disk: MemoryDisk, path: str, inode: Inode) -> None:
        self._disk, self._path, self.inode = disk, path, inode
        self._closed = False

    @property
    def path(self) -> str:
        return self._path

    @property
    def size(self) -> int:
        return len(self.inode.data)

    def append(self, data: Buffer | Sequence[Buffer]) -> int:
        position = len(self.inode.data)
        for piece in [data] if isinstance(data, (bytes, bytearray, memoryview)) else data:
            self.inode.data += piece
        self._disk.touched()
        return position

    def pread(self, size: int, position: int) -> bytes:
        assert not self._closed, f"{self._path} was closed, and is still needed"
        return bytes(self.inode.data[position : position + size])

    def pwrite(self, data: Buffer, position: int) -> None:
        assert position + len(data) <= self.size
        self.inode.data[position : position + len(data)] = data

    def truncate(self, size: int) -> None:
        del self.inode.data[size:]

    def close(self) -> None:
        self._closed = True


class MemoryDisk:
    """`crash` keeps what was flushed and synced, and with a random a prefix of the rest of each file."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.now: dict[str, Inode] = {}
        self.directories: set[str] = set()
        self.durable: dict[str, Inode] = {}
        self.owner: Incarnation | None = None
        self.crash_after: int | None = None
        """Events (appends, flushes, renames, unlinks) until the power goes; None: never."""
        self.flush_makes_durable = True
        self.events = 0

    def touched(self) -> None:
        self.events += 1
        if self.crash_after is not None and self.events >= self.crash_after:
            raise PowerCut

    def crash(self, random: Random | None = None) -> None:
        self.now = dict(self.durable)
        for inode in dict.fromkeys(self.now.values()):
            kept = len(inode.durable)
            if random is not None and inode.data.startswith(inode.durable):
                kept += random.randrange(0, len(inode.data) - kept + 1)
                inode.data = inode.data[:kept]
            else:
                inode.data = bytearray(inode.durable)
            inode.durable = bytes(inode.data)
        self.crash_after = None

    def open(self, path: str, create: bool = False) -> MemoryFile:
        if path not in self.now:
            if not create:
                raise FileNotFoundError(path)
            self.touched()
            self.now[path] = Inode()
        return MemoryFile(self, path, self.now[path])

    def flush(self, file: MemoryFile, on_flushed: Callable[[OSError | None], None]) -> None:
        self.touched()
        content = bytes(file.inode.data)

        def done() -> None:
            if self.flush_makes_durable:
                file.inode.durable = content
            on_flushed(None)

        self._world.later(FLUSH_MS, done, self.owner)

    def sync_dir(self, path: str, on_synced: Callable[[OSError | None], None]) -> None:
        self.touched()
        entries = {p: i for p, i in self.now.items() if p.rpartition("/")[0] == path}

        def done() -> None:
            for old in [p for p in self.durable if p.rpartition("/")[0] == path and p not in entries]:
                del self.durable[old]
            self.durable.update(entries)
            on_synced(None)

        self._world.later(1, done, self.owner)

    def rename(self, source: str, target: str) -> None:
        self.touched()
        self.now[target] = self.now.pop(source)

    def unlink(self, path: str) -> None:
        self.touched()
        if path not in self.now:
            raise FileNotFoundError(path)
        del self.now[path]

    def mkdirs(self, path: str) -> None:
        self.directories.add(path)

    def rmdir(self, path: str) -> None:
        for entry in [p for p in self.now if p.startswith(path + "/")]:
            del self.now[entry]

    def list(self, path: str) -> list[str]:
        return sorted(p.rpartition("/")[2] for p in self.now if p.rpartition("/")[0] == path)

    def exists(self, path: str) -> bool:
        return path in self.now or path in self.directories

    def is_dir(self, path: str) -> bool:
        return path in self.directories

    def modified_ms(self, path: str) -> int:
        return self.now[path].modified_ms


class PowerCut(Exception):
    """Raised out of the node's code: it never catches it."""


# --------------------------------------------------------------------------------------------------------- world, nodes


@dataclass(eq=False)
class Incarnation:
    alive: bool = True


class MemoryEnv:
    def __init__(self, world: World, node: Node) -> None:
        self._world, self._node = world, node
        self._incarnation = node.incarnation
        self.random = Random(node.id)

    @property
    def files(self) -> MemoryDisk:
        return self._node.disk

    def log(self, level: str, event: str, /, **values: object) -> None:
        self._world.logged.append((self._node.id, level, event, values))

    def now_ms(self) -> int:
        return self._world.now_ms

    def wall_ms(self) -> int:
        return 1_700_000_000_000 + self._world.now_ms

    def call_later(self, delay_ms: int, fn: Callable[[], None]) -> Callable[[], None]:
        return self._world.later(delay_ms, fn, self._incarnation)

    def send(self, to: Endpoint, channel: str, request: Any, on_result: Callable[[Any], None], timeout_ms: int) -> None:
        assert channel == CHANNELS.get(type(request), "raft")
        self._world.send(self._incarnation, to, request, on_result, timeout_ms)

    def stop(self, exit_code: int, reason: str) -> None:
        self._node.stopped_because = reason
        self._incarnation.alive = False


class Recorder:
    """A listener that remembers what it saw, and checks what every listener may rely on."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.records: list[tuple[int, Message]] = []
        self.snapshot: tuple[int, list[Message]] | None = None
        self.batches: list[CommittedBatch] = []
        self.next_offset = 0

    def on_snapshot(self, records: list[Message], offset: int, epoch: int) -> None:
        self.calls.append("snapshot")
        self.snapshot = (offset, records)
        self.records.clear()
        self.next_offset = offset + 1

    def on_commit(self, batches: list[CommittedBatch]) -> None:
        self.calls.append("commit")
        for batch in batches:
            assert batch.base_offset == self.next_offset, "no holes and no repeats"
            self.next_offset = batch.last_offset + 1
            self.batches.append(batch)
            self.records += [(batch.base_offset + i, record) for i, record in enumerate(batch.records)]

    def on_leader_change(self, leader_id: int, epoch: int, is_me: bool) -> None:
        self.calls.append(f"leader {leader_id} epoch {epoch}{' me' if is_me else ''}")

    @property
    def names(self) -> list[str]:
        from_snapshot = self.snapshot[1] if self.snapshot else []
        return [r.name for r in [*from_snapshot, *(r for _, r in self.records)] if isinstance(r, TopicRecord)]


@dataclass(eq=False)
class Node:
    world: World
    id: int
    is_voter: bool
    disk: MemoryDisk = field(init=False)
    incarnation: Incarnation = field(default_factory=Incarnation)
    quorum: Quorum = field(init=False)
    seen: Recorder = field(default_factory=Recorder)
    ready: bool = False
    stopped_because: str | None = None
    config: MetadataLogConfig = field(default_factory=MetadataLogConfig)
    configured: list[Voter] = field(default_factory=list)
    unanswered: list[Callable[[], None]] = field(default_factory=list)
    """What ends each request that this node has received."""
    quorum_config: QuorumConfig | None = None
    joins: bool = False
    """A controller whose disk was not formatted as a voter's: it asks the other controllers for the leader."""
    port: int = LEADER_ENDPOINT.port
    disk_number: int = 0
    """Counts how often its disk was replaced."""
    kraft_versions: tuple[int, int] = (0, 1)
    """What it supports."""

    def __post_init__(self) -> None:
        self.disk = MemoryDisk(self.world)
        self.incarnation.alive = False

    @property
    def directory_id(self) -> Uuid:
        return self.directory_of(self.disk_number)

    def directory_of(self, disk_number: int) -> Uuid:
        return Uuid(bytes([self.id]) * 15 + bytes([self.id + disk_number]))

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint("controller" if self.id == 100 else f"controller-{self.id}", self.port)

    @property
    def voter(self) -> Voter:
        return Voter(BrokerId(self.id), self.directory_id, self.endpoint)

    @property
    def log_directory(self) -> str:
        return f"{METADATA_DIR}/__cluster_metadata-0"

    def start(self) -> None:
        self.incarnation = self.disk.owner = Incarnation()
        self.seen, self.ready, self.stopped_because = Recorder(), False, None
        self.quorum = Quorum(
            MemoryEnv(self.world, self),
            LocalReplica(self.id, self.directory_id, CLUSTER_ID, METADATA_DIR, self.is_voter),
            ConfiguredControllers(
                self.configured[0] if self.configured else None,
                self.world.static_voters,
                [node.endpoint for node in self.world.controllers] if self.joins or not self.is_voter else [],
            ),
            listeners=[self.seen],
            config=self.config,
            quorum_config=self.quorum_config,
        )
        self.quorum.start(self._on_ready)

    def _on_ready(self) -> None:
        self.ready = True

    def kill(self) -> None:
        """SIGKILL: the page cache stays, and peers find their connections reset."""
        self.incarnation.alive = False
        for reset in self.unanswered:
            reset()
        self.unanswered.clear()

    def power_cut(self, random: Random | None = None) -> None:
        self.kill()
        self.disk.crash(random)

    def replace_disk(self) -> None:
        """The process has ended, and an empty directory with an id of its own is in the place of the old one."""
        self.kill()
        self.disk = MemoryDisk(self.world)
        self.disk_number += 1
        self.joins = True


class World:
    def __init__(
        self, observers: int = 0, seed: int = 1, drop: float = 0.0, voters: int = 1, **leader_config: int
    ) -> None:
        self.random = Random(seed)
        self.drop = drop
        self.now_ms = 0
        self.logged: list[tuple[int, str, str, dict[str, object]]] = []
        self._events: list[tuple[int, int, Callable[[], None], Incarnation | None]] = []
        self._number = 0
        self.sent: list[tuple[Any, Any]] = []
        self.controllers = [Node(self, 100 + i, True, config=MetadataLogConfig(**leader_config)) for i in range(voters)]
        self.leader = self.controllers[0]
        """The only controller of most tests."""
        self.cut: set[tuple[int, int]] = set()
        """Messages from the one node to the other are lost."""
        self.observers = [Node(self, i + 1, False) for i in range(observers)]
        self.static_voters: tuple[Voter, ...] = ()
        self.format()

    @property
    def nodes(self) -> list[Node]:
        return [*self.controllers, *self.observers]

    def format(self) -> None:
        voters = [node.voter for node in self.controllers]
        for node in self.controllers:
            done: list[OSError | None] = []
            node.disk.owner = None
            write_bootstrap(node.disk, METADATA_DIR, voters, 1_700_000_000_000, done.append)
            self.run_until(lambda found=done: bool(found))  # type: ignore[misc]
            assert done == [None]

    def configure_voters(self) -> None:
        """controller.quorum.voters on every node, and no voters on any disk (kraft.version 0)."""
        for node in self.controllers:
            node.disk = MemoryDisk(self)
            node.configured = [node.voter]
        self.static_voters = tuple(replace(node.voter, directory_id=ZERO_UUID) for node in self.controllers)

    def join(self) -> Node:
        """Another controller, started with an empty disk."""
        node = Node(self, 100 + len(self.controllers), True, joins=True)
        node.configured = [node.voter]
        self.controllers.append(node)
        node.start()
        return node

    def ask(self, node: Node, request: Any) -> list[Any]:
        """Send a request of an operator to a node; the list has its answer once it is given."""
        kind = type(request)
        wire = bytes(records_view(encode(request, kind.MAX_VERSION)))
        answers: list[Any] = []
        response = handle(node, decode(kind, wire, kind.MAX_VERSION))
        if isinstance(response, Pending):
            response.then(answers.append)
        else:
            answers.append(response)
        return answers

    def later(self, delay_ms: int, fn: Callable[[], None], owner: Incarnation | None) -> Callable[[], None]:
        cancelled: list[bool] = []
        self._number += 1
        entry = (self.now_ms + delay_ms, self._number, lambda: None if cancelled else fn(), owner)
        heapq.heappush(self._events, entry)
        return lambda: cancelled.append(True)

    def isolate(self, node: Node) -> None:
        """No message passes between this node and any other."""
        for other in self.nodes:
            self.cut |= {(node.id, other.id), (other.id, node.id)}

    def heal(self) -> None:
        self.cut.clear()

    def has_events(self) -> bool:
        return bool(self._events)

    def step(self) -> None:
        self.now_ms, _, fn, owner = heapq.heappop(self._events)
        if owner is None or owner.alive:
            try:
                fn()
            except PowerCut:
                node = next(n for n in self.nodes if n.incarnation is owner)
                node.power_cut()

    def run_until(self, condition: Callable[[], bool], limit_ms: int = 60_000) -> None:
        end_ms = self.now_ms + limit_ms
        while not condition():
            assert self._events and self._events[0][0] <= end_ms, "the condition was not reached in time"
            self.step()

    def run_for(self, duration_ms: int) -> None:
        end_ms = self.now_ms + duration_ms
        while self._events and self._events[0][0] <= end_ms:
            self.step()
        self.now_ms = end_ms

    def send(
        self, sender: Incarnation, to: Endpoint, request: Any, on_result: Callable[[Any], None], timeout_ms: int
    ) -> None:
        """Requests and answers go through the codec: what arrives is what the wire carries."""
        answered: list[bool] = []
        target = next((node for node in self.controllers if node.endpoint == to), None)
        source = next((node.id for node in self.nodes if node.incarnation is sender), -1)

        def answer(result: Any) -> None:
            if not answered:
                answered.append(True)
                on_result(result)

        def respond(response: Any) -> None:
            kind = type(response)
            wire = bytes(records_view(encode(response, kind.MAX_VERSION)))
            if self.random.random() >= self.drop and (target.id, source) not in self.cut:
                self.sent.append((request, decode(kind, wire, kind.MAX_VERSION)))
                self.later(self._delay(), lambda: answer(decode(kind, wire, kind.MAX_VERSION)), sender)

        def deliver() -> None:
            if target is None or not target.incarnation.alive:
                answer(SendFailure("disconnected"))
                return
            if (source, target.id) in self.cut:
                return
            if (target.id, source) not in self.cut:
                target.unanswered.append(lambda: self.later(1, lambda: answer(SendFailure("disconnected")), sender))
            wire = bytes(records_view(encode(request, type(request).MAX_VERSION)))
            response = handle(target, decode(type(request), wire, type(request).MAX_VERSION))
            if isinstance(response, Pending):
                response.then(respond)
            else:
                respond(response)

        self.later(timeout_ms, lambda: answer(SendFailure("timed-out")), sender)
        if self.random.random() >= self.drop:
            self.later(self._delay(), lambda: deliver() if sender.alive else None, None)

    def _delay(self) -> int:
        return self.random.randrange(1, 6)

    # what most tests do

    def start_leader(self) -> None:
        self.leader.start()
        self.run_until(lambda: self.leader.ready or self.leader.stopped_because is not None)
        assert self.leader.stopped_because is None

    def start(self) -> None:
        self.start_leader()
        for observer in self.observers:
            observer.start()

    def append(self, *names: str) -> int:
        return self.leader.quorum.append([topic(name) for name in names])

    def commit(self, *names: str) -> int:
        base_offset = self.append(*names)
        self.run_until(lambda: self.leader.quorum.high_watermark > base_offset + len(names) - 1)
        return base_offset

    def run_until_all_have(self, *names: str) -> None:
        self.run_until(lambda: all(o.seen.names == list(names) for o in self.observers))


def handle(node: Node, request: Any) -> Any:
    quorum = node.quorum
    if isinstance(request, ApiVersionsRequest):
        lowest, highest = node.kraft_versions
        feature = ApiVersionsResponse.SupportedFeatureKey(name="kraft.version", min_version=lowest, max_version=highest)
        return ApiVersionsResponse(api_keys=[VOTE_API], supported_features=[feature], finalized_features=[])
    if isinstance(request, AddRaftVoterRequest):
        return quorum.add_raft_voter(request)
    if isinstance(request, RemoveRaftVoterRequest):
        return quorum.remove_raft_voter(request)
    if isinstance(request, UpdateRaftVoterRequest):
        return quorum.update_raft_voter(request)
    if isinstance(request, FetchRequest):
        return quorum.fetch(request)
    if isinstance(request, FetchSnapshotRequest):
        return quorum.fetch_snapshot(request)
    if isinstance(request, VoteRequest):
        return quorum.vote(request)
    if isinstance(request, BeginQuorumEpochRequest):
        return quorum.begin_quorum_epoch(request)
    if isinstance(request, EndQuorumEpochRequest):
        return quorum.end_quorum_epoch(request)
    assert isinstance(request, DescribeQuorumRequest)
    return quorum.describe_quorum(request)


def topic(name: str) -> TopicRecord:
    return TopicRecord(name=name, topic_id=name.encode().ljust(16, b"\0")[:16])


def no_op() -> NoOpRecord:
    return NoOpRecord()


def add_request(node: Node, **fields: Any) -> AddRaftVoterRequest:
    """As an operator sends it to add the controller."""
    nested = AddRaftVoterRequest
    listener = nested.Listener(name="CONTROLLER", host=node.endpoint.host, port=node.endpoint.port)
    values = {"voter_id": node.id, "voter_directory_id": node.directory_id, "listeners": [listener], **fields}
    return nested(cluster_id=CLUSTER_ID, timeout_ms=1_000, **values)


def remove_request(node: Node, **fields: Any) -> RemoveRaftVoterRequest:
    values = {"voter_id": node.id, "voter_directory_id": node.directory_id, **fields}
    return RemoveRaftVoterRequest(cluster_id=CLUSTER_ID, **values)


def update_request(node: Node, epoch: int, **fields: Any) -> UpdateRaftVoterRequest:
    """As the voter itself sends it."""
    nested = UpdateRaftVoterRequest
    listener = nested.Listener(name="CONTROLLER", host=node.endpoint.host, port=node.endpoint.port)
    lowest, highest = node.kraft_versions
    feature = nested.KRaftVersionFeature(min_supported_version=lowest, max_supported_version=highest)
    values = {
        "voter_id": node.id,
        "voter_directory_id": node.directory_id,
        "listeners": [listener],
        "k_raft_version_feature": feature,
        **fields,
    }
    return nested(cluster_id=CLUSTER_ID, current_leader_epoch=epoch, **values)


__all__ = ["FetchResponse", "FetchSnapshotResponse", "World", "no_op", "topic"]
