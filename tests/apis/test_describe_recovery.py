"""What a broker says of a recovery when it finds no controller."""

from __future__ import annotations

from apis.guarded import Wire

from heirlog.apis.describe_recovery import WAIT_MS
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.frames import RequestHeader, decode_response, encode_request
from heirlog.protocol.messages import DescribeRecoveryRequest, DescribeRecoveryResponse
from heirlog.sim.cluster import SimCluster
from heirlog.sim.world import World

CLIENT_PATIENCE_MS = 30_000
"""The default of `Client`."""


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
