"""DescribeUserScramCredentials through a broker: users and iterations, never salts or keys."""

from __future__ import annotations

from typing import Any

import pytest
from apis.guarded import ADMIN, C_DENIED, CLUSTER, Guarded
from apis.test_alter_user_scram_credentials import altering, upsertion

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeUserScramCredentialsRequest

UserName = DescribeUserScramCredentialsRequest.UserName


def describing(*names: str) -> DescribeUserScramCredentialsRequest:
    return DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in names])


EXAMPLE = DescribeUserScramCredentialsRequest(users=None), None


def described(answer: Any) -> dict[str, Any]:
    return {
        result.user: ErrorCode(result.error_code)
        if result.error_code
        else [(info.mechanism, info.iterations) for info in result.credential_infos]
        for result in answer.results
    }


@pytest.fixture
def users(node: Guarded) -> Guarded:
    node.ask(altering(upsertion("bob", 2, iterations=8192), upsertion("alice")), principal=ADMIN)
    node.ask(altering(upsertion("bob", 1)), principal=ADMIN)
    return node


@pytest.mark.parametrize("request_", [DescribeUserScramCredentialsRequest(users=None), describing()])
def test_null_and_an_empty_list_mean_all(users: Guarded, request_: DescribeUserScramCredentialsRequest) -> None:
    answer = users.ask(request_, principal=ADMIN)
    assert described(answer) == {"alice": [(1, 4096)], "bob": [(1, 4096), (2, 8192)]}


def test_each_user_is_answered_for_itself(users: Guarded) -> None:
    answer = users.ask(describing("bob", "nobody", "alice", "alice"), principal=ADMIN)
    assert described(answer) == {
        "bob": [(1, 4096), (2, 8192)],
        "nobody": ErrorCode.RESOURCE_NOT_FOUND,
        "alice": ErrorCode.DUPLICATE_RESOURCE,
    }


def test_the_cluster_must_allow_it(users: Guarded) -> None:
    assert users.ask(describing("alice")).error_code == C_DENIED
    users.allow(AclOperation.DESCRIBE, CLUSTER)
    assert described(users.ask(describing("alice"))) == {"alice": [(1, 4096)]}
