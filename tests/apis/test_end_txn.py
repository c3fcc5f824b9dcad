"""EndTxn through a node: what each version answers, and who may end a transaction."""

from __future__ import annotations

import pytest
from apis.guarded import ADMIN, X_DENIED, Guarded

from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import EndTxnRequest

EXAMPLE = EndTxnRequest(transactional_id="x"), None


def ending(producer: tuple[int, int], *, commit: bool = True) -> EndTxnRequest:
    return EndTxnRequest(transactional_id="x", producer_id=producer[0], producer_epoch=producer[1], committed=commit)


@pytest.mark.parametrize("version", range(6))
def test_version_5_gives_the_producer_its_next_epoch(node: Guarded, version: int) -> None:
    producer = node.begin_transaction("x", "t")
    answer = node.ask(ending(producer), version, ADMIN)
    expected = (producer[0], producer[1] + 1) if version == 5 else (-1, -1)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (ErrorCode.NONE, *expected)


def test_versions_below_2_do_not_know_that_a_producer_can_be_fenced(node: Guarded) -> None:
    producer_id, epoch = node.begin_transaction("x", "t")
    stale = ending((producer_id, epoch + 1))
    codes = [node.ask(stale, version, ADMIN).error_code for version in (1, 2)]
    assert codes == [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED]


def test_a_transaction_is_ended_by_those_who_may_write_with_its_id(node: Guarded) -> None:
    producer = node.begin_transaction("x", "t")
    assert node.ask(ending(producer)).error_code == X_DENIED
    node.allow(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, "x")
    assert node.ask(ending(producer)).error_code == ErrorCode.NONE
