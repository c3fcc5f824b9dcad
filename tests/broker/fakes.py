"""What the broker's tests stand on: a clock that moves by hand, disks in memory, and requests that go nowhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from heirlog.broker.followers import Peers
from heirlog.broker.partition import Partition
from heirlog.env import Cancel
from heirlog.metadata.config_def import StaticConfig, parse_static
from heirlog.metadata.state import BrokerState, PartitionState
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.types import BrokerEpoch, BrokerId, Endpoint, LeaderEpoch, PartitionEpoch, Uuid
from heirlog.sim.disk import SimDisk, SimFiles
from heirlog.sim.world import World
from heirlog.storage.config import LogConfig
from heirlog.storage.log import Log

TOPIC_ID = Uuid(b"topic-id-of-foo!")
CONTROLLER = Endpoint("controller", 9093)


@dataclass
class Sent:
    to: Endpoint
    channel: str
    request: Any
    on_result: Callable[[Any], None]


class FakeEnv:
    """`advance` moves the clock and runs timers and flushes; `sent` holds requests until a test answers them."""

    def __init__(self) -> None:
        self.world = World(1)
        host = self.world.host("broker")
        disk = SimDisk(self.world, host, self.world.stream("disk"))
        disk.flush_us = (1, 2)
        self.process = self.world.begin(host)
        self.files = SimFiles(disk, self.process)
        self.random = self.world.stream("node")
        self.sent: list[Sent] = []
        self.events: list[tuple[str, dict[str, object]]] = []
        self.stopped: tuple[int, str] | None = None

    def log(self, level: str, event: str, /, **values: object) -> None:
        self.events.append((event, values))

    def now_ms(self) -> int:
        return self.world.now_us // 1000

    def wall_ms(self) -> int:
        return 1_700_000_000_000 + self.now_ms()

    def send(self, to: Endpoint, channel: str, request: Any, on_result: Callable[[Any], None], timeout_ms: int) -> None:
        self.sent.append(Sent(to, channel, request, on_result))

    def call_later(self, delay_ms: int, fn: Callable[[], None]) -> Cancel:
        return self.world.schedule(delay_ms * 1000, self.process, "timer", fn).cancel

    def stop(self, exit_code: int, reason: str) -> None:
        self.stopped = (exit_code, reason)

    def advance(self, ms: int) -> None:
        self.world.run_for(ms)

    def take(self, channel: str) -> Sent:
        """The oldest unanswered request on a channel."""
        found = next(sent for sent in self.sent if sent.channel == channel)
        self.sent.remove(found)
        return found


def batch(count: int = 1, base_offset: int = 0, leader_epoch: int = -1, **kwargs: Any) -> bytearray:
    records = [(None, b"value-%d" % i, (), 1_700_000_000_000 + i) for i in range(count)]
    return encode_batch(records, base_offset=base_offset, leader_epoch=leader_epoch, **kwargs)


def open_log(env: FakeEnv, topic: str = "foo", index: int = 0) -> Log:
    path = f"/data/{topic}-{index}"
    env.files.mkdirs(path)
    return Log.open(
        env.files,
        path,
        topic,
        index,
        LogConfig(),
        clean=False,
        recovery_point=0,
        log_start_offset=0,
        wall_ms=env.wall_ms(),
    )


def fill(log: Log, end_offset: int, leader_epoch: int) -> None:
    """Append single-record batches of `leader_epoch` up to `end_offset`."""
    while log.log_end_offset < end_offset:
        log.append_as_follower(batch(1, log.log_end_offset, leader_epoch), leader_epoch)


def registered(broker_id: int, epoch: int | None = None, **kwargs: Any) -> BrokerState:
    return BrokerState(
        id=BrokerId(broker_id),
        epoch=BrokerEpoch(100 + broker_id if epoch is None else epoch),
        incarnation_id=Uuid(bytes(16)),
        fenced=kwargs.pop("fenced", False),
        **kwargs,
    )


def state(
    replicas: list[int],
    isr: list[int] | None = None,
    leader: int = 1,
    leader_epoch: int = 5,
    partition_epoch: int = 1,
    **kwargs: Any,
) -> PartitionState:
    return PartitionState(
        replicas=ids(replicas),
        isr=ids(replicas if isr is None else isr),
        leader=BrokerId(leader),
        leader_epoch=LeaderEpoch(leader_epoch),
        partition_epoch=PartitionEpoch(partition_epoch),
        **kwargs,
    )


def ids(brokers: list[int]) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(broker) for broker in brokers)


def partition_on(
    env: FakeEnv, broker: int = 1, brokers: list[int] | None = None, high_watermark: int = 0, end_offset: int = 0
) -> Partition:
    """Idle, with a log of epoch-0 records."""
    peers = Peers(BrokerId(broker), {BrokerId(b): registered(b) for b in brokers or [1, 2, 3, 4]})
    peers.broker_epoch = BrokerEpoch(100 + broker)
    log = open_log(env)
    fill(log, end_offset, 0)
    return Partition(TOPIC_ID, "foo", 0, log, peers, high_watermark=high_watermark, lag_max_ms=30_000)


def static_config(broker: int = 1, **properties: str) -> StaticConfig:
    """Names with underscores for dots."""
    given = {
        "process.roles": "broker",
        "node.id": str(broker),
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": "100@controller:9093",
        "listeners": f"PLAINTEXT://broker{broker}:9092",
        "log.dirs": "/data",
    }
    given.update({name.replace("_", "."): value for name, value in properties.items()})
    return parse_static(given)
