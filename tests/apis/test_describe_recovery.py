"""DescribeRecovery: what waits for a leader, what a broker says without a controller, and who may ask."""

from __future__ import annotations

from apis.guarded import ADMIN, C_DENIED, CLUSTER, CONTROLLER, Guarded, Wire
from controller.cluster import create, heartbeat, leading
from controller.fakes import Harness
from controller.recovering import back, lost

from heirlog.apis.describe_recovery import WAIT_MS
from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.frames import RequestHeader, decode_response, encode_request
from heirlog.protocol.messages import DescribeRecoveryRequest, DescribeRecoveryResponse
from heirlog.sim.cluster import SimCluster
from heirlog.sim.world import World

CLIENT_PATIENCE_MS = 30_000
"""The default of `Client`."""


def test_a_partition_is_described_while_it_has_no_leader() -> None:
    harness = leading()
    create(harness, partitions=2, factor=1)
    topics = [DescribeRecoveryRequest.TopicRequest(name=name) for name in ("foo", "none")]
    (none,) = harness.ask("describe_recovery", DescribeRecoveryRequest(topics=topics), 0).topics
    assert (none.name, none.error_code) == ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert harness.ask("describe_recovery", DescribeRecoveryRequest(), 0).topics == []
    for broker in (1, 2, 3):
        heartbeat(harness, broker, want_fence=True)
    everything = harness.ask("describe_recovery", DescribeRecoveryRequest(response_partition_limit=1), 0)
    assert [len(topic.partitions) for topic in everything.topics] == [1]
    assert (everything.next_cursor.topic_name, everything.next_cursor.partition_index) == ("foo", 1)


def test_a_controller_that_is_not_active_refuses() -> None:
    answer = Harness().ask("describe_recovery", DescribeRecoveryRequest(), 0)
    assert answer.error_code == ErrorCode.NOT_CONTROLLER and answer.error_message


def test_the_cluster_must_allow_it(node: Guarded) -> None:
    for listener in ("PLAINTEXT", CONTROLLER):
        assert node.ask(DescribeRecoveryRequest(), listener=listener).error_code == C_DENIED
        assert node.ask(DescribeRecoveryRequest(), listener=listener, principal=ADMIN).error_code == ErrorCode.NONE
    node.allow(AclOperation.DESCRIBE, CLUSTER)
    assert node.ask(DescribeRecoveryRequest()).error_code == ErrorCode.NONE


def test_a_broker_says_which_controllers_it_asked_before_its_client_gives_up() -> None:
    cluster = SimCluster(World(7), brokers=1, config={"offsets.topic.replication.factor": "1"})
    cluster.format()
    cluster.start_all()
    machine = cluster.broker(1)
    assert cluster.run_until(
        lambda: machine.node is not None and any(not broker.fenced for broker in machine.node.sorted_brokers()), 30_000
    )
    cluster.kill(cluster.controller.name)
    node = machine.node
    assert node is not None
    wire = Wire("PLAINTEXT", "10.0.0.1")
    header = RequestHeader(DescribeRecoveryRequest.API_KEY, 0, 1, "operator")
    frame = b"".join(encode_request(header, DescribeRecoveryRequest()))[4:]  # type: ignore[arg-type]
    node.connected(wire).received_frame(memoryview(bytearray(frame)))
    assert cluster.run_until(lambda: bool(wire.answers), CLIENT_PATIENCE_MS // 2)
    response: DescribeRecoveryResponse = decode_response(header.api_key, 0, memoryview(wire.answers[0][1])[4:])[1]
    assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert response.error_message == (
        f"no controller is active: broker 1 had no answer from controller-100:9093 within {WAIT_MS // 1000} s; "
        "start the controllers at these addresses; if they run, read their logs; then try again"
    )


def test_the_replicas_are_asked_on_request() -> None:
    cluster = back(lost(unclean_recovery_strategy="None"), 1, 3)
    topic = DescribeRecoveryRequest.TopicRequest(name="foo")
    cluster.harness.ask("describe_recovery", DescribeRecoveryRequest(topics=[topic]), 0)
    assert cluster.asked() == []
    cluster.harness.ask("describe_recovery", DescribeRecoveryRequest(topics=[topic], ask_replicas=True), 0)
    assert cluster.asked() == [1, 2, 3]
