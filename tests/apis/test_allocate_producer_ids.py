"""AllocateProducerIds as a handler: blocks that do not overlap, and senders that must not ask."""

from __future__ import annotations

from apis.guarded import C_DENIED, CLUSTER, CONTROLLER, Guarded
from controller.cluster import epoch_of, leading
from controller.fakes import Harness

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AllocateProducerIdsRequest


def test_blocks_of_two_brokers_do_not_overlap_and_outlive_the_controller() -> None:
    harness = leading(brokers=2)
    blocks = []
    for broker in (1, 2, 1):
        request = AllocateProducerIdsRequest(broker_id=broker, broker_epoch=epoch_of(harness, broker))
        answer = harness.ask("allocate_producer_ids", request, 0)
        assert answer.error_code == ErrorCode.NONE
        blocks.append((answer.producer_id_start, answer.producer_id_len))
    assert blocks == [(0, 1000), (1000, 1000), (2000, 1000)]
    assert harness.controller.image.next_producer_id == 3000


def test_a_broker_of_another_epoch_or_unknown_gets_none() -> None:
    harness = leading(brokers=1)
    for broker, epoch in ((1, epoch_of(harness, 1) + 1), (9, 0)):
        request = AllocateProducerIdsRequest(broker_id=broker, broker_epoch=epoch)
        answer = harness.ask("allocate_producer_ids", request, 0)
        assert (answer.error_code, answer.producer_id_len) == (ErrorCode.STALE_BROKER_EPOCH, 0)
    assert harness.controller.image.next_producer_id == 0
    inactive = Harness().ask("allocate_producer_ids", AllocateProducerIdsRequest(broker_id=1), 0)
    assert inactive.error_code == ErrorCode.NOT_CONTROLLER


def test_only_nodes_may_ask(node: Guarded) -> None:
    request = AllocateProducerIdsRequest(broker_id=77)
    assert node.ask(request, listener=CONTROLLER).error_code == C_DENIED
    node.allow(AclOperation.CLUSTER_ACTION, CLUSTER)
    assert node.ask(request, listener=CONTROLLER).error_code == ErrorCode.STALE_BROKER_EPOCH
