"""DescribeDelegationToken through a broker: each client sees its own, and others by ACLs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from apis.guarded import ADMIN, ALICE, Guarded
from apis.issuing_tokens import closed_node, token

from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.metadata.delegation_tokens import DelegationToken
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeDelegationTokenRequest

BOB, CAROL = "User:bob", "User:carol"
Owner = DescribeDelegationTokenRequest.DescribeDelegationTokenOwner


@pytest.fixture(scope="module")
def issued() -> Iterator[tuple[Guarded, dict[str, bytes]]]:
    guarded = closed_node()
    made = {
        "alice's": token(guarded, ALICE, ("carol",)),
        "bob's": token(guarded, BOB),
    }
    yield guarded, {made[name].token_id: bytes(made[name].hmac) for name in made}


@pytest.fixture(scope="module")
def one(issued: tuple[Guarded, dict[str, bytes]]) -> Guarded:
    return issued[0]


def seen(node: Guarded, principal: str, *owners: str, version: int = 3) -> list[str]:
    asked = [Owner(principal_type="User", principal_name=owner) for owner in owners]
    answer = node.ask(DescribeDelegationTokenRequest(owners=asked or None), version, principal=principal)
    assert answer.error_code == 0
    return sorted(one.principal_name for one in answer.tokens)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_owners_and_renewers_see_their_tokens_and_super_users_all(node: Guarded, version: int) -> None:
    assert seen(node, ALICE, version=version) == ["alice"]
    assert seen(node, CAROL, version=version) == ["alice"]
    assert seen(node, "User:dora", version=version) == []
    assert seen(node, ADMIN, version=version) == ["alice", "bob"]


def test_the_answer_has_the_secret_and_who_asked_for_the_token(
    node: Guarded, issued: tuple[Guarded, dict[str, bytes]]
) -> None:
    (found,) = node.ask(DescribeDelegationTokenRequest(owners=None), principal=ALICE).tokens
    assert issued[1][found.token_id] == bytes(found.hmac)
    assert (found.token_requester_principal_name, found.max_timestamp - found.issue_timestamp) == ("alice", 604_800_000)
    assert [renewer.principal_name for renewer in found.renewers] == ["carol"]


def test_a_list_of_owners_narrows_what_is_seen(node: Guarded) -> None:
    assert seen(node, ADMIN, "bob") == ["bob"]
    assert seen(node, ADMIN, "carol") == ["alice"], "a renewer counts like an owner"
    assert seen(node, ALICE, "bob") == []
    answer = node.ask(DescribeDelegationTokenRequest(owners=[]), principal=ADMIN)
    assert (answer.error_code, answer.tokens) == (0, [])


def test_as_many_owners_as_a_request_can_name_are_one_look_at_each_token(
    node: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []
    is_of = DelegationToken.is_of

    def counted(token: DelegationToken, principal: str) -> bool:
        looks.append(principal)
        return is_of(token, principal)

    monkeypatch.setattr(DelegationToken, "is_of", counted)
    assert seen(node, ADMIN, "bob", *(f"user-{number}" for number in range(10_000))) == ["bob"]
    assert len(looks) <= len(node.node.image.delegation_tokens)


def test_acls_on_a_token_or_on_its_owner_show_it(node: Guarded, issued: tuple[Guarded, dict[str, bytes]]) -> None:
    tokens = {token.owner: token.id for token in node.node.image.delegation_tokens.values()}
    node.allow(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, tokens[BOB])
    assert seen(node, ALICE) == ["alice", "bob"]
    node.forget_acls()
    node.allow(AclOperation.DESCRIBE_TOKENS, ResourceType.USER, BOB)
    assert seen(node, ALICE) == ["alice", "bob"]
    node.forget_acls()
    node.allow(AclOperation.CREATE_TOKENS, ResourceType.USER, BOB)
    assert seen(node, ALICE) == ["alice"]


def test_it_is_in_the_audit_log_without_secrets(node: Guarded, issued: tuple[Guarded, dict[str, bytes]]) -> None:
    node.log.clear()
    seen(node, ADMIN)
    (line,) = [line for line in node.log if line.event == "operation"]
    assert dict(line.values)["api"] == "DescribeDelegationToken"
    assert all(repr(hmac) not in repr(node.log) for hmac in issued[1].values())


def test_without_a_login_and_with_a_token_nothing_is_shown(node: Guarded) -> None:
    everything = DescribeDelegationTokenRequest(owners=None)
    not_allowed = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert node.ask(everything, principal="User:ANONYMOUS").error_code == not_allowed
    assert node.ask(everything, by_delegation_token=True).error_code == not_allowed
    assert Guarded().ask(everything, principal=ADMIN).error_code == not_allowed
    off = closed_node(delegation_token_secret_key="")
    assert off.ask(everything).error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
