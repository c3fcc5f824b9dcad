"""InitProducerId through a node: ids for idempotent producers, and what is refused."""

from __future__ import annotations

from apis.guarded import ADMIN, C_DENIED, CLUSTER, TOPIC, X_DENIED, Guarded

from heirlog.metadata.acls import AclOperation, PatternType, ResourceType
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import InitProducerIdRequest

EXAMPLE = InitProducerIdRequest(transactional_id=None), None


def test_each_producer_gets_another_id_in_every_version(node: Guarded) -> None:
    answers = [node.ask(InitProducerIdRequest(transactional_id=None), v, ADMIN) for v in range(6)]
    assert {(answer.error_code, answer.producer_epoch) for answer in answers} == {(ErrorCode.NONE, 0)}
    assert len({answer.producer_id for answer in answers}) == 6


def test_a_transactional_producer_gets_the_next_epoch_each_time(node: Guarded) -> None:
    request = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000)
    node.find_transaction_coordinator("x")
    first = node.ask_again(request, principal=ADMIN)
    second = node.ask_again(request, principal=ADMIN)
    assert (first.error_code, second.error_code) == (ErrorCode.NONE, ErrorCode.NONE)
    assert (second.producer_id, second.producer_epoch) == (first.producer_id, first.producer_epoch + 1)


def test_a_transactional_id_without_letters_is_refused(node: Guarded) -> None:
    request = InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1000)
    answer = node.ask(request, principal=ADMIN)
    assert (answer.error_code, answer.producer_id) == (ErrorCode.INVALID_REQUEST, -1)


def test_an_idempotent_producer_needs_only_some_topic_or_the_cluster(node: Guarded) -> None:
    request = InitProducerIdRequest(transactional_id=None)
    assert node.ask(request).error_code == C_DENIED
    node.allow(AclOperation.WRITE, TOPIC, "any", pattern=PatternType.PREFIXED)
    assert node.ask(request).error_code == ErrorCode.NONE
    node.forget_acls()
    node.allow(AclOperation.IDEMPOTENT_WRITE, CLUSTER)
    assert node.ask(request).error_code == ErrorCode.NONE


def test_a_transactional_id_needs_a_permission_of_its_own(node: Guarded) -> None:
    node.allow(AclOperation.IDEMPOTENT_WRITE, CLUSTER)
    request = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000)
    assert node.ask(request).error_code == X_DENIED
    node.find_transaction_coordinator("x")
    node.allow(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, "x")
    assert node.ask_again(request).error_code == ErrorCode.NONE
