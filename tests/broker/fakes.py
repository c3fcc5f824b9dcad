"""What the broker's tests stand on: a clock that moves by hand, disks in memory, and requests that go nowhere."""

from __future__ import annotations

from typing import Any

from heirlog.broker.broker import Broker
from heirlog.broker.followers import RegisteredBrokers
from heirlog.broker.partition import Partition
from heirlog.context import Context
from heirlog.metadata.config_def import StaticConfig, parse_static
from heirlog.metadata.image import Image
from heirlog.metadata.state import BrokerRegistration, ListenerState, PartitionRegistration, TopicImage
from heirlog.pending import Pending
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.messages import BrokerHeartbeatResponse, BrokerRegistrationResponse, FetchRequest, ProduceRequest
from heirlog.protocol.types import BrokerEpoch, BrokerId, Endpoint, LeaderEpoch, PartitionEpoch, PartitionKey, Uuid
from heirlog.storage.config import LogConfig
from heirlog.storage.identity import format_directory
from heirlog.storage.log import Log
from heirlog.storage.log_directory import LogDirectory
from heirlog.storage.log_loader import load_log
from heirlog.storage.recovery import LastStop, at_once
from heirlog.testing.conformance.body import ManualEnv
from heirlog.testing.conformance.body import Sent as Sent
from heirlog.testing.conformance.broker_layer import fill, ids

TOPIC_ID = Uuid(b"topic-id-of-foo!")
CONTROLLER = Endpoint("controller", 9093)


