"""AlterClientQuotas through a node: both versions, brokers and controllers, and clients without permission."""

from __future__ import annotations

import pytest
from apis.guarded import ADMIN, C_DENIED, CLUSTER, CONTROLLER, Guarded
from controller.fakes import Harness

from heirlog.metadata.acls import AclOperation
from heirlog.metadata.client_quotas import PRODUCER_BYTE_RATE, USER
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AlterClientQuotasRequest, AlterClientQuotasResponse


def altering(*names: str | None, key: str = PRODUCER_BYTE_RATE) -> AlterClientQuotasRequest:
    return AlterClientQuotasRequest(
        entries=[
            AlterClientQuotasRequest.EntryData(
                entity=[AlterClientQuotasRequest.EntityData(entity_type=USER, entity_name=name)],
                ops=[AlterClientQuotasRequest.OpData(key=key, value=1024.0)],
            )
            for name in names
        ]
    )


EXAMPLE = altering("alice"), None


def codes(answer: AlterClientQuotasResponse) -> list[int]:
    return [entry.error_code for entry in answer.entries]


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("listener", ["PLAINTEXT", CONTROLLER])
def test_each_entity_has_an_answer_of_its_own(node: Guarded, version: int, listener: str) -> None:
    answer = node.ask(altering("alice", "", None), version, ADMIN, listener=listener)
    assert codes(answer) == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
    assert [part.entity_name for entry in answer.entries for part in entry.entity] == ["alice", "", None]
    assert "Empty user" in answer.entries[1].error_message
    assert {((USER, "alice"),), ((USER, None),)} <= set(node.node.image.client_quotas.by_entity)


def test_the_cluster_must_allow_it(node: Guarded) -> None:
    assert codes(node.ask(altering("carol"))) == [C_DENIED]
    assert ((USER, "carol"),) not in node.node.image.client_quotas.by_entity
    node.allow(AclOperation.ALTER_CONFIGS, CLUSTER)
    assert codes(node.ask(altering("carol"))) == [ErrorCode.NONE]


def test_a_controller_that_is_not_active_refuses_each_entity() -> None:
    answer = Harness().ask("alter_client_quotas", altering("alice", "bob"), 1)
    assert codes(answer) == [ErrorCode.NOT_CONTROLLER] * 2
