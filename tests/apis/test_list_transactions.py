"""ListTransactions through a node: states and patterns by version, and ids that a client must not know."""

from __future__ import annotations

import pytest
from apis.guarded import ADMIN, Guarded

from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ListTransactionsRequest

EXAMPLE = ListTransactionsRequest(), None
REFUSES_NOTHING = "it leaves out the transactions that a client must not describe"


@pytest.mark.parametrize("version", range(3))
def test_there_are_none_and_unknown_states_are_named(node: Guarded, version: int) -> None:
    answer = node.ask(ListTransactionsRequest(state_filters=["Ongoing", "Nonsense", "Nonsense"]), version, ADMIN)
    assert (answer.error_code, answer.transaction_states) == (ErrorCode.NONE, [])
    assert answer.unknown_state_filters == ["Nonsense"]


def test_a_pattern_that_is_no_expression_is_refused_by_the_version_that_has_patterns(node: Guarded) -> None:
    request = ListTransactionsRequest(transactional_id_pattern="(")
    assert node.ask(request, 2, ADMIN).error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert node.ask(ListTransactionsRequest(transactional_id_pattern="app-.*"), 2, ADMIN).error_code == ErrorCode.NONE


def test_only_ids_that_the_client_may_describe_are_listed(node: Guarded) -> None:
    node.begin_transaction("x", "t")
    node.begin_transaction("hidden", "t")
    node.allow(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "x")
    (found,) = node.ask(ListTransactionsRequest()).transaction_states
    assert (found.transactional_id, found.transaction_state) == ("x", "Ongoing")
    assert len(node.ask(ListTransactionsRequest(), principal=ADMIN).transaction_states) == 2