class FakeEnv(ManualEnv):
    """`advance` moves the clock and runs timers and flushes; `sent` holds requests until a test answers them."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[tuple[str, dict[str, object]]] = []
        self.stopped: tuple[int, str] | None = None

    def log(self, level: str, event: str, /, **values: object) -> None:
        self.events.append((event, values))

    def stop(self, exit_code: int, reason: str) -> None:
        self.stopped = (exit_code, reason)


def batch(
    count: int = 1, base_offset: int = 0, leader_epoch: int = -1, value: bytes = b"value-%d", **kwargs: Any
) -> bytearray:
    records = [(None, value.replace(b"%d", b"%d" % i), (), 1_700_000_000_000 + i) for i in range(count)]
    return encode_batch(records, base_offset=base_offset, leader_epoch=leader_epoch, **kwargs)


def open_log(env: FakeEnv, topic: str = "foo", index: int = 0) -> Log:
    path = f"/data/{topic}-{index}"
    env.files.mkdirs(path)
    return at_once(
        load_log(
            env.files,
            path,
            topic,
            index,
            LogConfig(),
            LastStop(),
            wall_ms=env.wall_ms(),
        )
    )


def registered(broker_id: int, epoch: int | None = None, **kwargs: Any) -> BrokerRegistration:
    return BrokerRegistration(
        id=BrokerId(broker_id),
        epoch=BrokerEpoch(100 + broker_id if epoch is None else epoch),
        incarnation_id=kwargs.pop("incarnation_id", Uuid(bytes(16))),
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
) -> PartitionRegistration:
    return PartitionRegistration(
        replicas=ids(replicas),
        isr=ids(replicas if isr is None else isr),
        leader=BrokerId(leader),
        leader_epoch=LeaderEpoch(leader_epoch),
        partition_epoch=PartitionEpoch(partition_epoch),
        **kwargs,
    )


def partition_on(
    env: FakeEnv, broker: int = 1, brokers: list[int] | None = None, high_watermark: int = 0, end_offset: int = 0
) -> Partition:
    """Idle, with a log of epoch-0 records."""
    registered_brokers = RegisteredBrokers(
        BrokerId(broker), {BrokerId(b): registered(b) for b in brokers or [1, 2, 3, 4]}
    )
    registered_brokers.broker_epoch = BrokerEpoch(100 + broker)
    log = open_log(env)
    fill(log, end_offset, 0)
    return Partition(TOPIC_ID, "foo", 0, log, registered_brokers, high_watermark=high_watermark, lag_max_ms=30_000)


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


CLUSTER_ID = "heirlog-cluster-test-1"
TOPIC_IDS = {
    name: Uuid(name.encode().ljust(16, b"-")[-16:])
    for name in (
        "foo",
        "bar",
        "baz",
        "__consumer_offsets",
        "__transaction_state",
        "__share_group_state",
        "__heirlog_recoveries",
    )
}


class Rig:
    """A whole broker on a `FakeEnv`: the test is its controller, its registered_brokers and its clients."""

    def __init__(self, broker_id: int = 1, env: FakeEnv | None = None, **properties: str) -> None:
        self.env = env or FakeEnv()
        self.static = static_config(broker_id, **properties)
        for number, path in enumerate(self.static.log_dirs):
            if not self.env.files.is_dir(path):
                identity = Uuid(b"directory" + bytes([number]) * 7)
                format_directory(self.env.files, path, CLUSTER_ID, broker_id, identity, lambda error: None)
        self.env.advance(10)
        self.directories = [
            LogDirectory.open(self.env.files, path, cluster_id=CLUSTER_ID, node_id=broker_id, listener=self)
            for path in self.static.log_dirs
        ]
        self.image = Image()
        self.journal = self.image.journal()
        self.caught_up = 0
        self.done = 0
        self.asked_for: list[str] = []
        """Topics that the broker wanted to be created."""
        self.broker = Broker(
            self.env,
            self.static,
            self.directories,
            lambda: CONTROLLER,
            lambda: self.image,
            cluster_id=CLUSTER_ID,
            on_caught_up=self._on_caught_up,
            create_topics=self.asked_for.extend,
        )

    def log_directory_failed(self, directory: LogDirectory, error: OSError) -> None:
        self.broker.replicas.directories.failed(directory, error)

    def log_start_moved(self, key: PartitionKey) -> None:
        self.broker.replicas.log_start_moved(key)

    def _on_caught_up(self) -> None:
        self.caught_up += 1

    def started(self, epoch: int | None = None) -> Rig:
        """Loaded, registered, with an image of brokers 1-3 and running."""
        self.broker.start()
        self.env.advance(10)
        me = self.static.node_id
        self.env.take("heartbeat").on_result(
            BrokerRegistrationResponse(broker_epoch=100 + me if epoch is None else epoch)
        )
        for broker in (1, 2, 3):
            self.set_broker(broker)
        self.set_broker(me, epoch, incarnation_id=self.broker.lifecycle.incarnation_id)
        self.env.take("heartbeat").on_result(BrokerHeartbeatResponse(is_caught_up=True, is_fenced=True))
        for _ in range(100):
            if self.caught_up:
                break
            self.env.advance(1)
        self.publish()
        self.env.take("heartbeat").on_result(BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False))
        return self

    def set_broker(self, broker: int, epoch: int | None = None, **kwargs: Any) -> None:
        listeners = (ListenerState("PLAINTEXT", Endpoint(f"broker{broker}", 9092)),)
        self.image.set_broker(BrokerId(broker), registered(broker, epoch, listeners=listeners, **kwargs), self.journal)

    def set_partition(self, to: PartitionRegistration, topic: str = "foo", index: int = 0) -> None:
        topic_id = TOPIC_IDS[topic]
        if topic_id not in self.image.topics:
            self.image.set_topic(topic_id, TopicImage(topic, topic_id), self.journal)
        self.image.set_partition(topic_id, index, to, self.journal)

    def delete_topic(self, topic: str = "foo") -> None:
        topic_id = TOPIC_IDS[topic]
        for index in list(self.image.partitions[topic_id]):
            self.image.set_partition(topic_id, index, None, self.journal)
        self.image.set_topic(topic_id, None, self.journal)

    def set_config(self, name: str, value: str, topic: str = "foo") -> None:
        self.image.set_config(2, topic, name, value, self.journal)

    def publish(self) -> None:
        self.image.offset += 1
        journal, self.journal = self.journal, self.image.journal()
        self.broker.on_image(self.image, journal)

    def show(self, to: PartitionRegistration, topic: str = "foo", index: int = 0) -> Partition:
        """Publish the partition in that state; what the broker made of it."""
        self.set_partition(to, topic, index)
        self.publish()
        return self.partition(topic, index)

    def partition(self, topic: str = "foo", index: int = 0) -> Partition:
        found = self.broker.replicas.partition((TOPIC_IDS[topic], index))
        assert found is not None
        return found

    def produce(
        self,
        acks: int,
        *records: bytearray,
        topic: str = "foo",
        timeout_ms: int = 1000,
        version: int = 12,
        index: int = 0,
    ) -> Any:
        request = ProduceRequest(
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=[
                ProduceRequest.TopicProduceData(
                    name=topic if version < 13 else "",
                    topic_id=TOPIC_IDS[topic] if version >= 13 else bytes(16),
                    partition_data=[
                        ProduceRequest.PartitionProduceData(index=number, records=memoryview(each))
                        for number, each in enumerate(records or [batch()])
                    ],
                )
            ],
        )
        return self.broker.produce(request, context(version))

    def fetch(
        self,
        offset: int = 0,
        *,
        replica: int = -1,
        replica_epoch: int | None = None,
        leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = 1 << 20,
        partition_max_bytes: int = 1 << 20,
        partitions: list[int] | None = None,
        topic: str = "foo",
        version: int = 17,
        **kwargs: Any,
    ) -> Any:
        request = FetchRequest(
            replica_state=FetchRequest.ReplicaState(
                replica_id=replica, replica_epoch=100 + replica if replica_epoch is None else replica_epoch
            ),
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            topics=[
                FetchRequest.FetchTopic(
                    topic_id=TOPIC_IDS[topic],
                    topic=topic,
                    partitions=[
                        FetchRequest.FetchPartition(
                            partition=index,
                            fetch_offset=offset,
                            current_leader_epoch=leader_epoch,
                            last_fetched_epoch=last_fetched_epoch,
                            partition_max_bytes=partition_max_bytes,
                        )
                        for index in partitions or [0]
                    ],
                )
            ],
            **kwargs,
        )
        return self.broker.fetch(request, context(version))


def context(version: int) -> Context:
    return Context(version, "client", "host", "PLAINTEXT", object())


def answer_of(result: Any) -> Any:
    """The response of a handler, waited for or not; None while it waits."""
    return result._response if isinstance(result, Pending) else result


def restarted(rig: Rig) -> Rig:
    """The same disk, another incarnation; not started yet."""
    rig.broker.shutdown(lambda: None)
    rig.env.take("heartbeat").on_result(BrokerHeartbeatResponse(should_shut_down=True))
    rig.env.advance(100)
    rig.env.sent.clear()
    return Rig(rig.static.node_id, rig.env)
