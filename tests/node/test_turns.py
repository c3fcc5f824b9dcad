"""Many clients that change very much at once: the controller handles one after the other, and others in between.

A turn of the event loop is one event of the simulator here; everything that a test sends at once comes in one turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from apis.guarded import CONTROLLER, Wire
from controller.cluster import FAR, registration

from heirlog.apis.common.envelopes import envelope_of
from heirlog.context import ANONYMOUS, Context
from heirlog.controller.turn_budget import RECORDS_PER_TURN
from heirlog.node.connection import ClientConnection
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.frames import RequestHeader, decode_response
from heirlog.protocol.messages import (
    BrokerHeartbeatRequest,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DescribeClusterRequest,
    UnregisterBrokerRequest,
)
from heirlog.sim.cluster import CLUSTER_ID, SimCluster
from heirlog.sim.world import World

BROKER = 11
CLIENTS, TOPICS, PARTITIONS = 10, 2, 1_000
RECORDS = TOPICS * (PARTITIONS + 1)
WAIT_MS = 20_000


class Turns:
    """An active controller, and a broker that only sends what a test says."""

    def __init__(self) -> None:
        # no answer waits for what that broker has fetched
        self.cluster = SimCluster(World(3), brokers=0, controllers=1)
        self.cluster.format()
        self.cluster.start_all()
        self.ends: list[int] = []
        """Of the metadata log, after each event since the last request."""
        self.wait(lambda: self.cluster.controller.running is not None)
        self.node: Any = self.cluster.controller.running
        self.wait(lambda: self.node._controller is not None and self.node.controller.is_active)
        self.epoch = self.ask(registration(BROKER, cluster_id=CLUSTER_ID), 4).broker_epoch
        self.ask(self.heartbeat_of(FAR), 1)

    def wait(self, done: Callable[[], bool]) -> None:
        def is_done() -> bool:
            if self.ends:
                self.ends.append(self.node.controller.next_offset)
            return done()

        assert self.cluster.run_until(is_done, WAIT_MS)

    def send(self, request: Any, version: int | None = None) -> Wire:
        """It has come in this turn, on a connection of its own."""
        wire = Wire(CONTROLLER, "host")
        connection: ClientConnection = self.node.connected(wire)
        self.connection = connection
        connection.received(header_of(request, version), request)
        return wire

    def ask(self, request: Any, version: int | None = None) -> Any:
        wire = self.send(request, version)
        self.wait(lambda: bool(wire.answers))
        return answer_of(wire)

    def heartbeat_of(self, applied: int) -> BrokerHeartbeatRequest:
        return BrokerHeartbeatRequest(broker_id=BROKER, broker_epoch=self.epoch, current_metadata_offset=applied)


def header_of(request: Any, version: int | None = None) -> RequestHeader:
    return RequestHeader(request.API_KEY, request.MAX_VERSION if version is None else version, 1, "client")


def answer_of(wire: Wire) -> Any:
    ((header, frame),) = wire.answers
    return decode_response(ApiKey(header.api_key), header.api_version, memoryview(frame)[4:])[1]


def creating(client: int) -> CreateTopicsRequest:
    topics = [
        CreateTopicsRequest.CreatableTopic(name=f"t-{client}-{number}", num_partitions=PARTITIONS, replication_factor=1)
        for number in range(TOPICS)
    ]
    return CreateTopicsRequest(topics=topics, timeout_ms=WAIT_MS)


def forwarded(request: Any) -> Any:
    """As a broker sends on what a client has asked."""
    header = header_of(request)
    return envelope_of(header, request, Context(header.api_version, "client", "1.2.3.4", "B", object(), ANONYMOUS))


def inside(envelope: Any, request: Any) -> Any:
    assert envelope.error_code == ErrorCode.NONE
    return decode_response(request.API_KEY, request.MAX_VERSION, memoryview(bytes(envelope.response_data)))[1]


def codes(answer: CreateTopicsResponse) -> set[int]:
    return {topic.error_code for topic in answer.topics}


@pytest.fixture
def turns() -> Iterator[Turns]:
    yield Turns()


def test_each_turn_creates_the_topics_of_one_client_and_a_heartbeat_does_not_wait(turns: Turns) -> None:
    start = turns.node.controller.next_offset
    turns.ends.append(start)
    wires = [turns.send(forwarded(creating(client)) if client % 2 else creating(client)) for client in range(CLIENTS)]
    assert turns.node.controller.next_offset == start + RECORDS, "the others have to wait"

    asked = DescribeClusterRequest(endpoint_type=2)
    assert turns.send(asked).answers, "what changes nothing does not wait"
    turns.send(turns.heartbeat_of(FAR + 1), 1)
    assert turns.node.controller.sessions.metadata_offset(BROKER, turns.epoch) == FAR + 1, "nor does a heartbeat"

    turns.wait(lambda: all(wire.answers for wire in wires))
    per_turn = [after - before for before, after in pairwise(turns.ends)]
    assert max(per_turn) == RECORDS <= 1.01 * RECORDS_PER_TURN
    for client, wire in enumerate(wires):
        answer = answer_of(wire)
        if client % 2:
            assert answer.metadata_offset >= start + (client + 1) * RECORDS - 1, "the last record of this client"
            assert answer.metadata_offset < start + (client + 1) * RECORDS + 10
            answer = inside(answer, creating(client))
        assert codes(answer) == {ErrorCode.NONE}


def test_waiting_changes_are_refused_when_the_controller_is_no_longer_active(turns: Turns) -> None:
    wires = [turns.send(creating(client)) for client in range(3)]
    turns.node.controller.on_leader_change(-1, turns.node.controller.epoch + 1, False)
    turns.wait(lambda: all(wire.answers for wire in wires))
    assert [codes(answer_of(wire)) for wire in wires] == [{ErrorCode.NOT_CONTROLLER}] * 3


def test_a_client_that_leaves_takes_its_change_along(turns: Turns) -> None:
    start = turns.node.controller.next_offset
    turns.send(creating(0))
    gone = turns.send(creating(1))
    turns.connection.closed()
    last = turns.send(creating(2))
    turns.wait(lambda: bool(last.answers))
    assert not gone.answers
    assert turns.node.controller.next_offset < start + 3 * RECORDS


def test_a_forwarded_change_of_several_turns_names_the_offset_of_its_last_record(turns: Turns) -> None:
    for client in range(3):
        turns.ask(creating(client))
    request = UnregisterBrokerRequest(broker_id=BROKER)
    start = turns.node.controller.next_offset
    turns.ends[:] = [start]
    answer = turns.ask(forwarded(request))
    assert inside(answer, request).error_code == ErrorCode.NONE
    assert BROKER not in turns.node.image.brokers
    assert answer.metadata_offset >= start + 3 * TOPICS * PARTITIONS, "one record per partition, and that of the broker"
    assert max(after - before for before, after in pairwise(turns.ends)) <= RECORDS_PER_TURN + 1
