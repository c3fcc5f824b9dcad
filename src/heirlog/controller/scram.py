"""AlterUserScramCredentials: each credential is a record under its user and mechanism.

The client sends salt and salted password; the controller derives the keys and keeps only those. A user that is named
twice, also for two mechanisms or in a deletion and an upsertion, is refused, so one request sets one mechanism of a
user. Changes are judged in order, deletions first, and the first refusal of a user is its answer, as on Kafka: a second
change is a duplicate only if the first was good. What is refused does not keep the other users' changes from being
made; those are made together.

Bounds that Kafka does not have (`security/scram.py`): each credential is in the memory of every node. A salted password
has the length of its hash.

Source: KIP-554, KIP-900.
"""

from __future__ import annotations

from typing import Any

from heirlog.controller.controller_result import ControllerResult, answer
from heirlog.controller.record_limit import MAX_RECORDS_PER_USER_OP, too_large
from heirlog.metadata.as_records import scram_record
from heirlog.metadata.image import Image
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse
from heirlog.protocol.records import RemoveUserScramCredentialRecord
from heirlog.security.scram import (
    BY_NUMBER,
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    SALT_BYTES_MAX,
    USER_NAME_MAX,
    ScramMechanism,
    credential_of,
)

Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion
Altered = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult


def alter_scram_credentials(
    image: Image, request: AlterUserScramCredentialsRequest
) -> ControllerResult[AlterUserScramCredentialsResponse]:
    """One result per user, in the order in which the request first names them."""
    changes = _changes(request)
    users = dict.fromkeys(change.name for change in changes)
    if len(users) > MAX_RECORDS_PER_USER_OP:
        refusal = too_large("Too many users in one request", "change them in several requests")
        return answer(refused(request, refusal.code, refusal.message))
    errors: dict[str, KafkaError] = {}
    records: dict[str, Any] = {}
    for change in changes:
        if change.name in errors:
            continue
        try:
            if records.pop(change.name, None) is not None:
                raise KafkaError(
                    ErrorCode.DUPLICATE_RESOURCE,
                    "A user credential cannot be altered twice in the same request",
                )
            records[change.name] = _record(image, change)
        except KafkaError as error:
            errors[change.name] = error
    response = AlterUserScramCredentialsResponse(results=[_altered(user, errors.get(user)) for user in users])
    return ControllerResult(lambda base_offset: response, list(records.values()))


def _altered(user: str, error: KafkaError | None) -> Altered:
    if error is None:
        return Altered(user=user, error_message=None)
    return Altered(user=user, error_code=error.code, error_message=error.message)


def refused(
    request: AlterUserScramCredentialsRequest, code: ErrorCode, message: str | None
) -> AlterUserScramCredentialsResponse:
    """Nothing was done."""
    users = dict.fromkeys(change.name for change in _changes(request))
    return AlterUserScramCredentialsResponse(
        results=[Altered(user=user, error_code=code, error_message=message) for user in users]
    )


def _changes(request: AlterUserScramCredentialsRequest) -> list[Deletion | Upsertion]:
    return [*request.deletions, *request.upsertions]


def _record(image: Image, change: Deletion | Upsertion) -> Any:
    """Raises KafkaError."""
    if not change.name:
        raise _unacceptable("Username must not be empty")
    mechanism = BY_NUMBER.get(change.mechanism)
    if mechanism is None:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, Deletion):
        if (change.name, mechanism.number) not in image.scram:
            raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
        return RemoveUserScramCredentialRecord(name=change.name, mechanism=mechanism.number)
    _check(change, mechanism)
    credential = credential_of(mechanism, bytes(change.salted_password), bytes(change.salt), change.iterations)
    return scram_record((change.name, mechanism.number), credential)


def _check(change: Upsertion, mechanism: ScramMechanism) -> None:
    if change.iterations < ITERATIONS_MIN:
        raise _unacceptable(f"Too few iterations: at least {ITERATIONS_MIN} are needed")
    if change.iterations > ITERATIONS_MAX:
        raise _unacceptable(f"Too many iterations: at most {ITERATIONS_MAX} are allowed")
    if len(change.name) > USER_NAME_MAX:
        raise _unacceptable(f"The name has {len(change.name)} characters; at most {USER_NAME_MAX} are allowed")
    if not 0 < len(change.salt) <= SALT_BYTES_MAX:
        raise _unacceptable(f"The salt has {len(change.salt)} bytes; 1 to {SALT_BYTES_MAX} are allowed")
    if len(change.salted_password) != mechanism.key_bytes:
        raise _unacceptable(
            f"The salted password has {len(change.salted_password)} bytes; {mechanism.mechanism} makes "
            f"{mechanism.key_bytes}"
        )


def _unacceptable(sentence: str) -> KafkaError:
    return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, sentence)
