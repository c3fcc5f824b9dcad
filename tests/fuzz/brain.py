"""A whole node on a simulated disk, spoken to in bytes: what fuzzers and their replay share.

    input     flags | length, frame | length, frame | ... | frame

    flags     bit 0    the controller's listener instead of the broker's
              bit 1    the length and CRC of every record batch in a Produce request are made right first
              bits 2-3 how much virtual time passes after each frame

The node has both roles, one log directory, and topics of each kind (`TOPICS`). An input is judged by what a server
would do with it: any exception, an answer that cannot be encoded, a node that ended, or another client that is not
answered is a finding. State stays from one input to the next, as in life; `History` keeps the inputs of one node, so
that a finding can be replayed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from apis import guarded

from heirlog.node import wire
from heirlog.node.connection import ClientConnection
from heirlog.node.sasl_connection import SaslConnection
from heirlog.protocol.batch import HEADER_SIZE
from heirlog.protocol.checksum import crc32c
from heirlog.protocol.frames import RequestHeader, encode_request
from heirlog.protocol.messages import ApiVersionsRequest, CreateTopicsRequest, ProduceRequest
from heirlog.sim.cluster import SimCluster
from heirlog.sim.world import LogLine, World

CONTROLLER_LISTENER = 1
REPAIR_BATCHES = 2
TIMES_MS = (0, 1, 50, 7000)
INPUTS_PER_NODE = 400
START_LIMIT_MS = 30_000
FRAMES_MAX = 40
"""Of one input: more say nothing that these do not."""
CONFIG = {
    "unstable.api.versions.enable": "true",
    "transaction.two.phase.commit.enable": "true",
    "auto.create.topics.enable": "true",
    "min.insync.replicas": "1",
    "default.replication.factor": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "100",
}
TOPICS: dict[str, dict[str, str]] = {
    "t": {},
    "c": {"cleanup.policy": "compact"},
    "z": {"compression.type": "lz4"},
    "l": {"message.timestamp.type": "LogAppendTime"},
}
LISTENERS = ("PLAINTEXT", "CONTROLLER")
_LENGTH = struct.Struct(">H")


class Finding(AssertionError):
    """Something that input must not be able to cause."""


class Wire(guarded.Wire):
    """A connection whose node's end is at hand. What is unpredictable on a socket is always the same."""

    def __init__(self, listener: str) -> None:
        super().__init__(listener, "fuzzer")
        self.client: ClientConnection | SaslConnection | None = None

    def send(self, header: RequestHeader, response: Any) -> None:
        if not self.closed:
            super().send(header, response)

    def send_token(self, token: bytes) -> None:
        pass

    def authenticated(self) -> None:
        pass

    def random_bytes(self, count: int) -> bytes:
        return bytes(range(count))


