"""A whole node with an authorizer, in memory, and clients that say who they are: `guarded.ask(request, principal=...)`.

Requests and answers go through the codec, as on a socket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from heirlog.env import Region
from heirlog.metadata.acls import CLUSTER_NAME, AclOperation, AclPermissionType, PatternType, ResourceType
from heirlog.node.connection import ClientConnection
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.frames import RequestHeader, decode_response, encode_request, encode_response
from heirlog.protocol.messages import (
    AddPartitionsToTxnRequest,
    CreateAclsRequest,
    CreateTopicsRequest,
    DeleteAclsRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ProduceRequest,
)
from heirlog.protocol.primitives import Struct
from heirlog.sim.cluster import SimCluster
from heirlog.sim.world import World

ADMIN, ALICE, HOST = "User:admin", "User:alice", "10.0.0.1"
BROKER, CONTROLLER = "PLAINTEXT", "CONTROLLER"
WAIT_MS = 30_000
CONFIG = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:admin",
    "auto.create.topics.enable": "true",
    "min.insync.replicas": "1",
    "default.replication.factor": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
T_DENIED, C_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED
G_DENIED = ErrorCode.GROUP_AUTHORIZATION_FAILED
X_DENIED = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
DENIALS = (T_DENIED, G_DENIED, C_DENIED, X_DENIED)


class Wire:
    """The body's end of a connection."""

    def __init__(self, listener: str, host: str) -> None:
        self.listener = listener
        self.peer_host = host
        self.answers: list[tuple[RequestHeader, bytes]] = []
        self.closed = False

    def send(self, header: RequestHeader, response: Any) -> None:
        parts = encode_response(header.api_key, header.api_version, header.correlation_id, response)
        self.answers.append((header, b"".join(part.read() if isinstance(part, Region) else part for part in parts)))

    def close(self) -> None:
        self.closed = True

    def pause(self) -> None:
        pass

    def resume(self) -> None:
        pass

    def run(self, handler: Callable[[], None]) -> None:
        handler()


