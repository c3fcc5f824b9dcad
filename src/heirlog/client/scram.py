"""Users with a password for SCRAM: what a client asks of the cluster to list, set and delete them (KIP-554).

A password is salted and hashed here; it never leaves the client.
"""

from __future__ import annotations

from heirlog.client.admin import to_controller
from heirlog.client.call import Ask, Conversation
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code
from heirlog.protocol.messages import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from heirlog.security.scram import BY_NUMBER, ScramMechanism, salted_password


def describe_users(names: list[str] | None = None) -> Conversation[dict[str, dict[ScramMechanism, int]]]:
    """Of each user its mechanisms with their iterations. Raises KafkaError (RESOURCE_NOT_FOUND for an unknown name)."""
    asked = None if names is None else [DescribeUserScramCredentialsRequest.UserName(name=name) for name in names]
    response: DescribeUserScramCredentialsResponse = yield Ask(DescribeUserScramCredentialsRequest(users=asked))
    _check(response.error_code, response.error_message)
    for result in response.results:
        _check(result.error_code, result.error_message)
    return {
        result.user: {BY_NUMBER[info.mechanism]: info.iterations for info in result.credential_infos}
        for result in response.results
    }


def set_password(
    user: str, mechanism: ScramMechanism, password: str, salt: bytes, iterations: int
) -> Conversation[None]:
    """salt: random bytes, never used before. Raises KafkaError."""
    salted = salted_password(mechanism, password, salt, iterations)
    upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name=user, mechanism=mechanism.number, iterations=iterations, salt=salt, salted_password=salted
    )
    yield from _alter(AlterUserScramCredentialsRequest(upsertions=[upsertion]))


def delete_password(user: str, mechanism: ScramMechanism) -> Conversation[None]:
    """Raises KafkaError."""
    deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion(name=user, mechanism=mechanism.number)
    yield from _alter(AlterUserScramCredentialsRequest(deletions=[deletion]))


def _alter(request: AlterUserScramCredentialsRequest) -> Conversation[None]:
    response: AlterUserScramCredentialsResponse = yield from to_controller(
        request, lambda answer: [result.error_code for result in answer.results]
    )
    for result in response.results:
        _check(result.error_code, result.error_message)


def _check(code: int, message: str | None) -> None:
    """Raises KafkaError."""
    if code != ErrorCode.NONE:
        raise KafkaError(error_code(code), message or error_code(code).name)
