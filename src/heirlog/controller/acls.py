"""CreateAcls and DeleteAcls: each access control entry is created and deleted by a record, under an id of its own.

Each creation succeeds or fails independently of the others. An ACL that exists already, or comes twice in one request,
succeeds and writes no second record. A filter deletes every ACL that it matches. An ACL that two filters match is in
both results and is deleted once. All deletions of one request are applied together, or none of them.

The principal, the host and the resource need not exist. One request creates or deletes at most 10,000 ACLs
(`record_limit.py`): more creations are refused as a whole, a filter that matches too many is refused alone. So is one
whose matches would make the answer have more than `ANSWERED_MAX`: any number of filters may match the same ACLs.

Source: KIP-140, KIP-290, KIP-801.
"""

from __future__ import annotations

from typing import Any, Final

from heirlog.controller.controller_result import ControllerResult, answer
from heirlog.controller.record_limit import MAX_RECORDS_PER_USER_OP, too_large
from heirlog.env import Random
from heirlog.metadata.acl_messages import acl_of_creation, entry_members, filter_of, pattern_members
from heirlog.metadata.acls import (
    CLUSTER_NAME,
    Acl,
    AclFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from heirlog.metadata.as_records import acl_record
from heirlog.metadata.image import Image
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import CreateAclsRequest, CreateAclsResponse, DeleteAclsRequest, DeleteAclsResponse
from heirlog.protocol.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from heirlog.protocol.types import ZERO_UUID, Uuid

Created = CreateAclsResponse.AclCreationResult
Deleted = DeleteAclsResponse.DeleteAclsFilterResult
MatchingAcl = DeleteAclsResponse.DeleteAclsMatchingAcl
ANSWERED_MAX: Final = 10 * MAX_RECORDS_PER_USER_OP


def create_acls(image: Image, request: CreateAclsRequest, random: Random) -> ControllerResult[CreateAclsResponse]:
    """Returns a record for each ACL that is new, and one result per creation, in the order of the request."""
    if any(_has_no_meaning(creation) for creation in request.creations):
        # Kafka cannot represent such an ACL, and every creation of the request gets this error
        return answer(_created_none(request, ErrorCode.UNKNOWN_SERVER_ERROR, None))
    existing = set(image.acls.by_id.values())
    records: list[AccessControlEntryRecord] = []
    ids: set[Uuid] = set()
    results = []
    for creation in request.creations:
        acl = acl_of_creation(creation)
        try:
            _check(acl)
        except KafkaError as error:
            results.append(Created(error_code=error.code, error_message=error.message))
            continue
        if acl not in existing:
            existing.add(acl)
            records.append(acl_record(_new_id(image, ids, random), acl))
        results.append(Created(error_message=""))
    if len(records) > MAX_RECORDS_PER_USER_OP:
        refusal = too_large("Too many new ACLs in one request", "create them in several requests")
        return answer(_created_none(request, refusal.code, refusal.message))
    response = CreateAclsResponse(results=results)
    return ControllerResult(lambda base_offset: response, list(records))


def _created_none(request: CreateAclsRequest, code: ErrorCode, sentence: str | None) -> CreateAclsResponse:
    return CreateAclsResponse(results=[Created(error_code=code, error_message=sentence) for _ in request.creations])


def _has_no_meaning(creation: CreateAclsRequest.AclCreation) -> bool:
    """ANY and MATCH are allowed in filters only."""
    return (
        creation.resource_type == ResourceType.ANY
        or creation.resource_pattern_type in (PatternType.ANY, PatternType.MATCH)
        or creation.operation == AclOperation.ANY
        or creation.permission_type == AclPermissionType.ANY
    )


def _check(acl: Acl) -> None:
    """Raises KafkaError INVALID_REQUEST."""
    if acl.resource_type == ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not acl.resource_name:
        raise _invalid("Invalid empty resource name")
    if ResourceType(acl.resource_type) is ResourceType.UNKNOWN:
        raise _invalid("Invalid resourceType UNKNOWN")
    if PatternType(acl.pattern_type) is PatternType.UNKNOWN:
        raise _invalid("Invalid patternType UNKNOWN")
    if AclOperation(acl.operation) is AclOperation.UNKNOWN:
        raise _invalid("Invalid operation UNKNOWN")
    if AclPermissionType(acl.permission) is AclPermissionType.UNKNOWN:
        raise _invalid("Invalid permissionType UNKNOWN")
    if ":" not in acl.principal:
        raise _invalid(
            f"Could not parse principal from `{acl.principal}` "
            "(no colon is present separating the principal type from the principal name)"
        )


def _invalid(sentence: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, sentence)


def _new_id(image: Image, ids: set[Uuid], random: Random) -> Uuid:
    while True:
        acl_id = Uuid(random.randbytes(16))
        if acl_id != ZERO_UUID and acl_id not in image.acls.by_id and acl_id not in ids:
            ids.add(acl_id)
            return acl_id


def delete_acls(image: Image, request: DeleteAclsRequest) -> ControllerResult[DeleteAclsResponse]:
    """Returns a record for each ACL that a filter matches, and one result per filter, in the order of the request."""
    removed: dict[Uuid, None] = {}
    answered = 0
    results = []
    for asked in request.filters:
        wanted = filter_of(asked)
        unknown = _unknown_part(wanted)
        if unknown:
            results.append(Deleted(error_code=ErrorCode.INVALID_REQUEST, error_message=f"Unknown {unknown}."))
            continue
        matching = image.acls.matching(wanted)
        new = sum(acl_id not in removed for acl_id, _ in matching)
        if len(removed) + new > MAX_RECORDS_PER_USER_OP or answered + len(matching) > ANSWERED_MAX:
            refusal = too_large(
                f"Too many ACLs to delete in one request: this filter matches {len(matching)}",
                "name a resource, a principal or an operation in the filter, and send it in a request of its own",
            )
            results.append(Deleted(error_code=refusal.code, error_message=refusal.message))
            continue
        answered += len(matching)
        removed.update((acl_id, None) for acl_id, _ in matching)
        results.append(
            Deleted(
                error_message=None,
                matching_acls=[
                    MatchingAcl(error_message=None, **pattern_members(acl), **entry_members(acl)) for _, acl in matching
                ],
            )
        )
    records: list[Any] = [RemoveAccessControlEntryRecord(id=acl_id) for acl_id in removed]
    response = DeleteAclsResponse(filter_results=results)
    return ControllerResult(lambda base_offset: response, records)


def _unknown_part(wanted: AclFilter) -> str:
    if (
        ResourceType(wanted.resource_type) is ResourceType.UNKNOWN
        or PatternType(wanted.pattern_type) is PatternType.UNKNOWN
    ):
        return "patternFilter"
    if (
        AclOperation(wanted.operation) is AclOperation.UNKNOWN
        or AclPermissionType(wanted.permission) is AclPermissionType.UNKNOWN
    ):
        return "entryFilter"
    return ""