class Guarded:
    """One node with both roles."""

    def __init__(self, **config: str) -> None:
        self.world = World(7)
        self.log: list[Any] = []
        self.world.log_listeners.append(self.log.append)
        given = CONFIG | {name.replace("_", "."): value for name, value in config.items()}
        self.cluster = SimCluster(self.world, brokers=1, combined=True, config=given)
        self.cluster.format()
        self.cluster.start_all()
        self.wait(lambda: self.cluster.broker(1).node is not None and bool(self.node.image.brokers))
        self.wait(lambda: not any(broker.fenced for broker in self.node.image.brokers.values()))

    @property
    def node(self) -> Any:
        return self.cluster.broker(1).node

    def wait(self, done: Callable[[], bool]) -> None:
        assert self.cluster.run_until(done, WAIT_MS), "the node does not do what it is asked in time"

    def connect(
        self, principal: str = ALICE, host: str = HOST, listener: str = BROKER, *, by_delegation_token: bool = False
    ) -> tuple[Wire, ClientConnection]:
        wire = Wire(listener, host)
        connection = self.node.connected(wire)
        connection.principal = principal
        connection.by_delegation_token = by_delegation_token
        return wire, connection

    def ask(
        self,
        request: Any,
        version: int | None = None,
        principal: str = ALICE,
        host: str = HOST,
        listener: str = BROKER,
        *,
        by_delegation_token: bool = False,
    ) -> Any:
        """The answer; None if the connection was closed instead."""
        wire, connection = self.connect(principal, host, listener, by_delegation_token=by_delegation_token)
        route = self.node.routes(listener).get(request.API_KEY)
        newest = request.MAX_VERSION if route is None else route.max_version
        spoken = newest if version is None else version
        header = RequestHeader(request.API_KEY, spoken, 1, "guarded")
        frame = b"".join(encode_request(header, request))[4:]  # type: ignore[arg-type]
        connection.received_frame(memoryview(bytearray(frame)))
        self.wait(lambda: bool(wire.answers) or wire.closed)
        connection.closed()
        if not wire.answers:
            return None
        return decode_response(request.API_KEY, spoken, memoryview(wire.answers[0][1])[4:])[1]

    def create_topics(self, *names: str) -> None:
        Topic = CreateTopicsRequest.CreatableTopic
        wanted = [Topic(name=name, num_partitions=1, replication_factor=1) for name in names]
        self.ask(CreateTopicsRequest(topics=wanted, timeout_ms=5000), principal=ADMIN)
        self.wait(lambda: set(names) <= set(self.node.image.topic_ids))

    def ask_again(self, request: Any, version: int | None = None, principal: str = ALICE) -> Any:
        """The answer; asked until the coordinator is there and has no other change of the id in progress."""
        passing = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_COORDINATOR)
        for _ in range(100):
            answer = self.ask(request, version, principal)
            if answer.error_code not in passing:
                return answer
            self.world.run_for(50)
        raise AssertionError(f"{request} is never answered")

    def find_transaction_coordinator(self, transactional_id: str) -> None:
        """Creates `__transaction_state`."""
        find = FindCoordinatorRequest(coordinator_keys=[transactional_id], key_type=1)
        self.wait(lambda: not self.ask(find, principal=ADMIN).coordinators[0].error_code)

    def begin_transaction(self, transactional_id: str, topic: str) -> tuple[int, int]:
        """A transaction with partition 0 of the topic; its producer's id and epoch."""
        self.find_transaction_coordinator(transactional_id)
        init = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
        got = self.ask_again(init, principal=ADMIN)
        add = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=got.producer_id,
            v3_and_below_producer_epoch=got.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=[0])],
        )
        (added,) = self.ask(add, 3, ADMIN).results_by_topic_v3_and_below
        assert added.results_by_partition[0].partition_error_code == ErrorCode.NONE
        return got.producer_id, got.producer_epoch

    def topic_id(self, name: str) -> bytes:
        found: bytes = self.node.image.topic_ids[name]
        return found

    def write(self, topic: str, *records: bytes) -> None:
        """One batch of these values."""
        answer = self.ask(produce(topic, records=records or (b"v",)), 12, ADMIN)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE

    def allow(
        self,
        operation: AclOperation,
        kind: ResourceType,
        name: str = CLUSTER_NAME,
        principal: str = ALICE,
        host: str = "*",
        pattern: PatternType = PatternType.LITERAL,
        permission: AclPermissionType = AclPermissionType.ALLOW,
    ) -> None:
        creation = CreateAclsRequest.AclCreation(
            resource_type=kind,
            resource_name=name,
            resource_pattern_type=pattern,
            principal=principal,
            host=host,
            operation=operation,
            permission_type=permission,
        )
        before = self.node.image.acls.version
        (result,) = self.ask(CreateAclsRequest(creations=[creation]), principal=ADMIN).results
        assert result.error_code == 0, result
        self.wait(lambda: self.node.image.acls.version > before)

    def forget_acls(self) -> None:
        everything = DeleteAclsRequest.DeleteAclsFilter(
            resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1
        )
        self.ask(DeleteAclsRequest(filters=[everything]), principal=ADMIN)
        self.wait(lambda: not self.node.image.acls.by_id)


def produce(
    *topics: str, acks: int = 1, transactional_id: str | None = None, records: tuple[bytes, ...] = (b"v",)
) -> ProduceRequest:
    batch = encode_batch([(b"k", value, (), 0) for value in records])
    data = ProduceRequest.PartitionProduceData(index=0, records=batch)
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=1000,
        topic_data=[ProduceRequest.TopicProduceData(name=name, partition_data=[data]) for name in topics],
    )


def shown(answer: Any) -> dict[str | None, int]:
    """The error code of each topic, by its name."""
    return {topic.name: topic.error_code for topic in answer.topics}


def denials(message: Any) -> list[int]:
    """Every error code of an answer that says that something was not allowed."""
    return [code for code in _codes(message) if code in DENIALS]


def _codes(value: Any) -> Iterator[int]:
    if isinstance(value, list):
        for one in value:
            yield from _codes(one)
    elif isinstance(value, Struct):
        for name in value.FIELDS:
            field = getattr(value, name)
            if name in ("error_code", "partition_error_code"):
                yield field
            else:
                yield from _codes(field)
