"""AlterUserScramCredentials through a node: what is stored, what is refused, and who may send it."""

from __future__ import annotations

from typing import Any

import pytest
from apis.guarded import ADMIN, C_DENIED, CLUSTER, CONTROLLER, Guarded
from controller.fakes import Harness

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AlterUserScramCredentialsRequest
from heirlog.security.scram import ScramMechanism, credential_of

Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion


def upsertion(name: str, mechanism: int = 1, **more: Any) -> Upsertion:
    given = {"iterations": 4096, "salt": b"salt", "salted_password": b"p" * (32 if mechanism == 1 else 64)}
    return Upsertion(name=name, mechanism=mechanism, **(given | more))


def altering(*upsertions: Upsertion, deletions: list[Deletion] | None = None) -> AlterUserScramCredentialsRequest:
    return AlterUserScramCredentialsRequest(upsertions=list(upsertions), deletions=deletions or [])


EXAMPLE = altering(upsertion("alice")), None


@pytest.fixture(autouse=True)
def no_users(node: Guarded) -> None:
    """The node is that of all tests here."""
    users = [Deletion(name=name, mechanism=mechanism) for name, mechanism in node.node.image.scram]
    for user in users:
        node.ask(altering(deletions=[user]), principal=ADMIN)


def codes(answer: Any) -> dict[str, ErrorCode]:
    return {result.user: ErrorCode(result.error_code) for result in answer.results}


@pytest.mark.parametrize("listener", ["PLAINTEXT", CONTROLLER])
def test_the_keys_are_stored_and_not_the_password(node: Guarded, listener: str) -> None:
    answer = node.ask(altering(upsertion("alice"), upsertion("bob", 2)), principal=ADMIN, listener=listener)
    assert codes(answer) == {"alice": ErrorCode.NONE, "bob": ErrorCode.NONE}
    expected = credential_of(ScramMechanism.SHA_256, b"p" * 32, b"salt", 4096)
    assert node.node.image.scram["alice", 1] == expected
    assert node.node.image.scram["bob", 2].iterations == 4096
    assert repr(expected) == "ScramCredential(iterations=4096)"


def test_a_credential_is_replaced_and_deleted(node: Guarded) -> None:
    node.ask(altering(upsertion("alice")), principal=ADMIN)
    node.ask(altering(upsertion("alice", iterations=8192)), principal=ADMIN)
    assert node.node.image.scram["alice", 1].iterations == 8192
    answer = node.ask(altering(deletions=[Deletion(name="alice", mechanism=1)]), principal=ADMIN)
    assert codes(answer) == {"alice": ErrorCode.NONE} and not node.node.image.scram


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (upsertion("bad", iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("bad", iterations=16385), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("bad", iterations=2**31 - 1), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("bad", salt=b""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("bad", salt=bytes(1025)), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("bad", salted_password=b"p" * 31), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("bad" * 342), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("", mechanism=1), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("bad", mechanism=0), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (Deletion(name="bad", mechanism=3), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (Deletion(name="bad", mechanism=2), ErrorCode.RESOURCE_NOT_FOUND),
    ],
)
def test_a_bad_change_is_refused_alone(node: Guarded, change: Upsertion | Deletion, code: ErrorCode) -> None:
    request = altering(upsertion("good"))
    (request.deletions if isinstance(change, Deletion) else request.upsertions).append(change)
    answer = node.ask(request, principal=ADMIN)
    assert codes(answer) == {"good": ErrorCode.NONE, change.name: code}
    assert all(result.error_message for result in answer.results if result.error_code)
    assert list(node.node.image.scram) == [("good", 1)]


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (altering(upsertion("alice", 1), upsertion("alice", 2)), ErrorCode.DUPLICATE_RESOURCE),
        (altering(upsertion("alice", 1), upsertion("alice", 2), upsertion("alice", 1)), ErrorCode.DUPLICATE_RESOURCE),
        (
            altering(upsertion("alice"), deletions=[Deletion(name="alice", mechanism=2)]),
            ErrorCode.RESOURCE_NOT_FOUND,
        ),
        (altering(upsertion("alice", 9), upsertion("alice", 1)), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (altering(upsertion("", 9), upsertion("")), ErrorCode.UNACCEPTABLE_CREDENTIAL),
    ],
)
def test_a_user_that_is_named_twice_is_refused_for_the_first_reason(
    node: Guarded, request_: AlterUserScramCredentialsRequest, code: ErrorCode
) -> None:
    assert list(codes(node.ask(request_, principal=ADMIN)).values()) == [code]
    assert not node.node.image.scram


def test_a_deletion_and_an_upsertion_of_one_user_do_not_go_together(node: Guarded) -> None:
    node.ask(altering(upsertion("alice")), principal=ADMIN)
    both = altering(upsertion("alice"), deletions=[Deletion(name="alice", mechanism=1)])
    assert codes(node.ask(both, principal=ADMIN)) == {"alice": ErrorCode.DUPLICATE_RESOURCE}
    assert ("alice", 1) in node.node.image.scram


def test_a_controller_that_is_not_active_refuses_every_user() -> None:
    answer = Harness().ask("alter_user_scram_credentials", altering(upsertion("a"), upsertion("b")), 0)
    assert codes(answer) == {"a": ErrorCode.NOT_CONTROLLER, "b": ErrorCode.NOT_CONTROLLER}


def test_the_cluster_must_allow_it(node: Guarded) -> None:
    assert codes(node.ask(altering(upsertion("alice")))) == {"alice": C_DENIED}
    node.allow(AclOperation.ALTER, CLUSTER)
    assert codes(node.ask(altering(upsertion("alice")))) == {"alice": ErrorCode.NONE}