class Brain:
    """One node, started and with its topics."""

    config: Mapping[str, str] = CONFIG

    def __init__(self) -> None:
        self.world = World(7)
        self.world.log_listeners.append(self._logged)
        self.trouble: list[str] = []
        self.cluster = SimCluster(self.world, brokers=1, combined=True, config=self.config)
        self.cluster.format()
        self.cluster.start_all()
        self._wait(lambda: self.machine.running is not None and bool(self.node.image.brokers))
        self._wait(lambda: not any(broker.fenced for broker in self.node.image.brokers.values()))
        self.prepare()

    def prepare(self) -> None:
        Topic, Config = CreateTopicsRequest.CreatableTopic, CreateTopicsRequest.CreatableTopicConfig
        wanted = [
            Topic(
                name=name,
                num_partitions=2,
                replication_factor=1,
                configs=[Config(name=key, value=value) for key, value in config.items()],
            )
            for name, config in TOPICS.items()
        ]
        self.ask(CreateTopicsRequest(topics=wanted, timeout_ms=5000))
        self._wait(lambda: set(TOPICS) <= set(self.node.image.topic_ids))
        self.topic_ids: dict[str, bytes] = dict(self.node.image.topic_ids)
        """As they began: an input may delete them."""

    @property
    def machine(self) -> Any:
        return self.cluster.broker(1)

    @property
    def node(self) -> Any:
        assert self.machine.node is not None
        return self.machine.node

    def connect(self, listener: str = LISTENERS[0]) -> Wire:
        wire = Wire(listener)
        wire.client = self.node.accepted(wire)
        return wire

    def ask(self, request: Any, version: int | None = None) -> bytes:
        """The answer to one request on a connection of its own, in virtual time."""
        connection = self.connect()
        header = RequestHeader(request.API_KEY, request.MAX_VERSION if version is None else version, 1, "brain")
        self.receive(connection, _frame(header, request))
        self._wait(lambda: bool(connection.answers))
        self.hang_up(connection)
        return connection.answers[0][1]

    def receive_request(self, connection: Wire, request: Any, version: int) -> None:
        self.receive(connection, _frame(RequestHeader(request.API_KEY, version, 1, "brain"), request))

    def receive(self, connection: Wire, frame: bytes) -> None:
        assert connection.client is not None
        connection.client.received_frame(memoryview(bytearray(frame)))

    def hang_up(self, connection: Wire) -> None:
        connection.closed = True
        if connection.client is not None:
            connection.client.closed()

    def feed(self, data: bytes) -> Wire:
        """One input. Raises Finding, or whatever the node raised."""
        flags, frames = split(data)
        connection = self.connect(LISTENERS[flags & CONTROLLER_LISTENER])
        for frame in frames:
            if connection.closed or (connection.client is not None and connection.client.paused):
                break
            given = self._repaired(connection, frame) if flags & REPAIR_BATCHES else frame
            self.receive(connection, given)
            self.world.run_for(TIMES_MS[flags >> 2 & 3])
        self.hang_up(connection)
        self.world.run_for(1)
        self.check()
        return connection

    def check(self) -> None:
        """The node lives, said nothing of an error of its own, and serves others."""
        if self.machine.running is None:
            raise Finding(f"the node ended: {self.machine.process.exit}")
        if self.trouble:
            raise Finding(f"the node said: {self.trouble}")
        other = self.connect()
        request = ApiVersionsRequest(client_software_name="other", client_software_version="1")
        self.receive_request(other, request, 4)
        if len(other.answers) != 1:
            raise Finding("another client was not answered")
        self.hang_up(other)

    def _repaired(self, connection: Wire, frame: bytes) -> bytes:
        whole = bytearray(frame)
        decoded = wire.decode(self.node.listener(connection.listener), memoryview(whole))
        if not isinstance(decoded, wire.RefusedFrame) and isinstance(decoded[1], ProduceRequest):
            for topic in decoded[1].topic_data:
                for partition in topic.partition_data:
                    if isinstance(partition.records, memoryview):
                        repair(partition.records)
        return bytes(whole)

    def _logged(self, line: LogLine) -> None:
        if line.level == "error" or line.event == "request-failed":
            self.trouble.append(str(line))

    def _wait(self, done: Callable[[], bool]) -> None:
        if not self.cluster.run_until(done, START_LIMIT_MS):
            raise Finding("the node does not do what it is asked in time")


def _frame(header: RequestHeader, request: Any) -> bytes:
    return b"".join(encode_request(header, request))[4:]  # type: ignore[arg-type]


def split(data: bytes) -> tuple[int, list[bytes]]:
    if not data:
        return 0, []
    frames, at = [], 1
    while at < len(data) and len(frames) < FRAMES_MAX:
        if at + _LENGTH.size > len(data):
            break
        (size,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        frames.append(data[at : at + size])
        at += size
    return data[0], frames


def joined(flags: int, frames: Sequence[bytes]) -> bytes:
    """The input that `split` takes apart."""
    return bytes([flags]) + b"".join(_LENGTH.pack(min(len(frame), 0xFFFF)) + frame for frame in frames)


def repair(records: memoryview | bytearray) -> None:
    """Make length and CRC of what may be a batch right, in place, so that what lies behind them is looked at."""
    if len(records) < HEADER_SIZE:
        return
    struct.pack_into(">i", records, 8, len(records) - 12)
    records[16] = 2
    struct.pack_into(">I", records, 17, crc32c(memoryview(records)[21:]))


class History:
    """A brain that is replaced after a while, and the inputs that it has had."""

    def __init__(self, make: Callable[[], Brain] = Brain) -> None:
        self.inputs: list[bytes] = []
        self._make = make
        self._brain: Brain | None = None

    @property
    def brain(self) -> Brain:
        if self._brain is None or len(self.inputs) >= INPUTS_PER_NODE:
            self._brain = self._make()
            self.inputs = []
        return self._brain

    def feed(self, data: bytes) -> None:
        brain = self.brain
        self.inputs.append(data)
        brain.feed(data)

    def forget(self) -> None:
        self._brain = None
        self.inputs = []
