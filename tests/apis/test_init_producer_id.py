"""InitProducerId through a node: ids for idempotent producers, and what is refused."""

from __future__ import annotations

import pytest
from apis.guarded import ADMIN, C_DENIED, CLUSTER, TOPIC, X_DENIED, Guarded

from heirlog.metadata.acls import AclOperation, PatternType, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    DescribeTransactionsRequest,
    InitProducerIdRequest,
)

TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID
NO_TIMEOUT_MS = 2**31 - 1
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


# version 6: two-phase commit


def advertised(node: Guarded) -> tuple[int, int]:
    answer: ApiVersionsResponse = node.ask(ApiVersionsRequest(client_software_name="t", client_software_version="1"))
    (found,) = (one for one in answer.api_keys if one.api_key == ApiKey.INIT_PRODUCER_ID)
    return found.min_version, found.max_version


def two_phase(**more: object) -> InitProducerIdRequest:
    fields: dict[str, object] = {"transactional_id": "x", "transaction_timeout_ms": 1000, "enable2_pc": True, **more}
    return InitProducerIdRequest(**fields)  # type: ignore[arg-type]


def limit_of(node: Guarded, transactional_id: str = "x") -> int:
    """The time limit of the id's transactions."""
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    (found,) = node.ask(request, principal=ADMIN).transaction_states
    assert found.error_code == ErrorCode.NONE
    limit: int = found.transaction_timeout_ms
    return limit


def test_an_unstable_version_is_served_only_where_it_is_enabled(node: Guarded) -> None:
    assert advertised(node) == (0, 5)
    assert node.ask(two_phase(), 6, ADMIN) is None, "the connection is closed"
    enabled = Guarded(unstable_api_versions_enable="true")
    assert advertised(enabled) == (0, 6)
    answer = enabled.ask(InitProducerIdRequest(transactional_id=None), 6, ADMIN)
    assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, 0)
    assert (answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch) == (-1, -1)
    # two-phase commit has a switch of its own
    assert enabled.ask(two_phase(), 6, ADMIN).error_code == X_DENIED
    assert enabled.ask(two_phase(keep_prepared_txn=True), 6, ADMIN).error_code == X_DENIED
    assert enabled.ask(two_phase(transactional_id=""), 6, ADMIN).error_code == ErrorCode.INVALID_REQUEST


@pytest.fixture(scope="module")
def allowing() -> Guarded:
    return Guarded(unstable_api_versions_enable="true", transaction_two_phase_commit_enable="true")


def test_a_transaction_of_two_phase_commit_has_no_time_limit_whatever_the_client_names(allowing: Guarded) -> None:
    allowing.find_transaction_coordinator("x")
    for epoch, asked_ms in enumerate((1000, 0, -1, 900_001, NO_TIMEOUT_MS)):
        answer = allowing.ask_again(two_phase(transaction_timeout_ms=asked_ms), 6, ADMIN)
        assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, epoch)
        assert (answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch) == (-1, -1)
        assert limit_of(allowing) == NO_TIMEOUT_MS
    for asked_ms in (0, -1, 900_001, NO_TIMEOUT_MS):
        refused = allowing.ask_again(two_phase(enable2_pc=False, transaction_timeout_ms=asked_ms), 6, ADMIN)
        assert refused.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    # a producer without it, for example the one by which an administrator ends the transaction
    assert allowing.ask_again(two_phase(enable2_pc=False), 5, ADMIN).error_code == ErrorCode.NONE
    assert limit_of(allowing) == 1000


@pytest.mark.parametrize("enables", [True, False])
def test_no_transaction_is_kept(allowing: Guarded, enables: bool) -> None:
    asked = two_phase(keep_prepared_txn=True, enable2_pc=enables, transaction_timeout_ms=0)
    answer = allowing.ask_again(asked, 6, ADMIN)
    assert (answer.error_code, answer.producer_id) == (ErrorCode.UNSUPPORTED_VERSION, -1)
    without_id = allowing.ask(InitProducerIdRequest(transactional_id=None, keep_prepared_txn=True), 6, ADMIN)
    assert without_id.error_code == ErrorCode.NONE


def test_two_phase_commit_needs_a_permission_of_its_own(allowing: Guarded) -> None:
    allowing.find_transaction_coordinator("x")
    allowing.allow(AclOperation.TWO_PHASE_COMMIT, TRANSACTIONAL_ID, "x")
    assert allowing.ask(two_phase(), 6).error_code == X_DENIED
    allowing.forget_acls()
    allowing.allow(AclOperation.WRITE, TRANSACTIONAL_ID, "x")
    assert allowing.ask(two_phase(), 6).error_code == X_DENIED
    assert allowing.ask_again(two_phase(enable2_pc=False), 6).error_code == ErrorCode.NONE
    allowing.allow(AclOperation.TWO_PHASE_COMMIT, TRANSACTIONAL_ID, "x")
    assert allowing.ask_again(two_phase(), 6).error_code == ErrorCode.NONE
    assert limit_of(allowing) == NO_TIMEOUT_MS
